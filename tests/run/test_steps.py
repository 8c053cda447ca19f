"""Steps: rows of a run, the orders of its steps and the beginnings of its parts."""

import math

import numpy as np
import pytest

from tether.problem.options import Options
from tether.problem.problem import as_problem
from tether.run.drive import Driver
from tether.run.integration import Integration
from tether.run.interpolant import Interpolant
from tether.run.record import Record
from tether.run.steps import Steps, joined
from tether.run.watch import check_events


def ball(t, y, yp):
    return [yp[0] - y[1], yp[1] + 9.81]


def floor(t, y, yp):
    return y[0]


def bounce(t, y, yp):
    return [0.0, -0.8 * y[1]]


floor.apply, floor.direction = bounce, -1


def decay(t, y, yp):
    return [yp[0] + y[0]]


def led_then_free(t, y, yp):
    return [yp[0] - y[1], y[0] - math.sin(t) if t < 0.7 else yp[1] + y[0]]


def kept(fun, t_end, y0, events=None, breaks=()):
    """What `solve_dae` keeps of a run."""
    integration = Integration(as_problem(fun), 0.0, y0, None, Options(), t_bound=t_end)
    record = Record(integration.state, keep_steps=True, t_eval=None)
    status = Driver(integration, record, check_events(events, ()), None, None, breaks).run()
    assert not status.failed
    return record.steps(), integration


RUNS = {
    "plain": (decay, 1.0, [1.0]),
    "bounces": (ball, 2.0, [1.0, 0.0], floor),
    "breaks": (decay, 1.0, [1.0], None, [0.25, 0.5]),
    "modes": (led_then_free, 2.0, [0.0, 1.0]),
}


@pytest.mark.parametrize("name", RUNS)
def test_orders_are_orders_in_every_row(name):
    steps, integration = kept(*RUNS[name])
    assert len(steps.order) == len(steps.t) == len(steps.y) == len(steps.yp)
    assert set(steps.order) <= {1, 2, 3, 4, 5, 6}
    assert steps.begins[0] == 0
    assert np.all(np.diff(steps.begins) > 0)
    assert len(steps.begins) + len(steps.ends) == len(steps.t)
    history = steps.history()
    np.testing.assert_array_equal(history["t"], steps.t[steps.ends])
    np.testing.assert_array_equal(history["h"], np.diff(steps.t)[steps.ends - 1])
    assert len(history["order"]) == integration.state.steps


@pytest.mark.parametrize(("name", "parts"), [("plain", 1), ("bounces", 4), ("breaks", 3)])
def test_parts_begin_where_the_integration_does(name, parts):
    steps, _ = kept(*RUNS[name])
    assert len(steps.begins) == parts
    assert not any(steps.smooth)
    # the first row of a part has the time of the last row of the one before
    later = np.array(steps.begins[1:], int)
    np.testing.assert_array_equal(steps.t[later], steps.t[later - 1])


def test_a_change_of_equations_that_is_smooth_is_told_from_a_new_beginning():
    steps, _ = kept(*RUNS["modes"])
    assert any(steps.smooth)
    joints = np.array(steps.begins)[steps.smooth]
    np.testing.assert_allclose(steps.y[joints], steps.y[joints - 1], atol=1e-6)
    assert len(Interpolant(steps)._t) == len(steps.t) - len(joints)


def rows(times, begins, smooth):
    times = np.array(times, float)
    values = times[:, None] ** 2
    return Steps(times, values, 2 * times[:, None], np.full(len(times), 2, np.intc),
                 begins, smooth)


def test_joined_runs_keep_their_beginnings():
    whole = joined([rows([0, 1, 2], [0], [False]), rows([2, 3], [0], [True]),
                    rows([3, 4, 4, 5], [0, 2], [False, False])])
    np.testing.assert_array_equal(whole.t, [0, 1, 2, 2, 3, 3, 4, 4, 5])
    np.testing.assert_array_equal(whole.begins, [0, 3, 5, 7])
    np.testing.assert_array_equal(whole.smooth, [False, True, False, False])
    np.testing.assert_array_equal(whole.ends, [1, 2, 4, 6, 8])
    np.testing.assert_array_equal(whole.history()["h"], np.ones(5))


def test_polynomials_reach_back_over_a_smooth_change_and_not_over_a_beginning():
    smooth = joined([rows([0, 1, 2], [0], [False]), rows([2, 3], [0], [True])])
    anew = joined([rows([0, 1, 2], [0], [False]), rows([2, 3], [0], [False])])
    assert Interpolant(smooth)(2.5)[0] == 6.25         # the parabola through 1, 2 and 3
    assert Interpolant(anew)(2.5)[0] == 6.5            # the chord from 2 to 3
