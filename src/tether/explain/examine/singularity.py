"""Solutions that grow without bound in finite time, or end where their slope becomes infinite."""

from __future__ import annotations

import math

import numpy as np

from tether._core import codes
from tether.base.status import Status
from tether.explain.causes import Cause
from tether.explain.diagnosis import Diagnosis
from tether.explain.examine.case import ROUND_OFF_SHARE, Case

__all__ = ["growth", "singularity"]

# A slope this many times the mean one, with steps that keep getting shorter, is unbounded.
UNBOUNDED = 30.0
INFINITE = 1e4
FEWEST_STEPS = 6
TINY_STEP = 1e-6                     # share of the time so far
SHRUNK_STEP = 0.7                    # last step, as a share of the longest of the last ones
# A solution has become large when it is this many times its size at the start.
LARGE_GROWTH = 100.0
# Exponential growth has reached this many times the largest value at the start, and its rate times
# the elapsed time is between these bounds. Near a pole the rate is far higher.
OUTGROWN = 1e8
FOLDS_OF_E = (10.0, 1e4)
# From this exponent q of y' ~ (t* - t)^-q on, y itself is unbounded (q = 1 is a logarithm).
UNBOUNDED_EXPONENT = 0.85
# The exponent is fitted to points that are farther from the last one than this many last steps, and
# nearer than this share of the time so far; t* is assumed this many last steps ahead in turn.
TOO_CLOSE = 4.0
NEAR_ENOUGH = 0.1
DISTANCES = (0.0, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
LEAST_CORRELATION = 0.9              # of the logarithms, for a fit to count


def singularity(case: Case) -> Diagnosis | None:
    """Report a solution that grows without bound, or whose slope does."""
    return growth(case) or _by_slope(case)


def growth(case: Case) -> Diagnosis | None:
    """Report a solution that has grown exponentially, far beyond all values at its start."""
    elapsed = abs(case.t - case.t0)
    before = max(1.0, *np.abs(case.run.given[1]))
    worst = int(np.argmax(np.abs(case.y)))
    value, slope = case.y[worst], case.yp[worst] * case.state.direction
    if not abs(value) > OUTGROWN * before:
        return None
    rate = slope / value if np.isfinite(slope) else math.log(abs(value) / before) / elapsed
    least, most = FOLDS_OF_E
    if not least < rate * elapsed < most:
        return None
    name = case.names.variable(worst)
    return case.say(
        Cause.BLOW_UP,
        f"{name} has grown to {value:.3g} by t = {case.t:.10g}",
        [f"nothing was larger than {before:.3g} at the start",
         f"{name} keeps doubling every {math.log(2.0) / rate:.2g}"],
        case.t, (), [worst],
    )


def _by_slope(case: Case) -> Diagnosis | None:
    accepted = np.abs(case.steps["h"][case.steps["outcome"] == codes.OK])
    elapsed = abs(case.t - case.t0)
    if len(accepted) < FEWEST_STEPS or elapsed == 0.0:
        return None
    if accepted[-1] > SHRUNK_STEP * accepted.max() and accepted[-1] > TINY_STEP * elapsed:
        return None
    y0 = case.run.given[1]
    slopes = case.steps["slopes"][case.steps["outcome"] == codes.OK][-FEWEST_STEPS:, : case.n]
    slope = np.median(np.abs(slopes), axis=0)      # that of one step may come from a jump
    ratio = slope * elapsed / (np.abs(case.y - y0) + case.tolerance)
    worst = int(np.argmax(ratio))
    if ratio[worst] < UNBOUNDED:
        return None
    exponent = _exponent(case, worst)
    # a matrix that has become singular on the way shows a fold, and so does a slope that large
    # after the solution has passed to the other branch
    alternates = _alternates(case, worst)
    folds = case.status == Status.SINGULAR_MATRIX or alternates or ratio[worst] > INFINITE
    if exponent is None and not folds:
        return None
    name, last = case.names.variable(worst), np.median(slopes[:, worst])
    large = abs(case.y[worst]) > LARGE_GROWTH * max(abs(y0[worst]), 1.0, *np.abs(y0))
    growing = case.y[worst] * last * case.state.direction > 0.0 and not alternates
    unbounded = large or (growing and exponent is not None and exponent > UNBOUNDED_EXPONENT)
    evidence = [
        f"at t = {case.t:.10g} {name} = {case.y[worst]:.4g} with slope {last:.3g}, "
        f"{ratio[worst]:.1g} times its mean slope so far",
        f"the last steps shrank from {accepted.max():.2g} to {accepted[-1]:.2g}",
    ]
    cause = Cause.BLOW_UP if unbounded else Cause.FOLD
    what = f"{name} grows without bound as t approaches {case.t:.10g}"
    return case.say(cause, what, evidence, case.t, (), [worst])


def _alternates(case: Case, j: int) -> bool:
    """Whether the solution goes back and forth at its end, and not because of round-off."""
    accepted = case.steps[case.steps["outcome"] == codes.OK]
    signs = np.sign(accepted["slopes"][-2 * FEWEST_STEPS :, j])
    parts = case.round_off(case.longest_step)
    if parts is None or parts.sum(axis=1).max() >= ROUND_OFF_SHARE:
        return False
    return bool(np.count_nonzero(np.diff(signs)) >= 2)


def _exponent(case: Case, j: int) -> float | None:
    """Exponent q of y' ~ (t* - t)^-q along the last steps; None if they follow no such law.

    The distance of the last point from t* is not known: of several distances the one is taken with
    which the logarithms are closest to a straight line.
    """
    steps = case.steps[case.steps["outcome"] == codes.OK]
    distance, slope, h = (
        np.abs(steps["t"] - case.t), np.abs(steps["slopes"][:, j]), abs(case.state.last_h)
    )
    use = (slope > 0.0) & (distance < NEAR_ENOUGH * abs(case.t - case.t0))
    use &= distance > TOO_CLOSE * h    # closer points may lie beyond the end of the solution
    if np.count_nonzero(use) < 3 or np.ptp(slope[use]) == 0.0:
        return None
    lines = []
    for left in DISTANCES:
        x, y = np.log(distance[use] + left * h), np.log(slope[use])
        lines.append((np.corrcoef(x, y)[0, 1], float(np.polyfit(x, y, 1)[0])))
    correlation, exponent = min(lines)
    return None if correlation > -LEAST_CORRELATION else -exponent
