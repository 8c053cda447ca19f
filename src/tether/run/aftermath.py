"""Aftermath: what a change of the state has made of the event functions.

Where unknowns jump, because an event has acted, by the law of jumps or by another structure, the
functions of all events are compared with their values before. An event whose function has passed
zero happens too, at the same time. Functions at zero up to round-off have no side: one that is left
there rests until it has clearly left, and then the side from which it came counts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from tether._core.events import crossed
from tether.run.watch import EPS, Event

__all__ = ["Aftermath", "Change", "Hold", "Moment", "about_to_happen", "round_off", "values_at"]

# The share of an unknown that round-off may leave ...
UNCERTAIN = 1e-13
# ... and of what a start has moved it by, where its equations were found by differences.
UNCERTAIN_OF_JUMP = 1e-9
# Times that are no farther apart than this many units of round-off count as one.
SAME_TIME = 16.0
# A value above this share of the one before is certainly not zero.
CLEARLY_NOT_ZERO = 1e-6
# Where equations hold a function at zero motions cancel, but for this share of them.
CANCELLED = 1e-6
# Negative: the function does not rest at zero.
MOVING = -1.0


class Moment(NamedTuple):
    """A point of the solution: the user's unknowns."""

    t: float
    y: np.ndarray
    yp: np.ndarray


class Hold(NamedTuple):
    """A function that the equations may hold at zero."""

    side: float                        # from which it came
    slack: float                       # tolerances of the unknowns that it may be off


@dataclass
class Change:
    """A change of the state at one time, as the events see it.

    Attributes
    ----------
    before, after, moved : Moment, Moment, ndarray
        The points, and what the start has moved the unknowns by to make them consistent.
    old, new : ndarray
        Values of the event functions there.
    sides : ndarray
        Where a function that was at zero before came from; NaN if it has no side.
    acting, happened : collection of int
        Events that have made the change, and all that have happened at this time so far.
    floor : ndarray
        What certainly counts as zero of the functions after the change.
    h : float
        The first step from there; zero if the slopes are not known.
    held : mapping of int to Hold
        Events whose functions were held at zero until now.
    tolerance, slack : ndarray, float
        Of the unknowns; so many of them the equations may be off what they hold.
    """

    before: Moment
    after: Moment
    moved: np.ndarray
    old: np.ndarray
    new: np.ndarray
    sides: np.ndarray
    acting: Collection[int]
    happened: Collection[int]
    floor: np.ndarray
    h: float
    held: Mapping[int, Hold]
    tolerance: np.ndarray
    slack: float

    @property
    def uncertain(self) -> np.ndarray:
        """What the unknowns may be off because a start has moved them."""
        return UNCERTAIN_OF_JUMP * np.abs(self.moved)


@dataclass
class Aftermath:
    """What a change has made of the event functions.

    Attributes
    ----------
    set_off : list of int
        Events that happen by it.
    sides : ndarray
        Values from which a change of sign counts from now on; NaN for none.
    rest : ndarray
        What counts as zero of functions that were left there; negative for others.
    held : dict of int to Hold
        Events whose functions do not move from zero, so that the equations may hold them there.
    """

    set_off: list[int]
    sides: np.ndarray
    rest: np.ndarray
    held: dict[int, Hold]

    @classmethod
    @np.errstate(all="ignore")
    def of(cls, change: Change, events: Sequence[Event], args: tuple) -> Aftermath:
        """Compare the functions of events before and after a change."""
        found = cls([], change.new.copy(), np.full(len(events), MOVING), {})
        for number, event in enumerate(events):
            if not _is_clear(change, number) or number in change.acting:
                found._look_at(change, number, event, args)
        return found

    def _look_at(self, change: Change, number: int, event: Event, args: tuple) -> None:
        old, new = change.old[number], change.new[number]
        before, after, hold = change.before, change.after, change.held.get(number)
        loose = change.uncertain + (hold.slack * change.tolerance if hold else 0.0)
        at_zero = max(change.floor[number], round_off(event, after, before, new, args, loose))
        was_clear = abs(old) > at_zero and (
            abs(old) > round_off(event, before, after, old, args, loose)
        )
        happened = number in change.acting or (number in change.happened and not was_clear)
        side = old if was_clear else change.sides[number]
        if abs(new) > at_zero:
            no_side = happened or (hold and not was_clear)
            if not no_side and crossed(side, new, event.direction):
                self.set_off.append(number)
            return
        # a function may be there because what it reads was changed, not the state
        landed = was_clear and not abs(event.value_or_nan(*before, args)) <= at_zero
        if landed and not happened and crossed(side, 0.0, event.direction):
            self.set_off.append(number)
        self.rest[number], self.sides[number] = at_zero, side
        if happened or landed:
            self.sides[number] = _heading(event, change, at_zero, args)
            stays = change.h != 0.0 and bool(np.isnan(self.sides[number]))
            hold = Hold(side, change.slack) if stays else None
        if hold:
            self._hold(hold, change, number, event, args)

    def _hold(
        self, hold: Hold, change: Change, number: int, event: Event, args: tuple
    ) -> None:
        """Let a function rest as closely as the equations may hold it at zero."""
        loose = round_off(
            event, change.after, change.before, change.new[number], args,
            change.uncertain + hold.slack * change.tolerance,
        )
        self.rest[number] = max(self.rest[number], loose)
        self.sides[number], self.held[number] = hold.side, hold


