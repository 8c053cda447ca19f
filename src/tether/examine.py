"""Look at a run that failed and find out why: from the last attempts, and by asking the residual.

Nothing here runs in a step. The user's function is called some hundred times at the point of
failure, through a state of its own, so that the run that failed stays as it was.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from tether._core import codes
from tether.case import ROUND_OFF_SHARE, Case
from tether.causes import Cause
from tether.diagnosis import Diagnosis
from tether.discontinuity import Break
from tether.model import ReducedProblem, TracedProblem
from tether.names import listed, listed_equations
from tether.status import Status

if TYPE_CHECKING:
    from tether.bdf import Bdf
    from tether.drive import Driver

__all__ = ["diagnose"]

EPS = float(np.finfo(float).eps)
# A slope this many times the mean one, on steps that keep getting shorter, has no bound.
UNBOUNDED = 30.0
TINY = 1e-6                          # of the time so far: a step
# A solution this many times its size at the start is large.
LARGE = 100.0
# Exponent q of y' ~ (t* - t)^-q: from here on y itself is unbounded (q = 1 is a logarithm).
LOGARITHM = 0.85
# A user's Jacobian differs from differences by more than this share of the larger of both.
WRONG = 0.05
ILL_CONDITIONED = 1e13
MOST_VALUES = 4
NEARBY = 1e-2                        # of the time so far: where the run stopped
LATE = 12                            # attempts after which a contradiction is noticed at the latest
# Steps whose slopes tell how a solution approaches its end, and which of them.
MOST_STEPS = 500
FAR_ENOUGH = 10.0
NEAR_ENOUGH = 0.1
STRAIGHT = 0.9                       # correlation of their logarithms


def diagnose(bdf: Bdf, driver: Driver | None = None, *, before: bool = False) -> Diagnosis:
    """Find out why a run failed.

    Parameters
    ----------
    bdf : Bdf
        The integrator, where it stopped.
    driver : Driver, optional
        The run with its events.
    before : bool
        Look also at a Jacobian that nothing has failed for yet.

    Examples
    --------
    >>> from tether import Bdf
    >>> from tether.examine import diagnose
    >>> bdf = Bdf(lambda t, y, yp: [yp[0] + y[0]], 0.0, [1.0], options={"rtol": 1e-17, "atol": 0})
    >>> bdf.step().name, diagnose(bdf).cause.value
    ('TOO_ACCURATE', 'tolerance')
    """
    case = Case(bdf, driver)
    with np.errstate(all="ignore"):
        found = wrong_jacobian(case) if before else None
        found = _by_status(case) if found is None else found
    return found if found is not None else _unknown(case)


def _by_status(case: Case) -> Diagnosis | None:
    status = case.status
    if not status.failed:
        return case.say(Cause.NONE)
    if not case.bdf.start.success:
        return wrong_jacobian(case) or _at_the_start(case)
    if status in (Status.TOO_ACCURATE, Status.ZERO_WEIGHT):
        return _tolerance(case)
    if status in (Status.CONTRADICTION, Status.NOT_ON_CONSTRAINTS):
        return _contradiction(case)
    if status == Status.EVENT_STORM:
        return _event_storm(case)
    if status == Status.NO_PROGRESS:
        return _creeping(case)
    if status in (Status.MAX_STEPS, Status.MAX_SECONDS):
        return _limit(case)
    if status == Status.EQUATIONS_CHANGED:
        return case.say(Cause.CHANGED, t=case.t)
    if status == Status.INTERRUPTED:
        return case.say(Cause.STOPPED, t=case.t)
    looks = [_noise, wrong_jacobian, _not_finite, _singular_configuration]
    looks += [_index] if case.drowned else [_discontinuity, _singularity, _index, _singular]
    smaller_is_worse = status == Status.SMALLER_IS_WORSE
    looks += [_condition, _round_off] if smaller_is_worse else [_round_off, _condition]
    for look in looks:
        found = look(case)
        if found is not None:
            return found
    return None


# --- the start --------------------------------------------------------------------------------


def _at_the_start(case: Case) -> Diagnosis | None:
    start = case.bdf.start
    t, y, yp = case.bdf.given
    slopes = start.yp[: case.n] if yp is None else yp
    r = case.residual(t, y, slopes)
    if r is not None and not np.isfinite(r).all():
        return _name_not_finite(case, r, t, y, slopes)
    if start.status == Status.SINGULAR_SYSTEM:
        return _singular_start(case)
    message = case.names.translate(start.message)
    if start.status == Status.INDEX_TOO_HIGH:
        pencil = start.pencil
        columns = () if pencil is None else pencil.prescribed
        index = "above 3" if pencil is None else str(pencil.index)
        return case.say(
            Cause.INDEX, f"it is {index}, and {_are_derivatives(case, columns)}",
            [message], t, (), columns,
        )
    found = case.residual(t, start.y[: case.n], start.yp[: case.n])
    matrices = case.jacobian(t, y, slopes)
    if r is not None and matrices is not None:      # what y alone has to satisfy comes first
        algebraic = ~matrices[1].any(axis=1)
        r = np.where(algebraic, r, 0.0) if np.any(r[algebraic]) else r
    rows, evidence = [], [message]
    named = re.search(r"equation (\d+)", start.message)
    if named:
        rows = [int(named[1])]
    for values in (found, r):
        if values is not None and np.isfinite(values).all():
            worst = int(np.argmax(np.abs(values)))
            if abs(values[worst]) > 1e-12 and (not rows or rows[0] == worst):
                rows = [worst]
                return case.say(
                    Cause.START, case.value(worst, values[worst]), evidence, t, rows
                )
    return case.say(Cause.START, message, (), t, rows)


def _singular_start(case: Case) -> Diagnosis:
    """Say which equations repeat each other, and whether the pattern alone shows it."""
    from tether.structure.analyze import analyze

    t, y, yp = case.bdf.given
    pencil = case.bdf.start.pencil
    report = analyze(case.bdf.problem, t, y, yp, names=case.names.variables)
    rows: tuple[int, ...] = ()
    columns: tuple[int, ...] = ()
    if pencil is not None:
        rows, columns = pencil.dependent, pencil.undetermined
    if report.singular and (report.dependent or report.undetermined):
        rows = report.dependent
        columns = tuple(case.names.variables.index(name) for name in report.undetermined)
    nowhere = _nowhere(case, t, y)
    structural = bool(nowhere) or (report.traced and not report.incidence.match)
    parts = []
    if nowhere:
        parts.append(f"{listed([case.names.variable(j) for j in nowhere])} stands in no equation")
        columns = tuple(nowhere)
    if rows or not nowhere:
        verb = "share too few unknowns" if structural else "depend on each other"
        parts.append(_dependence(case, rows, () if nowhere else columns, verb))
    cause = Cause.STRUCTURE if structural else Cause.SINGULAR
    evidence = [case.names.translate(note) for note in report.notes if "variable" in note][:2]
    return case.say(cause, " and ".join(parts), evidence, t, rows, columns)


def _dependence(
    case: Case, rows: tuple[int, ...], columns: tuple[int, ...], verb: str = "depend on each other"
) -> str:
    """Say which equations depend on each other and which unknowns they leave open."""
    equations = listed_equations([case.names.equation(i) for i in rows]) or "the equations"
    text = f"{equations} {'determines nothing' if len(rows) == 1 else verb}"
    if columns:
        verb = "leaves" if len(rows) == 1 else "leave"
        text += f" and {verb} {listed([case.names.variable(j) for j in columns])} open"
    return text


def _nowhere(case: Case, t: float, y: np.ndarray) -> list[int]:
    """Unknowns that the residual does not depend on."""
    matrices = case.jacobian(t, y, case.bdf.start.yp[: case.n])
    if matrices is None:
        return []
    used = (matrices[0] != 0.0) | (matrices[1] != 0.0)
    return np.flatnonzero(~used.any(axis=0)).tolist()


# --- tolerances, constraints, limits ------------------------------------------------------------


def _tolerance(case: Case) -> Diagnosis:
    rtol, atol = case.bdf.options.tolerances(case.n)
    size = rtol * np.abs(case.y) + atol
    if case.status == Status.ZERO_WEIGHT:
        worst = int(np.argmin(size))
        what = f"{case.names.variable(worst)} is {case.y[worst]:.3g} and its atol is zero"
    else:
        worst = int(np.argmax(np.abs(case.y) / np.maximum(size, 1e-300)))
        what = (
            f"{case.names.variable(worst)} = {case.y[worst]:.6g} is to be kept within "
            f"{size[worst]:.2g}, which is {size[worst] / (EPS * abs(case.y[worst])):.2g} times the "
            "spacing of the numbers"
        )
    return case.say(Cause.TOLERANCE, what, (), case.t, (), [worst])


def _round_off(case: Case) -> Diagnosis | None:
    """Whether round-off of the residual, brought back to y, is more than the tolerance allows."""
    beyond = case.round_off
    if beyond is None or beyond.max() < ROUND_OFF_SHARE:
        return None
    worst = int(np.argmax(beyond))
    name = case.names.variable(worst)
    return case.say(
        Cause.TOLERANCE,
        f"round-off in the equations moves {name} by {beyond[worst] * case.tolerance[worst]:.2g}, "
        f"its tolerance is {case.tolerance[worst]:.2g}",
        (), case.t, (), [worst],
    )


def _contradiction(case: Case) -> Diagnosis | None:
    # a constraint among the equations may have jumped some steps ago
    jump = case.break_within(float(np.abs(case.steps["h"][-LATE:]).sum())) if case.longest else None
    if jump is not None:
        return _discontinuity(case, jump)
    folded = _singular_configuration(case)
    if folded is not None:
        return folded
    s = case.state
    g = np.abs(s.array("g"))
    worst = int(np.argmax(np.where(np.isfinite(g), g, np.inf)))
    name = case.bdf.model.constraints.name_of(s, worst)
    sizes = case.steps["projection"][-8:]
    evidence = [
        f"it is left with {s.array('g')[worst]:.3g}",
        f"the last projections moved the solution by {sizes.max():.3g} times the tolerance",
    ]
    return case.say(Cause.CONTRADICTION, name, evidence, case.t)


def _singular_configuration(case: Case) -> Diagnosis | None:
    """Notice constraints that depend on each other where the run stopped, and nowhere else."""
    s = case.state
    lowest = min(s.rank, s.lowest_rank)
    if s.n_constraints == 0 or s.highest_rank <= lowest:
        return None
    t = case.t if s.rank == lowest else s.t_lowest_rank
    began = case.t0 if case.driver is None else case.driver.t_start
    if abs(t - case.t) > NEARBY * max(abs(case.t - began), abs(s.last_h)):
        return None
    return case.say(
        Cause.SINGULAR,
        f"only {lowest} of {s.highest_rank} constraints are independent, as in a linkage that is "
        "folded flat",
        ["in such a singular configuration multipliers and further motion are not determined"],
        t,
    )


def _event_storm(case: Case) -> Diagnosis:
    assert case.driver is not None
    storm = case.driver.storm
    times = storm.times
    shown = ", ".join(f"{gap:.2g}" for gap in storm.gaps[-4:])
    return case.say(
        Cause.EVENT_STORM,
        f"the last {len(times)} changes of the state came within {abs(times[-1] - times[0]):.2g}",
        [f"the last intervals between them are {shown}"], storm.t,
    )


def _pace(case: Case) -> str:
    s = case.state
    left = abs(s.t_end - s.t) / max(abs(s.last_h), 1e-300)
    return (
        f"{s.steps} steps were taken, the last of size {abs(s.last_h):.3g} at order {s.last_k}; "
        f"at this pace {left:.1g} more are needed"
    )


def _limit(case: Case) -> Diagnosis:
    options = case.bdf.options
    what = (
        f"the limit of {options.max_steps} steps was reached"
        if case.status == Status.MAX_STEPS
        else f"the limit of {options.max_seconds:g} s was reached"
    )
    evidence = [_pace(case)]
    suspicion = _singularity(case) if case.brk is None else _discontinuity(case)
    if suspicion is not None:
        evidence.append(suspicion.summary.rstrip("."))
    return case.say(Cause.LIMIT, what, evidence, case.t)


def _creeping(case: Case) -> Diagnosis:
    evidence = [_pace(case)]
    rows: list[int] = []
    if case.brk is not None:
        rows = [case.brk.row]
        evidence.append(
            f"{case.names.equation(case.brk.row)} {case.brk.words} at t = {case.brk.t:.10g}, right "
            "where the solution is"
        )
    elif (suspicion := _singularity(case)) is not None:
        evidence.append(suspicion.summary.rstrip("."))
    columns = _worst_components(case)
    if not columns and rows and case.here is not None:
        columns = [int(np.argmax(np.abs(case.here[1][rows[0]])))]
    failed = case.steps["outcome"] != codes.OK
    what = (
        f"{case.driver.pace.crept if case.driver else 0} steps advanced the time by less than a "
        f"millionth of what is left, at t = {case.t:.10g}"
    )
    if failed.any():
        evidence.append(f"{failed.sum()} of the last {len(failed)} attempts failed")
    return case.say(Cause.CREEPING, what, evidence, case.t, rows, columns)


# --- failures in the middle of a run --------------------------------------------------------------


def wrong_jacobian(case: Case) -> Diagnosis | None:
    """Compare a user's Jacobian with differences; name the entry that is farthest off."""
    jac = case.bdf.problem.jac
    if jac is None:
        return None
    own = case.jacobian(case.t, case.y, case.yp)
    if own is None:
        return None
    try:
        given = [
            np.asarray(part.toarray() if hasattr(part, "toarray") else part, float)
            for part in jac(case.t, case.y.copy(), case.yp.copy(), *case.bdf.problem.args)
        ]
    except Exception:                   # its own; the run would have passed it on
        return None
    scales = np.maximum(np.abs(case.y), case.tolerance), np.maximum(np.abs(case.yp), 1e-3)
    # what stands in a row: a wrong entry counts by its part in it
    terms = sum(np.abs(m) @ x for m, x in zip(own, scales, strict=True)) + 1e-300
    worst = None
    for k, name in enumerate(("F_y", "F_y'")):
        off = np.abs(given[k] - own[k])
        larger = np.maximum(np.abs(given[k]), np.abs(own[k]))
        off = np.where(off > WRONG * larger, off, 0.0) * scales[k] / terms[:, None]
        i, j = divmod(int(np.argmax(off)), case.n)
        if off[i, j] > 1e-6 and (worst is None or off[i, j] > worst[0]):
            worst = off[i, j], name, i, j, given[k][i, j], own[k][i, j]
    if worst is None:
        return None
    _, name, i, j, was, should = worst
    variable = case.names.variable(j) + ("'" if name == "F_y'" else "")
    return case.say(
        Cause.JACOBIAN,
        f"the entry of {name} for {case.names.equation(i)} and {variable} is {was:.6g}, "
        f"differences give {should:.6g}",
        (), case.t, [i], [j],
    )


