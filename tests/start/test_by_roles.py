"""consistent_start on the model of a run: hidden constraints, modes, functions that are called."""

import math
import warnings
from itertools import combinations

import numpy as np
import pytest

from tether import ConsistencyWarning, analyze, consistent_start, solve_dae
from tether.base.reason import Kind
from tether.gallery import raw_mechanisms

G = 9.81
NAMES = ["x", "z", "u", "w", "lam"]


def pendulum(t, y, yp):
    """Index 3, unit mass and length."""
    x, z, u, w, lam = y
    return [yp[0] - u, yp[1] - w, yp[2] + lam * x, yp[3] + lam * z + G, x * x + z * z - 1.0]


def called(fun):
    """Return the same function, which nobody can trace."""
    seen = []

    def counted(t, y, yp):
        seen.append(t)
        return fun(t, y, yp)

    return counted


def hidden(y):
    """What the pendulum's equations say about y alone."""
    x, z, u, w, lam = y
    return np.array([x * x + z * z - 1.0, x * u + z * w, u * u + w * w - lam - G * z])


def of_run(fun, y0, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConsistencyWarning)
        return solve_dae(fun, (0.0, 0.1), y0, **options).start


# --- hidden constraints are found ---------------------------------------------------------------


def test_a_pendulum_is_where_a_run_begins():
    y0 = [0.6, -0.8, 1.0, 0.0, 0.0]
    start = consistent_start(pendulum, 0.0, y0)
    assert start.success
    assert np.abs(hidden(start.y)).max() < 1e-12
    np.testing.assert_array_equal(start.y[:2], y0[:2])         # velocities give way, not positions
    np.testing.assert_allclose(start.y, of_run(pendulum, y0).y, atol=1e-14)
    np.testing.assert_allclose(pendulum(0.0, start.y, start.yp), 0.0, atol=1e-12)


@pytest.mark.parametrize("angle", [0.0, 0.7, math.pi / 2, 2.5, math.pi, 4.0])
@pytest.mark.parametrize("speed", [0.0, 2.0])
def test_a_pendulum_from_its_angle(angle, speed):
    x, z = math.sin(angle), -math.cos(angle)
    exact = [x, z, -speed * z, speed * x, speed**2 - G * z]
    guess = np.add(exact, [0.0, 0.0, 0.3 * x, 0.3 * z, 5.0])       # off along the rod
    start = consistent_start(pendulum, 0.0, guess, fixed=[0, 1])
    assert start.success, start.message
    np.testing.assert_allclose(start.y, exact, atol=1e-12)
    assert np.abs(hidden(start.y)).max() < 1e-12
    # the slope of the tension, which is in no equation, by exact derivatives
    assert start.yp[4] == pytest.approx(3.0 * -G * speed * x, abs=1e-9)
    run = of_run(pendulum, start.y)
    assert all(abs(change) < 1e-14 for change in run.moved.values())


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("traced", [True, False])
def test_units_do_not_matter(unit, traced):
    units = np.array([unit, unit, unit, unit, 1.0])

    def scaled(t, y, yp):
        x, z, u, w, lam = y[0] / unit, y[1] / unit, y[2] / unit, y[3] / unit, y[4]
        return [yp[0] - unit * u, yp[1] - unit * w, yp[2] + unit * lam * x,
                yp[3] / unit + lam * z + G, unit**2 * (x * x + z * z - 1.0)]

    fun = scaled if traced else called(scaled)
    start = consistent_start(fun, 0.0, units * [0.66, -0.88, 1.0, 0.0, 0.0], atol=1e-9 * units)
    assert start.success, start.message
    np.testing.assert_allclose(
        start.y / units, [0.6, -0.8, 0.64, 0.48, 8.488], rtol=1e-12 if traced else 1e-7
    )


BUILDERS = [raw_mechanisms.double_pendulum, raw_mechanisms.slider_crank,
            raw_mechanisms.closed_chain, raw_mechanisms.duplicated_pendulum,
            raw_mechanisms.parallel_cranks, raw_mechanisms.prescribed]


