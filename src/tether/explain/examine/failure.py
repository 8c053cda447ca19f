"""A step that failed in the middle of a run: properties of the equations there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tether._core import codes
from tether.base.status import Status
from tether.explain.causes import Cause
from tether.explain.diagnosis import Diagnosis
from tether.explain.examine.case import EPS, MOST_UNKNOWNS, Case
from tether.explain.examine.discontinuity import Break
from tether.explain.examine.singularity import singularity
from tether.problem.names import listed, listed_equations
from tether.run.condition import unsolved_systems

__all__ = [
    "discontinuity", "index", "noise", "not_finite", "not_solved", "single_precision", "singular",
    "singular_configuration", "singular_from_the_start", "unknown", "vanishing_tolerance",
]

IN_ONE_POSITION = "where constraints depend on each other in one position"
MOST_VALUES = 4
SHORT_INTERVAL = 1e-3                # length of an interval, relative to the time at its start
VANISHED = 1e-6                      # size of an unknown, relative to what it was or could be
ROUND_POINTS = 3                     # values that are round at this many points are so by design
# Increments of an unknown for differences, relative to its size and to the largest size.
ROOT_EPS, FLOOR_EPS = 2.0**-26, 2.0**-39
RECENT_ATTEMPTS = 20
NEAR_THE_STOP = 1e-2                 # share of the time so far
# Relative change of the unknowns by which the sizes of the residual's terms are measured ...
VISIBLE_CHANGE = 1e-3
# ... and the share of their tolerance by which noise may move them.
NOISE_SHARE = 1e-3


Point = tuple[float, np.ndarray, np.ndarray]


def noise(case: Case, point: Point | None = None, forgiven: float = 0.0) -> Diagnosis | None:
    """Call the function twice: a difference larger than the tolerances allow is noise.

    Differences below `forgiven`, relative to the terms of the equation, do not count.
    """
    t, y, yp = point or (case.t, case.y, case.yp)
    first, second = (case.residual(t, y, yp) for _ in range(2))
    if first is None or second is None:
        return None
    change = np.abs(first - second)
    if not np.any(change > 0.0):
        return None
    # how much the values change with the unknowns; a Jacobian by differences would be all noise
    size = np.abs(y) + (np.abs(y).max() or 1.0)
    shifted = case.residual(t, y + VISIBLE_CHANGE * size, yp + VISIBLE_CHANGE * np.abs(yp))
    scale = np.zeros(case.n) if shifted is None else np.abs(shifted - first) / VISIBLE_CHANGE
    beyond = change > max(NOISE_SHARE * np.min(case.tolerance / size), forgiven) * scale
    if not beyond.any():
        return None
    row = int(np.nanargmax(np.where(beyond, change, 0.0)))
    what = f"two calls with the same arguments differ by {change[row]:.2g}"
    return case.say(Cause.NOISE, what, (), t, [row])


def single_precision(case: Case) -> Diagnosis | None:
    """Recognise values that all have seven digits, at points where no number is round."""
    rng = np.random.default_rng(0)
    row = 0
    for _ in range(ROUND_POINTS):
        factor = 1.0 + VISIBLE_CHANGE * rng.random((2, case.n))
        shift = VISIBLE_CHANGE * rng.random((2, case.n))
        r = case.residual(
            case.t, case.y * factor[0] + shift[0], case.yp * factor[1] + shift[1]
        )
        if r is None or not r.any() or not np.isfinite(r).all():
            return None
        if not np.array_equal(r, r.astype(np.float32)):
            return None
        row = int(np.argmax(np.abs(r)))
    return case.say(
        Cause.NOISE, "its values have 7 digits, as numbers in single precision do", (), case.t,
        [row], situation="in single precision",
    )


def not_solved(case: Case) -> Diagnosis | None:
    """Report linear systems whose iterations do not converge."""
    unsolved = unsolved_systems(case.state)
    if not unsolved:
        return None
    return case.say(Cause.LINEAR_SOLVER, f"the iterations for {unsolved} did not converge")


def not_finite(case: Case) -> Diagnosis | None:
    """Name the equation that is not finite, and its arguments."""
    if case.status != Status.NON_FINITE:
        return None
    grown = singularity(case)
    if grown is not None and grown.cause == Cause.BLOW_UP:
        return grown
    for t, y, yp in _evaluated(case):
        r = case.residual(t, y, yp)
        if r is not None and not np.isfinite(r).all():
            return name_not_finite(case, r, t, y)
    return None


def _evaluated(case: Case) -> Iterator[Point]:
    """Yield the points of the last attempt, and those near them that differences need."""
    points = case.predicted, (case.t, case.y, case.yp)
    yield case.tried
    yield from points
    if case.n > MOST_UNKNOWNS:
        return
    for t, y, yp in points:
        for j in range(case.n):
            size = max(abs(y[j]), case.tolerance[j], abs(case.longest_step * yp[j]))
            increment = max(ROOT_EPS * size, FLOOR_EPS * np.abs(y).max())
            for shift in (increment, -increment):
                beside = y.copy()
                beside[j] += shift
                yield t, beside, yp


def name_not_finite(
    case: Case, r: np.ndarray, t: float, y: np.ndarray, situation: str = ""
) -> Diagnosis:
    """Name the first equation of a residual that is not finite, with its arguments."""
    row = int(np.flatnonzero(~np.isfinite(r))[0])
    columns = _arguments_of(case, row)
    values = ", ".join(f"{case.names.variable(j)} = {y[j]:.6g}" for j in columns[:MOST_VALUES])
    where = f"{r[row]} with {values}" if values else str(r[row])
    return case.say(
        Cause.NON_FINITE, where, case.as_formula(row), t, [row], columns, situation
    )


def _arguments_of(case: Case, row: int) -> list[int]:
    """Unknowns that an equation depends on; if that is not known, all if they are few."""
    model = case.run.model
    if model.plan is not None and model.plan.traced is not None:
        f_y = model.plan.traced.f_y
        pairs = zip(f_y.rows, f_y.cols, strict=True)
        found = {j for i, j in pairs if i == row and j < case.n}
        if found:
            return sorted(found)
    return list(range(case.n)) if case.n <= MOST_VALUES else []


def singular_configuration(case: Case) -> Diagnosis | None:
    """Recognise constraints that depend on each other only near the point where the run stopped."""
    s = case.state
    lowest = min(s.rank, s.lowest_rank)
    if s.n_constraints == 0 or s.highest_rank <= lowest:
        return None
    t = case.t if s.rank == lowest else s.t_lowest_rank
    began = case.t0 if case.driver is None else case.driver.t_start
    if abs(t - case.t) > NEAR_THE_STOP * max(abs(case.t - began), abs(s.last_h)):
        return None
    return case.say(
        Cause.SINGULAR,
        f"only {lowest} of {s.highest_rank} constraints are independent, as in a linkage that is "
        "folded flat",
        ["in such a singular configuration multipliers and further motion are not determined"],
        t, situation=IN_ONE_POSITION,
    )


def vanishing_tolerance(case: Case) -> Diagnosis | None:
    """Recognise an unknown without atol that goes to zero, and its tolerance with it."""
    _, atol = case.run.options.tolerances(case.n)
    reach = np.abs(case.run.given[1]) + np.abs(case.yp) * abs(case.t - case.t0)
    for j in worst_components(case):
        if atol[j] == 0.0 and abs(case.y[j]) <= VANISHED * reach[j]:
            what = f"{case.names.variable(j)} is {case.y[j]:.3g} and its atol is zero"
            return case.say(Cause.TOLERANCE, what, (), case.t, (), [j])
    return None


def discontinuity(case: Case) -> Diagnosis | None:
    """Report a jump or a kink of the equations at the last steps."""
    return None if case.recent_break is None else say_break(case, case.recent_break)


def say_break(case: Case, found: Break) -> Diagnosis:
    """Say where the equations jump, and how much later the failure came."""
    equation = case.names.equation(found.row)
    what = f"{equation} {found.words}"
    surely = found.within + 16 * EPS * abs(case.t)
    beyond = (case.steps["t"] - found.t) * case.state.direction > surely
    after = np.count_nonzero(beyond & (case.steps["outcome"] == codes.OK))
    if after:
        later = "in the next step" if after == 1 else f"{after} steps later"
        evidence = [f"a step across it was accepted, and the failure came {later}"]
    else:
        evidence = ["no step across it was accepted, however small"]
    columns = worst_components(case)
    if columns:
        evidence.append(f"the error test fails for {case.names.variable(columns[0])}")
    situation = "" if found.timed else "where the switch depends on the solution"
    return case.say(
        Cause.DISCONTINUITY, what, evidence, found.t, [found.row], columns, situation,
        case.breaks_from(found),
    )


def worst_components(case: Case) -> list[int]:
    """Return the user's unknown that failed the error test most often in the last attempts."""
    component = case.steps["component"][-RECENT_ATTEMPTS:]
    component = component[component >= 0].astype(int)
    if not len(component):
        return []
    owner = case.run.model.owner[component]
    owner = owner[owner < case.n]          # not shares, where it slides
    return [int(np.bincount(owner).argmax())] if len(owner) else []


