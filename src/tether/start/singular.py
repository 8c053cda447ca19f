"""Large singular systems: which equations depend on others, and which unknowns are open."""

from __future__ import annotations

import numpy as np

from tether._core import codes, probe
from tether._core.adapters import raise_user_error
from tether._core.state import State
from tether.base.reason import Kind, Reason, Row
from tether.base.status import Status
from tether.start.consistent import time_scale
from tether.structure.pencil import Pencil
from tether.structure.scaling import Units
from tether.structure.sigma import Unmatched, find_signature
from tether.structure.sparse_pencil import singular_pencil
from tether.structure.start import Start

__all__ = ["LARGE", "singular_beside", "singular_start", "start_of_high_index"]

# With more unknowns, singularity is checked with sparse matrices before full ones are needed.
LARGE = 300
# Largest number of equations and of unknowns that are named.
MOST_NAMED = 8
# Shifts to a general point, relative to the unknowns; the first that works is taken.
SHIFTS = (0.05, 0.005, 0.0)


def singular_start(state: State, t: float, y: np.ndarray, yp: np.ndarray) -> Start | None:
    """Return a failed start if the equations determine no unique solution near a point."""
    if state.n <= LARGE or state.matrix.has_no_entries:
        return None
    pencil = singular_beside(state, t, y, yp)
    if pencil is None:
        return None
    rows = tuple([Row(i) for i in pencil.dependent])
    reason = Reason(Kind.SINGULAR, rows, pencil.undetermined)
    return Start(y, yp, False, reason, pencil=pencil, status=Status.SINGULAR_SYSTEM)


def start_of_high_index(state: State, t: float, y: np.ndarray, yp: np.ndarray) -> Start:
    """Return a failed start whose matrix is singular although the equations are not.

    The index follows from where derivatives occur (`structure/sigma.py`): no ranks are needed.
    """
    nothing = Start(y, yp, False, Reason(Kind.TOO_MANY_UNKNOWNS))
    if probe.matrices_at(state, t, y, yp) != codes.OK:
        raise_user_error(state)
        return nothing
    orders: list[dict[int, int]] = [{} for _ in range(state.n)]
    for order, which in enumerate((codes.OF_Y, codes.OF_YP)):
        matrix = state.matrix.get(which).tocoo()
        seen = matrix.data != 0.0
        for i, j in zip(*(part[seen].tolist() for part in matrix.coords), strict=True):
            orders[i][j] = order
    found = find_signature(orders)
    if isinstance(found, Unmatched) or found.structural_index < 2:
        return nothing
    differentiated = np.flatnonzero(np.array(found.c) > 0)
    deepest = differentiated[np.argsort(-np.array(found.c)[differentiated], kind="stable")]
    reason = Reason(
        Kind.INDEX_OF_MANY, tuple([Row(int(i)) for i in deepest[:MOST_NAMED]]),
        tuple(np.flatnonzero(np.array(found.d) == 0)[:MOST_NAMED].tolist()),
        (float(len(differentiated)),), found.structural_index,
    )
    return Start(y, yp, False, reason, status=Status.INDEX_TOO_HIGH)


def singular_beside(state: State, t: float, y: np.ndarray, yp: np.ndarray) -> Pencil | None:
    """Return a pencil that is singular, or nearly so, at a point where no entry is zero by chance.

    None if it is regular. Afterwards the state's matrices are those of that point.
    """
    draw = np.random.default_rng(0)
    unit = Units.of(state.rtols, state.atols, y, abs(state.t_end - t)).y
    size = np.maximum(np.abs(y), unit)
    for shift in SHIFTS:
        moved = y + shift * size * draw.choice([-1.0, 1.0], len(y)) * draw.uniform(0.5, 1.0, len(y))
        later = t + state.direction * 10.0 * shift * time_scale(state, t)
        with np.errstate(all="ignore"):
            status = probe.matrices_at(state, later, moved, yp)
        raise_user_error(state)
        state.jacobian_exists = False              # it is that of another point
        fy, fyp = state.matrix.get(codes.OF_Y), state.matrix.get(codes.OF_YP)
        if not hasattr(fy, "tocsc"):
            return None
        if status == codes.OK and np.isfinite(fy.data).all() and np.isfinite(fyp.data).all():
            return singular_pencil(fyp, fy, size)
    return None
