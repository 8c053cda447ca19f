"""Size of the first step."""

from __future__ import annotations

import math

import numpy as np

from tether._core import probe
from tether._core.sparse import Sparse
from tether._core.state import State
from tether.structure.start import Start

# Longest first step, as a share of the interval, and of that between two breaks, which is short.
SHARE_OF_SPAN = 1e-3
SHARE_BETWEEN_BREAKS = 0.1
# Error of the first step, h^2 |y''| / 2, that is aimed at, in tolerances.
TARGET_ERROR = 0.25
# Factor for index 2 as written, where multipliers are off by h |y''| / 2 at order 1.
INDEX_2_FACTOR = 1.0 / 16.0
# A longer step, which takes factorisations, is looked for if it could be this many times longer ...
WORTH_TRYING = 8.0
# ... and taken if it is at least this many times longer.
WORTH_TAKING = 2.0
MAX_TRIALS = 3
TINY = 1e-300


def first_step(state: State, start: Start, between_breaks: bool = False) -> float:
    """Choose the first step so that the error of order 1 meets the tolerance, math (17).

    With `between_breaks` the interval lies between two breaks, so that nothing switches by time in
    it. A result of zero leaves the choice to the core, which knows only the slope.
    """
    if start.ypp is None:
        return 0.0
    curvature = probe.weighted_size(state, start.ypp)
    span = abs(state.t_end - state.t)
    share = SHARE_BETWEEN_BREAKS if between_breaks else SHARE_OF_SPAN
    h = min(share * span, state.max_step)
    if curvature > 0.0:
        shortest = math.sqrt(2.0 * TARGET_ERROR / curvature)
        if WORTH_TRYING * shortest < h < math.inf and isinstance(state.matrix, Sparse):
            h = _with_damping(state, start.ypp, shortest, h)
        else:
            h = min(shortest, h)
    if state.highest_kind == 2 and not state.exact_at_steps:
        h *= INDEX_2_FACTOR
    return h if math.isfinite(h) else 0.0


def _with_damping(state: State, ypp: np.ndarray, shortest: float, longest: float) -> float:
    """Choose the first step by the error that it will have, h^2 y'' / 2 damped by the step itself.

    On fine grids y'' is mostly amplified round-off of y.
    """
    if state.highest_kind > 1:
        return shortest
    h = longest
    for _ in range(MAX_TRIALS):
        curvature = probe.damped_size(state, ypp, h)
        if not curvature < math.inf:
            break
        tried, h = h, min(h, math.sqrt(2.0 * TARGET_ERROR / max(curvature, TINY)))
        if h < WORTH_TAKING * shortest:
            break
        if h >= tried / 2:                 # damps at least half as much as the step that was tried
            return h
    return shortest
