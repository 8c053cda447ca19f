"""Large systems that determine no solution: which equations depend on others, and what is open."""

from __future__ import annotations

import numpy as np

from tether._core import codes, probe
from tether._core.adapters import raise_users
from tether._core.state import State
from tether.base.reason import Kind, Reason, Row
from tether.base.status import Status
from tether.start.consistent import time_scale
from tether.structure.pencil import Pencil
from tether.structure.scaling import Units
from tether.structure.sparse_pencil import singular_pencil
from tether.structure.start import Start

__all__ = ["LARGE", "singular_start"]

# From here on it is looked for with sparse matrices, before anything that needs full ones.
LARGE = 300
# To a general point, relative to the unknowns: the larger one that works.
SHIFTS = (0.05, 0.005, 0.0)


def singular_start(state: State, t: float, y: np.ndarray, yp: np.ndarray) -> Start | None:
    """Return the failure of a start if the equations determine no solution next to a point."""
    if state.n <= LARGE:
        return None
    pencil = _beside(state, t, y, yp)
    if pencil is None:
        return None
    rows = tuple([Row(i) for i in pencil.dependent])
    reason = Reason(Kind.SINGULAR, rows, pencil.undetermined)
    return Start(y, yp, False, reason, pencil=pencil, status=Status.SINGULAR_SYSTEM)


def _beside(state: State, t: float, y: np.ndarray, yp: np.ndarray) -> Pencil | None:
    """Look at a point where no entry vanishes by chance."""
    draw = np.random.default_rng(0)
    unit = Units.of(state.rtols, state.atols, y, abs(state.t_end - t)).y
    size = np.maximum(np.abs(y), unit)
    for shift in SHIFTS:
        moved = y + shift * size * draw.choice([-1.0, 1.0], len(y)) * draw.uniform(0.5, 1.0, len(y))
        later = t + state.direction * 10.0 * shift * time_scale(state, t)
        with np.errstate(all="ignore"):
            status = probe.matrices_at(state, later, moved, yp)
        raise_users(state)
        state.jacobian_exists = False              # it is that of another point
        fy, fyp = state.matrix.get(codes.OF_Y), state.matrix.get(codes.OF_YP)
        if not hasattr(fy, "tocsc"):
            return None
        if status == codes.OK and np.isfinite(fy.data).all() and np.isfinite(fyp.data).all():
            return singular_pencil(fyp, fy, size)
    return None