@pytest.mark.parametrize("build", BUILDERS)
@pytest.mark.parametrize("rough", [False, True])
def test_mechanisms_are_where_runs_begin(build, rough):
    mechanism = build()
    y0 = mechanism.rough if rough else mechanism.y0
    start = consistent_start(mechanism.fun, 0.0, y0)
    assert start.success, start.message
    found = [c(0.0, start.y) for c in analyze(mechanism.fun, 0.0, start.y).hidden if c.of_y]
    assert np.abs(found).max() < 1e-12
    run = of_run(mechanism.fun, y0)
    np.testing.assert_allclose(start.y, run.y, rtol=1e-12, atol=1e-12)
    again = of_run(mechanism.fun, start.y, yp0=start.yp)
    np.testing.assert_allclose(again.y, start.y, rtol=1e-14, atol=1e-14)


def test_a_slider_crank_from_its_angle_and_speed():
    mechanism = raw_mechanisms.slider_crank()
    guess = np.array(mechanism.rough, float)
    guess[2], guess[7] = mechanism.y0[2], 3.0
    start = consistent_start(mechanism.fun, 0.0, guess, fixed=[2])
    assert start.success, start.message
    assert start.y[2] == guess[2]
    found = [c(0.0, start.y) for c in analyze(mechanism.fun, 0.0, start.y).hidden if c.of_y]
    assert np.abs(found).max() < 1e-12


@pytest.mark.parametrize("fixed", [[], [0], [1]])
@pytest.mark.parametrize("traced", [True, False])
def test_an_index_2_system(fixed, traced):
    def fun(t, y, yp):
        v, w, p = y
        return [yp[0] + v - p, yp[1] - w * v - 2.0 * p, v + 2.0 * w - math.sin(t)]

    y0 = np.array([1.0, 1.0, 0.0])
    start = consistent_start(fun if traced else called(fun), 0.5, y0, fixed=fixed)
    assert start.success, start.message
    v, w, p = start.y
    np.testing.assert_array_equal(start.y[fixed], y0[fixed])
    assert v + 2.0 * w == pytest.approx(math.sin(0.5), abs=1e-12)
    assert 5.0 * p - v + 2.0 * w * v == pytest.approx(math.cos(0.5), abs=1e-12 if traced else 1e-6)


def test_any_index():
    def fun(t, y, yp):
        a, b, c, d = y
        return [a - math.sin(t), yp[0] - b, yp[1] - c, yp[2] - d]

    start = consistent_start(fun, 0.3, [0.3, 2.0, 1.0, -3.0])
    exact = [math.sin(0.3), math.cos(0.3), -math.sin(0.3), -math.cos(0.3)]
    np.testing.assert_allclose(start.y, exact, atol=1e-14)
    np.testing.assert_allclose(start.yp, [*exact[1:], exact[0]], atol=1e-14)


@pytest.mark.parametrize("fixed", [[], [1], [1, 2]])
def test_equations_of_a_derivative_array(fixed):
    def fun(t, y, yp):
        return [yp[0] - y[1] + y[2], math.exp(yp[0] - y[1] + y[2]) + y[0] - 2.0, yp[2] - 1.0]

    start = consistent_start(fun, 0.0, [1.2, 1.0, 1.0], fixed=fixed)
    assert start.success, start.message
    np.testing.assert_allclose(start.y, [1.0, 1.0, 1.0], atol=1e-9)
    np.testing.assert_allclose(start.yp, [0.0, 1.0, 1.0], atol=1e-9)


# --- fixed, free, weights, constraints ----------------------------------------------------------


def test_velocities_that_contradict_the_hidden_constraint_are_named():
    start = consistent_start(pendulum, 0.0, [0.6, -0.8, 1.0, 0.5, 0.0], fixed=["x", "z", "u", "w"],
                             names=NAMES)
    assert not start.success
    assert start.message == (
        "too much is fixed: equation 4 differentiated once (off by 0.4) cannot hold with x, z, u, "
        "w fixed"
    )
    assert start.reason.kind is Kind.TOO_MUCH_FIXED
    assert [(row.equation, row.order) for row in start.reason.rows] == [(4, 1)]
    assert start.reason.columns == (0, 1, 2, 3)


def test_all_of_y_is_checked_against_hidden_constraints():
    exact = np.array([0.6, -0.8, 0.64, 0.48, 8.488])
    start = consistent_start(pendulum, 0.0, exact, fixed=range(5))
    assert start.success, start.message
    np.testing.assert_array_equal(start.y, exact)
    np.testing.assert_allclose(start.yp, [0.64, 0.48, -5.0928, -3.0196, -14.1264], rtol=1e-12)
    for j in range(5):
        off = consistent_start(pendulum, 0.0, exact + 0.1 * np.eye(5)[j], fixed=range(5))
        assert off.reason.kind is Kind.TOO_MUCH_FIXED
        assert set(off.reason.equations) == {4}