def index(case: Case) -> Diagnosis | None:
    """Recognise an index above the one that the kinds of the unknowns allow (P82 section 5)."""
    pencil = case.pencil
    if pencil is None or pencil.index is None or pencil.index < 2:
        return None
    classical = case.run.options.estimate == "classical"
    if case.run.model.is_reduced or (
        case.state.kinds.max() >= pencil.var_index.max() and not classical
    ):
        return None                     # the method is the one for this index
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
        evidence.append("the estimate 'classical' that was passed is not suitable for it")
    elif case.run.problem.var_index is not None:
        evidence.append("the var_index that was passed says otherwise")
    return case.say(
        Cause.INDEX, f"it is {pencil.index}, and {are_derivatives(case, columns)}", evidence,
        case.t, (), columns,
    )


def mixed_index(case: Case) -> Diagnosis | None:
    """Recognise called equations of index 2 and above that mix differential and other unknowns.

    Then every unknown is of kind 2 or 3, and the errors of none shrink with the steps.
    """
    if case.run.model.plan is not None:
        return None
    pencil = case.pencil_of_start           # where the run has failed slopes are arbitrary
    if pencil is None or pencil.index is None or not np.all(pencil.var_index > 1):
        return None
    t = case.run.given[0]
    return case.say(
        Cause.INDEX,
        f"it is {pencil.index}, and every unknown is mixed with one that could only be found by "
        "differentiating given functions",
        [f"the system linearised at t = {t:.6g} has index {pencil.index}"],
        case.t, (), np.flatnonzero(pencil.var_index == pencil.var_index.max()).tolist(),
        "where tracing was forbidden" if case.run.options.trace == "never" else "",
    )