def _noise(case: Case) -> Diagnosis | None:
    """Ask twice."""
    first, second = (case.residual(case.t, case.y, case.yp) for _ in range(2))
    if first is None or second is None:
        return None
    change = np.abs(first - second)
    if not np.any(change > 0.0):
        return None
    row = int(np.nanargmax(change))
    what = f"two calls with the same arguments differ by {change[row]:.2g}"
    return case.say(Cause.NOISE, what, (), case.t, [row])


def _not_finite(case: Case) -> Diagnosis | None:
    """Name the equation that is not finite, and its arguments."""
    if case.status != Status.NON_FINITE:
        return None
    for t, y, yp in (case.tried, case.predicted):
        r = case.residual(t, y, yp)
        if r is not None and not np.isfinite(r).all():
            grown = _singularity(case)
            if grown is not None and grown.cause == Cause.BLOW_UP:
                return grown
            return _name_not_finite(case, r, t, y, yp)
    return None


def _name_not_finite(
    case: Case, r: np.ndarray, t: float, y: np.ndarray, yp: np.ndarray
) -> Diagnosis:
    row = int(np.flatnonzero(~np.isfinite(r))[0])
    columns = _arguments_of(case, row)
    values = ", ".join(f"{case.names.variable(j)} = {y[j]:.6g}" for j in columns[:MOST_VALUES])
    evidence = []
    formula = case.formula(row)
    if formula:
        evidence.append(f"it is {formula}")
    where = f"{r[row]} with {values}" if values else str(r[row])
    return case.say(Cause.NON_FINITE, where, evidence, t, [row], columns)


