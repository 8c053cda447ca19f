"""Constraints and events of the user's as programs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tether._core.state import State
from tether.plan.plan import Plan, with_rows
from tether.plan.shelf import shelf
from tether.trace.backend import Backend, prepare
from tether.trace.cache import cache_key
from tether.trace.emit import NoProgram
from tether.trace.tracer import TraceFailure, trace
from tether.trace.verify import Pair, verify

__all__ = ["TracedEvents", "TracedValues", "events_key", "traced_events", "traced_values"]


@dataclass(frozen=True, eq=False)
class TracedValues:
    """A function of (t, y, *args) as a program, with its derivative."""

    plan: Plan
    key: Hashable
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
        return self.plan.args(self.args)

    def pair(self) -> Pair:
        """Set it beside the function."""
        fun = self.fun

        def values(t: float, y: np.ndarray, yp: np.ndarray, *args: Any) -> np.ndarray:
            return np.atleast_1d(fun(t, y, *args))

        return self.plan.pair(values, self.args)


def traced_values(
    fun: Callable[..., Any], t: float, y: np.ndarray, size: int, args: Sequence[Any]
) -> TracedValues | None:
    """Make a program of a function of (t, y, *args) and its derivative.

    None where it cannot be traced.
    """
    n = len(y)

    def make() -> Plan:
        residual = _as_residual(fun, np.ndim(fun(t, y.copy(), *args)) == 0)
        try:
            traced = trace(residual, n, args, size=size)
            verify(traced, residual, t, y, np.zeros(n), args)
            program = traced.program(traced.outputs + traced.f_y.nodes)
        except (TraceFailure, NoProgram) as failure:
            return Plan(note=str(failure))
        return Plan(traced, constraints=with_rows(program, traced.f_y))

    key = cache_key(fun, n, args)
    if key is None:
        return None
    plan = shelf.find((key, size), make)
    if plan.constraints is None or plan.traced is None or plan.traced.args.fixed:
        return None
    return TracedValues(plan, key, fun, args)


@dataclass(frozen=True, eq=False)
class TracedEvents:
    """Event functions as one program."""

    plan: Plan
    key: Hashable
    values: np.ndarray
    functions: Sequence[Callable[..., Any]]
    together: Callable[..., Any]               # all of them in one

    def pair(self, args: Sequence[Any]) -> Pair:
        """Set the program beside the functions."""
        return self.plan.pair(self.together, args)

    def unknowns(self, n: int) -> np.ndarray:
        """Mark the first n unknowns on which some of the functions depend."""
        assert self.plan.traced is not None
        return self.plan.traced.depends_on(self.plan.traced.outputs, n)

    def is_current(self, key: Hashable, args: Sequence[Any]) -> bool:
        """Whether what the functions read is still what it was when they were traced."""
        return key == self.key and np.array_equal(self.values, self.plan.args(args))

    def attach(self, state: State, backend: str) -> None:
        """Put the program behind the core's seam."""
        wanted = "c" if backend == "c" else "machine"          # too little work to pay for more
        self.plan.backend(wanted).attach_events(state, self.values)


def traced_events(
    functions: Sequence[Callable[..., Any]], n_user: int, t: float, y: np.ndarray,
    yp: np.ndarray, args: Sequence[Any],
) -> TracedEvents | None:
    """Make a program of event functions (t, y, yp, *args) of the first n_user unknowns.

    None where one of them cannot be traced.
    """
    n = len(y)

    def together(t: float, y: Any, yp: Any, *args: Any) -> list[Any]:
        return [fun(t, y[:n_user], yp[:n_user], *args) for fun in functions]

    def make() -> Plan:
        try:
            traced = trace(together, n, args, size=len(functions))
            verify(traced, together, t, y, yp, args)
            program = traced.program()
        except (TraceFailure, NoProgram) as failure:
            return Plan(note=str(failure))

        def values(wanted: str, otherwise: Backend | None = None) -> Backend:
            return prepare(program, backend=wanted, otherwise=otherwise)

        return Plan(traced, make_system=values, system=values("machine"))

    key = events_key(functions, n, args)
    if key is None:
        return None
    plan = shelf.find((key, n_user, "events"), make)
    if plan.system is None or plan.only_here:
        return None
    return TracedEvents(plan, key, plan.args(args), functions, together)


def events_key(
    functions: Sequence[Callable[..., Any]], n: int, args: Sequence[Any]
) -> Hashable | None:
    """Key of all that event functions depend on; None if that cannot be compared."""
    keys = tuple(cache_key(fun, n, args) for fun in functions)
    return None if None in keys else keys


def _as_residual(fun: Callable[..., Any], single: bool) -> Callable[..., Any]:
    """Give a function the arguments of a residual and a list as its result."""

    def residual(t: float, y: Any, yp: Any, *args: Any) -> Any:
        return [fun(t, y, *args)] if single else fun(t, y, *args)

    return residual
