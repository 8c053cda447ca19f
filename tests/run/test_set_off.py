"""Events that a change of the state takes through zero happen too."""

import math

import numpy as np
import pytest
from support.event_rules import follow, is_close, lines, random_rules
from support.events import clock, event, line

from tether import Status, solve_dae
from tether.explain.causes import Cause

G = 9.81
BOTH = pytest.mark.parametrize("trace", ["auto", "never"])
TIGHT = {"rtol": 1e-9, "atol": 1e-11}


def unknown(j, place=0.0, **attributes):
    """An event where an unknown passes a place."""
    return event(lambda t, y, yp: y[j] - place, **attributes)


def ball(t, y, yp):
    """Height, speed, and a number that only events change."""
    return [yp[0] - y[1], yp[1] + G, yp[2]]


def bounce(t, y, yp):
    return [0.0, -0.8 * y[1], y[2] + 1.0]


IMPACT = math.sqrt(2.0 / G)


# --- through zero -----------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize("order", [1, -1])
def test_an_event_set_off_by_another(trace, terminal, order):
    """The second bounce raises the count from 1 to 2, past 1.5."""
    floor = unknown(0, direction=-1, apply=bounce)
    count = unknown(2, 1.5, terminal=terminal)
    sol = solve_dae(ball, (0, 2), [1.0, 0.0, 0.0], events=[floor, count][::order], trace=trace,
                    **TIGHT)
    bounces, counted = sol.t_events[::order]
    second = IMPACT * (1 + 2 * 0.8)
    assert bounces[:2] == pytest.approx([IMPACT, second], abs=1e-6)
    assert counted.tolist() == [bounces[1]]
    speed = 0.8**2 * G * IMPACT
    seen = sol.y_events[::order][1][0]
    assert seen == pytest.approx([0.0, speed, 2.0], abs=1e-6)      # after the bounce
    assert sol.status == (Status.EVENT if terminal else Status.REACHED_END)
    assert sol.t[-1] == (counted[0] if terminal else 2.0)


@BOTH
@pytest.mark.parametrize(("direction", "happens"), [(-1, False), (0, True), (1, True)])
def test_the_direction_counts(trace, direction, happens):
    jump = clock(1.0, apply=lambda t, y, yp: y + 5.0)
    passed = unknown(0, 3.0, direction=direction)
    sol = solve_dae(line, (0, 2), [0.0], events=[jump, passed], trace=trace)
    assert sol.t_events[1].tolist() == [1.0] * happens


@BOTH
def test_a_chain_acts_one_after_the_other(trace):
    """Each falls onto the next, 30 of them at one time, in the order of the chain."""
    n, fallen = 30, []

    def still(t, y, yp):
        return [yp[i] for i in range(n)]

    def domino(i):
        def fall(t, y, yp):
            fallen.append(i)
            y[(i + 7) % n] = 1.0
            return y

        return unknown(i, 0.5, direction=1, apply=fall)

    push = clock(1.0, apply=lambda t, y, yp: [1.0, *y[1:]])
    sol = solve_dae(still, (0, 2), [0.0] * n, events=[*map(domino, range(n)), push], trace=trace)
    assert sol.success, sol.message
    assert fallen == [7 * i % n for i in range(n)]
    assert all(times.tolist() == [1.0] for times in sol.t_events)
    assert sol.y[:, -1] == pytest.approx(1.0)


@BOTH
def test_those_of_one_round_act_in_the_order_of_their_number(trace):
    add = unknown(0, 3.0, apply=lambda t, y, yp: y + 1.0)
    double = unknown(0, 2.0, apply=lambda t, y, yp: 2.0 * y)
    jump = clock(1.0, apply=lambda t, y, yp: y + 5.0)
    for events, end in [([add, double, jump], 15.0), ([double, add, jump], 14.0)]:
        sol = solve_dae(line, (0, 2), [0.0], events=events, trace=trace)
        assert [len(times) for times in sol.t_events] == [1, 1, 1]
        assert sol.y[0, -1] == pytest.approx(end)


@BOTH
def test_the_event_that_acts_is_not_set_off_by_itself(trace):
    """Its own jump is not a passage, whichever way it goes."""
    for jump in (-3.0, 3.0):
        own = unknown(0, 1.0, apply=lambda t, y, yp, jump=jump: y + jump, terminal=3)
        sol = solve_dae(line, (0, 3), [0.0], events=own, trace=trace)
        assert sol.t_events[0] == pytest.approx([1.0], abs=1e-9)
        assert sol.y[0, -1] == pytest.approx(3.0 + jump)


