"""Consistent y and y' for a system of index 0 or 1.

The unknowns split by the null space of F_y': what y' determines (differential) keeps its
y and gets a new y'; what y' does not see (algebraic) gets a new y. With R a basis of the
complement and N a basis of the null space, math (15),

    F(t, y + N b, y' + R a) = 0   for (a, b),    B = [F_y' R, F_y N],

and B is invertible exactly when the index is at most 1. The slopes of the algebraic part
follow from d/dt F = 0 with the same matrix, math (16) (HK Appendix II, eq. 21-23).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from tether._core import probe
from tether._core.adapters import raise_users
from tether._core.state import State
from tether.status import Status
from tether.structure.pencil import Pencil

__all__ = ["Start", "make_consistent"]

ROOT_EPS = math.sqrt(np.finfo(float).eps)
MAX_ITERATIONS = 30
MAX_HALVINGS = 12
LARGEST_CONDITION = 1e14
# Of the tolerance: a start whose correction is below this is consistent as it was given.
NEGLIGIBLE = 1e-2
# Relative: Newton's increments below this are round-off.
CONVERGED = 1e-10


@dataclass(frozen=True, eq=False)
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
    fixed : tuple of int
        Components that were to keep their value exactly.
    on_constraints : bool
        False if the values were refused because they violate the constraints.
    pencil : Pencil or None
        Local index and kinds of the unknowns, where the index is above 1.
    status : Status
        How a run that cannot begin here ends.

    Examples
    --------
    >>> from tether import solve_dae
    >>> start = solve_dae(lambda t, y, yp: [yp[0] + y[0]], (0, 1), [1.0]).start
    >>> start.success, start.message, start.yp.round(6).tolist()
    (True, "found y'", [-1.0])
    """

    y: np.ndarray
    yp: np.ndarray
    success: bool
    message: str
    moved: dict[int, float] = field(default_factory=dict)
    residual: tuple[float, float] = (0.0, 0.0)
    ypp: np.ndarray | None = field(default=None, repr=False)
    on_constraints: bool = True
    fixed: tuple[int, ...] = ()
    pencil: Pencil | None = field(default=None, repr=False)
    status: Status = Status.NO_CONSISTENT_START     # of a run from here, if there was no success


    def restricted(self, n: int) -> Start:
        """Return the part of the first n unknowns."""
        if n == len(self.y):
            return self
        ypp = None if self.ypp is None else self.ypp[:n]
        return replace(
            self, y=self.y[:n], yp=self.yp[:n], ypp=ypp,
            moved={j: change for j, change in self.moved.items() if j < n},
        )


def merge_starts(projected: Start, consistent: Start) -> Start:
    """Put together what the constraints and then the equations changed."""
    moved = dict(projected.moved)
    for component, change in consistent.moved.items():
        moved[component] = moved.get(component, 0.0) + change
    message = "; ".join(part for part in (projected.message, consistent.message) if part)
    return replace(consistent, moved=moved, message=message)


def refuse_changes(state: State, found: Start, y: np.ndarray, yp: np.ndarray | None) -> Start:
    """Turn a start that differs from the given values by more than the tolerance into a failure."""
    if not found.success:
        return found
    beyond = np.abs(found.y - y) * state.array("weight")
    worst = int(np.argmax(beyond))
    if beyond[worst] > 1.0:
        return replace(
            found, success=False,
            message=f"y0 is inconsistent: y0[{worst}] would have to be {found.y[worst]:.6g} "
            f"instead of {y[worst]:.6g}",
        )
    if yp is not None and not np.array_equal(found.yp, yp):
        worst = int(np.argmax(np.abs(found.yp - yp)))
        return replace(
            found, success=False,
            message=f"yp0 is inconsistent: yp0[{worst}] would have to be {found.yp[worst]:.6g} "
            f"instead of {yp[worst]:.6g}",
        )
    return found


