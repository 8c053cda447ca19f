"""Runs over jumps at times that the user knows: t_breaks."""

import math

import numpy as np
import pytest
from support.helpers import decay

from tether import Bdf, Cause, solve_dae


def after(t, edge, inclusive):
    return 1.0 if (t >= edge if inclusive else t > edge) else 0.0


@pytest.mark.parametrize("inclusive", [False, True])
@pytest.mark.parametrize("trace", ["auto", "never"])
def test_breaks_carry_a_run_over_jumps(inclusive, trace):
    """x' = -z, z = x + steps at 0.25 and 0.5: solved piece by piece."""
    def fun(t, y, yp):
        steps = after(t, 0.25, inclusive) + after(t, 0.5, inclusive)
        return [yp[0] + y[1], y[1] - y[0] - steps]

    sol = solve_dae(fun, (0, 1), [1.0, 1.0], t_breaks=[0.5, 0.25], dense_output=True, trace=trace)
    assert sol.success, sol.message
    assert sol.diagnosis.cause == Cause.NONE
    x, start = 1.0, 0.0
    for number, end in enumerate([0.25, 0.5, 1.0]):
        x = (x + number) * math.exp(-(end - start)) - number
        start = end
        assert sol.sol(end)[0][0] == pytest.approx(x, abs=1e-5)
        assert sol.sol(end)[0][1] == pytest.approx(x + number, abs=1e-5)
        assert np.count_nonzero(sol.t == end) == (2 if end < 1 else 1)
    assert np.all(np.diff(sol.t) >= 0)


def test_breaks_at_output_times_return_the_value_before():
    sol = solve_dae(lambda t, y, yp: [y[0] - (t > 0.5)], (0, 1), [0.0], t_breaks=[0.5],
                    t_eval=[0.0, 0.5, 0.75, 1.0])
    assert sol.success
    assert sol.y[0] == pytest.approx([0.0, 0.0, 1.0, 1.0])


def test_breaks_of_a_kink_that_is_differentiated():
    sol = solve_dae(lambda t, y, yp: [yp[1] - y[0], y[1] - np.maximum(t - 0.6, 0.0)], (0, 1),
                    [0.0, 0.0], t_breaks=[0.6])
    assert sol.success, sol.message
    assert sol.y[:, -1] == pytest.approx([1.0, 0.4])


@pytest.mark.parametrize("trace", ["auto", "never"])
def test_a_break_at_the_end_keeps_the_jump_out(trace):
    def fun(t, y, yp):
        return [yp[0] + y[0], y[1] - y[0] - (t >= 1)]

    found = solve_dae(fun, (0, 1), [1.0, 1.0], trace=trace).diagnosis
    if trace == "auto":                    # the function itself says when it switches
        assert found.cause == Cause.NONE
    else:
        assert found.cause == Cause.DISCONTINUITY
        assert any("t_breaks=[1]" in remedy for remedy in found.remedies)
        assert "no step across it was accepted, however small" in found.evidence
    for t_eval in (None, [0.5, 1.0]):
        sol = solve_dae(fun, (0, 1), [1.0, 1.0], trace=trace, t_breaks=[1.0], t_eval=t_eval,
                        dense_output=True)
        assert sol.success
        assert sol.t[-1] == 1.0
        assert sol.y[1, -1] == pytest.approx(math.exp(-1), abs=1e-5)
        assert sol.sol(1.0)[0][1] == pytest.approx(math.exp(-1), abs=1e-5)


def test_breaks_backward_and_outside():
    sol = solve_dae(lambda t, y, yp: [y[0] - (t > -0.5)], (0, -1), [1.0],
                    t_breaks=[-0.5, 3.0, -1.0])
    assert sol.success
    assert sol.y[0, -1] == 0.0


def test_breaks_with_events():
    def event(t, y, yp):
        return y[0] - 0.3

    sol = solve_dae(lambda t, y, yp: [yp[0] - (1.0 if t < 0.5 else -1.0)], (0, 1), [0.0],
                    t_breaks=[0.5], events=event)
    assert sol.success
    assert sol.t_events[0] == pytest.approx([0.3, 0.7], abs=1e-6)


@pytest.mark.parametrize(("breaks", "error"), [
    ("0.5", TypeError), (0.5, TypeError), ([math.nan], ValueError), ([[0.1, 0.2]], TypeError),
])
def test_bad_breaks_are_refused(breaks, error):
    with pytest.raises(error, match="t_breaks"):
        solve_dae(decay, (0, 1), [1.0], t_breaks=breaks)


# --- what the user does while a break is reached ------------------------------------------------


def two_switches(t, y, yp):
    return [yp[0] - (1.0 if 1 < t < 2 else 0.0) - 0.1]


@pytest.mark.parametrize("level", [50.0, 0.2, 1.25])
def test_a_callback_and_an_event_between_two_switches(level):
    """After each call events are examined anew: not even then is a break passed by."""
    times = []
    sol = solve_dae(two_switches, (0, 3), [0.0], events=lambda t, y, yp: y[0] - level,
                    callback=lambda t, y, yp: times.append(t))
    assert sol.y[0, -1] == pytest.approx(1.3)
    assert np.diff(times).max() < 0.6
    assert len(sol.t_events[0]) == (level < 1.3)


def test_a_bound_that_is_moved_at_a_break():
    def carried(t, y, yp):
        x, v, force = y
        return [yp[0] - v, yp[1] - force, x - np.sin(t) if t < 1 else force]

    run = Bdf(carried, 0.0, [0.0, 1.0, 0.0], t_bound=2.0)
    while run.t < 3.0:
        run.t_bound = 3.0
        run.step()
    assert run.y == pytest.approx([np.sin(1) + 2 * np.cos(1), np.cos(1), 0.0], abs=1e-5)
