"""Trials without a solution are refused; exceptions of the user's pass through."""

import numpy as np
import pytest
from support.fits import decay

from tether import fit

T = np.linspace(0.0, 1.0, 11)


def explodes(t, y, yp, rate):
    """y = 1 / (1 - rate t): there is no solution up to t = 1 for rates of 1 and more."""
    return [yp[0] - rate * y[0] ** 2]


def test_trials_without_a_solution_are_refused():
    found = fit(explodes, (T, 1.0 / (1.0 - 0.98 * T)), {"rate": 0.8}, y0=[1.0], rtol=1e-9,
                atol=1e-12)
    assert len(found.failures) > 0
    assert all(one.p[0] >= 0.99 for one in found.failures)
    assert all(one.message for one in found.failures)
    assert found.success
    assert found.x == pytest.approx([0.98], rel=1e-6)
    assert found.doubts == ()


def edge(t, y, yp, rate):
    """There is no second unknown for rates above 1."""
    return [yp[0] + rate * y[0], y[1] ** 2 - 2.0 * y[1] + rate]


@pytest.mark.parametrize("trace", ["auto", "never"])
def test_an_optimum_beyond_what_can_be_solved_is_doubted(trace):
    found = fit(edge, {"t": T, 0: np.exp(-1.3 * T)}, {"rate": 0.5}, y0=[1.0, 0.3], trace=trace)
    assert len(found.failures) > 0
    assert found.x == pytest.approx([1.0], rel=1e-5)
    assert any("at the edge of the region where there is one" in text for text in found.doubts)


def test_failures_next_to_an_optimum_do_no_harm():
    noise = 0.01 * np.random.default_rng(1).standard_normal(len(T))
    data = {"t": T, 0: np.exp(-0.98 * T) + noise}
    found = fit(edge, data, {"rate": 0.3}, y0=[1.0, 0.3], bounds={"rate": (0.0, 3.0)})
    assert found.x == pytest.approx([0.98], abs=0.03)
    assert found.doubts == ()


def test_no_solution_for_the_starting_values():
    found = fit(explodes, (T, 1.0 / (1.0 - 0.6 * T)), {"rate": 2.0}, y0=[1.0])
    assert not found.success
    assert found.message.startswith("There is no solution for p0: ")
    assert found.p == {"rate": 2.0}
    assert found.solves == 1
    assert np.isnan(found.chi2)
    assert np.all(np.isnan(found.covariance))
    assert found.unidentifiable == ()
    assert found.doubts == ()
    assert "There is no solution for p0" in str(found)
    with pytest.raises(ValueError, match="found no solution"):
        found.profile("rate")


def test_limits_of_a_solve_are_failures_too():
    found = fit(decay, (T, np.exp(-T)), {"rate": 0.5}, y0=[1.0], max_steps=2)
    assert not found.success
    assert "The limit of 2 steps was reached" in found.message


def test_a_run_that_ends_before_the_last_measurement():
    def low(t, y, yp, rate):
        return y[0] - 0.5

    low.terminal = True
    found = fit(decay, (T, np.exp(-T)), {"rate": 2.0}, y0=[1.0], events=low)
    assert not found.success
    assert "before the last measurement at t = 1" in found.message


def test_a_function_that_raises_ends_the_fit_with_its_own_exception():
    class BrokenError(Exception):
        pass

    def fun(t, y, yp, rate):
        if float(rate) > 1.2:
            raise BrokenError("no such rate")
        return [yp[0] + float(rate) * float(y[0])]

    with pytest.raises(BrokenError, match="no such rate"):
        fit(fun, (T, np.exp(-3.0 * T)), {"rate": 1.0}, y0=[1.0], trace="never")


def test_an_observable_that_raises_passes_through():
    calls = 0

    def observe(t, y):
        nonlocal calls
        calls += 1
        if calls > 1:
            raise RuntimeError("the sensor is broken")
        return y

    with pytest.raises(RuntimeError, match="the sensor is broken"):
        fit(decay, (T, np.exp(-T)), {"rate": 0.5}, y0=[1.0], observe=observe)


def test_an_observable_that_is_not_finite_is_a_failure():
    found = fit(decay, (T, np.exp(-T)), {"rate": 0.5}, y0=[1.0],
                observe=lambda t, y: y * np.nan)
    assert not found.success
    assert "not finite" in found.message


def test_a_failure_in_one_of_several_experiments():
    good = {"data": (T, 1.0 / (1.0 - 0.98 * T)), "y0": [1.0]}
    half = {"data": (T, 0.5 / (1.0 - 0.49 * T)), "y0": [0.5]}
    found = fit(explodes, [good, half], {"rate": 0.8}, rtol=1e-9, atol=1e-12)
    assert found.success
    assert len(found.failures) > 0
    assert found.x == pytest.approx([0.98], rel=1e-6)


def test_profiles_go_up_to_where_there_are_solutions():
    values = 1.0 / (1.0 - 0.6 * T)
    found = fit(explodes, (T, values), {"rate": 0.3}, y0=[1.0], sigma=10.0)
    low, high = found.profile("rate").interval
    assert 0.9 < high < 1.001
    assert low == -np.inf
