"""Runs that ended for a reason that the status names: tolerances, constraints, events, limits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tether._core import codes
from tether._core.probe import full
from tether.base.capacity import in_words
from tether.base.status import Status
from tether.explain.causes import Cause
from tether.explain.diagnosis import Diagnosis
from tether.explain.examine.case import EPS, MOST_UNKNOWNS, Case
from tether.explain.examine.failure import (
    IN_ONE_POSITION,
    discontinuity,
    say_break,
    singular_configuration,
    worst_components,
)
from tether.explain.examine.singularity import singularity

__all__ = [
    "contradiction", "creeping", "event_storm", "limit", "out_of_memory", "too_accurate",
    "trace_differs",
]


# Attempts within which constraints notice a jump in the equations.
LATEST_NOTICE = 12
NEARLY_DEPENDENT = 1e-4              # smallest singular value, relative to the largest
SHRINKING_GAP = 0.5                  # interval between events, relative to that some events before
LIMITED_BY_MAX_STEP = 0.99           # share of max_step from which a step counts as limited by it
LEAST_SPACINGS = 100.0               # least tolerance, in spacings of floating-point numbers


def too_accurate(case: Case) -> Diagnosis:
    """Name the unknown whose tolerance is out of reach."""
    rtol, atol = case.run.options.tolerances(case.n)
    size = rtol * np.abs(case.y) + atol
    if case.status == Status.ZERO_WEIGHT:
        worst = int(np.argmin(size))
        what = f"{case.names.variable(worst)} is {case.y[worst]:.3g} and its atol is zero"
    else:
        worst = int(np.argmax(np.abs(case.y) / np.maximum(size, 1e-300)))
        what = (
            f"{case.names.variable(worst)} = {case.y[worst]:.6g} is to be kept within "
            f"{size[worst]:.2g}, which is {size[worst] / (EPS * abs(case.y[worst])):.2g} times the "
            f"spacing of floating-point numbers; the least possible is {LEAST_SPACINGS:g} times, "
            f"rtol = {LEAST_SPACINGS * EPS:.1e}"
        )
    return case.say(Cause.TOLERANCE, what, (), case.t, (), [worst])


def contradiction(case: Case) -> Diagnosis:
    """Distinguish a jump some steps ago from a constraint that contradicts the equations."""
    h = np.abs(case.steps["h"])
    jump = case.break_within(h[-LATEST_NOTICE:].sum()) if case.longest_step else None
    if jump is None and case.recent_break is not None and case.recent_break.jump:
        jump = case.recent_break               # no step has passed it, and the last are tiny
    if jump is not None:
        return say_break(case, jump)
    folded = singular_configuration(case)
    if folded is not None:
        return folded
    constraints = case.run.model.constraints
    jump = case.constraint_break(h.sum()) if case.longest_step else None
    if jump is not None:
        name = constraints.name_of(case.state, jump.row)
        return case.say(
            Cause.DISCONTINUITY, f"the function {name}, {jump.words}",
            ["the projection onto it could not follow"], jump.t,
        )
    values = case.constraint_values(case.t, case.whole_y)
    g = np.zeros(case.state.n_constraints) if values is None else values
    worst = int(np.argmax(np.where(np.isfinite(g), np.abs(g), np.inf)))
    # hidden constraints cannot contradict the equations as long as these have a solution
    ended = _dead_centre(case) or singularity(case) if worst < constraints.n_found else None
    if ended is not None:
        return ended
    sizes = case.steps["projection"][-8:]
    evidence = [
        f"its value is {g[worst]:.3g} instead of 0",
        f"the last projections moved the solution by {sizes.max():.3g} times the tolerance",
    ]
    return case.say(
        Cause.CONTRADICTION, constraints.name_of(case.state, worst), evidence, case.t
    )


def _dead_centre(case: Case) -> Diagnosis | None:
    """Recognise constraints that nearly depend on each other where the projection fails."""
    s = case.state
    if s.gy_sparse and s.n > MOST_UNKNOWNS:
        return None
    gy = full(s.constraint_slopes)
    size = np.abs(gy).max(axis=1, keepdims=True)
    if not (np.isfinite(gy).all() and size.all()):
        return None
    values = np.linalg.svd(gy / size, compute_uv=False)
    if values[-1] > NEARLY_DEPENDENT * values[0]:
        return None
    return case.say(
        Cause.SINGULAR, "the constraints nearly depend on each other, as at a dead centre",
        [f"the smallest singular value of their Jacobian is {values[-1] / values[0]:.1g} of the "
         "largest"],
        case.t, situation=IN_ONE_POSITION,
    )


def event_storm(case: Case) -> Diagnosis:
    """Say which events pile up, and where."""
    assert case.driver is not None
    storm = case.driver.storm
    if storm.circle:
        *others, last = (f"events[{number}]" for number in storm.circle)
        who = f"{', '.join(others)} and {last} set each other off" if others else f"{last} recurs"
        return case.say(
            Cause.EVENT_STORM, f"{who} over and over at this one time", [], storm.t,
            situation="at one time",
        )
    times = storm.times
    shown = ", ".join(f"{gap:.2g}" for gap in storm.gaps[-4:])
    return case.say(
        Cause.EVENT_STORM,
        f"the last {len(times)} changes of the state came within {abs(times[-1] - times[0]):.2g}",
        [f"the last intervals between them are {shown}"], storm.t,
        situation="" if storm.gaps[-1] < SHRINKING_GAP * storm.gaps[0] else "at equal intervals",
    )


def _pace(case: Case) -> str:
    s = case.state
    left = abs(s.t_end - s.t) / max(abs(s.last_h), 1e-300)
    return (
        f"{s.steps} steps were taken, the last of size {abs(s.last_h):.3g} at order {s.last_k}; "
        f"at this pace {left:.1g} more are needed"
    )


def limit(case: Case) -> Diagnosis:
    """Say how far the run has come, and what may have slowed it down."""
    options = case.run.options
    what = (
        f"the limit of {options.max_steps} steps was reached"
        if case.status == Status.MAX_STEPS
        else f"the limit of {options.max_seconds:g} s was reached"
    )
    evidence = [_pace(case)]
    suspicion = singularity(case) if case.recent_break is None else discontinuity(case)
    if suspicion is not None:
        evidence.append(suspicion.summary.rstrip("."))
    limited = LIMITED_BY_MAX_STEP * options.max_step
    at_max_step = len(case.steps) and np.abs(case.steps["h"]).min() >= limited
    return case.say(
        Cause.LIMIT, what, evidence, case.t,
        situation="where max_step limits the steps" if at_max_step else "",
    )


def out_of_memory(case: Case) -> Diagnosis:
    """Say how much memory the steps take."""
    size = in_words(case.driver.record.size) if case.driver is not None else "all memory"
    what = f"the {case.state.steps} steps that were kept take {size}, and twice as much is not free"
    return case.say(Cause.MEMORY, what, [_pace(case)], case.t)


def creeping(case: Case) -> Diagnosis:
    """Say where a run made no progress, and what may be the reason."""
    evidence = [_pace(case)]
    rows: list[int] = []
    if (found := case.recent_break) is not None:
        rows = [found.row]
        evidence.append(
            f"{case.names.equation(found.row)} {found.words} at t = {found.t:.10g}, right where "
            "the solution is"
        )
    elif (suspicion := singularity(case)) is not None:
        if suspicion.cause == Cause.BLOW_UP:
            return replace(suspicion, evidence=(*suspicion.evidence, *evidence))
        evidence.append(suspicion.summary.rstrip("."))
    columns = worst_components(case)
    if not columns and rows and case.jacobians_here is not None:
        columns = [int(np.argmax(np.abs(case.jacobians_here[1][rows[0]])))]
    failed = case.steps["outcome"] != codes.OK
    what = (
        f"the last {case.driver.pace.crept if case.driver else 0} steps hardly advanced the time, "
        f"at t = {case.t:.10g}"
    )
    if failed.any():
        evidence.append(f"{failed.sum()} of the last {len(failed)} attempts failed")
    return case.say(Cause.CREEPING, what, evidence, case.t, rows, columns)


def trace_differs(case: Case) -> Diagnosis:
    """Say where the function and its trace do not agree."""
    always = case.run.options.trace == "always"
    what, situation = case.run.trust.warnings[-1], "where trace='always' was passed"
    return case.say(Cause.TRACE, what, (), case.t, situation=situation if always else "")
