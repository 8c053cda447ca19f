"""Error estimates at index 2 and 3 as written."""

import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from support.high_index import GivenOptions, solve, solve_dae

from tether import Bdf, Problem, Status


def steep(delta):
    def fun(t, y, yp):
        return [yp[1] - y[0], y[1] - math.tanh((t - 0.5) / delta)]

    def exact(t):
        return (1 - np.tanh((t - 0.5) / delta) ** 2) / delta

    return fun, exact


@pytest.mark.parametrize("delta", [0.1, 0.01, 0.001])
@pytest.mark.parametrize("estimate", ["local", "auto"])
def test_steep_gradient_is_finished_within_20_tolerances(delta, estimate):
    fun, exact = steep(delta)
    rtol = 1e-6
    sol = solve_dae(
        fun, (0, 1), [exact(0.0), math.tanh(-0.5 / delta)], rtol=rtol, atol=rtol,
        options={"estimate": estimate},
    )
    assert sol.success
    error = np.abs(sol.y[0] - exact(sol.t)) / (1 + exact(sol.t))
    assert error.max() < 20 * rtol
    assert sol.stats.steps < 1500


@pytest.mark.parametrize("delta", [0.1, 0.01, 0.001])
def test_steep_gradient_defeats_the_classical_estimate(delta):
    fun, exact = steep(delta)
    sol = solve_dae(
        fun, (0, 1), [exact(0.0), math.tanh(-0.5 / delta)], rtol=1e-6, atol=1e-6,
        options={"estimate": "classical"}, max_steps=20000,
    )
    assert not sol.success


@pytest.mark.parametrize("name", ["pend-i2", "pend-i3", "andrews-i3"])
def test_classical_estimate_fails_at_high_index(name):
    _, sol = solve(name, 1e-6, options={"estimate": "classical"}, max_steps=20000)
    assert not sol.success


@pytest.mark.parametrize("estimate", ["exclude", "scaled", "local", "mechanical"])
@pytest.mark.parametrize("name", ["pend-i2", "caraxis-i2"])
def test_every_other_estimate_solves_index_2(name, estimate):
    problem, sol = solve(name, 1e-6, options={"estimate": estimate})
    assert sol.success
    assert problem.digits(sol.y[:, -1]) > 2.5


@pytest.mark.parametrize("estimate", ["exclude", "scaled", "mechanical"])
def test_estimates_that_leave_multipliers_out_solve_index_3(estimate):
    for name in ("pend-i3", "caraxis-i3"):
        problem, sol = solve(name, 1e-6, options={"estimate": estimate})
        assert sol.success
        assert problem.digits(sol.y[:, -1]) > 2.0


def test_local_estimate_is_that_of_the_theory():
    """One step of order 1 from an exact start: y1 is off by the truncation error over h."""
    h = 1e-3
    problem = Problem(lambda t, y, yp: [yp[1] - y[0], y[1] - math.sin(t)])
    bdf = Bdf(
        problem, 0.5, [math.cos(0.5), math.sin(0.5)], [-math.sin(0.5), math.cos(0.5)],
        GivenOptions(rtol=1e-3, atol=1e-3, first_step=h, estimate="local"), t_bound=1.0,
    )
    bdf.step()
    estimate = bdf._integration.state.array("filtered")
    error = bdf.y - [math.cos(0.5 + h), math.sin(0.5 + h)]
    assert error[0] == pytest.approx(estimate[0], rel=0.01)
    assert abs(estimate[1]) < 1e-12


@pytest.mark.parametrize(
    ("ratio", "k", "feed"), [(0.87, 2.1, 0.73), (15, 14.8, 0.47), (6.6, 1.1, 0.71)]
)
def test_round_off_in_the_first_steps_of_a_multiplier(ratio, k, feed):
    """A <-> B at once, B + C -> D: the last unknown is what the equilibrium turns over.

    It was off by 11,000 tolerances, since steps that double multiplied the round-off.
    """
    share, rtol = ratio / (1 + ratio), 1e-9

    def fun(t, y, yp):
        a, b, c, r, x = y
        return [yp[0] - feed + x, yp[1] - x + r, yp[2] + r, r - k * b * c, b - ratio * a]

    def rate(s, c):
        return k * share * s * c

    def turned_over(s, c):
        return share * feed + (1 - share) * rate(s, c)

    s0, c0 = 2.0, 1.0
    y0 = [s0 - share * s0, share * s0, c0, rate(s0, c0), turned_over(s0, c0)]
    sol = solve_dae(fun, (0, 3), y0, rtol=rtol, atol=1e-3 * rtol, trace="never")
    assert sol.success
    assert sol.stats.steps < 1200
    first = sol.t[sol.t < 1e-4]
    exact = solve_ivp(
        lambda t, z: [feed - rate(*z), -rate(*z)], (0, 1e-4), [s0, c0], "DOP853", t_eval=first,
        rtol=1e-13, atol=1e-15,
    ).y
    expected = turned_over(*exact)
    assert np.abs(sol.y[4, : len(first)] / expected - 1).max() < 50 * rtol


def test_wanted_between_the_steps_multipliers_are_followed_there():
    problem, _ = solve("pend-i2", 1e-4)
    times = np.linspace(0.5, 10, 2000)
    exact = np.array([problem.exact(t)[4] for t in times])
    errors = {}
    for wanted in (False, True):
        bdf = Bdf(
            problem.fun, 0.0, problem.y0, problem.yp0, GivenOptions(rtol=1e-4, atol=1e-4),
            t_bound=10.0, dense_output=wanted,
        )
        values = np.empty_like(times)
        while bdf.step() == Status.RUNNING:
            inside = (times > bdf.t_old) & (times <= bdf.t)
            values[inside] = bdf.dense_output()(times[inside])[0][4]
        errors[wanted] = np.abs(values - exact)[:-1].max(), bdf.stats.steps
    sol = solve_dae(
        problem.fun, problem.t_span, problem.y0, problem.yp0, rtol=1e-4, atol=1e-4, t_eval=times
    )
    assert errors[True][1] >= errors[False][1]
    assert np.abs(sol.y[4] - exact).max() < 0.05
    assert sol.stats.steps == errors[True][1]
