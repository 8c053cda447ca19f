"""Events: where they are found, in which order, and what they may do to the run."""

import functools
import math

import numpy as np
import pytest
from support.events import clock, event, height, line
from support.helpers import RELAX_START, circle, decay, relax

from tether import Status, solve_dae
from tether.run.watch import find_zero

pytestmark = pytest.mark.usefixtures("events_both_ways")

TIGHT = {"rtol": 1e-10, "atol": 1e-12}
PI = math.pi


def first(**attributes):
    return event(height, **attributes)


# --- where ----------------------------------------------------------------------------------


def test_no_events():
    for events in (None, [], ()):
        sol = solve_dae(decay, (0, 1), [1.0], events=events)
        assert sol.t_events is sol.y_events is sol.yp_events is None


def test_events_are_called_after_their_functions():
    def low(t, y):
        return y[0] - 0.5

    def bottom(t, y):
        return y[0] - 0.1

    unnamed = lambda t, y: y[0] - 0.4                              # noqa: E731
    sol = solve_dae(decay, (0, 1), [1.0], events=[low, unnamed, bottom, functools.partial(low)])
    assert sol.event_names == ("low", "event 1", "bottom", "event 3")
    assert "event    low: 1 time, last at 0.69314" in str(sol)
    twins = solve_dae(decay, (0, 1), [1.0], events=[low, low])
    assert twins.event_names == ("event 0", "event 1")
    assert solve_dae(decay, (0, 1), [1.0]).event_names == ()


def test_event_that_never_happens():
    sol = solve_dae(decay, (0, 1), [1.0], events=height)
    assert [len(part[0]) for part in (sol.t_events, sol.y_events, sol.yp_events)] == [0, 0, 0]
    assert isinstance(sol.t_events[0], np.ndarray)


def test_crossings_of_the_harmonic_oscillator():
    sol = solve_dae(circle, (0, 20), [1.0, 0.0], events=height, **TIGHT)
    exact = PI / 2 + PI * np.arange(6)
    np.testing.assert_allclose(sol.t_events[0], exact, atol=1e-7)
    assert sol.y_events[0].shape == sol.yp_events[0].shape == (6, 2)
    np.testing.assert_allclose(sol.y_events[0][:, 0], 0.0, atol=1e-14)
    np.testing.assert_allclose(sol.y_events[0][:, 1], (-1.0) ** np.arange(1, 7), atol=1e-7)
    np.testing.assert_allclose(sol.yp_events[0][:, 0], (-1.0) ** np.arange(1, 7), atol=1e-6)


@pytest.mark.parametrize(("direction", "shift"), [(1, PI), (-1, 0.0), (0.5, PI), (-7, 0.0)])
def test_direction(direction, shift):
    sol = solve_dae(circle, (0, 20), [1.0, 0.0], events=first(direction=direction), **TIGHT)
    np.testing.assert_allclose(sol.t_events[0], PI / 2 + shift + 2 * PI * np.arange(3), atol=1e-7)


def test_loose_tolerance_locates_on_the_interpolant():
    sol = solve_dae(circle, (0, 20), [1.0, 0.0], events=height, dense_output=True, rtol=1e-3)
    for t, y, yp in zip(sol.t_events[0], sol.y_events[0], sol.yp_events[0], strict=True):
        assert abs(y[0]) < 1e-13
        np.testing.assert_allclose(sol.sol(t)[0], y, atol=1e-12)
        np.testing.assert_allclose(sol.sol(t)[1], yp, atol=1e-6)


def test_falling_body():
    """A body thrown up with v from h is back at zero at (v + sqrt(v^2 + 2 g h)) / g."""
    g, h, v = 9.81, 10.0, 3.0
    sol = solve_dae(lambda t, y, yp: [yp[0] - y[1], yp[1] + g], (0, 10), [h, v],
                    events=first(terminal=True), **TIGHT)
    impact = (v + math.sqrt(v * v + 2 * g * h)) / g
    assert sol.status == Status.EVENT
    assert sol.success
    assert sol.t[-1] == sol.t_events[0][0] == pytest.approx(impact, abs=1e-8)
    assert sol.y[1, -1] == pytest.approx(v - g * impact, abs=1e-7)
    np.testing.assert_array_equal(sol.y[:, -1], sol.y_events[0][0])
    np.testing.assert_array_equal(sol.yp[:, -1], sol.yp_events[0][0])


