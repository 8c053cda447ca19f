"""What is said about runs that cannot work: cause, place and time."""

import math
import re
from functools import partial

import pytest
from support.broken_runs import (
    arc_sine,
    bouncing_ball,
    constraint_against_the_equations,
    constraint_that_jumps,
    cooling_with_the_wrong_sign,
    diffusion_with_the_wrong_sign,
    dry_friction,
    events_that_switch_back_and_forth,
    fall,
    fold_from_below_without_steps,
    fold_of_a_differential_equation,
    fold_of_a_root,
    fold_of_a_root_without_steps,
    growth,
    growth_of_a_callback,
    impasse_of_a_circuit,
    infinite_from_the_start,
    invariant_with_friction,
    jump_at_a_late_time,
    jump_in_a_callback,
    jump_in_a_forcing,
    jump_in_a_state,
    jump_in_a_table,
    jump_in_large_units,
    jump_of_a_called_constraint,
    jump_of_a_constraint,
    jump_within_a_nanosecond,
    kink_that_is_differentiated_as_written,
    lively_bouncing_ball,
    no_tolerance_left,
    not_a_number_from_a_time_on,
    pole,
    pole_beside_a_solver_that_remembers,
    pole_of_an_equation,
    pole_of_one_in_ten,
    pole_with_a_sloppy_jacobian,
    pole_without_steps_backward,
    preconditioner_that_is_none,
    random_numbers,
    relay_on_its_surface,
    root_of_a_negative,
    root_of_a_negative_that_raises,
    root_that_differences_pass,
    sparse_jacobian_with_a_hole,
    switch_at_an_event,
    tangent,
    thermal_runaway,
    thermal_runaway_without_steps,
    too_few_steps,
    too_little_time,
    wrong_constant_jacobian,
    wrong_sign_in_a_jacobian,
)
from support.broken_starts import (
    balance_written_twice_for_a_forgotten_one,
    crank_at_dead_centre,
    exponential_of_a_wild_guess,
    floating_circuit,
    index_3_called_index_1,
    index_3_of_a_callback,
    index_4_as_written,
    missing_equation,
    no_mass_and_no_spring,
    no_real_root,
    no_tolerance_at_zero,
    noise_at_the_start,
    not_a_number_at_the_start,
    one_equation_forgotten,
    one_place_never_filled,
    quotient_of_zeros_at_the_start,
    root_that_begins_at_zero,
    single_precision,
    start_off_its_equation,
    start_that_no_change_makes_consistent,
    too_many_digits,
    unknown_in_no_equation,
    unknown_in_no_equation_of_a_callback,
    written_twice,
)
from support.helpers import decay

from tether import Bdf, Cause, Status, solve_dae
from tether.explain.examine import diagnose

# --- broken problems --------------------------------------------------------------------------