def make_consistent(
    state: State, t: float, y: np.ndarray, yp: np.ndarray | None
) -> Start | None:
    """Find consistent values near the given ones; keep them untouched if they already are.

    None where B of math (15) is singular: the index is above 1.
    """
    y_given, yp_given = y, yp
    if yp is None:
        yp = np.zeros_like(y)
    scale = time_scale(state, t)
    state.h = state.direction * scale          # differences look at it
    if probe.move_to(state, t, y, yp) != 0:
        return Start(y, yp, True, "not checked: a tolerance is zero")
    if scale * largest(yp * state.array("weight")) < np.finfo(float).eps:
        yp = np.zeros_like(y)                  # no measure for the increments of differences
    r = residual_at(state, t, y, yp)
    if r is None:
        return Start(y, yp, False, "the residual at the starting values is not finite")
    before = largest(r)

    for iteration in range(MAX_ITERATIONS):
        split = _Split.at(state, t, y, yp, r)
        if split is None:
            return None
        dy, dyp = split.solve(-r)
        if iteration == 0 and yp_given is not None and _negligible(state, scale, yp, dy, dyp):
            ypp = split.slopes(state, t, scale, y, yp, r)[1]
            return Start(y_given, yp_given, True, "consistent as given", {}, (before, before), ypp,
                         fixed=split.differential())
        stepped = _damped(state, t, y, yp, r, dy, dyp)
        if stepped is None:                    # round-off: no step makes the residual smaller
            converged = _negligible(state, scale, yp, dy, dyp)
            break
        y, yp, r = stepped
        converged = _small(state, y, yp, dy, dyp)
        if converged:
            break

    moved = {int(i): float(y[i] - y_given[i]) for i in np.flatnonzero(y != y_given)}
    residual = before, largest(r)
    if not converged:
        return Start(y, yp, False, worst_equation(r), moved, residual)
    assert split is not None
    yp, ypp = split.slopes(state, t, scale, y, yp, r)
    message = f"changed {len(moved)} algebraic values and y'" if moved else "found y'"
    return Start(y, yp, True, message, moved, residual, ypp, fixed=split.differential())