def _arguments_of(case: Case, row: int) -> list[int]:
    """Unknowns that an equation depends on; all of a few where that is not known."""
    model = case.bdf.model
    if isinstance(model, TracedProblem) and model.plan.traced is not None:
        f_y = model.plan.traced.f_y
        found = {j for i, j in zip(f_y.rows, f_y.cols, strict=True) if i == row}
        if found:
            return sorted(found)
    return list(range(case.n)) if case.n <= MOST_VALUES else []


def _discontinuity(case: Case, found: Break | None = None) -> Diagnosis | None:
    found = found or case.brk
    if found is None:
        return None
    equation = case.names.equation(found.row)
    what = f"{equation} {found.words}"
    beyond = (case.steps["t"] - found.t) * case.state.direction > 16 * EPS * abs(case.t)
    after = np.count_nonzero(beyond & (case.steps["outcome"] == codes.OK))
    if after:
        later = "on the next" if after == 1 else f"{after} steps later"
        evidence = [f"a step across it was accepted, and the failure came {later}"]
    else:
        evidence = ["no step across it was accepted, however small"]
    columns = _worst_components(case)
    if columns:
        evidence.append(f"the error test fails for {case.names.variable(columns[0])}")
    return case.say(Cause.DISCONTINUITY, what, evidence, found.t, [found.row], columns)