SETS = [fixed for count in range(5) for fixed in combinations(range(5), count)]


@pytest.mark.parametrize(("fixed", "traced"), [
    *((fixed, True) for fixed in SETS),
    *((fixed, False) for fixed in SETS if 4 not in fixed),       # a tension: see below
])
def test_any_exact_values_may_be_fixed(fixed, traced):
    """Also more of them than there is freedom: then they contradict each other until the end."""
    exact, fixed = np.array([0.6, -0.8, 1.6, 1.2, 11.848]), list(fixed)
    y0 = np.add(exact, [0.05, -0.03, 0.08, 0.04, -0.2])
    y0[fixed] = exact[fixed]
    start = consistent_start(pendulum if traced else called(pendulum), 0.0, y0, fixed=fixed)
    assert start.success, start.message
    np.testing.assert_array_equal(start.y[fixed], exact[fixed])
    assert np.abs(hidden(start.y)).max() < (1e-9 if traced else 1e-6)


def test_a_tension_that_is_fixed_in_a_called_function_is_never_accepted_wrongly():
    for fixed in SETS:
        y0 = np.array([0.65, -0.83, 1.68, 1.24, 11.648])
        start = consistent_start(called(pendulum), 0.0, y0, fixed=fixed)
        assert not start.success or np.abs(hidden(start.y)).max() < 1e-6


def test_positions_give_way_to_fixed_velocities():
    start = consistent_start(pendulum, 0.0, [0.6, -0.8, 1.0, 0.2, 0.0], fixed=["u", "w"],
                             names=NAMES)
    assert start.success, start.message
    np.testing.assert_array_equal(start.y[2:4], [1.0, 0.2])
    assert np.abs(hidden(start.y)).max() < 1e-12


def test_velocities_give_way_to_a_fixed_tension():
    start = consistent_start(pendulum, 0.0, [0.6, -0.8, 0.64, 0.48, 20.0], fixed=[0, 1, 4])
    assert start.success, start.message
    assert start.y[4] == 20.0
    assert np.abs(hidden(start.y)).max() < 1e-10


def test_free_positions_and_free_velocities():
    start = consistent_start(pendulum, 0.0, [0.1, -0.8, 1.0, 0.2, 0.0], free=["x"], names=NAMES)
    np.testing.assert_allclose(start.y[:2], [0.6, -0.8], atol=1e-9)
    start = consistent_start(pendulum, 0.0, [0.6, -0.8, 1.0, 0.2, 0.0], free=["u", "w"],
                             names=NAMES)
    assert not start.success
    assert "do not determine u, w;" in start.message
    start = consistent_start(pendulum, 0.0, [0.6, -0.8, 1.0, 0.2, 0.0], free=["w", "lam"],
                             fixed=["x", "u"], names=NAMES)
    np.testing.assert_allclose(start.y, [0.6, -0.8, 1.0, 0.75, 9.4105], rtol=1e-9)


@pytest.mark.parametrize("masses", [(1.0, 4.0), (9.0, 1.0)])
def test_weights_of_velocities_without_constraints(masses):
    """Two masses that collide and stick together keep their momentum: p1 = p2 as index 3."""
    a, b = masses

    def sticking(t, y, yp):
        p1, p2, v1, v2, lam = y
        return [yp[0] - v1, yp[1] - v2, a * yp[2] - lam, b * yp[3] + lam, p1 - p2]

    weights = [1.0, 1.0, math.sqrt(a), math.sqrt(b), 1.0]
    for fun in (sticking, called(sticking)):
        start = consistent_start(fun, 0.0, [0, 0, 5.0, 0.0, 0], weights=weights)
        np.testing.assert_allclose(start.y[2:4], 5.0 * a / (a + b), rtol=1e-9)


def test_a_constraint_beside_the_hidden_ones():
    """The speed follows from an energy."""
    def energy(t, y):
        return 0.5 * (y[2] ** 2 + y[3] ** 2) + G * y[1] + 5.0

    start = consistent_start(pendulum, 0.0, [0.6, -0.8, 1.0, 0.2, 0.0], fixed=[0, 1],
                             constraints=energy)
    assert start.success, start.message
    assert energy(0.0, start.y) == pytest.approx(0.0, abs=1e-12)
    assert np.abs(hidden(start.y)).max() < 1e-12


