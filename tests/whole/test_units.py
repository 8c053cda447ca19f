"""Nothing depends on units or order: starts, reduction, given form, diagnosis."""

import math
import warnings
from functools import cache

import numpy as np
import pytest
from support.unit_systems import System, circuit, disguised, mechanisms, systems

from tether import Start, analyze, consistent_start, solve_dae
from tether.structure.least_change import least_change, shortest
from tether.structure.scaling import Units, ranges

RTOL, ATOL = 1e-6, 1e-9
SYSTEMS = {system.name: system for system in systems()}
MODES = {"auto": {"form": "auto"}, "form 2": {"form": 2}, "given": {"form": "given"},
         "called": {"trace": "never"}}


def run(fun, y0, t_end, atol=ATOL, **mode):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return solve_dae(fun, (0.0, t_end), y0, rtol=RTOL, atol=atol, max_steps=3000, **mode)


@cache
def plain_run(name, mode):
    system = SYSTEMS[name]
    sol = run(system.fun, system.y0, system.t_end, **MODES[mode])
    assert sol.success, sol.message
    return sol


def in_tolerances(found, expected):
    return np.max(np.abs(found - expected) / (ATOL + RTOL * np.abs(expected)))


# --- the property ---------------------------------------------------------------------------------


def compare_runs(name, mode, seed, decades=12.0, time=False):
    system, rng = SYSTEMS[name], np.random.default_rng(seed)
    other, expected = disguised(system, rng, decades, time), plain_run(name, mode)
    sol = run(other.fun, other.y0, other.t_end, ATOL * other.units, **MODES[mode])
    assert sol.success, sol.message
    assert in_tolerances(other.plain(sol.start.y), expected.start.y) < 0.1
    assert in_tolerances(other.plain(sol.y[:, -1]), expected.y[:, -1]) < 300.0


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", SYSTEMS)
def test_a_run_is_the_same_in_other_units(name, mode):
    compare_runs(name, mode, seed=sum(map(ord, name + mode)))


@pytest.mark.slow
@pytest.mark.parametrize("time", [False, True], ids=["", "time"])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", SYSTEMS)
def test_many_runs_are_the_same_in_other_units(name, mode, seed, time):
    compare_runs(name, mode, seed, time=time)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", SYSTEMS)
def test_a_report_is_the_same_in_other_units(name, seed):
    system = SYSTEMS[name]
    other = disguised(system, np.random.default_rng(seed), time=bool(seed))
    for report in (analyze(system.fun, 0.0, system.y0),
                   analyze(other.fun, 0.0, other.y0, atol=ATOL * other.units)):
        assert (report.index, report.dof, report.singular) == (system.index, system.dof, False)
        assert report.n_hidden == analyze(system.fun, 0.0, system.y0).n_hidden


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", SYSTEMS)
def test_a_start_from_guesses_is_the_same_in_other_units(name, seed):
    system, rng = SYSTEMS[name], np.random.default_rng(seed)
    other = disguised(system, rng)
    change = 1 + 0.01 * rng.uniform(-1, 1, len(system.y0))
    plain = consistent_start(system.fun, 0.0, system.y0 * change)
    moved = other.y0 * change[np.argsort(other.place)]
    found = consistent_start(other.fun, 0.0, moved, atol=ATOL * other.units)
    assert found.success == plain.success, found.message
    assert in_tolerances(other.plain(found.y), plain.y) < 1.0


@pytest.mark.parametrize("name", ["pendulum3", "circuit2", "capacitor loop"])
def test_singular_systems_are_singular_in_other_units(name):
    system = SYSTEMS[name]

    def repeated(t, y, yp):
        f = system.fun(t, y, yp)
        return [*f[:-1], f[0]]

    for seed in range(3):
        twice = System(name, repeated, system.y0, system.t_end, 0, 0)
        other = disguised(twice, np.random.default_rng(seed))
        assert analyze(other.fun, 0.0, other.y0, atol=ATOL * other.units).singular
        sol = run(other.fun, other.y0, other.t_end, ATOL * other.units, trace="never")
        assert not sol.success


# --- circuits and mechanisms with the default tolerance ------------------------------------------


