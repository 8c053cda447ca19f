"""The BDF method keeps the contract of `tether.run.method`."""

import math

import numpy as np
import pytest
from support.helpers import circle, relax, relax_exact

from tether import Problem, Status
from tether._core import codes
from tether.plan.memory import new_state
from tether.plan.model import AsWritten
from tether.problem.options import Options
from tether.run.bdf import BDF
from tether.run.steps import Steps
from tether.start.consistent import Start, make_consistent


def memory(fun, t0, y0, t_end, **options):
    """A memory that is filled in, and a start in it."""
    y0 = np.array(y0, float)
    state = new_state(AsWritten(Problem(fun), len(y0)), Options(**options))
    state.t_end, state.direction = t_end, math.copysign(1.0, t_end - t0)
    return state, make_consistent(state, t0, y0, None)


def turn(t):
    return np.array([np.cos(t), -np.sin(t)])


def test_begin_takes_the_point_and_no_step():
    state, start = memory(circle, 0.0, [1.0, 0.0], 2.0)
    assert BDF.begin(state, 0.0, start, 1e-3) == codes.OK
    assert (state.t, state.steps) == (0.0, 0)
    np.testing.assert_array_equal(state.y_now, start.y)
    np.testing.assert_array_equal(state.yp_now, start.yp)


def test_the_first_step_is_the_one_asked_for():
    state, start = memory(circle, 0.0, [1.0, 0.0], 2.0)
    BDF.begin(state, 0.0, start, 1e-5)
    assert BDF.advance(state, 1) == codes.PAUSED
    assert (state.t, state.last_h, state.last_k, state.steps) == (1e-5, 1e-5, 1, 1)


@pytest.mark.parametrize("t_end", [2.0, -2.0])
def test_steps_lead_to_the_end_and_not_past_it(t_end):
    state, start = memory(relax, 0.0, relax_exact(0.0), t_end, rtol=1e-7, atol=1e-9)
    BDF.begin(state, 0.0, start, 1e-4)
    code, before = codes.PAUSED, 0.0
    while code == codes.PAUSED:
        code = BDF.advance(state, 1)
        assert state.last_h == pytest.approx(state.t - before, rel=1e-12)
        assert 1 <= state.last_k <= 6
        before = state.t
    assert code == codes.REACHED_END
    assert state.t == t_end
    np.testing.assert_allclose(state.y_now, relax_exact(t_end), rtol=1e-4, atol=1e-6)


def test_many_steps_at_once_are_the_same_steps():
    ends = []
    for count in (1, 7, 10_000):
        state, start = memory(circle, 0.0, [1.0, 0.0], 5.0)
        BDF.begin(state, 0.0, start, 1e-4)
        while BDF.advance(state, count) == codes.PAUSED:
            pass
        ends.append((state.steps, state.nfev, *state.y_now))
    assert ends[0] == ends[1] == ends[2]


def test_it_returns_where_it_cannot_go_on():
    def ends(t, y, yp):
        return [yp[0] + y[0] if t < 0.5 else math.nan]

    state, start = memory(ends, 0.0, [1.0], 1.0)
    BDF.begin(state, 0.0, start, 1e-3)
    code = codes.PAUSED
    while code >= 0:
        code = BDF.advance(state, 100)
    assert Status(code) == Status.NON_FINITE
    assert 0.49 < state.t <= 0.5
    np.testing.assert_allclose(state.y_now, math.exp(-state.t), rtol=1e-4)


def test_one_method_serves_runs_side_by_side():
    pair = [memory(circle, 0.0, [1.0, 0.0], 3.0, rtol=rtol) for rtol in (1e-4, 1e-8)]
    alone = []
    for rtol in (1e-4, 1e-8):
        state, start = memory(circle, 0.0, [1.0, 0.0], 3.0, rtol=rtol)
        BDF.begin(state, 0.0, start, 1e-4)
        while BDF.advance(state, 1) == codes.PAUSED:
            pass
        alone.append(state.y_now.copy())
    for state, start in pair:
        BDF.begin(state, 0.0, start, 1e-4)
    running = [state for state, _ in pair]
    while running:
        running = [state for state in running if BDF.advance(state, 1) == codes.PAUSED]
    for (state, _), expected in zip(pair, alone, strict=True):
        np.testing.assert_array_equal(state.y_now, expected)


