"""The pattern of a sparse matrix, and the order in which it is best eliminated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

__all__ = ["Band", "Pattern"]

# Diagonals up to which loops over a band beat LAPACK, which works on blocks of columns.
NARROW = 32
# A band counts as full with at most so many times as many places as entries.
BAND = 1.2

Numbers = Sequence[int] | np.ndarray
Places = tuple[Numbers, Numbers]


@dataclass(frozen=True)
class Band:
    """An order of rows and columns, and how many diagonals then hold all entries."""

    rows: np.ndarray
    columns: np.ndarray
    below: int
    above: int

    @property
    def width(self) -> int:
        """Number of diagonals."""
        return self.below + 1 + self.above

    @property
    def is_three(self) -> bool:
        """Whether three diagonals are enough."""
        return self.below <= 1 and self.above <= 1

    @property
    def is_narrow(self) -> bool:
        """Whether calling BLAS for each column would cost more than the work on it."""
        return self.width <= NARROW


@dataclass(frozen=True)
class Three:
    """Positions in the diagonals above, on and below the main one, and the order of the rows."""

    places: np.ndarray
    rows: np.ndarray
    columns: np.ndarray
    in_order: bool


class Pattern:
    """Positions of the entries of an n-by-n matrix, column by column.

    Parameters
    ----------
    n : int
        Size.
    *places : pair of sequences
        Rows and columns of entries; those of all pairs together are the pattern.

    Attributes
    ----------
    start, row : ndarray of C integers
        The entries of column j are in ``row[start[j]:start[j + 1]]``, in ascending order.
    way : str or None
        Which factors cost least, once that is known: "dense", "sparse", "band", ...
    groups : tuple of int and ndarray, or None
        How many groups of columns share no row, and the group of each column, once known.
    is_levelled : bool
        Whether `order_by_levels` of the sparse factors has been applied to the order of
        elimination.
    given : dict
        For the user's F_y and F_y': starts of the columns, rows, and positions of the entries.

    Examples
    --------
    >>> from tether.base.pattern import Pattern
    >>> pattern = Pattern(2, ([0, 1], [0, 1]), ([0], [1]))
    >>> pattern.size
    3
    >>> pattern.positions([1, 0], [1, 1])
    array([2, 1], dtype=int32)
    """

    def __init__(self, n: int, *places: Places) -> None:
        self.n = n
        self.way: str | None = None
        self.groups: tuple[int, np.ndarray] | None = None
        self.is_levelled = False
        self.given: dict[int, tuple[np.ndarray, np.ndarray, np.ndarray]] = {}
        keys = np.concatenate([np.zeros(0, np.int64), *(_keys(n, *pair) for pair in places)])
        keys.sort()
        self._keys = keys[np.append(True, keys[1:] != keys[:-1])] if len(keys) else keys
        self.row = (self._keys % n).astype(np.intc)
        self.start = np.searchsorted(self._keys, np.arange(n + 1) * np.int64(n)).astype(np.intc)

    @property
    def size(self) -> int:
        """Number of entries."""
        return len(self.row)

    @property
    def columns(self) -> np.ndarray:
        """Column of each entry."""
        return np.repeat(np.arange(self.n, dtype=np.intc), np.diff(self.start))

    def positions(self, rows: Numbers, columns: Numbers) -> np.ndarray:
        """Return the positions of entries in the list of all; -1 for one outside the pattern."""
        wanted = _keys(self.n, rows, columns)
        found = np.searchsorted(self._keys, wanted)
        inside = self._keys[np.minimum(found, self.size - 1)] == wanted if self.size else False
        return np.where(inside, found, -1).astype(np.intc)

    @cached_property
    def by_rows(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return where rows begin in a list of entries by rows, and their indices and columns."""
        order = np.argsort(self.row, kind="stable").astype(np.intc)
        start = np.searchsorted(self.row[order], np.arange(self.n + 1)).astype(np.intc)
        return start, order, self.columns[order]

    def matrix(self, values: np.ndarray) -> Any:
        """Make a SciPy matrix with these values on the pattern."""
        from scipy.sparse import csc_array  # late, to save time

        return csc_array((values, self.row, self.start), shape=(self.n, self.n))

    @cached_property
    def matching(self) -> np.ndarray:
        """A different row for every column that has an entry in it; -1 if there is none left.

        It is the diagonal, if that has all of its entries.
        """
        if np.count_nonzero(self.row == self.columns) == self.n:
            return np.arange(self.n, dtype=np.intc)
        from scipy.sparse.csgraph import maximum_bipartite_matching

        found = maximum_bipartite_matching(self.matrix(np.ones(self.size)).tocsr(), "row")
        return np.asarray(found, np.intc)

    @property
    def _is_full_band(self) -> bool:
        """Whether hardly any entry is missing between the outermost diagonals."""
        if not self.size:
            return False
        diagonal = np.count_nonzero(self.row == self.columns)
        return bool(diagonal == self.n and self.n * self._natural.width <= BAND * self.size)

    @property
    def _natural(self) -> Band:
        """The band in the original order of the matrix."""
        return self._in_order(np.arange(self.n), np.arange(self.n))

    def _in_order(self, rows: np.ndarray, columns: np.ndarray) -> Band:
        place, across = np.empty((2, self.n), np.int64)
        place[rows] = across[columns] = np.arange(self.n)
        offset = np.append(place[self.row] - across[self.columns], 0)
        return Band(rows, columns, int(offset.max()), int(-offset.min()))

    @cached_property
    def band(self) -> Band:
        """The narrowest band found: in the original order, or by the reverse Cuthill-McKee order.

        The latter is applied after rows and columns are matched, so that no diagonal entry is
        missing.
        """
        natural = self._natural
        if not self.size or self._is_full_band:
            return natural
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import reverse_cuthill_mckee

        row_of = self.matching
        if np.any(row_of < 0):
            return natural
        column_of = np.empty(self.n, np.intc)
        column_of[row_of] = np.arange(self.n)
        ones = np.ones(self.size)
        graph = csr_array((ones, (column_of[self.row], self.columns)), shape=(self.n, self.n))
        columns = reverse_cuthill_mckee((graph + graph.T).tocsr(), symmetric_mode=True)
        found = self._in_order(row_of[columns], columns)
        return found if found.width < natural.width else natural

    @cached_property
    def three(self) -> Three:
        """Positions of the entries in three consecutive diagonals, if the band is so narrow."""
        band = self.band
        place, across = np.empty((2, self.n), np.int64)
        place[band.rows] = across[band.columns] = np.arange(self.n)
        i, j = place[self.row], across[self.columns]
        places = ((i - j + 1) * self.n + np.minimum(i, j)).astype(np.intc)
        in_order = np.arange(self.n)
        natural = np.array_equal(band.rows, in_order) and np.array_equal(band.columns, in_order)
        return Three(places, band.rows.astype(np.intc), band.columns.astype(np.intc), natural)

    @cached_property
    def elimination(self) -> tuple[np.ndarray, np.ndarray]:
        """Columns in the order in which they are eliminated, and the preferred row for each.

        Rows and columns are matched so that no diagonal entry is missing, and permuted to block
        triangular form; within the blocks the order is that of minimum degree, which keeps the
        factors sparse. Columns that cannot be matched come last, without a row: the matrix is
        singular whatever its values. A full band keeps its order: nothing is sparser, and memory is
        read sequentially.
        """
        if self._is_full_band:
            return np.arange(self.n, dtype=np.intc), np.arange(self.n, dtype=np.intc)
        from scipy.sparse import csc_array, csr_array  # late, to save time
        from scipy.sparse.csgraph import connected_components

        n = self.n
        preferred = row_of = self.matching
        free = np.setdiff1d(np.arange(n), row_of)
        row_of = row_of.copy()
        row_of[row_of < 0] = free
        column_of = np.empty(n, np.intc)
        column_of[row_of] = np.arange(n)
        i, j = column_of[self.row], self.columns
        # an entry (i, j) means that column i must be eliminated before column j, or with it
        graph = csr_array((np.ones(self.size), (i, j)), shape=(n, n))
        count, block = connected_components(graph, connection="strong")
        inside = block[i] == block[j]
        ones = np.ones(np.count_nonzero(inside))
        order = _minimum_degree(csc_array((ones, (i[inside], j[inside])), shape=(n, n)))
        if count > 1:
            rank = _topological(count, block[i[~inside]], block[j[~inside]])
            order = order[np.argsort(rank[block[order]], kind="stable")]
        return order.astype(np.intc), preferred


    @property
    def regular_values(self) -> np.ndarray:
        """Values for which every pivot is the one that `elimination` prefers, if there is one."""
        return np.where(self.row == self.elimination[1][self.columns], 1.0, 0.1 / self.n)


