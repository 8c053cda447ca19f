"""A start on the constraints G(t0, y0) = 0."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tether._core import constraints as core
from tether._core import probe, project
from tether._core.adapters import raise_user_error
from tether._core.state import State
from tether.base.reason import Kind, Reason, Row
from tether.structure.start import Start, changed_values

if TYPE_CHECKING:
    from tether.plan.constraints import Constraints

# A projection has failed if it leaves more than this share of a constraint's value ...
STILL_THERE = 1e-3
# ... unless the rest is below this share of the constraint's linearised terms.
LEFT_OVER = 1e-10
NOTHING = Reason(Kind.NOTHING)


def start_on_constraints(
    state: State, t: float, y: np.ndarray, constraints: Constraints, accept: bool
) -> Start:
    """Project the starting values; refuse if that moves one by more than its tolerance (HK).

    The refusal is a failed `Start` whose reason has the constraint, its value and the change that
    would be needed.
    """
    nowhere = np.zeros_like(y)
    if probe.move_to(state, t, y, nowhere) != 0:
        return Start(y, nowhere, True, NOTHING)
    status, before = core.constraints_at(state, t, y)
    raise_user_error(state)
    if status != 0:
        return _refusal(y, Reason(Kind.CONSTRAINT_NOT_FINITE))
    status, projected = project.projected(state, t, y)
    raise_user_error(state)
    worst = int(abs(before).argmax())
    if status != 0 or _is_stuck(state, t, before, projected):
        row = Row(constraint=constraints.name_of(state, worst))
        return _refusal(
            y, Reason(Kind.NOT_ON_CONSTRAINTS, (row,), values=(float(before[worst]),))
        )
    change = projected - y
    if not accept and probe.weighted_size(state, change) > 1.0:
        beyond = np.abs(change) * state.weights
        farthest = int(np.argmax(beyond))
        row = Row(constraint=constraints.name_of(state, worst))
        values = before[worst], change[farthest], projected[farthest], beyond[farthest]
        return _refusal(y, Reason(
            Kind.FAR_FROM_CONSTRAINTS, (row,), (farthest,), tuple(map(float, values))
        ))
    moved = changed_values(projected, y, state.tolerances)
    done = Reason(Kind.MOVED_ONTO_CONSTRAINTS, values=(len(moved),)) if moved else NOTHING
    return Start(projected, nowhere, True, done, moved=moved)


def _is_stuck(state: State, t: float, before: np.ndarray, projected: np.ndarray) -> bool:
    """Whether a constraint is hardly smaller than before and still larger than round-off."""
    _, after = core.constraints_at(state, t, projected)
    raise_user_error(state)
    slopes = abs(state.constraint_slopes)
    round_off = LEFT_OVER * slopes @ (np.abs(projected) + state.tolerances)
    return bool(np.any(np.abs(after) > np.maximum(STILL_THERE * np.abs(before), round_off)))


def _refusal(y: np.ndarray, reason: Reason) -> Start:
    return Start(y, np.zeros_like(y), False, reason, on_constraints=False)