def _worst_components(case: Case) -> list[int]:
    """Tell which unknown failed the error test most often of late, as the user knows it."""
    component = case.steps["component"][-20:]
    component = component[component >= 0].astype(int)
    if not len(component):
        return []
    owner = case.bdf.model.owner(case.n)
    return [int(np.bincount(owner[component]).argmax())]


def _singularity(case: Case) -> Diagnosis | None:
    """Tell a solution that grows without bound, or whose slope does."""
    accepted = np.abs(case.steps["h"][case.steps["outcome"] == codes.OK])
    elapsed = abs(case.t - case.t0)
    if len(accepted) < 6 or elapsed == 0.0:
        return None
    if accepted[-1] > 0.7 * accepted.max() and accepted[-1] > TINY * elapsed:
        return None
    y0 = case.bdf.given[1]
    change = np.abs(case.y - y0) + case.tolerance
    ratio = np.abs(case.yp) * elapsed / change
    # the slope as the last steps show it: one after a jump is no trend
    polynomial = case.bdf.dense_output()
    earlier = np.abs(polynomial(polynomial.t_old)[1])
    ratio[earlier > 10.0 * np.abs(case.yp)] = 0.0
    worst = int(np.argmax(ratio))
    if ratio[worst] < UNBOUNDED:
        return None
    exponent = _power(case, worst)
    if exponent is None:
        return None
    name = case.names.variable(worst)
    large = abs(case.y[worst]) > LARGE * max(abs(y0[worst]), 1.0, *np.abs(y0))
    growing = case.y[worst] * case.yp[worst] * case.state.direction > 0.0
    unbounded = large or (growing and (exponent == 0.0 or exponent > LOGARITHM))
    evidence = [
        f"at t = {case.t:.10g} {name} = {case.y[worst]:.4g} with slope {case.yp[worst]:.3g}, "
        f"{ratio[worst]:.1g} times its mean slope so far",
        f"the last steps shrank from {accepted.max():.2g} to {accepted[-1]:.2g}",
    ]
    return case.say(
        Cause.BLOW_UP if unbounded else Cause.FOLD, "", evidence, case.t, (), [worst]
    )