def _keys(n: int, rows: Numbers, columns: Numbers) -> np.ndarray:
    return np.asarray(columns, np.int64) * n + np.asarray(rows, np.int64)


def _minimum_degree(matrix: Any) -> np.ndarray:
    """Return the order of columns by minimum degree on the pattern of A + A^T.

    SuperLU provides it only as part of a factorisation; an incomplete one that drops as much as
    possible costs least.
    """
    from scipy.sparse import eye_array
    from scipy.sparse.linalg import spilu

    n = matrix.shape[0]
    if n < 3:
        return np.arange(n)
    weighted = (matrix * (0.5 / n) + eye_array(n)).tocsc()     # dominated by its diagonal
    factors = spilu(
        weighted, drop_tol=0.9, fill_factor=1.0, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0
    )
    return np.argsort(factors.perm_c)


def _topological(count: int, before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Rank blocks so that `before[k]` comes before `after[k]`."""
    order = np.argsort(before, kind="stable")
    first = np.searchsorted(before[order], np.arange(count + 1))
    followers = after[order]
    waits = np.bincount(after, minlength=count)
    ready = list(np.flatnonzero(waits == 0))
    rank = np.zeros(count, int)
    for number in range(count):
        block = ready.pop()
        rank[block] = number
        for k in followers[first[block]:first[block + 1]]:
            waits[k] -= 1
            if waits[k] == 0:
                ready.append(k)
    return rank