# Cause, equations, variables and time; None: any.
BROKEN = [
    (no_tolerance_left, Cause.TOLERANCE, None, {"b"}, 1.0),
    (no_mass_and_no_spring, Cause.STRUCTURE, {1}, {"x", "v"}, 0.0),
    (one_equation_forgotten, Cause.STRUCTURE, {2}, {"temperature", "heat"}, 0.0),
    (one_place_never_filled, Cause.SINGULAR, {2}, {"temperature", "heat"}, 0.0),
    (balance_written_twice_for_a_forgotten_one, Cause.STRUCTURE, {1, 2}, {"cooling"}, 0.0),
    (exponential_of_a_wild_guess, Cause.NON_FINITE, {1}, {"diode", "i"}, 0.0),
    (quotient_of_zeros_at_the_start, Cause.NON_FINITE, {1}, {"a", "b"}, 0.0),
    (root_that_begins_at_zero, Cause.NON_FINITE, {1}, {"level"}, 0.0),
    (single_precision, Cause.NOISE, None, None, 0.0),
    (crank_at_dead_centre, Cause.SINGULAR, None, None, 2 / 0.3),
    (switch_at_an_event, Cause.DISCONTINUITY, {1}, {"force"}, 0.5),
    (root_that_differences_pass, Cause.NON_FINITE, {0}, {"a", "b"}, 0.84777),
    (diffusion_with_the_wrong_sign, Cause.BLOW_UP, None, None, None),
    (cooling_with_the_wrong_sign, Cause.BLOW_UP, None, {"temperature"}, None),
    (growth, Cause.BLOW_UP, None, {"rabbits"}, math.log(6e307) / 3),
    (growth_of_a_callback, Cause.BLOW_UP, None, {"rabbits"}, math.log(6e307) / 3),
    (noise_at_the_start, Cause.NOISE, {0}, None, 0.0),
    (written_twice, Cause.SINGULAR, {0, 1}, {"a", "b"}, 0.0),
    (floating_circuit, Cause.SINGULAR, {0, 1}, {"u", "v"}, 0.0),
    (unknown_in_no_equation, Cause.STRUCTURE, None, {"force"}, 0.0),
    (unknown_in_no_equation_of_a_callback, Cause.STRUCTURE, None, {"heat"}, 0.0),
    (missing_equation, Cause.STRUCTURE, {1, 2}, None, 0.0),
    (index_4_as_written, Cause.INDEX, None, {"a", "jerk"}, 0.0),
    (index_3_called_index_1, Cause.INDEX, None, {"a"}, None),
    (index_3_of_a_callback, Cause.INDEX, None, {"a"}, 0.0),
    (no_real_root, Cause.START, {1}, None, 0.0),
    (start_off_its_equation, Cause.START, {1}, None, 0.0),
    (start_that_no_change_makes_consistent, Cause.START, {4}, None, 0.0),
    (jump_in_a_forcing, Cause.DISCONTINUITY, {1}, {"z"}, 0.37),
    (jump_in_a_callback, Cause.DISCONTINUITY, {1}, {"z"}, 1 / 3),
    (jump_in_a_state, Cause.DISCONTINUITY, {1}, {"force"}, 0.5),
    (kink_that_is_differentiated_as_written, Cause.DISCONTINUITY, {1}, {"slope"}, 0.52),
    (infinite_from_the_start, Cause.NON_FINITE, {0}, None, 0.0),
    (preconditioner_that_is_none, Cause.LINEAR_SOLVER, None, None, None),
    (pole, Cause.BLOW_UP, None, {"mass"}, 1.0),
    (tangent, Cause.BLOW_UP, None, None, math.pi / 2),
    (thermal_runaway, Cause.BLOW_UP, None, {"heat"}, 1.0),
    (fold_of_a_root, Cause.FOLD, None, {"z"}, 1.0),
    (impasse_of_a_circuit, Cause.FOLD, None, {"current"}, 1.5 - math.log(2)),
    (wrong_constant_jacobian, Cause.JACOBIAN, {1}, {"v"}, None),
    (wrong_sign_in_a_jacobian, Cause.JACOBIAN, {1}, {"z"}, None),
    (not_a_number_from_a_time_on, Cause.NON_FINITE, {1}, None, 0.7),
    (root_of_a_negative, Cause.NON_FINITE, {1}, {"level", "flow"}, 0.5),
    (root_of_a_negative_that_raises, Cause.EXCEPTION, None, None, 0.5),
    (not_a_number_at_the_start, Cause.NON_FINITE, {1}, {"logarithm"}, 0.0),
    (random_numbers, Cause.NOISE, {1}, None, None),
    (constraint_that_jumps, Cause.DISCONTINUITY, {4}, None, 0.4),
    (thermal_runaway_without_steps, Cause.BLOW_UP, None, {"heat"}, 1.0),
    (events_that_switch_back_and_forth, Cause.EVENT_STORM, None, None, 1.0),
    (too_many_digits, Cause.TOLERANCE, None, {"large"}, 0.0),
    (no_tolerance_at_zero, Cause.TOLERANCE, None, {"v"}, 0.0),
    (constraint_against_the_equations, Cause.CONTRADICTION, None, None, None),
    (invariant_with_friction, Cause.CONTRADICTION, None, None, None),
    (bouncing_ball, Cause.EVENT_STORM, None, None, 3 * fall()),
    (lively_bouncing_ball, Cause.EVENT_STORM, None, None, 19 * fall()),
    (relay_on_its_surface, Cause.CREEPING, {0}, {"x"}, 1.0),
    (dry_friction, Cause.CREEPING, {1}, {"v"}, None),
    (pole_with_a_sloppy_jacobian, Cause.BLOW_UP, None, {"mass"}, 1.0),
    (pole_beside_a_solver_that_remembers, Cause.BLOW_UP, None, {"mass"}, 1.0),
    (pole_without_steps_backward, Cause.BLOW_UP, None, {"mass"}, 1.0),
    (pole_of_one_in_ten, Cause.BLOW_UP, None, {"y[9]"}, 1.0),
    (pole_of_an_equation, Cause.BLOW_UP, None, {"force"}, 1.0),
    (fold_of_a_root_without_steps, Cause.FOLD, None, {"z"}, 1.0),
    (fold_from_below_without_steps, Cause.FOLD, None, {"z"}, 1.0),
    (fold_of_a_differential_equation, Cause.FOLD, None, {"angle"}, 0.5),
    (arc_sine, Cause.FOLD, None, {"angle"}, 1.0),
    (jump_of_a_constraint, Cause.DISCONTINUITY, None, None, 0.5),
    (jump_of_a_called_constraint, Cause.DISCONTINUITY, None, None, 0.5),
    (jump_in_a_table, Cause.DISCONTINUITY, {1}, {"z"}, 0.25),
    (jump_in_large_units, Cause.DISCONTINUITY, {1}, {"z"}, 0.3),
    (jump_within_a_nanosecond, Cause.DISCONTINUITY, {1}, {"z"}, 0.3e-9),
    (jump_at_a_late_time, Cause.DISCONTINUITY, {1}, {"z"}, 1e6 + 0.3),
    (sparse_jacobian_with_a_hole, Cause.JACOBIAN, {1}, {"w"}, None),
    (too_few_steps, Cause.LIMIT, None, None, None),
    (too_little_time, Cause.LIMIT, None, None, None),
]


