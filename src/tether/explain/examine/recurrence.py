"""Jumps that recur: all times at which a function of time jumps after the first."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tether.explain.examine.discontinuity import EPS

__all__ = ["all_breaks", "exact_time", "later_jumps"]

POINTS = 1000                          # number of values in an interval
MOST_PERIODS = 20                      # `near` times this is searched first
SMALLEST_JUMP = 0.1                    # least size, relative to the first jump
SHARPNESS = 4.0                        # how much larger a jump is than the changes beside it
SAME_GAP = 1e-7                        # relative difference of gaps that are equal
MOST_LISTED = 12


def exact_time(fun: Callable[[float], float | None], t: float, within: float) -> float:
    """Return the first time after a jump that is known to be within this distance of `t`."""
    reach = 2.0 * within + 8 * EPS * abs(t)
    found = _bisected(fun, t - reach, t + reach)
    return t if found is None else found


def later_jumps(
    fun: Callable[[float], float | None], first: float, jump: float, near: float, end: float
) -> list[float]:
    """Return the times at which a function jumps after the time `first`, in order.

    Parameters
    ----------
    fun : callable
        The value at a time, or None.
    first, jump : float
        When the function jumps first, and by how much.
    near : float
        Scale of the time to the next jump, such as the time that passed before the first one.
    end : float
        Last time of interest.

    Examples
    --------
    >>> from tether.explain.examine.recurrence import later_jumps
    >>> found = later_jumps(lambda t: float(t % 2.0 < 1.0), 1.0, 1.0, 1.0, 4.5)
    >>> [round(t, 9) for t in found]
    [2.0, 3.0, 4.0]
    """
    direction = np.sign(end - first)
    close = first + direction * min(MOST_PERIODS * near, abs(end - first))
    found = _jumps_on(fun, first, close, jump)
    if found or close == end:
        return found
    return _jumps_on(fun, close, end, jump)


def _jumps_on(
    fun: Callable[[float], float | None], low: float, high: float, jump: float
) -> list[float]:
    inside = (np.arange(POINTS) + 0.5) / POINTS
    times = low + inside * (high - low)
    values = [fun(float(t)) for t in times]
    if any(value is None or not np.isfinite(value) for value in values):
        return []
    change = np.abs(np.diff(np.array(values, float)))
    beside = np.pad(change, 1)
    beside = np.maximum(beside[:-2], beside[2:])
    sharp = (change > SMALLEST_JUMP * abs(jump)) & (change > SHARPNESS * beside)
    return [
        time for i in np.flatnonzero(sharp)
        if (time := _bisected(fun, float(times[i]), float(times[i + 1]))) is not None
    ]


def _bisected(fun: Callable[[float], float | None], low: float, high: float) -> float | None:
    """Return the first time after a jump; None if the change turns out not to be a jump."""
    before, after = fun(low), fun(high)
    whole = abs(after - before) if before is not None and after is not None else 0.0
    while abs(high - low) > 2 * EPS * max(abs(low), abs(high)):
        middle = 0.5 * (low + high)
        value = fun(middle)
        if value is None or before is None or after is None:
            return None
        if abs(value - before) < abs(value - after):
            low, before = middle, value
        else:
            high, after = middle, value
    still = abs(after - before) if before is not None and after is not None else 0.0
    return high if still > 0.5 * whole else None


def all_breaks(first: float, later: Sequence[float], end: float) -> str:
    """Write the times of all jumps as an expression of Python.

    Examples
    --------
    >>> from tether.explain.examine.recurrence import all_breaks
    >>> all_breaks(1.0, [], 9.0), all_breaks(1.0, [2.0, 4.5], 9.0)
    ('[1]', '[1, 2, 4.5]')
    >>> all_breaks(1.0, [2.0, 3.0, 4.0], 9.0)
    'np.arange(1, 9.5, 1)'
    >>> all_breaks(0.3, [1.0, 1.3, 2.0, 2.3, 3.0], 9.0)
    'np.concatenate([np.arange(0.3, 9.5, 1), np.arange(1, 9.5, 1)])'
    """
    times = [first, *later]
    for count in (1, 2):                          # of jumps in a period
        period = _period(times, count)
        if period is not None:
            stop = end + 0.5 * period             # a jump at the very end needs a break too
            parts = [
                f"np.arange({_short(t)}, {_short(stop)}, {_short(period)})" for t in times[:count]
            ]
            return parts[0] if count == 1 else f"np.concatenate([{', '.join(parts)}])"
    listed = [f"{t:.10g}" for t in times[:MOST_LISTED]]
    return f"[{', '.join(listed)}{', ...' if len(times) > MOST_LISTED else ''}]"


def _short(number: float) -> str:
    """Write a number with ten digits if it has no more, else with all of them."""
    short = f"{number:.10g}"
    return short if abs(float(short) - number) <= 1e-12 * abs(number) else repr(float(number))


def _period(times: Sequence[float], count: int) -> float | None:
    """Return the period of jumps, with `count` of them in each; None if they are not periodic."""
    if len(times) < 3 * count:
        return None
    gaps = np.array(times[count:]) - np.array(times[:-count])
    period = (times[-1 - (len(times) - 1) % count] - times[0]) / ((len(times) - 1) // count)
    period = float(_short(period))
    return period if np.all(np.abs(gaps - period) <= SAME_GAP * abs(period)) else None
