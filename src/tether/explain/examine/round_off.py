"""Failures because of round-off: tolerances below it, and matrices that magnify it."""

from __future__ import annotations

import numpy as np

from tether.base.status import Status
from tether.explain.causes import Cause
from tether.explain.diagnosis import Diagnosis
from tether.explain.examine.case import ROUND_OFF_SHARE, Case

__all__ = ["condition", "round_off"]

ILL_CONDITIONED = 1e13
# A long step, as a share of the interval, and a condition number that is much better, as a share
# of another.
LONG_STEP = 0.1
MUCH_BETTER = 0.1


def round_off(case: Case) -> Diagnosis | None:
    """Report round-off of the residual that moves y by more than the tolerance allows."""
    parts = case.round_off(case.longest_step)
    if parts is None or parts.sum(axis=1).max() < ROUND_OFF_SHARE:
        return None
    worst = int(np.argmax(parts.sum(axis=1)))
    row = int(np.argmax(parts[worst]))
    beyond = parts[worst].sum()
    name, moved = case.names.variable(worst), beyond * case.tolerance[worst]
    h = LONG_STEP * abs(case.state.t_end - case.t0)
    easier = case.round_off(h) if np.isfinite(h) else None
    if easier is not None and easier.sum(axis=1).max() < ROUND_OFF_SHARE:
        then = easier[worst].sum() * case.tolerance[worst]
        evidence = (
            f"with steps of {case.longest_step:.2g} round-off moves {name} by {moved:.2g}, "
            f"{beyond:.2g} times its tolerance; with steps of {h:.2g} by {then:.2g}"
        )
        return _blame_the_step(case, [evidence], [row], [worst])
    return case.say(
        Cause.TOLERANCE,
        f"round-off in the equations moves {name} by {moved:.2g}, its tolerance is "
        f"{case.tolerance[worst]:.2g}",
        (), case.t, (), [worst],
    )


def condition(case: Case) -> Diagnosis | None:
    """Blame the matrix if a smaller step was worse, or if its rows nearly depend on each other."""
    if case.status not in (Status.SMALLER_IS_WORSE, Status.NO_CONVERGENCE, Status.SINGULAR_MATRIX):
        return None
    if case.jacobians_here is None or not len(case.steps):
        return None
    fy, fyp = case.jacobians_here
    matrix = fy + fyp / abs(case.steps["h"][-1])
    size = np.abs(matrix).max(axis=1)
    u, values, vt = np.linalg.svd(matrix / np.where(size > 0.0, size, 1.0)[:, None])
    if case.status != Status.SMALLER_IS_WORSE and ILL_CONDITIONED * values[-1] > values[0]:
        return None
    row, column = int(np.argmax(np.abs(u[:, -1]))), int(np.argmax(np.abs(vt[-1])))
    return _blame_the_step(case, [], [row], [column])


def _blame_the_step(
    case: Case, evidence: list[str], rows: list[int], columns: list[int]
) -> Diagnosis:
    steps = case.steps[case.steps["condition"] > 0.0]
    if len(steps):
        best, last = steps[np.argmin(steps["condition"])], steps[-1]
        text = (
            f"its condition number is about {last['condition']:.1g} at a step of "
            f"{abs(last['h']):.2g}"
        )
        if best["condition"] < MUCH_BETTER * last["condition"]:
            text += f", {best['condition']:.1g} at one of {abs(best['h']):.2g}"
        evidence.append(text)
    failed = case.failed_attempts()
    if len(failed) > 1:
        evidence.append(
            f"Newton's first increment went from {failed['increment'][0]:.2g} to "
            f"{failed['increment'][-1]:.2g} tolerances while the step shrank from "
            f"{abs(failed['h'][0]):.2g} to {abs(failed['h'][-1]):.2g}"
        )
    return case.say(
        Cause.CONDITION, "the iteration does not converge, and shorter steps make it worse",
        evidence, case.t, rows, columns,
    )
