"""Events at the very end of a run: round-off decides nothing."""

import math

import numpy as np
import pytest
from support.helpers import decay

from tether import Status, solve_dae

pytestmark = pytest.mark.usefixtures("events_both_ways")


def counter(t, y, yp):
    return [yp[0] - 1.0, yp[1]]


def tick_every(period, **attributes):
    def tick(t, y):
        return math.sin(math.pi * t / period)

    for name, value in attributes.items():
        setattr(tick, name, value)
    return tick


@pytest.mark.parametrize("period", [0.05, 0.1, 0.3, 1 / 3, 0.07, 1.0])
@pytest.mark.parametrize("count", [1, 2, 3, 10, 41])
def test_a_clock_ticks_at_the_end(period, count):
    tick = tick_every(period, apply=lambda t, y: [y[0], y[1] + 1.0])
    sol = solve_dae(counter, (0.0, count * period), [0.0, 0.0], events=tick, max_step=period / 3)
    assert sol.status == Status.REACHED_END
    assert len(sol.t_events[0]) == count + 1           # with the one at the start
    assert sol.y[1, -1] == count
    assert sol.t[-1] == count * period


@pytest.mark.parametrize(("direction", "times"), [
    (1, [0.0, 0.2, 0.4]), (-1, [0.1, 0.3]), (0, [0.0, 0.1, 0.2, 0.3, 0.4]),
])
def test_only_in_the_wanted_direction(direction, times):
    tick = tick_every(0.1, direction=direction)
    sol = solve_dae(counter, (0.0, 0.4), [0.0, 0.0], events=tick, max_step=0.03)
    np.testing.assert_allclose(sol.t_events[0], times, atol=1e-12)


def test_a_terminal_event_at_the_end():
    tick = tick_every(0.1, terminal=4)
    sol = solve_dae(counter, (0.0, 0.4), [0.0, 0.0], events=tick, max_step=0.03)
    assert sol.status == Status.EVENT
    assert sol.t[-1] == 0.4


def test_output_times_have_the_value_before_the_event():
    tick = tick_every(0.1, apply=lambda t, y: [y[0], y[1] + 1.0])
    times = [0.15, 0.25, 0.4]
    sol = solve_dae(counter, (0.0, 0.4), [0.0, 0.0], events=tick, t_eval=times, max_step=0.03)
    np.testing.assert_array_equal(sol.t, times)
    assert sol.y[1].tolist() == [1.0, 2.0, 3.0]
    assert len(sol.t_events[0]) == 5


@pytest.mark.parametrize("max_step", [0.02, 0.025, 0.03, 1 / 30, 0.05, 0.1])
@pytest.mark.parametrize("trace", ["auto", "never"])
def test_steps_that_end_where_an_event_happens(max_step, trace):
    """A value of next to nothing is that of an event ahead, not of the one before."""
    tick = tick_every(0.1, apply=lambda t, y: [y[0], y[1] + 1.0])
    sol = solve_dae(counter, (0.0, 1.05), [0.0, 0.0], events=tick, max_step=max_step, trace=trace)
    np.testing.assert_allclose(sol.t_events[0], 0.1 * np.arange(11), atol=1e-12)
    assert sol.y[1, -1] == 10.0


@pytest.mark.parametrize("event", [
    lambda t, y: -1.0 if t <= 1.0 else 1.0,            # jumps behind the end
    lambda t, y: 1.0 + 1e-3 - t,                       # a little too late
    lambda t, y: t - 1.0 - 1e-12,
    lambda t, y: 1e-30,
    lambda t, y: y[0] - math.exp(-1.0) * (1.0 - 1e-3),
])
def test_what_does_not_happen(event):
    assert len(solve_dae(decay, (0.0, 1.0), [1.0], events=event).t_events[0]) == 0