def test_event_that_looks_at_the_derivative():
    sol = solve_dae(circle, (0, 10), [1.0, 0.0], events=lambda t, y, yp: yp[0] - 0.5, **TIGHT)
    # -sin t = 1/2
    exact = [7 * PI / 6, 11 * PI / 6, 19 * PI / 6]
    np.testing.assert_allclose(sol.t_events[0], exact, atol=1e-5)


def test_event_on_an_algebraic_unknown():
    sol = solve_dae(lambda t, y, yp: [yp[0] + y[1], y[1] ** 2 - y[0]], (0, 1.9), [1.0, 1.0],
                    events=lambda t, y, yp: y[1] - 0.5, **TIGHT)
    # x' = -sqrt(x): sqrt(x) = 1 - t/2
    np.testing.assert_allclose(sol.t_events[0], [1.0], atol=1e-7)


def test_events_take_args():
    seen = set()

    def fun(t, y, yp, rate, name):
        return [yp[0] + rate * y[0]]

    def watch(t, y, yp, rate, name):
        seen.add((rate, name))
        return y[0] - 0.5

    def apply(t, y, yp, rate, name):
        seen.add((rate, name, "apply"))
        return y

    sol = solve_dae(fun, (0, 1), [1.0], args=(2.0, "a"), events=event(watch, apply=apply))
    assert seen == {(2.0, "a"), (2.0, "a", "apply")}
    np.testing.assert_allclose(sol.t_events[0], [math.log(2) / 2], atol=1e-6)


def test_events_that_only_watch_change_nothing():
    plain = solve_dae(circle, (0, 20), [1.0, 0.0])
    watched = solve_dae(circle, (0, 20), [1.0, 0.0], events=[height, clock(3.0), clock(0.0)])
    np.testing.assert_array_equal(watched.t, plain.t)
    np.testing.assert_array_equal(watched.y, plain.y)
    assert watched.nfev == plain.nfev
    assert watched.status == Status.REACHED_END


@pytest.mark.parametrize("t_eval", [None, [0.0, -5.0, -10.0]])
def test_backward(t_eval):
    events = [height, first(direction=1), first(direction=-1)]
    sol = solve_dae(circle, (0, -10), [1.0, 0.0], events=events, t_eval=t_eval, **TIGHT)
    exact = -PI / 2 - PI * np.arange(3)
    np.testing.assert_allclose(sol.t_events[0], exact, atol=1e-7)
    # the direction is that of the integration: cos falls first, whichever way it is walked
    np.testing.assert_allclose(sol.t_events[1], exact[1::2], atol=1e-7)
    np.testing.assert_allclose(sol.t_events[2], exact[::2], atol=1e-7)


# --- ending the run ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("terminal", "expected"),
    [(True, 1), (np.True_, 1), (1, 1), (2, 2), (np.int64(5), 5), (False, 6), (0, 6), (None, 6),
     (7, 6)],
)
def test_terminal(terminal, expected):
    sol = solve_dae(circle, (0, 20), [1.0, 0.0], events=first(terminal=terminal))
    assert len(sol.t_events[0]) == expected
    ended = expected < 6
    assert sol.status == (Status.EVENT if ended else Status.REACHED_END)
    assert sol.message == sol.status.text
    assert sol.t[-1] == (sol.t_events[0][-1] if ended else 20.0)