def test_the_polynomial_covers_the_last_step():
    state, start = memory(circle, 0.0, [1.0, 0.0], 3.0, rtol=1e-8, atol=1e-10)
    BDF.begin(state, 0.0, start, 1e-4)
    BDF.advance(state, 60)
    old, y_old = state.t, state.y_now.copy()
    BDF.advance(state, 1)
    made = BDF.polynomial(state)
    assert (made.t, made.t_old) == (state.t, pytest.approx(old, rel=1e-12))
    np.testing.assert_allclose(made(made.t)[0], state.y_now, rtol=1e-14)
    np.testing.assert_allclose(made(old)[0], y_old, rtol=1e-12)
    times = np.linspace(old, state.t, 5)
    y, yp = made(times)
    np.testing.assert_allclose(y, turn(times), atol=1e-6)
    np.testing.assert_allclose(yp, [-np.sin(times), -np.cos(times)], atol=1e-4)
    np.testing.assert_array_equal(made.restricted(1)(times)[0], y[:1])
    BDF.advance(state, 5)                                  # it is a copy
    np.testing.assert_array_equal(made(times)[0], y)


def test_the_interpolant_of_a_run_is_made_of_the_polynomials():
    state, start = memory(circle, 0.0, [1.0, 0.0], 2.0, rtol=1e-6)
    BDF.begin(state, 0.0, start, 1e-4)
    t, y, yp, k, middles = [0.0], [start.y.copy()], [start.yp.copy()], [1], []
    while BDF.advance(state, 1) in (codes.PAUSED, codes.REACHED_END) and len(t) < 1000:
        t.append(state.t)
        y.append(state.y_now.copy())
        yp.append(state.yp_now.copy())
        k.append(state.last_k)
        middle = 0.5 * (t[-1] + t[-2])
        middles.append((middle, *BDF.polynomial(state)(middle)))
        if state.t == 2.0:
            break
    whole = BDF.interpolant(Steps(*map(np.array, (t, y, yp, k)), [0], [False]))
    assert (whole.t_min, whole.t_max) == (0.0, 2.0)
    for middle, values, slopes in middles:
        np.testing.assert_allclose(whole(middle)[0], values, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(whole(middle)[1], slopes, rtol=1e-6, atol=1e-8)


def test_a_past_lets_it_begin_at_a_higher_order():
    steps = []
    times = -0.02 * np.arange(4, 0, -1)
    for past in (False, True):
        state, start = memory(circle, 0.0, [1.0, 0.0], 1.0, rtol=1e-6, atol=1e-8)
        BDF.begin(state, 0.0, start, 0.02)
        if past:
            BDF.add_past(state, times, np.ascontiguousarray(turn(times).T))
        BDF.advance(state, 1)
        if past:
            assert state.last_k > 1
        while BDF.advance(state, 1) == codes.PAUSED:
            pass
        np.testing.assert_allclose(state.y_now, turn(1.0), atol=1e-5)
        steps.append(state.steps)
    assert steps[1] < steps[0]


def test_it_goes_on_from_within_a_step():
    """In another memory, at the order of before: no small steps as after a start."""
    state, start = memory(circle, 0.0, [1.0, 0.0], 3.0, rtol=1e-7, atol=1e-9)
    BDF.begin(state, 0.0, start, 1e-4)
    BDF.advance(state, 80)
    past = BDF.polynomial(state)
    t = 0.5 * (past.t + past.t_old)
    other, _ = memory(circle, 0.0, [1.0, 0.0], 3.0, rtol=1e-7, atol=1e-9)
    y, yp = past(t)
    BDF.go_on(other, t, Start(y, yp, True, ""), past)
    assert other.t == t
    np.testing.assert_allclose(other.y_now, y, rtol=1e-14)
    BDF.advance(other, 1)
    assert other.last_k > 1
    assert abs(other.last_h) > 0.1 * abs(state.last_h)
    while BDF.advance(other, 1) == codes.PAUSED:
        pass
    np.testing.assert_allclose(other.y_now, turn(3.0), atol=1e-5)
