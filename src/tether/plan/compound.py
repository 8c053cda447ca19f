"""The sparse compound system of HK for the projection onto many constraints."""

from __future__ import annotations

import numpy as np

from tether._core.sparse import Sparse
from tether._core.state import State
from tether.base.pattern import Pattern

__all__ = ["CompoundSystem"]

# Of the largest pivot, rows of A being of length 1: less is left of rows that depend on others.
DEPENDENT = 1e-13
# Share of entries up to which leaving out zeros pays.
SPARSE = 0.2


class CompoundSystem:
    """Least-norm solutions of A u = g from [A 0; -I A^T] [u; v] = [g; 0], A of full row rank.

    A = C W^p with rows divided by their lengths. The pattern of C is what has been seen of it, and
    the factors are renewed on it.

    Parameters
    ----------
    may_give_up : bool
        Whether another solver takes over where A is full or has dependent rows.
    """

    def __init__(self, may_give_up: bool = False) -> None:
        self.may_give_up = may_give_up
        self.places = np.zeros(0, int)         # of the entries of C that are not zero, by rows
        self.matrix: Sparse | None = None

    def factor(self, state: State) -> bool:
        """Factor at the present derivatives; False if A has dependent rows."""
        n, m = state.n, state.n_constraints
        slopes = state.constraint_slopes.reshape(-1)
        values = slopes[self.places]
        if self.may_give_up and np.count_nonzero(slopes) > SPARSE * len(slopes):
            return False
        if self.matrix is None or np.count_nonzero(values) != np.count_nonzero(slopes):
            self._open(np.union1d(self.places, np.flatnonzero(slopes)), n, m)
            values = slopes[self.places]
        assert self.matrix is not None
        values = values * state.array("scaling")[self.columns]
        self.lengths = np.sqrt(np.bincount(self.rows, values * values, m))
        if not self.lengths.all():
            return False
        values /= self.lengths[self.rows]
        entries = np.full(self.matrix.room, -1.0)
        entries[self.upper] = entries[self.lower] = values
        factors = self.matrix.open_factors()
        if not factors.take(entries):
            return False
        state.rank = m
        return bool(1.0 / factors.pivot_range > DEPENDENT)

    def _open(self, places: np.ndarray, n: int, m: int) -> None:
        """Make the compound matrix for a pattern of C."""
        self.places = places
        self.rows, self.columns = np.divmod(places, n)
        unit = np.arange(n)
        pattern = Pattern(
            n + m, (self.rows, self.columns), (m + self.columns, n + self.rows), (m + unit, unit)
        )
        self.matrix = Sparse(pattern)
        self.upper = pattern.positions(self.rows, self.columns)
        self.lower = pattern.positions(m + self.columns, n + self.rows)

    def solve(self, state: State) -> None:
        """Fill the state's shift with dy = W^p u."""
        assert self.matrix is not None
        n = state.n
        rhs = np.concatenate([state.array("g") / self.lengths, np.zeros(n)])
        state.array("shift")[:] = state.array("scaling") * self.matrix.solution(rhs)[:n]
