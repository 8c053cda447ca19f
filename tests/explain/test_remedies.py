"""The first remedy is one that helps."""

import re
from functools import partial

import numpy as np
import pytest
from support.broken_runs import (
    bouncing_ball,
    jump_at_a_late_time,
    jump_in_a_callback,
    jump_in_a_forcing,
    jump_in_a_state,
    jump_in_a_table,
    kink_that_is_differentiated_as_written,
    switch_at_an_event,
    too_few_steps,
)
from support.broken_starts import (
    crank_at_dead_centre,
    exponential_of_a_wild_guess,
    floating_circuit,
    index_3_of_a_callback,
    no_real_root,
    not_a_number_at_the_start,
    one_equation_forgotten,
    one_place_never_filled,
    quotient_of_zeros_at_the_start,
    root_that_begins_at_zero,
    written_twice,
)
from support.helpers import circle

from tether import Cause, solve_dae


def first(sol):
    assert not sol.success
    assert f"Try: {sol.diagnosis.remedies[0]}" in sol.message
    return sol.diagnosis.remedies[0]


def test_an_equation_that_says_nothing_is_to_be_written_down():
    assert first(one_equation_forgotten()).startswith("write an equation that determines ")
    assert first(one_place_never_filled()).startswith("write an equation that determines ")


def test_a_floating_circuit_needs_a_ground():
    assert "replace one of equations 0, 1" in first(floating_circuit())
    assert solve_dae(lambda t, y, yp: [(y[0] - y[1]) / 2.0, y[1]], (0, 1), [1.0, 1.0],
                     options={"accept_projected_start": True}).success


def test_a_value_that_is_not_a_number_at_the_start_is_a_matter_of_the_start():
    assert first(exponential_of_a_wild_guess()).startswith("change y0 so that equation 1 is finite")
    assert first(quotient_of_zeros_at_the_start()).startswith("start slightly later than t = 0")
    assert first(root_that_begins_at_zero()) == "start slightly away from this value of level"


@pytest.mark.parametrize("rtol", [1e-4, 1e-6, 1e-8])
def test_a_position_that_ends_a_motion_is_neither_a_missing_equation_nor_a_contradiction(
    rtol, monkeypatch
):
    run = crank_at_dead_centre
    monkeypatch.setitem(
        run.__globals__, "solve_dae", partial(solve_dae, rtol=rtol, atol=1e-3 * rtol))
    sol = run()
    assert sol.diagnosis.cause == Cause.SINGULAR
    assert first(sol).startswith("end the interval before t = 6.66")


@pytest.mark.parametrize(("run", "timed"), [
    (jump_in_a_forcing, True), (jump_in_a_callback, True), (jump_in_a_table, True),
    (jump_at_a_late_time, True), (kink_that_is_differentiated_as_written, True),
    (jump_in_a_state, False), (switch_at_an_event, False),
])
def test_breaks_are_for_switches_that_depend_on_the_time(run, timed):
    assert first(run()).startswith("pass t_breaks=" if timed else "make the transition smooth")


def test_a_switch_may_be_made_smooth_or_left_to_an_event():
    """A jump of the force at position 1."""
    def smooth(t, y, yp):
        return [yp[0] - 2.0, y[1] - 2.5 * (1.0 + np.tanh((y[0] - 1.0) / 1e-3))]

    def by_event(t, y, yp):
        return [yp[0] - 2.0, y[1] - 5.0 * y[2], yp[2]]

    def touch(t, y, yp):
        return y[0] - 1.0

    touch.apply = lambda t, y, yp: [y[0], y[1], 1.0]
    for sol in (solve_dae(smooth, (0, 1), [0.0, 0.0]),
                solve_dae(by_event, (0, 1), [0.0, 0.0, 0.0], events=touch)):
        assert sol.success
        assert sol.y[1, -1] == pytest.approx(5.0)


def test_an_index_that_tracing_would_reduce():
    assert first(index_3_of_a_callback()).startswith("pass trace='auto'")


