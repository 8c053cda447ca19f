"""Record: the arrays a run writes into, grown by doubling."""

from __future__ import annotations

import numpy as np

from tether._core.constraints import constraints_at
from tether._core.state import State

FIRST_CAPACITY = 256


class Record:
    """Rows of t, y, y' and order for every step, and of y, y' for the output times."""

    def __init__(self, state: State, keep_steps: bool, t_eval: np.ndarray | None) -> None:
        self._state = state
        self.keep_steps = keep_steps
        self.t_eval = t_eval
        n = state.n
        if keep_steps:
            self.t, self.k = np.empty(FIRST_CAPACITY), np.empty(FIRST_CAPACITY, np.intc)
            self.y, self.yp = np.empty((2, FIRST_CAPACITY, n))
            self.g = np.zeros((FIRST_CAPACITY, state.n_constraints))
            self._hand_over()
        if t_eval is not None:
            self.y_eval, self.yp_eval = np.empty((2, len(t_eval), n))
            if len(t_eval):
                state.evaluate_at(t_eval, self.y_eval.ravel(), self.yp_eval.ravel())

    def reserve(self, rows: int) -> None:
        """Make sure that `rows` more steps fit."""
        if not self.keep_steps or self._state.stored + rows <= len(self.t):
            return
        used = self._state.stored
        for name in ("t", "k", "y", "yp", "g"):
            old = getattr(self, name)
            new = np.empty((2 * len(old), *old.shape[1:]), old.dtype)
            new[:used] = old[:used]
            setattr(self, name, new)
        self._hand_over()

    def _hand_over(self) -> None:
        self._state.keep_steps_in(
            self.t, self.y.ravel(), self.yp.ravel(), self.k, self.g.ravel()
        )

    def append(self, t: float, y: np.ndarray, yp: np.ndarray, k: int) -> None:
        """Add a row by hand: the point where an event cut a step, or a new start."""
        if not self.keep_steps:
            return
        self.reserve(1)
        row = self._state.stored
        if self._state.n_constraints:
            self.g[row] = constraints_at(self._state, t, y)[1]
        self.t[row], self.y[row], self.yp[row], self.k[row] = t, y, yp, k
        self._state.stored = row + 1

    def steps(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return t, y, y', k of the steps kept so far, one row per step."""
        used = self._state.stored
        return self.t[:used], self.y[:used], self.yp[:used], self.k[:used]

    def drift(self) -> np.ndarray | None:
        """Return the constraints' residual at what `solve_dae` returns, one row per constraint."""
        if self._state.n_constraints == 0:
            return None
        if self.t_eval is None:
            return self.g[: self._state.stored].T
        t, y, _ = self.outputs()
        rows = [constraints_at(self._state, *point)[1] for point in zip(t, y, strict=True)]
        return np.array(rows).reshape(len(rows), self._state.n_constraints).T

    def outputs(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return t, y, y' at the output times reached so far."""
        done = self._state.next_eval
        assert self.t_eval is not None
        return self.t_eval[:done], self.y_eval[:done], self.yp_eval[:done]
