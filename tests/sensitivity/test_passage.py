"""Passages: derivatives through events, breaks, kinks, switches and surfaces."""

import numpy as np
import pytest
from support.derivatives import (
    FINE,
    TIGHT,
    adjoint_error,
    bouncing,
    differences,
    falling,
    largest_error,
)

from tether import solve_dae


def compare(fun, t_span, y0, args, t_eval, step=1e-5, by_y0=True, **options):
    """Largest error against differences of tight runs, of values and of times of events."""
    n, known = len(y0), {"start": "quiet", **options}
    names = ["args", "y0"] if by_y0 else ["args"]
    x = [*args, *y0] if by_y0 else [*args]

    def run(x, **more):
        start = x[len(args) :] if by_y0 else y0
        return solve_dae(
            fun, t_span, start, args=tuple(x[: len(args)]), t_eval=t_eval, **known, **more
        )

    sol = run(np.array(x), sensitivity=names, **FINE)
    assert sol.success
    right = differences(lambda x: run(x, **TIGHT).y, x, step)
    error = largest_error(sol.sens, right)
    for k in range(len(sol.t_events or ())):
        times = differences(lambda x, k=k: run(x, **TIGHT).t_events[k], x, step)
        found = sol.sensitivities.t_events[k].T
        if times.size:
            error = max(error, largest_error(found[:, None], times[:, None]))
    assert adjoint_error(
        fun, t_span, y0, names, args=tuple(args), t_eval=t_eval, **known, **FINE
    ) < 1e-10
    assert n == len(sol.y)
    return error


# --- events -------------------------------------------------------------------------------------


def test_bouncing_ball_exactly():
    """Dropped from h: it hits the floor at sqrt(2 h / g) (1 + 2 e) for the second time."""
    g, e, h, t = 9.81, 0.8, 1.0, 1.6
    sol = solve_dae(
        falling, (0, t), [h, 0.0], args=(g, e), events=[bouncing()], t_eval=[t],
        sensitivity=["g", "e", "y0[0]"], **FINE,
    )
    first = np.sqrt(2 * h / g)
    times = np.array([first, first * (1 + 2 * e)])
    assert np.allclose(sol.t_events[0], times, rtol=1e-8)
    right = np.array([-times / (2 * g), [0.0, 2 * first], times / (2 * h)]).T
    assert np.allclose(sol.sensitivities.t_events[0], right, rtol=1e-6, atol=1e-9)
    # y = v (t - b) - g (t - b)^2 / 2 behind the second hit at b, with v = e^2 g first
    b, v = times[1], e * e * g * first
    by_b, by_v, by_g = -v + g * (t - b), t - b, -((t - b) ** 2) / 2
    exact = [
        by_g + by_v * e * e * first / 2 - by_b * b / (2 * g),
        by_v * 2 * e * g * first + by_b * 2 * first,
        by_v * v / (2 * h) + by_b * b / (2 * h),
    ]
    assert np.allclose(sol.sens[:, 0, 0], exact, rtol=1e-6)


def swinging(t, y, yp, w, e):
    return [yp[0] - y[1], yp[1] + w * w * np.sin(y[0])]


def test_events_and_changes_that_depend_on_slopes():
    def event(t, y, yp, w, e):
        return yp[1] + 0.5 * e

    event.apply = lambda t, y, yp, w, e: [y[0] - 0.2, y[1] * e + 0.1 * yp[1]]
    event.direction, event.terminal = 1, 2
    error = compare(
        swinging, (0, 4), [1.0, 0.0], (1.3, 0.8), [0.0, 0.5, 0.9], events=[event]
    )
    assert error < 3e-5


def test_events_without_a_change():
    def crossing(t, y, yp, w, e):
        return y[0] * yp[1] - 0.2 * e

    def counted(t, y, yp, w, e):
        return y[0] - e * 0.5

    counted.terminal = 4
    error = compare(
        swinging, (0, 20), [1.0, 0.0], (1.3, 0.8), [0.0, 3.0, 8.0], events=[counted, crossing]
    )
    assert error < 1e-5


def drifting(t, y, yp, k, e):
    return [yp[0] - k, yp[1] - 1.0, yp[2] + 0.3 * y[2]]


