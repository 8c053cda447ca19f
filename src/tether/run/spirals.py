"""Notice surfaces that a solution passes ever faster, until it stays on all of them."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable

import numpy as np

from tether.run.watch import EPS

__all__ = ["Spiral"]

# So many times a surface was passed before a spiral is noticed, each time sooner than the time
# before last: the two directions may take different times.
FEWEST_PASSES = 8
# A spiral has ended if y changes by less than this share of the tolerance while each of its
# surfaces is passed this many times ...
ENDED, LAST_PASSES = 3e-4, 4
# ... or if that takes less time than so many units of round-off.
SHORTEST = 1e4
PASSES_KEPT = 64
# It has stalled if all of its last intervals are below this share of the longest one.
STALLED = 0.1
# The first step after a surface is passed in a spiral, as a share of the time since the last one:
# within the tolerance, a longer step could pass the next one anywhere.
FIRST_STEP_SHARE = 0.25


class Spiral:
    """The surfaces that a solution has passed, and when.

    Examples
    --------
    >>> import numpy as np
    >>> from tether.run.spirals import Spiral
    >>> spiral, tolerances = Spiral(), np.array([1e-6])
    >>> ends = [spiral.note(1 - 0.5**k, {0}, np.array([0.2**k]), tolerances) for k in range(20)]
    >>> [k for k, end in enumerate(ends) if end][0]
    17
    """

    def __init__(self) -> None:
        self._passes: deque[tuple[float, set[int], np.ndarray]] = deque(maxlen=PASSES_KEPT)

    def forget(self) -> None:
        """Forget everything: the state or the functions have changed."""
        self._passes.clear()

    def note(
        self, t: float, functions: Iterable[int], y: np.ndarray, tolerances: np.ndarray
    ) -> tuple[int, ...]:
        """Note functions of surfaces that are passed; return those on which the solution ends."""
        self._passes.append((t, set(functions), y.copy()))
        for function in self._passes[-1][1]:
            mine = [k for k, some in enumerate(self._passes) if function in some[1]]
            if len(mine) >= FEWEST_PASSES and self._has_ended(mine[-FEWEST_PASSES:], tolerances):
                recent = [f for k in range(mine[-LAST_PASSES], len(self._passes))
                          for f in self._passes[k][1]]
                return tuple(sorted(f for f in set(recent) if recent.count(f) > 1))
        return ()

    def passes(self, function: int) -> bool:
        """Tell whether a surface has been passed again and again."""
        return sum(function in some[1] for some in self._passes) >= LAST_PASSES

    def first_step(self, t: float) -> float:
        """Longest step from a surface that was passed at t; infinite outside of spirals."""
        times = [some[0] for some in self._passes if self._passes[-1][1] & some[1]][-4:]
        if len(times) < 4 or times[-1] != t:
            return math.inf
        before = max(abs(t - some[0]) for some in list(self._passes)[-3:])
        return FIRST_STEP_SHARE * before

    def has_stalled(self, function: int) -> bool:
        """Tell whether a surface is passed as fast as ever before, but no longer ever faster.

        Errors within the tolerance keep the solution from coming to its end.
        """
        times = np.array([some[0] for some in self._passes if function in some[1]])
        gaps = np.abs(np.diff(times))
        if len(gaps) < 2 * FEWEST_PASSES:
            return False
        last = gaps[-FEWEST_PASSES:]
        return bool(last.max() < STALLED * gaps.max() and not np.all(last[2:] < last[:-2]))

    def _has_ended(self, mine: list[int], tolerances: np.ndarray) -> bool:
        times = np.array([self._passes[k][0] for k in mine])
        gaps, now = np.abs(np.diff(times)), self._passes[-1]
        if not np.all(gaps[2:] < gaps[:-2]):
            return False
        last = mine[-LAST_PASSES:]
        if abs(now[0] - self._passes[last[0]][0]) < SHORTEST * EPS * abs(now[0]):
            return True
        return all(
            np.all(np.abs(self._passes[k][2] - now[2]) <= ENDED * tolerances) for k in last
        )
