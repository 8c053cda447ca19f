"""A run that cannot go on: a failure that says why and keeps everything computed so far."""

import ctypes
import math

import numpy as np
import pytest
from support.helpers import c_function, circle, decay
from support.kept import assert_kept

from tether import Bdf, Cause, Status, solve_dae


@pytest.fixture(autouse=True)
def nothing_is_printed(capfd):
    """No run writes a word, whether it fails or not."""
    yield
    captured = capfd.readouterr()
    assert captured.out == ""
    assert captured.err == ""


# --- non-finite residuals -------------------------------------------------------------------


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_residual_that_leaves_its_domain_shortens_the_step(bad):
    """Straight lines down to a bend near zero: predictions overshoot into y < 0."""
    visits = []

    def fun(t, y, yp):
        if y[0] < 0:
            visits.append(t)
            return [bad]
        return [yp[0] + math.tanh(1e3 * y[0])]

    sol = solve_dae(fun, (0, 1.5), [1.0])
    assert visits
    assert sol.success
    assert sol.stats.convergence_failures > 0
    # arsinh(sinh(1e3 y)) falls with slope 1e3: y = arsinh(sinh(1e3) exp(-1e3 t)) / 1e3
    assert sol.y[0, -1] == pytest.approx(0.0, abs=1e-5)
    before = sol.t < 0.99
    np.testing.assert_allclose(sol.y[0, before], 1 - sol.t[before], rtol=1e-4)


@pytest.mark.parametrize("trace", ["never", "always"])
def test_a_square_root_of_numpy_shortens_the_step(trace):
    """y' = -2 sqrt(y) y is never zero, but its predictions may be negative."""
    with np.errstate(invalid="ignore"):
        sol = solve_dae(
            lambda t, y, yp: yp + 2 * np.sqrt(y) * y, (0, 1e6), [1.0], rtol=1e-3, atol=1e-12,
            trace=trace,
        )
    assert sol.success
    assert sol.y[0, -1] == pytest.approx(1 / (1 + 1e6) ** 2, rel=0.1)


def test_c_function_that_refuses_by_its_status(library):
    """y' = -sqrt(y) reaches zero at t = 2; the C function returns 1 for y < 0."""
    fun = c_function(library, "root", ctypes.c_int)
    sol = solve_dae(fun, (0, 1.999), [1.0])
    assert sol.success
    assert sol.y[0, -1] == pytest.approx((1 - 1.999 / 2) ** 2, rel=1e-2)


@pytest.mark.parametrize("trace", ["never", "always"])
@pytest.mark.parametrize("in_place", [False, True])
def test_nan_from_a_time_on(in_place, trace):
    edge = 0.7

    def fun(t, y, yp):
        return [yp[0] + y[0] if t <= edge else math.nan]

    def fills(t, y, yp, out):
        out[0] = fun(t, y, yp)[0]

    sol = solve_dae(fills if in_place else fun, (0, 1), [1.0], trace=trace)
    assert sol.status == Status.NON_FINITE
    assert sol.y == pytest.approx(np.exp(-sol.t)[None], rel=1e-5)
    assert "equation 0 is nan" in sol.message
    assert edge - 1e-6 < sol.t[-1] <= edge
    assert "change y0" not in sol.message


def test_nan_from_a_time_on_in_c(library):
    """The same behind a status: y' = -sqrt(y) cannot go beyond t = 2."""
    sol = solve_dae(c_function(library, "root", ctypes.c_int), (0, 3), [1.0], atol=1e-14)
    assert_kept(sol, lambda t: ((1 - t / 2) ** 2)[None], 1e-5)
    assert sol.t[-1] == pytest.approx(2.0, abs=1e-2)


def test_nan_at_the_start():
    sol = solve_dae(lambda t, y, yp: [math.nan], (0, 1), [1.0])
    assert not sol.success
    assert sol.status in (Status.NON_FINITE, Status.NO_CONSISTENT_START)
    assert "equation 0 is nan" in sol.message
    assert sol.t.tolist() == [0.0]
    assert sol.y.tolist() == [[1.0]]


def test_nan_in_one_component_at_the_start():
    sol = solve_dae(lambda t, y, yp: [yp[0] + y[0], math.log(y[1]) if y[1] > 0 else math.nan],
                    (0, 1), [1.0, -1.0], [-1.0, 0.0])
    assert not sol.success
    assert sol.t.tolist() == [0.0]


# --- failures of the solution ---------------------------------------------------------------


