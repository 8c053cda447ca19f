"""Time at equal digits, read off two work-precision curves.

A curve is one solver's runs on one problem, from the loosest tolerance to the tightest. It is
made monotone and then inverted:

1. digits and log10(time) are each replaced by their isotonic regression (least squares, pool
   adjacent violators) against the order of the tolerances. A lucky run that hits many digits by
   chance is averaged with its neighbours, where a Pareto front would count nothing but the luck;
2. of runs that share their digits after step 1 only the cheapest is kept;
3. log10(time) is interpolated linearly in digits, which are themselves -log10(error). Nothing is
   extrapolated: a level outside the digits of either curve has no ratio.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import isotonic_regression


@dataclass(frozen=True)
class Curve:
    """Monotone work-precision curve: digits strictly increasing, with log10 of the seconds."""

    digits: np.ndarray
    log_seconds: np.ndarray

    def seconds_at(self, level: float) -> float:
        """Time for a number of digits; nan outside the curve."""
        log = np.interp(level, self.digits, self.log_seconds, left=np.nan, right=np.nan)
        return float(10**log)


def monotone_curve(digits: list[float], seconds: list[float]) -> Curve:
    """Make a curve from runs in the order of falling tolerance.

    Examples
    --------
    The second run was lucky; it is averaged with the third, and costs the less of both.

    >>> curve = monotone_curve([2.0, 6.0, 4.0, 6.0], [0.01, 0.1, 0.2, 1.0])
    >>> curve.digits.tolist()
    [2.0, 5.0, 6.0]
    >>> round(curve.seconds_at(5.5), 3), curve.seconds_at(7.0)
    (0.316, nan)
    """
    fitted = isotonic_regression(digits).x
    logs = isotonic_regression(np.log10(seconds)).x
    # rounding: pooled values are equal only up to the last bit
    _, first = np.unique(fitted.round(9), return_index=True)
    return Curve(fitted[first], logs[first])


def common_levels(one: Curve, other: Curve) -> list[float]:
    """Whole and half digits that both curves reach.

    Examples
    --------
    >>> one = monotone_curve([2.2, 4.4], [0.1, 0.2])
    >>> common_levels(one, monotone_curve([3.0, 9.0], [0.1, 0.2]))
    [3.0, 3.5, 4.0]
    """
    low = max(one.digits[0], other.digits[0])
    high = min(one.digits[-1], other.digits[-1])
    return (np.arange(np.ceil(2 * low), np.floor(2 * high) + 1) / 2).tolist()