def test_events_that_set_each_other_off():
    def first(t, y, yp, k, e):
        return y[0] - 1.0

    def second(t, y, yp, k, e):
        return y[1] - 1.2

    first.apply = lambda t, y, yp, k, e: [0.0 * y[0], y[1] + 0.8 * e, y[2] * 1.1]
    second.apply = lambda t, y, yp, k, e: [y[0] + 0.1 * k, y[1] - 1.0, y[2] + 0.2 * e * k]
    first.direction = second.direction = 1
    error = compare(
        drifting, (0, 3), [0.0, 0.0, 1.0], (1.7, 1.0), np.linspace(0, 2.913, 8),
        events=[first, second], step=1e-6,
    )
    assert error < 1e-5


class Level:
    """An event that cannot be hashed."""

    __hash__ = None

    def __init__(self, change):
        self.apply = change

    def __eq__(self, other):
        return True

    def __call__(self, t, y, yp, k, e):
        return y[0] - e


def test_several_events_at_the_same_time():
    events = [
        Level(lambda t, y, yp, k, e: [y[0], y[1] * e, y[2]]),
        Level(lambda t, y, yp, k, e: [y[0] - 0.9, y[1] + k, y[2] * y[1]]),
    ]
    error = compare(
        drifting, (0, 1.5), [0.0, 0.5, 1.0], (1.7, 1.2), [0.0, 0.5, 1.0, 1.5], events=events,
        step=1e-6,
    )
    assert error < 1e-5


def test_times_as_events():
    def event(t, y, yp, k, e):
        return t - e

    event.apply = lambda t, y, yp, k, e: [y[0] * e * t, y[1], y[2] + k]
    assert compare(
        drifting, (0, 3), [0.1, 0.0, 1.0], (1.7, 1.3), [0.0, 1.0, 2.0, 3.0], events=[event],
        step=1e-4,
    ) < 1e-6


def test_two_levels_of_a_thermostat():
    def heated(t, y, yp, a, power, low, high):
        return [yp[0] + a * y[0] - power * y[1], yp[1]]

    def above(t, y, yp, a, power, low, high):
        return y[0] - high

    def below(t, y, yp, a, power, low, high):
        return y[0] - low

    above.apply = lambda t, y, yp, *args: [y[0], 0.0 * y[1]]
    below.apply = lambda t, y, yp, *args: [y[0], 1.0 + 0.0 * y[1]]
    above.direction, below.direction = 1, -1
    error = compare(
        heated, (0, 6), [0.0, 1.0], (0.5, 2.0, 1.0, 1.5), np.linspace(0, 6, 7),
        events=[above, below], by_y0=False,
    )
    assert error < 1e-5


def test_events_after_a_condition_that_passes_smoothly():
    """The leg goes on with a past, of which the first steps are made."""
    def spring(t, y, yp, k, c):
        x, v = y
        return [yp[0] - v, yp[1] + k * x + c * np.maximum(x - 0.5, 0.0) ** 3]

    for gap, allowed in ((1e-1, 1e-5), (1e-3, 1e-5), (1e-5, 1e-3)):
        def event(t, y, yp, k, c, gap=gap):
            return y[0] - 0.5 - gap

        event.apply = lambda t, y, yp, k, c: [y[0] - 0.8, y[1] + 0.2 + 0.1 * yp[1] * c]
        event.terminal = 2
        error = compare(
            spring, (0, 2), [0.0, 1.0], (1.0, 2.0), [0.0, 0.3, 0.5, 0.7, 0.9, 1.1], events=[event]
        )
        assert error < allowed


def test_invariants_take_new_values_behind_events():
    """A kick changes the energy, which is kept from there on."""
    def energy(t, y, w, e):
        return y[1] ** 2 / 2 - w * w * np.cos(y[0])

    def kick(t, y, yp, w, e):
        return y[0] - 0.2

    kick.apply, kick.direction = lambda t, y, yp, w, e: [y[0], y[1] * (1.0 + 0.2 * e)], -1
    error = compare(
        swinging, (0, 4), [1.0, 0.3], (1.3, 0.8), [0.5, 2.0, 4.0], events=[kick],
        invariants=energy, step=1e-3,
    )
    assert error < 1e-5


def test_events_with_a_memory_are_refused():
    state = {"level": 1.0}

    def event(t, y, yp, k):
        return y[0] - k * state["level"]

    def halve(t, y, yp, k):
        state["level"] *= 0.5
        return [y[0] + 0.01]

    event.apply = halve
    with pytest.raises(ValueError, match="depends on more than"):
        solve_dae(
            lambda t, y, yp, k: [yp[0] + y[0]], (0, 2), [1.0], args=(0.5,), events=[event],
            sensitivity="args",
        )


