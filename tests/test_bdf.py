"""Bdf, one step at a time."""

import math

import numpy as np
import pytest
from support.front_door import SPAN, called_or_traced
from support.helpers import RELAX_START, circle, decay, relax

from tether import Bdf, Problem, Status, solve_dae


@called_or_traced
def test_bdf_takes_the_steps_of_solve_dae(trace):
    sol = solve_dae(relax, SPAN, RELAX_START, rtol=1e-8, dense_output=True, trace=trace)
    bdf = Bdf(Problem(relax), SPAN[0], RELAX_START, options={"rtol": 1e-8, "trace": trace},
              t_bound=SPAN[1])
    assert bdf.t == 0.0
    assert bdf.t_old is None
    assert bdf.status == Status.RUNNING
    np.testing.assert_array_equal(bdf.yp, sol.yp[:, 0])
    for row in range(1, len(sol.t)):
        expected_size = bdf.next_step
        status = bdf.step()
        assert status == bdf.status
        assert (bdf.t_old, bdf.t) == (sol.t[row - 1], sol.t[row])
        np.testing.assert_array_equal(bdf.y, sol.y[:, row])
        np.testing.assert_array_equal(bdf.yp, sol.yp[:, row])
        assert bdf.order == sol.stats.order[row - 1]
        assert bdf.step_size == pytest.approx(bdf.t - bdf.t_old, rel=1e-12)
        assert abs(bdf.step_size) <= abs(expected_size) * (1 + 1e-12)
        inside = np.linspace(bdf.t_old, bdf.t, 5)
        y, yp = bdf.dense_output()(inside)
        np.testing.assert_allclose(y, sol.sol(inside)[0], rtol=1e-12)
        np.testing.assert_allclose(yp[:, 1:], sol.sol(inside)[1][:, 1:], rtol=1e-5, atol=1e-8)
    assert bdf.status == Status.REACHED_END
    assert bdf.stats.steps == sol.stats.steps
    checks = 2 if trace == "never" else 1      # a called function is asked twice
    assert (bdf.stats.nfev + checks, bdf.stats.nlu) == (sol.nfev, sol.nlu)
    assert bdf.step() == Status.REACHED_END
    assert bdf.t == SPAN[1]


def test_bdf_without_bound_and_backward():
    bdf = Bdf(decay, 0.0, [1.0])
    while bdf.t < 5.0:
        assert bdf.step() == Status.RUNNING
    assert bdf.y[0] == pytest.approx(math.exp(-bdf.t), rel=1e-4)
    backward = Bdf(decay, 0.0, [1.0], t_bound=-math.inf)
    while backward.t > -1.0:
        assert backward.step() == Status.RUNNING
    assert backward.y[0] == pytest.approx(math.exp(-backward.t), rel=1e-4)


def test_bdf_hands_out_copies():
    bdf = Bdf(decay, 0.0, [1.0], t_bound=1.0)
    bdf.step()
    bdf.y[:] = 7.0
    bdf.yp[:] = 7.0
    polynomial = bdf.dense_output()
    before = polynomial(bdf.t)[0].copy()
    while bdf.step() == Status.RUNNING:
        pass
    assert bdf.y[0] == pytest.approx(math.exp(-1), rel=1e-5)
    np.testing.assert_array_equal(polynomial(polynomial.t)[0], before)


@called_or_traced
def test_two_integrations_side_by_side(trace):
    """No state is shared: interleaved they go the ways they go alone."""
    problems = ((decay, [1.0]), (circle, [1.0, 0.0]))
    alone = [solve_dae(fun, (0, 1), y0, trace=trace) for fun, y0 in problems]
    pair = [Bdf(fun, 0.0, y0, options={"trace": trace}, t_bound=1.0) for fun, y0 in problems]
    while any(bdf.step() == Status.RUNNING for bdf in pair):
        pass
    while pair[1].step() == Status.RUNNING:
        pass
    for bdf, sol in zip(pair, alone, strict=True):
        np.testing.assert_array_equal(bdf.y, sol.y[:, -1])


def test_residual_that_integrates_another_problem():
    """A run inside a run."""
    def fun(t, y, yp):
        inner = solve_dae(decay, (0, 1), [1.0]).y[0, -1]
        return [yp[0] + inner * y[0]]

    sol = solve_dae(fun, (0, 1), [1.0])
    rate = solve_dae(decay, (0, 1), [1.0]).y[0, -1]
    assert sol.y[0, -1] == pytest.approx(math.exp(-rate), rel=1e-5)


@pytest.mark.parametrize("moved_at", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("bound", [3.5, 4.5, 8.0])
@pytest.mark.parametrize("direction", [1.0, -1.0])
def test_the_bound_may_be_moved_nearer(moved_at, bound, direction):
    """Before a time at which the function switches, behind it, and between two of them."""
    def fun(t, y, yp):
        s = direction * t
        return [yp[0] - (1.0 if 2.0 < s < 4.0 else 0.0)]

    bdf = Bdf(fun, 0.0, [0.0], t_bound=direction * 10.0)
    while direction * bdf.t < moved_at:
        bdf.step()
    bdf.t_bound = direction * bound
    while bdf.status == Status.RUNNING:
        bdf.step()
    assert (bdf.status, bdf.t) == (Status.REACHED_END, direction * bound)
    assert bdf.y[0] == pytest.approx(direction * (min(bound, 4.0) - 2.0), abs=1e-6)


@pytest.mark.parametrize("steps", [0, 3, 10_000])
def test_the_bound_may_be_moved(steps):
    bdf = Bdf(lambda t, y, yp: [yp[0] + y[0] - (1.0 if t > 1.5 else 0.0)], 0.0, [1.0], t_bound=1.0)
    while steps and bdf.status == Status.RUNNING:
        bdf.step()
        steps -= 1
    bdf.t_bound = 2.0
    assert bdf.t_bound == 2.0
    while bdf.status == Status.RUNNING:
        bdf.step()
    assert bdf.t == 2.0
    expected = np.exp(-2.0) + 1.0 - np.exp(-0.5)
    assert bdf.y[0] == pytest.approx(expected, abs=1e-4)
    with pytest.raises(ValueError, match="t_bound must lie ahead"):
        bdf.t_bound = 1.0
