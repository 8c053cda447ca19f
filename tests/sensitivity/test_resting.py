"""Events whose functions are zero while the system rests on a surface, as where friction sticks."""

import numpy as np
import pytest
from support.derivatives import FINE, TIGHT, adjoint_error, differences, largest_error

from tether import solve_dae, vjp

ARGS = (1.0, 10.0, 0.2, 2.0)


def sliding(t, y, yp, mass, spring, belt, dry):
    """A block on a spring, dragged by a belt; the second unknown is how fast it slides."""
    x, u = y
    return [yp[0] - (belt - u), -mass * yp[1] + spring * x - dry * np.sign(u)]


def dragged(t, y, yp, mass, spring, belt, dry):
    """The same with the speed of the block."""
    x, v = y
    return [yp[0] - v, mass * yp[1] + spring * x - dry * np.sign(belt - v)]


def scaled(t, y, yp, *args):
    return y[1] * (1.0 + y[0] ** 2)


def against_the_belt(t, y, yp, mass, spring, belt, dry):
    return (belt - y[1]) * (1.0 + y[0] ** 2)


def event(fun, apply):
    def found(t, y, yp, *args):
        return fun(t, y, yp, *args)

    found.apply = apply
    return found


def compare(fun, y0, span, **options):
    """Compare derivatives of the end and of the times of events with differences; return both."""
    def run(changed, **more):
        return solve_dae(fun, span, y0, args=tuple(changed * ARGS), **options, **more)

    sol = run(np.ones(4), sensitivity="args", **FINE)
    size = np.array(ARGS)[:, None]
    right = differences(lambda p: run(p, **TIGHT).y[:, -1], np.ones(4), 1e-5)
    times = differences(lambda p: run(p, **TIGHT).t_events[0], np.ones(4), 1e-5)
    by_end = largest_error(sol.sens[:, :, -1] * size, right)
    by_time = largest_error(sol.sensitivities.t_events[0].T * size, times)
    return by_end, by_time, sol


@pytest.mark.parametrize(("fun", "function", "y0"), [
    (sliding, scaled, [0.0, 0.2]), (dragged, against_the_belt, [0.0, 0.0]),
])
def test_times_at_which_friction_begins_to_stick(fun, function, y0):
    """The time of the event and that of the surface may differ by round-off."""
    by_end, by_time, sol = compare(fun, y0, (0, 0.8), events=function)
    assert len(sol.t_events[0]) == 1
    assert by_end < 1e-6
    assert by_time < 1e-6


@pytest.mark.parametrize("y0", [[0.0, 0.2], [-0.5, -0.5]])
def test_what_changes_the_state_at_rest_happens_when_the_rest_begins(y0):
    """On the surface the function of the event says nothing about the time."""
    moved = event(
        scaled, lambda t, y, yp, mass, spring, belt, dry: [0.9 * y[0] + 0.01 * belt, y[1]]
    )
    by_end, by_time, sol = compare(sliding, y0, (0, 0.8), events=moved)
    _, pullback = vjp(sliding, (0, 0.8), y0, args=ARGS, events=moved, **FINE)
    assert any(passage.at_once for passage in pullback._sweep.passages)
    assert len(sol.t_events[0]) == 2
    assert by_end < 1e-6
    assert by_time < 1e-6
    assert adjoint_error(sliding, (0, 0.8), y0, "args", args=ARGS, events=moved, **FINE) < 1e-10


def test_events_by_round_off_have_times_without_derivatives():
    """Nothing depends on when they happen, so the solution has derivatives all the same."""
    run = {"args": ARGS, "events": scaled, "sensitivity": "args"}
    sol = solve_dae(sliding, (0, 0.5), [0.0, 0.0], **run, **FINE)
    assert np.isnan(sol.sensitivities.t_events[0]).all()
    assert np.allclose(sol.sens[:, :, -1], [[0, 0], [0, 0], [0.5, 0], [0, 0]], atol=1e-9)


def test_a_state_that_is_changed_by_round_off_has_no_derivative():
    jump = event(scaled, lambda t, y, yp, *args: [y[0], y[1] + 0.1])
    run = {"args": ARGS, "events": jump, "rtol": 1e-9, "atol": 1e-11}
    sol = solve_dae(sliding, (0, 0.5), [0.0, 0.0], **run)
    if not len(sol.t_events[0]):
        pytest.skip("no event by round-off here")
    with pytest.raises(ValueError, match="its time has no derivative"):
        solve_dae(sliding, (0, 0.5), [0.0, 0.0], sensitivity="args", **run)


def test_a_state_that_is_changed_where_friction_lets_go():
    """Right there nothing determines to which side the block goes, and its acceleration jumps."""
    again = event(scaled, lambda t, y, yp, *args: [y[0], y[1]])
    run = {"args": ARGS, "events": again, "rtol": 1e-9, "atol": 1e-11}
    sol = solve_dae(sliding, (0, 3), [0.0, 0.2], **run)
    if len(sol.t_events[0]) < 3:
        pytest.skip("no event where friction lets go")
    with pytest.raises(ValueError, match="nothing determines to which side"):
        solve_dae(sliding, (0, 3), [0.0, 0.2], sensitivity="args", **run)
