"""Size of the first step."""

from __future__ import annotations

import math

import numpy as np

from tether._core import probe
from tether._core.sparse import Sparse
from tether._core.state import State
from tether.structure.start import Start

# Of the interval: the longest first step, and that between two breaks, where intervals are short.
SHARE_OF_SPAN = 1e-3
SHARE_BETWEEN_BREAKS = 0.1
# Of the tolerance: the error of the first step, h^2 |y''| / 2, aims at this.
TARGET = 0.25
# At index 2 as written multipliers are off by h |y''| / 2 at order 1: so much shorter it is there.
SHORTER = 1.0 / 16.0
# How many times longer a first step might become, to pay for factors of the iteration matrix ...
WORTHWHILE = 8.0
# ... and by how much it is to be longer in the end.
LONGER = 2.0
# Trials of longer first steps.
TRIALS = 3
TINY = 1e-300


def first_step(state: State, start: Start, between_breaks: bool = False) -> float:
    """Choose the first step so that the error of order 1 meets the tolerance, math (17).

    The interval may be that `between_breaks`: nothing else switches by time in it. Zero leaves the
    choice to the core, which knows only the slope.
    """
    if start.ypp is None:
        return 0.0
    curvature = probe.weighted_size(state, start.ypp)
    span = abs(state.t_end - state.t)
    share = SHARE_BETWEEN_BREAKS if between_breaks else SHARE_OF_SPAN
    h = min(share * span, state.max_step)
    if curvature > 0.0:
        shortest = math.sqrt(2.0 * TARGET / curvature)
        if WORTHWHILE * shortest < h < math.inf and isinstance(state.matrix, Sparse):
            h = _with_damping(state, start.ypp, shortest, h)
        else:
            h = min(shortest, h)
    if state.highest_kind == 2 and not state.exact_at_steps:
        h *= SHORTER
    return h if math.isfinite(h) else 0.0


def _with_damping(state: State, ypp: np.ndarray, shortest: float, longest: float) -> float:
    """Choose the first step by the error that it will have, h^2 y'' / 2 damped by the step itself.

    On fine grids y'' is mostly what the equations make of the round-off in y.
    """
    if state.highest_kind > 1:
        return shortest
    h = longest
    for _ in range(TRIALS):
        curvature = probe.damped_size(state, ypp, h)
        if not curvature < math.inf:
            break
        tried, h = h, min(h, math.sqrt(2.0 * TARGET / max(curvature, TINY)))
        if h < LONGER * shortest:
            break
        if h >= tried / 2:                 # there the step damps half as much, or more
            return h
    return shortest
