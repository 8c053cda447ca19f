"""Consistent y and y' for a system of index 0 or 1.

The unknowns split by the null space of F_y': what y' determines (differential) keeps its
y and gets a new y'; what y' does not see (algebraic) gets a new y. With R a basis of the
complement and N a basis of the null space, math (15),

    F(t, y + N b, y' + R a) = 0   for (a, b),    B = [F_y' R, F_y N],

and B is invertible exactly when the index is at most 1. The slopes of the algebraic part
follow from d/dt F = 0 with the same matrix, math (16) (HK Appendix II, eq. 21-23).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tether._core import probe
from tether._core.state import State

__all__ = ["Start", "make_consistent"]

MAX_ITERATIONS = 30
MAX_HALVINGS = 12
SMALLEST_RCOND = 1e-14
# Of the tolerance: a start whose correction is below this is consistent as it was given.
NEGLIGIBLE = 1e-2
# Relative: Newton's increments below this are round-off.
CONVERGED = 1e-10


@dataclass(frozen=True)
class Start:
    """Starting values and what was changed to get them.

    Attributes
    ----------
    y, yp : ndarray
        The values the integration starts from.
    success : bool
        Whether they are consistent.
    message : str
        What was done, in words.
    moved : dict
        Change of every component of y that was changed, by index.
    residual : tuple of float
        Largest absolute residual before and after.
    ypp : ndarray or None
        Second derivative of the differential part, where it could be found.
    """

    y: np.ndarray
    yp: np.ndarray
    success: bool
    message: str
    moved: dict[int, float] = field(default_factory=dict)
    residual: tuple[float, float] = (0.0, 0.0)
    ypp: np.ndarray | None = field(default=None, repr=False)


def make_consistent(state: State, t: float, y: np.ndarray, yp: np.ndarray | None) -> Start:
    """Find consistent values near the given ones; keep them untouched if they already are."""
    y_given, yp_given = y, yp
    y = y.copy()
    yp = np.zeros_like(y) if yp is None else yp.copy()
    state.h = state.direction * _time_scale(state, t)
    if probe.move_to(state, t, y, yp) != 0:
        return Start(y, yp, True, "not checked: a tolerance is zero")
    status, r = probe.residual_at(state, t, y, yp)
    _raise_users(state)
    if status != 0:
        return Start(y, yp, False, "the residual at the starting values is not finite")
    before = float(np.max(np.abs(r)))

    for iteration in range(MAX_ITERATIONS):
        split = _Split.at(state, t, y, yp)
        if split is None:
            return _judge_unsplit(state, y, yp, r, before, yp_given is not None)
        dy, dyp = split.solve(-r)
        if iteration == 0 and yp_given is not None and _negligible(state, y, dy, dyp):
            ypp = split.slopes(state, t, y, yp)[1]
            return Start(y_given, yp_given, True, "consistent as given", {}, (before, before), ypp)
        y, yp, r, moved_on = _damped(state, t, y, yp, r, dy, dyp)
        if _small(state, y, yp, dy, dyp) or (not moved_on and _negligible(state, y, dy, dyp)):
            break
        if not moved_on:
            return Start(y, yp, False, _worst_equation(r), _moved(y_given, y),
                         (before, float(np.max(np.abs(r)))))
    else:
        return Start(y, yp, False, _worst_equation(r), _moved(y_given, y),
                     (before, float(np.max(np.abs(r)))))

    yp, ypp = split.slopes(state, t, y, yp)
    after = float(np.max(np.abs(r)))
    moved = _moved(y_given, y)
    message = f"changed {len(moved)} algebraic values and y'" if moved else "found y'"
    return Start(y, yp, True, message, moved, (before, after), ypp)


class _Split:
    """The matrix B = [F_y' R, F_y N], factored, with the bases R and N."""

    def __init__(self, fy: np.ndarray, fyp: np.ndarray, R: np.ndarray, N: np.ndarray) -> None:
        from scipy.linalg import lapack

        self.fy, self.R, self.N = fy, R, N
        B = np.hstack([fyp @ R, fy @ N])
        rows = np.abs(B).max(axis=1)
        self.row_scale = 1.0 / np.where(rows > 0, rows, 1.0)
        B *= self.row_scale[:, None]
        columns = np.abs(B).max(axis=0)
        self.column_scale = 1.0 / np.where(columns > 0, columns, 1.0)
        B *= self.column_scale
        self._lapack = lapack
        self.lu, self.pivot, info = lapack.dgetrf(B)
        rcond = 0.0 if info else lapack.dgecon(self.lu, np.abs(B).sum(axis=0).max())[0]
        self.regular = rcond > SMALLEST_RCOND

    @classmethod
    def at(cls, state: State, t: float, y: np.ndarray, yp: np.ndarray) -> _Split | None:
        """Split at a point; None where B is singular, so that the index is above 1."""
        status, fy, fyp = probe.jacobian_at(state, t, y, yp)
        _raise_users(state)
        if status != 0 or not (np.all(np.isfinite(fy)) and np.all(np.isfinite(fyp))):
            return None
        for bases in (_bases_by_columns, _bases_by_svd):
            split = cls(fy, fyp, *bases(fyp))
            if split.regular:
                return split
        return None

    def solve(self, rhs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return (dy, dyp) with F_y dy + F_y' dyp = rhs, dy in the null space of F_y'."""
        x = self._lapack.dgetrs(self.lu, self.pivot, rhs * self.row_scale)[0] * self.column_scale
        rank = self.R.shape[1]
        return self.N @ x[rank:], self.R @ x[:rank]

    def slopes(
        self, state: State, t: float, y: np.ndarray, yp: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Solve F_t + F_y y' + F_y' y'' = 0 for what F does not fix: y' of the algebraic part.

        Return y' with that part in place, and y'' of the differential part, which comes with it.
        """
        if self.N.shape[1]:
            yp = yp - self.N @ np.linalg.lstsq(self.N, yp, rcond=None)[0]
        dt = np.sqrt(np.finfo(float).eps) * max(abs(t), abs(state.h)) * state.direction
        status, ahead = probe.residual_at(state, t + dt, y, yp)
        _raise_users(state)
        status_here, here = probe.residual_at(state, t, y, yp)
        if status != 0 or status_here != 0:
            return yp, None
        algebraic, ypp = self.solve(-((ahead - here) / dt + self.fy @ yp))
        return yp + algebraic, ypp


def _bases_by_columns(fyp: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Unknowns whose derivative appears nowhere are algebraic, the others differential."""
    size = np.abs(fyp).max(axis=0)
    absent = size <= 1e-14 * size.max(initial=0.0)
    identity = np.eye(len(fyp))
    return identity[:, ~absent], identity[:, absent]


def _bases_by_svd(fyp: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Directions of y' that F does not see, from the singular values of F_y'."""
    _, s, vt = np.linalg.svd(fyp)
    rank = int(np.sum(s > 1e-7 * s[0])) if s[0] > 0 else 0
    return vt[:rank].T, vt[rank:].T


def _damped(
    state: State,
    t: float,
    y: np.ndarray,
    yp: np.ndarray,
    r: np.ndarray,
    dy: np.ndarray,
    dyp: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, bool]:
    """Take the longest of the steps 1, 1/2, 1/4, ... that makes the residual smaller."""
    size = np.linalg.norm(r)
    length = 1.0
    for _ in range(MAX_HALVINGS):
        y_new, yp_new = y + length * dy, yp + length * dyp
        status, r_new = probe.residual_at(state, t, y_new, yp_new)
        _raise_users(state)
        if status == 0 and np.linalg.norm(r_new) <= (1.0 - 1e-4 * length) * size:
            return y_new, yp_new, r_new, True
        length /= 2
    return y, yp, r, False


def _negligible(state: State, y: np.ndarray, dy: np.ndarray, dyp: np.ndarray) -> bool:
    """Whether a correction is far below the tolerance over the first step."""
    weight = state.array("weight")
    slope = np.max(np.abs(state.array("yp")) * weight)
    h = min(abs(state.h), 0.5 / slope) if slope > 0 else abs(state.h)
    return max(np.max(np.abs(dy) * weight), h * np.max(np.abs(dyp) * weight)) <= NEGLIGIBLE


def _small(
    state: State, y: np.ndarray, yp: np.ndarray, dy: np.ndarray, dyp: np.ndarray
) -> bool:
    """Whether Newton has converged to about round-off."""
    floor = CONVERGED / state.array("weight")
    return bool(
        np.all(np.abs(dy) <= np.maximum(CONVERGED * np.abs(y), floor))
        and np.max(np.abs(dyp)) <= CONVERGED * max(1.0, np.max(np.abs(yp)))
    )


def _judge_unsplit(
    state: State, y: np.ndarray, yp: np.ndarray, r: np.ndarray, before: float, yp_was_given: bool
) -> Start:
    """Say what can be said where B is singular: trust a start whose residual is negligible."""
    n = state.n
    fy, fyp = (np.abs(state.array(name).reshape(n, n).T) for name in ("fy", "fyp"))
    # The residual that changes of y and y' far below the tolerance would make.
    scale = fy @ (1.0 / state.array("weight")) + fyp @ (1e-6 * (np.abs(yp) + np.abs(yp).max()))
    if yp_was_given and np.all(np.abs(r) <= np.maximum(scale, 1e-14)):
        return Start(y, yp, True, "taken as given: index above 1", {}, (before, before))
    return Start(
        y, yp, False,
        "y' cannot be found: the equations do not determine it together with the algebraic "
        "values (index above 1, or dependent equations); " + _worst_equation(r),
        {}, (before, before),
    )


def _worst_equation(r: np.ndarray) -> str:
    worst = int(np.argmax(np.abs(r)))
    return f"equation {worst} is left with a residual of {r[worst]:.3g}"


def _moved(before: np.ndarray, after: np.ndarray) -> dict[int, float]:
    change = after - before
    return {int(i): float(change[i]) for i in np.flatnonzero(change)}


def _time_scale(state: State, t: float) -> float:
    span = abs(state.t_end - t)
    return 1e-3 * span if np.isfinite(span) else 1.0


def _raise_users(state: State) -> None:
    """Raise what a function of the user raised."""
    if state.error is not None:
        error, state.error = state.error, None
        raise error