@pytest.mark.parametrize("trace", ["never", "always"])
def test_blow_up(trace):
    """y' = y^2 from 1 has its pole at t = 1."""
    sol = solve_dae(lambda t, y, yp: [yp[0] - y[0] ** 2], (0, 2), [1.0], trace=trace)
    assert not sol.success
    assert sol.t[-1] == pytest.approx(1.0, abs=1e-4)
    early = sol.t < 0.9
    assert np.count_nonzero(early) > 10
    np.testing.assert_allclose(sol.y[0, early], 1 / (1 - sol.t[early]), rtol=1e-3)
    assert f"t = {sol.t[-1]:.10g}" in sol.message


@pytest.mark.parametrize("trace", ["never", "auto"])
@pytest.mark.parametrize("yp0", [None, [0.0, 0.0]])
def test_an_equation_written_twice(yp0, trace):
    sol = solve_dae(lambda t, y, yp: [y[0] + y[1] - 2.0] * 2, (0, 1), [1.0, 1.0], yp0, trace=trace)
    assert not sol.success
    assert sol.status == Status.SINGULAR_SYSTEM
    assert "equations 0, 1" in sol.message
    assert sol.t.tolist() == [0.0]
    assert sol.y.tolist() == [[1.0], [1.0]]


@pytest.mark.parametrize("trace", ["never", "always"])
def test_a_turning_point(trace):
    """z^2 = 1 - t has no solution beyond t = 1, where its Jacobian becomes singular."""
    sol = solve_dae(lambda t, y, yp: [y[0] ** 2 - 1.0 + t], (0, 2), [1.0], trace=trace)
    assert_kept(sol, lambda t: np.sqrt(1.0 - t)[None], 1e-4)
    assert sol.t[-1] == pytest.approx(1.0, abs=1e-4)
    assert sol.diagnosis.cause == Cause.FOLD


@pytest.mark.parametrize("rtol", [5e-4, 8e-4, 1.05e-3, 1.5e-3, 2e-3])
def test_a_turning_point_is_told_wherever_the_run_ends(rtol):
    sol = solve_dae(lambda t, y, yp: [y[0] ** 2 - 1.0 + t], (0, 2), [1.0], rtol=rtol, trace="never")
    assert sol.diagnosis.cause == Cause.FOLD


def test_a_jump_that_no_step_is_small_enough_for():
    sol = solve_dae(lambda t, y, yp: [y[0] - (t > 0.5)], (0, 1), [0.0], trace="never")
    assert not sol.success
    assert sol.t[-1] == pytest.approx(0.5, abs=1e-8)


def test_a_wrong_jacobian():
    sol = solve_dae(circle, (0, 10), [1.0, 0.0], jac=(1e3 * np.eye(2), -np.eye(2)))
    assert not sol.success
    assert len(sol.t) == sol.stats.steps + 1


# --- tolerances -----------------------------------------------------------------------------


def test_tolerance_beyond_double_precision():
    sol = solve_dae(decay, (0, 1), [1.0], rtol=1e-17, atol=0)
    assert sol.status == Status.TOO_ACCURATE
    assert sol.t.tolist() == [0.0]


def test_component_without_atol_that_starts_at_zero():
    sol = solve_dae(circle, (0, 1), [1.0, 0.0], atol=[1e-9, 0.0])
    assert sol.status == Status.ZERO_WEIGHT
    assert sol.t.tolist() == [0.0]


def test_component_without_atol_that_becomes_zero():
    """y[1] falls to zero at t = 1 and stays there."""
    def fun(t, y, yp):
        return [yp[0] + y[0], y[1] - max(1.0 - t, 0.0)]

    sol = solve_dae(fun, (0, 2), [1.0, 1.0], atol=[1e-9, 0.0])
    assert not sol.success
    assert sol.status in (Status.ZERO_WEIGHT, Status.ERROR_TEST_FAILED)
    assert sol.t[-1] == pytest.approx(1.0, abs=1e-2)


# --- the start ------------------------------------------------------------------------------


def test_bdf_that_failed_stays_where_it_is():
    bdf = Bdf(lambda t, y, yp: [yp[0] + y[0] if t <= 0.7 else math.nan], 0.0, [1.0], t_bound=1.0)
    while bdf.step() == Status.RUNNING:
        pass
    t = bdf.t
    assert bdf.step() == bdf.status == Status.NON_FINITE
    assert bdf.t == t
    assert bdf.y[0] == pytest.approx(math.exp(-t), rel=1e-5)