@pytest.mark.parametrize("trace", ["auto", "never"])
@pytest.mark.parametrize(("wrong", "words"), [
    (lambda fy, fyp: (fy.T.copy(), fyp.T.copy()), "transpose it"),
    (lambda fy, fyp: (fyp, fy), "return (F_y, F_yp) in this order"),
    (lambda fy, fyp: (-fy, fyp), "return derivatives of the residual F(t, y, y')"),
])
def test_mistakes_in_all_of_a_jacobian_are_recognised(wrong, words, trace):
    def jac(t, y, yp):
        return wrong(np.array([[1.0, 30.0, 2.0], [3.0 * y[0] ** 2, 5.0, 40.0], [7.0, 0.0, 1.0]]),
                     np.diag([1.0, 0.0, 0.0]))

    def fun(t, y, yp):
        a, b, c = y
        return [yp[0] + a + 30.0 * b + 2.0 * c, a**3 + 5.0 * b + 40.0 * c, 7.0 * a + c]

    found = solve_dae(fun, (0, 1), [1.0, 55.8, -7.0], jac=jac, trace=trace,
                      options={"accept_projected_start": True}, max_steps=10_000).diagnosis
    assert found.cause == Cause.JACOBIAN
    assert found.remedies[0].startswith(words)


def test_steps_that_max_step_holds_back():
    assert first(solve_dae(circle, (0, 10), [1.0, 0.0], max_step=1e-5, max_steps=500)).startswith(
        "raise max_step")
    assert first(too_few_steps()) == "raise the limit"


def test_events_at_equal_intervals_need_a_gap():
    def level(t, y, yp):
        return y[0] - 1.0

    level.apply = lambda t, y, yp: [1.0 - 1e-12]
    sol = solve_dae(lambda t, y, yp: [yp[0] - 1.0], (0, 10), [0.0], events=level)
    assert first(sol).startswith("leave a gap")
    assert first(bouncing_ball()).startswith("stop, or change to another model")


def test_the_least_tolerance_is_named():
    def run(rtol):
        return solve_dae(circle, (0, 1), [1.0, 0.0], rtol=rtol, atol=0.1 * rtol)

    assert "the least possible is 100 times, rtol = 2.2e-14" in run(3e-15).message
    assert run(2.3e-14).success


def test_a_late_time_is_to_be_counted_from_the_start():
    def run(late):
        return solve_dae(lambda t, y, yp: [yp[0] + 1e3 * (y[0] - np.cos(t - late))],
                         (late, late + 1.0), [0.0])

    sol = run(1.7e9)
    assert first(sol).startswith("measure time from the start of the run")
    assert any("differ by at least 2.4e-07" in text for text in sol.diagnosis.evidence)
    assert run(0.0).success


def test_a_hidden_constraint_names_the_unknown_that_has_to_change(monkeypatch):
    """Two inductors in series with a current source: the voltage between them is its slope."""
    def run(v):
        def fun(t, y, yp):
            i, j, voltage = y
            return [1e-3 * yp[0] - voltage, 2e-3 * yp[1] + voltage, i - j - np.sin(50.0 * t)]

        return solve_dae(fun, (0, 0.1), [0.0, 0.0, v], trace="never")

    moved = run(0.0)
    assert moved.success
    assert moved.start.moved == pytest.approx({2: 1 / 30})
    monkeypatch.setattr("tether.start.by_differences.MOST_ROWS", 0)      # as if it were too large
    assert first(run(0.0)).startswith("change voltage in y0")
    assert run(50.0 / 1500.0).success


def test_a_message_says_everything_once():
    for run in (written_twice, index_3_of_a_callback, no_real_root, not_a_number_at_the_start):
        sol = run()
        parts = [part.lower() for part in re.split(r"[:.;] ", sol.message)]
        assert len(set(parts)) == len(parts), sol.message
        assert sol.message.startswith(sol.diagnosis.summary)
