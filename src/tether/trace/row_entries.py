"""Where the entries of the Jacobian go that templates compute, and which of them are added.

An entry of F_y or F_y' may be a sum: of derivatives by several inputs, if these are the same
element in some rows, and of products through intermediate results. Entries that depend on constants
and arguments only are written once, the others at every point. For both kinds it has to be known
which step writes an entry first, and which steps add to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tether.trace.refusal import refuse
from tether.trace.row_step import TO_FACTORS, TO_FY, TO_FYP, TO_MEMORY, Step

__all__ = ["RowEntries", "find_entries"]

# With more products of derivatives than this, in total or per unknown, most of the work would be
# to multiply them.
_MOST_PRODUCTS, _MOST_PRODUCTS_EACH = 4_000_000, 200
Pieces = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def find_entries(n: int, first: int, size: int, steps: Sequence[Step]) -> RowEntries:
    """Find the entries that steps compute.

    Parameters
    ----------
    n : int
        Number of unknowns.
    first, size : int
        Where intermediate results begin in the memory, and where they end.
    steps : sequence of Step
        The steps in the order in which they are run.
    """
    return RowEntries(n, first, size, steps)


class RowEntries:
    """Entries of F_y and F_y', and the products that lead to them.

    Attributes
    ----------
    fy, fyp : pair of ndarray
        Rows and columns of the entries.
    fyp_is_static : bool
        Whether no entry of F_y' changes.
    destinations : dict
        For each step and entry of its expression where it goes, and the numbers of the entries of
        F_y or F_y' there; ~number where it is added to what was written before.
    factor_places : dict
        For each step and entry that is a factor of products, where its factors begin.
    based : pair of ndarray
        Changing entries of F_y and F_y' that are set to their constant part, which may be zero,
        before anything is added.
    zeros : pair of ndarray
        Entries of F_y and F_y' whose constant part is set to zero before anything is added.
    target, factor, through, product_ends : ndarray
        Products in six groups: constant ones for totals, F_y and F_y', then changing ones.
    n_totals : int
        Number of total derivatives of intermediate results.
    total_zeros : pair of ndarray
        Which of the total derivatives are constant, and which change.
    """

    def __init__(self, n: int, first: int, size: int, steps: Sequence[Step]) -> None:
        self.n, self.first, self.size, self.steps = n, first, size, steps
        inner = [s for s in self.steps if s.to == TO_MEMORY]
        outer = [s for s in self.steps if s.to != TO_MEMORY]
        self.factor_size = 0
        self.factor_places: dict[tuple[int, int], int] = {}
        self.destinations: dict[tuple[int, int], tuple[int, np.ndarray]] = {}
        self._static_factors: list[tuple[int, int, bool]] = []
        reads_inner = {
            id(s): [bool((x >= self.first).any()) for x in s.sources] for s in self.steps
        }
        for step in inner:
            for k in range(len(step.sources)):
                self._place_factors(step, k)
        for step in outer:
            for k in range(len(step.sources)):
                if reads_inner[id(step)][k]:
                    self._place_factors(step, k)
        self._factor_is_static = np.zeros(self.factor_size, bool)
        for begin, end, is_static in self._static_factors:
            self._factor_is_static[begin:end] = is_static
        self._derivatives_of_kept(inner)
        pieces: list[Pieces] = []
        direct: list[tuple[Step, int, np.ndarray]] = []
        for step in outer:
            for k, source in enumerate(step.sources):
                if not reads_inner[id(step)][k]:
                    direct.append((step, k, source))
                else:
                    factors = self.factor_places[id(step), k]
                    pieces.append(self._chained(step.results, source, factors))
        places = [(s.results, source) for s, _, source in direct] + [p[:2] for p in pieces]
        keys = np.empty(sum(len(rows) for rows, _ in places), np.int64)
        end = 0
        for rows, columns in places:
            end += len(rows)
            keys[end - len(rows) : end] = self._keys(rows, columns)
        every = _distinct(keys)
        del keys
        of_slopes = every % (2 * self.n) >= self.n
        number = np.empty(len(every), np.intc)
        found = []
        for chosen in (~of_slopes, of_slopes):
            mine = every[chosen]
            number[chosen] = np.arange(len(mine), dtype=np.intc)
            rows = (mine // (2 * self.n)).astype(np.intc)
            mine %= self.n                     # y' has columns from n on
            found.append((rows, mine.astype(np.intc)))
        self.fy, self.fyp = found
        for step, k, source in direct:
            kind = TO_FYP if source[0] >= self.n else TO_FY
            place = np.searchsorted(every, self._keys(step.results, source))
            self.destinations[id(step), k] = kind, number[place]
        for rows, columns, factor, through in pieces:
            place = np.searchsorted(every, self._keys(rows, columns))
            self._products(number[place], 1 + of_slopes[place], factor, through)
        del every, number, of_slopes
        self._sort_products()
        self._find_first_writers([(step, k) for step, k, _ in direct])

    def _keys(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return rows.astype(np.int64) * (2 * self.n) + columns

    def _place_factors(self, step: Step, k: int) -> None:
        self.factor_places[id(step), k] = self.factor_size
        self.destinations[id(step), k] = TO_FACTORS, np.zeros(0, np.intc)
        begin, self.factor_size = self.factor_size, self.factor_size + len(step.sources[k])
        self._static_factors.append((begin, self.factor_size, step.is_static[k]))

    # --- products -------------------------------------------------------------------------

    def _derivatives_of_kept(self, inner: list[Step]) -> None:
        """Find the total derivatives of intermediate results, and list their products."""
        count = self.size - self.first
        self._total_start = np.zeros(count + 1, np.int64)      # of each result, once it is known
        self._total_stop = np.zeros(count, np.int64)
        self._columns = np.zeros(0, np.int64)
        self._total_is_static = np.zeros(0, bool)
        self.n_totals = 0
        self._listed: list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]] = []
        for step in inner:
            rows = step.place - self.first + np.arange(len(step.results))
            parts = []
            for k, source in enumerate(step.sources):
                owner = rows if step.ends is None else np.repeat(
                    rows, np.diff(step.ends, prepend=0)
                )
                parts.append(self._chained(owner, source, self.factor_places[id(step), k]))
            if not parts:
                continue
            row, column, factor, through = (np.concatenate(x) for x in zip(*parts, strict=True))
            key = self._keys(row, column)
            every = _distinct(key.copy())
            place = np.searchsorted(every, key)
            is_static = np.ones(len(every), bool)
            is_static[place[~self._are_static(factor, through)]] = False
            self._total_is_static = np.concatenate([self._total_is_static, is_static])
            self._products(self.n_totals + place, 0, factor, through)
            owners = every // (2 * self.n)
            self._total_start[rows] = self.n_totals + np.searchsorted(owners, rows)
            self._total_stop[rows] = self.n_totals + np.searchsorted(owners, rows, side="right")
            self._columns = np.concatenate([self._columns, every % (2 * self.n)])
            self.n_totals += len(every)

    def _are_static(self, factor: np.ndarray, through: np.ndarray) -> np.ndarray:
        """Tell which products never change."""
        found = self._factor_is_static[factor]
        chained = through >= 0
        found[chained] &= self._total_is_static[through[chained]]
        return found

    def _chained(self, rows: np.ndarray, source: np.ndarray, factors: int) -> Pieces:
        """Rows, columns, factors and totals (-1: none) of derivatives, by the chain rule."""
        factor = factors + np.arange(len(source), dtype=np.int64)
        plain = source < 2 * self.n
        inner = source >= self.first
        chosen = np.flatnonzero(inner)
        kept = source[chosen] - self.first
        counts = self._total_stop[kept] - self._total_start[kept]
        self._check(int(counts.sum()))
        which = np.repeat(np.arange(len(chosen)), counts)
        within = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)
        totals = self._total_start[kept][which] + within
        many = chosen[which]
        return (
            np.concatenate([rows[plain], rows[many]]),
            np.concatenate([source[plain].astype(np.int64), self._columns[totals]]),
            np.concatenate([factor[plain], factor[many]]),
            np.concatenate([np.full(int(plain.sum()), -1, np.int64), totals]),
        )

    def _products(
        self, target: np.ndarray, of: np.ndarray | int, factor: np.ndarray, through: np.ndarray
    ) -> None:
        """List products for totals (0), F_y (1) or F_y' (2)."""
        if isinstance(of, int):                # a total changes if one of its terms does
            is_static = self._total_is_static[target]
        else:
            is_static = self._are_static(factor, through)
        group = (of + 3 * ~is_static).astype(np.int8)
        self._listed.append((target, group, factor, through))
        self._check(sum(len(x[0]) for x in self._listed))

    def _check(self, products: int) -> None:
        if products > max(_MOST_PRODUCTS, _MOST_PRODUCTS_EACH * self.n):
            refuse("has rows that depend on too many unknowns")

    def _sort_products(self) -> None:
        """Sort the products by their groups, in a group by the order of the steps."""
        none = np.zeros(0, np.int64)
        listed = self._listed or [(none, none, none, none)]
        target, group, factor, through = (np.concatenate(x) for x in zip(*listed, strict=True))
        order = np.argsort(group, kind="stable")
        self.target, self.factor, self.through = target[order], factor[order], through[order]
        self.product_ends = np.cumsum(np.bincount(group, minlength=6)).astype(np.intc)
        self.total_zeros = tuple(
            np.flatnonzero(self._total_is_static == wanted).astype(np.intc)
            for wanted in (True, False)
        )
        del self._listed

    # --- first writers --------------------------------------------------------------------

    def _find_first_writers(self, direct: list[tuple[Step, int]]) -> None:
        """Find the first step that writes each entry; the others add to it."""
        parts = np.split(self.target, self.product_ends[:-1])
        based, zeros = [], []
        for kind, entries in ((TO_FY, self.fy), (TO_FYP, self.fyp)):
            of_each: tuple[list[Any], list[Any]] = ([], [])    # constant ones, changing ones
            for step, k in direct:
                if self.destinations[id(step), k][0] == kind:
                    of_each[not step.is_static[k]].append((id(step), k))
            count = len(entries[0])
            by_products = [_marks(count, [parts[j + 1 + kind]]) for j in (0, 3)]
            by_steps = [
                _marks(count, [self.destinations[key][1] for key in keys]) for keys in of_each
            ]
            constant, changing = (x | y for x, y in zip(by_products, by_steps, strict=True))
            needs_base = changing & (constant | ~by_steps[1])
            needs_zero = (by_products[0] & ~by_steps[0]) | (needs_base & ~constant)
            based.append(np.flatnonzero(needs_base).astype(np.intc))
            zeros.append(np.flatnonzero(needs_zero).astype(np.intc))
            if kind == TO_FYP:
                self.fyp_is_static = not changing.any()
            for keys, begun in zip(of_each, (needs_zero, needs_base), strict=True):
                for key in keys:
                    numbers = self.destinations[key][1]
                    adds = begun[numbers]
                    begun[numbers] = True
                    np.invert(numbers, out=numbers, where=adds)
        self.based, self.zeros = tuple(based), tuple(zeros)


def _marks(count: int, numbers: list[np.ndarray]) -> np.ndarray:
    """Mark entries by their numbers."""
    marks = np.zeros(count, bool)
    for some in numbers:
        marks[some] = True
    return marks


def _distinct(keys: np.ndarray) -> np.ndarray:
    """Sort keys in place, and return each of them once.

    The sort is stable because that is fast for keys that consist of a few sorted runs.
    """
    keys.sort(kind="stable")
    is_new = np.ones(len(keys), bool)
    np.not_equal(keys[1:], keys[:-1], out=is_new[1:])
    return keys[is_new]