@pytest.mark.parametrize("index", [1, 2])
@pytest.mark.parametrize("mode", ["given", "called"])
def test_no_order_and_no_unit_of_a_circuit_is_refused(index, mode):
    system = circuit(index)
    expected = plain_run(system.name, mode)
    for seed in range(12):
        other = disguised(system, np.random.default_rng(100 + seed), decades=(3.0, 12.0)[seed % 2])
        atol = ATOL if seed % 2 == 0 else ATOL * other.units
        sol = run(other.fun, other.y0, other.t_end, atol, **MODES[mode])
        assert sol.success, sol.message
        if seed % 2:
            assert in_tolerances(other.plain(sol.y[:, -1]), expected.y[:, -1]) < 300.0


UNITS = {"mm-ms-g": (1e3, 1e3, 1e3), "um-us-pg": (1e6, 1e6, 1e15)}
MECHANISMS = [system.name for system, _ in mechanisms()]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("system", UNITS)
@pytest.mark.parametrize("number", range(len(MECHANISMS)), ids=MECHANISMS)
def test_mechanisms_in_small_units(number, system, mode):
    small, units = mechanisms(*UNITS[system])[number]
    expected = plain_run(small.name, mode).y[:, -1]
    ordinary = np.arange(len(expected)) < len(expected) - (1 if len(expected) == 5 else 2)
    tolerances = [ATOL * units]
    # angular velocities of 1e-7 beside forces of 1e9: no difference suits both without atol
    if not (small.name == "slider-crank1" and system == "um-us-pg" and mode == "called"):
        tolerances.append(ATOL)
    for atol in tolerances:
        sol = run(small.fun, small.y0, small.t_end, atol, **MODES[mode])
        assert sol.success, sol.message
        assert in_tolerances((sol.y[:, -1] / units)[ordinary], expected[ordinary]) < 300.0


# --- least change ---------------------------------------------------------------------------------


def bob(t, y, yp):
    x, z, u, w, S = y
    return [yp[0] - u, yp[1] - w, yp[2] + S * x, yp[3] + S * z + 9.81, min(S, 1 - x * x - z * z)]


def velocity_after_taut(sol):
    (first,) = np.flatnonzero(np.diff(sol.t) == 0.0)
    return sol.y[2:4, first + 1]


@pytest.mark.parametrize("u0", [0.0, 1e-12, 1e-9, -1e-9, 1e-6, 1e-3])
def test_a_string_goes_taut_whatever_the_size_of_a_velocity(u0):
    sol = solve_dae(bob, (0, 0.5), [0.6, 0, u0, 0, 0])
    fall = math.sqrt(2 * 9.81 * 0.8)                   # at (0.6, -0.8): only what is along it stays
    expected = -fall * 0.6 * np.array([0.8, 0.6])
    assert sol.success
    assert velocity_after_taut(sol) == pytest.approx(expected, abs=1e-5 + 2 * abs(u0))


def test_a_string_goes_taut_in_any_units_and_order():
    system = System("bob", bob, np.array([0.6, 0, 1e-9, 0, 0]), 0.5, 3, 2)
    expected = solve_dae(bob, (0, 0.5), system.y0).y[:, -1]
    for seed in range(4):
        other = disguised(system, np.random.default_rng(seed), decades=6.0)
        sol = run(other.fun, other.y0, other.t_end, ATOL * other.units)
        assert sol.success, sol.message
        assert other.plain(sol.y[:, -1]) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("size", [0.0, 1e-15, 1e-9, 1e-3])
