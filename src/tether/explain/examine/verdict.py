"""The checks in their order: the first that finds something gives the diagnosis."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tether.base.status import Status
from tether.explain.causes import UNTRACED, Cause
from tether.explain.diagnosis import Diagnosis
from tether.explain.examine.case import Case
from tether.explain.examine.failure import (
    discontinuity,
    index,
    mixed_index,
    noise,
    not_finite,
    not_solved,
    single_precision,
    singular,
    singular_configuration,
    singular_from_the_start,
    unknown,
    vanishing_tolerance,
)
from tether.explain.examine.jacobian import fatal_jacobian, wrong_jacobian
from tether.explain.examine.limits import (
    contradiction,
    creeping,
    event_storm,
    limit,
    out_of_memory,
    too_accurate,
    trace_differs,
)
from tether.explain.examine.raised import raised
from tether.explain.examine.round_off import condition, round_off
from tether.explain.examine.singularity import singularity
from tether.explain.examine.start import at_the_start

if TYPE_CHECKING:
    from tether.run.drive import Driver
    from tether.run.integration import Integration

__all__ = ["diagnose"]

# These statuses already say what happened; for others the reason is looked for.
BY_STATUS = {
    Status.TOO_ACCURATE: too_accurate,
    Status.ZERO_WEIGHT: too_accurate,
    Status.CONTRADICTION: contradiction,
    Status.NOT_ON_CONSTRAINTS: contradiction,
    Status.EVENT_STORM: event_storm,
    Status.NO_PROGRESS: lambda case: mixed_index(case) or creeping(case),
    Status.MAX_STEPS: limit,
    Status.MAX_SECONDS: limit,
    Status.OUT_OF_MEMORY: out_of_memory,
    Status.EQUATIONS_CHANGED: lambda case: case.say(Cause.CHANGED, t=case.t),
    Status.TRACE_DIFFERS: trace_differs,
    Status.INTERRUPTED: lambda case: case.say(Cause.STOPPED, t=case.t),
}


def diagnose(run: Integration, driver: Driver | None = None, *, before: bool = False) -> Diagnosis:
    """Find out why a run failed.

    Parameters
    ----------
    run : Integration
        The integrator, where it stopped.
    driver : Driver, optional
        The run with its events.
    before : bool
        Check the Jacobian too, as nothing has failed yet.

    Examples
    --------
    >>> from tether.run.integration import Integration
    >>> from tether.explain.examine import diagnose
    >>> options = {"rtol": 1e-17, "atol": 0}
    >>> run = Integration(lambda t, y, yp: [yp[0] + y[0]], 0.0, [1.0], options=options)
    >>> run.step().name, diagnose(run).cause.value
    ('TOO_ACCURATE', 'tolerance')
    """
    case = Case(run, driver)
    with np.errstate(all="ignore"):
        found = (wrong_jacobian(case) if before else None) or _by_status(case)
        return replace(_blame_refusal(run, found), exception=run.exception)


def _blame_refusal(run: Integration, found: Diagnosis) -> Diagnosis:
    """Say first that a function was called, if tracing it might have avoided the failure."""
    if run.model.plan is not None or not run.note or run.problem.capsule is not None:
        return found
    if found.cause not in UNTRACED:
        return found
    words = (f"The function was called, since it cannot be traced ({run.note}). If it could, "
             f"{UNTRACED[found.cause]}.")
    return replace(
        found,
        summary=f"{words} {found.summary}",
        untraced=words,
        remedies=(
            "write that line so that it can be traced (docs/explanation/tracing.md)",
            *found.remedies,
        ),
    )


def _by_status(case: Case) -> Diagnosis:
    if not case.status.failed:
        return case.say(Cause.NONE)
    if not case.run.start.success:
        return (
            not_solved(case) or noise(case) or single_precision(case) or wrong_jacobian(case)
            or raised(case) or at_the_start(case)
        )
    if case.status in BY_STATUS:
        return BY_STATUS[case.status](case)
    checks = [
        not_solved, noise, fatal_jacobian, raised, not_finite, mixed_index,
        singular_configuration, single_precision, vanishing_tolerance,
    ]
    # at index 2 and 3 round-off in short steps can look like any other cause
    checks += [index] if case.lost_in_round_off else [
        discontinuity, singular_from_the_start, singularity, index, singular,
    ]
    checks += [round_off, condition, wrong_jacobian]
    found = (check(case) for check in checks)
    return next((verdict for verdict in found if verdict is not None), None) or unknown(case)
