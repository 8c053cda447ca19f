"""Where a switch opens, the current of an inductor finds its way through an ideal diode."""

import math

import numpy as np
import pytest

from tether import solve_dae

LAWS = {
    "min": lambda i, x: min(i, x),
    "other order": lambda i, x: np.minimum(x, i),
    "if": lambda i, x: i if i < x else x,
    "where": lambda i, x: np.where(x > i, i, x),
}


def current(t, i0=1.0, supply=2.0):
    """i' = x - i with x = supply until 1 and no voltage after that."""
    late = max(t - 1.0, 0.0)
    early = min(t, 1.0)
    return (supply + (i0 - supply) * math.exp(-early)) * math.exp(-late)


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
@pytest.mark.parametrize("breaks", [None, [1.0]])
@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_the_current_goes_on_when_the_switch_opens(law, breaks, unit):
    def coil(t, y, yp):
        i, x = y[0] / unit, y[1]
        return [yp[0] / unit - x + i, x - 2 if t < 1 else law(i, x)]

    sol = solve_dae(coil, (0, 2), [unit, 2.0], t_breaks=breaks, t_eval=[0.5, 1.5, 2.0],
                    atol=[1e-9 * unit, 1e-9])
    assert sol.success, sol.message
    assert not sol.warnings
    expected = [current(t) for t in sol.t]
    np.testing.assert_allclose(sol.y[0] / unit, expected, rtol=1e-4)
    np.testing.assert_allclose(sol.y[1, 1:], 0.0, atol=1e-6)


def test_the_switch_is_turned_by_an_event():
    def coil(t, y, yp):
        i, x, switch = y
        return [yp[0] - x + i, x - 2 if switch > 0.5 else min(i, x), yp[2]]

    def late(t, y, yp):
        return t - 1

    late.apply = lambda t, y, yp: [y[0], y[1], 0.0]
    sol = solve_dae(coil, (0, 2), [1.0, 2.0, 1.0], events=late)
    assert sol.success, sol.message
    np.testing.assert_allclose(sol.y[:, -1], [current(2.0), 0.0, 0.0], rtol=1e-4, atol=1e-9)


def test_two_currents_go_on():
    """Both diodes begin to conduct at once."""
    def coils(t, y, yp):
        i, k, x, z = y
        on = t < 1
        return [yp[0] - x + i, yp[1] - z + k,
                x - 2 if on else min(i, x), z - 3 if on else min(k, z)]

    sol = solve_dae(coils, (0, 2), [1.0, 0.5, 2.0, 3.0])
    assert sol.success, sol.message
    expected = [current(2.0), current(2.0, 0.5, 3.0), 0.0, 0.0]
    np.testing.assert_allclose(sol.y[:, -1], expected, rtol=1e-4, atol=1e-9)


def test_the_current_stops():
    """The coil feeds a battery: the diode conducts until the current is zero, then it blocks."""
    def coil(t, y, yp):
        i, x = y
        return [yp[0] - x + 1, x - 2 if t < 1 else min(i, x)]

    sol = solve_dae(coil, (0, 3), [0.5, 2.0], t_eval=[0.5, 1.5, 2.0, 2.4, 2.6, 3.0])
    assert sol.success, sol.message
    np.testing.assert_allclose(sol.y[0], [1.0, 1.0, 0.5, 0.1, 0.0, 0.0], atol=1e-6)
    np.testing.assert_allclose(sol.y[1], [2.0, 0.0, 0.0, 0.0, 1.0, 1.0], atol=1e-6)


def test_a_mass_that_lands_still_stops():
    """A jump that the surface itself asks for is not avoided, with another contact beside it."""
    def masses(t, y, yp):
        x, v, f, z, w, g = y
        return [yp[0] - v, yp[1] + 9.81 - f, min(x, f), yp[3] - w, yp[4] + 9.81 - g, min(z, g)]

    sol = solve_dae(masses, (0, 1), [1.0, 0.0, 0.0, 0.0, 0.0, 9.81])
    assert sol.success, sol.message
    np.testing.assert_allclose(sol.y[:, -1], [0, 0, 9.81, 0, 0, 9.81], atol=1e-6)


@pytest.mark.parametrize("ulps", [-12, -7, -4, -3, -2, -1, 1, 2, 3, 4, 7, 12])
@pytest.mark.parametrize("end", [2.0, 1.0])
def test_a_break_that_misses_the_switch_by_round_off(ulps, end):
    """Both are one time: nothing fits in between, and what is behind both of them holds."""
    def coil(t, y, yp):
        i, x = y
        return [yp[0] - x + i, x - 2 if t < 1 else min(i, x)]

    eps = np.spacing(1.0 if ulps > 0 else 0.99)
    sol = solve_dae(coil, (0, end), [1.0, 2.0], t_breaks=[0.3, 1 + ulps * eps], t_eval=[0.5, end])
    assert sol.success, sol.message
    assert sol.t[-1] == end
    np.testing.assert_allclose(sol.y[0], [current(t) for t in sol.t], rtol=1e-4)
    if end > 1:
        np.testing.assert_allclose(sol.y[1, -1], 0.0, atol=1e-9)


@pytest.mark.parametrize("trace", ["auto", "never"])
@pytest.mark.parametrize("apart", [1, 3, 5, 9, 20, 100])
def test_breaks_that_are_one_but_for_round_off(apart, trace):
    breaks = [1.0, 1 + apart * np.spacing(1.0)]

    def jump(t, y, yp):
        return [yp[0] - y[1], y[1] - (1.0 if t <= breaks[1] else -1.0)]

    sol = solve_dae(jump, (0, 2), [0.0, 1.0], t_breaks=breaks, trace=trace)
    assert sol.success, sol.message
    np.testing.assert_allclose(sol.y[:, -1], [0.0, -1.0], atol=1e-9)