def test_terminal_event_with_t_eval_and_dense_output():
    times = np.linspace(0, 20, 201)
    sol = solve_dae(circle, (0, 20), [1.0, 0.0], t_eval=times, dense_output=True,
                    events=first(terminal=2), **TIGHT)
    end = sol.t_events[0][-1]
    np.testing.assert_array_equal(sol.t, times[times <= end])
    np.testing.assert_allclose(sol.y[0], np.cos(sol.t), atol=1e-7)
    assert sol.sol.t_max == end
    np.testing.assert_allclose(sol.sol(end)[0], sol.y_events[0][-1], atol=1e-13)
    with pytest.raises(ValueError, match="t must lie"):
        sol.sol(end + 1e-6)


def test_terminal_event_backward():
    sol = solve_dae(circle, (0, -10), [1.0, 0.0], events=first(terminal=True), dense_output=True,
                    **TIGHT)
    assert sol.t[-1] == pytest.approx(-PI / 2, abs=1e-7)
    assert sol.sol.t_min == sol.t[-1]


def test_callback_sees_no_more_than_the_solution():
    """The step that an event cuts short is seen where it was cut."""
    seen = []
    sol = solve_dae(line, (0, 10), [0.0], events=clock(7.0, terminal=True),
                    callback=lambda t, y, yp: seen.append((t, y[0])))
    assert sol.t[-1] == pytest.approx(7.0)
    np.testing.assert_array_equal(np.array(seen).T, [sol.t[1:], sol.y[0, 1:]])


# --- several in one step ------------------------------------------------------------------------


def assert_within_one_step(times):
    """Assert that the plain run steps over all the times at once."""
    plain = solve_dae(line, (0, 10), [0.0])
    assert len(set(np.searchsorted(plain.t, times))) == 1


def test_two_events_in_one_step():
    assert_within_one_step([5.3, 5.4])
    later, earlier = clock(5.4), clock(5.3)
    for events in ([later, earlier], [earlier, later]):
        sol = solve_dae(line, (0, 10), [0.0], events=events)
        found = dict(zip(map(id, events), sol.t_events, strict=True))
        assert found[id(earlier)] == pytest.approx([5.3], abs=1e-14)
        assert found[id(later)] == pytest.approx([5.4], abs=1e-14)


def test_only_the_first_of_a_step_is_reported_when_it_ends_the_run():
    for events in ([clock(5.4), clock(5.3, terminal=True)],
                   [clock(5.4, terminal=True), clock(5.3, terminal=True)]):
        sol = solve_dae(line, (0, 10), [0.0], events=events)
        assert sol.t[-1] == pytest.approx(5.3)
        assert sol.t_events[1] == pytest.approx([5.3])
        assert len(sol.t_events[0]) == 0


def test_what_happens_before_the_end_in_the_same_step_is_reported():
    sol = solve_dae(line, (0, 10), [0.0], events=[clock(5.4, terminal=True), clock(5.3)])
    assert sol.t[-1] == pytest.approx(5.4)
    assert [len(times) for times in sol.t_events] == [1, 1]


@pytest.mark.parametrize(("jump", "reached"), [(-10.0, []), (10.0, [5.3])])
def test_events_of_one_step_act_in_order(jump, reached):
    """A jump at 5.3 puts the threshold for the next out of reach, or takes the state beyond it."""
    jumps = clock(5.3, apply=lambda t, y, yp: y + jump)
    threshold = event(lambda t, y, yp: y[0] - 5.4, direction=1)
    sol = solve_dae(line, (0, 10), [0.0], events=[threshold, jumps])
    assert sol.t_events[1] == pytest.approx([5.3], abs=1e-14)
    assert sol.t_events[0] == pytest.approx(reached, abs=1e-14)
    assert sol.y[0, -1] == pytest.approx(10.0 + jump)


@pytest.mark.parametrize("terminal", [False, True])
def test_simultaneous_events_are_all_reported(terminal):
    events = [
        event(lambda t, y, yp: y[0] - 5.3, terminal=terminal),
        event(lambda t, y, yp: 3 * (5.3 - y[0])),
        event(lambda t, y, yp: y[0] - 5.3, terminal=terminal),
    ]
    sol = solve_dae(line, (0, 10), [0.0], events=events)
    for times in sol.t_events:
        assert times == pytest.approx([5.3], abs=1e-14)
    assert sol.t[-1] == pytest.approx(5.3 if terminal else 10.0)


