"""Runs that could not begin: no consistent values, or equations that do not determine them."""

from __future__ import annotations

import numpy as np

from tether._core import probe
from tether.base.reason import Kind
from tether.base.status import Status
from tether.explain.causes import Cause
from tether.explain.describe import report_on
from tether.explain.diagnosis import Diagnosis
from tether.explain.examine.case import Case
from tether.explain.examine.failure import alone, are_derivatives, dependence, name_not_finite
from tether.explain.start_words import start_words
from tether.problem.names import listed
from tether.problem.options import Options

__all__ = ["at_the_start"]

AT_THE_START = "at the start"
SLIGHTLY_LATER = 1e-9                # relative to the time
# A residual below this is round-off.
ROUND_OFF = 1e-12
# Shift to a point where no derivative vanishes by chance.
GENERAL_SHIFT = 1e-3


def at_the_start(case: Case) -> Diagnosis:
    """Say which equation the starting values violate, or why there are no consistent ones."""
    start = case.run.start
    t, y, yp = case.run.given
    slopes = start.yp[: case.n] if yp is None else yp
    r = case.residual(t, y, slopes)
    restarted = case.driver is not None and t != case.driver.t_start
    if r is not None and not np.isfinite(r).all():
        if restarted:
            return name_not_finite(case, r, t, y, "")
        shift = case.state.direction * SLIGHTLY_LATER * (abs(t) or 1.0)
        later = case.residual(t + shift, y, slopes)
        soon = later is not None and np.isfinite(later).all()
        situation = "at the time of the start" if soon else AT_THE_START
        return name_not_finite(case, r, t, y, situation)
    slope = _infinite_slope(case, t, y, slopes)
    if slope is not None:
        return slope
    message = start_words(start.reason, case.names)
    if start.reason.kind is Kind.SLOPES_NOT_UNIQUE:
        return case.say(
            Cause.START, message, (), t, (), start.reason.columns, "where y' is not unique"
        )
    if start.status == Status.SINGULAR_SYSTEM:
        return _singular_start(case)
    if start.reason.kind is Kind.INDEX_OF_MANY:
        return case.say(
            Cause.INDEX, f"it is {start.reason.index}, judging by where derivatives occur",
            [message], t, start.reason.equations, start.reason.columns,
            "where tracing was forbidden" if case.run.options.trace == "never" else "",
        )
    if start.reason.kind is Kind.CONCEALED_INDEX:
        concealed = start.reason.index
        return case.say(
            Cause.INDEX, f"it is {concealed}, which only derivatives of the equations show",
            [message], t, (), (), "where only derivatives show the index",
        )
    if start.status == Status.INDEX_TOO_HIGH:
        pencil = start.pencil
        columns = () if pencil is None else pencil.prescribed
        index = "above 3" if pencil is None else str(pencil.index)
        return case.say(
            Cause.INDEX, f"it is {index}, and {are_derivatives(case, columns)}",
            [message], t, (), columns,
            "where tracing was forbidden" if case.run.options.trace == "never" else "",
        )
    found = case.residual(t, start.y[: case.n], start.yp[: case.n])
    matrices = case.jacobian(t, y, slopes)
    if r is not None and matrices is not None:      # equations of y alone come first
        algebraic = ~matrices[1].any(axis=1)
        r = np.where(algebraic, r, 0.0) if np.any(r[algebraic]) else r
    rows, evidence = list(start.reason.equations[:1]), [message]
    situation = "where the run restarts" if restarted else ""
    for values in (found, r):
        if values is not None and np.isfinite(values).all():
            worst = int(np.argmax(np.abs(values)))
            if abs(values[worst]) > ROUND_OFF and (not rows or rows[0] == worst):
                rows = [worst]
                return case.say(
                    Cause.START, case.value(worst, values[worst]), evidence, t, rows, (),
                    situation,
                )
    if start.reason.kind is not Kind.HIDDEN_VIOLATED or start.pencil is None:
        return case.say(Cause.START, message, (), t, rows, (), situation)
    return case.say(
        Cause.START, message, (), t, rows, np.flatnonzero(start.pencil.var_index == 2).tolist(),
        "where a derivative of an equation is violated",
    )


def _infinite_slope(
    case: Case, t: float, y: np.ndarray, yp: np.ndarray
) -> Diagnosis | None:
    """Report an infinite derivative of an equation that is finite, such as a root at zero."""
    if case.state.n != case.n:
        return None
    status, fy, _ = probe.jacobian_at(case.state, t, y, yp)
    if status != 0:
        return None
    places = np.argwhere(~np.isfinite(fy))
    if not len(places):
        return None
    row, column = places[0].tolist()
    return case.say(
        Cause.NON_FINITE,
        f"finite, but not its derivative with respect to {case.names.variable(column)} = "
        f"{y[column]:.6g},",
        case.as_formula(row), t, [row], [column], "where a slope is infinite at the start",
    )


def _singular_start(case: Case) -> Diagnosis:
    """Say which equations repeat each other, and whether the pattern alone shows it."""
    t, y, yp = case.run.given
    pencil = case.run.start.pencil
    names = case.names
    report = report_on(
        case.run.problem, t, y, yp, names.variables, Options(), names.equations
    )
    rows: tuple[int, ...] = ()
    columns: tuple[int, ...] = ()
    if pencil is not None:
        rows, columns = pencil.dependent, pencil.undetermined
    if report.singular and (report.dependent or report.undetermined):
        # the numbers may show fewer equations than the pattern
        rows = rows if rows and set(rows) < set(report.dependent) else report.dependent
        open_ones = tuple(case.names.variables.index(name) for name in report.undetermined)
        columns = open_ones or columns
    nowhere = _nowhere(case, t, y)
    structural = bool(nowhere) or (report.traced and not report.incidence.match)
    parts = []
    if nowhere:
        verb = "occurs" if len(nowhere) == 1 else "occur"
        parts.append(f"{listed([case.names.variable(j) for j in nowhere])} {verb} in no equation")
        columns = tuple(nowhere)
    if rows or not nowhere:
        by_pattern = structural and rows == report.dependent
        verb = "share too few unknowns" if by_pattern else "depend on each other"
        parts.append(dependence(case, rows, () if nowhere else columns, verb))
    cause = Cause.STRUCTURE if structural else Cause.SINGULAR
    return case.say(
        cause, " and ".join(parts), report.why_singular, t, rows, columns,
        alone(cause, rows, nowhere),
    )


def _nowhere(case: Case, t: float, y: np.ndarray) -> list[int]:
    """Unknowns on which the residual depends neither at the start nor near it."""
    used = np.zeros(case.n, bool)
    for shift in (0.0, GENERAL_SHIFT):
        point = y + shift * (np.abs(y) + 1.0)
        matrices = case.jacobian(t, point, case.run.start.yp[: case.n] + shift)
        if matrices is None:
            return []
        used |= matrices[0].any(axis=0) | matrices[1].any(axis=0)
    return np.flatnonzero(~used).tolist()
