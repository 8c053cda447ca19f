"""What switches with time is not stepped over by a solution that is otherwise at rest."""

import math

import numpy as np
import pytest

from tether import Bdf, Status, solve_dae

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


def test_a_table_of_time_that_jumps():
    """Two points at one time; an algebraic unknown jumps with the table."""
    times, values = [0.0, 1.0, 1.0, 2.5, 2.5, 2.5, 4.0], [0.0, 1.0, -1.0, 2.0, 7.0, -2.0, 0.0]

    def fun(t, y, yp):
        return [yp[0] - np.interp(t, times, values), y[1] - np.interp(t, times, values)]

    sol = solve_dae(fun, (0, 4), [0.0, 0.0])
    assert sol.success, sol.message
    assert sol.y[:, -1] == pytest.approx([0.5 + 0.75 - 1.5, 0.0], abs=1e-9)
    assert sol.stats.error_test_failures < 10
    assert sol.y[1, np.flatnonzero(np.diff(sol.t) < 1e-12)] == pytest.approx([1.0, 2.0])


@pytest.mark.parametrize(("count", "steps_a_knot"), [(100, 30.0), (4000, 4.0)])
def test_a_table_with_many_knots(count, steps_a_knot):
    """The finer it is, the less there is to notice at a knot: the run passes it at its order."""
    times = np.linspace(0, 10, count + 1)
    values = np.sin(3 * times)

    def forced(t, y, yp):
        return [yp[0] + y[0] - np.interp(t, times, values)]

    sol = solve_dae(forced, (0, 10), [0.0])
    exact, width = 0.0, times[1]
    for low, slope in zip(values[:-1], np.diff(values) / width, strict=True):
        at_rest = low - slope                  # of y - slope t
        exact = at_rest + slope * width + (exact - at_rest) * math.exp(-width)
    assert sol.y[0, -1] == pytest.approx(exact, rel=2e-6)
    assert sol.stats.steps < steps_a_knot * count


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


# --- however narrow ---------------------------------------------------------------------------


