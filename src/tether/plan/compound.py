"""The sparse compound system of HK for the projection onto many constraints."""

from __future__ import annotations

import numpy as np

from tether._core.state import State


class CompoundSystem:
    """Least-norm solutions of A u = g from [A 0; -I A^T] [u; v] = [g; 0], A of full row rank."""

    def factor(self, state: State) -> bool:
        """Factor for A = C W^p; False if A has dependent rows."""
        from scipy import sparse
        from scipy.sparse.linalg import splu

        n = state.n
        scaling = state.array("scaling")
        A = sparse.csr_array(state.constraint_slopes) @ sparse.diags_array(scaling)
        self.rows = np.sqrt((A * A).sum(axis=1))
        if not np.all(self.rows > 0):
            return False
        A = sparse.diags_array(1.0 / self.rows) @ A
        compound = sparse.block_array([[A, None], [-sparse.eye_array(n), A.T]], format="csc")
        try:
            self.factors = splu(compound)
        except RuntimeError:
            return False
        pivots = np.abs(self.factors.U.diagonal())
        return bool(pivots.min() > 1e-13 * pivots.max())

    def solve(self, state: State) -> None:
        """Fill the state's shift with dy = W^p u."""
        n = state.n
        rhs = np.concatenate([state.array("g") / self.rows, np.zeros(n)])
        state.array("shift")[:] = state.array("scaling") * self.factors.solve(rhs)[:n]
