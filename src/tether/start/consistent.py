"""Consistent y and y' for a system of index 0 or 1: the core's search and what came of it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from tether._core import codes, probe
from tether._core.adapters import raise_users
from tether._core.consistent import Completion
from tether._core.state import State
from tether.base.frozen import made
from tether.base.reason import Kind, Reason, Row
from tether.start.null_space import directions, sparse_directions
from tether.structure.scaling import nonzero
from tether.structure.start import Start, changed_values

__all__ = ["make_consistent", "merge_starts", "refuse_changes", "worst_equation"]

# Searches with directions taken at the values found by the one before.
MAX_SPLITS = 3
# Among more unknowns directions are looked for where derivatives hang together, and nowhere else:
# others would mix what has nothing to do with each other, in units of its own.
MANY = 40
# Of the terms of an equation: what is left of it by round-off.
EXACT = 1e-9
# Of the terms of F_y' dy: what is left if they do not cancel.
EVOLVES = 0.5
AS_GIVEN, FOUND_SLOPES = Reason(Kind.AS_GIVEN), Reason(Kind.FOUND_SLOPES)


def merge_starts(projected: Start, consistent: Start) -> Start:
    """Put together what the constraints and then the equations changed."""
    if not projected.moved:
        return consistent
    moved = dict(projected.moved)
    for component, change in consistent.moved.items():
        moved[component] = moved.get(component, 0.0) + change
    return replace(consistent, moved=moved, reason=projected.reason.then(consistent.reason))


def refuse_changes(state: State, found: Start, y: np.ndarray, yp: np.ndarray | None) -> Start:
    """Turn a start that differs from the given values by more than the tolerance into a failure."""
    if not found.success:
        return found
    beyond = np.abs(found.y - y) * state.weights
    worst = int(np.argmax(beyond))
    if beyond[worst] > 1.0:
        return _refused(found, Kind.Y0_INCONSISTENT, worst, found.y[worst], y[worst])
    if yp is not None and not np.array_equal(found.yp, yp):
        worst = int(np.argmax(np.abs(found.yp - yp)))
        return _refused(found, Kind.YP0_INCONSISTENT, worst, found.yp[worst], yp[worst])
    return found


def _refused(found: Start, kind: Kind, j: int, wanted: float, given: float) -> Start:
    reason = Reason(kind, columns=(j,), values=(float(wanted), float(given)))
    return replace(found, success=False, reason=reason)


def make_consistent(
    state: State, t: float, y: np.ndarray, yp: np.ndarray | None, guessed: bool = False
) -> Start | None:
    """Find consistent values near the given ones; keep them untouched if they already are.

    Slopes that are no more than `guessed` are found whatever they are. None where B of math (15)
    is singular: the index is above 1.
    """
    known = yp is not None and not guessed
    if state.matrix.follows:
        from tether.start.by_steps import consistent_by_steps  # late, to save time

        return consistent_by_steps(state, t, y, yp, time_scale(state, t), known)
    yp = np.zeros(len(y)) if yp is None else yp
    search = Completion(state, t, y, yp, time_scale(state, t))
    code, before = search.run(known), search.before
    raise_users(state)
    if code in (codes.SINGULAR, codes.NO_CONVERGENCE):
        # differences of a singular F_y' are regular by their errors alone
        other = search
        if search.moved:
            other = Completion(state, t, y, yp, time_scale(state, t))
        found = _by_singular_vectors(other, state, t, known)
        if code == codes.SINGULAR or (found == codes.OK and _is_exact(other, state)):
            search, code = other, found
    if code == codes.SINGULAR:
        return None
    if code == codes.ZERO_WEIGHT:
        return Start(y, yp, True, Reason(Kind.NOT_CHECKED))
    if code == codes.NON_FINITE:
        return Start(y, yp, False, Reason(Kind.NOT_FINITE))
    found, slopes, curvature, r = search.values()
    residual = before, search.after
    ypp = None if math.isnan(curvature[0]) else curvature
    if code == codes.AS_GIVEN:
        return made(Start, y=y, yp=yp, success=True, reason=AS_GIVEN, moved={},
                    residual=residual, ypp=ypp, fixed=search.differential())
    moved = changed_values(found, y, state.tolerances)
    if code == codes.NO_CONVERGENCE:
        worst = worst_equation(r, search.rows_scale())
        return Start(found, slopes, False, worst, moved=moved, residual=residual)
    reason = FOUND_SLOPES
    if moved and _has_moved_what_evolves(state, found - y):
        worst = worst_equation(r, search.rows_scale())
        return Start(y, yp, False, worst, residual=(before, before))
    if moved:
        reason = Reason(Kind.CHANGED_ALGEBRAIC, values=(len(moved),))
    return made(Start, y=found, yp=slopes, success=True, reason=reason, moved=moved,
                residual=residual, ypp=ypp, fixed=search.differential())


def _is_exact(search: Completion, state: State) -> bool:
    """Whether nothing but round-off is left of the equations."""
    y, yp, _, r = search.values()
    fy, fyp = (abs(state.matrix.get(which)) for which in (codes.OF_Y, codes.OF_YP))
    return bool(np.all(np.abs(r) <= EXACT * (fy @ np.abs(y) + fyp @ np.abs(yp))))


def _has_moved_what_evolves(state: State, change: np.ndarray) -> bool:
    """Whether F_y' dy is not zero at the values found, as it is in a search for algebraic ones.

    Beside huge terms far away no difference shows a derivative: it seems to occur nowhere. What
    changes within the tolerances may cancel by round-off alone, or not at all.
    """
    if not np.any(np.abs(change) * state.weights > 1.0):
        return False
    fyp, size = state.matrix.get(codes.OF_YP), np.maximum(np.abs(change), state.tolerances)
    return bool(np.any(np.abs(fyp @ change) > EVOLVES * (abs(fyp) @ size)))


def _by_singular_vectors(search: Completion, state: State, t: float, known: bool) -> int:
    """Split by directions of y' that F does not see, where no single unknown is one of them.

    At the values found they may be others: the search goes on with those, for the slopes.
    """
    for attempt in range(MAX_SPLITS):
        if not search.renew():
            raise_users(state)
            return codes.SINGULAR
        fy, fyp = search.jacobian
        scale = time_scale(state, t)
        if isinstance(fy, np.ndarray) and len(fy) > MANY:
            from scipy.sparse import csc_array  # late, to save time

            fy, fyp = csc_array(fy), csc_array(fyp)
        find = directions if isinstance(fy, np.ndarray) else sparse_directions
        found = find(fy, fyp, state.tolerances, scale)
        if found is None:
            return codes.SINGULAR
        search.split_by(*found)
        code = search.run(known or attempt > 0)
        raise_users(state)
        if code != codes.OK:
            return codes.OK if code == codes.AS_GIVEN and attempt > 0 else code
    return codes.OK


def worst_equation(r: np.ndarray, scale: np.ndarray) -> Reason:
    """Name the equation that is worst satisfied, of the sizes that its values may have."""
    worst = int(np.argmax(np.abs(r) / nonzero(scale)))
    return Reason(Kind.LEFT_OVER, (Row(worst),), values=(float(r[worst]),))


def largest(v: np.ndarray) -> float:
    return float(np.abs(v).max())


def residual_at(state: State, t: float, y: np.ndarray, yp: np.ndarray) -> np.ndarray | None:
    """Residual at a point, or None where it is not finite."""
    status, r = probe.residual_at(state, t, y, yp)
    raise_users(state)
    return r if status == 0 else None


def time_scale(state: State, t: float) -> float:
    """Time in which something may happen; at the very end of a run, that of its last step."""
    span = abs(state.t_end - t) or 1e3 * abs(state.last_h)
    return 1e-3 * span if math.isfinite(span) else 1.0