@pytest.mark.parametrize("width", [1e-1, 1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("span", [(0, 10), (10, 0), (-1e3, 1e3)])
@pytest.mark.parametrize("way", ["if", "square", "table"])
def test_a_pulse_of_any_width(width, span, way):
    ways = {
        "if": lambda t: 1.0 / width if 5.0 < t < 5.0 + width else 0.0,
        "square": lambda t: 1.0 / width if (t - 5.0 - width / 2) ** 2 < width**2 / 4 else 0.0,
        "table": lambda t: np.interp(
            t, [0.0, 5.0, 5.0 + width, 5.0 + 2 * width, 9.0], [0.0, 0.0, 1.0 / width, 0.0, 0.0]
        ),
    }
    sol = solve_dae(lambda t, y, yp: [yp[0] - ways[way](t)], span, [0.0])
    assert sol.success, sol.message
    sign = 1.0 if span[1] > span[0] else -1.0
    assert sol.y[0, -1] == pytest.approx(sign, abs=1e-6 + 1e-14 / width)
    assert sol.stats.steps < 100


def a_pulse(start, width):
    """One of area 1, as far as the times of its edges are numbers; and its area."""
    end = start + width
    return lambda t: 1.0 / width if start < t < end else 0.0, (end - start) / width


@pytest.mark.parametrize("width", [1e-6, 1e-9, 1e-11])
@pytest.mark.parametrize("start", [3.3, 1000.3])
@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("trace", ["always", "never"])
def test_the_area_of_a_pulse_is_exact(width, start, backwards, trace):
    """The round-off of the time that is left out at its edges would be 4 % of the shortest."""
    pulse, area = a_pulse(start, width)
    span = (start + 7.0, start - 3.0) if backwards else (start - 3.0, start + 7.0)
    sol = solve_dae(lambda t, y, yp: [yp[0] - pulse(t)], span, [0.0], trace=trace,
                    t_breaks=[start, start + width])
    assert sol.success, sol.message
    assert abs(sol.y[0, -1]) == pytest.approx(area, rel=1e-9)


@pytest.mark.parametrize("width", [1e-6, 1e-9, 1e-11])
def test_the_area_of_a_pulse_in_an_integral_a_derivative_and_at_index_2(width):
    """The unknowns are the sum of the pulse, a copy of it, and what the copy needs."""
    pulse, area = a_pulse(1000.3, width)
    height = 1.0

    def copied(t, y, yp):
        return [yp[0] - height * pulse(t), yp[1] - y[2], y[1] - y[0]]

    sol = solve_dae(copied, (1000.0, 1001.0), [0.0, 0.0, 0.0], sensitivity=["height"],
                    quadratures=lambda t, y, yp: pulse(t))
    assert sol.success, sol.message
    assert sol.y[:2, -1] == pytest.approx([area, area], rel=1e-9)
    assert sol.sens[0, :2, -1] == pytest.approx([area, area], rel=1e-9)
    assert sol.quadratures[-1, -1] == pytest.approx(area, rel=1e-9)


def test_a_steady_state_is_disturbed():
    def load(t, y, yp):
        return [yp[0] + y[0] - 1.0 - (4.0 if 1.0 < t < 1.1 else 0.0)]

    sol = solve_dae(load, (0, 5), [1.0], rtol=1e-8, atol=1e-8)
    assert sol.y[0, -1] == pytest.approx(1 + 4 * (math.exp(-3.9) - math.exp(-4.0)), abs=1e-7)


@pytest.mark.parametrize("duty", [0.1, 0.5, 0.93])
@pytest.mark.parametrize("wave", ["remainder", "floor", "sine", "where"])
def test_a_square_wave_has_all_of_its_edges(duty, wave):
    """x' + x = 1 while it is on: from period to period an affine map."""
    period, count = 0.05, 100
    waves = {
        "remainder": lambda t: 1.0 if t % period < duty * period else 0.0,
        "floor": lambda t: np.floor(t / period + 1.0) - np.floor(t / period - duty + 1.0),
        "sine": lambda t: (
            1.0 if math.cos(2 * math.pi * (t / period - duty / 2)) > math.cos(math.pi * duty)
            else 0.0
        ),
        "where": lambda t: np.where(t / period - np.floor(t / period) < duty, 1.0, 0.0),
    }
    sol = solve_dae(
        lambda t, y, yp: [yp[0] + y[0] - waves[wave](t)], (0, count * period), [0.0],
        rtol=1e-8, atol=1e-10,
    )
    assert sol.success, sol.message
    on, off = math.exp(-duty * period), math.exp(-(1 - duty) * period)
    x = 0.0
    for _ in range(count):
        x = (1 + (x - 1) * on) * off
    assert sol.y[0, -1] == pytest.approx(x, abs=1e-8)
    assert sol.stats.steps < 40 * 2 * count


@pytest.mark.parametrize("t_bound", [10.0, math.inf])
def test_step_by_step(t_bound):
    def pulse(t, y, yp):
        return [yp[0] - (1e3 if 5.0 < t < 5.001 else 0.0)]

    bdf = Bdf(pulse, 0.0, [0.0], t_bound=t_bound)
    while bdf.t < 9.0 and bdf.status == Status.RUNNING:
        before = bdf.t
        bdf.step()
        assert bdf.t > before
        assert bdf.dense_output()(bdf.t)[0] == pytest.approx(bdf.y, abs=1e-12)
    assert bdf.y[0] == pytest.approx(1.0, abs=1e-10)


@pytest.mark.parametrize("trace", ["auto", "never"])
def test_a_switch_at_the_very_start(trace):
    sol = solve_dae(
        lambda t, y, yp: [yp[0] + y[0] - (1.0 if t > 0 else 0.0)], (0, 1), [0.0], trace=trace
    )
    assert sol.y[0, -1] == pytest.approx(1 - math.exp(-1.0), abs=1e-6)
    assert sol.t[0] == 0.0


def test_kinks_of_time_keep_the_digits():
    """x' + x = |sin 3t|: piece by piece."""
    def fun(t, y, yp):
        return [yp[0] + y[0] - abs(np.sin(3 * t))]

    def piece(x, a, b, sign):
        def forced(t):
            return sign * (math.sin(3 * t) - 3 * math.cos(3 * t)) / 10

        return forced(b) + (x - forced(a)) * math.exp(a - b)

    x, a, sign = 0.0, 0.0, 1.0
    while a < 4.0:
        b = min(a + math.pi / 3, 4.0)
        x, a, sign = piece(x, a, b, sign), b, -sign
    for tol in (1e-4, 1e-6, 1e-8, 1e-10):
        sol = solve_dae(fun, (0, 4), [0.0], rtol=tol, atol=tol)
        assert abs(sol.y[0, -1] - x) < 100 * tol
