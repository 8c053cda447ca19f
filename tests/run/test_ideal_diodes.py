"""Ideal diodes written as min(i, v): starts from any values, and converters with many edges."""

import numpy as np
import pytest
from scipy.linalg import expm

from tether import solve_dae

pytestmark = pytest.mark.filterwarnings("ignore::tether.ConsistencyWarning")

L, C, R, SUPPLY, PERIOD = 1e-4, 1e-5, 10.0, 12.0, 1e-5
ON = 100.0                                     # conductance of the closed switch
OFF = 1e-6
START = (0.5, 5.8)                             # near the steady state: the current stays positive


def with_a_switch_that_leaks(t, y, yp):
    i, v, x, diode = y
    g = ON if t % PERIOD < 0.5 * PERIOD else OFF
    return [L * yp[0] - (x - v), C * yp[1] - (i - v / R), i - diode - g * (SUPPLY - x),
            np.minimum(diode, x)]


def with_an_ideal_switch(t, y, yp):
    i, v, x, diode = y
    closed = t % PERIOD < 0.5 * PERIOD
    return [L * yp[0] - (x - v), C * yp[1] - (i - v / R), x - SUPPLY if closed else i - diode,
            diode if closed else np.minimum(diode, x)]


def exact_buck(periods, resistance):
    """Current and voltage after so many periods."""
    def half(x, supply, r):
        matrix = np.array([[-r / L, -1 / L, supply / L], [1 / C, -1 / (R * C), 0], [0, 0, 0]])
        return (expm(matrix * 0.5 * PERIOD) @ np.append(x, 1.0))[:2]

    x = np.array(START)
    for _ in range(periods):
        x = half(half(x, SUPPLY, resistance), 0.0, 0.0)
    return x


@pytest.mark.parametrize(("fun", "resistance"), [
    (with_a_switch_that_leaks, 1 / ON), (with_an_ideal_switch, 0.0),
])
def test_a_buck_converter(fun, resistance):
    periods = 60
    sol = solve_dae(fun, (0, periods * PERIOD), [*START, SUPPLY, 0.0], atol=1e-9)
    assert sol.success, sol.message
    np.testing.assert_allclose(sol.y[:2, -1], exact_buck(periods, resistance), rtol=1e-4)
    assert sol.stats.steps < 30 * 2 * periods


@pytest.mark.slow
def test_a_buck_converter_with_very_many_edges():
    """The mean settles; what every edge adds to the error does not pile up."""
    periods = 50_000
    sol = solve_dae(
        with_an_ideal_switch, (0, periods * PERIOD), [*START, SUPPLY, 0.0], atol=1e-9,
        t_eval=[0.0, periods * PERIOD],
    )
    assert sol.success, sol.message
    np.testing.assert_allclose(sol.y[:2, -1], exact_buck(3_000, 0.0), rtol=1e-4)


def by_pivoting(matrix, q):
    """Solve v >= 0, matrix v + q >= 0, one of each pair zero: Murty's rule of the least index."""
    inside = np.zeros(len(q), bool)
    while True:
        v = np.zeros(len(q))
        if inside.any():
            v[inside] = np.linalg.solve(matrix[np.ix_(inside, inside)], -q[inside])
        w = matrix @ v + q
        wrong = np.flatnonzero((inside & (v < -1e-13)) | (~inside & (w < -1e-13)))
        if len(wrong) == 0:
            return v
        inside[wrong[0]] ^= True


@pytest.mark.parametrize("seed", range(12))
def test_networks_of_ideal_diodes_from_any_guess(seed):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(1, 12))
    half = rng.standard_normal((m, m))
    matrix = half @ half.T / m + 0.05 * np.eye(m) + 0.3 * (half - half.T)
    q = rng.standard_normal((2, m))

    def network(t, y, yp):
        x, v = y[0], y[1:]
        return np.concatenate(
            [[yp[0] + x - np.sin(3 * t)], np.minimum(matrix @ v + q[0] + q[1] * x, v)]
        )

    guess = np.append(0.5, 3.0 * rng.standard_normal(m))
    sol = solve_dae(network, (0, 3), guess, rtol=1e-8, atol=1e-10)
    assert sol.success, sol.message
    for x, *v in (sol.y[:, 0], sol.y[:, -1]):
        np.testing.assert_allclose(v, by_pivoting(matrix, q[0] + q[1] * x), atol=1e-6)
