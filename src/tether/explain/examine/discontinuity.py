"""Find a jump or a kink of a function of time between two times, by bisection."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

__all__ = ["Break", "find_break"]

EPS = float(np.finfo(float).eps)
FIRST_POINTS = 129
POINTS = 17
# A second difference shrinks with its width w as w^p: p is 0 for a jump, 1 for a kink, 2 if
# smooth. These are the bounds between them. At a pole it grows until times can no longer be told
# apart.
JUMP, KINK = 0.3, 1.5
POLE = 30.0                          # growth of the second difference that means a pole
SPIKE = 0.5                          # least rise across a jump; a spike falls back
# Smallest jump, relative to the size that matters.
SMALLEST_JUMP = 0.5
NARROWEST = 1e-4                     # last width for a jump, relative to the first
CLOSEST_TIMES = 1e-7                 # relative to the interval
# Second differences below this many units of round-off say nothing.
ROUND_OFF = 64.0


@dataclass(frozen=True)
class Break:
    """A jump or a kink.

    Attributes
    ----------
    t : float
        When it happens.
    row : int
        Component of the function.
    jump : float
        Its size; zero for a kink.
    within : float
        Uncertainty of `t`.
    timed : bool
        Whether it is known to depend on the time alone.
    """

    t: float
    row: int
    jump: float
    within: float = 0.0
    timed: bool = False

    @property
    def words(self) -> str:
        """Say what happens."""
        return f"jumps by {self.jump:.3g}" if self.jump else "has a kink"


def find_break(
    fun: Callable[[float], np.ndarray | None],
    first: float,
    last: float,
    size: np.ndarray,
    terms: np.ndarray | float = 0.0,
) -> Break | None:
    """Follow the largest second difference into ever smaller intervals.

    Parameters
    ----------
    fun : callable
        Values at a time, or None.
    first, last : float
        Ends of the interval.
    size : ndarray
        Change of each value that matters.
    terms : ndarray
        Sums of the sizes of each value's terms, which tell its round-off.

    Examples
    --------
    >>> import numpy as np
    >>> from tether.explain.examine.discontinuity import find_break
    >>> found = find_break(lambda t: np.array([np.sin(t), t + (t > 0.3)]), 0.0, 1.0, np.ones(2))
    >>> round(found.t, 9), found.row, round(found.jump, 9)
    (0.3, 1, 1.0)
    >>> find_break(lambda t: np.array([np.sin(t)]), 0.0, 1.0, np.full(1, 1e-9)) is None
    True
    """
    times = np.linspace(first, last, FIRST_POINTS)
    floor = _noise(fun, first, last)
    trail: list[tuple[float, float, int]] = []     # width, second difference, row
    rises: list[float] = []            # from one side to the other, over the second difference
    while True:
        values = [fun(t) for t in times]
        if any(v is None for v in values):
            return None
        table = np.array(values)
        with np.errstate(all="ignore"):
            second = np.abs(table[:-2] - 2.0 * table[1:-1] + table[2:])
            largest = np.nanmax(np.abs(table), axis=0, initial=1e-300)
            noise = ROUND_OFF * EPS * np.maximum(largest, terms) + floor
            # times are rounded too
            steepest = np.nanmax(np.abs(np.diff(table, axis=0)), axis=0, initial=0.0)
            noise += ROUND_OFF * EPS * abs(last) * steepest / abs(times[1] - times[0])
        if trail:                          # follow one row only
            others = np.arange(table.shape[1]) != trail[-1][2]
            second[:, others] = 0.0
        second = np.where(np.isfinite(second) & (second > noise), second, 0.0)
        j, row = divmod(int(np.argmax(second / size)), second.shape[1])
        width = abs(times[j + 2] - times[j])
        if second[j, row] == 0.0:
            break
        trail.append((width, float(second[j, row]), row))
        rises.append(abs(table[j + 2, row] - table[j, row]) / second[j, row])
        middle = times[j + 1]
        low, high = times[j], times[j + 2]
        if width <= 16 * EPS * max(abs(low), abs(high)):
            break
        times = np.linspace(low, high, POINTS)
    if len(trail) < 3:
        return None
    (w2, d2, _), (w1, d1, row) = trail[-2:]
    (w0, d0, _) = trail[0]
    last_power = math.log(d2 / d1) / math.log(w2 / w1)
    stays = d1 < POLE * d0 and min(rises[-2:]) > SPIKE
    if w1 < NARROWEST * w0 and last_power < JUMP and d1 > SMALLEST_JUMP * size[row] and stays:
        return Break(float(middle), row, d1, w1)
    powers = [
        math.log(a[1] / b[1]) / math.log(a[0] / b[0])
        for a, b in pairwise(trail)
    ]
    if JUMP <= np.median(powers) < KINK and powers[-1] < KINK and d0 > size[row]:
        return Break(float(middle), row, 0.0, w1)
    return None


def _noise(
    fun: Callable[[float], np.ndarray | None], first: float, last: float
) -> np.ndarray | float:
    """Scatter of the function at either end, over times so close that it hardly changes."""
    scatter: np.ndarray | float = 0.0
    for end, inward in ((first, last - first), (last, first - last)):
        values = [fun(end + k * CLOSEST_TIMES * inward) for k in range(9)]
        if any(v is None for v in values):
            continue
        second = np.abs(np.diff(np.array(values), 2, axis=0))
        if np.isfinite(second).all():
            found = 8.0 * second.max(axis=0)
            scatter = found if isinstance(scatter, float) else np.minimum(scatter, found)
    return scatter
