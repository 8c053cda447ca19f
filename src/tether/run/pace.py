"""Runs that would never end: steps that do not advance, events that accumulate."""

from __future__ import annotations

import math
from collections import deque

import numpy as np

from tether._core import codes
from tether._core.state import State
from tether.run.attempts import read_steps

__all__ = ["Pace", "Storm"]

EPS = float(np.finfo(float).eps)
# A run creeps if this many steps advance by less than this share of the time that is left, this
# many times in a row, while the steps do not grow. It would take 1e10 steps.
STEPS_PER_LOOK = 10_000
CREEPING_SHARE = 1e-6
LOOKS_IN_A_ROW = 10
# ... and if more than this share of its last attempts failed, or its order is below this: a run
# that has many periods ahead shows neither. A run that shows both chatters, and then this larger
# share, which means 1e6 steps, is enough.
FAILING_SHARE = 0.1
LOW_ORDER = 2
CHATTERING_SHARE = 1e-2
# Events accumulate if the state was changed this many times in a row, each time sooner than the
# time before, at intervals below this share of the time so far; or this many times without any
# progress.
FEWEST_CHANGES = 12
CLOSE_SHARE = 1e-7
MOST_CHANGES = 1000
TIMES_KEPT = 64
# Intervals that shrink by at least this factor add up to a finite time; so many are needed to tell.
LARGEST_RATIO = 0.99
FEWEST_GAPS = 4
# The first step after a change of the state, as a share of the interval since the previous one: a
# longer step might pass the next one.
FIRST_STEP_SHARE = 0.25


class Pace:
    """Notice when tens of thousands of steps do not advance the time.

    Examples
    --------
    >>> from tether.run.integration import Integration
    >>> from tether.run.pace import Pace
    >>> run = Integration(lambda t, y, yp: [yp[0] + y[0]], 0.0, [1.0], t_bound=1.0)
    >>> run.step().name, Pace(0.0, 1.0).creeps(run.state)
    ('RUNNING', False)
    """

    def __init__(self, t: float, t_end: float) -> None:
        self.t, self.t_end, self.t_start = t, t_end, t
        self.steps, self.h = 0, 0.0        # the longest mean step since the run became slow
        self.slow, self.slower = 0, 0      # how many times in a row, by either share

    def creeps(self, state: State, open_end: bool = False) -> bool:
        """Tell whether the run would never end, and not merely because so much happens.

        With an open end, `t_end` may be arbitrarily far away: the time so far counts instead.
        """
        taken = state.steps - self.steps
        if taken < STEPS_PER_LOOK:
            return False
        h = abs(state.t - self.t) / taken      # single steps may vary by decades
        left = abs((self.t_start if open_end else self.t_end) - self.t)
        share = h * STEPS_PER_LOOK / left if left else math.inf
        grows = h > 2.0 * self.h
        self.slow = 0 if grows or share > CHATTERING_SHARE else self.slow + 1
        self.slower = 0 if grows or share > CREEPING_SHARE else self.slower + 1
        self.steps, self.t, self.h = state.steps, state.t, max(h, self.h)
        return self.slow >= LOOKS_IN_A_ROW and self._in_trouble(state)

    def _in_trouble(self, state: State) -> bool:
        """Distinguish a run in trouble from one that has many periods ahead."""
        last = read_steps(state)
        failing = np.mean(last["outcome"] != codes.OK) > FAILING_SHARE
        low = np.median(last["order"]) < LOW_ORDER
        return bool((failing or low) if self.slower >= LOOKS_IN_A_ROW else (failing and low))

    @property
    def crept(self) -> int:
        """Steps without progress."""
        return self.slow * STEPS_PER_LOOK


class Storm:
    """Notice when events that change the state accumulate.

    Attributes
    ----------
    times : deque of float
        The last changes.
    t : float or None
        Time at which they accumulate, once known.
    circle : list of int
        Events that cause each other there without end.

    Examples
    --------
    >>> from tether.run.pace import Storm
    >>> storm = Storm(0.0)
    >>> any(storm.note(1.0 - 0.5**n, 1.0) for n in range(20)), any(
    ...     storm.note(1.0 - 0.5**n, 1.0) for n in range(20, 40))
    (False, True)
    >>> round(storm.t, 6)
    1.0
    """

    def __init__(self, t_start: float) -> None:
        self.t_start = t_start
        self.times: deque[float] = deque(maxlen=TIMES_KEPT)
        self.count = 0
        self.t: float | None = None
        self.circle: list[int] = []

    def end_in_circle(self, t: float, events: list[int]) -> None:
        """Record events that cause each other without end."""
        self.t, self.circle = t, sorted(events)

    @property
    def gaps(self) -> np.ndarray:
        """Intervals between the last changes."""
        return np.abs(np.diff(self.times))[-FEWEST_CHANGES:]

    def gap_to(self, t: float) -> float:
        """Longest step after a change at t that will not pass the next one; zero for no limit."""
        return FIRST_STEP_SHARE * abs(t - self.times[-1]) if self.times else 0.0

    def note(self, t: float, left: float) -> bool:
        """Record a change, `left` before the end; tell whether changes accumulate."""
        self.times.append(t)
        self.count += 1
        gaps = self.gaps
        if len(gaps) < FEWEST_CHANGES:
            return False
        standing = gaps.max() <= 64 * EPS * abs(t)
        slow = abs(t - self.times[0]) < CREEPING_SHARE * left * len(self.times) / MOST_CHANGES
        if standing or (self.count >= MOST_CHANGES and slow):
            self.t = t
        elif np.all(gaps[1:] < gaps[:-1]) and gaps[-1] < CLOSE_SHARE * abs(t - self.t_start):
            self._extrapolate()
        return self.t is not None

    def converges(self) -> bool:
        """Tell whether the last changes belong to a series that converges."""
        gaps = self.gaps
        if len(gaps) < FEWEST_GAPS:
            return False
        if np.max(gaps[1:] / np.maximum(gaps[:-1], 1e-300)) > LARGEST_RATIO:
            return False
        self._extrapolate()
        return True

    def _extrapolate(self) -> None:
        gaps = self.gaps
        ratio = float(np.median(gaps[1:] / gaps[:-1]))
        forward = np.sign(self.times[-1] - self.times[0])
        self.t = float(self.times[-1] + forward * gaps[-1] * ratio / (1.0 - ratio))
