"""Condition number of the iteration matrix."""

from __future__ import annotations

import math

from tether._core.codes import OF_Y, OF_YP
from tether._core.state import State

__all__ = ["condition_number"]


def condition_number(state: State) -> float:
    """Estimate it in the 1-norm from the factors.

    The matrix is the one that was factored, scaled if scaling was asked for.
    """
    c = state.cj_factored
    if c == 0.0:
        return math.nan
    matrix = state.matrix.get(OF_Y) + c * state.matrix.get(OF_YP)
    if state.scaling_mode:
        matrix = state.array("row_scale")[:, None] * matrix * state.array("column_scale")
    norm = abs(matrix).sum(axis=0).max()
    reciprocal = state.matrix.reciprocal_condition(norm)
    return math.inf if reciprocal == 0.0 else 1.0 / reciprocal
