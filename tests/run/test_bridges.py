"""Several bridges of ideal diodes in one model, each of which may float by itself."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from support.rectifiers import LOAD, OMEGA, PEAK, TIMES, C, bridge_between, phase, source, voltage

from tether import solve_dae

pytestmark = pytest.mark.filterwarnings("ignore::tether.ConsistencyWarning")

SHIFT = 1.0                                # between the phases of two sources
RUN = {"rtol": 1e-8, "atol": 1e-9}


def apart(t, y, yp):
    """Two sources with another phase, each with a load of its own."""
    left = []
    for k in range(2):
        v, bridge = y[8 * k], y[8 * k + 1 : 8 * k + 8]
        left += [C * yp[8 * k] - (bridge[2] + bridge[3] - v / LOAD),
                 *bridge_between(v, 0.0, source(t, SHIFT * k), bridge)]
    return left


def side_by_side(t, y, yp):
    v, one, other = y[0], y[1:8], y[8:15]
    return [C * yp[0] - (one[2] + one[3] + other[2] + other[3] - v / LOAD),
            *bridge_between(v, 0.0, source(t), one),
            *bridge_between(v, 0.0, source(t, SHIFT), other)]


def in_series(t, y, yp):
    v, middle, one, other = y[0], y[1], y[2:9], y[9:16]
    return [C * yp[0] - (other[2] + other[3] - v / LOAD), one[2] + one[3] - other[4] - other[5],
            *bridge_between(middle, 0.0, source(t), one),
            *bridge_between(v, middle, source(t, SHIFT), other)]


def of_six(t, y, yp):
    """Two bridges of six diodes, from three phases each."""
    left = []
    for k in range(2):
        x = y[14 * k : 14 * k + 14]
        v, star, nodes, up, down, i = x[0], x[1], x[2:5], x[5:8], x[8:11], x[11:14]
        left += [C * yp[14 * k] - (sum(up) - v / LOAD), sum(i),
                 *(nodes[j] - star - phase(t, j, 0.5 * k) for j in range(3)),
                 *(i[j] + down[j] - up[j] for j in range(3)),
                 *(min(up[j], v - nodes[j]) for j in range(3)),
                 *(min(down[j], nodes[j]) for j in range(3))]
    return left


def first(t):
    return abs(source(t))


def second(t):
    return abs(source(t, SHIFT))


def six(shift):
    def between(t):
        phases = [phase(t, k, shift) for k in range(3)]
        return max(phases) - min(phases)

    return between


# equations, their number, and for the unknowns that are voltages of loads what the diodes can give
CASES = {
    "apart": (apart, 16, {0: first, 8: second}),
    "side by side": (side_by_side, 15, {0: lambda t: max(first(t), second(t))}),
    "in series": (in_series, 16, {0: lambda t: first(t) + second(t)}),
    "of six": (of_six, 28, {0: six(0.0), 14: six(0.5)}),
}


def solve_in_any_order(fun, start, seed, times):
    n, rng = len(start), np.random.default_rng([seed, 1])
    order, rows = rng.permutation(n), rng.permutation(n)
    back = np.argsort(order)

    def equations(t, y, yp):
        left = fun(t, [y[k] for k in back], [yp[k] for k in back])
        return [left[k] for k in rows]

    sol = solve_dae(equations, (0, times[-1]), start[order], t_eval=times, **RUN)
    assert sol.success, sol.message
    assert any("has a leak" in text for text in sol.warnings)
    return sol.y[back]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("case", CASES)
def test_two_bridges_from_any_start_in_any_order(case, seed):
    fun, n, loads = CASES[case]
    start = 3.0 * np.random.default_rng(seed).standard_normal(n) * (seed > 0)
    for k in loads:
        start[k] = abs(start[k])
    y = solve_in_any_order(fun, start, seed, TIMES)
    for k, open_circuit in loads.items():
        np.testing.assert_allclose(y[k], voltage(open_circuit, start[k]), atol=1e-6)


def with_a_capacitor_each(t, y, yp):
    """Two bridges in series: the lower one has to carry the current of the load on its own."""
    one, other, lower, upper = y[0], y[1], y[2:9], y[9:16]
    load = (one + other) / LOAD
    return [C * yp[0] - (lower[2] + lower[3] - load), C * yp[1] - (upper[2] + upper[3] - load),
            *bridge_between(one, 0.0, source(t), lower),
            *bridge_between(one + other, one, source(t, SHIFT), upper)]


@pytest.mark.parametrize("seed", range(6))
def test_no_capacitor_is_discharged_through_a_bridge(seed):
    """One bridge charges its capacitor at the start; the other capacitor keeps its voltage."""
    start = 3.0 * np.random.default_rng(seed).standard_normal(16)
    start[:2] = np.abs(start[:2])
    count = 450
    y = solve_in_any_order(with_a_capacitor_each, start, seed, np.append(0.0, TIMES))[:2]
    v = np.maximum(start[:2], [first(0.0), second(0.0)])
    np.testing.assert_allclose(y[:, 0], v, atol=1e-7)
    for k in range(1, len(TIMES) + 1):         # Euler's method of first order
        for t in TIMES[k - 1] + (np.arange(1, count + 1) / count - 1.0) * TIMES[0]:
            fallen = v - TIMES[0] / count * sum(v) / (LOAD * C)
            v = np.maximum(fallen, [first(t), second(t)])
        np.testing.assert_allclose(y[:, k], v, atol=2e-4)


PERIOD, DUTY, L, BEHIND, RESISTANCE = 1e-3, 0.4, 20e-3, 2e-5, 30.0


def with_converter(t, y, yp):
    """A bridge, and behind its capacitor a converter that halves the voltage."""
    v, il, out, bridge, (node, switch, diode) = y[0], y[1], y[2], y[3:10], y[10:13]
    return [C * yp[0] - (bridge[2] + bridge[3] - switch),
            *bridge_between(v, 0.0, source(t), bridge), L * yp[1] - (node - out),
            BEHIND * yp[2] - (il - out / RESISTANCE),
            (node - v) if t % PERIOD < DUTY * PERIOD else switch, min(diode, node),
            switch + diode - il]


def voltages_of_converter(times):
    """The same with one system of equations between any two commutations, which are events."""
    def rise(t):                           # of what the bridge can give
        return np.sign(source(t)) * PEAK * OMEGA * np.cos(OMEGA * t)

    t, y, charges, values = 0.0, np.zeros(3), True, []
    while t < times[-1] - 1e-12:
        period = np.floor(t / PERIOD + 1e-9)
        on = bool(t - period * PERIOD < DUTY * PERIOD - 1e-10)
        flows = on or y[1] > 0.0
        end = min(times[-1], (period + (DUTY if on else 1.0)) * PERIOD)

        def current(t, y, on=on):          # of the bridge while it charges
            return C * rise(t) + on * y[1]

        charges = charges and current(t + 1e-9, y) > 0.0

        def slope(t, y, on=on, flows=flows, charges=charges):
            node = y[0] * on
            return [rise(t) if charges else -on * y[1] / C, flows * (node - y[2]) / L,
                    (y[1] - y[2] / RESISTANCE) / BEHIND]

        def commutates(t, y, charges=charges, current=current):
            return current(t, y) if charges else y[0] - first(t)

        def ends(t, y, on=on, flows=flows):
            return 1.0 if on or not flows else y[1]

        for event in (commutates, ends):
            event.terminal, event.direction = True, -1
        found = solve_ivp(slope, (t, end), y, "DOP853", rtol=1e-12, atol=1e-13,
                          events=(commutates, ends), dense_output=True, max_step=1e-4)
        inside = (times > t + 1e-14) & (times <= found.t[-1] + 1e-14)
        values.append(found.sol(times[inside]) if inside.any() else np.zeros((3, 0)))
        t, y = found.t[-1], found.y[:, -1].copy()
        if len(found.t_events[0]):
            charges = not charges
        if len(found.t_events[1]):
            y[1] = 0.0
    return np.concatenate(values, axis=1)


def test_a_converter_behind_a_bridge():
    times = np.linspace(0.0, 0.012, 25)[1:]
    y = solve_in_any_order(with_converter, np.zeros(13), 1, times)
    np.testing.assert_allclose(y[:3], voltages_of_converter(times), atol=1e-6)