def test_simultaneous_changes_are_all_made():
    events = [
        clock(5.3, apply=lambda t, y, yp: y + 1.0),
        clock(5.3, apply=lambda t, y, yp: y * 10.0),
    ]
    sol = solve_dae(line, (0, 10), [0.0], events=events)
    assert [len(times) for times in sol.t_events] == [1, 1]
    assert sol.y[0, -1] == pytest.approx(63.0 + 4.7)


# --- at the ends of steps -----------------------------------------------------------------------


@pytest.mark.parametrize("t0", [0.0, 0.1, 0.3, 0.5, 0.7, 1.1, 2.3, -0.7, 1e3 + 0.1, 1e-7])
@pytest.mark.parametrize("span", [2.0, -2.0, 0.37])
def test_event_at_the_start(t0, span):
    """It is reported once, at the start itself, and neither stops nor changes anything."""
    changes = []
    events = [
        event(lambda t, y, yp: y[0] - 1.0),
        event(lambda t, y, yp: y[0] - 1.0, terminal=True),
        event(lambda t, y, yp: y[0] - 1.0, apply=lambda t, y, yp: changes.append(t) or y),
    ]
    sol = solve_dae(decay, (t0, t0 + span), [1.0], events=events)
    assert sol.status == Status.REACHED_END
    assert [times.tolist() for times in sol.t_events] == [[t0]] * 3
    assert not changes


def test_event_at_the_start_counts_only_later():
    sol = solve_dae(circle, (0, 20), [0.0, 1.0], events=first(terminal=True), **TIGHT)
    np.testing.assert_allclose(sol.t_events[0], [0.0, PI], atol=1e-7)
    assert sol.status == Status.EVENT
    two = solve_dae(circle, (0, 20), [0.0, 1.0], events=first(terminal=2), **TIGHT)
    np.testing.assert_allclose(two.t_events[0], [0.0, PI, 2 * PI], atol=1e-7)


def test_event_at_the_start_of_the_wrong_direction():
    sol = solve_dae(decay, (0, 1), [1.0], events=event(lambda t, y, yp: y[0] - 1.0, direction=1))
    assert len(sol.t_events[0]) == 0


def test_event_that_is_always_zero():
    sol = solve_dae(decay, (0, 1), [1.0], events=event(lambda t, y, yp: 0.0, terminal=True))
    assert sol.status == Status.REACHED_END
    assert len(sol.t_events[0]) <= 1


def test_event_exactly_at_the_end_of_a_step():
    """Zero at the end of one step is zero at the beginning of the next, but one event."""
    plain = solve_dae(circle, (0, 3), [1.0, 0.0])
    for t in plain.t[1:]:
        for direction in (0, 1):
            sol = solve_dae(circle, (0, 3), [1.0, 0.0], events=clock(t, direction=direction))
            assert sol.t_events[0].tolist() == [t]
        falling = solve_dae(circle, (0, 3), [1.0, 0.0], events=clock(t, direction=-1))
        assert len(falling.t_events[0]) == 0
        stopped = solve_dae(circle, (0, 3), [1.0, 0.0], events=clock(t, terminal=True))
        np.testing.assert_array_equal(stopped.t, plain.t[plain.t <= t])
        np.testing.assert_allclose(stopped.y, plain.y[:, plain.t <= t], atol=1e-13)


def test_event_at_the_end_of_the_interval():
    sol = solve_dae(line, (0, 2.5), [0.0], events=[clock(2.5), clock(2.5, terminal=2)])
    assert [times.tolist() for times in sol.t_events] == [[2.5], [2.5]]
    assert sol.status == Status.REACHED_END
    ended = solve_dae(line, (0, 2.5), [0.0], events=clock(2.5, terminal=True))
    assert ended.status == Status.EVENT
    assert ended.t[-1] == 2.5
    changed = solve_dae(line, (0, 2.5), [0.0], dense_output=True,
                        events=clock(2.5, apply=lambda t, y, yp: y + 1.0))
    assert changed.status == Status.REACHED_END
    assert changed.t[-2:].tolist() == [2.5, 2.5]
    assert changed.y[0, -2:] == pytest.approx([2.5, 3.5])
    assert changed.sol(2.5)[0] == pytest.approx([2.5])
    assert changed.sol(np.nextafter(2.5, 3.0))[0] == pytest.approx([2.5])


