"""Consistent y and y' for a system of index 0 or 1: the core's search and its result."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from tether._core import codes, probe
from tether._core.adapters import raise_user_error
from tether._core.consistent import ConsistentSearch
from tether._core.state import State
from tether.base.frozen import make_frozen
from tether.base.reason import Kind, Reason, Row
from tether.start.null_space import directions, sparse_directions
from tether.structure.scaling import nonzero
from tether.structure.start import Start, changed_values

__all__ = ["make_consistent", "merge_starts", "refuse_changes", "worst_equation"]

# Number of searches, each with directions computed at the values that the one before found.
MAX_SPLITS = 3
# With more unknowns, directions are found group by group of derivatives that occur together:
# otherwise they would mix unrelated unknowns in different units.
MOST_UNGROUPED = 40
# An equation holds up to round-off if its value is below this share of its terms.
EXACT = 1e-9
# The terms of F_y' dy do not cancel if their sum is above this share of them.
NOT_CANCELLED = 0.5
AS_GIVEN, FOUND_SLOPES = Reason(Kind.AS_GIVEN), Reason(Kind.FOUND_SLOPES)


def merge_starts(projected: Start, consistent: Start) -> Start:
    """Combine a start on the constraints with the one that was found from it."""
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

    With `guessed` the slopes are mere guesses and are always computed. None if B of math (15) is
    singular: then the index is above 1.
    """
    known = yp is not None and not guessed
    if state.matrix.has_no_entries:
        from tether.start.by_steps import consistent_by_steps  # late, to save time

        return consistent_by_steps(state, t, y, yp, time_scale(state, t), known)
    yp = np.zeros(len(y)) if yp is None else yp
    search = ConsistentSearch(state, t, y, yp, time_scale(state, t))
    code, before = search.run(known), search.before
    raise_user_error(state)
    if code in (codes.SINGULAR, codes.NO_CONVERGENCE):
        # a singular F_y' from differences is regular because of their errors alone
        other = search
        if search.moved:
            other = ConsistentSearch(state, t, y, yp, time_scale(state, t))
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
        return make_frozen(Start, {
            "y": y, "yp": yp, "success": True, "reason": AS_GIVEN, "moved": {},
            "residual": residual, "ypp": ypp, "fixed": search.differential(),
        })
    moved = changed_values(found, y, state.tolerances)
    if code == codes.NO_CONVERGENCE:
        worst = worst_equation(r, search.rows_scale())
        return Start(found, slopes, False, worst, moved=moved, residual=residual)
    reason = FOUND_SLOPES
    if moved and _has_moved_differential(state, found - y):
        worst = worst_equation(r, search.rows_scale())
        return Start(y, yp, False, worst, residual=(before, before))
    if moved:
        reason = Reason(Kind.CHANGED_ALGEBRAIC, values=(len(moved),))
    return make_frozen(Start, {
        "y": found, "yp": slopes, "success": True, "reason": reason, "moved": moved,
        "residual": residual, "ypp": ypp, "fixed": search.differential(),
    })


def _is_exact(search: ConsistentSearch, state: State) -> bool:
    """Whether the equations hold up to round-off."""
    y, yp, _, r = search.values()
    fy, fyp = (abs(state.matrix.get(which)) for which in (codes.OF_Y, codes.OF_YP))
    return bool(np.all(np.abs(r) <= EXACT * (fy @ np.abs(y) + fyp @ np.abs(yp))))


def _has_moved_differential(state: State, change: np.ndarray) -> bool:
    """Whether F_y' dy is not zero at the values found: then dy has not only algebraic parts.

    Far away, beside huge terms, differences do not show a derivative, which then seems to occur
    nowhere. Changes within the tolerances are ignored: round-off decides whether they cancel.
    """
    if not np.any(np.abs(change) * state.weights > 1.0):
        return False
    fyp, size = state.matrix.get(codes.OF_YP), np.maximum(np.abs(change), state.tolerances)
    return bool(np.any(np.abs(fyp @ change) > NOT_CANCELLED * (abs(fyp) @ size)))


def _by_singular_vectors(search: ConsistentSearch, state: State, t: float, known: bool) -> int:
    """Split by directions of y' that leave F unchanged and are not single unknowns.

    At the values found they may differ: then the search goes on with those, for the slopes.
    """
    for attempt in range(MAX_SPLITS):
        if not search.renew():
            raise_user_error(state)
            return codes.SINGULAR
        fy, fyp = search.jacobian
        scale = time_scale(state, t)
        if isinstance(fy, np.ndarray) and len(fy) > MOST_UNGROUPED:
            from scipy.sparse import csc_array  # late, to save time

            fy, fyp = csc_array(fy), csc_array(fyp)
        find = directions if isinstance(fy, np.ndarray) else sparse_directions
        found = find(fy, fyp, state.tolerances, scale)
        if found is None:
            return codes.SINGULAR
        search.split_by(*found)
        code = search.run(known or attempt > 0)
        raise_user_error(state)
        if code != codes.OK:
            return codes.OK if code == codes.AS_GIVEN and attempt > 0 else code
    return codes.OK


def worst_equation(r: np.ndarray, scale: np.ndarray) -> Reason:
    """Name the equation that is worst satisfied, relative to its scale."""
    worst = int(np.argmax(np.abs(r) / nonzero(scale)))
    return Reason(Kind.LEFT_OVER, (Row(worst),), values=(float(r[worst]),))


def largest(v: np.ndarray) -> float:
    return float(np.abs(v).max())


def residual_at(state: State, t: float, y: np.ndarray, yp: np.ndarray) -> np.ndarray | None:
    """Residual at a point, or None where it is not finite."""
    status, r = probe.residual_at(state, t, y, yp)
    raise_user_error(state)
    return r if status == 0 else None


def time_scale(state: State, t: float) -> float:
    """Time over which the residual may change; at the end of a run, from its last step."""
    span = abs(state.t_end - t) or 1e3 * abs(state.last_h)
    return 1e-3 * span if math.isfinite(span) else 1.0
