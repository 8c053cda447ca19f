"""After a failure: examine the equations at the current point, and continue from there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tether._core import codes, probe
from tether._core.adapters import raise_user_error
from tether.base.reason import Kind, Reason
from tether.base.status import Status
from tether.plan.memory import new_state
from tether.run import replan
from tether.run.floating import determine_floating
from tether.run.kinds import use_kinds
from tether.start.consistent import residual_at
from tether.start.find import kinds_at
from tether.structure.leaks import find_leaks
from tether.structure.pencil import Pencil
from tether.structure.start import Start

if TYPE_CHECKING:
    from tether.run.integration import Integration

__all__ = [
    "add_leaks",
    "goes_on",
    "kinds_here",
    "restart_consistently",
    "restart_unfrozen",
    "update_kinds",
]

# Largest change of y when a run restarts from consistent values: in tolerances, which can be tiny
# where an unknown crosses zero, plus this share of the change in a step.
LARGEST_IN_TOLERANCES = 100.0
LARGEST_IN_STEPS = 0.01
# Failures that may mean that the index of the equations has changed ...
INDEX_MAY_DIFFER = (Status.ERROR_TEST_FAILED, Status.NO_CONVERGENCE, Status.SINGULAR_MATRIX)
# ... or that they leave something undetermined ...
MAY_BE_OPEN = (*INDEX_MAY_DIFFER, Status.SMALLER_IS_WORSE)
# ... or that hidden constraints have changed, or must be chosen again.
PLAN_MAY_DIFFER = (
    *INDEX_MAY_DIFFER, Status.NON_FINITE, Status.SMALLER_IS_WORSE, Status.NOT_ON_CONSTRAINTS,
    Status.CONTRADICTION,
)


def goes_on(run: Integration, code: int) -> bool:
    """Try what may help after the core has returned with a code; tell whether the run goes on."""
    if code >= 0 and code != codes.STRUCTURE_IN_DOUBT:
        return False                           # nothing has failed
    s = run.state
    if code == codes.STRUCTURE_IN_DOUBT and s.rank_changed:
        replan.judge_rank(run)
        return True
    if code == codes.STRUCTURE_IN_DOUBT and s.lowest_order > 1 and restart_consistently(run):
        return True
    if code == codes.STRUCTURE_IN_DOUBT or code in INDEX_MAY_DIFFER:
        changed = update_kinds(run)
        if changed or code == codes.STRUCTURE_IN_DOUBT:
            return True
    if code in MAY_BE_OPEN and (_add_leaks_beside(run) or add_leaks(run)):
        return True
    if code not in PLAN_MAY_DIFFER:
        return False
    return _choose_sides(run) or restart_unfrozen(run) or replan.rescue(run)


def _add_leaks_beside(run: Integration) -> bool:
    """Let leaks beside ideal diodes determine what floats; tell whether the run continues."""
    y = run.y
    if not determine_floating(run, run.t, y, replan.replan, always=False):
        return False
    run.record_jumps(y)
    return True


def _choose_sides(run: Integration) -> bool:
    """Choose the sides of ideal diodes anew if they are surfaces between modes."""
    t, y = run.t, run.y
    if not run.by_pairs or t == run.floated_at:
        return False
    run.floated_at = t
    if not determine_floating(run, t, y, replan.replan):
        return False
    run.record_jumps(y)
    return True


def update_kinds(run: Integration) -> bool:
    """Continue from here if the unknowns turn out to have other kinds."""
    s = run.state
    if run.model.is_index_1:
        return False                       # the kinds follow from the reduction
    t, y, yp = s.t, s.y_now.copy(), s.yp_now.copy()
    s.review_after = 2 * s.steps + 100
    from tether.start.high_index import refuse_pencil  # late, to save time

    pencil = kinds_here(run)
    s.jacobian_exists = False              # it has failed, whatever the kinds are
    if pencil is None or refuse_pencil(pencil) is not None:
        return False
    if not use_kinds(s, run.model, run.options, pencil):
        return False
    probe.move_to(s, t, y, yp)
    as_it_is = Start(y, yp, True, Reason(Kind.NOTHING))
    return run.method.begin(s, t, as_it_is, 0.0) == codes.OK


def kinds_here(run: Integration) -> Pencil | None:
    """Determine the kinds of the unknowns at the current point, in a separate state."""
    s = run.state
    aside = new_state(run.model, run.options)
    aside.t_end, aside.direction, aside.h = s.t_end, s.direction, s.h
    pencil = kinds_at(aside, run.model, s.t, s.y_now.copy(), s.yp_now.copy())
    s.nfev += aside.nfev
    s.njev += aside.njev
    return pencil


def restart_consistently(run: Integration) -> bool:
    """At index 3 as written: restart from consistent values next to the current ones.

    The current velocities deviate from their hidden constraints by errors within the tolerance. A
    much shorter step would turn these into multipliers.
    """
    s = run.state
    if s.t == s.t_began:
        return False
    t, y, yp = s.t, s.y_now.copy(), s.yp_now.copy()
    first_step, allowed = abs(s.h), LARGEST_IN_TOLERANCES / s.share * s.tolerances
    allowed += LARGEST_IN_STEPS * np.abs(s.last_h * yp)
    allowed[s.kinds > 2] = np.inf
    s.t_began = t                          # only once at this time
    found = run.finder.find(t, y, yp, "auto")
    probe.move_to(s, t, y, yp)
    if not found.success or np.any(np.abs(found.y - y) > allowed):
        return False
    return run.method.begin(s, t, found, first_step) == codes.OK


def restart_unfrozen(run: Integration) -> bool:
    """Continue from here with all frozen conditions left free."""
    if not run.switching.free_all():
        return False
    s = run.state
    as_it_is = Start(s.y_now.copy(), s.yp_now.copy(), True, Reason(Kind.NOTHING))
    return run.method.begin(s, s.t, as_it_is, 0.0) == codes.OK


def add_leaks(run: Integration) -> bool:
    """Where a run has failed, let tiny terms determine what the equations leave open.

    Tell whether the run continues.
    """
    s, model = run.state, run.model
    if model.plan is None or model.reduced is not None or model.shares or run.leaks:
        return False
    t, y, yp = s.t, s.y_now.copy(), s.yp_now.copy()
    status, fy, fyp = probe.jacobian_at(s, t, y, yp)
    raise_user_error(s)
    probe.move_to(s, t, y, yp)
    traced = model.plan.traced
    assert traced is not None
    if status != codes.OK:
        return False

    def residual(there: np.ndarray) -> np.ndarray | None:
        return residual_at(s, t, there, yp)

    run.leaks = find_leaks(traced, fy, fyp, s.last_h, y, s.tolerances.copy(), residual)
    if not run.leaks:
        return False
    kept, point = (run.start, run.status, run.given), (t, y, yp)
    replan.replan(run, point, model.sides or None)
    run.restart(t, y, None)
    if run.start.success and run.status == Status.RUNNING:
        run.t_leaks = t
        run.record_jumps()
        return True
    run.leaks = ()
    replan.replan(run, point, model.sides or None)
    run.start, run.status, run.given = kept
    return False
