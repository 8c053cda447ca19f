"""Check the result of a run that reached its goal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tether._core import codes, probe
from tether._core.adapters import raise_user_error
from tether._core.constraints import constraints_at
from tether._core.dense import Dense
from tether.problem.names import listed
from tether.run.attempts import read_steps
from tether.run.condition import unsolved_systems

if TYPE_CHECKING:
    from tether.explain.diagnosis import Diagnosis
    from tether.run.drive import Driver

__all__ = ["doubts", "remarks"]

# Errors, in tolerances, that Newton's iteration, the projection and an old Jacobian may leave in
# the unknowns, and in the constraints.
LARGEST_CHANGE = 100.0
LARGEST_DRIFT = 100.0
# Relative noise of a residual that still leaves differences accurate to a tenth.
FORGIVEN_NOISE = 1e-9
# An order that stayed at one is doubtful if this share of the last attempts failed.
FAILING_SHARE = 0.3
# A Jacobian of the user's is checked if Newton's iteration failed in more than this share of steps.
NOT_CONVERGING = 0.02
# Error of a multiplier of index 3 as written, relative to its largest value, worth a warning.
ROUGH_MULTIPLIER = 0.03
# Jumps that are not determined are listed one by one up to this number.
MOST_JUMPS = 5


def doubts(driver: Driver) -> tuple[str, ...]:
    """Say what is doubtful about the result; empty for nearly all results."""
    run, s = driver.integration, driver.state
    found = [_start(driver)] if run.options.start == "assume" else []
    found.append(_residual(driver))
    if s.n_constraints:
        found += [_drift(driver), _rank(driver)]
    found.append(_order(driver))
    if s.untested:
        found.append(_untested(driver))
    if s.reaction_error > ROUGH_MULTIPLIER * s.largest_reaction:
        found.append(_rough_reactions(driver))
    if run.leaks:
        found.append(_leaks(driver))
    if run.beside:
        found.append(_leaks_beside(driver))
    if run.problem.jac is not None:
        found.append(_jacobian(driver))
    if not isinstance(s.matrix, Dense):
        found.append(_iterations(driver))
    if run.references.jumps or run.jumps:
        found += [*run.references.jumps, *_jumps(driver)]
    return tuple(filter(None, found))


def remarks(driver: Driver) -> tuple[str, ...]:
    """Say what the user may want to know although the result is not doubtful."""
    if driver.integration.problem.sparsity is None:
        return ()
    return tuple([text for text in (_sparsity(driver),) if text])


def _sparsity(driver: Driver) -> str:
    """Name entries of the Jacobian that are missing in the sparsity that was passed."""
    run = driver.integration
    given = run.problem.sparsity
    assert given is not None
    if not given.by_user or run.model.size != run.n:
        return ""
    stored = getattr(driver.state.matrix, "pattern", None)
    if given.fy is given.fyp and stored is given.both:     # as it was passed
        return ""
    missing = []
    for which, pattern in ((codes.OF_Y, given.fy), (codes.OF_YP, given.fyp)):
        rows, columns = driver.state.matrix.get(which).nonzero()
        outside = pattern.positions(rows, columns) < 0
        missing += list(zip(rows[outside], columns[outside], strict=True))
    if not missing:
        return ""
    i, j = missing[0]
    more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
    return (
        f"{run.names.equation(int(i))} depends on {run.names.variable(int(j))}, but the sparsity "
        f"that was passed leaves this entry out{more}. Such entries were found and used, but "
        "passing them would save calls"
    )


def _iterations(driver: Driver) -> str:
    """Say that linear systems were not solved by the iterations."""
    unsolved = unsolved_systems(driver.state)
    if not unsolved:
        return ""
    return (
        f"the iterations for {unsolved} linear systems did not converge: "
        "pass a preconditioner in options that is closer to the matrix, or linear_solver='sparse'"
    )


def _jumps(driver: Driver) -> list[str]:
    """Say where unknowns jumped in a way that the equations do not determine."""
    run = driver.integration
    doubtful = [jump for jump in run.jumps if not jump.by_law or jump.open_equations]
    words = []
    for jump in doubtful[:MOST_JUMPS]:
        unknowns = listed([run.names.variable(j) for j in jump.changes])
        if jump.by_law:
            why = listed([run.names.equation(i) for i in jump.open_equations])
            how = (
                f"the equations do not determine how: coefficients in {why} change in the jump. "
                "They were taken along a straight path from the old to the new values"
            )
        else:
            how = (
                "no jump by the law of the equations satisfies the constraints. The change is the "
                "smallest that satisfies them, and what the equations conserve may be lost"
            )
        words.append(f"{unknowns} jumped at t = {jump.t:.10g}, and {how}")
    if len(doubtful) > MOST_JUMPS:
        words.append(f"jumps that are doubtful in the same way: {len(doubtful) - MOST_JUMPS} more")
    return words


def _start(driver: Driver) -> str:
    """Check a start that was taken on trust."""
    run, s = driver.integration, driver.state
    start = driver.start
    if s.steps == 0 or run.plans > 1:
        return ""
    status, r = probe.residual_at(s, driver.t_start, start.y, start.yp)
    raise_user_error(s)
    if status != 0:
        return "the residual is not finite at the start that was assumed to be consistent"
    if s.matrix.has_no_entries:
        return ""                      # without matrices it is not known what tolerances allow
    fy, fyp = (abs(s.matrix.get(which)) for which in (codes.OF_Y, codes.OF_YP))
    tolerance = s.tolerances
    longest = max(abs(s.last_h), 1e-300)
    allowed = fy @ tolerance + fyp @ (tolerance / longest + 1e-3 * np.abs(start.yp))
    beyond = np.abs(r) / np.maximum(allowed, 1e-300)
    worst = int(np.argmax(beyond))
    if beyond[worst] < LARGEST_CHANGE:
        return ""
    return (
        f"the start was assumed to be consistent, but {run.names.equation(worst)} has the value "
        f"{r[worst]:.3g} there"
    )


def _residual(driver: Driver) -> str:
    """Measure the residual at the last step by the change of y; two calls must agree."""
    s = driver.state
    if s.steps == 0 or s.cj_factored == 0.0:
        return ""
    if s.python_residual and driver.callback is not None:
        return ""                      # the callback may have changed what the function reads
    status, change = probe.next_change(s)
    raise_user_error(s)
    if status != 0:
        return "the residual is not finite at the end"
    called = driver.integration.model.plan is None
    if called and not np.array_equal(change, probe.next_change(s)[1]):
        return _noise(driver)
    allowed = LARGEST_CHANGE * (1.0 + s.projection_size)
    if s.highest_kind <= 1 and probe.weighted_size(s, change) <= allowed:
        return ""
    beyond = abs(change) * s.array("newton_weight" if s.highest_kind > 1 else "weight")
    worst = int(beyond.argmax())
    if not beyond[worst] > allowed:
        return ""
    name = driver.integration.names.variable(int(driver.integration.model.owner[worst]))
    return (
        f"at the end the equations do not hold: {name} would have to change by "
        f"{change[worst]:.2g}, {beyond[worst]:.2g} times its tolerance"
    )


def _noise(driver: Driver) -> str:
    """Check a function that returned two values for the same arguments.

    Its differences are a matrix of noise, with which the iteration seems to converge anywhere. At
    the end values may be so large that the noise is small beside them, so the start is checked too.
    """
    from tether.explain.examine.case import Case  # late, to save time: few runs are doubtful
    from tether.explain.examine.failure import noise

    case, start = Case(driver.integration, driver), driver.start.restricted(driver.integration.n)
    with np.errstate(all="ignore"):
        found = noise(case, forgiven=FORGIVEN_NOISE) or noise(
            case, (driver.t_start, start.y, start.yp), FORGIVEN_NOISE)
    driver.state.nfev += case.function_state.nfev
    return "" if found is None else _as_part(found)


def _as_part(found: Diagnosis) -> str:
    """Write the summary of a diagnosis as a part of a sentence."""
    return found.summary[:1].lower() + found.summary[1:].rstrip(".")


def _drift(driver: Driver) -> str:
    """Compare the largest values of constraints with those that the tolerance allows."""
    s = driver.state
    if s.worst_drift == 0.0 or s.steps == 0:
        return ""
    allowed = abs(s.constraint_slopes) @ s.tolerances
    if s.worst_drift <= LARGEST_DRIFT * allowed.max():
        return ""
    _, left = constraints_at(s, s.t, s.y_now)
    raise_user_error(s)
    worst = int(np.argmax(np.abs(left)))
    name = driver.integration.model.constraints.name_of(s, worst)
    text = (
        f"a constraint was off by {s.worst_drift:.2g}, where the tolerance allows "
        f"{allowed.max():.2g}; the largest at the end is {name} (off by {left[worst]:.2g})"
    )
    from tether.explain.examine.case import Case  # late, to save time

    with np.errstate(all="ignore"):
        jump = Case(driver.integration, driver).constraint_break(abs(s.t - driver.t_start))
    if jump is None:
        return text
    name = driver.integration.model.constraints.name_of(s, jump.row)
    return (
        f"{text}; the function {name}, {jump.words} at t = {jump.t:.10g}: if it is meant to, pass "
        f"t_breaks=[{jump.t:.10g}]"
    )


def _rank(driver: Driver) -> str:
    """Report constraints that depended on each other for a moment."""
    s = driver.state
    if s.lowest_rank >= s.highest_rank:
        return ""
    return (
        f"at t = {s.t_lowest_rank:.10g} only {s.lowest_rank} of {s.highest_rank} constraints were "
        "independent: from such a singular configuration the motion may continue in several ways"
    )


def _order(driver: Driver) -> str:
    """Report a run that could not get beyond order one."""
    s = driver.state
    if s.last_k > 1 or s.max_order == 1 or s.attempts < 4 * codes.RING_ROWS:
        return ""
    steps = read_steps(s)
    failing = np.mean(steps["outcome"] != codes.OK)
    if np.any(steps["order"] > 1) or failing < FAILING_SHARE:
        return ""
    return (
        f"the order stayed at one at the end, and {failing:.0%} of the last attempts failed: the "
        "solution may not be smooth"
    )


def _untested(driver: Driver) -> str:
    """Say where errors of velocities and multipliers of index 3 as written are not known."""
    run, s = driver.integration, driver.state
    names = [run.names.variable(int(j)) for j in np.flatnonzero(s.kinds > 1)]
    where = f"at t = {s.t_untested:.10g}"
    if s.untested > 1:
        where = f"at {s.untested} steps from t = {s.t_untested:.10g} to {s.t_last_untested:.10g}"
    remedy = (
        "a max_order of 2 or more is needed for them" if s.max_order == 1 else
        "if something jumps there, pass the time in t_breaks"
    )
    return (
        f"{where} errors of {listed(names) or 'velocities and multipliers'} could not be "
        "controlled: at index 3 as written they are differences of other unknowns over a step; "
        f"{remedy}"
    )


def _rough_reactions(driver: Driver) -> str:
    """Say where multipliers of index 3 as written were accepted with a large error."""
    run, s = driver.integration, driver.state
    found = (s.kinds > 2) & (s.reactions != 0)
    names = [run.names.variable(int(j)) for j in np.flatnonzero(found)]
    return (
        f"near t = {s.t_reaction_error:.10g} the error of {listed(names) or 'multipliers'} may be "
        f"{min(s.reaction_error / s.largest_reaction, 1.0):.0%} of the largest value: at index 3 "
        "as written they are second differences over a step, and short steps make them rough; if "
        "something jumps there, pass the time in t_breaks"
    )


def _leaks(driver: Driver) -> str:
    """Say which terms were added to equations that left unknowns open."""
    run = driver.integration
    terms = listed([
        f"{size:.2g} {run.names.variable(j)} to {run.names.equation(i)}"
        for i, j, size in run.leaks
    ])
    unknowns = listed([run.names.variable(j) for _, j, _ in run.leaks])
    return (
        f"up to t = {run.t_leaks:.10g} only terms far below the tolerances determined {unknowns}. "
        f"From then on {terms} was added, which is far below the tolerances too. If other values "
        "are meant, add terms that determine them, such as a conductance to ground"
    )


def _leaks_beside(driver: Driver) -> str:
    """Say which equations of ideal diodes were given leaks."""
    run = driver.integration
    names = listed([run.names.equation(i) for i, _, _ in run.beside])
    sizes = [abs(size) for _, _, size in run.beside]
    return (
        f"on the sides where most of them block, {names} leave unknowns open. From "
        f"t = {run.t_beside:.10g} on each has a leak: {min(sizes):.2g} to {max(sizes):.2g} times "
        "the one of its two expressions that is not zero, which changes it by far less than the "
        "tolerances. If other values are meant, add terms that determine them, such as a "
        "conductance to ground"
    )


def _jacobian(driver: Driver) -> str:
    """Check a user's Jacobian if the iteration has often failed with it."""
    s = driver.state
    failing = s.convergence_failures >= 5 + NOT_CONVERGING * s.steps
    if not failing:
        return ""
    from tether.explain.examine.case import Case  # late, to save time
    from tether.explain.examine.jacobian import wrong_jacobian

    with np.errstate(all="ignore"):
        found = wrong_jacobian(Case(driver.integration, driver))
    return "" if found is None else _as_part(found)