def _is_clear(change: Change, number: int) -> bool:
    """Whether a function is on the side where it was, and far from zero."""
    old, new = change.old[number], change.new[number]
    size = abs(old) + abs(change.sides[number])            # NaN if one of them is
    return bool(old * new > 0.0 and abs(new) > CLEARLY_NOT_ZERO * size)


def _heading(event: Event, change: Change, at_zero: float, args: tuple) -> float:
    """Value on the side to which a function moves from zero; NaN if it does not, or not clearly."""
    t, y, yp = change.after
    near, far = (
        event.value_or_nan(t + h, y + h * yp, yp, args) for h in (0.5 * change.h, change.h)
    )
    moves = 0.5 * change.h * np.abs(yp)
    alone = (event.value_or_nan(t, y + signs * moves, yp, args) for signs in _patterns(len(y)))
    most = max(abs(value) for value in alone)
    is_straight = 1.5 < far / near < 2.5 if near else False
    return far if is_straight and abs(near) > at_zero + CANCELLED * most else np.nan


@np.errstate(all="ignore")
def values_at(events: Sequence[Event], moment: Moment, args: tuple) -> np.ndarray:
    """Values of event functions at a point; NaN where they have none."""
    return np.array([event.value_or_nan(*moment, args) for event in events])


def about_to_happen(
    events: Sequence[Event], before: Moment, end: Moment, args: tuple
) -> list[int]:
    """Return the events whose time misses the end of a run by round-off alone.

    A clock such as sin(pi t / T) is not quite zero at its last tick. `before` is a point ahead of
    the end, from which the functions have come close to zero.
    """
    late = SAME_TIME * EPS * max(abs(before.t), abs(end.t))
    late = late if end.t > before.t else -late
    beyond = Moment(end.t + late, end.y + late * end.yp, end.yp)
    far, near, past = (values_at(events, moment, args) for moment in (before, end, beyond))
    return [
        number for number, event in enumerate(events)
        if near[number] != 0.0 and crossed(near[number], past[number], event.direction)
        and abs(near[number]) <= CLEARLY_NOT_ZERO * abs(far[number])
    ]


@np.errstate(all="ignore")
def round_off(
    event: Event, moment: Moment, other: Moment, value: float, args: tuple,
    tolerance: np.ndarray | None = None,
) -> float:
    """How far from zero the function of an event may be where it is zero but for round-off.

    `other` is a point from which this one was made, `value` the one here. With a `tolerance` the
    unknowns may be off by so much.
    """
    t, y, yp = moment
    late = SAME_TIME * EPS * max(abs(t), abs(other.t))
    points: list[tuple[float, np.ndarray, np.ndarray]]
    points = [(t + late, y + late * yp, yp)]
    moves = UNCERTAIN * np.maximum(np.abs(y), np.abs(other.y))
    if tolerance is not None:
        moves = np.maximum(moves, tolerance)
    bends = UNCERTAIN * np.maximum(np.abs(yp), np.abs(other.yp))
    points += [(t, y + signs * moves, yp - signs * bends) for signs in _patterns(len(y))]
    found = [abs(event.value_or_nan(*point, args) - value) for point in points]
    return 2.0 * max((change for change in found if np.isfinite(change)), default=0.0)


@lru_cache(maxsize=8)
def _patterns(n: int) -> list[np.ndarray]:
    """Signs for n numbers, such that any two have different ones now and then, and equal ones."""
    numbers = np.arange(n)
    bits = max(1, (n - 1).bit_length())
    return [np.ones(n), *(1.0 - 2.0 * (numbers >> bit & 1) for bit in range(bits))]
