"""Tape: what a run did, as far as its derivatives need it.

A run consists of legs. Each begins at consistent values, without a past or with points of the leg
before as its past, and continues for some steps. Between two legs something happens: an event
changes the state, a condition changes its answer, or the solver itself starts again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from weakref import ref

import numpy as np

from tether._core import begin, codes
from tether._core.state import State
from tether.plan.model import Model
from tether.run.bdf import BDF, Bdf
from tether.run.happening import Happening
from tether.run.method import Polynomial
from tether.structure.start import Start

if TYPE_CHECKING:
    from tether.run.integration import Integration
    from tether.run.record import Record

__all__ = ["Begin", "Leg", "Overshoot", "Tape"]


@dataclass(frozen=True, eq=False)
class Begin:
    """Consistent values where steps begin, and the values that they were found from.

    Attributes
    ----------
    model, values : Model, ndarray
        What is integrated from here on, and the inputs of its programs.
    t : float
        The time.
    before, given : ndarray
        Values of the user's unknowns before and after events changed them.
    start : Start
        The values found.
    h : float
        Size of the first step: the past consists of points at this distance on the tangent.
    happening : Happening or None
        Why the run starts here.
    kept : ndarray
        Reference values of the constraints and invariants.
    """

    model: Model
    values: np.ndarray
    t: float
    before: np.ndarray
    given: np.ndarray
    start: Start
    h: float
    happening: Happening | None
    kept: np.ndarray


@dataclass(frozen=True, eq=False)
class Overshoot:
    """The end of a step that was cut."""

    t: float
    y: np.ndarray
    yp: np.ndarray
    order: int


@dataclass(eq=False)
class Leg:
    """Steps from one start to the next.

    Attributes
    ----------
    begins : list of Begin
        The last one is where the steps begin; before it, those from which its values were made.
    state : State
        The memory in which it ran.
    happening : Happening or None
        What happened at its beginning, if anything.
    past, past_values : ndarray or None
        Times and values of points of the leg before that serve as its past, the latest first.
    part, first, last : int
        Rows of the record that hold its steps.
    t_end : float
        Where the core ended its last step: just before a break, if there is one.
    overshoot : Overshoot or None
        Its last step, if that was cut.
    """

    begins: list[Begin]
    state: State
    happening: Happening | None = None
    past: np.ndarray | None = None
    past_values: np.ndarray | None = None
    part: int = 0
    first: int = -1                            # no step yet
    last: int = -1
    t_end: float = np.nan
    overshoot: Overshoot | None = None

    @property
    def begin(self) -> Begin:
        """Where it began."""
        return self.begins[-1]

    def changes_before(self, y: np.ndarray) -> int:
        """How many of the changes of the state with which it begins have led to some values."""
        starts = [begin.start.y[: len(y)] for begin in self.begins]
        return next((k for k, x in enumerate(starts, 1) if np.array_equal(y, x)), 0)


@dataclass(eq=False)
class Tape:
    """What a run did; `method` makes the method that records it.

    The run refers to its tape; the tape does not keep the run alive (`run.part` says why).
    """

    legs: list[Leg] = field(default_factory=list)
    record: Record | None = None
    happening: Happening | None = None         # the reason for the next start
    ceilings: tuple[np.ndarray, np.ndarray] | None = None      # times, and how long steps may be
    _run: ref[Integration] | None = None

    @property
    def run(self) -> Integration:
        """The run that is taped."""
        run = None if self._run is None else self._run()
        assert run is not None
        return run

    def method(self, run: Integration) -> TapedBdf:
        """Tape a run from its start on; return the method that takes its steps."""
        self._run, self.legs, self.happening = ref(run), [], None
        return TapedBdf(self)

    def note(self, happening: Happening) -> None:
        """Note why the run is about to start again."""
        self.happening = happening

    def begun(self, state: State, start: Start) -> None:
        """Note a start; of several without a step in between only the last one counts."""
        run = self.run
        n, why, (t, given, _) = run.n, self.happening, run.given
        if why is not None and not self._belongs_to(why, given[:n]):
            why = None                         # it continues from the values found before
        before = given[:n] if why is None or not why.acting else why.y
        new = Begin(
            run.model, run.model.values.copy(), t, before[:n].copy(), given[:n].copy(), start,
            state.h, why, state.kept_values.copy() if state.n_constraints else np.zeros(0),
        )
        if self.legs and self.legs[-1].first < 0:
            leg = self.legs[-1]
            leg.begins.append(new)
            leg.state, leg.past = state, None
        else:
            self._close()
            self.legs.append(Leg([new], state))

    def _belongs_to(self, why: Happening, given: np.ndarray) -> bool:
        """Whether a start is the first after a happening, or another from the same values."""
        waiting = self.legs[-1].begins if self.legs and self.legs[-1].first < 0 else []
        same = [begin for begin in waiting if begin.happening is why]
        return not same or any(np.array_equal(begin.given, given) for begin in same)

    def went_on(self, times: np.ndarray, values: np.ndarray) -> None:
        """Note the past of the last start: times and rows of values, oldest first."""
        self.legs[-1].past, self.legs[-1].past_values = times[::-1].copy(), values[::-1].copy()

    def open_leg(self, state: State) -> Leg:
        """Return the leg whose steps are taken now."""
        leg = self.legs[-1]
        if leg.first < 0:
            assert self.record is not None
            leg.state, leg.part, leg.first = state, self.record.part_number, state.stored
            leg.last, self.happening = state.stored, None
            # conditions may have been frozen after the start
            values = self.run.model.values.copy()
            leg.begins[-1] = _with(leg.begins[-1], values, self.run.model)
            leg.happening = next((b.happening for b in leg.begins if b.happening), None)
            leg.begins = _chain(leg.begins)
        return leg

    def _close(self) -> None:
        """End the last leg; a step that was kept whole in spite of an event was not cut."""
        if not self.legs or self.record is None:
            return
        leg = self.legs[-1]
        if leg.first < 0 or leg.overshoot is None:
            return
        t = self.record.times_of(leg.part)
        if leg.last < len(t) and t[leg.last] == leg.overshoot.t:
            leg.last += 1
            leg.overshoot = None

    def finish(self) -> list[Leg]:
        """Return the legs of a run that is over; the last one may have no steps."""
        self._close()
        if self.legs[-1].first < 0:
            self.open_leg(self.legs[-1].state)
        return self.legs


def _with(begin: Begin, values: np.ndarray, model: Model) -> Begin:
    return Begin(
        model, values, begin.t, begin.before, begin.given, begin.start, begin.h, begin.happening,
        begin.kept,
    )


def _chain(begins: Sequence[Begin]) -> list[Begin]:
    """Keep the last start, and those from which its values were made."""
    found = [begins[-1]]
    for earlier in reversed(begins[:-1]):
        n = len(found[0].before)
        again = np.array_equal(found[0].before, begins[0].before)
        if not again and np.array_equal(found[0].before, earlier.start.y[:n]):
            found.insert(0, earlier)
    return found


class TapedBdf(Bdf):
    """BDF that records where it starts and how its steps end."""

    def __init__(self, tape: Tape) -> None:
        self._tape = tape

    def begin(self, state: State, t: float, start: Start, first_step: float) -> int:
        """Start at order 1: a past on a parabola would need derivatives of y''."""
        code = begin.begin(state, t, start.y, start.yp, first_step)
        state.keeps_order = True
        self._hold_steps(state)
        self._tape.begun(state, start)
        return code

    def advance(self, state: State, count: int) -> int:
        """Take steps; keep the end of the last if it may be cut."""
        leg = self._tape.open_leg(state)
        if leg.overshoot is not None:          # it was not cut
            leg.overshoot = None
        code = BDF.advance(state, count)
        leg.last, leg.t_end = state.stored, state.t
        if code == codes.EVENT_FOUND:
            leg.overshoot = Overshoot(
                state.t, state.y_now.copy(), state.yp_now.copy(), state.last_k
            )
        return code

    def go_on(self, state: State, t: float, start: Start, past: Polynomial) -> None:
        """Continue at the same order, with points of the polynomial as the past."""
        super().go_on(state, t, start, past)
        self._hold_steps(state)
        times = t - (past.t - past.t_old) * np.arange(past.k, 0, -1)
        self._tape.went_on(times, past(times)[0].T)

    def _hold_steps(self, state: State) -> None:
        if self._tape.ceilings is not None:
            state.limit_steps(*self._tape.ceilings)
