"""Consistent y and y' for a system of index 0 or 1: the core's search and what to say of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from tether._core import codes, probe
from tether._core.adapters import raise_users
from tether._core.consistent import Completion
from tether._core.state import State
from tether.base.frozen import made
from tether.base.status import Status
from tether.structure.pencil import Pencil
from tether.structure.scaling import balanced, nonzero

__all__ = ["Start", "make_consistent"]

# Relative: a direction of y' that moves F by less is not seen.
UNSEEN = 1e-7
# Relative: what is left of terms that cancel in an equation.
ROUND_OFF = 1e-14
# Searches with directions taken at the values found by the one before.
MAX_SPLITS = 3


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
    if not projected.moved:
        return consistent
    moved = dict(projected.moved)
    for component, change in consistent.moved.items():
        moved[component] = moved.get(component, 0.0) + change
    message = "; ".join(part for part in (projected.message, consistent.message) if part)
    return replace(consistent, moved=moved, message=message)


def refuse_changes(state: State, found: Start, y: np.ndarray, yp: np.ndarray | None) -> Start:
    """Turn a start that differs from the given values by more than the tolerance into a failure."""
    if not found.success:
        return found
    beyond = np.abs(found.y - y) * state.weights
    worst = int(np.argmax(beyond))
    if beyond[worst] > 1.0:
        return replace(
            found, success=False,
            message=f"y0 is inconsistent: y0[{worst}] would have to be "
            f"{_instead_of(found.y[worst], y[worst])}",
        )
    if yp is not None and not np.array_equal(found.yp, yp):
        worst = int(np.argmax(np.abs(found.yp - yp)))
        return replace(
            found, success=False,
            message=f"yp0 is inconsistent: yp0[{worst}] would have to be "
            f"{_instead_of(found.yp[worst], yp[worst])}",
        )
    return found


def _instead_of(wanted: float, given: float) -> str:
    """Write two numbers with as many digits as it takes to tell them apart."""
    for digits in (6, 9, 12, 17):
        texts = f"{wanted:.{digits}g}", f"{given:.{digits}g}"
        if texts[0] != texts[1]:
            break
    return " instead of ".join(texts)


def make_consistent(
    state: State, t: float, y: np.ndarray, yp: np.ndarray | None
) -> Start | None:
    """Find consistent values near the given ones; keep them untouched if they already are.

    None where B of math (15) is singular: the index is above 1.
    """
    known, yp = yp is not None, np.zeros_like(y) if yp is None else yp
    search = Completion(state, t, y, yp, time_scale(state, t))
    code, before = search.run(known), search.before
    raise_users(state)
    if code == codes.SINGULAR:
        if search.moved:
            search = Completion(state, t, y, yp, time_scale(state, t))
        code = _by_singular_vectors(search, state, t, known)
    if code == codes.SINGULAR:
        return None
    if code == codes.ZERO_WEIGHT:
        return Start(y, yp, True, "not checked: a tolerance is zero")
    if code == codes.NON_FINITE:
        return Start(y, yp, False, "the residual at the starting values is not finite")
    found, slopes, curvature, r = search.values()
    residual = before, search.after
    ypp = None if math.isnan(curvature[0]) else curvature
    if code == codes.AS_GIVEN:
        return made(Start, y=y, yp=yp, success=True, message="consistent as given", moved={},
                    residual=residual, ypp=ypp, fixed=search.differential())
    moved = {int(i): float(found[i] - y[i]) for i in (found != y).nonzero()[0]}
    if code == codes.NO_CONVERGENCE:
        worst = worst_equation(r, search.rows_scale())
        return Start(found, slopes, False, worst, moved, residual)
    message = f"changed {len(moved)} algebraic values and y'" if moved else "found y'"
    return made(Start, y=found, yp=slopes, success=True, message=message, moved=moved,
                residual=residual, ypp=ypp, fixed=search.differential())


def _by_singular_vectors(search: Completion, state: State, t: float, known: bool) -> int:
    """Split by directions of y' that F does not see, where no single unknown is one of them.

    At the values found they may be others: the search goes on with those, for the slopes.
    """
    for attempt in range(MAX_SPLITS):
        if search.jacobian is not None:
            fy, fyp = search.jacobian
        else:
            status, fy, fyp = probe.jacobian_at(state, t, *search.values()[:2])
            raise_users(state)
            if status != codes.OK or not (np.isfinite(fy).all() and np.isfinite(fyp).all()):
                return codes.SINGULAR
        search.split_by(*_directions(fy, fyp, state.tolerances, time_scale(state, t)))
        code = search.run(known or attempt > 0)
        raise_users(state)
        if code != codes.OK:
            return codes.OK if code == codes.AS_GIVEN and attempt > 0 else code
    return codes.OK


def _directions(
    fy: np.ndarray, fyp: np.ndarray, unit: np.ndarray, scale: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Directions of y', their dual basis, and which of them F does not see; in natural units."""
    matrix = fyp * unit
    size = np.maximum(np.abs(matrix), scale * np.abs(fy * unit)).max(axis=1, keepdims=True)
    matrix[np.abs(matrix) <= ROUND_OFF * size] = 0.0
    row, column = balanced(matrix)
    _, sizes, vt = np.linalg.svd(row[:, None] * matrix * column)
    vt[np.abs(vt) < ROUND_OFF] = 0.0       # a row of nothing else would look like any other
    length = (unit * column)[:, None]
    return length * vt.T, vt.T / length, sizes <= UNSEEN * sizes[0]


def worst_equation(r: np.ndarray, scale: np.ndarray) -> str:
    """Name the equation that is worst satisfied, of the sizes that its values may have."""
    worst = int(np.argmax(np.abs(r) / nonzero(scale)))
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
