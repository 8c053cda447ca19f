"""Starting values of a system of index 2 or 3, taken as it is written.

The kinds of the unknowns follow from the linearised system. y is moved onto all its constraints,
given and hidden, as `by_differences` finds them. Where that does not work out it is kept, and what
can be checked is: the equations themselves, and the first hidden constraint. With U the left null
space of F_y' and N its null space,

    U^T F = 0  along the solution,  so  U^T (F_t + F_y y') = 0  for some  y' + N c,  math (26).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tether._core import probe
from tether._core.adapters import raise_users
from tether._core.state import State
from tether.start.by_differences import settle
from tether.start.consistent import (
    Start,
    largest,
    residual_at,
    time_scale,
    worst_equation,
)
from tether.status import Status
from tether.structure.pencil import Pencil, local_pencil

__all__ = ["find_kinds", "start_above_index_1"]

HIGHEST_INDEX = 3
ROOT_EPS = 2.0**-26
# Singular values of F_y' relative to the largest: below this they are zero.
RANK = 1e-7
# Sizes of the shifts to a general point, relative to the unknowns: the largest that works.
SHIFTS = (0.05, 0.005)
# A hidden constraint counts as violated when more than this of its terms is left over.
VIOLATED = 1e-3


@dataclass(frozen=True, eq=False)
class _Linearised:
    """F, F_y, F_y' at a point and the null spaces of F_y'."""

    r: np.ndarray
    fy: np.ndarray
    fyp: np.ndarray
    left: np.ndarray            # U, columns
    right: np.ndarray           # N, columns

    @classmethod
    def at(cls, state: State, t: float, y: np.ndarray, yp: np.ndarray) -> _Linearised | None:
        r = residual_at(state, t, y, yp)
        if r is None:
            return None
        status, fy, fyp = probe.jacobian_at(state, t, y, yp, r)
        raise_users(state)
        if status != 0 or not (np.isfinite(fy).all() and np.isfinite(fyp).all()):
            return None
        # an equation in other units is no less differential
        unit = np.abs(fyp).max(axis=1, keepdims=True)
        unit[unit == 0.0] = 1.0
        u, s, vt = np.linalg.svd(fyp / unit)
        rank = int(np.sum(s > RANK * s[0])) if s[0] > 0 else 0
        left = u[:, rank:] / unit
        return cls(r, fy, fyp, left / np.linalg.norm(left, axis=0), vt[rank:].T)


def find_kinds(state: State, t: float, y: np.ndarray, yp: np.ndarray) -> Pencil | None:
    """Local index and kinds at a general point next to (t, y, y'); None where F is not finite.

    At the point itself entries may vanish that do not vanish later: a pendulum that starts
    level looks like a prescribed horizontal motion. The time is shifted too.
    """
    rng = np.random.default_rng(0)
    here = _Linearised.at(state, t, y, yp)
    if here is None:
        return None
    size = np.maximum(np.abs(y), 0.5 * largest(y))
    size[size == 0.0] = 1.0
    for shift in SHIFTS:
        moved = y + shift * size * rng.choice([-1.0, 1.0], len(y)) * rng.uniform(0.5, 1.0, len(y))
        later = t + state.direction * 10.0 * shift * time_scale(state, t)
        with np.errstate(all="ignore"):
            beside = _Linearised.at(state, later, moved, yp)
        if beside is not None:
            state.jacobian_exists = False          # it is that of another point
            return local_pencil(beside.fyp, beside.fy)
    return local_pencil(here.fyp, here.fy)


def start_above_index_1(
    state: State, t: float, y: np.ndarray, yp: np.ndarray | None, trust_kinds: bool
) -> Start:
    """Check the given values and complete y'; refuse what cannot be integrated as written.

    With `trust_kinds` the user has said what the unknowns are, and the index is not questioned.
    """
    given = np.zeros_like(y) if yp is None else yp
    point = _Linearised.at(state, t, y, given)
    if point is None:
        return Start(y, given, False, "the residual at the starting values is not finite")
    before = largest(point.r)
    pencil = find_kinds(state, t, y, given)
    refusal = None if pencil is None or trust_kinds else refuse_pencil(pencil)
    if refusal is not None:
        assert pencil is not None
        status = Status.SINGULAR_SYSTEM if pencil.singular else Status.INDEX_TOO_HIGH
        return Start(
            y, given, False, refusal, {}, (before, before), pencil=pencil, status=status
        )
    found, r = _complete(state, t, y, given, point)
    settled = _settle(state, t, y, found, point, pencil)
    if settled is None:
        violated = None
        if not _negligible(state, point, found, r):
            violated = worst_equation(r)
        else:
            violated = _hidden(state, t, y, found, point)
        if violated is not None:
            return Start(y, found, False, violated, {}, (before, largest(r)), pencil=pencil)
    elif settled.moved:
        return replace(settled, residual=(before, settled.residual[1]))
    message = "consistent as given" if np.array_equal(found, given) and yp is not None else (
        "found y' for the given y"
    )
    if pencil is not None:
        message += f" (local index {pencil.index})"
    curvature = _curvature(state, t, y, found, point, pencil)
    return Start(y, found, True, message, {}, (before, largest(r)), curvature, pencil=pencil)


def _settle(
    state: State, t: float, y: np.ndarray, yp: np.ndarray, point: _Linearised,
    pencil: Pencil | None,
) -> Start | None:
    """Move y onto the constraints, given and hidden; None where that does not work out."""
    if pencil is None or pencil.index not in (2, 3):
        return None
    found = settle(state, t, y, yp, point.fy, point.fyp, pencil)
    if found is None or not found.moved.any():
        return None if found is None else Start(y, yp, True, "")
    there = _Linearised.at(state, t, found.y, found.yp)
    if there is None:
        return None
    slopes, r = _complete(state, t, found.y, found.yp, there)
    if not _negligible(state, there, slopes, r):
        return None
    moved = {int(j): float(found.y[j] - y[j]) for j in np.flatnonzero(found.moved)}
    return Start(
        found.y, slopes, True, f"changed {len(moved)} values and y' (local index {pencil.index})",
        moved, (0.0, largest(r)), _curvature(state, t, found.y, slopes, there, pencil),
        pencil=pencil,
    )


def refuse_pencil(pencil: Pencil) -> str | None:
    """Say why a system cannot be integrated as written, or None if it can."""
    if pencil.singular:
        rows = ", ".join(map(str, pencil.dependent))
        unknowns = ", ".join(f"y[{j}]" for j in pencil.undetermined)
        what = (
            f"equation {rows} determines nothing and leaves" if len(pencil.dependent) == 1
            else f"equations {rows} depend on each other and leave"
        )
        return f"the equations do not determine the solution: {what} {unknowns} open"
    assert pencil.index is not None
    if pencil.index > HIGHEST_INDEX or (pencil.index == HIGHEST_INDEX and not pencil.mechanical):
        unknowns = ", ".join(f"y[{j}]" for j in pencil.prescribed)
        return (
            f"the index is {pencil.index} and the system does not have the form of a mechanism: "
            f"{unknowns} would be found by differencing other unknowns twice or more, with errors "
            "that do not shrink with the step when the step changes (nilpotency 3 and above). "
            "Differentiate the constraint that determines them, or leave them out and compute "
            "them afterwards"
        )
    return None


def _complete(
    state: State, t: float, y: np.ndarray, yp: np.ndarray, point: _Linearised
) -> tuple[np.ndarray, np.ndarray]:
    """Change y' as little as possible so that the equations that contain it hold."""
    if _negligible(state, point, yp, point.r):
        return yp, point.r
    inverse = np.linalg.pinv(point.fyp, rcond=RANK)
    r = point.r
    for _ in range(10):
        moved = yp - inverse @ r
        r_moved = residual_at(state, t, y, moved)
        if r_moved is None or largest(r_moved) > 0.5 * largest(r):
            if r_moved is not None and largest(r_moved) <= largest(r):
                yp, r = moved, r_moved
            break
        yp, r = moved, r_moved
    return yp, r


def _negligible(state: State, point: _Linearised, yp: np.ndarray, r: np.ndarray) -> bool:
    """Whether a residual is what changes of y and y' far below the tolerance would make."""
    tolerance = 1.0 / state.array("weight")
    scale = np.abs(point.fy) @ tolerance + np.abs(point.fyp) @ (
        1e-6 * (np.abs(yp) + largest(yp))
    )
    return bool(np.all(np.abs(r) <= np.maximum(scale, 1e-14)))


def _hidden(
    state: State, t: float, y: np.ndarray, yp: np.ndarray, point: _Linearised
) -> str | None:
    """Check the derivative of the constraints, math (26); say which equation does not hold."""
    if point.left.shape[1] == 0:
        return None
    rate = _rate(state, t, y, yp, point)
    if rate is None:
        return None
    f_t, along = rate
    constrained = point.left.T @ point.fy
    value = point.left.T @ (f_t + along)
    terms = np.abs(point.left.T) @ (np.abs(f_t) + np.abs(point.fy) @ np.abs(yp))
    slope = 1.0 / (state.array("weight") * time_scale(state, t))      # one tolerance in a step
    free = constrained @ point.right
    left_over = value - free @ np.linalg.lstsq(free, value, rcond=RANK)[0]
    beyond = np.abs(left_over) > VIOLATED * terms + np.abs(constrained) @ slope
    if not beyond.any():
        return None
    worst = int(np.argmax(np.abs(left_over) * beyond))
    equation = int(np.argmax(np.abs(point.left[:, worst])))
    return (
        f"a hidden constraint is violated: the derivative of equation {equation} with respect to "
        f"time cannot be brought closer to 0 than {left_over[worst]:.3g} by y' at the starting "
        "values; correct y0, for instance with consistent_start and the derivative as one of its "
        "constraints"
    )


def _rate(
    state: State, t: float, y: np.ndarray, yp: np.ndarray, point: _Linearised
) -> tuple[np.ndarray, np.ndarray] | None:
    """F_t, by a difference, and F_y y'."""
    r = residual_at(state, t, y, yp)
    if r is None:
        return None
    dt = ROOT_EPS * max(abs(t), time_scale(state, t)) * state.direction
    for step in (dt, -dt):                 # behind, where the function ends here
        beside = residual_at(state, t + step, y, yp)
        if beside is not None:
            return (beside - r) / step, point.fy @ yp
    return None


def _curvature(
    state: State,
    t: float,
    y: np.ndarray,
    yp: np.ndarray,
    point: _Linearised,
    pencil: Pencil | None,
) -> np.ndarray | None:
    """Least y'' with F_t + F_y y' + F_y' y'' = 0, of the ordinary unknowns: for the first step."""
    rate = _rate(state, t, y, yp, point)
    if rate is None or pencil is None:
        return None
    ypp = -np.linalg.pinv(point.fyp, rcond=RANK) @ (rate[0] + rate[1])
    ypp[pencil.var_index > 1] = 0.0
    return ypp
