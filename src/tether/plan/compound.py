"""The sparse compound system of HK for the projection onto many constraints."""

from __future__ import annotations

import numpy as np

from tether._core.sparse import Sparse
from tether._core.state import State
from tether.base.pattern import Pattern

__all__ = ["CompoundSystem"]

# Rows are dependent if the smallest pivot is below this share of the largest; rows of A have
# length 1.
DEPENDENT_PIVOT = 1e-13
# Share of nonzero entries up to which sparse factors pay.
SPARSE_SHARE = 0.2
# Where rows are dependent: e, as a share of the squared length of the rows.
REGULARISATION = 1e-10


class CompoundSystem:
    """Least-norm solutions of A u = g from [A e; -I A^T] [u; v] = [g; 0].

    A = C W^p with rows divided by their lengths, and e is zero. If rows are dependent and no other
    solver takes over, e is tiny instead: all rows then meet g up to round-off, if that is possible
    at all. The pattern of C is known, or consists of the entries seen so far, and the factors are
    renewed on it.

    Parameters
    ----------
    may_give_up : bool
        Whether another solver takes over where A is full or has dependent rows.
    """

    def __init__(self, may_give_up: bool = False) -> None:
        self.may_give_up = may_give_up
        self.places = np.zeros(0, int)         # of the nonzero entries of C, row by row
        self.matrix: Sparse | None = None

    def factor(self, state: State) -> bool:
        """Factor with the current derivatives; False if A is full or has dependent rows."""
        m = state.n_constraints
        values = self._values(state)
        if values is None:
            return False
        assert self.matrix is not None
        values = values * state.array("scaling")[self.columns]
        self.lengths = np.sqrt(np.bincount(self.rows, values * values, m))
        if not state.gy_sparse and not self.lengths.all():
            return False
        self.lengths[self.lengths == 0.0] = 1.0
        values /= self.lengths[self.rows]
        state.rank = m
        if self._is_factored(values, 0.0):
            return True
        if self.may_give_up or not state.gy_sparse:
            return False
        state.rank = m - 1                     # or less
        return self._is_factored(values, REGULARISATION)

    def _values(self, state: State) -> np.ndarray | None:
        """Return the entries of C and make room for them; None if there are too many."""
        if state.gy_sparse:
            rows, columns = state.array("slope_rows"), state.array("slope_columns")
            if self.matrix is None or len(rows) != len(self.rows):
                self._open(rows, columns, state.n, state.n_constraints)
            return state.array("gy")
        slopes = state.constraint_slopes.reshape(-1)
        if self.may_give_up and np.count_nonzero(slopes) > SPARSE_SHARE * len(slopes):
            return None
        if self.matrix is None or np.count_nonzero(slopes[self.places]) != np.count_nonzero(slopes):
            self.places = np.union1d(self.places, np.flatnonzero(slopes))
            self._open(*np.divmod(self.places, state.n), state.n, state.n_constraints)
        return slopes[self.places]

    def _is_factored(self, values: np.ndarray, slack: float) -> bool:
        """Factor the compound matrix; tell whether that worked and its rows are independent."""
        assert self.matrix is not None
        entries = np.full(self.matrix.room, -1.0)
        entries[self.upper] = entries[self.lower] = values
        entries[self.corner] = slack
        factors = self.matrix.open_factors()
        if not factors.take(entries):
            return False
        return slack > 0.0 or bool(1.0 / factors.pivot_range > DEPENDENT_PIVOT)

    def _open(self, rows: np.ndarray, columns: np.ndarray, n: int, m: int) -> None:
        """Make the compound matrix for a pattern of C."""
        self.rows, self.columns = rows, columns
        unit, row = np.arange(n), np.arange(m)
        pattern = Pattern(
            n + m, (rows, columns), (m + columns, n + rows), (m + unit, unit), (row, n + row)
        )
        self.matrix = Sparse(pattern)
        self.upper = pattern.positions(rows, columns)
        self.lower = pattern.positions(m + columns, n + rows)
        self.corner = pattern.positions(row, n + row)

    def solve(self, state: State) -> None:
        """Fill the state's shift with dy = W^p u."""
        assert self.matrix is not None
        n = state.n
        rhs = np.concatenate([state.array("g") / self.lengths, np.zeros(n)])
        state.array("shift")[:] = state.array("scaling") * self.matrix.solution(rhs)[:n]