@BOTH
def test_an_event_may_be_set_off_again_by_another(trace):
    """The ball is thrown up by the floor, and back below it by the ceiling."""
    floor = unknown(0, 0.0, direction=-1, apply=lambda t, y, yp: [5.0, y[1] + 1.0])
    ceiling = unknown(0, 4.0, direction=1,
                      apply=lambda t, y, yp: [-1.0 if y[1] < 3.0 else 2.0, y[1]])
    sol = solve_dae(lambda t, y, yp: [yp[0] + 1.0, yp[1]], (0, 2), [1.0, 0.0],
                    events=[floor, ceiling], trace=trace)
    assert sol.success, sol.message
    assert sol.t_events[0] == pytest.approx([1.0] * 3)
    assert sol.t_events[1] == pytest.approx([1.0] * 3)
    assert sol.y[:, -1] == pytest.approx([1.0, 3.0])


@BOTH
def test_a_chain_without_end_names_its_events(trace):
    up = unknown(1, 0.4, direction=-1, apply=lambda t, y, yp: [y[0], 1.0])
    down = unknown(1, 0.5, direction=1, apply=lambda t, y, yp: [y[0], 0.0])
    begin = clock(1.0, apply=lambda t, y, yp: [y[0], 1.0])
    sol = solve_dae(lambda t, y, yp: [yp[0] - 1.0, yp[1]], (0, 2), [0.0, 0.0],
                    events=[up, begin, down], trace=trace)
    assert sol.status == Status.EVENT_STORM
    assert sol.diagnosis.cause == Cause.EVENT_STORM
    assert "events[0] and events[2] set each other off" in sol.message
    assert sol.t[-1] == pytest.approx(1.0)
    assert sol.y[0, -1] == pytest.approx(1.0)          # what was computed is there


@BOTH
def test_set_off_at_the_end_of_the_interval_and_going_backward(trace):
    jump = clock(2.0, apply=lambda t, y, yp: y + 5.0)
    passed = unknown(0, 3.0, apply=lambda t, y, yp: y + 100.0)
    sol = solve_dae(line, (0, 2), [0.0], events=[passed, jump], trace=trace)
    assert sol.status == Status.REACHED_END
    assert [times.tolist() for times in sol.t_events] == [[2.0], [2.0]]
    assert sol.y[0, -1] == pytest.approx(107.0)
    back = solve_dae(line, (3, 1), [-1.0], events=[passed, jump], trace=trace, dense_output=True)
    assert [times.tolist() for times in back.t_events] == [[2.0], [2.0]]
    assert back.y[0, -1] == pytest.approx(102.0)
    assert back.sol([2.5, 1.5])[0][0] == pytest.approx([-1.5, 102.5])


# --- onto zero ------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("slope", [0.0, 1.0, -1.0])
def test_a_jump_onto_zero_is_an_event(trace, slope):
    """As a step that ends there is, wherever the function goes then."""
    drain = clock(1.0, apply=lambda t, y, yp: [0.3])
    empty = unknown(0, 0.3, direction=-1, terminal=2)
    sol = solve_dae(lambda t, y, yp: [yp[0] - slope], (0, 2), [5.0], events=[drain, empty],
                    trace=trace)
    assert sol.success
    assert sol.t_events[1].tolist() == [1.0]
    assert sol.y[0, -1] == pytest.approx(0.3 + slope)


@BOTH
def test_a_jump_onto_zero_against_the_direction_is_none(trace):
    for slope in (0.0, 1.0, -1.0):
        jump = clock(1.0, apply=lambda t, y, yp: [0.3])
        falling = unknown(0, 0.3, direction=1)
        sol = solve_dae(lambda t, y, yp, slope=slope: [yp[0] - slope], (0, 2), [5.0],
                        events=[jump, falling], trace=trace)
        assert len(sol.t_events[1]) == 0


@BOTH
@pytest.mark.parametrize(("force", "hits"), [(-2.0, 0), (2.0, 1)])
def test_a_function_that_is_changed_to_zero_waits(trace, force, hits):
    """A stop is put where the mass is: it is hit if the mass moves on, not if it goes back."""
    place, force_now = [50.0], [0.0]

    def put(t, y, yp):
        place[0], force_now[0] = 1.0, force
        return y

    stop = event(lambda t, y, yp: y[0] - place[0], direction=1)
    sol = solve_dae(lambda t, y, yp: [yp[0] - y[1], yp[1] - force_now[0]], (0, 2), [1.0, 0.0],
                    events=[stop, clock(1.0, apply=put)], trace=trace)
    assert sol.success
    assert sol.t_events[0] == pytest.approx([1.0] * hits, abs=1e-3)
    assert sol.y[0, -1] == pytest.approx(1.0 + force / 2, abs=1e-4)


