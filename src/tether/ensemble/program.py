"""Members in the core: one plan for all of them, with their parameters as its inputs.

A member may run without Python if all that can happen in its run is known beforehand: its equations
and constraints are programs whose structure does not depend on its values, and no Python function
has to be called on the way. All others get a run of their own by `solve_dae`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tether._core import lane as core
from tether._core.branches import watch_branches
from tether._core.consistent import ConsistentSearch
from tether._core.dense import Dense
from tether._core.machine import Machine
from tether._core.state import State
from tether.base.checks import check_vector
from tether.ensemble.members import Members, Shared
from tether.ensemble.task import Task
from tether.plan.choose import find_model
from tether.plan.functions import TracedEvents, traced_events
from tether.plan.memory import new_state
from tether.plan.model import Model
from tether.plan.plan import Plan
from tether.problem.problem import Problem, prepared
from tether.run.kinds import use_kinds
from tether.run.pace import LOOKS_IN_A_ROW, STEPS_PER_LOOK
from tether.run.watch import check_events
from tether.start.consistent import time_scale
from tether.structure.scaling import Units
from tether.trace.verify import ArrayPair, Pair

__all__ = ["MembersInCore", "NotInCoreError", "determined"]

# With more steps than this, members get runs of their own, which can tell whether they creep.
MAX_STEPS = (LOOKS_IN_A_ROW - 1) * STEPS_PER_LOOK
# Distance to another point, at which a plan that was made for one point alone is not used.
NEARBY_DISTANCE = 1e-3


class NotInCoreError(Exception):
    """Members need runs of their own; the text says why."""


@dataclass(frozen=True, eq=False)
class _Inputs:
    """Inputs of one program: `values` for the first member, and rows for the others."""

    plan: Plan
    hidden: np.ndarray
    values: np.ndarray

    def of(self, args: tuple[Any, ...]) -> np.ndarray:
        """Return the inputs for given arguments, with conditions left free."""
        found = self.plan.args(args, self.hidden)
        return np.append(found, np.zeros(len(self.values) - len(found)))

    def rows(self, members: Members) -> np.ndarray:
        """Return the inputs of members, one row each."""
        found = np.tile(self.values, (members.count, 1))
        assert self.plan.traced is not None
        own, place = self.plan.traced.args.own, 0
        for value in members.args if own else ():
            if isinstance(value, Shared):
                place += _floats_in(value.value)
                continue
            width = math.prod(value.shape[1:])
            found[:, place : place + width] = value.reshape(members.count, width)
            place += width
        if place != own:
            raise NotInCoreError("the inputs of its program are not those of args")
        return found


class MembersInCore:
    """Runs members of a task in the core; its lanes share nothing that changes.

    Raises
    ------
    NotInCoreError
        The members cannot run in the core.
    """

    def __init__(self, task: Task, members: Members) -> None:
        self.task = task
        _check_task(task, members)
        model_of = members.first_finite()
        self.y0 = check_vector("y0", members.y0_of(model_of))
        yp0 = members.yp0_of(model_of)
        self.yp0 = None if yp0 is None else check_vector("yp0", yp0, len(self.y0))
        self.problem = prepared(task.problem_of(members, model_of), task.t0, self.y0)
        self.n = len(self.y0)
        self._events = _events_of(task, self.problem, self.y0, self.yp0)
        model, state = self._new_memory()
        self._inputs = [_Inputs(model.plan, model.reading.hidden, model.values)]     # type: ignore
        if model.constraints.found is not None and model.constraints.n_found:
            self._inputs.append(self._inputs[0])
        for _, _, traced in model.constraints.traced:
            self._inputs.append(_Inputs(traced.plan, traced.reading.hidden, traced.inputs))
        if len(self._inputs) - 1 != state.n_pieces:
            raise NotInCoreError("it has constraints that are not programs")
        self.model, plan = model, self._inputs[0].plan
        other = self.y0 + NEARBY_DISTANCE
        if plan.depends_on_inputs and self._find_model(other)[0].plan is not plan:
            raise NotInCoreError("its structure depends on the arguments")
        if plan.frozen is not None:            # for `heights` and for `sizes`
            self._inputs += 2 * self._inputs[:1]
        if plan.conditions is not None:
            self._inputs.append(_Inputs(plan, self._inputs[0].hidden, model.inputs))
        if self._events is not None:
            events = self._events.program
            self._inputs.append(_Inputs(events.plan, events.reading.hidden, events.values))
        for i in {0, members.count // 2, members.count - 1}:
            self._compare_inputs(members, i)

    def _compare_inputs(self, members: Members, i: int) -> None:
        args = members.args_of(i)
        expected = [part.of(args) for part in self._inputs]
        found = self.inputs(members.part(i, i + 1))[0]
        if not np.array_equal(found, np.concatenate(expected), equal_nan=True):
            raise NotInCoreError("the inputs of its program are not those of args")

    def inputs(self, members: Members) -> np.ndarray:
        """Return the inputs of all programs for members, one row each."""
        return np.hstack([part.rows(members) for part in self._inputs])

    def _new_memory(self) -> tuple[Model, State]:
        """Make a model and its memory, ready to start, in the order in which `Integration` does."""
        task, options = self.task, self.task.options
        model, note = self._find_model(self.y0)
        _check_model(model, note)
        state = new_state(model, options)
        state.t_end = task.t_end
        state.direction = math.copysign(1.0, task.t_end - task.t0)
        model.constraints.attach(state, task.t0, self.y0, self.problem.args, options)
        _check_state(model, state)
        use_kinds(state, model, options, None)
        if self._events is not None:
            state.watch_events(self._events.directions)
            self._events.program.attach(state, options.backend)
        return model, state

    def _find_model(self, y0: np.ndarray) -> tuple[Model, str]:
        task, options = self.task, self.task.options
        units = Units.of_options(options, y0, abs(task.t_end - task.t0))
        return find_model(
            self.problem, task.t0, y0, self.yp0, options.form, options.backend, units
        )

    def serves(self, members: Members, inputs: np.ndarray) -> np.ndarray:
        """Tell for which members the structure found is valid."""
        plan, width = self._inputs[0].plan, len(self._inputs[0].values)
        if not plan.depends_on_inputs:
            return np.ones(members.count, bool)
        nothing = np.zeros(self.n)
        return np.array([
            plan.serves(
                inputs[i, :width].copy(), self.task.t0, members.y0_of(i),
                nothing if (slopes := members.yp0_of(i)) is None else slopes,
            )
            for i in range(members.count)
        ])

    def new_lane(self) -> core.Lane:
        """Make a memory for one thread."""
        model, state = self._new_memory()
        options, t0 = self.task.options, self.task.t0
        search = ConsistentSearch(
            state, t0, self.y0, np.zeros_like(self.y0), time_scale(state, t0)
        )
        reduced = model.reduced is not None
        n_invariants = 0
        if model.constraints.invariants:
            references = model.constraints.references(state)
            n_invariants = 0 if references is None else len(references)
        plan, times = self._inputs[0].plan, self.task.times
        frozen, asked = plan.frozen, np.full(self.n, self._between)
        if plan.conditions is not None:
            watch_branches(state, plan.conditions.new(model.inputs), self.known_branches)
        if frozen is not None:
            asked |= frozen.unknowns[: self.n]
        if self._events is not None:
            asked |= self._events.program.unknowns(self.n)
        heights, sizes = (None, None) if frozen is None else (
            program.new(model.values) for program in (frozen.heights, frozen.sizes)
        )
        return core.Lane(
            state, state.residual_adapter, search, self.n, t0,
            np.zeros(0) if times is None else times, options.first_step or 0.0,
            min(options.max_steps or MAX_STEPS, MAX_STEPS),
            state.n_constraints - n_invariants, model.determined, asked, reduced,
            reduced and not model.constraints.all, self.yp0 is not None, heights, sizes,
            None if self._events is None else self._events.stops_after,
        )

    @property
    def n_events(self) -> int:
        """Number of events that are watched."""
        return 0 if self._events is None else len(self._events.directions)

    @property
    def known_branches(self) -> list[int]:
        """Branches on which the program was compared with its function."""
        return sorted(self._inputs[0].plan.ledger.branches)

    @property
    def _between(self) -> bool:
        """Whether values between the steps are asked for."""
        times = self.task.times
        if times is None:
            return False
        return bool(np.any((times != self.task.t0) & (times != self.task.t_end)))

    def differs(self, members: Members, i: int, t: float, y: np.ndarray, yp: np.ndarray) -> bool:
        """Compare the programs with the functions that they were traced from."""
        args = members.args_of(i)
        problem = self.task.problem_of(members, i)
        pairs: list[Pair | ArrayPair] = [self._inputs[0].plan.pair(
            prepared(problem, self.task.t0, self.y0).fun, args, problem.fills,
            self._inputs[0].hidden,
        )]
        for _, fun, traced in self.model.constraints.traced:
            def values(t: float, y: Any, yp: Any, *args: Any, fun: Any = fun) -> Any:
                return np.atleast_1d(fun(t, y, *args))

            pairs.append(traced.plan.pair(values, args, hidden=traced.reading.hidden))
        if self._events is not None:
            pairs.append(self._events.program.pair(args))
        return any(pair.difference(t, y, yp) is not None for pair in pairs)


def determined(task: Task, members: Members) -> np.ndarray:
    """Tell which starting values are replaced without a warning; none if that is not known."""
    nothing = np.zeros(members.y0.shape[1], bool)
    if members.count == 0 or task.options.trace == "never":
        return nothing
    try:
        first, options = members.first_finite(), task.options
        y0 = members.y0_of(first)
        problem = prepared(task.problem_of(members, first), task.t0, y0)
        units = Units.of_options(options, y0, abs(task.t_end - task.t0))
        model, _ = find_model(
            problem, task.t0, y0, members.yp0_of(first), options.form, options.backend, units
        )
    except Exception:                          # the runs of the members will report it
        return nothing
    return model.determined


@dataclass(frozen=True, eq=False)
class _Events:
    """Events that are programs and do not change the state."""

    program: TracedEvents
    directions: list[int]
    stops_after: np.ndarray


def _events_of(
    task: Task, problem: Problem, y0: np.ndarray, yp0: np.ndarray | None
) -> _Events | None:
    """Make a program of the events; None if there are none."""
    events = check_events(task.more.get("events"), problem.args)
    if not events:
        return None
    if any(event.apply is not None for event in events):
        raise NotInCoreError("an event changes the state")
    slopes = np.zeros_like(y0) if yp0 is None else yp0
    functions = [event.fun for event in events]
    program = traced_events(
        functions, len(y0), task.t0, y0, slopes, problem.args, by_numbers=True
    )
    if program is None:
        raise NotInCoreError("events are called")
    if program.times_of_signs() is not None:
        raise NotInCoreError("an event depends on time alone")
    return _Events(
        program, [event.direction for event in events],
        np.array([event.stops_after for event in events]),
    )


def _floats_in(value: Any) -> int:
    from tether.trace.arguments import ArgumentLayout  # late, to save time

    return ArgumentLayout((value,)).own


def _check_task(task: Task, members: Members) -> None:
    options = task.options
    for reason, cannot in (
        ("the core is not compiled", not core.AVAILABLE),
        ("there are no members", members.count == 0),
        ("all steps are kept", task.keep == "full"),
        ("it has breaks", task.more.get("t_breaks") is not None),
        ("a Jacobian is called", task.problem.get("jac") is not None),
        ("kinds are given", task.problem.get("var_index") is not None),
        ("it is not to be traced", options.trace == "never"),
        (f"start={options.start!r}", options.start not in ("auto", "quiet")),
        ("an error estimate is chosen", options.estimate != "auto"),
        ("time is limited", options.max_seconds is not None),
        ("a start is moved onto the constraints", options.accept_projected_start),
    ):
        if cannot:
            raise NotInCoreError(reason)
    for name, value in zip(members.names, members.args, strict=True):
        if not isinstance(value, Shared) and value.dtype != np.float64:
            raise NotInCoreError(f"{name} varies and is not an array of floats")


def _check_model(model: Model, note: str) -> None:
    """Refuse models that need more than steps, or whose structure depends on values."""
    plan = model.plan
    if plan is None or model.reading is None or plan.system is None:
        raise NotInCoreError(note or "it is not traced")
    for reason, cannot in (
        ("its structure was found from the current values", plan.only_here),
        ("its structure depends on conditions", plan.modes is not None),
        ("it switches by time", plan.switch_times is not None or model.is_switched_by_time),
        ("it consists of rows of a derivative array", model.rows_were_chosen or model.redundant),
        ("it has further unknowns", model.size != model.n),
        ("functions are called", model.problem.jac is not None),
    ):
        if cannot:
            raise NotInCoreError(reason)


def _check_state(model: Model, state: State) -> None:
    if not isinstance(state.matrix, Dense):
        raise NotInCoreError("its matrices are sparse")
    if model.calls_back or state.python_residual:
        raise NotInCoreError("functions are called")
    if state.n_constraints:
        if not all(isinstance(piece, Machine) for piece in state.pieces):
            raise NotInCoreError("it has constraints that are not programs")
        if state.projection_adapter is not None:
            raise NotInCoreError("it has many constraints")