def test_a_start_is_continuous_in_the_values(size):
    x, failure = least_change(
        lambda x: np.array([0.6 * x[0] + 0.8 * x[1]]), lambda x: np.array([[0.6, 0.8]]),
        np.array([size, -3.0]), np.ones(2), determined=False,
    )
    assert failure is None
    assert x == pytest.approx([1.44, -1.08], abs=2 * size + 1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_the_least_change_does_not_depend_on_units_of_rows_or_unknowns(seed):
    rng = np.random.default_rng(seed)
    A, b = rng.normal(size=(3, 6)), rng.normal(size=3)
    expected = shortest(A, b, np.ones(6))
    rows, unit = (10.0 ** rng.uniform(-12, 12, size) for size in (3, 6))
    found = shortest(rows[:, None] * A / unit, rows * b, unit)
    assert found / unit == pytest.approx(expected, rel=1e-6, abs=1e-8)
    assert expected == pytest.approx(np.linalg.pinv(A) @ b)


@pytest.mark.parametrize("seed", range(10))
def test_ranks_do_not_depend_on_units(seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(5, 3)) @ rng.normal(size=(3, 6))
    rows, unit = (10.0 ** rng.uniform(-12, 12, size) for size in (5, 6))
    found = ranges(rows[:, None] * A / unit, unit, 1e-9)
    assert (found.reached.shape[1], found.left.shape[1], found.right.shape[1]) == (3, 2, 3)
    assert A @ (found.right / unit[:, None]) == pytest.approx(0.0, abs=1e-9)


def test_units_follow_the_tolerances():
    units = Units.of(np.full(3, 1e-6), np.array([1e-9, 1e-3, 0.0]), np.array([0.0, 0.0, 7.0]))
    assert units.y == pytest.approx([1.0, 1e6, 7.0])


# --- ranks of called functions -------------------------------------------------------------------


@pytest.mark.parametrize("k", [1e3, 1.0, 0.01, 1e-3, 1e-6, 1e-9])
def test_a_small_coefficient_is_no_zero(k):
    def fun(t, y, yp):
        return [yp[0] + y[2], y[1] - math.sin(t), k * (1 + y[1]) - y[0]]

    sol = solve_dae(fun, (0, 1), [k, 0, -k], trace="never")
    assert sol.success, sol.message
    assert sol.y[:2, -1] == pytest.approx([k * (1 + math.sin(1)), math.sin(1)], rel=1e-5)


@pytest.mark.parametrize("factor", [1.0, 1e-12, 1e12])
@pytest.mark.parametrize("guess", [[2.0, 2.0], [-1.0, 0.0], [1e6, -1e6], [0.0, 1e-9]])
def test_what_is_left_is_judged_by_the_terms_of_an_equation(guess, factor):
    start = consistent_start(
        lambda t, y, yp: [y[0] + y[1] + 1, factor * y[1]], 0, guess)
    assert isinstance(start, Start)
    assert start.success, start.message
    assert start.y == pytest.approx([-1.0, 0.0], abs=1e-9)


# --- invariants where the structure changes ---------------------------------------------------


def sticking(t, y, yp):
    """Two bodies, of masses 1 and 10, that stay together once they have met."""
    x1, x2, u1, u2, N = y
    return [yp[0] - u1, yp[1] - u2, yp[2] + N, 10 * yp[3] - N, min(N, x2 - x1)]


def momentum(t, y):
    return y[2] + 10 * y[3]


def energy(t, y):
    return y[2] ** 2 / 2 + 5 * y[3] ** 2


def stick(**options):
    return solve_dae(sticking, (0, 2), [0.0, 1.0, 1.0, 0.0, 0.0], **options)


TIMES = [None, np.linspace(0, 2, 9)]


@pytest.mark.parametrize("t_eval", TIMES, ids=["steps", "t_eval"])
def test_an_invariant_is_kept_where_the_structure_changes(t_eval):
    sol = stick(invariants=momentum, t_eval=t_eval)
    assert sol.success
    assert sol.warnings == ()
    assert sol.y[2:4, -1] == pytest.approx([1 / 11, 1 / 11])
    assert momentum(0, sol.y) == pytest.approx(1.0, abs=1e-9)
    assert np.nanmax(np.abs(sol.drift)) < 1e-9


@pytest.mark.parametrize("t_eval", TIMES, ids=["steps", "t_eval"])
def test_an_invariant_that_cannot_be_kept_shows_its_jump(t_eval):
    sol = stick(invariants=[momentum, energy], t_eval=t_eval)
    assert sol.success
    assert sol.y[2:4, -1] == pytest.approx([1 / 11, 1 / 11])
    (warning,) = sol.warnings
    assert "invariants[1]" in warning
    assert "jumped by -0.455 at t = 1" in warning
    assert sol.drift[-1] == pytest.approx(energy(0, sol.y) - 0.5, abs=1e-9)
    assert sol.drift[-2] == pytest.approx(0.0, abs=1e-9)


def test_an_event_that_changes_the_state_changes_the_invariant_on_purpose():
    def bang(t, y, yp):
        return t - 0.5

    bang.apply = lambda t, y, yp: [y[0], y[1], 2 * y[2], y[3], y[4]]
    sol = stick(invariants=momentum, events=bang)
    assert sol.success
    assert sol.warnings == ()
    assert sol.y[2:4, -1] == pytest.approx([2 / 11, 2 / 11])
    assert np.nanmax(np.abs(sol.drift)) < 1e-9
    outputs = stick(invariants=momentum, events=bang, t_eval=np.linspace(0, 2, 9))
    assert np.nanmax(np.abs(outputs.drift)) < 1e-9