@BOTH
def test_a_function_that_is_changed_past_zero_is_an_event(trace):
    place = [10.0]

    def move(t, y, yp):
        place[0] = 0.5
        return y

    stop = event(lambda t, y, yp: y[0] - place[0], direction=1, terminal=True)
    sol = solve_dae(line, (0, 2), [0.0], events=[stop, clock(1.0, apply=move)], trace=trace)
    assert sol.status == Status.EVENT
    assert sol.t_events[0].tolist() == [1.0]


# --- by the equations ---------------------------------------------------------------------------


def cars_that_stick(trace, *events, t_end=3.0, **options):
    """Masses 1 and 9 stick together at t = 0.9; momentum says v = 1 from then on."""
    stuck = [False]

    def cars(t, y, yp):
        x1, x2, v1, v2, f = y
        return [yp[0] - v1, yp[1] - v2, yp[2] + f, 9 * yp[3] - f, x2 - x1 - 1 if stuck[0] else f]

    def stick(t, y, yp):
        stuck[0] = True
        return y

    hit = event(gap, direction=-1, apply=stick)
    return solve_dae(cars, (0, t_end), [0, 10, 10, 0, 0], events=[hit, *events], trace=trace,
                     **options)


def gap(t, y, yp):
    return y[1] - y[0] - 1


@BOTH
@pytest.mark.parametrize("terminal", [False, True])
def test_the_law_of_jumps_sets_events_off(trace, terminal):
    slow = unknown(2, 5.0, terminal=terminal)
    sol = cars_that_stick(trace, unknown(3, 0.5, direction=1), slow, unknown(3, 0.5, direction=-1))
    assert sol.success
    assert [len(times) for times in sol.t_events] == [1, 1, 1, 0]
    assert sol.t_events[1].tolist() == sol.t_events[2].tolist() == sol.t_events[0].tolist()
    assert sol.y_events[2][0][2:4] == pytest.approx([1.0, 1.0], abs=1e-9)
    assert sol.status == (Status.EVENT if terminal else Status.REACHED_END)


@BOTH
@pytest.mark.parametrize("rtol", [1e-3, 1e-6, 1e-9])
def test_what_the_equations_hold_at_zero_does_not_happen_by_round_off(trace, rtol):
    """The distance, and the difference of the speeds, in all directions."""
    def difference(t, y, yp):
        return y[2] - y[3]

    watched = [event(gap), event(gap, direction=1), event(lambda t, y, yp: -3.0 * gap(t, y, yp)),
               event(difference), event(difference, direction=1)]
    sol = cars_that_stick(trace, *watched, t_end=100.0, rtol=rtol)
    assert sol.success
    assert [len(times) for times in sol.t_events] == [1, 1, 0, 1, 1, 0]
    assert sol.y[2:4, -1] == pytest.approx([1.0, 1.0], rel=1e-3)


@pytest.mark.parametrize(("force", "hits", "end"), [(-2.0, 1, -3.0), (2.0, 2, 1.0)])
def test_a_mass_that_its_stop_lets_go(force, hits, end):
    """It is stopped again if it is pushed on."""
    held = [False]

    def mass(t, y, yp):
        x, v, f = y
        return [yp[0] - v, yp[1] - (1.0 if t < 3.0 else force) - f, x - 1.0 if held[0] else f]

    def hold(t, y, yp):
        held[0] = True
        return y

    def let_go(t, y, yp):
        held[0] = False
        return y

    stop = unknown(0, 1.0, direction=1, apply=hold)
    sol = solve_dae(mass, (0, 5), [0.0, 0.0, 0.0], events=[stop, clock(3.0, apply=let_go)], **TIGHT)
    assert sol.success, sol.message
    assert sol.t_events[0] == pytest.approx([math.sqrt(2.0), 3.0][:hits], abs=1e-4)
    assert sol.y[0, -1] == pytest.approx(end, abs=1e-6)


@BOTH
def test_a_rope_that_goes_taut(trace):
    """The length, and the speed along the rope, which the taut rope holds at zero."""
    taut = [False]

    def bob(t, y, yp):
        x, z, u, w, force = y
        length = x * x + z * z - 1 if taut[0] else force
        return [yp[0] - u, yp[1] - w, yp[2] + 2 * force * x, yp[3] + 2 * force * z + G, length]

    def pull(t, y, yp):
        taut[0] = True
        return y

    def stretch(t, y, yp):
        return y[0] ** 2 + y[1] ** 2 - 1

    def speed(t, y, yp):
        return y[0] * y[2] + y[1] * y[3]

    events = [event(stretch, direction=1, apply=pull), event(stretch),
              event(stretch, direction=-1), event(speed, direction=-1), event(speed, direction=1)]
    sol = solve_dae(bob, (0, 10), [0.5, 0.0, 0.0, -0.1, 0.0], events=events, trace=trace,
                    rtol=1e-7, atol=1e-9)
    assert sol.success, sol.message
    assert [len(times) for times in sol.t_events] == [1, 1, 0, 1, 1]
    assert sol.t_events[4].tolist() == [0.0]           # it begins to fall
    assert sol.t_events[3].tolist() == sol.t_events[0].tolist()
    fallen = math.sqrt(0.75)
    assert sol.t_events[0] == pytest.approx(
        [(math.sqrt(0.01 + 2 * G * fallen) - 0.1) / G], abs=1e-6)


