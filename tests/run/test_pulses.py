"""What switches with time is not stepped over by a solution that is otherwise at rest."""

import math

import numpy as np
import pytest

from tether import solve_dae

# Written in several ways: 1 from 1 to 1.06, on the interval from 0 to 3.
PULSES = {
    "if": lambda t: 1.0 if 1.0 < t < 1.06 else 0.0,
    "where": lambda t: np.where((t > 1.0) & (t < 1.06), 1.0, 0.0),
    "factor": lambda t: (t > 1.0) * (t < 1.06) * 1.0,
    "sign": lambda t: 0.5 * np.sign(t - 1.0) - 0.5 * np.sign(t - 1.06),
    "abs": lambda t: 1.0 if abs(t - 1.03) < 0.03 else 0.0,
    "floor": lambda t: 1.0 if np.floor((t - 1.0) / 0.06) == 0 else 0.0,
    "remainder": lambda t: 1.0 if (t - 1.0) % 3.0 < 0.06 else 0.0,
}


@pytest.mark.parametrize("pulse", PULSES.values(), ids=PULSES)
@pytest.mark.parametrize("rtol", [1e-3, 1e-9])
def test_a_pulse_of_a_fiftieth(pulse, rtol):
    def slow(t, y, yp):
        return [yp[0] + 0.01 * y[0] - pulse(t)]

    sol = solve_dae(slow, (0, 3), [0.5], rtol=rtol, atol=1e-3 * rtol)
    assert sol.success, sol.message
    added = (math.exp(-0.01 * 1.94) - math.exp(-0.01 * 2.0)) / 0.01
    assert sol.y[0, -1] == pytest.approx(0.5 * math.exp(-0.03) + added, abs=20 * rtol)


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_in_any_unit_of_time_and_either_direction(backwards, unit):
    def slow(t, y, yp):
        t = t / unit
        return [yp[0] * unit - np.maximum(0.0, np.cos(2 * np.pi * t / 3) - 0.9)]

    span = (1.6 * unit, -1.4 * unit) if backwards else (-1.4 * unit, 1.6 * unit)
    sol = solve_dae(slow, span, [0.0], atol=1e-9)
    assert sol.success, sol.message
    half = math.acos(0.9) * 3 / (2 * math.pi)
    area = 3 / math.pi * math.sin(2 * math.pi * half / 3) - 0.9 * 2 * half
    assert sol.y[0, -1] == pytest.approx(-area if backwards else area, rel=1e-3)


def test_a_table_of_time():
    times, values = [0.0, 1.0, 1.03, 1.06, 3.0], [0.0, 0.0, 1.0, 0.0, 0.0]

    def slow(t, y, yp):
        return [yp[0] - np.interp(t, times, values)]

    sol = solve_dae(slow, (0, 3), [0.0])
    assert sol.y[0, -1] == pytest.approx(0.03, rel=1e-4)


@pytest.mark.parametrize("rtol", [1e-3, 1e-6])
def test_a_source_that_meets_a_charge_at_rest(rtol):
    """The diode conducts while the source is above the voltage, which changes slowly."""
    def peak(t, y, yp):
        v, i = y
        return [yp[0] - i + v / 10, min(i, v - math.sin(6 * t))]

    sol = solve_dae(peak, (0, 3), [0.9, 0.0], rtol=rtol, atol=1e-3 * rtol)
    assert sol.success, sol.message
    # the current stops where cos(6 t) * 6 + sin(6 t) / 10 = 0, for the last time before 3
    last = (2 * math.pi * 2 + math.pi - math.atan(60)) / 6
    expected = math.sin(6 * last) * math.exp(-(3 - last) / 10)
    assert sol.y[0, -1] == pytest.approx(expected, abs=20 * rtol)


def test_what_does_not_switch_with_time_is_not_held_back():
    def smooth(t, y, yp):
        return [yp[0] + 0.01 * y[0] - 0.01 * math.sin(t) * max(y[0], 0.0)]

    sol = solve_dae(smooth, (0, 3), [0.5], rtol=1e-3)
    assert sol.stats.steps < 50


def test_a_limit_of_the_user_holds_too():
    def switched(t, y, yp):
        return [yp[0] - (1.0 if t < 1.0 else 0.0)]

    sol = solve_dae(switched, (0, 3), [0.5], max_step=0.01)
    assert np.diff(sol.t).max() <= 0.01 * (1 + 1e-12)
