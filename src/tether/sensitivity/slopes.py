"""Slopes: the derivatives of equations and constraints at the points of a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tether._core import probe
from tether._core.adapters import raise_user_error
from tether._core.constraints import jacobian_of_constraints_at
from tether._core.state import State
from tether.plan.model import Model
from tether.plan.on_arrays import OnArrays
from tether.plan.plan import Plan
from tether.problem.problem import Problem
from tether.sensitivity.differences import NotSmooth, by_arguments, central, one_sided
from tether.sensitivity.exactness import CHECK_EVERY, refuse_inexact
from tether.sensitivity.free_jumps import Decisions, decisions_in
from tether.sensitivity.parameters import Parameters
from tether.trace import Program, emit, jacobian
from tether.trace.backend import Backend, prepare

__all__ = ["Linearised", "Slopes", "linearised"]

# With more unknowns, sparse factors in Python are faster than full ones in the core.
SPARSE_ABOVE = 100
_NOTHING = np.zeros((0, 0))


@dataclass(eq=False)
class Slopes:
    """Derivatives at a sequence of points.

    Attributes
    ----------
    n, n_parameters, m : int
        Numbers of unknowns, parameters and constraints.
    values : ndarray, shape (points, entries)
        Entries of F_y, F_y', F_p, G_y and G_p, in this order.
    places : tuple of ndarray
        Places of these entries: rows are equations for F_y and F_y', constraints for G_y, and
        parameters for F_p and G_p.
    scale : ndarray, shape (points, n)
        Units of the unknowns in which projections measure changes.
    """

    n: int
    n_parameters: int
    m: int
    values: np.ndarray
    places: tuple[np.ndarray, ...]
    scale: np.ndarray

    def matrices(self, k: int = 0) -> tuple[np.ndarray, ...]:
        """Return F_y, F_y', F_p, G_y and G_p at one of the points."""
        n, p, m = self.n, self.n_parameters, self.m
        found, first = [], 0
        for shape, place in zip(
            ((n, n), (n, n), (p, n), (m, n), (p, m)), self.places, strict=True
        ):
            matrix = np.zeros(shape[0] * shape[1])
            matrix[place] = self.values[k, first : first + len(place)]
            found.append(matrix.reshape(shape))
            first += len(place)
        return tuple(found)

    def terms(self, y: np.ndarray, yp: np.ndarray) -> np.ndarray:
        """Size of the terms of each equation, which may cancel, at the first of the points."""
        first = len(self.places[0])
        ends = slice(0, first), slice(first, first + len(self.places[1]))
        parts = [self.values[0, end] for end in ends]
        return _terms(self.n, self.places, parts, (y, yp))

    def along(self, direction: np.ndarray) -> Slopes:
        """Return the derivatives along one combination of the parameters."""
        n, m = self.n, self.m
        f_y, f_yp, f_p, g_y, g_p = self.places
        a = len(f_y) + len(f_yp)
        b, c = a + len(f_p), a + len(f_p) + len(g_y)

        def combined(first: int, place: np.ndarray, width: int) -> np.ndarray:
            rows, columns = divmod(place, max(width, 1))
            weights = np.zeros((len(place), width))
            weights[np.arange(len(place)), columns] = direction[rows]
            return self.values[:, first : first + len(place)] @ weights

        fp, gp = combined(a, f_p, n), combined(c, g_p, m)
        values = np.hstack([self.values[:, :a], fp, self.values[:, b:c], gp])
        places = f_y, f_yp, np.arange(n), g_y, np.arange(m)
        return Slopes(n, 1, m, values, places, self.scale)


@dataclass(frozen=True, eq=False)
class _Programs:
    """Derivatives of a traced system as one program."""

    backend: Backend
    n: int
    places: tuple[np.ndarray, ...]             # of the entries of F_y, F_y', F_p, G_y and G_p
    size: int                                  # number of these entries
    m: int
    decisions: Decisions | None                # of unknowns, which may make the equations jump