def test_a_structure_that_a_condition_changes_sets_events_off():
    """Capacitors of 1 and 9 are connected once a clock of theirs has come to 1."""
    def caps(t, y, yp):
        v1, v2, i, clock = y
        return [yp[0] + i, 9 * yp[1] - i, v1 - v2 if clock > 1.0 else i, yp[3] - 1.0]

    low, high = unknown(0, 5.0), unknown(1, 0.5)
    sol = solve_dae(caps, (0, 2), [10.0, 0.0, 0.0, 0.0], events=[low, high])
    assert sol.success, sol.message
    assert sol.y[:2, -1] == pytest.approx([1.0, 1.0])
    assert [times.tolist() for times in sol.t_events] == [pytest.approx([1.0])] * 2


def test_a_kink_sets_events_off_that_look_at_slopes():
    def fun(t, y, yp):
        return [yp[0] - (1.0 if y[0] < 1.0 else 3.0)]

    fast = event(lambda t, y, yp: yp[0] - 2.0, apply=lambda t, y, yp: y + 10.0)
    sol = solve_dae(fun, (0, 2), [0.0], events=fast, **TIGHT)
    assert sol.t_events[0] == pytest.approx([1.0])
    assert sol.y[0, -1] == pytest.approx(14.0)


def test_a_structure_that_a_callback_changes_sets_events_off():
    connected = [False]

    def caps(t, y, yp):
        v1, v2, i = y
        return [yp[0] + i, 9 * yp[1] - i, v1 - v2 if connected[0] else i]

    def connect(t, y, yp):
        connected[0] |= t >= 1.0

    sol = solve_dae(caps, (0, 2), [10.0, 0.0, 0.0], events=unknown(0, 5.0, terminal=True),
                    callback=connect, max_step=0.25)
    assert sol.status == Status.EVENT
    assert sol.t_events[0] == pytest.approx([1.0], abs=0.25)
    assert sol.y_events[0][0][:2] == pytest.approx([1.0, 1.0])


@BOTH
def test_an_event_at_a_break_sets_others_off(trace):
    jump = clock(1.0, apply=lambda t, y, yp: y + 5.0)
    passed = unknown(0, 3.0, apply=lambda t, y, yp: y + 100.0)
    sol = solve_dae(line, (0, 2), [0.0], events=[passed, jump], t_breaks=[1.0], trace=trace)
    assert [times.tolist() for times in sol.t_events] == [[1.0], [1.0]]
    assert sol.y[0, -1] == pytest.approx(107.0)


@BOTH
def test_functions_that_have_no_value_beside_zero(trace):
    """A root that is zero at the event, and cannot be asked for on the other side."""
    level = event(lambda t, y, yp: math.sqrt(y[0]) - 0.5, direction=-1,
                  apply=lambda t, y, yp: [0.0])
    empty = event(lambda t, y, yp: math.sqrt(y[0]), direction=-1, terminal=True)
    sol = solve_dae(lambda t, y, yp: [yp[0] + 1.0], (0, 2), [1.0], events=[level, empty],
                    trace=trace)
    assert sol.status == Status.EVENT
    assert sol.t_events[0] == pytest.approx([0.75])
    assert sol.t_events[1].tolist() == sol.t_events[0].tolist()


# --- at random ----------------------------------------------------------------------------------


def check(seed, trace):
    rng = np.random.default_rng(seed)
    rules = random_rules(rng, int(rng.integers(2, 7)))
    y0 = rng.normal(size=4)
    times, y, end = follow(rules, 5.0, list(y0))
    sol = solve_dae(lines, (0, 5), y0, events=[rule.event() for rule in rules], trace=trace,
                    rtol=1e-8, atol=1e-10)
    how = {Status.REACHED_END: "end", Status.EVENT: "event", Status.EVENT_STORM: "storm"}
    assert how[sol.status] == end
    if end != "storm":                         # where the last of them are too close to be counted
        assert all(map(is_close, sol.t_events, times))
    if end == "end":
        np.testing.assert_allclose(sol.y[:, -1], y, atol=1e-6)


@BOTH
@pytest.mark.parametrize("seeds", range(10))
def test_random_events_follow_the_rule(seeds, trace):
    for seed in range(10 * seeds, 10 * seeds + 10):
        check(seed, trace)


@pytest.mark.slow
@BOTH
def test_more_random_events_follow_the_rule(trace):
    for seed in range(100, 1000):
        check(seed, trace)
