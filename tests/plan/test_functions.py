"""Event functions as programs: the same events, found without a call in every step."""

import math

import numpy as np
import pytest
from support.helpers import count_calls

from tether import Status, solve_dae


def attributed(fun, **attributes):
    for name, value in attributes.items():
        setattr(fun, name, value)
    return fun


def swing(t, y, yp):
    """Harmonic motion with friction."""
    return [yp[0] - y[1], yp[1] + y[0] + 0.01 * y[1]]


def swing_events():
    return {
        "zero": [lambda t, y, yp: y[0]],
        "up": [attributed(lambda t, y, yp: y[0], direction=1)],
        "down, third": [attributed(lambda t, y, yp: y[0] - 0.1, direction=-1, terminal=3)],
        "slope": [lambda t, y, yp: yp[1]],
        "several": [lambda t, y, yp: y[0], lambda t, y, yp: y[1] * abs(y[1]),
                    attributed(lambda t, y, yp: t - 17.25, terminal=True)],
        "at the start": [lambda t, y, yp: y[0] - 1.0],
        "branch": [lambda t, y, yp: y[0] - 0.5 if t < 10.0 else y[0] + 0.5],
        "kick": [attributed(lambda t, y, yp: y[1] + 0.9, direction=-1,
                            apply=lambda t, y, yp: [y[0], y[1] + 0.4])],
        "truth": [lambda t, y, yp: (y[0] > 0.0) - 0.5],
    }