def are_derivatives(case: Case, columns: tuple | list) -> str:
    """Say what an index above 1 means for these unknowns."""
    names = listed([case.names.variable(j) for j in columns]) or "some unknowns"
    return f"{names} could only be found by differentiating given functions"


def dependence(
    case: Case, rows: tuple[int, ...], columns: tuple[int, ...], verb: str = "depend on each other"
) -> str:
    """Say which equations depend on each other and which unknowns they leave open."""
    equations = listed_equations([case.names.equation(i) for i in rows]) or "the equations"
    text = f"{equations} {'determines nothing' if len(rows) == 1 else verb}"
    if columns:
        verb = "leaves" if len(rows) == 1 else "leave"
        text += f" and {verb} {listed([case.names.variable(j) for j in columns])} open"
    return text


def alone(cause: Cause, rows: tuple[int, ...], nowhere: Sequence[int] = ()) -> str:
    """Name the situation of a single equation that determines nothing."""
    if len(rows) != 1 or nowhere:
        return ""
    return {
        Cause.STRUCTURE: "where one equation contains no unknown",
        Cause.SINGULAR: "where one equation determines nothing",
    }[cause]


def singular(case: Case) -> Diagnosis | None:
    """Report equations that depend on each other at the last point."""
    pencil = case.pencil or case.large_pencil
    if pencil is None or not pencil.singular:
        return None
    rows, columns = pencil.dependent, pencil.undetermined
    return case.say(
        Cause.SINGULAR, dependence(case, rows, columns), (), case.t, rows, columns,
        alone(Cause.SINGULAR, rows),
    )


def singular_from_the_start(case: Case) -> Diagnosis | None:
    """Report equations that were dependent from the start, so that no fold has made them so."""
    began = case.pencil_of_start
    return singular(case) if began is not None and began.singular else None


def unknown(case: Case) -> Diagnosis:
    """Say at least what was observed."""
    failed = case.failed_attempts()
    columns = worst_components(case)
    parts = []
    if columns:
        parts.append(f"the error of {case.names.variable(columns[0])} stays above the tolerance")
    if len(failed):
        h = np.abs(failed["h"])
        parts.append(
            f"the last {len(failed)} attempts failed, with steps from {h.max():.2g} down to "
            f"{h.min():.2g}"
        )
    late = bool(
        case.longest_step and np.abs(case.steps["h"]).min() <= 32 * EPS * abs(case.t)
        and abs(case.state.t_end - case.t0) < SHORT_INTERVAL * abs(case.t)
    )
    evidence = (
        [f"floating-point times near this one differ by at least {np.spacing(abs(case.t)):.2g}, "
         "and the steps are hardly longer"] if late else []
    )
    what = "; ".join(parts) or "the attempts show nothing unusual"
    return case.say(
        Cause.UNKNOWN, what, evidence, case.t, (), columns, "at a late time" if late else ""
    )
