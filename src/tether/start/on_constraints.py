"""A start on the constraints G(t0, y0) = 0."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tether._core import constraints as core
from tether._core import probe, project
from tether._core.adapters import raise_users
from tether._core.state import State
from tether.start.consistent import Start

if TYPE_CHECKING:
    from tether.plan.constraints import Constraints

# Of the residual at the start: what a projection that works leaves far behind.
STILL_THERE = 1e-3
# Of the linearised terms of a constraint: what may be left of it all the same.
LEFT_OVER = 1e-10


def start_on_constraints(
    state: State, t: float, y: np.ndarray, constraints: Constraints, accept: bool
) -> Start:
    """Project the starting values; refuse if that moves one beyond its tolerance (HK).

    The refusal is a failed `Start` whose message shows the constraint, its value and the change
    that would be needed.
    """
    nowhere = np.zeros_like(y)
    if probe.move_to(state, t, y, nowhere) != 0:
        return Start(y, nowhere, True, "")
    status, before = core.constraints_at(state, t, y)
    raise_users(state)
    if status != 0:
        return _refusal(y, "a constraint is not finite at the starting values")
    state.t_new = t
    status = project.project_point(state)
    raise_users(state)
    projected = state.y_tried.copy()
    worst = int(abs(before).argmax())
    if status != 0 or _is_stuck(state, t, before, projected):
        return _refusal(
            y,
            f"{_value(constraints, state, before, worst)} and cannot be brought to zero near y0; "
            "check it, or the constraints contradict or depend on each other",
        )
    change = projected - y
    if not accept and probe.weighted_size(state, change) > 1.0:
        beyond = np.abs(change) * state.weights
        farthest = int(np.argmax(beyond))
        return _refusal(
            y,
            f"{_value(constraints, state, before, worst)}; the nearest point on the constraints "
            f"changes y0[{farthest}] by {change[farthest]:.3g} to {projected[farthest]:.6g}, "
            f"{beyond[farthest]:.3g} times its tolerance. Correct y0, or pass "
            "options={'accept_projected_start': True}",
        )
    moved = {int(i): float(change[i]) for i in change.nonzero()[0]}
    message = f"moved {len(moved)} values onto the constraints" if moved else ""
    return Start(projected, nowhere, True, message, moved)


def _is_stuck(state: State, t: float, before: np.ndarray, projected: np.ndarray) -> bool:
    """Whether a constraint was hardly made smaller and is left with more than round-off."""
    _, after = core.constraints_at(state, t, projected)
    raise_users(state)
    slopes = np.abs(state.constraint_slopes)
    round_off = LEFT_OVER * slopes @ (np.abs(projected) + state.tolerances)
    return bool(np.any(np.abs(after) > np.maximum(STILL_THERE * np.abs(before), round_off)))


def _value(constraints: Constraints, state: State, before: np.ndarray, row: int) -> str:
    return f"{constraints.name_of(state, row)} is {before[row]:.3g} at the start"


def _refusal(y: np.ndarray, message: str) -> Start:
    return Start(y, np.zeros_like(y), False, message, on_constraints=False)