@pytest.mark.parametrize("backend", ["machine", "c"])
@pytest.mark.parametrize("name", list(swing_events()))
def test_traced_events_are_the_same_events(name, backend):
    def run():
        return solve_dae(swing, (0.0, 30.0), [1.0, 0.0], events=swing_events()[name],
                         t_eval=np.linspace(0.0, 30.0, 50), rtol=1e-7,
                         options={"backend": backend})

    traced = run()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tether.run.watch.traced_events", lambda *args: None)
        called = run()
    assert traced.status == called.status
    np.testing.assert_array_equal(traced.t, called.t)
    np.testing.assert_array_equal(traced.y, called.y)
    for ours, theirs in zip(traced.t_events, called.t_events, strict=True):
        np.testing.assert_array_equal(ours, theirs)
        assert len(ours) > 0
    for ours, theirs in zip(traced.y_events, called.y_events, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_traced_events_are_not_called_in_every_step():
    def event(t, y, yp):
        return y[0] + 5.0

    def run():
        return solve_dae(swing, (0.0, 30.0), [1.0, 0.0], events=event)

    run()
    calls, sol = count_calls([event], run)
    assert sol.stats.steps > 100
    at_the_end = 3                     # whether one misses the end of the run by round-off
    assert calls <= sol.stats.checks + at_the_end < 20
    calls, _ = count_calls([event], lambda: solve_dae(swing, (0.0, 30.0), [1.0, 0.0], events=event,
                                                   trace="never"))
    assert calls > 100


def test_events_are_traced_once(traces):
    def sweep(level):
        def event(t, y, yp, level):
            return y[0] - level

        return solve_dae(lambda t, y, yp, level: swing(t, y, yp), (0.0, 10.0), [1.0, 0.0],
                         events=event, args=(level,))

    found = [sweep(level).t_events[0][0] for level in (0.1, 0.2, 0.3)]
    assert found[0] > found[1] > found[2]
    assert len(traces) == 2            # the equations and the event


def test_what_apply_reads_does_not_matter(traces):
    """Neither does it make the event untraceable, nor is it traced again after every change."""
    count = 0

    def event(t, y, yp):
        return y[0]

    def apply(t, y, yp):
        nonlocal count
        count += 1
        return y

    event.apply, event.direction = apply, -1
    for _ in range(2):
        calls, sol = count_calls([event], lambda: solve_dae(swing, (0.0, 100.0), [1.0, 0.0],
                                                         events=event))
    assert len(sol.t_events[0]) > 10
    assert calls < 20 * len(sol.t_events[0])           # to locate them
    assert count == 2 * len(sol.t_events[0])
    assert len(traces) == 2


@pytest.mark.parametrize("who", ["apply", "args"])
@pytest.mark.parametrize("trace", ["never", "auto"])
def test_events_notice_changes_by_themselves(who, trace):
    """The level rises by one each time it is reached."""
    level = np.array([1.0])

    def rise(t, y, yp, *args):
        level[0] = min(np.floor(y[0] + 1e-6) + 1.0, 5.0)
        return y

    def event(t, y, yp, *args):
        return y[0] - (args[0] if args else level)[0]

    event.apply = rise
    sol = solve_dae(lambda t, y, yp, *args: [yp[0] - 1.0], (0.0, 6.5), [0.5], events=event,
                    args=(level,) if who == "args" else (), trace=trace)
    np.testing.assert_allclose(sol.t_events[0], [0.5, 1.5, 2.5, 3.5, 4.5], atol=1e-6)


@pytest.mark.parametrize(("modes", "traced"), [(2, 2), (100, 8)])
def test_events_that_keep_changing_are_called_after_a_while(modes, traced, traces):
    """A program for every mode, unless there are too many."""
    mode = [0]

    def event(t, y, yp):
        return np.sin(np.pi * (y[0] + mode[0] * 1e-3))

    def change(t, y, yp):
        mode[0] = (mode[0] + 1) % modes
        return y

    event.apply = change
    sol = solve_dae(lambda t, y, yp: [yp[0] - 1.0], (0.0, 20.0), [0.5], events=event, max_step=0.5)
    assert sol.success
    found, y = [], 0.5
    for number in range(15):           # the next zero of the mode, as it is after the change
        shift = 1e-3 * (number % modes)
        y = np.floor(y + shift + 1e-9) + 1.0 - shift
        found.append(y - 0.5)
    np.testing.assert_allclose(sol.t_events[0][:15], found, atol=1e-6)
    assert len(traces) == 1 + traced


@pytest.mark.parametrize("trace", ["never", "auto"])
def test_events_notice_changes_by_a_callback(trace):
    level = [10.0]

    def lower(t, y, yp):
        if t > 1.0:
            level[0] = 3.0

    sol = solve_dae(lambda t, y, yp: [yp[0] - 1.0], (0.0, 5.0), [0.5], max_step=0.1, trace=trace,
                    events=lambda t, y, yp: y[0] - level[0], callback=lower)
    assert sol.t_events[0] == pytest.approx([2.5])


@pytest.mark.parametrize("who", ["fun", "jac", "constraints"])
@pytest.mark.parametrize("trace", ["never", "auto"])
def test_events_that_read_what_others_write(who, trace):
    """Where a function with effects is called, the events are called as well."""
    calls, limit = dict.fromkeys(("fun", "jac", "constraints"), 0), 3 if who == "jac" else 40

    def fun(t, y, yp):
        if who == "fun":
            calls["fun"] += 1
        return [yp[0] + y[0] ** 2, yp[1] - y[0] ** 2]

    def jac(t, y, yp):
        calls["jac"] += 1
        return [[2 * y[0], 0.0], [-2 * y[0], 0.0]], [[1.0, 0.0], [0.0, 1.0]]

    def total(t, y):
        if who == "constraints":
            calls["constraints"] += 1
        return y[0] + y[1] - 1.0

    sol = solve_dae(fun, (0.0, 30.0), [1.0, 0.0], trace=trace,
                    jac=jac if who == "jac" else None, constraints=total,
                    events=lambda t, y, yp: min(calls[who], limit) - limit + 0.5)
    assert calls[who] >= limit
    assert len(sol.t_events[0]) == 1


@pytest.mark.parametrize("trace", ["never", "auto"])
@pytest.mark.parametrize(
    ("event", "error"),
    [(lambda t, y, yp: math.sqrt(y[0]) - 0.1, ValueError),
     (lambda t, y, yp: 1.0 / max(y[0], 0.0).__float__(), ZeroDivisionError),
     (lambda t, y, yp: math.exp(1000.0 - 400.0 * float(y[0])), OverflowError)],
    ids=["sqrt", "division", "overflow"],
)
def test_events_without_a_value_end_the_run_there(event, error, trace):
    sol = solve_dae(lambda t, y, yp: [yp[0] + 1.0], (0.0, 2.0), [1.0], events=event, trace=trace)
    assert sol.status == Status.NON_FINITE
    assert type(sol.diagnosis.exception) is error
    assert len(sol.t_events[0]) == (error is ValueError)
    if error is not OverflowError:
        assert sol.t[-1] == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("trace", ["never", "auto"])
def test_other_exceptions_of_events_pass_through(trace):
    with pytest.raises(IndexError):
        solve_dae(lambda t, y, yp: [yp[0] + 1.0], (0.0, 2.0), [1.0], trace=trace,
                  events=lambda t, y, yp: y[0] if y[0] > -0.5 else [][0])


def test_one_event_that_cannot_be_traced():
    def plain(t, y, yp):
        return y[0]

    def odd(t, y, yp):
        return float(f"{y[1]:.12f}")

    def run():
        return solve_dae(swing, (0.0, 10.0), [1.0, 0.0], events=[plain, odd])

    run()
    calls, sol = count_calls([plain], run)
    assert calls > sol.stats.steps
    np.testing.assert_allclose(sol.t_events[0][0], np.pi / 2, atol=0.02)
    np.testing.assert_allclose(sol.t_events[1][1], np.pi, atol=0.02)


def test_events_of_a_reduced_system():
    """They see the user's unknowns."""
    def pendulum(t, y, yp):
        x, z, u, w, lam = y
        return [yp[0] - u, yp[1] - w, yp[2] + lam * x, yp[3] + lam * z + 9.81, x**2 + z**2 - 1.0]

    def event(t, y, yp):
        return sum(y[:-4]) + 0.0 * yp[4] if len(y) == len(yp) else np.nan

    def run():
        return solve_dae(pendulum, (0.0, 4.0), [1.0, 0.0, 0.0, 0.0, 0.0], events=event, rtol=1e-8)

    sol = run()
    assert "reduced" in sol.how
    calls, sol = count_calls([event], run)
    assert calls < 15 * len(sol.t_events[0])
    assert sol.t_events[0][0] == pytest.approx(0.5919, abs=1e-3)
    assert np.abs(sol.y_events[0][:, 0]).max() < 1e-12