def test_a_terminal_event_that_changes_the_state():
    """The last column lies behind the change, at a time that the parameters move."""
    def event(t, y, yp, k):
        return y[0] - 0.5

    event.apply, event.terminal = lambda t, y, yp, k: [2.0 * y[0]], True
    sol = solve_dae(
        lambda t, y, yp, k: [yp[0] + k * y[0]], (0, 5), [1.0], args=(0.7,), events=[event],
        sensitivity="args", **FINE,
    )
    assert np.allclose(sol.y[0, -2:], [0.5, 1.0])
    end = np.log(2.0) / 0.7
    assert np.allclose(sol.sens[0, 0, -2:], [-0.5 * end, -1.0 * end], rtol=1e-6)


# --- breaks -------------------------------------------------------------------------------------


@pytest.mark.parametrize("condition", [
    lambda t, ts: t < ts, lambda t, ts: t <= ts, lambda t, ts: not t > ts,
    lambda t, ts: not t >= ts,
])
@pytest.mark.parametrize("span", [(0, 2), (2, 0)])
def test_breaks_exactly(condition, span):
    """Two rates, one after the other; which of them holds at the break itself does not matter."""
    def fun(t, y, yp, k, ts):
        return [yp[0] + (k if condition(t, ts) else 0.2) * y[0]]

    k, ts = 0.7, 0.9
    sol = solve_dae(
        fun, span, [1.0], args=(k, ts), sensitivity="args", t_eval=[span[1]], **FINE
    )
    if span[0] == 0:
        total, by_k = k * ts + 0.2 * (2 - ts), ts
        by_ts = k - 0.2
    else:
        total, by_k, by_ts = -(0.2 * (2 - ts) + k * ts), -ts, -(k - 0.2)
    right = -np.exp(-total) * np.array([by_k, by_ts])
    assert np.allclose(sol.sens[:, 0, 0], right, rtol=1e-6)


@pytest.mark.parametrize("distance", [1e-3, 1e-7])
def test_breaks_shortly_after_others(distance):
    def fun(t, y, yp, k, ts):
        return [yp[0] + k * y[0] - (1.0 if t > ts else 0.0)]

    sol = solve_dae(
        fun, (0, 2), [0.3], args=(0.7, 0.9), t_breaks=[0.9 - distance], t_eval=[2.0],
        sensitivity="args", **FINE,
    )
    assert abs(sol.sens[1, 0, 0] + np.exp(-0.7 * 1.1)) < 1e-6


@pytest.mark.parametrize("forcing", [
    lambda t, w: 1.0 if t % w < 0.4 * w else 0.0,
    lambda t, w: np.floor(t / w),
    lambda t, w: 1.0 if np.sin(5 * t / w) > 0.4 else 0.0,
    lambda t, w: np.abs(t - w),
    lambda t, w: np.interp(t, [0.0, 0.5, 1.0, 3.0], [0.0, w, -w, 0.5]),
])
def test_forcing_in_time(forcing):
    error = compare(
        lambda t, y, yp, k, w: [yp[0] + (0.1 + k * forcing(t, w)) * y[0] - forcing(t, w)],
        (0, 2), [0.3], (0.7, 0.31), [0.0, 0.4, 1.0, 2.0], step=1e-4,
    )
    assert error < 5e-6


def test_structure_that_depends_on_time():
    def fun(t, y, yp, r, ts, c):
        v, i = y
        return [c * yp[0] - i, (v - r * (1.0 - i)) if t < ts else (i + v * 0.5)]

    assert compare(fun, (0, 2), [0.3, 0.0], (1.3, 0.9, 1.1), [0.3, 0.8, 1.0, 2.0], 1e-3) < 1e-6


def test_jumps_at_a_time_that_is_a_parameter():
    """Index 2: a source that is switched on makes capacitors jump by the law of charge."""
    def fun(t, y, yp, ts):
        v, w, i = y
        charge = yp[0] * (1 + v * v) + v / 1.5 + i
        return [charge, 2 * yp[1] - i, v - w - (0.5 * t if t > ts else 0)]

    options = {"t_eval": [1.0, 1.3, 2.0], "start": "quiet"}
    right = differences(
        lambda x: solve_dae(fun, (0, 2), [1.0, 0.3, 0.0], args=(x[0],), **options, **TIGHT).y,
        [1.1], 1e-4,
    )
    sol = solve_dae(
        fun, (0, 2), [1.0, 0.3, 0.0], args=(1.1,), sensitivity="args", **options, **FINE
    )
    assert largest_error(sol.sens, right) < 5e-6


# --- conditions on the unknowns -----------------------------------------------------------------


