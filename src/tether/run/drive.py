"""Driver: run an integration to its end; serve events, callback, limits and progress."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from tether._core import codes, store
from tether._core import events as core_events
from tether.base.checks import check_vector
from tether.base.reason import Kind
from tether.base.status import REACHED_END, RUNNING, TRACE_DIFFERS, Status
from tether.run.aftermath import (
    Aftermath,
    Change,
    Hold,
    Moment,
    about_to_happen,
    round_off,
    values_at,
)
from tether.run.breaks import Breaks
from tether.run.happening import Happening
from tether.run.integration import Integration
from tether.run.method import Polynomial
from tether.run.pace import Pace, Storm
from tether.run.record import Record
from tether.run.replan import keep_history, restart_at, switches
from tether.run.watch import EPS, Event, EventFunctions, Switch

if TYPE_CHECKING:
    from tether.run.progress import ProgressBar

# Seconds the core may run before Python checks for Ctrl-C, limits and progress.
BATCH_SECONDS = 5e-3
# A value this many times the one where the event was located is more than round-off.
ABOVE_ROUND_OFF = 100.0
# A start may change an event's value by this share of its value one step before.
NEGLIGIBLE_CHANGE = 1e-6
# A function that rests at zero is at rest within this many times its round-off.
REST_MARGIN = 4.0
# Deviation, in tolerances, of unknowns that are not projected onto a constraint.
HELD_WITHIN = 10.0
# Limit on how many times one event may happen at one time.
MOST_AT_ONCE = 100
# Unknowns times steps of the first batch, for which a program needs hardly any time.
FIRST_BATCH = 1280


class Driver:
    """One run of `Integration` with its record, events, callback, limits and progress bar."""

    segment_step = 0                           # where the current segment began, at `segment_t`
    cut_at: tuple[float, np.ndarray, np.ndarray] | None = None
    had_effects = False                        # of the user's code

    def __init__(
        self,
        integration: Integration,
        record: Record,
        events: list[Event],
        callback: Callable | None,
        progress: ProgressBar | None,
        breaks: Sequence[float] = (),
    ) -> None:
        self.integration, self.record, self.events = integration, record, events
        self.callback, self.progress = callback, progress
        self.state = state = integration.state
        self.functions = EventFunctions(integration, events) if events else None
        self.args = integration.problem.args
        self.t_start = self.t_reached = self.segment_t = state.t
        self.began = integration.began
        self.t_final, self.breaks = state.t_end, Breaks(integration, breaks)
        self.far_side: dict[int, float] = {}               # sides of events that have just acted
        self.at_rest: dict[int, float] = {}        # events left at zero, and what counts as zero
        self.held: dict[int, Hold] = {}            # ... and may be held there
        self.n_found = integration.model.constraints.n_found
        self.watched: list[Event] = events                 # with surfaces on which the plan depends
        self.breaks.events = self.functions
        self.breaks.pass_at_once()
        self._follow_plan()
        self.start = integration.start             # a condition may change right at the start

    @cached_property
    def pace(self) -> Pace:
        """The detector of steps that do not advance."""
        return Pace(self.t_start, self.t_final)

    @cached_property
    def storm(self) -> Storm:
        """The detector of events that accumulate."""
        return Storm(self.t_start)

    @property
    def can_be_repeated(self) -> bool:
        """Whether the run can be restarted from its beginning without anybody noticing."""
        always = self.integration.options.trace == "always"
        return not (self.had_effects or self.integration.changed or always)

    @property
    def seconds(self) -> float:
        """Time since the run began."""
        return time.perf_counter() - self.began

    def run(self) -> Status:
        """Integrate until the end, a failure, or a request to stop."""
        # a change of structure may have moved the state's time past the start
        self.record.begin_part(self.t_start, self.state.y_now, self.state.yp_now)
        store.store_outputs_until(self.state, self.t_start)
        self._arm_events()
        try:
            self._run()
        finally:
            if self.progress is not None:
                self.progress.close(*self._position())
        return self.integration.status

    def _run(self) -> None:
        python = self.state.python_residual or self.callback is not None
        count = 1 if python else max(1, FIRST_BATCH // self.state.n)
        while self.integration.status == RUNNING:
            self.record.reserve(1)     # this also deals with STORE_FULL
            before, since = self.state.steps, time.perf_counter()
            allowed = self._allowed(count)
            try:
                code = self.integration.advance(allowed)
            finally:
                self.t_reached = self.integration.t
            if self.integration.status == TRACE_DIFFERS:
                return
            if code == codes.NO_EVENT_VALUE:
                assert self.functions is not None
                self.functions.call_functions()
                continue
            if self.integration.state is not self.state:
                self._note_restart()
            if self.far_side and code != codes.EVENT_FOUND:
                self._check_missed()
            if code == codes.EVENT_FOUND:
                self._serve_events()
            if self.callback is not None and self.state.steps > before:
                self._call_back()
            if self.breaks.reached:
                self._pass_break()
            self._check_limits()
            self._show_progress()
            if self.callback is None and allowed == count:
                spent = time.perf_counter() - since
                if spent >= BATCH_SECONDS / 2:
                    count = max(1, count // 2)
                elif code == codes.PAUSED:     # the whole batch; an early return tells nothing
                    count *= 2

        if self.events and self.integration.status == REACHED_END:
            self._serve_end()

    # --- limits, callback, progress -------------------------------------------------------

    def _allowed(self, count: int) -> int:
        limit = self.integration.options.max_steps
        count = 1 if self.far_side else count
        return count if limit is None else min(count, limit - self.state.steps)

    def _check_limits(self) -> None:
        if self.integration.status != RUNNING:
            return
        options = self.integration.options
        if not self.record.has_room:
            self.integration.status = Status.OUT_OF_MEMORY
        elif options.max_steps is not None and self.state.steps >= options.max_steps:
            self.integration.status = Status.MAX_STEPS
        elif options.max_seconds is not None and self.seconds > options.max_seconds:
            self.integration.status = Status.MAX_SECONDS
        elif options.max_steps is options.max_seconds is None and self.pace.creeps(
            self.state, self._open_end
        ):
            self.integration.status = Status.NO_PROGRESS

    @property
    def _open_end(self) -> bool:
        """Whether the user's code may stop the run before the end of the interval."""
        return self.callback is not None or any(
            event.stops_after != np.inf for event in self.events
        )

    # --- breaks ---------------------------------------------------------------------------

    def _pass_break(self) -> None:
        """Restart just after the break; what is stored belongs to the break itself."""
        s, run = self.state, self.integration
        t = self.breaks.time
        if t is None:                          # the core only stopped to see events of time alone
            self.breaks.cross()
            return
        if self.record.keep_steps:
            self.record.t[s.stored - 1] = t
        store.store_outputs_until(s, t)
        self.t_reached = t
        if t == self.t_final:
            return
        y, yp = run.y, run.yp
        values = s.event_values.copy() if self.events else None
        if run.tape is not None:
            run.tape.note(Happening(t, y, yp, is_break=True))
        behind, goes_on = self.breaks.cross()
        self._follow_plan()
        self.record.begin_part(t, run.start.y, run.start.yp, smooth=goes_on)
        self.segment_t, self.segment_step = self.state.t, self.state.steps
        self._arm_events()
        if values is not None:
            self._serve_break(t, y, yp, behind, values)

    def _serve_break(
        self, t: float, y: np.ndarray, yp: np.ndarray, behind: float, before: np.ndarray
    ) -> None:
        """Report the events that happened between just before the break and just after it."""
        after, count = self.state.event_values, len(self.events)
        rest = self.state.event_rest
        found = [number for number, event in enumerate(self.events)
                 if core_events.crossed(before[number], after[number], event.direction)
                 and not abs(after[number]) <= rest[number]]
        acting = self._report_all(found, t, y, yp)
        if acting and not self.integration.status.failed:
            after[:count] = before[:count]     # `_act` needs the sides from which they came
            self._act(t, acting, y, yp, behind, reported=found)
        else:
            after[[number for number in found if after[number] == 0.0]] = np.nan

    # --- another plan -----------------------------------------------------------------------

    def _follow_plan(self) -> None:
        """Update everything that depends on the state if the run has changed its plan."""
        integration = self.integration
        changed = integration.state is not self.state
        if changed:
            self.state = integration.state
            n_found = integration.model.constraints.n_found
            self.record.go_on(self.state, integration.n, (self.n_found, n_found))
            self.n_found = n_found
        if integration.references.values is not None:
            self.record.note_references(integration.references)
        if changed or self.watched is not self.events or integration.model.modes is not None:
            self._watch()
        self.breaks.aim()

    def _watch(self) -> None:
        """Let the core watch the events and the surfaces on which the plan depends."""
        found = switches(self.integration, timed=False)
        self.watched = [*self.events, *found] if found else self.events
        self.functions = EventFunctions(self.integration, self.watched) if self.watched else None
        self.breaks.events = self.functions if self.events else None

    def _note_restart(self) -> None:
        """Record the point at which the run has restarted by itself."""
        run, sides = self.integration, self._sides()
        self._follow_plan()
        self.record.begin_part(run.t, run.start.y, run.start.yp)
        self.segment_t, self.segment_step = self.state.t, self.state.steps
        self._arm_events()
        set_off = self._compare_events(None, sides, sides, [])
        y, yp = run.start.y.copy(), run.start.yp.copy()
        if acting := self._report_all(set_off, run.t, y, yp):
            self._act(run.t, acting, y, yp, run.t, located=False)

    def _call_back(self) -> None:
        assert self.callback is not None
        self.had_effects = True
        point = self.cut_at or (self.integration.t, self.integration.y, self.integration.yp)
        if self.callback(*point) and self.integration.status == RUNNING:
            self.integration.status = Status.STOPPED
        running = self.integration.status == RUNNING
        changed = running and self.integration.refresh()
        if self.integration.state is not self.state:
            self._note_restart()
        elif changed:
            self.breaks.aim()                  # the equations may now switch at other times
        self._refresh_events()

    def _refresh_events(self) -> None:
        """Check whether the user's code has changed what the events read."""
        if self.functions is not None:
            self.functions.refresh()
            if self.breaks.events is not None:
                self.breaks.aim()              # they may now happen at other times

    def _position(self) -> tuple[float, int, int, float]:
        return self.t_reached, self.state.steps, self.state.last_k, self.state.last_h

    def _show_progress(self) -> None:
        if self.progress is not None:
            self.progress.update(*self._position())

    # --- events -----------------------------------------------------------------------------

    def _arm_events(self) -> None:
        """Compare signs with the current values of the events from now on."""
        if self.functions is None:
            return
        self.functions.evaluate()
        g_old = self.state.event_values
        for number, event in enumerate(self.watched):
            if isinstance(event, Switch):      # it has been passed once the plan no longer holds
                g_old[number] = event.side

    def _serve_events(self) -> None:
        """Locate the events of the last step and report them in the order in which they happened.

        The first one that ends the run or changes the state cuts the step; later events of the step
        have then not happened.
        """
        whole = self.integration.polynomial()
        polynomial = whole.restricted(self.integration.n)
        if self.state.steps == self.segment_step + 1:
            polynomial.t_old = whole.t_old = self.segment_t    # exactly, instead of t - h
        passed = self.integration.switching.passed(whole)
        found = [(self.state.direction * t, len(self.watched) + k, t) for t, k in passed]
        g_old = g_new = np.empty(0)
        if self.watched:
            g_old, g_new = self.state.event_values, self.state.event_values_tried
        for number, event in enumerate(self.watched):
            if self._has_crossed(number, event, polynomial):
                assert self.functions is not None
                t = self.functions.time_of(number, polynomial, g_old[number], g_new[number])
                found.append((self.state.direction * t, number, t))
        found.sort()
        same_time = 4 * EPS * max(abs(polynomial.t), abs(polynomial.t_old))
        cut: float | None = None
        acting: list[int] = []
        reported = []
        for _, number, t in found:
            if cut is not None and abs(t - cut) > same_time:
                break
            reported.append(number)
            if self._is_switch(number) or self._report(number, t, *polynomial(t)):
                cut = t if cut is None else cut
                acting.append(number)
        if cut is None:
            store.store_step(self.state)
            if self.watched:
                core_events.keep_event_values(self.state)
            g_old[[number for number in reported if g_new[number] == 0.0]] = np.nan
            if self.state.t == self.state.t_end:
                self.integration.status = REACHED_END
        else:
            self._cut(cut, acting, reported, whole)

    def _serve_end(self) -> None:
        """Let events happen whose time misses the end of the interval only by round-off."""
        run, t = self.integration, self.t_reached
        if self.segment_t == t or self.state.t != t:
            return                             # the run has restarted there, or is past it
        if self.functions is None or not self.functions.may_be_clocks:
            return                             # errors of the unknowns are larger than round-off
        polynomial = run.polynomial().restricted(run.n)
        begin = self.segment_t if self.state.steps == self.segment_step + 1 else polynomial.t_old
        before, end = (Moment(s, *polynomial(s)) for s in (begin, t))
        found = [number for number in about_to_happen(self.events, before, end, self.args)
                 if self.state.event_rest[number] < 0.0]       # except functions that rest at zero
        y, yp = self.state.y_now.copy(), self.state.yp_now.copy()
        if acting := self._report_all(found, t, y, yp):
            run.status = RUNNING
            self._act(t, acting, y, yp, t, reported=found)

    def _has_crossed(self, number: int, event: Event, polynomial: Polynomial) -> bool:
        """Tell whether an event passed zero in the last step, and not only by round-off."""
        s = self.state
        old, new = s.event_values[number], s.event_values_tried[number]
        resting = number in self.at_rest and not isinstance(event, Switch)
        if resting and abs(new) <= s.event_rest[number]:
            return False
        if not core_events.crossed(old, new, event.direction):
            return False
        if not resting:
            return True
        if s.event_rest[number] == -np.inf:    # it moved away before this step
            del self.at_rest[number]
            return True
        now, then = (Moment(t, *polynomial(t)) for t in (polynomial.t, polynomial.t_old))
        hold = self.held.get(number)
        loose = hold.slack * s.tolerances[: self.integration.n] if hold else None
        at_zero = round_off(event, now, then, new, self.args, loose)
        if abs(new) <= at_zero:                # round-off grows with the unknowns
            s.event_rest[number] = REST_MARGIN * at_zero
            if abs(old) <= at_zero:
                s.event_values[number] = np.nan
            return False
        return not abs(old) <= at_zero         # else it moves away after its event has happened

    def _is_switch(self, number: int) -> bool:
        """Tell whether this is a surface rather than a user's event."""
        return number >= len(self.watched) or isinstance(self.watched[number], Switch)

    def _report(self, number: int, t: float, y: np.ndarray, yp: np.ndarray) -> bool:
        """Report an event; tell whether it ends the run or changes the state."""
        event = self.events[number]
        event.report(t, y, yp)
        if t == self.t_start:          # true at the start: nothing happened
            return False
        event.counted += 1
        return event.wants_to_stop or event.apply is not None

    def _report_all(
        self, numbers: Sequence[int], t: float, y: np.ndarray, yp: np.ndarray
    ) -> list[int]:
        """Report events that happen at the same point; return those that act."""
        n = self.integration.n
        return [
            number for number in numbers if self._report(number, t, y[:n].copy(), yp[:n].copy())
        ]

    def _cut(
        self, t: float, acting: list[int], reported: list[int], polynomial: Polynomial
    ) -> None:
        """End the step at `t`; let the events change the state and end the run."""
        y, yp = polynomial(t)
        store.store_outputs_until(self.state, t)
        y = self.integration.project(t, y)
        if t == polynomial.t_old:              # nothing is left of the step
            self.integration.uncount_step()
        else:
            self.record.end_step(t, y, yp)
        self.t_reached = t
        count = len(self.watched)
        passing = [number - count for number in acting if number >= count]
        switches = (self.watched[number] for number in acting if number < count)
        turned = [e.surface for e in switches if isinstance(e, Switch)]
        acting, reported = (
            sorted(number for number in numbers if number < len(self.events))
            for numbers in (acting, reported)
        )
        self._act(t, acting, y, yp, t, turned, passing, reported)
        run = self.integration
        changed = turned or passing
        if changed and run.status == RUNNING and keep_history(
            run, polynomial, t, only_without_kink=bool(passing)
        ):
            self.record.join_last_part()

    def _act(
        self, t: float, acting: list[int], y: np.ndarray, yp: np.ndarray, resume: float,
        turned: Sequence[int] = (), passing: Sequence[int] = (), reported: Sequence[int] = (),
        located: bool = True,
    ) -> None:
        """Let events at `t` change the state, from which the run resumes, and end the run.

        Events that this causes act in turn, until no other event happens.
        """
        gap, run, counts = self.storm.gap_to(t), self.integration, Counter(acting)
        changes = bool(acting) or bool(turned)
        self.far_side = {number: -np.sign(self.state.event_values[number]) for number in acting}
        happened = set(reported) | set(acting)
        while True:
            set_off = self._change(t, acting, y, yp, resume, turned, passing, happened, located)
            if run.status.failed:
                break
            if any(self.events[number].wants_to_stop for number in acting):
                run.status = Status.EVENT
                break
            y, yp = run.start.y.copy(), run.start.yp.copy()
            acting = self._report_all(set_off, t, y, yp)
            if not acting:
                break
            counts.update(acting)
            happened.update(set_off)
            changes, turned, passing, located = True, (), (), False
            if max(counts.values()) > MOST_AT_ONCE:
                self.storm.end_in_circle(t, [number for number in counts if counts[number] > 1])
                run.status = Status.EVENT_STORM
                break
        if changes:
            self._note_change(t, gap)
        if run.status == RUNNING and t == self.state.t_end:
            run.status = REACHED_END

    def _change(
        self, t: float, acting: list[int], y: np.ndarray, yp: np.ndarray, resume: float,
        turned: Sequence[int], passing: Sequence[int], happened: Collection[int], located: bool,
    ) -> list[int]:
        """Let events change the state, and restart; return the events that this causes.

        If they were `located` in a step, their functions are zero except for round-off.
        """
        run, n = self.integration, self.integration.n
        point, sides = Moment(t, y[:n].copy(), yp[:n].copy()), self._sides()
        values = values_at(self.events, point, self.args)
        ahead = sides.copy() if located else values
        changed, before = y[:n].copy(), None
        for number in acting:
            if (apply := self.events[number].apply) is not None:
                self.had_effects = True
                before = point.y
                result = apply(t, changed.copy(), point.yp.copy(), *self.args)
                changed = check_vector(f"events[{number}].apply(t, y, yp)", result, n).copy()
        if before is None and not turned and not passing:
            self.far_side = {}
            self.cut_at = point
            return []
        if run.tape is not None:
            acted = [] if before is None else acting
            run.tape.note(Happening(
                t, point.y, point.yp, tuple(acted), tuple(turned), tuple(passing), located
            ))
        restart_at(run, resume, changed.copy(), point.yp.copy(), turned, before, passing)
        if run.status == Status.EQUATIONS_CHANGED:
            return []
        self._follow_plan()
        self._refresh_events()
        self.record.begin_part(t, run.start.y, run.start.yp)
        self.segment_t, self.segment_step = resume, self.state.steps
        self._arm_events()
        floor = {number: abs(values[number]) if located else 0.0 for number in acting}
        self._widen_floor(floor, ahead, Moment(t, changed, point.yp))
        return self._compare_events(point, values, sides, acting, happened, floor)

    def _sides(self) -> np.ndarray:
        """Values of the user's events with which signs are compared."""
        return self.state.event_values[: len(self.events)].copy() if self.events else np.empty(0)

    def _compare_events(
        self, before: Moment | None, values: np.ndarray, sides: np.ndarray, acting: list[int],
        happened: Collection[int] = (), floor: Mapping[int, float] = MappingProxyType({}),
    ) -> list[int]:
        """Compare the events with their `values` before the restart; return those that it causes.

        `happened` has the events at this time so far, `floor` the round-off of those that have
        acted.
        """
        if not self.events or self.integration.status.failed:
            return []
        s, start, n = self.state, self.integration.start, self.integration.n
        after = Moment(s.t, start.y[:n], start.yp[:n])
        new = s.event_values[: len(self.events)].copy()
        zero = np.zeros(len(new))
        for number, size in floor.items():
            zero[number] = ABOVE_ROUND_OFF * size
        # an old slope counts as the start's if it fits within the tolerance
        known = start.reason.kind is not Kind.AS_GIVEN or acting == []
        moved = np.zeros(n) if before is None else after.y - self.integration.given[1][:n]
        change = Change(
            before or after, after, moved, values, new, sides, acting, happened, zero,
            s.h if known else 0.0, self.held, s.tolerances[:n],
            0.0 if self.integration.model.is_reduced else HELD_WITHIN,
        )
        found = Aftermath.of(change, self.events, self.args)
        s.event_values[: len(new)], s.event_rest[: len(new)] = found.sides, found.rest
        self.held = found.held
        self.at_rest = {int(k): found.rest[k] for k in np.flatnonzero(found.rest >= 0.0)}
        return found.set_off

    @np.errstate(all="ignore")
    def _widen_floor(self, floor: dict[int, float], ahead: np.ndarray, changed: Moment) -> None:
        """Add to the round-off of events at zero what negligible changes by the start make of them.

        A change is negligible compared with the value `ahead`, one step before the event.
        """
        start, n = self.integration.start, self.integration.n
        if np.array_equal(start.y[:n], changed.y) and np.array_equal(start.yp[:n], changed.yp):
            return
        for number, size in floor.items():
            change = self.state.event_values[number]
            change -= self.events[number].value_or_nan(*changed, self.args)
            if abs(change) < NEGLIGIBLE_CHANGE * abs(ahead[number]):
                floor[number] = max(size, abs(change))

    def _note_change(self, t: float, gap: float) -> None:
        """Continue carefully after a change of the state; notice when such changes accumulate."""
        s = self.state
        if self.integration.status != RUNNING:
            return
        if abs(s.h) > gap > 16 * EPS * abs(t):
            self.integration.shorten_first_step(gap)
        if self.storm.note(t, abs(self.t_final - t)):
            self.integration.status = Status.EVENT_STORM

    def _check_missed(self) -> None:
        """Notice an event that followed too soon to be seen, as the last of a series."""
        g = self.state.event_values
        missed = any(g[number] * side > 0.0 for number, side in self.far_side.items())
        self.far_side = {}
        if missed and self.integration.status == RUNNING and self.storm.converges():
            self.integration.status = Status.EVENT_STORM
