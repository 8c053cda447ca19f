"""What the core runs over many rows: steps side by side, and where their entries go.

A step is a template, or sums of multiples; `templates.py` makes them. Here their tables are joined
to one (`RowTable`), which `tether._core.rows` runs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tether._core.schedule import Schedule
from tether.trace import opcodes as op
from tether.trace.refusal import refuse

__all__ = ["TO_FY", "TO_FYP", "TO_MEMORY", "TO_VALUES", "RowTable", "Step", "joined"]

# Where a result or an entry goes; the numbers are those of `tether._core.rows`.
TO_FY, TO_FYP, _TO_FACTORS, TO_MEMORY, TO_VALUES = range(5)
# Rows that it runs at a time.
BLOCK = 128
# Of so many products of derivatives, or so many for each unknown, most of the work would be to
# multiply them.
_MOST_PRODUCTS, _MOST_PRODUCTS_EACH = 4_000_000, 200


@dataclass(eq=False, repr=False)
class RowTable:
    """What `tether._core.rows.Rows` does; all lists of steps are joined, slots numbered through."""

    n: int
    n_args: int
    n_values: int
    fy: tuple[np.ndarray, np.ndarray] = (np.zeros(0, np.intc), np.zeros(0, np.intc))
    fyp: tuple[np.ndarray, np.ndarray] = (np.zeros(0, np.intc), np.zeros(0, np.intc))
    fyp_is_static: bool = False
    kind: Any = field(default_factory=list)
    count: Any = field(default_factory=list)
    code: Any = field(default_factory=list)
    to: Any = field(default_factory=list)
    a: Any = field(default_factory=list)
    b: Any = field(default_factory=list)
    second: Any = field(default_factory=list)
    c: Any = field(default_factory=list)
    first: Any = field(default_factory=lambda: [0])
    first_of_entries: Any = field(default_factory=list)
    t_slot: Any = field(default_factory=list)
    pieces: Any = field(default_factory=list)
    load_start: Any = field(default_factory=lambda: [0])
    load_slot: Any = field(default_factory=list)
    load_of: Any = field(default_factory=list)                  # y, y', or the rest
    load_table: Any = field(default_factory=list)
    load_blocks: Any = field(default_factory=list)
    result_slot: Any = field(default_factory=list)
    result_to: Any = field(default_factory=list)
    for_entries: Any = field(default_factory=list)
    result_table: Any = field(default_factory=list)
    result_first: Any = field(default_factory=list)
    entry_start: Any = field(default_factory=lambda: [0])
    entry_slot: Any = field(default_factory=list)
    entry_kind: Any = field(default_factory=list)
    entry_table: Any = field(default_factory=list)
    entry_sets: Any = field(default_factory=list)               # nothing was written there before
    added: Any = ()                                             # entries that begin with zero
    index: Any = field(default_factory=list)
    sum_start: Any = field(default_factory=list)
    sum_end: Any = field(default_factory=list)
    target: Any = field(default_factory=list)
    factor: Any = field(default_factory=list)
    through: Any = field(default_factory=list)
    n_totals: int = 0
    copies_point: bool = False        # whether some input may be of y, y' or the rest
    memory: Any = None                # y, y', t, args, intermediate results, numbers
    slots: Any = field(default_factory=list)
    factors: Any = field(default_factory=list)

    @property
    def nbytes(self) -> int:
        """Memory of all tables, in bytes."""
        return sum(x.nbytes for x in vars(self).values() if isinstance(x, np.ndarray))

    @property
    def templates(self) -> int:
        """Number of short programs."""
        return int(np.sum(np.asarray(self.kind) == 0))


@dataclass(eq=False)
class Step:
    """Rows that are computed together.

    Attributes
    ----------
    results : ndarray
        Numbers of the elements, or of the values or entries that they are.
    to : int
        Where the results go.
    place : int
        Where in the memory.
    schedule : Schedule or None
        The program; None for sums.
    loads, numbers : list of ndarray
        Places of the inputs by which derivatives are taken, and of other inputs, or these numbers.
    sources, is_static : list
        For each entry the input it belongs to, and whether it never changes.
    ends, factors : ndarray or None
        Where the terms of each sum end, and their factors.
    for_entries : bool
        Whether no value needs them.
    """

    results: np.ndarray
    to: int = TO_VALUES
    place: int = 0
    schedule: Schedule | None = None
    loads: list[np.ndarray] = field(default_factory=list)
    numbers: list[np.ndarray] = field(default_factory=list)
    sources: list[np.ndarray] = field(default_factory=list)
    is_static: list[bool] = field(default_factory=list)
    ends: np.ndarray | None = None
    factors: np.ndarray | None = None
    for_entries: bool = False


def _distinct(keys: np.ndarray) -> np.ndarray:
    """Give keys in order, each once, and leave them sorted.

    They come in a few runs that are sorted already.
    """
    keys.sort(kind="stable")
    is_new = np.ones(len(keys), bool)
    np.not_equal(keys[1:], keys[:-1], out=is_new[1:])
    return keys[is_new]


def _are_distinct(places: np.ndarray, count: int) -> bool:
    """Tell whether no place occurs twice."""
    last = np.zeros(count, np.intc)
    last[places] = np.arange(len(places), dtype=np.intc)
    return bool((last[places] == np.arange(len(places))).all())


def joined(n: int, n_args: int, count: int, steps: list[Step], size: int) -> RowTable:
    """Join steps to a table.

    Parameters
    ----------
    n, n_args, count : int
        Numbers of unknowns, arguments and values.
    steps : list of Step
        In the order in which they are run.
    size : int
        Size of the memory, without numbers of single rows.
    """
    return _Joining(n, n_args, count, steps, size).table()


class _Joining:
    """Puts steps side by side, and finds out where their entries go."""

    def __init__(self, n: int, n_args: int, count: int, steps: list[Step], size: int) -> None:
        self.n, self.first, self.size = n, 2 * n + 1 + n_args, size
        self.row_table = RowTable(n, n_args, count)
        self.steps, self.index_size, self.memory_size = steps, 0, size
        self.numbers: list[np.ndarray] = []

    def table(self) -> RowTable:
        """Join all steps."""
        self._entries()
        for step in self.steps:
            self._join(step)
        self._finish()
        return self.row_table

    # --- entries --------------------------------------------------------------------------

    def _entries(self) -> None:
        """Find the entries of F_y and F_y', and list the products that lead to them."""
        inner = [s for s in self.steps if s.to == TO_MEMORY]
        outer = [s for s in self.steps if s.to != TO_MEMORY]
        self.factor_size = 0
        self.factor_places: dict[tuple[int, int], int] = {}
        self.kinds: dict[tuple[int, int], tuple[int, np.ndarray]] = {}
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
        self._derivatives_of_kept(inner)
        pieces: list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]] = []
        direct: list[tuple[Step, int, np.ndarray]] = []
        static = True
        for step in outer:
            for k, source in enumerate(step.sources):
                if not reads_inner[id(step)][k]:
                    direct.append((step, k, source))
                    static &= step.is_static[k] or source[0] < self.n
                else:
                    factors = self.factor_places[id(step), k]
                    pieces.append(self._chained(step.results, source, factors))
                    static &= not bool((pieces[-1][1] >= self.n).any())
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
            mine %= self.n                     # of columns of y', too
            found.append((rows, mine.astype(np.intc)))
        table = self.row_table
        table.fy, table.fyp = found
        table.fyp_is_static = static
        for step, k, source in direct:
            kind = int(source[0] >= self.n)
            place = np.searchsorted(every, self._keys(step.results, source))
            self.kinds[id(step), k] = kind, number[place]
        offset = self.n_totals
        for rows, columns, factor, through in pieces:
            place = np.searchsorted(every, self._keys(rows, columns))
            slopes = of_slopes[place]
            target = number[place] + offset + np.where(slopes, len(table.fy[0]), 0)
            self._products(target, factor, through)

    def _keys(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return rows.astype(np.int64) * (2 * self.n) + columns

    def _place_factors(self, step: Step, k: int) -> None:
        self.factor_places[id(step), k] = self.factor_size
        self.kinds[id(step), k] = 2, np.zeros(0, np.intc)
        self.factor_size += len(step.sources[k])

    def _derivatives_of_kept(self, inner: list[Step]) -> None:
        """Find the total derivatives of intermediate results, and list their products."""
        count = self.size - self.first
        self.total_start = np.zeros(count + 1, np.int64)       # of each result, once it is known
        self.total_stop = np.zeros(count, np.int64)
        self.total_column: list[np.ndarray] = []
        self.columns = np.zeros(0, np.int64)
        self.n_totals = 0
        self.listed: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
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
            self._products(self.n_totals + place, factor, through)
            owners = every // (2 * self.n)
            places = self.n_totals + np.arange(len(every))
            self.total_start[rows] = self.n_totals + np.searchsorted(owners, rows)
            self.total_stop[rows] = self.n_totals + np.searchsorted(owners, rows, side="right")
            self.columns = np.concatenate([self.columns, every % (2 * self.n)])
            self.n_totals += len(places)
        self.row_table.n_totals = self.n_totals

    def _chained(
        self, rows: np.ndarray, source: np.ndarray, factors: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Rows, columns, factors and totals of derivatives, through what is kept or directly."""
        factor = factors + np.arange(len(source), dtype=np.int64)
        plain = source < 2 * self.n
        inner = source >= self.first
        chosen = np.flatnonzero(inner)
        kept = source[chosen] - self.first
        counts = self.total_stop[kept] - self.total_start[kept]
        self._check(int(counts.sum()))
        which = np.repeat(np.arange(len(chosen)), counts)
        within = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)
        totals = self.total_start[kept][which] + within
        many = chosen[which]
        return (
            np.concatenate([rows[plain], rows[many]]),
            np.concatenate([source[plain].astype(np.int64), self.columns[totals]]),
            np.concatenate([factor[plain], factor[many]]),
            np.concatenate([np.full(int(plain.sum()), -1, np.int64), totals]),
        )

    def _products(self, target: np.ndarray, factor: np.ndarray, through: np.ndarray) -> None:
        self.listed.append((target, factor, through))
        self._check(sum(len(x) for x, _, _ in self.listed))

    def _check(self, products: int) -> None:
        if products > max(_MOST_PRODUCTS, _MOST_PRODUCTS_EACH * self.n):
            refuse("has rows that depend on too many unknowns")

    # --- steps ----------------------------------------------------------------------------

    def _add_index(self, table: np.ndarray) -> int:
        place = self.index_size
        self.row_table.index.append(np.asarray(table, np.intc))
        self.index_size += len(table)
        return place

    def _join(self, step: Step) -> None:
        table = self.row_table
        table.count.append(len(step.results))
        table.kind.append(0 if step.ends is None else 1)
        slots = len(table.slots)
        if step.ends is None:
            self._join_template(step, slots)
        else:
            self._join_sums(step)
        table.first.append(len(table.code))
        table.load_start.append(len(table.load_slot))
        table.entry_start.append(len(table.entry_slot))
        table.result_to.append(step.to)
        table.for_entries.append(int(step.for_entries))
        inside = step.to == TO_MEMORY
        table.result_table.append(step.place if inside else self._add_index(step.results))
        contiguous = not inside and bool((np.diff(step.results) == 1).all())
        table.result_first.append(int(step.results[0]) if contiguous else -1)

    def _join_sums(self, step: Step) -> None:
        table = self.row_table
        assert step.ends is not None
        assert step.factors is not None
        table.first_of_entries.append(len(table.code))
        table.t_slot.append(-1)
        table.result_slot.append(0)
        self._join_load(0, step.loads[0], always=True)
        table.sum_start.append(sum(map(len, table.sum_end)))
        table.sum_end.append(step.ends)
        self._join_entry(step, 0, 0)
        place = self.factor_places[id(step), 0]
        table.factors.append((place, step.factors))

    def _join_template(self, step: Step, slots: int) -> None:
        table, plan = self.row_table, step.schedule
        assert plan is not None
        constants, loads = plan.n_constants, len(step.loads)
        table.slots.extend(plan.slots.tolist())
        table.t_slot.append(slots + constants if plan.takes_t else -1)
        table.sum_start.append(0)
        for k, source in enumerate(step.loads):
            self._join_load(slots + constants + 1 + k, source)
        for k, source in enumerate(step.numbers):
            slot = slots + constants + 1 + 2 * loads + k
            if source.dtype == np.float64:
                self.numbers.append(source)
                places = self.memory_size + np.arange(len(source))
                self.memory_size += len(source)
                self._join_load(slot, places)
            else:
                self._join_load(slot, source)
        pieces = sum(map(len, table.pieces))
        table.pieces.append(plan.tables)
        code = np.repeat(plan.run_op, np.diff(plan.run_start))
        count = len(code)
        numbered = np.isin(code, (op.POWI, op.SPECIAL, op.TABLE))
        b = np.where(numbered, plan.b + np.where(code == op.TABLE, pieces, 0), plan.b + slots)
        before = len(table.code)
        split = int(plan.run_start[plan.segment_start[3]])
        table.first_of_entries.append(before + split)
        table.code.extend(code.tolist())
        table.to.extend((slots + plan.base + np.arange(count)).tolist())
        table.a.extend((plan.a + slots).tolist())
        table.b.extend(b.tolist())
        # where there is no such operand, some slot
        table.second.extend(np.where(numbered | (plan.b < 0), slots, plan.b + slots).tolist())
        table.c.extend((np.maximum(plan.c, 0) + slots).tolist())
        table.result_slot.append(slots + int(plan.values[0]))
        for k, slot in enumerate(plan.entries):
            self._join_entry(step, k, slots + int(slot))

    def _join_load(self, slot: int, source: np.ndarray, always: bool = False) -> None:
        """Say where an input is: in which of the vectors, and at which places there.

        Of blocks whose places lie side by side the first is enough.
        """
        table = self.row_table
        table.load_slot.append(slot)
        low, high = int(source.min(initial=self.size)), int(source.max(initial=0))
        of = 0 if high < self.n else 1 if self.n <= low and high < 2 * self.n else 2
        if of == 1:
            source = source - self.n
        table.copies_point |= of == 2 and low <= 2 * self.n
        table.load_of.append(of)
        if len(source) > 1 and low == high:                    # the same for all rows
            table.load_blocks.append(int(source[0]))
            table.load_table.append(self._add_index(source) if always else -2)
            return
        first = source[::BLOCK].astype(np.intc)
        jumps = np.diff(source) != 1
        inside = np.arange(1, len(source)) % BLOCK != 0        # others are between two blocks
        broken = np.unique((np.flatnonzero(jumps & inside) + 1) // BLOCK)
        first[broken] = -1
        table.load_blocks.append(self._add_index(first))
        table.load_table.append(self._add_index(source) if always or len(broken) else -1)

    def _join_entry(self, step: Step, k: int, slot: int) -> None:
        kind, places = self.kinds[id(step), k]
        table = self.row_table
        table.entry_slot.append(slot)
        table.entry_kind.append(kind)
        place = self.factor_places[id(step), k] if kind == 2 else self._add_index(places)
        table.entry_table.append(place)

    def _finish(self) -> None:
        table = self.row_table
        if max(self.index_size, self.memory_size, self.factor_size) >= 2**31:
            refuse("has tables that are too long to be counted")
        table.index = np.concatenate([np.zeros(0, np.intc), *table.index])
        table.sum_end = np.concatenate([np.zeros(0, np.intc), *table.sum_end])
        table.pieces = np.concatenate([np.zeros(1), *table.pieces])[1:] if any(
            map(len, table.pieces)
        ) else np.zeros(1)
        self._find_first_writers()
        memory = np.zeros(max(self.memory_size, 1))
        if self.numbers:
            joined = np.concatenate(self.numbers)
            memory[self.memory_size - len(joined) : self.memory_size] = joined
        table.memory = memory
        table.slots = np.array(table.slots if len(table.slots) else [0.0])
        factors = np.zeros(max(self.factor_size, 1))
        for place, values in table.factors:
            factors[place : place + len(values)] = values
        table.factors = factors
        joined_products = [np.concatenate([np.zeros(0, np.int64), *x]) for x in zip(
            *self.listed, strict=True)] if self.listed else [np.zeros(0, np.int64)] * 3
        table.target, table.factor, table.through = joined_products

    def _find_first_writers(self) -> None:
        """Find out which entries are written before anything is added to them.

        The rest are zero at first: those that are sums of products, or of several entries. Where
        entries are results of their own there are none of either kind.
        """
        table = self.row_table
        written, begun = (
            (np.zeros(len(table.fy[0]), bool), np.zeros(len(table.fyp[0]), bool)) for _ in range(2)
        )
        for step in range(len(table.count)):
            for k in range(table.entry_start[step], table.entry_start[step + 1]):
                kind, first = table.entry_kind[k], table.entry_table[k]
                if kind not in (TO_FY, TO_FYP):
                    table.entry_sets.append(0)
                    continue
                places = table.index[first : first + table.count[step]]
                is_first = not begun[kind][places].any() and _are_distinct(
                    places, len(begun[kind])
                )
                table.entry_sets.append(int(is_first))
                begun[kind][places] = True
                if is_first:
                    written[kind][places] = True
        table.added = tuple(np.flatnonzero(~marks).astype(np.intc) for marks in written)
