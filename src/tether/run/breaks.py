"""Breaks: times at which a run stops and restarts, because something may jump there.

They are given by the user, or are times at which a traced function switches by time alone
(`tether.structure.switch_times`). The core stops two units of round-off before a break, and the run
restarts two units after it: it does not matter to which side the break itself belongs. The solution
is carried over what lies between along its slopes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tether.base.reason import Kind
from tether.base.status import REACHED_END, RUNNING, Status
from tether.run.part import Part
from tether.run.replan import keep_history, restart_at
from tether.structure.switch_times import SwitchTimes, Timetable

if TYPE_CHECKING:
    from tether.run.integration import Integration
    from tether.run.watch import EventFunctions

__all__ = ["Breaks"]

EPS = float(np.finfo(float).eps)
# Breaks closer together than this many times `Breaks.beside` count as one.
SAME_BREAK = 8.0
# Events are searched for beyond the end of the interval, by this share of it.
EVENT_MARGIN = 1e-6
# A run without an end looks ahead by this many times its first step.
LOOK_AHEAD = 1000.0


class Breaks(Part):
    """The breaks of one run.

    Parameters
    ----------
    run : Integration
        The run, at its start.
    given : sequence of float
        Breaks of the user, in the order in which the run reaches them.

    Attributes
    ----------
    events : EventFunctions or None
        Gives the times of events that depend on time alone.
    """

    events: EventFunctions | None = None
    _next: float | None = None

    def __init__(self, run: Integration, given: Sequence[float] = ()) -> None:
        super().__init__(run)
        self._given = list(given)
        self.t_start, self.t_final = run.state.t, run.state.t_end
        self._equations, self._events = _Lookahead(), _Lookahead()

    def beside(self, t: float) -> float:
        """Return a time difference that is round-off relative to the times of the run."""
        span = abs(self.t_final - self.t_start)
        return 2.0 * EPS * max(abs(t), 1e-3 * span if math.isfinite(span) else 0.0)

    def same(self, t: float, other: float) -> bool:
        """Tell whether two times are equal up to round-off: no step fits in between."""
        return abs(other - t) <= SAME_BREAK * self.beside(t)

    @property
    def reached(self) -> bool:
        """Whether the run has reached a break, not its end."""
        return _has_reached_break(self.run, self.t_final)

    def aim(self) -> None:
        """Let the core stop just before the next break, where a forcing may already have jumped."""
        run = self.run
        if _has_reached_break(run, self.t_final):
            return                             # that break is crossed first
        if self._given or self.events is not None or run.model.switch_times is not None:
            self._aim_from(run.t)
            return
        self._equations.forget()               # nothing lies ahead except the end
        self._next, run.state.t_end, run.between_breaks = None, self.t_final, False

    def _aim_from(self, t: float) -> None:
        s = self.run.state
        passed = SAME_BREAK * self.beside(t)
        while self._given and s.direction * (self._given[0] - t) <= passed:
            self._given.pop(0)
        ahead = [*self._given[:1]]
        switch = self._switch_after(t + s.direction * passed)
        if switch is not None:
            ahead.append(switch)
        ahead = [t for t in ahead if s.direction * (self.t_final - t) >= 0.0]
        self._next = min(ahead, key=lambda t: s.direction * t, default=None)
        s.t_end, known = self.t_final, self._equations.t_end
        if self._next is not None:
            s.t_end = self._next - s.direction * self.beside(self._next)
        elif known is not None and s.direction * (self.t_final - known) > 0.0:
            s.t_end = known                    # look further from there
        if self.events is not None:
            self._land_between_events(t + s.direction * passed)
        self.run.between_breaks = s.t_end != self.t_final and t != self.t_start

    def _land_between_events(self, t: float) -> None:
        """Let a step end between the next two events that depend on time alone, to see both."""
        s = self.run.state
        assert self.events is not None
        what, values = self.events.switch_times
        until = self._look_ahead()
        until += EVENT_MARGIN * (until - self.t_start)  # to see events right at the end as well
        place = first = self._events.after(t, what, values, self.run.t, until)
        if first is not None:
            behind = first + s.direction * SAME_BREAK * self.beside(first)
            second = self._events.after(behind, what, values, self.run.t, until)
            place = None if second is None else 0.5 * (first + second)
        if place is None:
            place = self._events.t_end         # look further from there
        if place is not None and s.direction * (s.t_end - place) > 0.0:
            self._next, s.t_end = None, place

    def _switch_after(self, t: float) -> float | None:
        """Return when the function switches next; None if it does not."""
        run = self.run
        what = run.model.switch_times
        if what is None:
            self._equations.forget()
            return None
        return self._equations.after(t, what, run.model.inputs, run.t, self._look_ahead())

    def _look_ahead(self) -> float:
        if math.isfinite(self.t_final):
            return self.t_final
        s = self.run.state
        return s.t + LOOK_AHEAD * s.h

    def pass_at_once(self) -> None:
        """If something switches at the start, restart right after it."""
        run = self.run
        if run.model.switch_times is None:
            return
        s = run.state
        switch = self._switch_after(s.t)
        if switch is not None and self.same(s.t, switch):
            behind = switch + s.direction * self.beside(switch)
            restart_at(run, behind, run.y, run.yp)

    @property
    def time(self) -> float | None:
        """The break that has been reached, or the end if they are equal; None for neither."""
        if self._next is None:
            return None
        return self.t_final if self.same(self._next, self.t_final) else self._next

    def cross(self) -> tuple[float, bool]:
        """Restart after the break; return the time, and whether the run keeps its history."""
        run, last = self.run, self._next
        s = run.state
        if last is None:  # not a break, but the time up to which the run looked ahead
            run.status = RUNNING
            self.aim()
            return run.t, True
        first, is_given = last, False
        while True:
            behind = last + s.direction * self.beside(last)
            while self._given and s.direction * (self._given[0] - last) <= 0.0:
                self._given.pop(0)
                is_given = True
            ahead = (*self._given[:1], self._switch_after(behind))
            near = [t for t in ahead if t is not None and self.same(last, t)]
            if not near:
                break
            last = max(near, key=lambda t: s.direction * t)
        y, yp, before, last_step = run.y, run.yp, run.model, run.polynomial()
        pace = s.h, s.steps_at_order
        self._aim_from(behind)                 # the first step depends on the distance to it
        # no step covers the time just before and just behind the break: a short pulse needs it
        restart_at(run, behind, y + (first - run.t) * yp, yp)
        if run.start.success:
            run.state.y_now[:] += (behind - last) * run.state.yp_now
        if not run.start.success and run.start.reason.kind is Kind.NOT_FINITE:
            run.status = Status.NON_FINITE
        if run.model is not before or is_given:
            return behind, run.model is not before and keep_history(run, last_step, run.t)
        goes_on = keep_history(run, last_step, run.t, only_without_kink=True)
        if goes_on:                            # as if there had been no break
            s.h, s.steps_at_order = pace
        return behind, goes_on


def _has_reached_break(run: Integration, t_final: float) -> bool:
    """Tell whether a run has reached a break, not its end."""
    return run.state.t_end != t_final and run.status == REACHED_END


class _Lookahead:
    """Times at which something switches, known some way ahead."""

    _what: SwitchTimes | None = None
    _table: Timetable | None = None
    _for = b""                                 # inputs for which the timetable was made

    def forget(self) -> None:
        """Note that nothing switches."""
        self._what = self._table = None

    @property
    def t_end(self) -> float | None:
        """Time up to which switches are known; None if nothing switches."""
        return None if self._table is None else self._table.t_end

    def after(
        self, t: float, what: SwitchTimes | None, values: np.ndarray, now: float, until: float
    ) -> float | None:
        """Find the first switch after t; look ahead from `now`, where the run is, to `until`."""
        if what is None:
            self.forget()
            return None
        is_old = what is not self._what or values.tobytes() != self._for
        if self._table is None or is_old or self._table.t_end == now != until:
            self._what, self._for = what, values.tobytes()
            self._table = what.timetable(values, now, until)
        return self._table.next(t)
