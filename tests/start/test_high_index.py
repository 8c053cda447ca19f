"""Index 2 and 3 as written: the gallery, kinds, starts, refusals, constraints."""

import math

import numpy as np
import pytest
from support.high_index import DIGITS, PENDULUM, solve, solve_dae

from tether import Problem, Status, consistent_start, gallery

# Residuals at rtol 1e-6, as measured, with a margin of a quarter.
RESIDUALS = {
    "pend-i2": 6500,
    "pend-ggl": 6800,
    "caraxis-i2": 6900,
    "andrews-i2": 6200,
    "fekete": 8500,
    "pend-i3": 7500,
    "caraxis-i3": 9200,
    "andrews-i3": 6300,
}


# --- the gallery ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", DIGITS)
def test_finishes_without_hints_and_digits_grow(name):
    digits = []
    for rtol in (1e-4, 1e-6, 1e-8):
        problem, sol = solve(name, rtol)
        assert sol.success, sol.message
        digits.append(problem.digits(sol.y[:, -1]))
        if rtol == 1e-6:
            assert sol.nfev < RESIDUALS[name]
    assert digits[1] > DIGITS[name]
    assert digits[0] < digits[1] < digits[2]        # single runs scatter by half a digit
    assert digits[0] + 1.4 < digits[2]


@pytest.mark.parametrize("name", ["pend-i2", "pend-ggl", "pend-i3"])
def test_error_is_proportional_to_the_tolerance_all_along(name):
    rtols = 10.0 ** -np.arange(4.0, 9.0)
    errors = []
    for rtol in rtols:
        problem, sol = solve(name, rtol)
        exact = np.array([problem.exact(t)[:4] for t in sol.t]).T
        errors.append(np.abs(sol.y[:4] - exact).max())
    slope = np.polyfit(np.log10(rtols), np.log10(errors), 1)[0]
    assert 0.7 < slope < 1.15
    assert errors[-1] < 100 * rtols[-1]


def test_multipliers_are_right_once_the_order_is_up():
    for name, worst in (("pend-i2", 1e-4), ("pend-i3", 1e-2)):
        problem, sol = solve(name, 1e-6)
        later = sol.t > 0.05
        exact = np.array([problem.exact(t)[4] for t in sol.t[later]])
        assert np.abs(sol.y[4, later] - exact).max() < worst * np.abs(exact).max()


def test_constraints_hold_at_every_step_of_index_3():
    _, sol = solve("pend-i3", 1e-6)
    assert np.abs(sol.y[0] ** 2 + sol.y[1] ** 2 - 1).max() < 1e-8


def test_runs_backwards():
    problem = gallery.get("pend-i3", t_end=1.0)
    end = problem.exact(1.0)
    sol = solve_dae(problem.fun, (1.0, 0.0), end, rtol=1e-7, atol=1e-7)
    assert sol.success
    np.testing.assert_allclose(sol.y[:4, -1], problem.y0[:4], atol=1e-5)


# --- kinds ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "kinds"),
    [("pend-i2", [0, 0, 0, 0, 2]), ("pend-ggl", [0, 0, 0, 0, 2, 2]),
     ("pend-i3", [0, 0, 2, 2, 3]), ("caraxis-i3", [0] * 4 + [2] * 4 + [3] * 2),
     ("andrews-i3", [0] * 7 + [2] * 7 + [3] * 13), ("fekete", [0] * 120 + [2] * 40)],
)
def test_found_kinds_are_those_one_would_give(name, kinds):
    _, sol = solve(name, 1e-4)
    assert sol.start.pencil.var_index.tolist() == kinds
    _, given = solve(name, 1e-4, var_index=kinds)
    assert given.success
    assert abs(given.stats.steps - sol.stats.steps) <= 0.02 * sol.stats.steps


def test_kinds_of_index_0_and_1_change_nothing():
    problem = gallery.get("akzo")
    sols = [
        solve_dae(problem.fun, problem.t_span, problem.y0, problem.yp0, var_index=kinds)
        for kinds in (None, [0] * 5 + [1])
    ]
    assert sols[0].nfev == sols[1].nfev
    assert sols[0].start.pencil is None


@pytest.mark.parametrize(
    ("var_index", "error"),
    [([0, 0, 2, 2, 4], ValueError), ([0, 0, 2, 2], ValueError), ([0, 0, 2, 2, -1], ValueError),
     ([0.5] * 5, TypeError), ("index 3", TypeError), ([[0, 0, 2, 2, 3]], TypeError)],
)
def test_bad_var_index_is_named(var_index, error):
    with pytest.raises(error, match="var_index"):
        solve_dae(PENDULUM.fun, (0, 1), PENDULUM.y0, var_index=var_index)


def test_var_index_belongs_to_the_problem():
    problem = Problem(PENDULUM.fun, var_index=[0, 0, 2, 2, 3])
    assert solve_dae(problem, (0, 0.1), PENDULUM.y0).success
    with pytest.raises(ValueError, match="var_index belongs to the Problem"):
        solve_dae(problem, (0, 0.1), PENDULUM.y0, var_index=[0, 0, 2, 2, 3])


