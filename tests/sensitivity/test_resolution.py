"""Resolution: steps that are long because the solution is at rest, and derivatives that are not."""

import numpy as np
import pytest
from support.derivatives import FINE, decay

from tether import gradient, solve_dae, vjp


def oscillator(t, y, yp, w):
    return [yp[0] - y[1], yp[1] + w * w * y[0]]


def hanging(t, y, yp, g, length):
    x, z, u, v, tension = y
    return [
        yp[0] - u, yp[1] - v, yp[2] + tension * x, yp[3] + tension * z + g,
        x * x + z * z - length**2,
    ]


def test_a_solution_that_is_zero():
    """No error of the solution says how long steps may be: the errors of its derivatives do."""
    times = np.linspace(0, 3, 7)
    sol = solve_dae(
        oscillator, (0, 3), [0.0, 0.0], args=(3.0,), sensitivity=["y0[0]", "y0[1]"], t_eval=times,
        **FINE,
    )
    c, s = np.cos(3 * times), np.sin(3 * times)
    errors = [np.abs(sol.sens[0] - [c, -3 * s]).max(), np.abs(sol.sens[1] - [s / 3, c]).max()]
    assert max(errors) < 1e-7
    assert sol.stats.steps < 2000
    assert not sol.warnings


@pytest.mark.parametrize("rtol", [1e-4, 1e-6, 1e-8])
@pytest.mark.parametrize("test", [False, True])
def test_errors_at_rest_follow_the_tolerance(rtol, test):
    sol = solve_dae(
        lambda t, y, yp, k: [yp[0] + k * (y[0] - 1.0), y[1] - y[0] ** 2], (0, 5), [1.0, 1.0],
        args=(2.0,), sensitivity=["k", "y0[0]"], rtol=rtol, atol=rtol,
        options={"sensitivity_test": test},
    )
    assert np.abs(sol.sens[0]).max() == 0.0
    assert np.abs(sol.sens[1] - np.exp(-2 * sol.t) * [[1], [2]]).max() < 10 * rtol
    assert sol.stats.steps < 2000


def test_a_solution_that_is_constant():
    """y = u / k, from the start on: y = y0 exp(-k t) + u (1 - exp(-k t)) / k."""
    k, t = 0.7, np.array([0.5, 1.0, 2.0])
    sol = solve_dae(
        lambda t, y, yp, k, u: [yp[0] + k * y[0] - u], (0, 2), [1.0], args=(k, k),
        sensitivity="all", t_eval=t, **FINE,
    )
    decayed = np.exp(-k * t)
    assert np.abs(sol.sens[0, 0] + (1 - decayed) / k).max() < 1e-7
    assert np.abs(sol.sens[1, 0] - (1 - decayed) / k).max() < 1e-7
    assert np.abs(sol.sens[2, 0] - decayed).max() < 1e-7


def test_a_pendulum_that_hangs_still():
    times = np.array([0.5, 1.3, 2.0])
    sol = solve_dae(
        hanging, (0, 2), [0.0, -1.0, 0.0, 0.0, 9.81], args=(9.81, 1.0), sensitivity=["y0[2]"],
        t_eval=times, **FINE,
    )
    w = np.sqrt(9.81)
    assert np.abs(sol.sens[0, 0] - np.sin(w * times) / w).max() < 1e-7


def test_legs_at_rest():
    """A pulse that is off leaves the solution, and its derivatives, as they are."""
    def pulses(t, y, yp, k, period):
        on = 1.0 if t % period < 0.4 * period else 0.0
        return [yp[0] + on * (k * y[0] - 1.0)]

    sol = solve_dae(
        pulses, (0, 2), [0.3], args=(0.7, 0.31), sensitivity="all", t_eval=[1.985, 1.99, 2.0],
        **FINE,
    )
    assert np.abs(np.diff(sol.y[0])).max() < 1e-12
    change = np.abs(np.diff(sol.sens[:, 0], axis=1)).max()
    assert change < 1e-9 * np.abs(sol.sens).max()


def test_the_way_back_has_steps_that_are_short_enough_too():
    found = gradient(
        lambda sol: sol.y[0, -1], oscillator, (0, 3), [0.0, 0.0], args=(3.0,), wrt="y0",
        t_eval=[3.0], **FINE,
    )
    right = [np.cos(9.0), np.sin(9.0) / 3]
    assert np.abs(found.grad - right).max() < 1e-7


def test_no_more_steps_where_they_do():
    """An ordinary run is not repeated."""
    plain = solve_dae(decay, (0, 1), [1.0], args=(1.0,), **FINE)
    sol = solve_dae(decay, (0, 1), [1.0], args=(1.0,), sensitivity="all", **FINE)
    assert sol.stats.steps <= plain.stats.steps + 3
    assert not sol.warnings


@pytest.mark.parametrize("n", [20, 101])
def test_a_request_for_errors_within_tolerances_does_no_harm(n):
    """A run that was good stays so, though the tolerances cannot become much smaller."""
    def chain(t, y, yp, k, g):
        inner = [yp[i] - k * (y[i - 1] - 2 * y[i] + y[i + 1]) for i in range(1, n - 1)]
        return [yp[0] + k * y[0] - y[1], *inner, y[n - 1] - g * y[0] ** 2]

    found = [
        solve_dae(
            chain, (0, 1), np.full(n, 0.5), args=(1.5, 2.0), sensitivity="args", t_eval=[1.0],
            options={"sensitivity_test": test}, **FINE,
        )
        for test in (False, True)
    ]
    assert found[1].success
    assert np.allclose(found[0].sens, found[1].sens, atol=1e-5)


def test_vjp_takes_the_request():
    options = {"sensitivity_test": True}
    sol, pullback = vjp(
        oscillator, (0, 3), [1.0, 0.0], args=(3.0,), t_eval=[3.0], rtol=1e-5, atol=1e-7,
        options=options,
    )
    right = -3.0 * np.sin(9.0)                 # d cos(w t) / dw
    assert abs(pullback([[1.0], [0.0]])[0] - right) < 5e-3
    assert sol.success


def kinetics(t, y, yp, slow, fast, back):
    """Robertson's: fast modes die away at first, and what is left goes on for very long."""
    a, b, c = y
    return [
        yp[0] + slow * a - back * b * c, yp[1] - slow * a + back * b * c + fast * b * b,
        a + b + c - 1.0,
    ]


def test_steps_are_shortened_where_derivatives_need_it():
    """That is at the beginning, and takes few steps more."""
    runs = [
        solve_dae(
            kinetics, (0, 1e6), [1.0, 0.0, 0.0], args=(0.04, 3e7, 1e4), sensitivity="args",
            rtol=1e-6, atol=[1e-8, 1e-12, 1e-8], options={"sensitivity_test": test},
        )
        for test in (False, True)
    ]
    plain, tested = runs
    assert plain.stats.steps < tested.stats.steps < 2 * plain.stats.steps
    assert np.array_equal(plain.y[:, 0], tested.y[:, 0])


def test_round_off_ends_the_search_for_shorter_steps():
    """At the limit of what numbers can tell a run is not repeated for ever, and it is said."""
    sol = solve_dae(
        oscillator, (0, 3), [1.0, 0.0], args=(3.0,), sensitivity="args", t_eval=[3.0], rtol=1e-13,
        atol=1e-15, options={"sensitivity_test": True}, max_steps=20000,
    )
    assert sol.success
    assert abs(sol.sens[0, 0, 0] + 3.0 * np.sin(9.0)) < 1e-9