def test_change_one_bit_before_the_end():
    near = np.nextafter(1.0, 0.0)
    sol = solve_dae(line, (0, 1), [0.0], events=clock(near, apply=lambda t, y, yp: y + 1.0))
    assert sol.success
    assert sol.t[-1] == 1.0
    assert sol.y[0, -1] == pytest.approx(2.0)


G = 9.81


# --- changing the state ---------------------------------------------------------------------------

RESTITUTION = 0.8


def ball(t, y, yp):
    return [yp[0] - y[1], yp[1] + G]


def bounce(t, y, yp):
    return [0.0, -RESTITUTION * y[1]]


def bounce_times(h, count):
    fall = math.sqrt(2 * h / G)
    flights = 2 * fall * RESTITUTION ** np.arange(1, count)
    return fall + np.concatenate([[0.0], np.cumsum(flights)])


def test_bouncing_ball():
    """Exact times of all bounces; the energy falls by the square of the restitution."""
    floor = first(direction=-1, apply=bounce)
    sol = solve_dae(ball, (0, 11), [10.0, 0.0], events=floor, dense_output=True, **TIGHT)
    exact = bounce_times(10.0, 60)
    exact = exact[exact < 11]
    assert len(exact) >= 7
    assert sol.success
    np.testing.assert_allclose(sol.t_events[0], exact, atol=1e-7)
    # y_events hold the state before the change
    speeds = np.sqrt(2 * G * 10.0) * RESTITUTION ** np.arange(len(exact))
    np.testing.assert_allclose(sol.y_events[0][:, 1], -speeds, rtol=1e-7)
    apex = (exact[:-1] + exact[1:]) / 2
    np.testing.assert_allclose(
        sol.sol(apex)[0][0], 10.0 * RESTITUTION ** (2 * np.arange(1, len(exact))), rtol=1e-7
    )
    energy = G * sol.y[0] + sol.y[1] ** 2 / 2
    bounces = np.searchsorted(sol.t_events[0], sol.t, side="left")
    restarts = np.flatnonzero(np.diff(sol.t) == 0) + 1
    bounces[restarts] += 1
    np.testing.assert_allclose(energy, G * 10.0 * RESTITUTION ** (2 * bounces), rtol=1e-7)


def test_both_sides_of_a_change_are_kept():
    sol = solve_dae(ball, (0, 2), [10.0, 0.0], events=first(direction=-1, apply=bounce))
    (before,) = np.flatnonzero(np.diff(sol.t) == 0)
    after = before + 1
    assert sol.t[before] == sol.t_events[0][0]
    np.testing.assert_array_equal(sol.y[:, before], sol.y_events[0][0])
    assert sol.y[0, after] == 0.0
    assert sol.y[1, after] == -RESTITUTION * sol.y[1, before]
    assert np.all(sol.stats.h > 0)
    assert len(sol.stats.t) == sol.stats.steps == len(sol.t) - 2


def test_left_limit_at_a_change():
    """At the time of a jump every kind of output gives the value before it."""
    jump = clock(0.5, apply=lambda t, y, yp: y + 1.0)
    sol = solve_dae(line, (0, 1), [0.0], events=jump, dense_output=True)
    assert sol.t_events[0].tolist() == [0.5]
    times = [0.25, 0.5, np.nextafter(0.5, 1.0), 0.75, 1.0]
    expected = [0.25, 0.5, 1.5, 1.75, 2.0]
    assert sol.sol(times)[0][0] == pytest.approx(expected)
    assert sol.sol(times)[1][0] == pytest.approx([1.0] * 5)
    assert [sol.sol(t)[0][0] for t in times] == pytest.approx(expected)
    at_times = solve_dae(line, (0, 1), [0.0], events=jump, t_eval=times)
    assert at_times.y[0] == pytest.approx(expected)


