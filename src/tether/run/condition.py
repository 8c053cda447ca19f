"""How accurately linear systems with the iteration matrix can be solved."""

from __future__ import annotations

import math

from tether._core.codes import OF_Y, OF_YP
from tether._core.state import State

__all__ = ["condition_number", "unsolved_systems"]

# Share of linear systems that iterations may leave unsolved.
UNSOLVED = 0.02


def condition_number(state: State) -> float:
    """Estimate the condition number in the 1-norm from the factors.

    The matrix is the one that was factored, including any scaling.
    """
    c = state.cj_factored
    if c == 0.0 or state.matrix.has_no_entries:
        return math.nan
    matrix = state.matrix.get(OF_Y) + c * state.matrix.get(OF_YP)
    if state.scaling_mode:
        matrix = state.array("row_scale")[:, None] * matrix * state.array("column_scale")
    norm = abs(matrix).sum(axis=0).max()
    reciprocal = state.matrix.reciprocal_condition(norm)
    return math.inf if reciprocal == 0.0 else 1.0 / reciprocal


def unsolved_systems(state: State) -> str:
    """Return how many linear systems were not solved by iteration, if more than a few."""
    factors = getattr(state.matrix, "lu", None)
    failures, systems = getattr(factors, "failures", 0), getattr(factors, "solutions", 0)
    return f"{failures} of {systems}" if failures > UNSOLVED * systems else ""
