"""Reduced systems, as problems in Python."""

import numpy as np

from tether import Constraint, Problem, solve_dae
from tether.explain.start_words import start_words
from tether.structure.analysis import analyze_trace
from tether.structure.equations import Equations
from tether.structure.hidden import reduce_index
from tether.structure.reduced_start import reduced_start
from tether.trace import evaluate, trace

G = 9.81


def pendulum(t, y, yp):
    x, z, u, w, lam = y
    return [yp[0] - u, yp[1] - w, yp[2] + lam * x, yp[3] + lam * z + G, x * x + z * z - 1]


def analysis_of(fun, y0, **options):
    y0 = np.asarray(y0, float)
    return analyze_trace(trace(fun, len(y0)), 0.0, y0, **options)


def reduced_of(fun, n, form=1):
    system = Equations.of_trace(trace(fun, n))
    return reduce_index(system, system.signature, form)


def dense(pattern, values):
    matrix = np.zeros(pattern.shape)
    matrix[pattern.rows, pattern.cols] = values[: len(pattern.rows)]
    return matrix


def jacobians_at(reduced, t, y, yp):
    programs = reduced.programs
    values = evaluate(programs.system, t, y, yp, reduced.args)[reduced.n :]
    count = len(programs.f_y.nodes)
    return dense(programs.f_y, values[:count]), dense(programs.f_yp, values[count:])


def problem_of(reduced):
    """The reduced system as a problem in Python."""
    programs, args = reduced.programs, reduced.args
    constraints = Constraint(
        lambda t, y: evaluate(programs.constraints, t, y, y, args),
        jac=lambda t, y: dense(
            programs.g_y, evaluate(programs.constraint_jacobian, t, y, y, args)
        ),
    )
    return Problem(
        lambda t, y, yp: evaluate(programs.residual, t, y, yp, args),
        jac=lambda t, y, yp: jacobians_at(reduced, t, y, yp),
        constraints=constraints if reduced.levels else None,
    )


def solve(fun, y0, t_end, form=1, **options):
    found = analysis_of(fun, y0, form=form)
    start = reduced_start(found.reduced, 0.0, np.asarray(y0, float))
    assert start.success, start_words(start.reason)
    return solve_dae(problem_of(found.reduced), (0.0, t_end), start.y, start.yp, **options), found
