"""Derivatives of event functions, and of functions by which events change the state.

They are exact, without calling the function, where it can be traced, and differences where not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tether._core.plain import Plain
from tether.sensitivity.differences import NotSmooth, by_arguments, central, gradient_of
from tether.sensitivity.parameters import Parameters
from tether.trace import Trace, jacobian, trace
from tether.trace.emit import NoProgram, Program
from tether.trace.tracer import TraceFailure

__all__ = ["FunctionSlopes", "UserFunction", "then"]


@dataclass(frozen=True, eq=False)
class FunctionSlopes:
    """Value and derivatives of a function (t, y, yp, *args) at a point, one row per value."""

    value: np.ndarray
    by_values: np.ndarray
    by_slopes: np.ndarray
    by_time: np.ndarray
    by_parameters: np.ndarray


def then(first: FunctionSlopes, second: FunctionSlopes) -> FunctionSlopes:
    """Apply a function to the values returned by another (chain rule)."""
    by = second.by_values
    return FunctionSlopes(
        second.value, by @ first.by_values, by @ first.by_slopes + second.by_slopes,
        by @ first.by_time + second.by_time, by @ first.by_parameters + second.by_parameters,
    )


class UserFunction:
    """A function (t, y, yp, *args) of n unknowns with `size` values, and its derivatives."""

    def __init__(
        self, fun: Callable[..., Any], n: int, size: int, parameters: Parameters
    ) -> None:
        self._fun, self._n, self._size, self._parameters = fun, n, size, parameters

    @property
    def name(self) -> str:
        """Name of the function."""
        return str(getattr(self._fun, "__name__", type(self._fun).__name__))

    def at(self, t: float, y: np.ndarray, yp: np.ndarray) -> FunctionSlopes:
        """Differentiate at a point."""
        if self._program is None:
            return self._by_differences(t, y, yp)
        program, places, inputs = self._program
        values = Plain(program, inputs).values(t, y, yp)
        size, n = self._size, self._n
        matrix = np.zeros((size, 2 * n + 1 + len(inputs)))
        matrix[places] = values[size:]
        of_args = matrix[:, 2 * n + 1 :]
        by_parameters = np.zeros((size, len(self._parameters)))
        for p in self._parameters.of_args:
            by_parameters[:, p] = of_args[:, self._parameters.inputs[p]]
        return FunctionSlopes(
            values[:size], matrix[:, :n], matrix[:, n : 2 * n], matrix[:, 2 * n], by_parameters
        )

    @cached_property
    def _program(self) -> tuple[Program, tuple[Any, Any], np.ndarray] | None:
        """Program of values and derivatives, their places, its inputs; None if called."""
        args, n = self._parameters.problem.args, self._n
        try:
            traced: Trace = trace(self._listed, n, args, size=self._size)
            if traced.args.fixed or traced.raises:
                return None
            graph = traced.graph
            leaves = [
                *traced.unknowns(), *traced.unknowns(1), graph.time(),
                *(graph.arg(i) for i in range(traced.args.size)),
            ]
            slopes = jacobian(graph, traced.outputs, leaves)
            program = traced.program([*traced.outputs, *slopes.nodes], opaque=True)
        except (TraceFailure, NoProgram):
            return None
        return program, (slopes.rows, slopes.cols), traced.args.flatten(args)

    def _listed(self, t: Any, y: Any, yp: Any, *args: Any) -> Any:
        found = self._fun(t, y, yp, *args)
        if self._size > 1:
            return found
        while isinstance(found, (list, tuple)) and len(found) == 1:
            found = found[0]
        return [found.reshape(-1)[0] if isinstance(found, np.ndarray) and found.ndim else found]

    def _called(self, t: float, y: np.ndarray, yp: np.ndarray, args: tuple) -> np.ndarray:
        return np.array(self._fun(t, y.copy(), yp.copy(), *args), float).ravel()

    def _by_differences(self, t: float, y: np.ndarray, yp: np.ndarray) -> FunctionSlopes:
        try:
            return self._differences(t, y, yp, 0.0)
        except NotSmooth:                      # or the terms cancel, as in an event function
            found = self._differences(t, y, yp, np.inf)
            terms = (
                np.abs(found.by_values) @ np.abs(y) + np.abs(found.by_slopes) @ np.abs(yp)
                + np.abs(found.by_time * t)
                + np.abs(found.by_parameters) @ self._parameters.sizes
            )
            return self._differences(t, y, yp, terms)

    def _differences(
        self, t: float, y: np.ndarray, yp: np.ndarray, terms: np.ndarray | float
    ) -> FunctionSlopes:
        args = self._parameters.problem.args
        size = np.abs(y) + 1e-3 * max(float(np.abs(y).max(initial=0.0)), 1e-3)
        by_parameters = np.zeros((self._size, len(self._parameters)))
        for p in self._parameters.of_args:
            by_parameters[:, p] = by_arguments(
                lambda changed: self._called(t, y, yp, changed), self._parameters, int(p), terms
            )
        return FunctionSlopes(
            self._called(t, y, yp, args),
            gradient_of(lambda x: self._called(t, x, yp, args), y, size, terms),
            gradient_of(lambda x: self._called(t, y, x, args), yp, np.abs(yp) + size, terms),
            central(lambda dt: self._called(t + dt, y, yp, args), max(abs(t), 1e-3), terms),
            by_parameters,
        )