def _power(case: Case, j: int) -> float | None:
    """Exponent q of y' ~ (t* - t)^-q along the last steps.

    None where the slopes follow no such law; zero where there are too few to tell.
    """
    if case.driver is None or not case.driver.record.keep_steps:
        return 0.0
    times, _, slopes = (part[-MOST_STEPS:] for part in case.driver.record.steps()[:3])
    slopes = slopes[:, j]
    distance = np.abs(times - case.t)
    # from far enough away that t* is as good as the last t
    use = (distance > FAR_ENOUGH * abs(case.state.last_h)) & (np.abs(slopes) > 0.0)
    use &= distance < NEAR_ENOUGH * abs(case.t - case.t0)
    if np.count_nonzero(use) < 3:
        return 0.0
    x, y = np.log(distance[use]), np.log(np.abs(slopes[use]))
    if np.ptp(y) == 0.0 or np.corrcoef(x, y)[0, 1] > -STRAIGHT:
        return None
    return -float(np.polyfit(x, y, 1)[0])


def _index(case: Case) -> Diagnosis | None:
    pencil = case.pencil
    if pencil is None or pencil.index is None or pencil.index < 2:
        return None
    classical = case.bdf.options.estimate == "classical"
    if isinstance(case.bdf.model, ReducedProblem) or (
        case.state.array("kind").max() >= pencil.var_index.max() and not classical
    ):
        return None                     # it is treated as what it is
    columns = np.flatnonzero(pencil.var_index >= max(2, pencil.index)).tolist()
    failed = case.failed_attempts()
    failed = failed[failed["error"] >= 0]
    evidence = [f"the system linearised at t = {case.t:.6g} has index {pencil.index}"]
    if len(failed) > 1:
        first, last = failed[0], failed[-1]
        evidence.append(
            f"the error estimate went from {first['error']:.2g} to {last['error']:.2g} times the "
            f"tolerance while the step shrank from {abs(first['h']):.2g} to {abs(last['h']):.2g}"
        )
    if classical:
        evidence.append("the estimate 'classical' that was asked for is not made for it")
    elif case.bdf.problem.var_index is not None:
        evidence.append("the var_index that was passed says otherwise")
    return case.say(
        Cause.INDEX, f"it is {pencil.index}, and {_are_derivatives(case, columns)}", evidence,
        case.t, (), columns,
    )


