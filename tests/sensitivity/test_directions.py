"""Derivatives along one direction in the space of the parameters, and Gauss-Newton products."""

import numpy as np
import pytest
from support.derivatives import at_wall, pendulum

from tether import solve_dae, vjp

TIMES = [0.5, 1.0, 2.5]
RUN = {
    "args": (9.81, 1.0, 1.3, 0.8, -0.3), "events": [at_wall()], "start": "quiet", "t_eval": TIMES,
    "rtol": 1e-7, "atol": 1e-9,
}
START = [0.6, -0.8, 0.0, 0.0, 0.0]


@pytest.fixture(scope="module")
def both():
    sol = solve_dae(pendulum, (0, 3), START, sensitivity="args", **RUN)
    return sol.sens, vjp(pendulum, (0, 3), START, wrt="args", **RUN)[1]


def test_pushing_along_a_direction_combines_the_derivatives(both):
    sens, pullback = both
    direction = np.array([1.0, -2.0, 0.3, 0.7, 0.1])
    expected = np.tensordot(direction, sens, 1)
    assert np.allclose(pullback.push(direction), expected, rtol=1e-9, atol=1e-10)


def test_gauss_newton_products(both):
    sens, pullback = both
    flat, weights = sens.reshape(5, -1), np.linspace(1.0, 2.0, sens[0].size)
    matrix = (flat * weights) @ flat.T
    direction = np.array([0.2, 1.0, -0.4, 0.0, 0.5])
    found = pullback.gauss_newton(direction, weights.reshape(sens[0].shape))
    assert np.allclose(found, matrix @ direction, rtol=1e-8)


@pytest.mark.parametrize(("direction", "words"), [
    ([1.0, 2.0], "one number for each of the 5 parameters"),
    ([1.0, np.nan, 0.0, 0.0, 0.0], "must be finite"),
])
def test_bad_directions(both, direction, words):
    with pytest.raises(ValueError, match=words):
        both[1].push(direction)


def test_directions_of_large_systems():
    n = 130

    def chain(t, y, yp, k, g):
        return [yp[0] - g + y[0], *(
            yp[i] - k * (y[i - 1] - 2.0 * y[i] + y[min(i + 1, n - 1)]) for i in range(1, n)
        )]

    run = {"args": (2.0, 0.5), "t_eval": [0.3, 1.0]}
    start = np.sin(np.linspace(0.0, 3.0, n))
    sol = solve_dae(chain, (0, 1), start, sensitivity="args", **run)
    _, pullback = vjp(chain, (0, 1), start, wrt="args", **run)
    expected = np.tensordot([0.3, -1.0], sol.sens, 1)
    assert np.allclose(pullback.push([0.3, -1.0]), expected, rtol=1e-9, atol=1e-12)
