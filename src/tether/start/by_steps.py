"""Consistent y and y' of a system of index 0 or 1 without matrices: by short steps.

A step of the implicit Euler method from w,  F(t, u, (u - w) / h) = 0,  determines all of u and need
not know which unknowns are algebraic: their part of w does not matter. w is moved until the
differential part of u is the given one. The slopes of the algebraic part come from another step.
"""

from __future__ import annotations

import numpy as np

from tether._core import probe
from tether._core.adapters import raise_user_error
from tether._core.matrix_free import increment_at, sizes_of_equations
from tether._core.state import State
from tether.base.reason import Kind, Reason, Row
from tether.structure.start import Start, changed_values

__all__ = ["consistent_by_steps"]

# Length of a step, as a share of the time over which the residual may change.
STEP_SHARE = 1e-3
MOST_ITERATIONS, MOST_HALVINGS, MOST_MOVES = 20, 10, 8
# In tolerances: increments that end an iteration, changes of u that end the moves of w, and
# changes of the given values that count as none.
CONVERGED, SETTLED, NEGLIGIBLE = 1e-6, 1e-4, 1e-2


def consistent_by_steps(
    state: State, t: float, y: np.ndarray, yp: np.ndarray | None, scale: float, known: bool
) -> Start:
    """Find consistent values near the given ones; keep them untouched if they already are.

    Parameters
    ----------
    state : State
        A state whose matrix is `MatrixFree`.
    t, y, yp : float, ndarray, ndarray or None
        The given values.
    scale : float
        Time over which the residual may change.
    known : bool
        Whether `yp` is more than a guess.
    """
    slopes = np.zeros_like(y) if yp is None else yp
    if probe.move_to(state, t, y, slopes) != 0:
        return Start(y, slopes, True, Reason(Kind.NOT_CHECKED))
    search = _Steps(state, state.direction * STEP_SHARE * scale)
    state.h = state.direction * scale
    r = search.residual(t, y, slopes)
    if r is None:
        return Start(y, slopes, False, Reason(Kind.NOT_FINITE))
    before = float(np.abs(r).max())
    if known:
        change = search.increment(t, y, slopes, r, 1.0 / state.h, fresh=True)
        if change is not None and search.size(change) <= NEGLIGIBLE:
            return Start(y, slopes, True, Reason(Kind.AS_GIVEN), residual=(before, before))
    found = search.settle(t, y, slopes)
    if found is None:
        r = search.residual(t, y, slopes)
        assert r is not None
        worst = int(np.argmax(np.abs(r) / sizes_of_equations(state)))
        reason = Reason(Kind.LEFT_OVER, (Row(worst),), values=(float(r[worst]),))
        return Start(y, slopes, False, reason, residual=(before, before))
    settled, slopes = found
    settled = np.where(np.abs(settled - y) * state.weights <= NEGLIGIBLE, y, settled)
    r = search.residual(t, settled, slopes)
    after = before if r is None else float(np.abs(r).max())
    moved = changed_values(settled, y, state.tolerances)
    reason = Reason(Kind.FOUND_SLOPES)
    if moved:
        reason = Reason(Kind.CHANGED_ALGEBRAIC, values=(len(moved),))
    return Start(settled, slopes, True, reason, moved=moved, residual=(before, after))


class _Steps:
    """Steps of implicit Euler, all of one length."""

    def __init__(self, state: State, h: float) -> None:
        self.state, self.h = state, h

    def residual(self, t: float, y: np.ndarray, yp: np.ndarray) -> np.ndarray | None:
        status, r = probe.residual_at(self.state, t, y, yp)
        raise_user_error(self.state)
        return r if status == 0 else None

    def increment(
        self, t: float, y: np.ndarray, yp: np.ndarray, r: np.ndarray, c: float, fresh: bool = False
    ) -> np.ndarray | None:
        found = increment_at(self.state, t, y, yp, r, c, fresh)
        raise_user_error(self.state)
        return found

    def size(self, change: np.ndarray) -> float:
        """Largest component in tolerances."""
        return float((np.abs(change) * self.state.weights).max())

    def step(self, t: float, w: np.ndarray, u: np.ndarray) -> np.ndarray | None:
        """Solve F(t, u, (u - w) / h) = 0, from a guess of u."""
        c = 1.0 / self.h
        r = self.residual(t, u, c * (u - w))
        for iteration in range(MOST_ITERATIONS):
            if r is None:
                return None
            change = self.increment(t, u, c * (u - w), r, c, fresh=iteration == 0)
            if change is None:
                return None
            u, r = self._damped(t, w, u, r, change)
            if self.size(change) <= CONVERGED:
                return u
        return None

    def _damped(
        self, t: float, w: np.ndarray, u: np.ndarray, r: np.ndarray, change: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Shorten an increment until it improves the equations or is as good as none."""
        rows, length = sizes_of_equations(self.state), 1.0
        for _ in range(MOST_HALVINGS):
            there = u + length * change
            r_there = self.residual(t, there, (there - w) / self.h)
            if r_there is not None and (
                np.linalg.norm(r_there / rows) < np.linalg.norm(r / rows)
                or self.size(length * change) <= SETTLED
            ):
                return there, r_there
            length /= 2.0
        return there, r_there

    def settle(
        self, t: float, y: np.ndarray, yp: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Find u with the differential part of y, and its slopes."""
        w, u, last = y - self.h * yp, y, y
        for attempt in range(MOST_MOVES):
            found = self.step(t, w, u)
            if found is None:
                return None
            last, u = u, found
            if attempt and self.size(u - last) <= SETTLED:
                break
            w = w + (y - u)
        later = self.step(t + self.h, u, u + (u - last))
        if later is None:
            return None
        slopes = (later - u) / self.h
        for _ in range(2):                     # slopes of the differential part are corrected to t
            r = self.residual(t, u, slopes)
            change = None if r is None else self.increment(t, u, slopes, r, 1.0 / self.h)
            if change is None:
                return None
            slopes = slopes + change / self.h
        return u, slopes