class _Split:
    """The matrix B = [F_y' R, F_y N] of math (15), inverted.

    `basis` has the columns of R and N side by side (None for unit vectors), and `algebraic`
    marks those of N.
    """

    def __init__(
        self, fy: np.ndarray, fyp: np.ndarray, basis: np.ndarray | None, algebraic: np.ndarray
    ) -> None:
        self.fy, self.basis, self.algebraic = fy, basis, algebraic
        if basis is not None:
            fy, fyp = fy @ basis, fyp @ basis
        B = np.where(algebraic, fy, fyp)
        rows = np.abs(B).max(axis=1)
        rows[rows == 0.0] = 1.0
        scaled = B / rows[:, None]
        columns = np.abs(scaled).max(axis=0)
        columns[columns == 0.0] = 1.0
        scaled /= columns
        try:
            inverse = np.linalg.inv(scaled)
        except np.linalg.LinAlgError:
            self.regular = False
            return
        condition = np.abs(scaled).sum(axis=0).max() * np.abs(inverse).sum(axis=0).max()
        self.regular = bool(condition < LARGEST_CONDITION)
        self.inverse = inverse / columns[:, None] / rows

    @classmethod
    def at(
        cls, state: State, t: float, y: np.ndarray, yp: np.ndarray, r: np.ndarray
    ) -> _Split | None:
        """Split at a point; None where B is singular, so that the index is above 1."""
        status, fy, fyp = probe.jacobian_at(state, t, y, yp, r)
        raise_users(state)
        if status != 0 or not (np.isfinite(fy).all() and np.isfinite(fyp).all()):
            return None
        for bases in (_unit_vectors, _singular_vectors):
            split = cls(fy, fyp, *bases(fyp))
            if split.regular:
                return split
        return None

    def differential(self) -> tuple[int, ...]:
        """Components of y that were kept; none by itself where only combinations are."""
        if self.basis is not None:
            return ()
        return tuple(int(i) for i in np.flatnonzero(~self.algebraic))

    def solve(self, rhs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return (dy, dyp) with F_y dy + F_y' dyp = rhs, dy in the null space of F_y'."""
        x = self.inverse @ rhs
        dy, dyp = np.where(self.algebraic, x, 0.0), np.where(self.algebraic, 0.0, x)
        if self.basis is None:
            return dy, dyp
        return self.basis @ dy, self.basis @ dyp

    def slopes(
        self, state: State, t: float, scale: float, y: np.ndarray, yp: np.ndarray, r: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Solve math (16) for what F does not fix: y' of the algebraic part.

        Return y' with that part in place, and y'' of the differential part, which comes with it.
        """
        if self.basis is None:
            yp = np.where(self.algebraic, 0.0, yp)
        else:
            yp = self.basis @ np.where(self.algebraic, 0.0, self.basis.T @ yp)
        dt = ROOT_EPS * max(abs(t), scale) * state.direction
        ahead = residual_at(state, t + dt, y, yp)
        if ahead is None:
            return yp, None
        algebraic, ypp = self.solve(-((ahead - r) / dt + self.fy @ yp))
        return yp + algebraic, ypp


def _unit_vectors(fyp: np.ndarray) -> tuple[None, np.ndarray]:
    """Unknowns whose derivative appears nowhere are algebraic, the others differential."""
    size = np.abs(fyp).max(axis=0)
    return None, size <= 1e-14 * size.max()


def _singular_vectors(fyp: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Directions of y' that F does not see, from the singular values of F_y'."""
    _, s, vt = np.linalg.svd(fyp)
    return vt.T, s <= 1e-7 * s[0]


def _damped(
    state: State,
    t: float,
    y: np.ndarray,
    yp: np.ndarray,
    r: np.ndarray,
    dy: np.ndarray,
    dyp: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Take the longest of the steps 1, 1/2, 1/4, ... that makes the residual smaller."""
    size = np.linalg.norm(r)
    length = 1.0
    for _ in range(MAX_HALVINGS):
        y_new, yp_new = y + length * dy, yp + length * dyp
        r_new = residual_at(state, t, y_new, yp_new)
        if r_new is not None and np.linalg.norm(r_new) <= (1.0 - 1e-4 * length) * size:
            return y_new, yp_new, r_new
        length /= 2
    return None


def _negligible(
    state: State, scale: float, yp: np.ndarray, dy: np.ndarray, dyp: np.ndarray
) -> bool:
    """Whether a correction is far below the tolerance over the first step."""
    weight = state.array("weight")
    slope = largest(yp * weight)
    h = min(scale, 0.5 / slope) if slope > 0 else scale
    return max(largest(dy * weight), h * largest(dyp * weight)) <= NEGLIGIBLE


def _small(
    state: State, y: np.ndarray, yp: np.ndarray, dy: np.ndarray, dyp: np.ndarray
) -> bool:
    """Whether Newton has converged to about round-off."""
    floor = CONVERGED / state.array("weight")
    return bool(
        np.all(np.abs(dy) <= np.maximum(CONVERGED * np.abs(y), floor))
        and largest(dyp) <= CONVERGED * max(1.0, largest(yp))
    )


def worst_equation(r: np.ndarray) -> str:
    worst = int(np.argmax(np.abs(r)))
    return f"equation {worst} is left with a residual of {r[worst]:.3g}"


def largest(v: np.ndarray) -> float:
    return float(np.abs(v).max())


def residual_at(state: State, t: float, y: np.ndarray, yp: np.ndarray) -> np.ndarray | None:
    """Residual at a point, or None where it is not finite."""
    status, r = probe.residual_at(state, t, y, yp)
    raise_users(state)
    return r if status == 0 else None


def time_scale(state: State, t: float) -> float:
    span = abs(state.t_end - t)
    return 1e-3 * span if math.isfinite(span) else 1.0