@pytest.mark.parametrize(
    ("run", "cause", "rows", "variables", "t"), BROKEN, ids=[case[0].__name__ for case in BROKEN]
)
def test_broken(run, cause, rows, variables, t):
    sol = run()
    found = sol.diagnosis
    words = " ".join(str(found).split())
    assert not sol.success
    assert found.cause == cause, str(found)
    if rows is not None:
        assert set(found.where.rows) == rows
        assert found.where.equations == tuple(f"equation {i}" for i in found.where.rows)
        for i in found.where.rows:
            assert re.search(rf"equations? ([\d, ]*, )?{i}\b", words, re.IGNORECASE)
    if variables is not None:
        assert set(found.where.variables) == variables
    if t is not None:
        assert found.where.t == pytest.approx(t, abs=1e-3)
    assert found.summary in sol.message
    assert found.remedies
    assert "What to try" in words
    assert not re.search(r"{\w*}", words)
    assert words[0].isupper()


def test_every_cause_has_a_broken_problem():
    """But for some that take more than a few lines."""
    tested = {case[1] for case in BROKEN}
    rest = {
        Cause.NONE, Cause.CHANGED, Cause.STOPPED, Cause.DOUBTFUL, Cause.UNKNOWN, Cause.MEMORY,
        Cause.TRACE, Cause.CONDITION,
    }
    assert set(Cause) - tested == rest


# --- the verdicts in detail ----------------------------------------------------------------------


def test_of_an_integrator_by_hand():
    bdf = Bdf(lambda t, y, yp: [yp[0] - y[0] ** 2], 0.0, [1.0], t_bound=2.0)
    while bdf.step() == Status.RUNNING:
        pass
    found = diagnose(bdf._integration)
    assert found.cause == Cause.BLOW_UP
    assert found.where.t == pytest.approx(1.0, abs=1e-3)


def test_a_diagnosis_leaves_the_run_as_it_is():
    bdf = Bdf(lambda t, y, yp: [yp[0] - y[0] ** 2], 0.0, [1.0], t_bound=2.0)
    while bdf.step() == Status.RUNNING:
        pass
    before = bdf.t, bdf.y.tolist(), bdf.stats.nfev, bdf.status
    diagnose(bdf._integration)
    assert (bdf.t, bdf.y.tolist(), bdf.stats.nfev, bdf.status) == before


# --- no hang ------------------------------------------------------------------------------------


@pytest.mark.parametrize("tolerance", [1e-4, 1e-8])
@pytest.mark.parametrize("run", [
    pole, tangent, thermal_runaway, pole_of_an_equation, fold_of_a_root, impasse_of_a_circuit,
    fold_from_below_without_steps, fold_of_a_differential_equation, arc_sine,
])
def test_poles_and_folds_are_told_apart_at_every_tolerance(run, tolerance, monkeypatch):
    monkeypatch.setitem(
        run.__globals__, "solve_dae", partial(solve_dae, rtol=tolerance, atol=1e-3 * tolerance))
    assert run().diagnosis.cause == {case[0]: case[1] for case in BROKEN}[run]


# --- the documentation ----------------------------------------------------------------------------


def test_plot(monkeypatch):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    for run in (jump_in_a_forcing, no_real_root, lambda: solve_dae(decay, (0, 1), [1.0])):
        figure = run().diagnosis.plot()
        assert len(figure.axes) == 3
