"""Aftermath: how a change of the state affects the event functions.

Where unknowns jump, because an event has acted, by the law of jumps or because the structure has
changed, the functions of all events are compared with their values before. An event whose function
has passed zero happens too, at the same time. A function that is zero up to round-off has no sign:
it rests until it has clearly left zero, and then the side from which it came counts.
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

# Relative round-off that an unknown may have ...
UNCERTAIN = 1e-13
# ... and, as a share of its jump, where the equations of the start were found by differences.
UNCERTAIN_OF_JUMP = 1e-9
# Times no farther apart than this many units of round-off count as equal.
SAME_TIME = 16.0
# A value above this share of the previous one is certainly not zero.
CLEARLY_NOT_ZERO = 1e-6
# Where equations hold a function at zero, the effects of motions cancel up to this share.
CANCELLED = 1e-6
# Value of `rest` for a function that does not rest at zero.
MOVING = -1.0


class Moment(NamedTuple):
    """A point of the solution: the user's unknowns."""

    t: float
    y: np.ndarray
    yp: np.ndarray


class Hold(NamedTuple):
    """A function that the equations may hold at zero."""

    side: float                        # side from which it came
    slack: float                       # how far it may be off, in tolerances of the unknowns


@dataclass
class Change:
    """A change of the state at one time, seen from the events.

    Attributes
    ----------
    before, after, moved : Moment, Moment, ndarray
        The points, and how far the start moved the unknowns to make them consistent.
    old, new : ndarray
        Values of the event functions at these points.
    sides : ndarray
        Side from which a function that was zero before came; NaN if it has none.
    acting, happened : collection of int
        Events that caused the change, and all that have happened at this time so far.
    floor : ndarray
        Size below which each function certainly counts as zero after the change.
    h : float
        The first step after it; zero if the slopes are not known.
    held : mapping of int to Hold
        Events whose functions have been held at zero until now.
    tolerance, slack : ndarray, float
        Tolerances of the unknowns, and how many of them the equations may deviate from what they
        hold.
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
        """Errors that the unknowns may have because a start has moved them."""
        return UNCERTAIN_OF_JUMP * np.abs(self.moved)


@dataclass
class Aftermath:
    """How a change affects the event functions.

    Attributes
    ----------
    set_off : list of int
        Events that the change causes.
    sides : ndarray
        Values with which signs are compared from now on; NaN for none.
    rest : ndarray
        Sizes below which functions left at zero count as zero; negative for others.
    held : dict of int to Hold
        Events whose functions do not leave zero, so that the equations may hold them there.
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
        # a function may be there because its parameters were changed, not the state
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
        """Let a function rest as accurately as the equations may hold it at zero."""
        loose = round_off(
            event, change.after, change.before, change.new[number], args,
            change.uncertain + hold.slack * change.tolerance,
        )
        self.rest[number] = max(self.rest[number], loose)
        self.sides[number], self.held[number] = hold.side, hold


def _is_clear(change: Change, number: int) -> bool:
    """Tell whether a function has kept its sign and is far from zero."""
    old, new = change.old[number], change.new[number]
    size = abs(old) + abs(change.sides[number])            # NaN if one of them is
    return bool(old * new > 0.0 and abs(new) > CLEARLY_NOT_ZERO * size)


def _heading(event: Event, change: Change, at_zero: float, args: tuple) -> float:
    """Value on the side to which a function moves from zero; NaN if there is no clear motion."""
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
    """Return the events that miss the end of a run only by round-off.

    A clock such as sin(pi t / T) is not quite zero at its last tick. `before` is a point before the
    end, from which the functions have come close to zero.
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
    """How far from zero an event's function may be where it is zero except for round-off.

    `other` is a point from which this one was computed, `value` the value here. The unknowns may
    have errors of the size of `tolerance`, if given.
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
    """Signs for n numbers: any two are equal in some patterns and different in others."""
    numbers = np.arange(n)
    bits = max(1, (n - 1).bit_length())
    return [np.ones(n), *(1.0 - 2.0 * (numbers >> bit & 1) for bit in range(bits))]