def test_an_index_that_rises_on_the_way_is_noticed():
    """0 = y0 - sin t + a(t) (y1 - cos t), y0' = y1: index 1 while a > 0, then index 2."""

    def rising(t, y, yp):
        a = max(0.0, 1.0 - t) ** 3
        return [yp[0] - y[1], y[0] - math.sin(t) + a * (y[1] - math.cos(t))]

    sol = solve_dae(rising, (0, 3), [0.0, 1.0])
    assert sol.success, sol.message
    assert np.abs(sol.y[0] - np.sin(sol.t)).max() < 1e-5
    assert np.abs(sol.y[1] - np.cos(sol.t)).max() < 1e-3
    assert sol.stats.steps < 1500


# --- the start ------------------------------------------------------------------------------


def test_slopes_are_found():
    sol = solve_dae(PENDULUM.fun, PENDULUM.t_span, PENDULUM.y0)
    assert sol.success
    assert "found y'" in sol.start.message
    np.testing.assert_allclose(sol.start.yp[:4], PENDULUM.yp0[:4], atol=1e-8)
    assert PENDULUM.digits(sol.y[:, -1]) > 4.5


def test_values_off_the_constraints_are_refused_where_nothing_may_change():
    for y0, off in (([1.1, 0, 0, 0, 0], "y0[0]"), ([1.0, 0, 0.3, 0, 0], "y0[2]")):
        sol = solve_dae(PENDULUM.fun, (0, 1), y0, start="check")
        assert sol.status == Status.NO_CONSISTENT_START
        assert off in sol.start.message


def test_a_start_with_hidden_constraints_of_the_user():
    def tangential(t, y):
        return [y[0] * y[2] + y[1] * y[3]]

    start = consistent_start(
        PENDULUM.fun, 0, [1.0, 0, 0.3, 0, 0], constraints=tangential, fixed=[0, 1]
    )
    assert solve_dae(PENDULUM.fun, (0, 1), start.y, start.yp).success


# --- refusals -------------------------------------------------------------------------------


def sine_chain(t, y, yp):
    """P82 eq. 3.9: y1 is the second derivative of a given function."""
    return [yp[1] - y[0], yp[2] - y[1], y[2] - math.sin(t)]


def driven_state(t, y, yp):
    return [*sine_chain(t, y, yp), yp[3] + y[3] - y[0]]


def longer_chain(t, y, yp):
    return [yp[1] - y[0], yp[2] - y[1], yp[3] - y[2], y[3] - math.sin(t)]


MIXING = np.random.default_rng(5).normal(size=(2, 3, 3))


def mixed_chain(t, y, yp):
    """The same system in other variables and with its equations mixed."""
    left, right = MIXING
    return left @ np.array(sine_chain(t, right @ y, right @ yp))


@pytest.mark.parametrize(
    ("fun", "y0", "unknown"),
    [(sine_chain, [0.0, 1.0, 0.0], "y[0]"), (driven_state, [0.0, 1.0, 0.0, 0.0], "y[0]"),
     (longer_chain, [-1.0, 0.0, 1.0, 0.0], "y[0], y[1]"),
     (mixed_chain, np.linalg.solve(MIXING[1], [0.0, 1.0, 0.0]), "y[0], y[1], y[2]")],
)
def test_nilpotency_3_outside_a_mechanism_is_refused(fun, y0, unknown):
    sol = solve_dae(fun, (0, 1), y0)
    assert sol.status == Status.INDEX_TOO_HIGH
    assert unknown in sol.message
    assert any("do not shrink" in text for text in sol.diagnosis.evidence)
    assert len(sol.t) == 1


def test_dependent_equations_are_named():
    sol = solve_dae(
        lambda t, y, yp: [yp[0] + y[0], y[1] + y[0], 2 * y[1] + 2 * y[0]], (0, 1), [1.0, -1.0, 0.0]
    )
    assert sol.status == Status.SINGULAR_SYSTEM
    assert "equations 1, 2" in sol.message
    assert "y[2]" in sol.message


# --- constraints at index 3 as written ------------------------------------------------------------


@pytest.mark.parametrize("trace", ["auto", "never"])
@pytest.mark.parametrize("kind", ["constraints", "invariants"])
def test_what_depends_on_velocities_cannot_be_kept_as_written(kind, trace):
    """The energy does not depend on them at rest, to first order."""
    held = {
        "constraints": lambda t, y: y[0] * y[2] + y[1] * y[3],
        "invariants": lambda t, y: 0.5 * (y[2] ** 2 + y[3] ** 2) + 9.8 * y[1],
    }
    with pytest.raises(ValueError, match=rf"{kind}\[0\].*speed.*form='auto'"):
        solve_dae(PENDULUM.fun, (0, 1), PENDULUM.y0, form="given", trace=trace,
                  names=["x", "z", "speed", "w", "tension"], **{kind: held[kind]})


@pytest.mark.parametrize("form", ["auto", "given", 2])
def test_positions_can_be_kept_in_every_form(form):
    sol = solve_dae(PENDULUM.fun, (0, 1), PENDULUM.y0, form=form,
                    constraints=lambda t, y: y[0] ** 2 + y[1] ** 2 - 1.0)
    assert sol.success, sol.message
    assert np.abs(sol.drift).max() < 1e-12
    np.testing.assert_allclose(sol.y[:4, -1], PENDULUM.exact(1.0)[:4], atol=1e-4)
