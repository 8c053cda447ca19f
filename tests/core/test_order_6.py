"""Order 6 is stable for few systems, and the choice of the order has to tell which these are."""

import math

import numpy as np
import pytest

from tether import Bdf, Options, Status, gallery, solve_dae


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("seed", [0, 1])
def test_polynomials_of_degree_k_are_exact_with_any_steps(k, seed):
    """... which a fixed leading coefficient is for equal steps alone."""
    rng = np.random.default_rng(seed)
    coefficients = rng.uniform(-1.0, 1.0, k + 1)

    def exact(t):
        return np.array([np.polyval(coefficients, t), np.polyval(np.polyder(coefficients), t)])

    def fun(t, y, yp):
        return [yp[0] - float(exact(t)[1]), y[1] - y[0] * y[0]]

    def values(t):
        return np.array([exact(t)[0], exact(t)[0] ** 2])

    before = np.sort(rng.uniform(-1.0, -0.05, k))
    bdf = Bdf(
        fun, 0.0, values(0.0), None,
        Options(rtol=1e-3, atol=10.0, first_step=0.05, max_order=k, newton_tolerance=1e-14,
                trace="never"),
        t_bound=2.0, history=(before, values(before)),
    )
    while bdf.status == Status.RUNNING:
        bdf._integration.state.h = 0.05 * rng.uniform(0.3, 2.0)
        bdf.step()
        if bdf.order < k:                      # only round-off is left of differences of order k
            break
        np.testing.assert_allclose(bdf.y, values(bdf.t), atol=1e-10)
    assert bdf.stats.steps > 5


def stiff_modes(rates, angle):
    """Smooth solutions, and modes next to them at an angle to the negative real axis."""
    a, b = -math.cos(math.radians(angle)), math.sin(math.radians(angle))

    def fun(t, y, yp):
        residual = []
        for i, rate in enumerate(rates):
            w = 1.0 + 0.3 * i
            u, v = y[2 * i] - math.sin(w * t), y[2 * i + 1] - math.cos(t)
            residual.append(yp[2 * i] - w * math.cos(w * t) - rate * (a * u - b * v))
            residual.append(yp[2 * i + 1] + math.sin(t) - rate * (b * u + a * v))
        return residual

    def exact(t):
        return np.array([
            f for i in range(len(rates)) for f in (np.sin((1.0 + 0.3 * i) * t), np.cos(t))
        ])

    return fun, exact


@pytest.mark.parametrize("angle", [88, 80, 70, 60, 45, 30, 20])
@pytest.mark.parametrize("rates", [(10,), (100,), (3, 30, 300)], ids=str)
@pytest.mark.parametrize("rtol", [1e-4, 1e-6])
def test_modes_for_which_it_is_not_stable_do_no_harm(angle, rates, rtol):
    """Errors as with order 5, and about as many steps: 1.1 times as many in the mean at most."""
    fun, exact = stiff_modes(rates, angle)
    steps = {}
    for order in (5, 6):
        sol = solve_dae(fun, (0, 10), exact(0.0), rtol=rtol, atol=rtol, max_order=order)
        assert sol.success
        assert np.abs(sol.y - exact(sol.t)).max() < 40 * rtol
        steps[order] = sol.stats.steps
    assert steps[6] < 1.4 * steps[5] + 20


@pytest.mark.parametrize("rtol", [1e-4, 1e-5, 1e-6])
def test_it_is_given_up_where_it_gains_nothing(rtol):
    """Errors of the iteration are a good part of differences of order 7; without (9b) 480 steps."""
    problem = gallery.get("neutralisation")
    steps = {order: problem.solve(rtol=rtol, max_order=order).stats.steps for order in (5, 6)}
    assert steps[6] < 1.6 * steps[5]


@pytest.mark.parametrize("name", ["pend-i1", "caraxis-i1", "sallen-key", "brusselator"])
def test_it_saves_steps_where_solutions_are_smooth(name):
    problem = gallery.get(name)
    for rtol in (1e-6, 1e-7):
        five, six = (problem.solve(rtol=rtol, max_order=order) for order in (5, 6))
        assert six.stats.steps < 0.95 * five.stats.steps