# --- modes --------------------------------------------------------------------------------------


def bob(t, y, yp):
    """A mass on a rope that may be slack."""
    x, z, u, w, tension = y
    return [yp[0] - u, yp[1] - w, yp[2] + tension * x, yp[3] + tension * z + G,
            min(tension, 1.0 - x * x - z * z)]


@pytest.mark.parametrize("y0", [
    [0.6, 0.0, 0.0, 0.0, 0.0],               # slack
    [0.6, -0.8, 0.0, 0.0, 0.0],              # at the end of the rope, without tension yet
    [0.6, -0.8, 1.0, 0.0, 5.0],
    [0.66, -0.88, 0.3, 0.0, 5.0],
    [1.2, 0.0, 0.0, 0.0, 0.0],               # beyond its end
])
def test_the_mode_is_that_of_the_values_found(y0):
    start = consistent_start(bob, 0.0, y0)
    assert start.success, start.message
    np.testing.assert_allclose(bob(0.0, start.y, start.yp), 0.0, atol=1e-12)
    np.testing.assert_allclose(start.y, of_run(bob, y0).y, atol=1e-12)


# --- functions that are called ------------------------------------------------------------------


@pytest.mark.parametrize(("fixed", "rough"), [([], 1.0), ([], 1.1), ([0, 1], 1.0)])
def test_a_called_pendulum_is_on_its_hidden_constraints(fixed, rough):
    y0 = np.array([0.6 * rough, -0.8 * rough, 1.0, 0.0, 0.0])
    start = consistent_start(called(pendulum), 0.0, y0, fixed=fixed)
    assert start.success, start.message
    np.testing.assert_allclose(start.y, [0.6, -0.8, 0.64, 0.48, 8.488], atol=1e-6)
    assert np.abs(hidden(start.y)[:2]).max() < 1e-10
    assert "y' of y[4] is not determined" in start.message


def test_called_and_fixed_velocities_that_contradict():
    fun = called(pendulum)
    start = consistent_start(fun, 0.0, [0.6, -0.8, 1.0, 0.0, 0.0], fixed=[0, 1, 2, 3])
    assert not start.success
    assert start.reason.kind is Kind.HIDDEN_CANNOT_HOLD
    assert {2, 3} <= set(start.reason.columns)
    start = consistent_start(fun, 0.0, [0.6, -0.8, 1.0, 0.0, 0.0], fixed=[0, 1, 2])
    np.testing.assert_allclose(start.y, [0.6, -0.8, 1.0, 0.75, 9.4105], atol=1e-6)


@pytest.mark.parametrize("build", [raw_mechanisms.double_pendulum, raw_mechanisms.slider_crank])
def test_called_mechanisms(build):
    mechanism = build()
    start = consistent_start(called(mechanism.fun), 0.0, mechanism.rough)
    assert start.success, start.message
    found = [c(0.0, start.y) for c in analyze(mechanism.fun, 0.0, start.y).hidden if c.of_y]
    assert np.abs(found).max() < 1e-6


def test_hidden_constraints_that_cannot_be_found_are_spoken_of():
    @called
    def fun(t, y, yp):
        a, b, c, d = y
        return [a - math.sin(t), yp[0] - b, yp[1] - c, yp[2] - d]

    start = consistent_start(fun, 0.0, [0.0, 1.0, 0.0, -1.0])
    assert start.success
    assert "hidden constraints were not found (local index 4)" in start.message
    start = consistent_start(fun, 0.0, [0.0, 2.0, 0.0, -1.0])
    assert not start.success
    assert start.reason.kind is Kind.HIDDEN_VIOLATED
    assert start.reason.equations == (0,)


def test_a_called_system_of_index_1_has_nothing_hidden():
    def circuit(t, y, yp):
        return [yp[0] + y[1], y[0] - 2.0 * y[1]]

    start = consistent_start(called(circuit), 0.0, [1.0, 7.0])
    np.testing.assert_allclose(start.y, [1.0, 0.5], rtol=1e-12)
    assert start.message == "moved y[1]"


# --- components of y' that are fixed ------------------------------------------------------------


def tank(t, y, yp):
    """Level, temperature and outflow."""
    h, temperature, q = y
    return [2 * yp[0] - (1.0 - q), yp[1] - (20 - temperature) * 0.1 - q * 0.5,
            q - 0.5 * np.sqrt(h)]


