"""Checks of a result that was reached."""

import numpy as np
import pytest

from tether import Cause, Status, solve_dae


@pytest.mark.parametrize("trace", ["auto", "never"])
@pytest.mark.parametrize("t_end", [1e-6, 1.0])
def test_an_inconsistent_start_that_was_assumed_is_doubtful(t_end, trace):
    sol = solve_dae(lambda t, y, yp: [yp[0] + y[1], y[1] - y[0] - np.cos(t)], (0, t_end),
                    [1.0, 7.0], [-7.0, 0.0], start="assume", trace=trace)
    assert sol.success
    assert sol.diagnosis.cause == Cause.DOUBTFUL
    assert sol.warnings == (
        "the start was assumed to be consistent, but equation 1 has the value 5 there",)
    assert sol.warnings[0] in sol.message
    assert "Check the result" in str(sol)


@pytest.mark.parametrize("trace", ["auto", "never"])
def test_a_constraint_that_cannot_be_met_is_doubtful(trace):
    """So few steps follow the jump that they are no proof of a contradiction."""
    def impossible(t, y):
        return (y[0] - t) if t < 1 else y[0] ** 2 + 1.0

    sol = solve_dae(lambda t, y, yp: [yp[0] - 1.0], (0, 2), [0.0], constraints=impossible,
                    trace=trace)
    assert sol.success
    assert sol.diagnosis.cause == Cause.DOUBTFUL
    text, = sol.warnings
    assert "the largest at the end is constraints[0], value 0 (off by 5)" in text
    assert "the function constraints[0], value 0, jumps by 2 at t = 1" in text
    assert "Check the result: a constraint was off by 5" in sol.message


@pytest.mark.parametrize("max_step", [0.05, 1e-3])
def test_a_constraint_that_becomes_impossible_is_a_contradiction(max_step):
    """Without a jump: from t = 1 on the constraint has no solution."""
    def impossible(t, y):
        return max(t - 1.0, 0.0) * (y[0] ** 2 + 1.0)

    sol = solve_dae(lambda t, y, yp: [yp[0] - 1.0], (0, 3), [0.0], constraints=impossible,
                    max_step=max_step)
    assert sol.diagnosis.cause == Cause.CONTRADICTION
    assert 1.0 < sol.diagnosis.where.t < 1.0 + 10 * max_step
    assert "constraints[0], value 0" in sol.message
    left = (sol.diagnosis.where.t - 1.0) * (sol.y[0, -1] ** 2 + 1.0)
    assert f"its value is {left:.3g} instead of 0" in sol.diagnosis.evidence


def test_equations_of_a_callback_that_do_not_hold_at_the_end_are_doubtful():
    """An event function changes what the residual reads, behind everybody's back."""
    rate = [1.0]

    def event(t, y, yp):
        rate[0] = 1.0 if t < 1.0 else 3.0
        return 1.0

    def fun(t, y, yp):
        return [yp[0] + rate[0] * y[0], y[1] - rate[0] * y[0]]

    sol = solve_dae(fun, (0, 1), [1.0, 1.0], events=event, trace="never")
    assert sol.success
    assert sol.diagnosis.cause == Cause.DOUBTFUL
    assert "at the end the equations do not hold: y[1] would have to change" in sol.warnings[0]


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("size", [1e-4, 1e-2])
def test_a_noisy_function_whose_iteration_seems_to_converge_is_doubtful(size, seed):
    """Its Jacobian is a number without meaning, far too large, and every increment is small."""
    rng = np.random.default_rng(seed)

    def fun(t, y, yp):
        return [yp[0] + y[0] - 0.5 - size * rng.standard_normal()]

    sol = solve_dae(fun, (0, 10), [0.0], trace="never")
    assert "equation 0 is noisy" in sol.message     # whether or not the result is near 0.5
    assert sol.diagnosis.cause == (Cause.DOUBTFUL if sol.success else Cause.NOISE)


def test_a_callback_that_changes_the_equations_at_the_end_is_no_doubt():
    rate = [1.0]

    def callback(t, y, yp):
        rate[0] = 3.0
        return True

    sol = solve_dae(lambda t, y, yp: [yp[0] + rate[0] * y[0]], (0, 1), [1.0], trace="never",
                    callback=callback)
    assert sol.status == Status.STOPPED
    assert sol.warnings == ()


def test_a_wrong_jacobian_that_only_costs_time_is_doubtful():
    def jac(t, y, yp):
        return np.array([[0.0, 50.0], [3.0 * y[0] ** 2, 1.0]]), np.diag([1.0, 0.0])

    sol = solve_dae(lambda t, y, yp: [yp[0] + 50.0 * y[1], y[1] - y[0] ** 3 - t], (0, 0.01),
                    [1.0, 1.0], jac=jac)
    assert sol.success
    assert any("jac is wrong" in text for text in sol.warnings)