class Linearised:
    """Computes the derivatives of a model's equations and constraints at points of a run."""

    def __init__(
        self, model: Model, values: np.ndarray, parameters: Parameters, state: State
    ) -> None:
        self.model, self.parameters, self.state = model, parameters, state
        self.n, self.n_parameters = model.size, len(parameters)
        self.programs = None if model.plan is None else _programs(model.plan, parameters)
        self.runner = None if self.programs is None else self.programs.backend.new(values)
        # runner of the templates of whole arrays
        self.arrays = model.new_runner(values) if isinstance(model, OnArrays) else None
        self.given = model.constraints.all     # the user's, apart from those found in the equations
        self.found = 0 if self.programs is None else self.programs.m
        self.m = state.n_constraints if self.given else self.found
        self.n_invariants = 0
        if model.constraints.invariants:
            self.n_invariants = self.m - model.constraints.first_invariant(state)

    @property
    def decisions(self) -> Decisions | None:
        """Comparisons and roundings of unknowns in the equations."""
        return None if self.programs is None else self.programs.decisions

    @property
    def is_large(self) -> bool:
        """Whether sparse matrices are faster than full ones."""
        return self.n > SPARSE_ABOVE

    @property
    def width(self) -> int:
        """Approximate number of entries per unknown."""
        return 10 if self.programs is None and self.arrays is not None else (
            self.n if self.programs is None else self.programs.size // self.n + 1
        )

    def at(
        self, t: np.ndarray, y: np.ndarray, yp: np.ndarray, before: np.ndarray | None = None
    ) -> Slopes:
        """Return the derivatives at points: rows of y and y'.

        Projections are measured by the tolerances at the points `before`, by default the same
        points.
        """
        if self.programs is not None:
            values, places = np.empty((len(t), self.programs.size)), self.programs.places
            assert self.runner is not None
            self.runner.values_along(t, y, yp, values)
        elif self.arrays is not None:
            values, places = self._of_arrays(t, y, yp)
        else:
            values, places = self._called(t, y, yp)
        if self.given:
            values, places = self._with_given(t, y, values, places)
        scale = self.scale(y if before is None else before) if self.m else _NOTHING
        return Slopes(self.n, self.n_parameters, self.m, values, places, scale)

    def _of_arrays(
        self, t: np.ndarray, y: np.ndarray, yp: np.ndarray
    ) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
        """Run templates for F_y and F_y'; F_p comes from differences."""
        assert self.arrays is not None
        runner, (fy, fyp) = self.arrays
        inputs, count, n = runner.args.copy(), len(t), self.n
        n_fy, n_fyp, chosen = len(fy[0]), len(fyp[0]), self.parameters.of_inputs
        values = np.empty((count, n_fy + n_fyp + len(chosen) * n))
        where = _place(*fy, n), _place(*fyp, n)
        for k in range(count):
            of_y, of_yp = np.zeros((2, max(n_fy, n_fyp)))
            runner.entries_into(t[k], y[k], yp[k], of_y, of_yp)
            terms = _terms(n, where, (of_y[:n_fy], of_yp[:n_fyp]), (y[k], yp[k]))
            by_parameters = np.zeros((len(chosen), n))
            for place, p in enumerate(chosen):
                number = self.parameters.inputs[p]

                def along(change: float, number: int = number, k: int = k) -> np.ndarray:
                    changed = inputs.copy()
                    changed[number] += change
                    runner.set_args(changed)
                    return runner.values(t[k], y[k], yp[k])

                size = abs(inputs[number]) or 1.0
                by_parameters[place] = _beside_jump(along, size, terms)
            runner.set_args(inputs)
            values[k] = np.concatenate([of_y[:n_fy], of_yp[:n_fyp], by_parameters.ravel()])
        nothing = np.zeros(0, np.intp)
        return values, (
            *where, (chosen[:, None] * n + np.arange(n)).ravel(), nothing, nothing,
        )

    def _called(
        self, t: np.ndarray, y: np.ndarray, yp: np.ndarray
    ) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
        """Differentiate functions that are called, by their Jacobian or by differences."""
        n, count, problem = self.n, len(t), self.model.problem
        fy, fyp = np.full((2, count, n, n), np.nan)
        fp = np.zeros((count, self.n_parameters, n))

        for k in range(count):
            probe.move_to(self.state, t[k], y[k], yp[k])
            probe.forget_fyp(self.state)
            status, r = probe.residual_at(self.state, t[k], y[k], yp[k])
            raise_user_error(self.state)
            if status == 0:
                _, *pair = probe.jacobian_at(self.state, t[k], y[k], yp[k], r)
                raise_user_error(self.state)
                for matrix, part in zip((fy, fyp), pair, strict=True):
                    matrix[k] = part.toarray() if hasattr(part, "toarray") else part
            if status == 0 and problem.jac is not None and k % CHECK_EVERY == 0:
                fun = partial(called_residual, problem, problem.args, t[k])
                refuse_inexact("jac", t[k], fun, [y[k], yp[k]], [fy[k], fyp[k]])
            terms = np.abs(fy[k]) @ np.abs(y[k]) + np.abs(fyp[k]) @ np.abs(yp[k])
            for p in self.parameters.of_args:
                residual = partial(called_residual, problem, t=t[k], y=y[k], yp=yp[k])
                fp[k, p] = by_arguments(residual, self.parameters, int(p), terms)
        values = np.hstack([part.reshape(count, -1) for part in (fy, fyp, fp)])
        sizes = n * n, n * n, self.n_parameters * n, 0, 0
        return values, tuple(np.arange(size) for size in sizes)

    def _with_given(
        self, t: np.ndarray, y: np.ndarray, values: np.ndarray, places: tuple[np.ndarray, ...]
    ) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
        """Add the constraints and invariants that the user has given."""
        s, n, n_user, count, m = self.state, self.n, self.model.n, len(t), self.m
        more = m - self.found
        gy, gp = np.zeros((count, more, n)), np.zeros((count, self.n_parameters, more))

        def value(x: np.ndarray, at: int, args: tuple = self.model.problem.args) -> np.ndarray:
            parts = [np.ravel(item.fun(t[at], x[:n_user].copy(), *args)) for item in self.given]
            return np.concatenate(parts).astype(float)

        def given(args: tuple, at: int) -> np.ndarray:
            return value(y[at], at, args)

        is_given = any(item.jac is not None for item in self.given)

        for k in range(count):
            _, whole = jacobian_of_constraints_at(s, t[k], y[k])
            raise_user_error(s)
            whole = whole.toarray() if hasattr(whole, "toarray") else whole
            gy[k] = whole[self.found :]
            if is_given and k % CHECK_EVERY == 0:
                refuse_inexact(
                    "jac of a constraint", t[k], partial(value, at=k), [y[k]], [gy[k]]
                )
            terms = np.abs(gy[k]) @ np.abs(y[k])
            for p in self.parameters.of_args:
                gp[k, p] = by_arguments(partial(given, at=k), self.parameters, int(p), terms)
        f_y, f_yp, f_p, g_y, g_p = places
        first = values.shape[1] - len(g_p)
        whole_g_p = g_p // max(self.found, 1) * m + g_p % max(self.found, 1)
        added = (np.arange(self.n_parameters)[:, None] * m + np.arange(self.found, m)).ravel()
        joined = np.hstack([
            values[:, :first], gy.reshape(count, -1), values[:, first:], gp.reshape(count, -1)
        ])
        return joined, (
            f_y, f_yp, f_p, np.append(g_y, np.arange(self.found * n, m * n)),
            np.append(whole_g_p, added),
        )

    def residual(
        self, values: np.ndarray, t: float, y: np.ndarray, yp: np.ndarray
    ) -> np.ndarray:
        """Return the residual at a point."""
        plan, problem = self.model.plan, self.model.problem
        if self.arrays is not None:
            return self.arrays[0].values(t, y, yp)
        if plan is not None and plan.system is not None:
            return plan.system.new(values).values(t, y, yp)[: self.n]
        return called_residual(problem, problem.args, t, y, yp)

    def leading(
        self, values: np.ndarray, t: float, y: np.ndarray, yp: np.ndarray
    ) -> np.ndarray:
        """Return F_y' at a point, for other inputs of the program."""
        if self.programs is None:
            raise ValueError(
                "sensitivity: the start changes combinations of unknowns of a function that is "
                "called; pass consistent values, or a function that can be traced"
            )
        found = np.empty((1, self.programs.size))
        self.programs.backend.new(values).values_along(
            np.array([t]), y[None].copy(), yp[None].copy(), found
        )
        slopes = Slopes(
            self.n, self.n_parameters, self.found, found, self.programs.places, _NOTHING
        )
        return slopes.matrices()[1]

    def scale(self, y: np.ndarray) -> np.ndarray:
        """Return the units of the unknowns in which projections near y measure changes."""
        s = self.state
        return (s.array("rtol") * np.abs(y) + s.array("atol")) ** s.projection_power


