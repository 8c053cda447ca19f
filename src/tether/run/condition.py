"""Condition number of the iteration matrix."""

from __future__ import annotations

import math

import numpy as np

from tether._core.state import State

__all__ = ["condition_number"]


def condition_number(state: State) -> float:
    """Estimate it in the 1-norm from the factors, as LAPACK's gecon does: a few solutions.

    The matrix is the one that was factored, scaled if scaling was asked for.
    """
    n, c = state.n, state.cj_factored
    if c == 0.0:
        return math.nan
    from scipy.linalg.lapack import dgecon

    matrix = (state.array("fy") + c * state.array("fyp")).reshape(n, n).T
    if state.scaling_mode:
        matrix = state.array("row_scale")[:, None] * matrix * state.array("column_scale")
    norm = np.abs(matrix).sum(axis=0).max()
    reciprocal, _ = dgecon(state.array("lu").reshape(n, n).T, norm)
    return math.inf if reciprocal == 0.0 else 1.0 / float(reciprocal)
