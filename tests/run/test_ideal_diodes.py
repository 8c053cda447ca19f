"""Ideal diodes written as min(i, v): starts from any values, and converters with many edges."""

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.optimize import brentq

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


# --- switches that are shorts or open, written without a word about the diode -------------------


def converter(kind, load):
    """Buck, boost or inverting converter; current, output, voltage of the node, both currents."""
    def fun(t, y, yp):
        i, v, node, switch, diode = y
        closed = t % PERIOD < 0.5 * PERIOD
        over_inductor, charging, over_switch, over_diode = {
            "buck": (node - v, i, node - SUPPLY, node),
            "boost": (SUPPLY - node, diode, node, v - node),
            "inverting": (node, diode, node - SUPPLY, node + v),
        }[kind]
        return [L * yp[0] - over_inductor, C * yp[1] - (charging - v / load), switch + diode - i,
                over_switch if closed else switch, np.minimum(diode, over_diode)]

    return fun


def exact_converter(kind, load, start, periods):
    """Matrix exponentials from edge to edge; the diode blocks where the current is used up."""
    closed, conducting = np.zeros((3, 3)), np.zeros((3, 3))
    closed[1, 1] = conducting[1, 1] = -1 / (load * C)
    closed[0, 2] = SUPPLY / L
    conducting[0, 1], conducting[1, 0] = -1 / L, 1 / C
    if kind == "buck":
        closed[0, 1], closed[1, 0] = -1 / L, 1 / C
    if kind == "boost":
        conducting[0, 2] = SUPPLY / L
    x = np.array([*start, 1.0])
    for _ in range(periods):
        x = expm(closed * 0.5 * PERIOD) @ x

        def after(time, x=x):
            return expm(conducting * time) @ x

        if after(0.5 * PERIOD)[0] >= 0:
            x = after(0.5 * PERIOD)
        else:
            flows = brentq(lambda time: after(time)[0], 0, 0.5 * PERIOD, xtol=1e-20)
            v = after(flows)[1] * np.exp(-(0.5 * PERIOD - flows) / (load * C))
            x = np.array([0.0, v, 1.0])
    return x[:2]


@pytest.mark.parametrize("order", [(0, 1, 2, 3, 4), (2, 4, 0, 3, 1)])
@pytest.mark.parametrize("load", [10.0, 200.0], ids=["heavy", "light"])
@pytest.mark.parametrize(("kind", "start"), [
    ("buck", [0.5, 5.8, SUPPLY, 0.5, 0.0]), ("buck", [0.0, 0.0, SUPPLY, 0.0, 0.0]),
    ("boost", [3.0, 12.0, 0.0, 3.0, 0.0]), ("boost", [0.0, 12.0, 0.0, 0.0, 0.0]),
    ("inverting", [3.0, 12.0, SUPPLY, 3.0, 0.0]), ("inverting", [0.0, 0.0, SUPPLY, 0.0, 0.0]),
])
def test_switches_change_over_to_diodes_and_back(kind, start, load, order):
    """Neither edge makes the current of the inductor jump, whatever the diode was before.

    Where the switch closes, the side of the diode at hand contradicts it; where it opens, that
    side would cut the current off.
    """
    order, back = list(order), np.argsort(order)
    fun, periods = converter(kind, load), 10

    def equations(t, y, yp):
        return np.array(fun(t, y[back], yp[back]))[order]

    sol = solve_dae(
        equations, (0, periods * PERIOD), np.array(start)[order], rtol=1e-6, atol=1e-9
    )
    assert sol.success, sol.message
    expected = exact_converter(kind, load, start[:2], periods)
    np.testing.assert_allclose(sol.y[back][:2, -1], expected, rtol=2e-5, atol=1e-6)
    assert not any(order.index(0) in jump.changes for jump in sol.jumps)