def called_residual(
    problem: Problem, args: tuple, t: float, y: np.ndarray, yp: np.ndarray
) -> np.ndarray:
    """Call a residual with given arguments."""
    if problem.fills:
        out = np.zeros(len(y))
        problem.fun(t, y.copy(), yp.copy(), out, *args)
        return out
    return np.array(problem.fun(t, y.copy(), yp.copy(), *args), float)


def linearised(
    known: dict[Any, Linearised], model: Model, values: np.ndarray, parameters: Parameters,
    state: State,
) -> Linearised:
    """Return the `Linearised` of a model; one is made for each model and its inputs."""
    key = id(model), values.tobytes()
    if key not in known:
        known[key] = Linearised(model, values, parameters, state)
    return known[key]


def _programs(plan: Plan, parameters: Parameters) -> _Programs:
    """Make the program of all derivatives of a plan, once for each set of parameters."""
    known = plan.derivatives
    if parameters.key not in known:
        with plan.modes.lock if plan.modes is not None else nullcontext():
            known[parameters.key] = _make_programs(plan, parameters)
    return known[parameters.key]


def _make_programs(plan: Plan, parameters: Parameters) -> _Programs:
    traced = plan.frozen.traced if plan.frozen is not None else plan.traced
    assert traced is not None
    graph, numbers = traced.graph, parameters.of_inputs
    inputs = [graph.arg(int(i)) for i in parameters.inputs[numbers]]
    if plan.reduced is None:
        n, size = traced.n, traced.args.size
        constraints: tuple[int, ...] = ()
        equations, f_y, f_yp = tuple(traced.outputs), traced.f_y, traced.f_yp
        g_y = None
    else:
        reduced = plan.reduced
        n, size, constraints = reduced.n, len(reduced.args), reduced.constraints
        equations, f_y, f_yp = reduced.equations, reduced.programs.f_y, reduced.programs.f_yp
        g_y = reduced.programs.g_y if constraints else None
    f_p = jacobian(graph, equations, inputs)
    g_p = jacobian(graph, constraints, inputs)
    m = len(constraints)
    nodes = [*f_y.nodes, *f_yp.nodes, *f_p.nodes, *(g_y.nodes if g_y else ()), *g_p.nodes]
    places = (
        _place(f_y.rows, f_y.cols, n), _place(f_yp.rows, f_yp.cols, n),
        _place(numbers[f_p.cols] if f_p.cols else [], f_p.rows, n),
        _place(g_y.rows, g_y.cols, n) if g_y else _place([], [], n),
        _place(numbers[g_p.cols] if g_p.cols else [], g_p.rows, max(m, 1)),
    )
    program: Program = emit(graph, nodes, n, size)
    decisions = decisions_in(graph, [*equations, *constraints], n, size)
    return _Programs(prepare(program), n, places, len(nodes), m, decisions)


def _beside_jump(
    fun: Callable[[float], np.ndarray], size: float, terms: np.ndarray
) -> np.ndarray:
    """Differentiate with respect to a parameter that may shift the time of a jump.

    Equations of whole arrays have conditions on time; close to a jump, only the side on which the
    function is smooth counts.
    """
    try:
        return central(fun, size, terms)
    except NotSmooth:
        sides = []
        for way in (-1.0, 1.0):
            with suppress(NotSmooth):
                sides.append(one_sided(fun, size, way, terms))
        if len(sides) != 1:                    # a kink, or no derivative at all
            raise
        return sides[0]


def _terms(
    n: int, places: Sequence[np.ndarray], matrices: Sequence[np.ndarray],
    vectors: Sequence[np.ndarray],
) -> np.ndarray:
    """Add up the sizes of the products of matrices, given by entries, and vectors."""
    found = np.zeros(n)
    for place, entries, vector in zip(places, matrices, vectors, strict=False):
        rows, columns = divmod(place, n)
        found += np.bincount(rows, np.abs(entries * vector[columns]), n)
    return found


def _place(rows: Any, columns: Any, width: int) -> np.ndarray:
    return np.asarray(rows, np.intp) * width + np.asarray(columns, np.intp)
