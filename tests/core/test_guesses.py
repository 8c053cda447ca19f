"""How often functions that are called are called, and that fewer calls cost no care.

Newton's iteration begins at the solution of a linear model of the equations. In linear systems
one residual in a step is enough; where a function ends or switches nothing may go unnoticed.
"""

import math

import numpy as np
import pytest

from tether import Bdf, gallery, solve_dae


def harmonic(t, y, yp):
    return [yp[0] - y[1], yp[1] + y[0]]


def stiff(t, y, yp):
    return [yp[0] + 1e4 * (y[0] - math.cos(t)) + y[1], y[0] + y[1] - math.cos(t) - math.sin(t)]


def driven(t, y, yp):
    return [yp[0] - math.cos(t), y[1] - y[0]]


def varying(t, y, yp):
    return [(1.0 + 0.5 * math.sin(t)) * yp[0] + y[0] - math.exp(-t)]


LINEAR = [(harmonic, [1.0, 0.0]), (stiff, [1.0, 0.0]), (driven, [0.0, 0.0])]


@pytest.mark.parametrize(("fun", "y0"), LINEAR)
@pytest.mark.parametrize("rtol", [1e-5, 1e-7])
def test_a_linear_system_takes_one_call_a_step(fun, y0, rtol):
    sol = solve_dae(fun, (0, 30), y0, rtol=rtol, atol=1e-3 * rtol, trace="never")
    traced = solve_dae(fun, (0, 30), y0, rtol=rtol, atol=1e-3 * rtol)
    assert sol.success
    # a second one where the step changes, as factors are a little off, and some for the Jacobians
    assert sol.nfev <= 1.3 * sol.stats.steps + 40
    assert sol.stats.steps <= 1.15 * traced.stats.steps
    np.testing.assert_allclose(sol.y[:, -1], traced.y[:, -1], atol=100 * rtol)


def test_where_the_model_is_of_no_use_it_does_little_harm():
    """The coefficient of y' changes all the time; from the prediction it takes 695 calls."""
    sol = solve_dae(varying, (0, 20), [1.0], rtol=1e-7, atol=1e-10, trace="never")
    fine = solve_dae(varying, (0, 20), [1.0], rtol=1e-10, atol=1e-13)
    assert sol.nfev <= 1.1 * 695
    assert sol.y[0, -1] == pytest.approx(fine.y[0, -1], abs=1e-6)


def front(t, y, yp):
    """A flame that runs along a line: at every point the equations are linear before and after."""
    u = np.concatenate([[1.0], y, y[-1:]])
    return yp - 1e-3 * len(y) ** 2 * (u[2:] - 2 * u[1:-1] + u[:-2]) - 1e3 * y * y * (1 - y)


def swing(t, y, yp):
    return yp + np.linspace(1, 2, len(y)) * np.sinh(y - math.sin(20 * t))


