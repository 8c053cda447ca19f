"""The gallery traced."""

import math

import numpy as np
import pytest
from support.programs import jacobians

from tether import gallery
from tether.trace import evaluate, trace, verify

STEP = 1e-30


def near_start(problem, seed):
    rng = np.random.default_rng(seed)
    y = problem.y0 + 0.1 * problem.atol_scale * rng.uniform(1, 2, problem.n)
    return 0.3, y, problem.yp0 + rng.uniform(-1, 1, problem.n)


@pytest.mark.parametrize("name", gallery.names("classic"))
def test_gallery_is_traced_and_verified(name):
    problem = gallery.get(name)
    traced = trace(problem.fun, problem.n)
    verify(traced, problem.fun, problem.t_span[0], problem.y0, problem.yp0)
    assert traced.notes == []


@pytest.mark.parametrize("name", gallery.names("classic"))
def test_gallery_jacobians_against_complex_steps(name):
    problem = gallery.get(name)
    traced = trace(problem.fun, problem.n)
    t, y, yp = near_start(problem, 5)
    steps = 1j * STEP * np.eye(problem.n)
    program = traced.program()
    points = y[:, None] + 0 * steps, yp[:, None] + 0 * steps
    expected = (
        evaluate(program, t, points[0] + steps, points[1]).imag / STEP,
        evaluate(program, t, points[0], points[1] + steps).imag / STEP,
    )
    for found, matrix in zip(jacobians(traced, t, y, yp), expected, strict=True):
        np.testing.assert_allclose(found, matrix, rtol=1e-13, atol=1e-13 * np.abs(matrix).max())


@pytest.mark.parametrize("name", [n for n in gallery.names("classic") if gallery.get(n).jac])
def test_gallery_jacobians_against_those_written_by_hand(name):
    problem = gallery.get(name)
    point = near_start(problem, 6)
    found = jacobians(trace(problem.fun, problem.n), *point)
    for actual, known in zip(found, problem.jac(*point), strict=True):
        np.testing.assert_allclose(actual, known, rtol=1e-13, atol=1e-13 * np.abs(known).max())


def test_sparsity_is_that_of_the_equations():
    traced = trace(gallery.heat1d(m=40).fun, 40)
    assert len(traced.f_y.nodes) == 2 + 3 * 38
    assert max(abs(i - j) for i, j in zip(traced.f_y.rows, traced.f_y.cols, strict=True)) == 1
    assert traced.program(traced.f_y.nodes + traced.f_yp.nodes).size == 0


# The size of a program is its speed.
@pytest.mark.parametrize(
    ("name", "residual", "both"),
    [("robertson", 13, 18), ("akzo", 40, 78), ("pend-i1", 17, 27), ("caraxis-i1", 87, 190)],
)
def test_programs_stay_small(name, residual, both):
    problem = gallery.get(name)
    traced = trace(problem.fun, problem.n)
    everything = traced.outputs + traced.f_y.nodes + traced.f_yp.nodes
    assert traced.program().size <= residual
    assert traced.program(everything).size <= both


def test_derivatives_by_time_and_arguments():
    def fun(t, y, yp, k, rates):
        return [yp[0] + k * math.sin(t) * y[0], yp[1] - rates[1] * y[1] * t**2]

    args = (2.0, np.array([3.0, 4.0]))
    traced = trace(fun, 2, args)
    flat = traced.args.flatten(args)
    point = 0.3, [0.5, 0.6], [1.0, 1.0], flat
    slopes = evaluate(traced.program(traced.f_t.nodes), *point)
    np.testing.assert_allclose(slopes, [2 * math.cos(0.3) * 0.5, -4 * 0.6 * 0.6], rtol=1e-14)
    assert (traced.f_args.rows, traced.f_args.cols) == ([0, 1], [0, 2])
    slopes = evaluate(traced.program(traced.f_args.nodes), *point)
    np.testing.assert_allclose(slopes, [math.sin(0.3) * 0.5, -0.6 * 0.09], rtol=1e-14)
    assert traced.args.names == ["k", "rates[0]", "rates[1]"]