def test_change_while_going_backward():
    jump = clock(0.5, apply=lambda t, y, yp: y + 1.0)
    sol = solve_dae(line, (1, 0), [0.0], events=jump, dense_output=True, t_eval=[1.0, 0.5, 0.0])
    assert sol.y[0] == pytest.approx([0.0, -0.5, 0.0])
    assert sol.sol(0.5)[0][0] == pytest.approx(-0.5)
    assert sol.sol(0.25)[0][0] == pytest.approx(0.25)


def test_algebraic_values_follow_a_change():
    """The change leaves z where it was; the restart brings it back onto z = x + sin t."""
    kick = event(lambda t, y, yp: y[0] - 0.5, direction=-1, terminal=3,
                 apply=lambda t, y, yp: [2.0, y[1]])
    sol = solve_dae(relax, (0, 10), RELAX_START, events=kick, **TIGHT)
    assert sol.status == Status.EVENT
    np.testing.assert_allclose(sol.y[1] - sol.y[0] - np.sin(sol.t), 0.0, atol=1e-9)
    np.testing.assert_allclose(sol.yp[0] + sol.y[1], 0.0, atol=1e-6)
    restarts = np.flatnonzero(np.diff(sol.t) == 0) + 1
    assert len(restarts) == 3
    np.testing.assert_array_equal(sol.y[0, restarts], 2.0)
    # from (t0, x0) on: x = C exp(-t) + (cos t - sin t) / 2
    t0, t1 = sol.t_events[0][:2]
    c = (2.0 - (math.cos(t0) - math.sin(t0)) / 2) * math.exp(t0)
    assert c * math.exp(-t1) + (math.cos(t1) - math.sin(t1)) / 2 == pytest.approx(0.5, abs=1e-7)


def test_change_that_ends_the_run():
    stop = clock(0.5, terminal=True, apply=lambda t, y, yp: y + 1.0)
    sol = solve_dae(line, (0, 1), [0.0], events=stop, dense_output=True)
    assert sol.status == Status.EVENT
    assert sol.t[-2:].tolist() == [0.5, 0.5]
    assert sol.y[0, -2:] == pytest.approx([0.5, 1.5])
    assert sol.sol(0.5)[0] == pytest.approx([0.5])


def test_change_that_happens_often():
    """A sawtooth: 99 jumps at exact times, far more rows than the record begins with."""
    tooth = event(lambda t, y, yp: y[0] - 1.0, apply=lambda t, y, yp: y - 1.0)
    sol = solve_dae(line, (0, 99.5), [0.0], events=tooth, dense_output=True)
    np.testing.assert_allclose(sol.t_events[0], np.arange(1, 100), rtol=1e-12)
    assert sol.y[0, -1] == pytest.approx(0.5)
    times = np.arange(99) + 0.3
    np.testing.assert_allclose(sol.sol(times)[0][0], 0.3, atol=1e-12)


def test_change_that_switches_the_equations():
    """A thermostat: the event changes what the residual reads."""
    heating = {"on": True}

    def fun(t, y, yp):
        return [yp[0] + y[0] - 2.0 * heating["on"]]

    def switch(t, y, yp):
        heating["on"] = not heating["on"]
        return y

    events = [
        event(lambda t, y, yp: y[0] - 1.2, direction=1, apply=switch),
        event(lambda t, y, yp: y[0] - 0.8, direction=-1, apply=switch),
    ]
    sol = solve_dae(fun, (0, 5), [1.0], events=events, **TIGHT)
    up, down = math.log(1.2 / 0.8), math.log(1.2 / 0.8)
    start = math.log(1.0 / 0.8)
    np.testing.assert_allclose(sol.t_events[0], np.arange(start, 5, up + down), atol=1e-7)
    np.testing.assert_allclose(sol.t_events[1], np.arange(start + down, 5, up + down), atol=1e-7)