@pytest.mark.parametrize("wrapped", [lambda fun: fun, called])
def test_a_tank_at_rest(wrapped):
    start = consistent_start(wrapped(tank), 0.0, [1.0, 20.0, 0.1], np.zeros(3), fixed_yp=[0, 1])
    assert start.success, start.message
    np.testing.assert_allclose(start.y, [4.0, 25.0, 1.0], rtol=1e-9)
    np.testing.assert_allclose(start.yp, 0.0, atol=1e-12)


@pytest.mark.parametrize("wrapped", [lambda fun: fun, called])
def test_a_tank_that_fills_at_a_given_rate(wrapped):
    names = ["level", "temperature", "flow"]
    start = consistent_start(
        wrapped(tank), 0.0, [1.0, 20.0, 0.1], [0.1, 0, 0], fixed=["temperature"],
        fixed_yp=["level"], names=names,
    )
    np.testing.assert_allclose(start.y, [2.56, 20.0, 0.8], rtol=1e-9)
    # the outflow's own slope follows: q = sqrt(h) / 2
    np.testing.assert_allclose(start.yp, [0.1, 0.4, 0.25 * 0.1 / 1.6], rtol=1e-8)


def test_a_pendulum_with_a_given_speed_of_one_coordinate():
    start = consistent_start(
        pendulum, 0.0, [0.6, -0.8, 0, 0, 0], [0.5, 0, 0, 0, 0], fixed=[0, 1], fixed_yp=[0]
    )
    assert start.success, start.message
    np.testing.assert_allclose(start.y[:4], [0.6, -0.8, 0.5, 0.375], rtol=1e-12)
    assert np.abs(hidden(start.y)).max() < 1e-12


def test_a_slope_that_follows_from_others_cannot_be_fixed():
    start = consistent_start(tank, 0.0, [1.0, 20.0, 0.1], [0, 0, 0.3], fixed_yp=[2])
    assert not start.success
    assert start.reason.kind is Kind.SLOPES_NOT_KEPT
    assert "y' of q" in start.message


def test_fixed_slopes_need_values():
    with pytest.raises(ValueError, match="fixed_yp"):
        consistent_start(tank, 0.0, [1.0, 20.0, 0.1], fixed_yp=[0])
    with pytest.raises(ValueError, match="fixed_yp"):
        consistent_start(tank, 0.0, [1.0, 20.0, 0.1], np.zeros(3), fixed_yp=["level"])


# --- one start ----------------------------------------------------------------------------------


@pytest.mark.parametrize("t", [0.0, 0.3])
def test_consistent_start_and_a_run_begin_with_the_same_values(t):
    def circuit(t, y, yp):
        v, i = y
        return [yp[0] + i + math.sin(t), v + 0.1 * v**3 - 2 * i + math.cos(3 * t)]

    def swing(t, y, yp):
        x, z, u, w, lam = y
        return [yp[0] - u, yp[1] - w, yp[2] + lam * x,
                yp[3] + lam * z + G * (1 + 0.1 * math.sin(t)), x * x + z * z - 1]

    for fun, y0 in ((circuit, [1.0, 7.0]), (swing, [0.66, -0.88, 1.0, 0.0, 0.0])):
        start = consistent_start(fun, t, y0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConsistencyWarning)
            run = solve_dae(fun, (t, t + 1), y0).start
        np.testing.assert_allclose(start.y, run.y, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(start.yp, run.yp, rtol=1e-6, atol=1e-6)
    v, i = consistent_start(circuit, t, [1.0, 7.0]).y
    slope = -i - math.sin(t)
    exact = [slope, (slope * (1 + 0.3 * v * v) - 3 * math.sin(3 * t)) / 2]
    np.testing.assert_allclose(consistent_start(circuit, t, [1.0, 7.0]).yp, exact, rtol=1e-12)


def test_species_are_kept_by_consistent_start():
    def reactor(t, y, yp):
        a, b, rate = y
        return [yp[0] + rate, yp[1] - rate, 1.62 * a - b]

    for fixed in (None, [2]):
        start = consistent_start(reactor, 0.0, [1.0, 0.0, 0.0], fixed=fixed)
        assert start.success, start.message
        assert start.y[0] + start.y[1] == pytest.approx(1.0, rel=1e-12)
