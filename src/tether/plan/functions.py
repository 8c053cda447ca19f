"""The user's constraints and events as programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tether._core.state import State
from tether.plan.plan import ARRAYS_FROM, Plan, with_rows
from tether.plan.shelf import InputsRefused, shelf
from tether.structure.switch_times import SwitchTimes
from tether.trace import opcodes as op
from tether.trace.array_tracer import trace_arrays
from tether.trace.backend import Backend, prepare, prepare_rows
from tether.trace.emit import NoProgram, Program
from tether.trace.graph import TIMED
from tether.trace.reading import Reading, read_function
from tether.trace.tracer import Trace, TraceFailure, trace
from tether.trace.verify import ArrayPair, Pair, verify, verify_arrays

__all__ = ["TracedEvents", "TracedValues", "read_events", "traced_events", "traced_values"]


@dataclass(frozen=True, eq=False)
class TracedValues:
    """A function of (t, y, *args) as a program, with its derivative."""

    plan: Plan
    reading: Reading
    fun: Callable[..., Any]
    args: Sequence[Any]

    @property
    def backend(self) -> Backend:
        """The program."""
        assert self.plan.constraints is not None
        return self.plan.constraints

    @property
    def inputs(self) -> np.ndarray:
        """Values of its inputs."""
        return self.plan.args(self.args, self.reading.hidden)

    def pair(self) -> Pair | ArrayPair:
        """Pair the program with the function, to be compared."""
        fun = self.fun

        def values(t: float, y: np.ndarray, yp: np.ndarray, *args: Any) -> np.ndarray:
            return np.atleast_1d(fun(t, y, *args))

        if self.plan.arrays is not None:
            return ArrayPair(self.backend.new(self.inputs), values, self.args)
        return self.plan.pair(values, self.args, hidden=self.reading.hidden)


def traced_values(
    fun: Callable[..., Any], t: float, y: np.ndarray, size: int, args: Sequence[Any]
) -> TracedValues | None:
    """Make a program of a function of (t, y, *args) and its derivative.

    None where it cannot be traced.
    """
    n = len(y)

    def make(reading: Reading) -> Plan:
        residual = _as_residual(fun, np.ndim(fun(t, y.copy(), *args)) == 0)
        on_arrays = _on_arrays(residual, (t, y, np.zeros(n)), size, args, reading)
        if on_arrays is not None:
            return on_arrays
        made = _program(residual, (t, y, np.zeros(n)), size, args, reading, with_slopes=True)
        if isinstance(made, Plan):
            return made
        traced, program = made
        return Plan(traced, constraints=with_rows(program, traced.f_y))

    plan, reading = shelf.find_for(size, make, fun, n, args)
    if plan is None or reading is None:
        return None
    traced = plan.traced
    if plan.constraints is None or (traced and (traced.args.fixed or traced.raises)):
        return None
    return TracedValues(plan, reading, fun, args)


def _on_arrays(
    fun: Callable[..., Any], point: tuple[float, np.ndarray, np.ndarray], size: int,
    args: Sequence[Any], reading: Reading,
) -> Plan | None:
    """Make a plan of a function of whole arrays; None if it is better traced number by number."""
    n = len(point[1])
    if n < ARRAYS_FROM:
        return None
    try:
        found = trace_arrays(fun, n, args, hidden=reading.places(), size=size)
        if found.turns:
            return None
        verify_arrays(found, fun, *point, args, hidden=reading.hidden)
    except TraceFailure:
        return None
    found.source = None
    return Plan(arrays=found, constraints=prepare_rows(found.table))


def _program(
    fun: Callable[..., Any], point: tuple[float, np.ndarray, np.ndarray], size: int,
    args: Sequence[Any], reading: Reading, with_slopes: bool = False,
) -> tuple[Trace, Program] | Plan:
    """Trace a function, compare it and make its program; or return a plan that says why not."""
    try:
        traced = trace(fun, len(point[1]), args, size=size, hidden=reading.places())
        verify(traced, fun, *point, args, hidden=reading.hidden)
        slopes = traced.f_y.nodes if with_slopes else []
        return traced, traced.program(traced.outputs + slopes)
    except (TraceFailure, NoProgram) as failure:
        if len(reading.hidden):
            raise InputsRefused(str(failure)) from failure
        return Plan(note=str(failure))


@dataclass(frozen=True, eq=False)
class TracedEvents:
    """Event functions as one program."""

    plan: Plan
    reading: Reading
    values: np.ndarray
    functions: Sequence[Callable[..., Any]]
    together: Callable[..., Any]               # all of them in one

    def pair(self, args: Sequence[Any]) -> Pair | ArrayPair:
        """Pair the program with the functions, to be compared."""
        if self.plan.arrays is not None:
            assert self.plan.system is not None
            return ArrayPair(self.plan.system.new(self.values), self.together, args)
        return self.plan.pair(self.together, args, hidden=self.reading.hidden)

    def unknowns(self, n: int) -> np.ndarray:
        """Mark those of the first n unknowns on which any of the functions depends."""
        if self.plan.arrays is not None:
            found = np.zeros(self.plan.arrays.n, bool)
            for _, columns in (self.plan.arrays.table.fy, self.plan.arrays.table.fyp):
                found[columns] = True
            return found[:n]
        assert self.plan.traced is not None
        return self.plan.traced.depends_on(self.plan.traced.outputs, n)

    def times_of_signs(self) -> SwitchTimes | None:
        """When functions that depend on time alone change their signs."""
        if self.plan.arrays is not None:
            by_time = self.plan.arrays.timed
            return None if by_time is None else SwitchTimes.of(by_time)
        traced = self.plan.traced
        assert traced is not None
        graph = traced.graph
        timed = [node for node in traced.outputs if graph.level[node] == TIMED]
        signs = [graph.binary(op.LT, node, graph.zero) for node in timed]
        return SwitchTimes.of(traced.with_outputs(signs)) if signs else None

    def is_current(self, now: Reading | None, args: Sequence[Any]) -> bool:
        """Whether all that the functions read is unchanged since they were traced."""
        values = self.plan.args(args, self.reading.hidden)
        return now == self.reading and np.array_equal(self.values, values)

    def attach(self, state: State, backend: str) -> None:
        """Put the program behind the core's seam."""
        wanted = "c" if backend == "c" else "machine"          # C code by itself would not pay
        program = self.plan.system if self.plan.arrays is not None else self.plan.backend(wanted)
        assert program is not None
        program.attach_events(state, self.values)


