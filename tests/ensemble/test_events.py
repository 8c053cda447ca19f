"""Events of members: in the core where they are programs and change no state."""

import types

import numpy as np
import pytest
from support.ensembles import (
    alone,
    assert_same,
    ball,
    decay,
    energy,
    ground,
    oscillator,
    pendulum,
    robertson,
)
from support.helpers import has_compiler

from tether import Status, solve_dae, solve_ensemble
from tether._core import event_log

STIFFNESS = np.linspace(1.0, 30.0, 9)


def event(fun, direction=0, terminal=False):
    found = types.FunctionType(fun.__code__, fun.__globals__, closure=fun.__closure__)
    found.direction, found.terminal = direction, terminal
    return found


def position(t, y, yp, k):
    return y[0]


def velocity(t, y, yp, k):
    return y[1] - 0.3


def acceleration(t, y, yp, k):
    return yp[1] + 0.1


def level(t, y, yp, k):
    return y[0] - 0.01 * k


def of_state_and_time(t, y, yp, k):
    return y[0] - 0.1 * t


EVENTS = {
    "one": event(position),
    "up": event(position, 1),
    "down, the third ends": event(position, -1, 3),
    "several": [event(position, 1), event(velocity), event(acceleration, -1), event(level)],
    "several, one ends": [event(position), event(velocity, 1, 2), event(acceleration)],
    "two at once": [event(position), event(position, 0, 2), event(position, 1)],
    "never": event(lambda t, y, yp, k: y[0] + 100.0),
    "zero at the start": event(lambda t, y, yp, k: y[0] - 1.0, 0, 2),
    "time and state": event(of_state_and_time, 0, 2),
    "without slopes": event(lambda t, y, k: y[1]),
    "the first step": event(lambda t, y, yp, k: y[0] - 1.0 + 1e-9, -1, True),
}


@pytest.mark.parametrize("times", [None, 6], ids=["final", "t_eval"])
@pytest.mark.parametrize("span", [(0.0, 5.0), (2.0, -2.0)], ids=["forward", "backward"])
@pytest.mark.parametrize("case", EVENTS)
def test_members_have_the_events_of_solve_dae(case, span, times):
    t_eval = None if times is None else np.linspace(*span, times)
    more = {"events": EVENTS[case], "t_eval": t_eval}
    result = solve_ensemble(oscillator, span, [1.0, 0.0], args=(STIFFNESS,), engine="threads",
                            workers=2, **more)
    assert result.in_core == len(STIFFNESS)
    for i, k in enumerate(STIFFNESS):
        sol = alone(oscillator, span, [1.0, 0.0], (float(k),), **more)
        assert_same(result, i, sol)
        assert result.message(i) == sol.message
        if times is None:
            assert result.t_final[i] == sol.t[-1]


def lowest(t, y, yp, g, length):
    return y[2]


def speed(t, y, yp, g, length):
    return y[2] ** 2 + y[3] ** 2 - 2.0


@pytest.mark.parametrize("terminal", [False, True, 2])
def test_events_on_constraints(terminal):
    events = [event(speed), event(lowest, 0, terminal)]
    g = np.linspace(5.0, 15.0, 7)
    y0 = [1.0, 0.0, 0.0, 0.0, 0.0]
    for t_eval in (None, np.linspace(0.0, 4.0, 9)):
        result = solve_ensemble(pendulum, (0.0, 4.0), y0, args=(g, 1.0), events=events,
                                t_eval=t_eval, start="quiet")
        assert result.in_core >= 6             # what rests at zero at the start may need Python
        for i, value in enumerate(g):
            assert_same(result, i, alone(pendulum, (0.0, 4.0), y0, (float(value), 1.0),
                                         events=events, t_eval=t_eval))


def test_events_beside_invariants():
    result = solve_ensemble(oscillator, (0.0, 5.0), [1.0, 0.0], args=(STIFFNESS,),
                            events=event(position), invariants=energy)
    assert result.in_core == len(STIFFNESS)
    for i, k in enumerate(STIFFNESS):
        assert_same(result, i, alone(oscillator, (0.0, 5.0), [1.0, 0.0], (float(k),),
                                     events=event(position), invariants=energy))
        zeros = (np.arange(len(result[i].t_events[0])) + 0.5) * np.pi / np.sqrt(k)
        np.testing.assert_allclose(result[i].t_events[0], zeros, rtol=1e-4)


