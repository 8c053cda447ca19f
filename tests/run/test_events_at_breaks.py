"""Events at times where the run begins anew."""

import pytest
from support.events import clock, height, line

from tether import Status, solve_dae

pytestmark = pytest.mark.usefixtures("events_both_ways")


@pytest.mark.parametrize("trace", ["auto", "never"])
@pytest.mark.parametrize("span", [(0, 1), (1, 0)])
@pytest.mark.parametrize("direction", [-1, 0, 1])
def test_event_exactly_at_a_break(span, direction, trace):
    sol = solve_dae(line, span, [0.0], t_breaks=[0.5], events=clock(0.5, direction=direction),
                    trace=trace)
    forward = span[1] > span[0]
    happens = direction == 0 or (direction > 0) == forward
    assert sol.success
    assert sol.t_events[0].tolist() == [0.5] * happens
    if happens:
        assert sol.y_events[0][0] == pytest.approx([0.5 if forward else -0.5])


def test_event_that_jumps_with_the_break():
    def jumping(t, y, yp):
        return [y[0] - (1.0 if t > 0.5 else -1.0)]

    sol = solve_dae(jumping, (0, 1), [-1.0], t_breaks=[0.5], events=height)
    assert sol.t_events[0].tolist() == [0.5]
    assert sol.y_events[0][0] == pytest.approx([-1.0])


def test_terminal_event_at_a_break():
    sol = solve_dae(line, (0, 1), [0.0], t_breaks=[0.5], events=clock(0.5, terminal=True))
    assert sol.status == Status.EVENT
    assert sol.t[-1] == 0.5


def test_change_of_the_state_at_a_break():
    seen = []

    def apply(t, y, yp):
        seen.append((t, y.tolist()))
        return [y[0] + 10.0]

    def fun(t, y, yp):
        return [yp[0] - (1.0 if t < 0.5 else 2.0)]

    sol = solve_dae(fun, (0, 1), [0.0], t_breaks=[0.5], events=clock(0.5, apply=apply),
                    dense_output=True, t_eval=[0.0, 0.5, 0.75, 1.0])
    assert sol.success
    assert seen == [(0.5, pytest.approx([0.5]))]
    assert sol.y_events[0][0] == pytest.approx([0.5])
    assert sol.y[0] == pytest.approx([0.0, 0.5, 11.0, 11.5])
    assert sol.sol(0.5)[0] == pytest.approx([0.5])
    assert sol.sol(0.6)[0] == pytest.approx([10.7])


def test_zero_of_an_event_right_behind_a_break_is_reported_once():
    def landing(t, y, yp):
        return -1.0 if t <= 0.5 else 0.0

    sol = solve_dae(line, (0, 1), [0.0], t_breaks=[0.5], events=landing)
    assert sol.t_events[0].tolist() == [0.5]
