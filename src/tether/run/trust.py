"""Compare programs with the functions that they were traced from, during a run.

A trace is compared with its function around the start when it is made (`tether.trace.verify`). But
a function may behave differently on a branch that is met later, or read something that changes
unnoticed. So they are compared again at the start of a run that uses an earlier trace, at the first
step after every switch and on every new branch, at random steps, and at the last one; how many
times depends on the time it takes (`tether.plan.ledger`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import ref

import numpy as np

from tether._core import branches, codes
from tether.plan.ledger import Ledger
from tether.plan.model import Model
from tether.plan.plan import Plan
from tether.plan.shelf import shelf
from tether.problem.naming import place_of_error, place_of_value
from tether.run.part import Part
from tether.trace.verify import ArrayPair, Difference, Pair

if TYPE_CHECKING:
    from tether._core.state import State
    from tether.plan.functions import TracedEvents, TracedValues
    from tether.run.integration import Integration

__all__ = ["Trust"]

log = logging.getLogger("tether")
log.addHandler(logging.NullHandler())          # applications that want to read it add a handler

# Comparisons after switches and on new branches that a run makes at any cost.
FREE_COMPARISONS = 16
# Branches known from earlier runs must leave room for as many new ones; if a function has more
# branches, they are only watched in runs that are compared anyway.
MOST_KNOWN = branches.MOST_BRANCHES - FREE_COMPARISONS


@dataclass(frozen=True, eq=False)
class _Program:
    """A program that runs, with its function, and its name in messages."""

    pair: Pair | ArrayPair
    key: Hashable
    value: Callable[[int], tuple[str, str]]    # name of a value, and where it is written

    def words(self, found: Difference, t: float) -> str:
        """Describe the difference, and where it is written."""
        if found.error is not None:
            kind, text = type(found.error).__name__, str(found.error)
            place = place_of_error(found.error)
            return (
                f"at t = {t:.10g} the function raises {kind}{': ' if text else ''}{text}"
                f"{f' ({place})' if place else ''} where its trace gives a number"
            )
        name, place = self.value(found.row)
        return (
            f"{name}{f' ({place})' if place else ''} was traced to something else: at "
            f"t = {t:.10g} the trace gives {float(found.value)!r}, the function "
            f"{float(found.expected)!r}"
        )


def _residual(model: Model, whose: ref[Integration]) -> list[_Program]:
    """Return the program of the equations, if they are run as one."""
    pair = model.pair()
    if pair is None or model.reading is None:
        return []

    def value(row: int) -> tuple[str, str]:
        run = whose()
        assert run is not None
        return run.names.equation(row), place_of_value(model.problem.fun, row)

    return [_Program(pair, model.reading.key, value)]


def _constraint(name: str, fun: Callable[..., Any], traced: TracedValues) -> _Program:
    single = traced.backend.n_values == 1

    def value(row: int) -> tuple[str, str]:
        if single:
            return name, place_of_value(fun)
        return f"{name}, value {row}", place_of_value(fun, row)

    return _Program(traced.pair(), traced.reading.key, value)


def _events(events: TracedEvents, args: Sequence[Any]) -> _Program:
    def value(row: int) -> tuple[str, str]:
        return f"events[{row}]", place_of_value(events.functions[row])

    return _Program(events.pair(args), events.reading.key, value)


class Trust(Part):
    """The comparisons of one run."""

    points = 0                                 # number of comparisons
    refused = False  # whether the last difference made a function untraceable
    _plan: Plan | None = None                  # of the equations
    _own_ledger: Ledger | None = None          # of the equations as well
    _ledger: Ledger | None = None              # None: no programs
    _due = _restarted = False
    _left, _draws = FREE_COMPARISONS, 0
    _programs: list[_Program] | None = None
    _events: TracedEvents | None = None
    _watching: State | None = None

    def __init__(self, run: Integration) -> None:
        super().__init__(run)
        self.warnings: list[str] = []

    # --- what runs ----------------------------------------------------------------------------

    def adopt(self, model: Model) -> None:
        """Compare this model from now on."""
        self._programs = self._watching = None
        self._plan, ledger = model.plan, model.ledger
        if ledger is not self._own_ledger:
            self._own_ledger = ledger
            self._use(ledger)

    def _use(self, ledger: Ledger | None) -> None:
        self._ledger = ledger
        self._due = ledger is not None and ledger.begin_run()

    def watch(self, state: State) -> None:
        """Let the core report when a comparison is due, from a start or restart on."""
        ledger = self._ledger
        self._restarted = state.steps > 0
        if ledger is None or not self._due:
            state.compare_at = 0
        elif self._restarted:
            state.compare_at = state.steps + 1
        else:
            state.compare_at = ledger.draw(ledger.steps or 8)
        if self._watching is state:
            return
        self._watching, state.n_conditions = state, 0
        if self._plan is None or self._plan.conditions is None:
            return
        agreed = self._plan.ledger.branches
        if self._due or len(agreed) < MOST_KNOWN:
            runner = self._plan.conditions.new(self.run.model.inputs)
            branches.watch_branches(state, runner, [] if self._due else sorted(agreed))

    @property
    def programs(self) -> list[_Program]:
        """Everything that is run as a program."""
        if self._programs is None:
            model = self.run.model
            self._programs = [_constraint(*item) for item in model.constraints.traced]
            self._programs += _residual(model, self._run)
            if self._events is not None:
                self._programs.append(_events(self._events, self.run.problem.args))
        return self._programs

    # --- at the start -------------------------------------------------------------------------

    def refuses(self, model: Model, t: float, y: np.ndarray, yp: np.ndarray | None) -> str:
        """Compare at the start; return any difference, so that the function is called instead.

        A plan that was made for this run has already been compared.
        """
        self.adopt(model)
        ledger = self._own_ledger
        if ledger is None or not self._due or (ledger.runs == 1 and model.modes is None):
            return ""
        if self._differs_at(t, y, yp, _residual(model, self._run)):
            return self.warnings[-1]
        return ""

    def refuses_constraints(self, t: float, y: np.ndarray) -> bool:
        """Compare the traced constraints and invariants at the start, if there are any.

        Tell whether one must be called.
        """
        traced = self.run.model.constraints.traced
        if self._ledger is None:
            self._use(traced[0][2].plan.ledger)
        programs = [_constraint(*item) for item in traced if self._is_old(item[2].plan)]
        return bool(programs) and self._due and self._differs_at(t, y, None, programs)

    def refuses_events(self, events: TracedEvents | None) -> bool:
        """Compare events at the start; tell whether they must be called.

        That is too late after the first step, as they have been trusted until then.
        """
        s = self.run.state
        self._events, self._programs = events, None
        if events is None or not self._is_old(events.plan) or not self._due or s.steps:
            return False
        y, yp = s.y_now, s.yp_now
        if self._differs_at(s.t, y, yp, [_events(events, self.run.problem.args)]):
            self._events = None
            return True
        return False

    def forget_events(self) -> None:
        """Note that the events are called from now on."""
        self._events = self._programs = None

    def _is_old(self, plan: Plan) -> bool:
        """Tell whether a plan was made, and compared, before this run."""
        if plan.ledger is not self._ledger:
            plan.ledger.begin_run()
        return plan.ledger.runs > 1

    def differs_at_start(self, t: float, y: np.ndarray, yp: np.ndarray | None) -> bool:
        """Compare where no start was found, at any cost."""
        return self._ledger is not None and self._differs_at(t, y, yp)

    # --- along the run ------------------------------------------------------------------------

    def finds_difference(self, s: State, code: int, seconds: float) -> bool:
        """Compare after steps that took so long, if it is time; tell if there is a difference."""
        ledger = self._ledger
        if ledger is None:
            return False
        ledger.run_seconds += seconds
        ledger.steps = s.steps
        if code < 0:
            return self._differs_here(s) or self._differs_where_tried(s)
        return self._should_compare(s, code, ledger) and self._differs_here(s)

    def add_seconds(self, seconds: float) -> None:
        """Note the time that finding a start took."""
        if self._ledger is not None:
            self._ledger.run_seconds += seconds

    def _should_compare(self, s: State, code: int, ledger: Ledger) -> bool:
        """Tell whether to compare now: always for some reasons, otherwise if the time allows."""
        wanted = code == codes.REACHED_END and self._due
        if s.to_compare or (code == codes.EVENT_FOUND and self._due):
            s.to_compare = False
            drawn = s.steps == s.compare_at and not self._restarted
            if s.steps == s.compare_at:
                s.compare_at = s.steps + ledger.draw(max(s.steps, 4))
                self._restarted = False
            if drawn:
                self._draws += 1
                wanted |= self._draws == 1
            else:
                self._left -= 1
                wanted |= self._left >= 0
        return wanted or ledger.can_pay

    def _differs_here(self, s: State) -> bool:
        if self._differs_at(s.t, s.y_now, s.yp_now):
            return True
        if self._plan is not None and s.n_conditions:
            agreed = self._plan.ledger.branches
            if len(agreed) < MOST_KNOWN:
                agreed.add(s.branch)
        return False

    def _differs_where_tried(self, s: State) -> bool:
        """Compare at the last attempt of a run that cannot continue; a function may raise there."""
        y, yp = s.y_tried, s.yp_tried
        if not (np.isfinite(y).all() and np.isfinite(yp).all()):
            return False
        return self._differs_at(s.t_new, y, yp, forgiving=True)

    def _differs_at(
        self, t: float, y: np.ndarray, yp: np.ndarray | None,
        programs: list[_Program] | None = None, forgiving: bool = False,
    ) -> bool:
        """Compare at a point; a difference is recorded and ends the use of the trace."""
        assert self._ledger is not None
        began = time.perf_counter()
        slopes = np.zeros_like(y) if yp is None else yp
        self.points += 1
        try:
            for program in self.programs if programs is None else programs:
                found = program.pair.difference(t, y, slopes)
                if found is not None and not (forgiving and found.error is not None):
                    self._end(program, found, t)
                    return True
        finally:
            self._ledger.compare_seconds += time.perf_counter() - began
        return False

    def _end(self, program: _Program, found: Difference, t: float) -> None:
        """Record a difference; a function that was traced wrongly is not traced again.

        One that raises may be traced for other values.
        """
        words = program.words(found, t)
        self.warnings.append(words)
        self.refused = found.error is None
        if self.refused:
            shelf.refuse(program.key, words)
        log.warning("%s", words)
