"""Derivatives of end values by each solver: adapter(model, rtol) -> run() -> ndarray.

Forward adapters return all derivatives of the differential unknowns, shape (unknowns, parameters);
adjoint ones the gradient of the first unknown, shape (1, parameters). What happens before run() is
called is set-up and not timed.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

from benchmarks.sensitivity_models import Model
from benchmarks.symbolic import TERM_MATH, NotApplicable, Term, letters, with_math

MAX_STEPS = 1_000_000

Run = Callable[[], np.ndarray]
Adapter = Callable[[Model, float], Run]


def differential(model: Model) -> list[int]:
    """Numbers of the unknowns that have a slope."""
    return [i for i in range(len(model.y0)) if i not in model.algebraic]


def sizes(p: np.ndarray) -> np.ndarray:
    """How large a parameter is; 1 for those that are zero."""
    return np.where(p == 0.0, 1.0, np.abs(p))


# --- tether ------------------------------------------------------------------


def options(model: Model, rtol: float) -> dict[str, Any]:
    """Keywords of a run that returns the end."""
    return model.options | {
        "args": (model.p,), "rtol": rtol, "atol": model.atol(rtol), "t_eval": [model.t_span[1]],
    }


def tether_forward(model: Model, rtol: float) -> Run:
    """Derivatives of all unknowns along with the solution."""
    from tether import solve_dae

    keywords, rows = options(model, rtol), differential(model)

    def run() -> np.ndarray:
        sol = solve_dae(
            model.fun, model.t_span, model.y0, model.yp0, sensitivity="args", **keywords
        )
        if not sol.success:
            raise RuntimeError(sol.message)
        return sol.sens[:, rows, -1].T

    return run


def tether_adjoint(model: Model, rtol: float) -> Run:
    """Gradient by going back through the steps."""
    from tether import vjp

    keywords = options(model, rtol)
    weights = np.zeros((len(model.y0), 1))
    weights[0] = 1.0

    def run() -> np.ndarray:
        _, pullback = vjp(model.fun, model.t_span, model.y0, model.yp0, **keywords)
        return pullback(weights)[None]

    return run


# --- CasADi: SUNDIALS IDAS ---------------------------------------------------


class _Casadi:
    """Symbols of a model in semi-explicit form, and what holds at its start."""

    def __init__(self, model: Model, rtol: float) -> None:
        import casadi as ca

        n, algebraic, rows = len(model.y0), list(model.algebraic), differential(model)
        x, z = ca.SX.sym("x", len(rows)), ca.SX.sym("z", len(algebraic))
        p, t = ca.SX.sym("p", len(model.p)), ca.SX.sym("t")
        place = {i: x[k] for k, i in enumerate(rows)} | {i: z[k] for k, i in enumerate(algebraic)}
        residual = with_math(model.fun, ca)(t, [place[i] for i in range(n)], [0.0] * n, p)
        ode = -ca.vertcat(*[residual[i] for i in rows])
        alg = ca.vertcat(*[residual[i] for i in algebraic])
        self.dae = {"x": x, "z": z, "p": p, "t": t, "ode": ode, "alg": alg}
        self.x0, self.z0, self.p = model.y0[rows], model.y0[algebraic], model.p
        by_p = -ca.solve(ca.jacobian(alg, z), ca.jacobian(alg, p))
        slopes = ca.jacobian(ode, p) + ca.jacobian(ode, z) @ by_p
        start = ca.Function("start", [x, z, p, t], [ode, by_p, slopes])
        xp0, self.z0_by_p, xp0_by_p = (
            values.full() for values in start(self.x0, self.z0, self.p, model.t_span[0])
        )
        atol = model.atol(rtol)
        self.options = {
            "reltol": rtol,
            "abstolv": [*atol[rows], *atol[algebraic]],
            "max_num_steps": MAX_STEPS,
            "calc_ic": False,
            "init_xdot": xp0.ravel().tolist(),
        }
        # The system of all derivatives does not inherit tolerances and slopes.
        size = sizes(model.p)
        self.augmented = {
            "abstolv": [
                *atol[rows], *(v / s for s in size for v in atol[rows]),
                *atol[algebraic], *(v / s for s in size for v in atol[algebraic]),
            ],
            "init_xdot": [*xp0.ravel(), *xp0_by_p.T.ravel()],
        }
        self.span = model.t_span


def casadi_forward(model: Model, rtol: float) -> Run:
    """Derivatives by IDAS on the augmented system."""
    import casadi as ca

    made = _Casadi(model, rtol)
    keywords = made.options | {"augmented_options": made.augmented}
    forward = ca.integrator("run", "idas", made.dae, *made.span, keywords).forward(len(made.p))
    unit = np.eye(len(made.p))

    def run() -> np.ndarray:
        found = forward(
            x0=made.x0, z0=made.z0, p=made.p, fwd_p=unit, fwd_z0=made.z0_by_p
        )
        return found["fwd_xf"].full()

    return run


def casadi_adjoint(model: Model, rtol: float) -> Run:
    """Gradient by IDAS backwards from the end."""
    import casadi as ca

    made = _Casadi(model, rtol)
    keywords = made.options | {"calc_icB": True}
    integrator = ca.integrator("run", "idas", made.dae, *made.span, keywords)
    p = ca.MX.sym("p", len(made.p))
    end = integrator(x0=made.x0, z0=made.z0, p=p)["xf"]
    gradient = ca.Function("gradient", [p], [end, ca.gradient(end[0], p)])

    def run() -> np.ndarray:
        return gradient(made.p)[1].full().T

    return run


# --- pydiffsol ---------------------------------------------------------------


def _text(model: Model) -> str:
    """DiffSL text of a model."""
    n, rows = len(model.y0), differential(model)
    definitions: list[str] = []
    inputs = ["p" + letters(j) for j in range(len(model.p))]
    names = ["u" + letters(i) for i in range(n)]
    p = [Term(name, definitions) for name in inputs]
    unknowns = [Term(name, definitions) for name in names]
    residual = with_math(model.fun, TERM_MATH)(Term("t", definitions), unknowns, [0.0] * n, p)
    right = [(-row).text for row in residual]      # a long one makes definitions
    begin = [repr(v) for v in model.y0.tolist()]
    if model.solved is not None:
        values = model.solved([float(model.y0[i]) for i in rows], p)
        for i, value in zip(model.algebraic, values, strict=True):
            begin[i] = value.text
    slopes = np.zeros(n) if model.yp0 is None else model.yp0
    held = [f"d{names[i]}" if i in rows else f"0.0*d{names[i]}" for i in range(n)]

    def tensor(head: str, entries: list[str]) -> str:
        return head + " {\n" + "".join(f"  {entry},\n" for entry in entries) + "}"

    # Names must stand before their use: inputs, unknowns, then what is made of them.
    return "\n".join([
        tensor("in_i", [f"{a} = {v!r}" for a, v in zip(inputs, model.p.tolist(), strict=True)]),
        tensor("u_i", [f"{a} = {v}" for a, v in zip(names, begin, strict=True)]),
        tensor("dudt_i", [f"d{a} = {v!r}" for a, v in zip(names, slopes.tolist(), strict=True)]),
        *definitions,
        tensor("M_i", held),
        tensor("F_i", right),
    ])


def _diffsol(model: Model, rtol: float) -> Any:
    import pydiffsol as ds

    if not ds.is_sens_available():
        raise NotApplicable("built without sensitivities")
    ode = ds.Ode(_text(model), matrix_type=ds.nalgebra_dense, ode_solver=ds.bdf)
    ode.t0, ode.rtol = model.t_span[0], rtol
    ode.atol = rtol * max(float(model.scale.min()), 1e-6)      # it takes one number
    ode.h0 = 1e-6
    return ode


def pydiffsol_forward(model: Model, rtol: float) -> Run:
    """Derivatives by its forward method, without error control of them, as is its default."""
    ode, rows = _diffsol(model, rtol), differential(model)
    end = np.array([model.t_span[1]])

    def run() -> np.ndarray:
        found = ode.solve_fwd_sens(model.p, end)
        return np.array([by_p[rows, -1] for by_p in found.sens]).T

    return run


def pydiffsol_adjoint(model: Model, rtol: float) -> Run:
    """Gradient by its adjoint method."""
    ode = _diffsol(model, rtol)
    end = np.array([model.t_span[1]])
    weights = np.zeros((len(model.y0), 1))
    weights[0] = 1.0

    def run() -> np.ndarray:
        solution, checkpoint = ode.solve_adjoint_fwd(model.p, end)
        return np.asarray(ode.solve_adjoint_bkwd(solution, checkpoint, weights)).reshape(1, -1)

    return run


# --- scipy: one run for each parameter ----------------------------------------


def scipy_differences(model: Model, rtol: float) -> Run:
    """The naive way: solve_ivp's BDF once more for each parameter, algebraic unknowns put in."""
    if model.solved is None:
        raise NotApplicable("solve_ivp takes no algebraic unknowns")
    rows, n, solved, fun = differential(model), len(model.y0), model.solved, model.fun
    zero, order = [0.0] * n, np.argsort([*rows, *model.algebraic])

    def right(t: float, x: np.ndarray, p: list[float]) -> list[float]:
        values = x.tolist()
        both = [*values, *solved(values, p)]
        residual = fun(t, [both[i] for i in order], zero, p)
        return [-residual[i] for i in rows]

    def end(p: np.ndarray) -> np.ndarray:
        sol = solve_ivp(
            right, model.t_span, model.y0[rows], method="BDF", args=(p.tolist(),), rtol=rtol,
            atol=model.atol(rtol)[rows],
        )
        return sol.y[:, -1]

    steps = np.sqrt(rtol) * sizes(model.p)

    def run() -> np.ndarray:
        base = end(model.p)
        moved = [end(model.p + step * e) for step, e in zip(steps, np.eye(len(steps)), strict=True)]
        return np.array([(y - base) / step for y, step in zip(moved, steps, strict=True)]).T

    return run


def _present(*found: tuple[str, str, Adapter]) -> dict[str, Adapter]:
    return {
        name: adapter for name, module, adapter in found if importlib.util.find_spec(module)
    }


FORWARD = _present(
    ("tether", "tether", tether_forward),
    ("casadi idas", "casadi", casadi_forward),
    ("pydiffsol bdf", "pydiffsol", pydiffsol_forward),
    ("scipy BDF, differences", "scipy", scipy_differences),
)
ADJOINT = _present(
    ("tether", "tether", tether_adjoint),
    ("casadi idas", "casadi", casadi_adjoint),
    ("pydiffsol bdf", "pydiffsol", pydiffsol_adjoint),
)