def test_exact_times():
    k = np.linspace(0.5, 3.0, 50)
    half = event(lambda t, y, yp, rate: y[0] - 0.5, 0, True)
    result = solve_ensemble(decay, (0.0, 5.0), [1.0], args=(k,), events=half, rtol=1e-9, atol=1e-12)
    assert result.in_core == 50
    assert set(result.status) == {Status.EVENT}
    np.testing.assert_allclose(result.t_final, np.log(2.0) / k, rtol=1e-7)
    np.testing.assert_allclose(result.y[:, 0, 0], 0.5, rtol=1e-7)


def test_algebraic_unknowns_between_the_steps():
    rates = (np.linspace(0.03, 0.05, 5), 1e4, 3e7)
    crossing = event(lambda t, y, yp, *k: y[2] - 0.5, 0, True)
    result = solve_ensemble(robertson, (0.0, 1e6), [1.0, 0.0, 0.0], args=rates, events=crossing)
    assert result.in_core == 5
    for i, k in enumerate(rates[0]):
        assert_same(result, i, alone(robertson, (0.0, 1e6), [1.0, 0.0, 0.0], (float(k), 1e4, 3e7),
                                     events=crossing))


def test_programs_in_c():
    if not has_compiler():
        pytest.skip("no C compiler")
    more = {"events": [event(position), event(velocity, 1, 2)], "options": {"backend": "c"}}
    result = solve_ensemble(oscillator, (0.0, 5.0), [1.0, 0.0], args=(STIFFNESS,), **more)
    assert result.in_core == len(STIFFNESS)
    for i, k in enumerate(STIFFNESS):
        assert_same(result, i, solve_dae(oscillator, (0.0, 5.0), [1.0, 0.0], args=(float(k),),
                                         **more))


def test_more_events_than_there_is_room_for(monkeypatch):
    assert event_log.FIRST_ROWS > 100
    monkeypatch.setattr(event_log, "FIRST_ROWS", 3)
    result = solve_ensemble(oscillator, (0.0, 30.0), [1.0, 0.0], args=(STIFFNESS,),
                            events=event(position), workers=1)
    assert result.in_core == len(STIFFNESS)
    assert len(result[8].t_events[0]) > 48
    for i in (0, 8):
        assert_same(result, i, alone(oscillator, (0.0, 30.0), [1.0, 0.0], (float(STIFFNESS[i]),),
                                     events=event(position)))


def changes_state(t, y, yp, g):
    return y[0]


changes_state.direction = -1
changes_state.apply = lambda t, y, yp, g: [0.0, -0.5 * y[1]]


def untraceable(t, y, yp, g):
    return float(str(y[0]))


@pytest.mark.parametrize(("events", "why"), [
    (changes_state, "an event changes the state"), (untraceable, "events are called"),
    (event(lambda t, y, yp, g: t - 0.5), "an event depends on time alone"),
])
def test_what_needs_python(events, why):
    from tether.ensemble.members import read_members
    from tether.ensemble.task import read_task
    from tether.ensemble.worker import Worker

    g = np.array([5.0, 9.81])
    members = read_members(ball, (g,), [10.0, 0.0], None)
    task = read_task(ball, (0.0, 2.0), None, "final", members, {"events": events})
    assert Worker(task, members).note == why
    result = solve_ensemble(ball, (0.0, 2.0), [10.0, 0.0], args=(g,), events=events)
    for i, value in enumerate(g):
        assert_same(result, i, alone(ball, (0.0, 2.0), [10.0, 0.0], (float(value),),
                                     events=events))


def test_events_that_read_what_changes():
    """The program of the events is compared with the functions, too."""
    hidden = [0.0]
    crossing = event(lambda t, y, yp, g: y[0] - hidden[0])

    def change(done, total, seconds_left):
        hidden[0] = 5.0

    g = np.linspace(5.0, 15.0, 60)
    result = solve_ensemble(ball, (0.0, 5.0), [10.0, 0.0], args=(g,), events=crossing,
                            progress=change, workers=1, engine="threads")
    for i in (0, 30, 59):
        assert result[i].t_events[0][0] == pytest.approx(np.sqrt(10.0 / g[i]), rel=1e-4)


def test_processes_and_notes_of_events():
    g = np.linspace(5.0, 15.0, 9)
    near, far = (
        solve_ensemble(ball, (0.0, 5.0), [10.0, 0.0], args=(g,), events=ground, engine=engine)
        for engine in ("threads", "processes")
    )
    assert near.in_core == far.in_core == 9
    for one, other in zip(near, far, strict=True):
        np.testing.assert_array_equal(one.t_events[0], other.t_events[0])
        np.testing.assert_array_equal(one.y_events[0], other.y_events[0])
