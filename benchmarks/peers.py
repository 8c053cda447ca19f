"""One adapter per solver: adapter(problem, rtol) -> solve() -> Run.

What happens before solve() is called is set-up (symbolic work, compilation) and not timed. Every
solver is asked for the end value only, where it knows such a wish; a solver that is not installed
is left out of `SOLVERS`.

Solvers that call Python get the gallery's function as it is and pass it their own arrays. In the
rows marked "lists" the function turns them into lists first, which makes work on single numbers
several times cheaper; it is the same change in the user's code for all of them.
"""

from __future__ import annotations

import atexit
import functools
import importlib.util
import math
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import LowLevelCallable
from scipy.sparse import csc_matrix

from benchmarks.symbolic import (
    NotApplicable,
    diffsl,
    leading_diagonal,
    linear_matrices,
    with_math,
)
from tether.gallery import GalleryProblem, compile_residual, find_compiler

MAX_STEPS = 1_000_000


@dataclass
class Run:
    """What one call of a solver gave."""

    y: np.ndarray
    steps: int | None = None
    residuals: int | None = None
    failure: str = ""


Solve = Callable[[], Run]
Adapter = Callable[[GalleryProblem, float], Solve]


def on_lists(adapter: Adapter) -> Adapter:
    """The same solver with a residual that works on lists."""

    def adapted(problem: GalleryProblem, rtol: float) -> Solve:
        if problem.vectorised:
            raise NotApplicable("the residual works on arrays")
        fun = problem.fun

        def converting(t: float, y: np.ndarray, yp: np.ndarray) -> list[float]:
            return fun(t, y.tolist(), yp.tolist())

        return adapter(replace(problem, fun=converting), rtol)

    return adapted


# --- tether ------------------------------------------------------------------


@functools.cache
def _library_folder() -> str:
    folder = tempfile.TemporaryDirectory(prefix="residuals")
    atexit.register(folder.cleanup)
    return folder.name


def tether(
    problem: GalleryProblem,
    rtol: float,
    *,
    compiled: bool = False,
    every_step: bool = False,
    form: str = "auto",
    trace: str = "auto",
) -> Solve:
    from tether import solve_dae

    fun: Any = problem.fun
    if compiled:
        if problem.c_source is None or find_compiler() is None:
            raise NotApplicable("no C residual")
        fun = LowLevelCallable(compile_residual(problem, _library_folder()))
    t_eval = None if every_step else [problem.t_span[1]]
    atol = problem.atol(rtol)

    def solve() -> Run:
        sol = solve_dae(
            fun, problem.t_span, problem.y0, problem.yp0, rtol=rtol, atol=atol, t_eval=t_eval,
            form=form, trace=trace,
        )
        failure = "" if sol.success else sol.message
        return Run(sol.y[:, -1], sol.stats.steps, sol.nfev, failure)

    return solve


# --- scikit-sundae: SUNDIALS IDA ---------------------------------------------


def filling_residual(problem: GalleryProblem) -> Callable[..., None]:
    """The plain residual behind the signature (t, y, yp, out)."""
    fun = problem.fun

    def residual(t: float, y: np.ndarray, yp: np.ndarray, out: np.ndarray) -> None:
        try:
            out[:] = fun(t, y, yp)
        except (OverflowError, ValueError):
            out[:] = math.nan  # what NumPy would have given: the solver then tries a shorter step

    return residual


def sksundae(problem: GalleryProblem, rtol: float, *, every_step: bool = False) -> Solve:
    from sksundae.ida import IDA

    options: dict[str, Any] = {
        "rtol": rtol,
        "atol": problem.atol(rtol),
        "max_num_steps": MAX_STEPS,
        "algebraic_idx": list(problem.algebraic) or None,
    }
    if problem.bandwidth is not None:
        options |= {"linsolver": "band", "lband": problem.bandwidth, "uband": problem.bandwidth}
    residual = filling_residual(problem)
    t0, t_end = problem.t_span
    # Two times mean every step, which costs a trip through Python each; three mean only those.
    times = [t0, t_end] if every_step else [t0, (t0 + t_end) / 2, t_end]

    def solve() -> Run:
        sol = IDA(residual, **options).solve(times, problem.y0, problem.yp0)
        steps = len(sol.t) - 1 if every_step else None
        return Run(sol.y[-1], steps, sol.nfev, "" if sol.success else str(sol.message))

    return solve


# --- scipy_dae ---------------------------------------------------------------