@pytest.mark.parametrize(("fun", "end", "y0", "calls"), [
    (front, 0.3, np.exp(-np.arange(150) / 4), 4344), (swing, 3.0, np.zeros(150), 832),
])
def test_guesses_that_save_nothing_among_many_unknowns_are_left_off(fun, end, y0, calls):
    """`calls` is what it takes with a guess in every step."""
    run = Bdf(fun, 0.0, y0, t_bound=end,
              options={"rtol": 1e-4, "atol": 1e-4, "trace": "never"})
    while run.t < end:
        run.step()
    state = run._integration.state
    assert state.guesses
    assert state.pauses > 0 or state.guess_from > 0
    assert run.stats.nfev < 0.85 * calls
    fine = solve_dae(fun, (0, end), y0, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(run.y, fine.y[:, -1], atol=1e-2)


def test_guesses_that_save_calls_among_many_unknowns_go_on():
    n = 200
    modes = np.sin(np.pi * np.arange(1, n + 1) / (n + 1))

    def heat(t, y, yp):
        u = np.concatenate([[0.0], y, [0.0]])
        return yp - (n + 1) ** 2 * (u[2:] - 2 * u[1:-1] + u[:-2])

    run = Bdf(heat, 0.0, modes, t_bound=0.1,
              options={"rtol": 1e-6, "atol": 1e-9, "trace": "never"})
    while run.t < 0.1:
        run.step()
    state = run._integration.state
    assert state.pauses == state.guess_from == 0
    assert state.saving > 0.2


@pytest.mark.parametrize("name", ["caraxis-i1", "robertson", "vdpol", "implicit-oscillator"])
def test_nonlinear_systems_take_fewer_than_two_calls_a_step(name):
    problem = gallery.get(name)
    runs = [
        solve_dae(problem.fun, problem.t_span, problem.y0, problem.yp0, rtol=1e-7,
                  atol=problem.atol(1e-7), t_eval=[problem.t_span[1]], trace=trace)
        for trace in ("never", "auto")
    ]
    called, traced = runs
    assert called.success
    assert called.nfev < 2.0 * called.stats.steps
    assert called.stats.steps <= 1.25 * traced.stats.steps     # fewer or more, as factors differ
    digits = [problem.digits(run.y[:, -1]) for run in runs]
    assert digits[0] >= digits[1] - 1.0


@pytest.mark.parametrize("name", ["harmonic", "pend-i1", "robertson", "akzo"])
def test_every_point_is_close_to_one_that_was_evaluated(name):
    """... within a quarter of the tolerance, and with the same signs."""
    problem = gallery.get(name)
    visits = {}

    def fun(t, y, yp):
        visits.setdefault(t, []).append(y.copy())
        return problem.fun(t, y, yp)

    rtol, atol = 1e-5, np.asarray(problem.atol(1e-5))
    end = min(problem.t_span[1], 100.0)
    sol = solve_dae(fun, (0, end), problem.y0, problem.yp0, rtol=rtol, atol=atol, trace="never")
    assert sol.success
    before = size = np.abs(sol.y[:, 0])
    for t, y in zip(sol.t[1:], sol.y.T[1:], strict=True):
        scale = rtol * size + atol
        seen = [v for v in visits[t] if np.all(v * y >= 0.0)]
        assert min(np.max(np.abs(v - y) / scale) for v in seen) < 0.25
        before, size = np.abs(y), np.maximum(np.abs(y), before)


# --- edges and switches of functions that were linear so far --------------------------------


def decay(t, y, yp):
    if y[0] < 0:
        raise ValueError("negative")
    return [yp[0] + y[0]]


def decay_by_logarithm(t, y, yp):
    return [yp[0] + y[0] + 0.0 * math.log(y[0])]


def two_rates(t, y, yp):
    if min(y) < 0:
        return [math.nan, math.nan]
    return [yp[0] + 100.0 * y[0] - y[1], yp[1] + y[1] - 0.5 * y[0]]


def chain(t, y, yp):
    if y.min() < 0:
        raise ValueError("negative")
    inflow = np.append(0.0, np.arange(1, 5) * y[:-1])
    return yp + np.arange(1, 6) * y - inflow


@pytest.mark.parametrize(("fun", "n"), [(decay, 1), (decay_by_logarithm, 1), (two_rates, 2),
                                        (chain, 5)])
@pytest.mark.parametrize("rtol", [1e-3, 1e-4, 1e-6, 1e-8])
@pytest.mark.parametrize("atol", [1e-3, 1e-6, 1e-9])
def test_a_decay_stays_where_its_function_has_values(fun, n, rtol, atol):
    """A point at which the function has no value would be the last: no step leads back."""
    sol = solve_dae(fun, (0, 40), np.ones(n), rtol=rtol, atol=atol, trace="never")
    assert sol.success
    assert np.all(sol.y >= 0.0)
    assert sol.y[0, -1] == pytest.approx(0.0, abs=100 * atol)


@pytest.mark.parametrize("jump", [5.0, 0.2, -0.2, 100.0])
@pytest.mark.parametrize("rtol", [1e-3, 1e-4, 1e-6])
def test_a_jump_in_a_linear_function_is_noticed(jump, rtol):
    """y' = -y, and y' = -y - jump as soon as y < 1/2."""
    sol = solve_dae(lambda t, y, yp: [yp[0] + y[0] + jump * (y[0] < 0.5)], (0, 0.75), [1.0],
                    rtol=rtol, atol=rtol, trace="never")
    late = np.maximum(sol.t - math.log(2.0), 0.0)
    exact = np.where(late > 0.0, (0.5 + jump) * np.exp(-late) - jump, np.exp(-sol.t))
    assert sol.success
    assert np.max(np.abs(sol.y[0] - exact)) < 30 * rtol * max(1.0, jump)


@pytest.mark.parametrize("stiffness", [10.0, 1e3, 1e6])
def test_a_kink_in_a_linear_function_is_noticed(stiffness):
    """y' = -1 down to a spring that holds it at y = 1/2 - 1/stiffness."""
    sol = solve_dae(
        lambda t, y, yp: [yp[0] + 1.0 - stiffness * max(0.0, 0.5 - y[0])], (0, 2), [1.0],
        rtol=1e-6, atol=1e-9, trace="never",
    )
    late = np.maximum(sol.t - 0.5, 0.0)
    exact = np.where(late > 0.0, 0.5 - (1.0 - np.exp(-stiffness * late)) / stiffness, 1.0 - sol.t)
    assert sol.success
    np.testing.assert_allclose(sol.y[0], exact, atol=3e-5)


@pytest.mark.parametrize("edge", [0.5, 0.1])
def test_the_end_of_a_linear_function_is_not_passed(edge):
    def fun(t, y, yp):
        if y[0] < edge:
            raise ValueError("too small")
        return [yp[0] + y[0]]

    sol = solve_dae(fun, (0, 3), [1.0], rtol=1e-6, atol=1e-9, trace="never")
    assert not sol.success
    assert sol.t[-1] == pytest.approx(-math.log(edge), abs=1e-5)
    np.testing.assert_allclose(sol.y[0], np.exp(-sol.t), atol=1e-5)


def test_what_was_linear_and_is_no_longer_is_iterated_again():
    """y' = -y up to t = 1, then y' = -y^3: y = 1/sqrt(2 (t - 1) + e^2)."""
    sol = solve_dae(lambda t, y, yp: [yp[0] + (y[0] if t <= 1.0 else y[0] ** 3)], (0, 20), [1.0],
                    rtol=1e-7, atol=1e-10, t_breaks=[1.0], trace="never")
    assert sol.success
    late = sol.t > 1.0
    exact = np.exp(-sol.t)
    exact[late] = 1.0 / np.sqrt(2.0 * (sol.t[late] - 1.0) + math.e**2)
    np.testing.assert_allclose(sol.y[0], exact, rtol=1e-5)
