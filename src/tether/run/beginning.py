"""The beginning of a run: choose a model, and find a start for it."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tether.base.reason import Kind, Reason
from tether.base.status import Status
from tether.plan.choose import find_model
from tether.plan.memory import new_state
from tether.plan.model import AsWritten, Model
from tether.run import replan
from tether.run.floating import (
    determine_floating,
    holds_sides,
    jump_less,
    leaks_of_many,
)

if TYPE_CHECKING:
    from tether.run.integration import Integration

__all__ = ["begin"]

# Equations that switch with time are evaluated at least so many times: whatever lasts for a
# fiftieth of the interval is not stepped over.
LEAST_STEPS = 100
CHANGED_ALGEBRAIC = Kind.CHANGED_ALGEBRAIC     # asking an `Enum` for a member takes long


def begin(
    run: Integration, t: float, y: np.ndarray, yp: np.ndarray | None, t_bound: float
) -> None:
    """Choose what `run` integrates from (t, y) on, and begin there."""
    _begin_timed(run, t, y, yp, t_bound)
    if not run.start.success and run.trust.differs_at_start(t, y, yp):
        _begin_timed(run, t, y, yp, t_bound)
    if not run.start.success and (error := run.model.exception_at(t, y, yp)) is not None:
        raise error                        # as if the function had been called
    run.plans = 1
    run.record_jumps(y if run.beside else None)
    if run.state.highest_kind > 2 and run.state.n_constraints and run.start.success:
        _refuse_constraints(run, t)


def _begin_timed(
    run: Integration, t: float, y: np.ndarray, yp: np.ndarray | None, t_bound: float
) -> None:
    began = time.perf_counter()
    _begin_near(run, t, y, yp, t_bound)
    replan.follow_surfaces(run)
    run.trust.add_seconds(time.perf_counter() - began)


def _begin_near(
    run: Integration, t: float, y: np.ndarray, yp: np.ndarray | None, t_bound: float
) -> None:
    """Begin at the given values, or from a better guess if necessary."""
    _begin_at(run, t, y, yp, t_bound)
    if not run.start.success and run.options.repairs_start:
        from tether.start.singular import LARGE  # late, to save time

        if run.state.n > LARGE and run.start.status == Status.SINGULAR_SYSTEM:
            return                         # no other values help, and searching is expensive
        from tether.start.rescue import better_guess  # late, to save time

        slopes = np.zeros_like(y) if yp is None else yp
        guess = better_guess(run.model, run.state, t, y, slopes, run.units)
        if guess is None or not _begin_from(run, guess, t, y, t_bound):
            replan.try_another_plan(run, t, y, yp)
        if run.start.success:
            jump_less(run, t, y, replan.replan)
        else:
            determine_floating(run, t, y, replan.replan)
        if not run.start.success and yp is None:
            _blame_slopes(run, t, y)
        return
    if yp is None:
        replan.choose_by_slopes(run, t, y)
    jump_less(run, t, y, replan.replan)
    if run.by_pairs and run.start.success and not holds_sides(run):
        determine_floating(run, t, y, replan.replan)
    if run.start.reason.kind is CHANGED_ALGEBRAIC and run.options.repairs_start:
        from tether.start.rescue import with_same_signs  # late, to save time

        guess = with_same_signs(run.model, run.state, t, y, run.start.y, run.units)
        if guess is not None:
            _begin_from(run, guess, t, y, t_bound)


def _begin_from(
    run: Integration, guess: np.ndarray, t: float, y: np.ndarray, t_bound: float
) -> bool:
    """Begin with other values than those given; tell whether that worked."""
    kept, residual_before = run.kept(), run.start.residual[0]
    _begin_at(run, t, guess, None, t_bound)
    if not run.start.success:
        run.go_back_to(kept)
        return False
    replan.choose_by_slopes(run, t, guess)
    found = run.start
    moved = {j: float(v - y[j]) for j, v in enumerate(found.y[: run.n]) if v != y[j]}
    reason = Reason(CHANGED_ALGEBRAIC, values=(len(moved),))
    residual = residual_before, found.residual[1]
    run.start = replace(found, moved=moved, reason=reason, residual=residual)
    return True


def _begin_at(
    run: Integration, t: float, y: np.ndarray, yp: np.ndarray | None, t_bound: float
) -> None:
    """Choose a model at a point, and find a start near it."""
    run.model = _find_model(run, t, y, yp)
    if leaks := leaks_of_many(run, t, y, t_bound):
        run.beside, run.t_beside, run.by_pairs = leaks, t, True
        run.model = _find_model(run, t, y, yp)
    run.state = new_state(run.model, run.options)
    run.state.given = t, y, yp
    run.state.t_end = t_bound
    run.state.direction = math.copysign(1.0, t_bound - t)
    if run.model.is_switched_by_time:
        longest = abs(t_bound - t) / LEAST_STEPS
        run.state.max_step = min(run.options.max_step, longest)
    _attach_constraints(run, t, y)
    run.read_constraints()
    run.restart(t, y, yp, run.options.first_step, run.options.start)


def _find_model(
    run: Integration, t: float, y: np.ndarray, yp: np.ndarray | None
) -> Model:
    """Trace the problem if that is wanted and possible."""
    options = run.options
    if options.trace == "never" or options.is_matrix_free:
        return AsWritten(run.problem, run.n, (t, y, yp))
    model, note = find_model(
        run.problem, t, y, yp, options.form, options.backend, run.units,
        beside=run.beside, by_pairs=run.by_pairs, taped=run.tape is not None,
    )
    if difference := run.trust.refuses(model, t, y, yp):
        model, note = AsWritten(run.problem, run.n, (t, y, yp)), difference
        run.trust.adopt(model)
    if note and options.trace == "always":
        raise ValueError(f"trace='always', but fun cannot be traced: {note}")
    run.note = note
    return model


def _attach_constraints(run: Integration, t: float, y: np.ndarray) -> None:
    """Let the state hold the constraints: as programs where these agree with the functions."""
    constraints, args = run.model.constraints, run.problem.args
    constraints.attach(run.state, t, y, args, run.options)
    while constraints.traced and run.trust.refuses_constraints(t, y):
        constraints.attach(run.state, t, y, args, run.options)


def _blame_slopes(run: Integration, t: float, y: np.ndarray) -> None:
    """Find out whether a start failed only because it is not clear which y' is meant."""
    from tether.start.nonlinear_slopes import nonlinear_slopes  # late, to save time

    columns = nonlinear_slopes(run.model, run.state, t, y, run.units)
    if columns:
        run.status = Status.NO_CONSISTENT_START
        run.start = replace(
            run.start, reason=Reason(Kind.SLOPES_NOT_UNIQUE, columns=columns),
            status=run.status,
        )


def _refuse_constraints(run: Integration, t: float) -> None:
    """Raise an error for constraints on what index 3 as written finds by differences."""
    found = run.model.constraints.first_on(run.state, t, run.start.y, run.state.kinds > 1)
    if found is not None:
        raise ValueError(
            f"{found[0]}: at index 3 as written nothing that depends on "
            f"{run.names.variable(found[1])} can be kept: it is the difference of other "
            "unknowns, and a projection would be undone. Pass form='auto' (with a function "
            "that can be traced), or equations of a lower index"
        )