def scipy_dae(problem: GalleryProblem, rtol: float) -> Solve:
    from scipy_dae.integrate import solve_dae

    filling = filling_residual(problem)

    def residual(t: float, y: np.ndarray, yp: np.ndarray) -> np.ndarray:
        out = np.empty_like(y)
        filling(t, y, yp, out)
        return out

    options: dict[str, Any] = {"method": "BDF", "rtol": rtol, "atol": problem.atol(rtol)}
    if problem.vectorised:
        options["jac"] = tuple(csc_matrix(matrix) for matrix in linear_matrices(problem))

    def solve() -> Run:
        sol = solve_dae(residual, problem.t_span, problem.y0, problem.yp0, **options)
        failure = "" if sol.success else str(sol.message)
        return Run(sol.y[:, -1], len(sol.t) - 1, sol.nfev, failure)

    return solve


# --- CasADi: SUNDIALS IDAS on symbols ----------------------------------------


def casadi(problem: GalleryProblem, rtol: float) -> Solve:
    import casadi as ca

    diagonal = leading_diagonal(problem)
    order = np.argsort(diagonal == 0, kind="stable")  # differential unknowns first
    back = np.argsort(order)
    k = int(np.count_nonzero(diagonal))
    kind: Any = ca.MX if problem.vectorised else ca.SX
    x, z, t = kind.sym("x", k), kind.sym("z", problem.n - k), kind.sym("t")
    if problem.vectorised:
        f_y, _ = linear_matrices(problem)
        right = -ca.mtimes(ca.sparsify(ca.DM(f_y[np.ix_(order, order)])), ca.vertcat(x, z))
    else:
        unknowns = ca.vertsplit(ca.vertcat(x, z))
        fun = with_math(problem.fun, ca)
        rows = fun(t, [unknowns[i] for i in back], [0.0] * problem.n)
        right = -ca.vertcat(*[rows[i] for i in order])
    options = {
        "reltol": rtol,
        "abstolv": problem.atol(rtol)[order].tolist(),
        "max_num_steps": MAX_STEPS,
        "calc_ic": False,
        "init_xdot": problem.yp0[order][:k].tolist(),
    }
    ode, alg = right[:k] / ca.DM(diagonal[order][:k]), right[k:]
    dae = {"x": x, "z": z, "t": t, "ode": ode, "alg": alg}
    integrator = ca.integrator("integrator", "idas", dae, *problem.t_span, options)
    start = problem.y0[order]

    def solve() -> Run:
        try:
            end = integrator(x0=start[:k], z0=start[k:])
        except RuntimeError as error:
            return Run(problem.y0 * np.nan, failure=str(error).strip().splitlines()[-1])
        y = np.concatenate([end["xf"].full(), end["zf"].full()]).ravel()[back]
        stats = integrator.stats()
        return Run(y, stats["nsteps"], stats["nfevals"])

    return solve


# --- pydiffsol: DiffSL text, compiled ----------------------------------------


def pydiffsol(problem: GalleryProblem, rtol: float) -> Solve:
    import pydiffsol as ds

    matrix = ds.faer_sparse if problem.bandwidth is not None else ds.nalgebra_dense
    ode = ds.Ode(diffsl(problem), matrix_type=matrix, ode_solver=ds.bdf)
    ode.t0, ode.rtol = problem.t_span[0], rtol
    # It takes one number; the smallest scale is too strict where it lies far below the others.
    ode.atol = rtol * max(float(problem.atol_scale.min()), 1e-6)
    ode.h0 = 1e-6  # its default of 1 fails at the start of several problems
    parameters = np.zeros(0)

    def solve() -> Run:
        try:
            sol = ode.solve(parameters, problem.t_span[1])
        except RuntimeError as error:
            return Run(problem.y0 * np.nan, failure=str(error).splitlines()[0])
        return Run(sol.ys[:, -1], len(sol.ts) - 1)

    return solve


def _installed(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


SOLVERS: dict[str, Adapter] = {
    name: adapter
    for name, module, adapter in (
        ("tether", "tether.solve", tether),
        ("tether, callback", "tether.solve", functools.partial(tether, trace="never")),
        (
            "tether, callback, lists", "tether.solve",
            on_lists(functools.partial(tether, trace="never")),
        ),
        ("tether, C residual", "tether.solve", functools.partial(tether, compiled=True)),
        ("scikit-sundae", "sksundae", sksundae),
        ("scikit-sundae, lists", "sksundae", on_lists(sksundae)),
        ("scipy_dae BDF", "scipy_dae", scipy_dae),
        ("casadi idas", "casadi", casadi),
        ("pydiffsol bdf", "pydiffsol", pydiffsol),
    )
    if _installed(module)
}
