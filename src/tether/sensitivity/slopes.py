"""Slopes: the derivatives of equations and constraints at the points of a run."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from tether._core import probe
from tether._core.adapters import raise_users
from tether._core.constraints import jacobian_of_constraints_at
from tether._core.state import State
from tether.plan.model import Model
from tether.plan.plan import Plan
from tether.problem.problem import Problem
from tether.sensitivity.differences import by_arguments
from tether.sensitivity.parameters import Parameters
from tether.trace import Program, emit, jacobian
from tether.trace.backend import Backend, prepare

__all__ = ["Linearised", "Slopes", "linearised"]

# Of the length of a row: what is left of a constraint that depends on others.
DEPENDENT = 1e-7


@dataclass(eq=False)
class Slopes:
    """Derivatives at some points, one after the other.

    Attributes
    ----------
    fy, fyp : ndarray, shape (points, n, n)
        Of the equations by y and y'.
    fp : ndarray, shape (points, parameters, n)
        ... and by the parameters.
    gy, gp : ndarray, shape (points, m, n) and (points, parameters, m)
        Of the constraints onto which the solution is projected.
    back : ndarray, shape (points, n, m)
        What a projection moves the unknowns by, for what the constraints are off.
    """

    fy: np.ndarray
    fyp: np.ndarray
    fp: np.ndarray
    gy: np.ndarray
    gp: np.ndarray
    back: np.ndarray


@dataclass(frozen=True, eq=False)
class _Programs:
    """Derivatives of a traced system as one program."""

    backend: Backend
    n: int
    places: tuple[np.ndarray, ...]             # of F_y, F_y', F_p, G_y and G_p, each in its matrix
    ends: tuple[int, ...]                      # where their values end
    m: int


class Linearised:
    """What gives the slopes of a model at points of a run."""

    def __init__(
        self, model: Model, values: np.ndarray, parameters: Parameters, state: State
    ) -> None:
        self.model, self.parameters, self.state = model, parameters, state
        self.n, self.n_parameters = model.size, len(parameters)
        self.programs = None if model.plan is None else _programs(model.plan, parameters)
        self.runner = None if self.programs is None else self.programs.backend.new(values)
        self.given = model.constraints.all     # by the user, beside those of the equations
        self.found = 0 if self.programs is None else self.programs.m
        self.m = state.n_constraints if self.given else self.found
        self.n_invariants = 0
        if model.constraints.invariants:
            self.n_invariants = self.m - model.constraints.first_invariant(state)

    def at(self, t: np.ndarray, y: np.ndarray, yp: np.ndarray) -> Slopes:
        """Return the slopes at points, rows of y and y'; `back` is left open."""
        fy, fyp, fp, gy, gp = self._of_program(t, y, yp) if self.programs else self._called(
            t, y, yp
        )
        if self.given:
            gy, gp = self._with_given(t, y, gy, gp)
        return Slopes(fy, fyp, fp, gy, gp, np.empty((len(t), self.n, self.m)))

    def _of_program(
        self, t: np.ndarray, y: np.ndarray, yp: np.ndarray
    ) -> tuple[np.ndarray, ...]:
        programs, n, count, p = self.programs, self.n, len(t), self.n_parameters
        assert programs is not None
        assert self.runner is not None
        values = np.empty((count, programs.ends[-1]))
        self.runner.values_along(t, y, yp, values)
        shapes = (n, n), (n, n), (p, n), (programs.m, n), (p, programs.m)
        found, first = [], 0
        for shape, places, end in zip(shapes, programs.places, programs.ends, strict=True):
            matrix = np.zeros((count, shape[0] * shape[1]))
            matrix[:, places] = values[:, first:end]
            found.append(matrix.reshape(count, *shape))
            first = end
        return tuple(found)

    def _called(self, t: np.ndarray, y: np.ndarray, yp: np.ndarray) -> tuple[np.ndarray, ...]:
        """Ask functions that are called: by their Jacobian, or by differences."""
        n, count, problem = self.n, len(t), self.model.problem
        fy, fyp = np.empty((2, count, n, n))
        fp = np.zeros((count, self.n_parameters, n))

        for k in range(count):
            probe.move_to(self.state, t[k], y[k], yp[k])
            status, r = probe.residual_at(self.state, t[k], y[k], yp[k])
            raise_users(self.state)
            if status == 0:
                _, *pair = probe.jacobian_at(self.state, t[k], y[k], yp[k], r)
                raise_users(self.state)
                for matrix, part in zip((fy, fyp), pair, strict=True):
                    matrix[k] = part.toarray() if hasattr(part, "toarray") else part
            for p in self.parameters.of_inputs:
                fp[k, p] = by_arguments(
                    lambda args, at=k: called_residual(problem, args, t[at], y[at], yp[at]),
                    self.parameters, int(p),
                )
        nothing = np.zeros((count, 0, n)), np.zeros((count, self.n_parameters, 0))
        return fy, fyp, fp, *nothing

    def _with_given(
        self, t: np.ndarray, y: np.ndarray, gy: np.ndarray, gp: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Add the constraints and invariants that the user has given."""
        s, n_user, count = self.state, self.model.n, len(t)
        more = self.m - self.found
        slopes, by_parameters = np.zeros((count, more, self.n)), np.zeros(
            (count, self.n_parameters, more)
        )

        def values(args: tuple, at: int) -> np.ndarray:
            parts = [np.ravel(item.fun(t[at], y[at, :n_user].copy(), *args)) for item in self.given]
            return np.concatenate(parts).astype(float)

        for k in range(count):
            _, whole = jacobian_of_constraints_at(s, t[k], y[k])
            raise_users(s)
            whole = whole.toarray() if hasattr(whole, "toarray") else whole
            slopes[k] = whole[self.found :]
            for p in self.parameters.of_inputs:
                by_parameters[k, p] = by_arguments(
                    lambda args, at=k: values(args, at), self.parameters, int(p)
                )
        return np.concatenate([gy, slopes], axis=1), np.concatenate([gp, by_parameters], axis=2)

    def residual(
        self, values: np.ndarray, t: float, y: np.ndarray, yp: np.ndarray
    ) -> np.ndarray:
        """Return the residual at a point."""
        plan, problem = self.model.plan, self.model.problem
        if plan is not None and plan.system is not None:
            return plan.system.new(values).values(t, y, yp)[: self.n]
        return called_residual(problem, problem.args, t, y, yp)

    def scale(self, y: np.ndarray) -> np.ndarray:
        """What projections measure changes of the unknowns in, next to y."""
        s = self.state
        return (s.array("rtol") * np.abs(y) + s.array("atol")) ** s.projection_power

    def complete(self, slopes: Slopes, before: np.ndarray) -> None:
        """Find what projections do, which are measured by tolerances at the points `before`."""
        if not self.m:
            return
        scale = self.scale(before)
        slopes.back[:] = scale[:, :, None] * _pseudo_inverse(slopes.gy * scale[:, None, :])


def called_residual(
    problem: Problem, args: tuple, t: float, y: np.ndarray, yp: np.ndarray
) -> np.ndarray:
    """Call a residual with some arguments."""
    if problem.fills:
        out = np.zeros(len(y))
        problem.fun(t, y.copy(), yp.copy(), out, *args)
        return out
    return np.array(problem.fun(t, y.copy(), yp.copy(), *args), float)


def linearised(
    known: dict[Any, Linearised], model: Model, values: np.ndarray, parameters: Parameters,
    state: State,
) -> Linearised:
    """Return what gives the slopes of a model; made once for each model and its inputs."""
    key = id(model), values.tobytes()
    if key not in known:
        known[key] = Linearised(model, values, parameters, state)
    return known[key]


def _pseudo_inverse(a: np.ndarray) -> np.ndarray:
    """Pseudo-inverses of wide matrices, rows of which may depend on each other."""
    length = np.sqrt((a * a).sum(axis=2, keepdims=True))
    length[length == 0.0] = 1.0
    a = a / length
    q, r = np.linalg.qr(a.transpose(0, 2, 1))
    diagonal = np.abs(np.diagonal(r, axis1=1, axis2=2))
    if a.shape[1] <= a.shape[2] and np.all(diagonal > DEPENDENT):
        found = q @ np.linalg.inv(r).transpose(0, 2, 1)
    else:
        found = np.linalg.pinv(a, rcond=DEPENDENT)
    return found / length.transpose(0, 2, 1)


def _programs(plan: Plan, parameters: Parameters) -> _Programs:
    """Make the program of all derivatives of a plan, once for the same parameters."""
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
        n, size, constraints = traced.n, traced.args.size, ()
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
    ends = tuple(np.cumsum([len(part) for part in places]).tolist())
    return _Programs(prepare(program), n, places, ends, m)


def _place(rows: Any, columns: Any, width: int) -> np.ndarray:
    return np.asarray(rows, np.intp) * width + np.asarray(columns, np.intp)