def _are_derivatives(case: Case, columns: tuple | list) -> str:
    names = listed([case.names.variable(j) for j in columns]) or "some unknowns"
    return f"{names} would be found by differentiating what is given"


def _singular(case: Case) -> Diagnosis | None:
    pencil = case.pencil
    if pencil is None or not pencil.singular:
        return None
    rows, columns = pencil.dependent, pencil.undetermined
    return case.say(Cause.SINGULAR, _dependence(case, rows, columns), (), case.t, rows, columns)


def _condition(case: Case) -> Diagnosis | None:
    if case.status not in (Status.SMALLER_IS_WORSE, Status.NO_CONVERGENCE, Status.SINGULAR_MATRIX):
        return None
    if case.here is None or not len(case.steps):
        return None
    fy, fyp = case.here
    h = abs(case.steps["h"][-1])
    matrix = fy + fyp / h
    size = np.abs(matrix).max(axis=1)
    condition = float(np.linalg.cond(matrix / np.where(size > 0, size, 1.0)[:, None]))
    if case.status != Status.SMALLER_IS_WORSE and condition < ILL_CONDITIONED:
        return None
    failed = case.failed_attempts()
    evidence = [f"its condition number is about {condition:.1g} at a step of {h:.2g}"]
    if len(failed) > 1:
        evidence.append(
            f"Newton's first increment went from {failed['increment'][0]:.2g} to "
            f"{failed['increment'][-1]:.2g} tolerances while the step shrank from "
            f"{abs(failed['h'][0]):.2g} to {h:.2g}"
        )
    u, _, _ = np.linalg.svd(matrix / np.where(size > 0, size, 1.0)[:, None])
    row = int(np.argmax(np.abs(u[:, -1])))
    return case.say(
        Cause.CONDITION, "the iteration does not converge, and shorter steps make it worse",
        evidence, case.t, [row], _worst_components(case),
    )


def _unknown(case: Case) -> Diagnosis:
    failed = case.failed_attempts()
    columns = _worst_components(case)
    parts = []
    if columns:
        parts.append(f"the error of {case.names.variable(columns[0])} stays above the tolerance")
    if len(failed):
        h = np.abs(failed["h"])
        parts.append(
            f"the last {len(failed)} attempts failed, with steps from {h.max():.2g} down to "
            f"{h.min():.2g}"
        )
    evidence = []
    if case.longest and np.abs(case.steps["h"]).min() <= 32 * EPS * abs(case.t):
        evidence.append(
            "the steps have become as short as the spacing of numbers near this time; if it is a "
            "late time, count it from the start of the run"
        )
    what = "; ".join(parts) or "nothing is known"
    return case.say(Cause.UNKNOWN, what, evidence, case.t, (), columns)