def test_change_into_nowhere_is_a_failure_that_keeps_the_run():
    """x' = -z, z^2 = x: no real z belongs to a negative x."""
    bad = event(lambda t, y, yp: y[0] - 0.25, apply=lambda t, y, yp: [-1.0, y[1]])
    sol = solve_dae(lambda t, y, yp: [yp[0] + y[1], y[1] ** 2 - y[0]], (0, 1.9), [1.0, 1.0],
                    events=bad, **TIGHT)
    assert sol.status == Status.NO_CONSISTENT_START
    assert not sol.success
    assert "at t = 1:" in sol.message
    assert "`apply`" in sol.message
    assert len(sol.t) > 10
    assert sol.t[-1] == pytest.approx(1.0, abs=1e-7)
    assert sol.t_events[0] == pytest.approx([1.0], abs=1e-7)


def test_apply_may_change_its_arguments_in_place():
    def apply(t, y, yp):
        y += 1.0
        yp[:] = np.nan
        return y

    sol = solve_dae(line, (0, 1), [0.0], events=clock(0.5, apply=apply))
    assert sol.y_events[0][0] == pytest.approx([0.5])
    assert sol.y[0, -1] == pytest.approx(2.0)
    assert np.all(np.isfinite(sol.yp))


def test_callback_and_progress_go_on_after_a_change(capfd):
    seen = []
    sol = solve_dae(line, (0, 1), [0.0], events=clock(0.5, apply=lambda t, y, yp: y + 1.0),
                    callback=lambda t, y, yp: seen.append((t, y[0])), progress=True)
    assert (0.5, 1.5) in seen
    assert seen[-1] == (1.0, pytest.approx(2.0))
    assert len(seen) == sol.stats.steps
    assert "100.0%" in capfd.readouterr().err


def test_event_functions_of_one_run_do_not_remember_the_last():
    floor = first(direction=-1, apply=bounce, terminal=2)
    runs = [solve_dae(ball, (0, 8), [10.0, 0.0], events=floor) for _ in range(2)]
    np.testing.assert_array_equal(runs[0].t_events[0], runs[1].t_events[0])


def test_an_event_that_is_moved_back_happens_again():
    """However little: a stop that yields, with 2 % of the first step to the next contact."""
    stop = first(apply=lambda t, y, yp: [y[0] - 1e-4])
    stop.direction = 1
    sol = solve_dae(line, (0, 1), [-0.99], events=stop)
    assert sol.success
    assert len(sol.t_events[0]) == 101
    np.testing.assert_allclose(np.diff(sol.t_events[0]), 1e-4, rtol=1e-6)
    assert np.all(sol.y[0] <= 1e-12)


def test_an_event_that_is_moved_back_by_next_to_nothing_is_a_storm():
    stop = first(apply=lambda t, y, yp: [y[0] - 1e-13])
    sol = solve_dae(line, (0, 10), [-1.0], events=stop)
    assert sol.status == Status.EVENT_STORM
    assert sol.diagnosis.where.t == pytest.approx(1.0, abs=1e-6)


# --- zeros of functions -----------------------------------------------------------------------


@pytest.mark.parametrize("place", [1e-12, 0.1, 0.5, 0.999999])
@pytest.mark.parametrize("fun", [
    lambda x: x, lambda x: x**3, lambda x: math.expm1(30 * x), lambda x: math.atan(1e6 * x),
    lambda x: math.copysign(1.0, x), lambda x: x * 1e-300,
    lambda x: math.copysign(abs(x) ** 0.1, x),
])
def test_zeros_are_found_in_few_calls(fun, place):
    calls = []

    def g(t):
        calls.append(t)
        return fun(t - place)

    found = find_zero(g, 0.0, 1.0, g(0.0), g(1.0), 1e-15)
    assert found == pytest.approx(place, abs=2e-15 if fun(1e-3) > 1e-4 else 1e-5)
    assert len(calls) < 160