def test_rates_that_switch_exactly():
    """y falls at the rate k to the level c, then at the rate 0.2."""
    sol = solve_dae(
        lambda t, y, yp, k, c: [yp[0] + (k if y[0] > c else 0.2) * y[0]], (0, 2), [1.0],
        args=(0.7, 0.5), sensitivity="all", t_eval=[2.0], **FINE,
    )
    k, c = 0.7, 0.5                            # ln y = ln c - 0.2 (2 - log(y0 / c) / k)
    y = c * np.exp(-0.2 * (2 - np.log(1 / c) / k))
    right = y * np.array([-0.2 * np.log(1 / c) / k**2, 1 / c - 0.2 / (k * c), 0.2 / k])
    assert np.allclose(sol.sens[:, 0, 0], right, rtol=1e-6)


@pytest.mark.parametrize("name", ["kinks", "diode", "two surfaces", "rope", "cars", "capacitors"])
def test_switches(name):
    def kinks(t, y, yp, k, c):
        x, v = y
        return [yp[0] - v, yp[1] + k * np.abs(x - 0.5) + c * np.abs(v - 0.7) + 0.5 * x]

    def diode(t, y, yp, r, c, top, w):
        v, i = y
        return [c * yp[0] + v / r - i, np.minimum(i, v + 0.01 * i - top * np.sin(w * t))]

    def surfaces(t, y, yp, a, b, c):
        x, z = y
        return [
            yp[0] + a * np.sign(x) + 0.3 * np.sign(z) - 0.1 * np.cos(t),
            yp[1] + b * np.sign(z) - 0.2 * np.sign(x) - c * np.sin(t),
        ]

    def rope(t, y, yp, g, length):
        x, z, u, v, tension = y
        stretch = x * x + z * z - length**2
        return [
            yp[0] - u, yp[1] - v, yp[2] + tension * x, yp[3] + tension * z + g,
            tension if stretch < 0 else stretch,
        ]

    def cars(t, y, yp, m, n, k):
        x, z, u, v, force = y
        return [
            yp[0] - u, yp[1] - v, m * yp[2] + force - k * np.cos(t), n * yp[3] - force,
            (u - v) if x >= z else force,
        ]

    def capacitors(t, y, yp, r, level, c):
        v, w, i = y
        return [
            c * (1 + v * v) * yp[0] + v - i, yp[1] * (1 + 0.3 * np.sin(w)) + w * r + i,
            (v - w) if v < level else i,
        ]

    case = {
        "kinks": (kinks, [0.0, 1.0], (1.0, 1.0), 6.0),
        "diode": (diode, [0.0, 0.0], (5.0, 0.3, 1.0, 4.0), 2.93),
        "two surfaces": (surfaces, [0.5, 0.7], (1.0, 1.2, 0.3), 5.2),
        "rope": (rope, [0.5, 0.2, 0.3, 0.5, 0.0], (9.81, 1.0), 1.5),
        "cars": (cars, [0.0, 1.0, 1.0, 0.2, 0.0], (1.0, 2.0, 0.3), 2.97),
        "capacitors": (capacitors, [1.0, -0.3, 0.0], (1.3, 0.6, 1.1), 2.0),
    }
    fun, y0, args, end = case[name]
    t_eval = np.linspace(0.07, 1.0, 6) * end
    assert compare(fun, (0, end), y0, args, t_eval, by_y0=False) < 1e-4


@pytest.mark.parametrize("gap", [1e-6, 1e-3, -1e-6])
def test_events_shortly_before_and_behind_a_break(gap):
    """What an algebraic unknown does there in time belongs to the side of the event."""
    k, q = 0.7, 0.6
    t_event = -np.log(q) / k
    rate = 1.0 if gap > 0.0 else 0.5           # of x, where it passes q

    def fun(t, y, yp, k, q, ts):
        x, z = y
        slow, more = np.where(t < ts, 1.0, 0.5), np.where(t < ts, 1.0, 2.0)
        return [yp[0] + slow * k * x, z - np.sin(3 * t) - more * x]

    sol = solve_dae(
        fun, (0, 1.5), [1.0, 1.0], args=(k, q, t_event + gap), start="quiet", sensitivity=["q"],
        events=lambda t, y, yp, k, q, ts: y[0] - q, rtol=1e-9, atol=1e-11,
    )
    by_time = -1.0 / (rate * k * q)
    assert np.allclose(sol.sensitivities.t_events[0], by_time, rtol=1e-5)
    by_z = 3 * np.cos(3 * t_event) * by_time + rate**-1.0
    assert np.allclose(sol.sensitivities.y_events[0][0, 0], [1.0, by_z], rtol=1e-5)
