"""Sums whose terms cancel: differences of them have the round-off of the terms, not of the sum."""

import numpy as np
import pytest
from support.derivatives import TIGHT, differences, largest_error

from tether import solve_dae
from tether.sensitivity.differences import central

NANO = 1e-9
ARGS = (1e3, NANO, 1.0)
SPAN = (0.0, 3e-5)


def plain(x):
    """Return a number that a trace does not see through."""
    return float(np.float64(str(float(x))))


def junction(t, y, yp, resistance, capacity, height):
    """A source behind a resistor, and a capacitance that depends on its voltage."""
    current = capacity / np.sqrt(1.0 + 2.0 * (y[0] - y[1]) ** 2) * (yp[0] - yp[1])
    source = height * np.sin(6e5 * t)
    return [(source - y[0]) / resistance - current, current - y[1] / (2.0 * resistance)]


def triangle(t, y, yp, resistance, capacity, height):
    """Three such capacitances in a loop."""
    def current(i, j):
        return capacity / np.sqrt(1.0 + 2.0 * (y[i] - y[j]) ** 2) * (yp[i] - yp[j])

    source = height * np.sin(6e5 * t) + 0.3
    return [
        (source - y[0]) / resistance - current(0, 1) - current(0, 2),
        current(0, 1) - current(1, 2) - y[1] / (2.0 * resistance),
        current(0, 2) + current(1, 2) - y[2] / resistance,
    ]


def called_junction(t, y, yp, *args):
    return junction(plain(t), [plain(v) for v in y], [plain(v) for v in yp], *args)


@pytest.mark.parametrize(("fun", "y0"), [
    (junction, [0.2, 0.0]), (triangle, [0.3, 0.1, 0.0]), (called_junction, [0.0, 0.0]),
])
def test_a_capacitance_that_depends_on_the_voltage(fun, y0):
    """F_y' changes along the run, and at a start F_y' times the jump is a sum that is zero."""
    def end(changed):
        run = solve_dae(fun, SPAN, y0, args=tuple(changed * ARGS), start="quiet", **TIGHT)
        assert run.success, run.message
        return run.y[:, -1]

    sol = solve_dae(
        fun, SPAN, y0, args=ARGS, sensitivity="args", start="quiet", rtol=1e-9, atol=1e-12
    )
    found = sol.sens[:, :, -1] * np.array(ARGS)[:, None]
    assert largest_error(found, differences(end, np.ones(3), 1e-3)) < 1e-6


def test_starting_values_along_a_capacitance():
    y0, span = np.array([0.2, 0.05]), (0.0, 3e-6)     # before it has forgotten them

    def end(given):
        return solve_dae(junction, span, given, args=ARGS, start="quiet", **TIGHT).y[:, -1]

    sol = solve_dae(
        junction, span, y0, args=ARGS, sensitivity="y0", start="quiet", rtol=1e-9, atol=1e-12
    )
    assert largest_error(sol.sens[:, :, -1], differences(end, y0, 1e-3)) < 1e-6


def test_round_off_is_that_of_the_terms():
    def balanced(x):
        return np.array([1e9 * (1.0 + x / 3.0) - 1e9 * x / 3.0 - 1e9, 3.0 * x])

    with pytest.raises(ValueError, match="kink or a jump"):
        central(balanced, 1.0)
    found = central(balanced, 1.0, np.array([1e9, 1.0]))
    assert abs(found[0]) < 0.01
    assert abs(found[1] - 3.0) < 1e-9
    with pytest.raises(ValueError, match="kink or a jump"):
        central(lambda x: np.array([x, max(x - 2e-5, 0.0)]), 1.0, np.array([1.0, 1.0]))
    with pytest.raises(ValueError, match="kink or a jump"):
        central(lambda x: float(x > 0.0), 1.0, 1.0)


def test_a_parameter_without_a_say_in_functions_that_are_called():
    """A falling ball in two coordinates that are the same: k weighs their difference."""
    def fun(t, y, yp, k, g):
        _, v, w = (plain(value) for value in y)
        return [plain(yp[0]) - v, plain(yp[1]) + g, k * v - k * w]

    def floor(t, y, yp, k, g):
        return plain(y[0]) + 1e3 * (k * plain(y[1]) - k * plain(y[2]))

    def rebound(t, y, yp, k, g):
        v = -0.8 * plain(y[1]) + 1e3 * (k * plain(y[1]) - k * plain(y[2]))
        return [y[0], v, v]

    floor.apply, floor.direction = rebound, -1
    run = {"events": floor, "args": (1.0 / 3.0, 9.81), "rtol": 1e-9, "atol": 1e-11}
    sol = solve_dae(fun, (0.0, 0.8), [1.0, 0.1, 0.1], sensitivity="args", **run)
    assert len(sol.t_events[0]) == 1
    # by hand, after the impact
    g, v0, t = 9.81, 0.1, sol.t_events[0][0]
    of_t = -0.5 * t**2 / (g * t - v0)
    up, of_up = 0.8 * (g * t - v0), 0.8 * (t + g * of_t)
    late = 0.8 - t
    right = [of_up * late - up * of_t - 0.5 * late**2 + g * late * of_t]
    right += [of_up - late + g * of_t] * 2
    found = sol.sens[:, :, -1]
    assert np.allclose(found[1], right, rtol=1e-6)
    assert np.abs(found[0]).max() < 1e-4
