"""The verdicts in detail."""

import numpy as np
import pytest
from support.broken_runs import (
    jump_in_a_forcing,
    sparse_jacobian_with_a_hole,
    wrong_sign_in_a_jacobian,
)
from support.broken_starts import index_3_called_index_1, not_a_number_at_the_start

from tether import Bdf, Cause, Status, gallery, solve_dae
from tether.explain.examine import diagnose
from tether.explain.examine.case import Case
from tether.explain.examine.failure import RECENT_ATTEMPTS, vanishing_tolerance, worst_components
from tether.run import recover
from tether.run.integration import Integration


def test_a_start_that_violates_an_equation_is_shown_as_written():
    sol = solve_dae(lambda t, y, yp: [yp[0] + y[1], 3.0 * y[0] - y[1]], (0, 1), [3.0, 1.0],
                    start="check", names=["x", "z"])
    assert "3*x - z is 8 instead of 0 (equation 1)" in sol.message
    assert "y0[1] (z) would have to be 9 instead of 1" in sol.message


def test_a_jump_is_reported_with_its_size_and_its_remedy():
    found = jump_in_a_forcing().diagnosis
    assert "equation 1 jumps by 1 at t = 0.37" in found.summary.lower()
    assert any("t_breaks=[0.37]" in remedy for remedy in found.remedies)
    assert any("across" in text for text in found.evidence)


def test_a_wrong_jacobian_is_reported_by_its_entry():
    found = wrong_sign_in_a_jacobian().diagnosis
    assert "F_y for equation 1 and z is -1, differences give 1" in found.summary


def test_the_error_of_an_index_too_high_does_not_shrink():
    found = index_3_called_index_1().diagnosis
    assert any("index 3" in text for text in found.evidence)
    assert any("while the step shrank" in text for text in found.evidence)


def test_an_entry_missing_in_a_sparse_jacobian_is_named():
    found = sparse_jacobian_with_a_hole().diagnosis
    assert "F_y for equation 1 and w is not in the pattern, differences give" in found.summary
    assert any("in every iteration" in text for text in found.evidence)


def test_a_first_step_too_long_is_no_reason_to_look_at_the_equations(monkeypatch):
    looks = []
    monkeypatch.setattr(recover, "update_kinds", lambda run: looks.append(run.t))
    problem = gallery.get("trivial")
    sol = solve_dae(problem.fun, problem.t_span, problem.y0, problem.yp0)
    assert sol.stats.error_test_failures >= 3
    assert not looks
    index_3_called_index_1()
    assert looks


def test_a_value_that_is_not_a_number_is_shown_with_its_arguments():
    found = not_a_number_at_the_start().diagnosis
    assert "nan with logarithm = -1" in found.summary
    assert found.evidence == ("it is log(logarithm)",)


@pytest.mark.parametrize("first_step", [1e-3, 1e-12, 1e-15])
def test_round_off_of_a_multiplier_is_measured_in_its_own_unit(first_step):
    """A pendulum of a micrometre, index 3 as written: the condition grows as h^-4."""
    def fun(t, y, yp):
        x, z, u, w, lam = y
        return [yp[0] - u, yp[1] - w, yp[2] + lam * x, yp[3] + lam * z + 9.81e-6,
                x * x + z * z - 1e-12]

    sol = solve_dae(fun, (0, 1), [1e-6, 0.0, 0.0, 0.0, 0.0], form="given", atol=1e-13,
                    first_step=first_step)
    assert sol.success, sol.message
    assert sol.y[:2, -1] == pytest.approx([-9.862917511e-07, -1.650108531e-07], abs=1e-11)


def test_round_off_at_index_3_is_not_taken_for_anything_else():
    problem = gallery.get("andrews-i3")
    sol = solve_dae(problem.fun, problem.t_span, problem.y0, problem.yp0, form="given",
                    first_step=1e-12, rtol=1e-12, atol=1e-14, max_seconds=20)
    assert not sol.success
    assert sol.diagnosis.cause in (Cause.TOLERANCE, Cause.CONDITION)


def test_a_classical_estimate_at_index_3():
    problem = gallery.get("pend-i3")
    sol = solve_dae(problem.fun, problem.t_span, problem.y0, problem.yp0, form="given",
                    options={"estimate": "classical"}, max_steps=20_000)
    assert sol.diagnosis.cause == Cause.INDEX
    assert any("classical" in text for text in sol.diagnosis.evidence)


def test_a_function_that_raises_when_asked_again_is_no_obstacle():
    calls = []

    def fun(t, y, yp):
        calls.append(t)
        if len(calls) > limit[0]:
            raise RuntimeError("enough")
        return [yp[0] - y[0] ** 2]

    limit = [10**9]
    bdf = Bdf(fun, 0.0, [1.0], t_bound=2.0, options={"trace": "never"})
    while bdf.step() == Status.RUNNING:
        pass
    limit[0] = len(calls)
    assert not diagnose(bdf._integration).summary.startswith("Nothing")


# --- many equations, of which two nearly say the same ---------------------------------------------


def nearly_dependent(n, share):
    def system(t, y, yp):
        u = np.concatenate([[0.0], y[:n], [0.0]])
        line = yp[:n] - (u[2:] - 2 * u[1:-1] + u[:-2])
        a, b = y[n], y[n + 1]
        given = np.sin(t) + y[0]
        again = (1 + share) * a + b - given - share * t * np.exp(a)
        return np.concatenate([line, [a + b - given, again]])

    return system


@pytest.mark.parametrize("n", [20, 400])
@pytest.mark.parametrize(("share", "trace"), [
    (1e-9, "never"), (1e-11, "auto"), (1e-11, "never"), (1e-13, "never"),
])
def test_equations_that_nearly_depend_on_each_other_are_named_at_any_size(n, share, trace):
    sol = solve_dae(
        nearly_dependent(n, share), (0, 1), np.zeros(n + 2), rtol=1e-6, atol=1e-9, trace=trace
    )
    assert not sol.success
    found = sol.diagnosis
    assert found.cause is Cause.SINGULAR
    assert f"equations {n}, {n + 1} depend on each other" in sol.message
    assert f"y[{n}], y[{n + 1}]" in sol.message


# --- where a solution slides, with unknowns that are not the user's -----------------------------


def test_a_share_is_no_unknown_that_a_failure_names():
    """Mostly the share of the upper side fails the error test here: it oscillates ever faster."""
    def held(t, y, yp):
        return [yp[0] + np.sign(y[0]) - 0.5 * np.sin(1.0 / (1.0 - t) ** 2)]

    run = Integration(held, 0.0, [0.3], t_bound=2.0, options={"atol": 1e-9})
    seen = 0
    while run.t < 0.9:
        assert run.step() == Status.RUNNING
        case = Case(run)
        failed = case.steps["component"][-RECENT_ATTEMPTS:]
        seen += np.count_nonzero(failed == 1) > np.count_nonzero(failed == 0)
        assert worst_components(case) in ([], [0])
        assert vanishing_tolerance(case) is None
    assert seen > 0


def test_a_value_that_is_not_finite_where_a_solution_slides():
    with np.errstate(invalid="ignore"):
        sol = solve_dae(
            lambda t, y, yp: [yp[0] + np.sign(y[0]) - 0.5 * np.sqrt(0.9 - t)], (0, 2), [0.3],
            atol=1e-9,
        )
    assert sol.t[-1] == pytest.approx(0.9, abs=1e-6)
    assert sol.diagnosis.cause == Cause.NON_FINITE
    assert sol.diagnosis.where.columns == (0,)