def traced_events(
    functions: Sequence[Callable[..., Any]], n_user: int, t: float, y: np.ndarray,
    yp: np.ndarray, args: Sequence[Any], by_numbers: bool = False,
) -> TracedEvents | None:
    """Make a program of event functions (t, y, yp, *args) of the first n_user unknowns.

    None if one of them cannot be traced. Functions of many unknowns are traced as arrays, unless
    `by_numbers` is set.
    """
    together = _in_one(functions, n_user)

    def make(reading: Reading) -> Plan:
        if len(y) >= ARRAYS_FROM and not by_numbers:
            on_arrays = _events_on_arrays(together, (t, y, yp), len(functions), args, reading)
            if on_arrays is not None:
                return on_arrays
        made = _program(together, (t, y, yp), len(functions), args, reading)
        if isinstance(made, Plan):
            return made
        traced, program = made

        def values(wanted: str, otherwise: Backend | None = None) -> Backend:
            return prepare(program, backend=wanted, otherwise=otherwise)

        return Plan(traced, make_system=values, system=values("machine"))

    kind = "events by numbers" if by_numbers else "events"
    plan, reading = shelf.find_for(kind, make, together, len(y), args)
    if plan is None or reading is None or plan.system is None or plan.only_here:
        return None
    return TracedEvents(plan, reading, plan.args(args, reading.hidden), functions, together)


def _events_on_arrays(
    together: Callable[..., Any], point: tuple[float, np.ndarray, np.ndarray], size: int,
    args: Sequence[Any], reading: Reading,
) -> Plan | None:
    """Make a plan of event functions of whole arrays; None if they cannot be traced as such."""
    try:
        found = trace_arrays(together, len(point[1]), args, hidden=reading.places(), size=size)
        verify_arrays(found, together, *point, args, hidden=reading.hidden)
    except TraceFailure:
        return None
    found.timed, found.source = found.signs_by_time(), None
    return Plan(arrays=found, system=prepare_rows(found.table))


def read_events(
    functions: Sequence[Callable[..., Any]], n_user: int, n: int, args: Sequence[Any]
) -> Reading | None:
    """Read all that event functions depend on now; None if that cannot be compared."""
    return read_function(_in_one(functions, n_user), n, args)


def _in_one(functions: Sequence[Callable[..., Any]], n_user: int) -> Callable[..., list[Any]]:
    """Combine event functions of the first n_user unknowns into one."""

    def together(t: float, y: Any, yp: Any, *args: Any) -> list[Any]:
        return [_single(fun(t, y[:n_user], yp[:n_user], *args)) for fun in functions]

    return together


def _single(value: Any) -> Any:
    """Take the number out of an array or list of one; longer ones are refused elsewhere."""
    while isinstance(value, (list, tuple)) and len(value) == 1:
        value = value[0]
    is_array = np.ndim(value) > 0 and np.size(value) == 1
    return value.reshape(-1)[0] if is_array else value


def _as_residual(fun: Callable[..., Any], single: bool) -> Callable[..., Any]:
    """Give a function the signature of a residual, and let it return a list."""

    def residual(t: float, y: Any, yp: Any, *args: Any) -> Any:
        return [fun(t, y, *args)] if single else fun(t, y, *args)

    return residual
