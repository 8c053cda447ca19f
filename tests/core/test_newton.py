"""Newton and its matrix at index 2 and 3 as written."""

import math

import numpy as np
import pytest
from support.high_index import DIGITS, PENDULUM, solve, solve_dae

from tether import Bdf, Problem, Status, gallery


@pytest.mark.parametrize("scaling", ["rows", "kinds"])
@pytest.mark.parametrize("name", ["pend-i3", "andrews-i2", "caraxis-i3"])
def test_scaling_changes_the_matrix_not_the_solution(name, scaling):
    problem, plain = solve(name, 1e-6)
    _, scaled = solve(name, 1e-6, options={"scaling": scaling})
    assert scaled.success
    assert abs(scaled.stats.steps - plain.stats.steps) < 0.2 * plain.stats.steps
    assert problem.digits(scaled.y[:, -1]) > DIGITS[name]


def test_newton_can_be_held_to_the_derivative():
    """P82 eq. 5.10 asks for h times the accuracy of eq. 5.9."""
    iterations = {}
    for test in ("y", "yp"):
        _, sol = solve("pend-i2", 1e-4, options={"newton_test": test})
        assert sol.success
        iterations[test] = sol.stats.iterations / sol.stats.steps
    assert iterations["yp"] > 1.1 * iterations["y"]


def test_damped_iteration_takes_over_where_smaller_steps_do_not_help():
    """An algebraic unknown that jumps: the prediction is as bad with any step."""

    def jumping(t, y, yp):
        target = 0.0 if t < 0.5 else 40.0
        return [yp[0] - 1.0, math.atan(y[1] - target)]

    bdf = Bdf(
        jumping, 0.0, [0.0, 0.0], None, {"form": "given", "trace": "never"},
        t_bound=1.0, dense_output=False,
    )
    bdf._integration.state.use_kinds([0, 2], [0, 1], 1)
    while bdf.step() == Status.RUNNING:
        pass
    assert bdf.status == Status.REACHED_END
    assert bdf._integration.state.damped_steps > 0
    assert bdf.y[1] == pytest.approx(40.0, rel=1e-5)


def test_a_step_too_small_for_index_3_is_told_apart():
    problem = gallery.get("andrews-i3")
    sol = solve_dae(problem.fun, problem.t_span, problem.y0, problem.yp0, first_step=1e-14)
    if not sol.success:
        assert sol.status in (Status.SMALLER_IS_WORSE, Status.NO_CONVERGENCE)
        assert sol.stats.steps < 50


def test_split_residual_gives_the_matrix_of_the_estimate():
    """P82 section 5: the terms with y' alone are enough for F_y' (Problem.split)."""

    def terms(t, y, yp):
        return [yp[0], yp[1], (1 + y[0] ** 2) * yp[2], yp[3], 0.0]

    def rest(t, y):
        x, z, u, v, lam = y
        return [u, v, -(1 + x * x) * lam * x, -lam * z - 9.8, 1 - x * x - z * z]

    split = Problem.split(terms, rest)
    sol = solve_dae(split, (0, 2), PENDULUM.y0, rtol=1e-6, atol=1e-6, trace="never")
    assert sol.success
    np.testing.assert_allclose(sol.y[:4, -1], PENDULUM.exact(2.0)[:4], atol=1e-4)
    bdf = Bdf(split, 0.0, PENDULUM.y0, None, {"trace": "never", "form": "given"}, t_bound=1.0)
    np.testing.assert_array_equal(
        bdf._integration.state.array("fyp").reshape(5, 5).T, np.diag([1.0, 1.0, 2.0, 1.0, 0.0])
    )
