"""consistent_start: fixed, guessed and free components."""

import math

import numpy as np
import pytest

from tether import consistent_start, gallery, solve_dae

G = 9.81
NAMES = ["x", "z", "u", "w", "lam"]


def pendulum(t, y, yp):
    """Index 3, unit mass and length."""
    x, z, u, w, lam = y
    return [yp[0] - u, yp[1] - w, yp[2] + lam * x, yp[3] + lam * z + G, x * x + z * z - 1.0]


HIDDEN = [
    lambda t, y: y[0] * y[2] + y[1] * y[3],
    lambda t, y: y[2] ** 2 + y[3] ** 2 - y[4] - G * y[1],
]


def residual(fun, start, t=0.0):
    return np.abs(fun(t, start.y, start.yp)).max()


@pytest.mark.parametrize("angle", np.linspace(0.1, 6.2, 9))
@pytest.mark.parametrize("speed", [0.0, -2.0, 3.5])
def test_pendulum_from_any_angle_and_a_guess_of_the_velocity(angle, speed):
    x, z = math.sin(angle), -math.cos(angle)
    exact = [x, z, -speed * z, speed * x, speed**2 - G * z]
    guess = np.add(exact, [0.0, 0.0, 0.3 * x, 0.3 * z, 5.0])         # off along the rod
    start = consistent_start(pendulum, 0.0, guess, fixed=["x", "z"], names=NAMES,
                             constraints=HIDDEN, weights=np.ones(5))
    assert start.success, start.message
    np.testing.assert_allclose(start.y, exact, atol=1e-6)
    assert residual(pendulum, start) < 1e-8
    lam_slope = 2 * (start.y[2] * start.yp[2] + start.y[3] * start.yp[3]) - G * start.yp[1]
    assert start.yp[4] == pytest.approx(lam_slope, rel=1e-3, abs=1e-3)
    assert start.fixed == (0, 1)
    assert start.residual[0] == pytest.approx(np.abs(
        [*pendulum(0.0, guess, np.zeros(5)), *(g(0.0, guess) for g in HIDDEN)]).max())


def test_units_of_names_may_be_left_out():
    named = [f"{name} [m]" for name in NAMES]
    start = consistent_start(
        pendulum, 0.0, [0.6, -0.8, 1.0, 0.0, 0.0], fixed=["x", "z [m]"], names=named
    )
    assert start.fixed == (0, 1)


def test_velocities_are_corrected_by_an_impulse():
    """PL2 section 2: dv = M^-1 G^T Lambda, the least change in the mass norm."""
    masses = np.array([1.0, 4.0])

    def two_masses(t, y, yp):
        """Two masses on a line through a rigid rod: p1 = p2, as index 3."""
        p1, p2, v1, v2, lam = y
        return [yp[0] - v1, yp[1] - v2, masses[0] * yp[2] - lam, masses[1] * yp[3] + lam, p1 - p2]

    weights = np.concatenate([[1, 1], np.sqrt(masses), [1]])
    start = consistent_start(two_masses, 0.0, [0, 0, 5.0, 0.0, 0], fixed=[0, 1], weights=weights,
                             constraints=lambda t, y: y[2] - y[3])
    assert start.success
    # momentum is kept: an impulse acts and reacts
    np.testing.assert_allclose(start.y[2:4], 5.0 * masses[0] / masses.sum(), rtol=1e-8)
    assert start.moved[2] == pytest.approx(-4.0, rel=1e-6)


def test_slider_crank():
    r, length, mass = 0.3, 0.9, np.array([0.1, 0.2, 1.0])

    def crank(t, y, yp):
        a, b, s, p, q, v, k, m = y
        force = [r * math.sin(a) * k + r * math.cos(a) * m,
                 length * math.sin(b) * k + length * math.cos(b) * m, k]
        return [yp[0] - p, yp[1] - q, yp[2] - v,
                mass[0] * yp[3] - force[0], mass[1] * yp[4] - force[1],
                mass[2] * yp[5] - force[2] + 0.5 * v,
                s - r * math.cos(a) - length * math.cos(b), r * math.sin(a) + length * math.sin(b)]

    def velocities(t, y):
        a, b, _, p, q, v, _, _ = y
        return [v + r * math.sin(a) * p + length * math.sin(b) * q,
                r * math.cos(a) * p + length * math.cos(b) * q]

    start = consistent_start(crank, 0.0, [0.7, 0.0, 1.0, 10.0, 0.0, 0.0, 0.0, 0.0], fixed=[0, 3],
                             constraints=velocities)
    assert start.success, start.message
    a, b, s, p, q = start.y[:5]
    assert (a, p) == (0.7, 10.0)
    assert b == pytest.approx(-math.asin(r / length * math.sin(0.7)), abs=1e-9)
    assert s == pytest.approx(r * math.cos(a) + length * math.cos(b), abs=1e-9)
    assert q == pytest.approx(-r * math.cos(a) * p / (length * math.cos(b)), rel=1e-9)
    assert residual(crank, start) < 1e-8


def test_transistor_amplifier_from_nothing():
    problem = gallery.get("transamp")
    start = consistent_start(problem.fun, 0.0, np.zeros(8))
    assert start.success, start.message
    assert residual(problem.fun, start) < 1e-9
    sol = solve_dae(problem.fun, (0.0, 1e-3), start.y, start.yp, start="check")
    assert sol.success, sol.message


def test_robertson_with_a_wrong_third_concentration():
    problem = gallery.get("robertson")
    start = consistent_start(problem.fun, 0.0, [1.0, 0.0, 0.3])
    np.testing.assert_allclose(start.y, [1.0, 0.0, 0.0], atol=1e-10)
    np.testing.assert_allclose(start.yp, [-0.04, 0.04, 0.0], atol=1e-6)
    assert start.residual[0] == pytest.approx(0.3)
    assert start.residual[1] < 1e-12


@pytest.mark.parametrize("guess", [0.0, 0.5, 5.0])
def test_a_diode_that_needs_damping(guess):
    def circuit(t, y, yp):
        voltage, current = y
        return [current - 1e-14 * (np.exp(voltage / 0.026) - 1.0), 5.0 - 1000.0 * current - voltage]

    start = consistent_start(circuit, 0.0, [guess, 0.0])
    assert start.success, start.message
    assert start.y[0] == pytest.approx(0.69648457, rel=1e-7)


def test_the_nearer_of_two_solutions_is_taken():
    def root(t, y, yp):
        return [yp[0] + y[1], y[1] ** 2 - y[0]]

    for guess in (1.5, -1.5):
        start = consistent_start(root, 0.0, [4.0, guess], fixed=[0])
        assert start.y[1] == pytest.approx(math.copysign(2.0, guess))


@pytest.mark.parametrize(("form", "band"), [("dense", None), ("sparse", None), ("banded", (1, 1))])
def test_derivative_of_a_given_y(form, band):
    """HK's example: only y1' + y2' is in the equations, y2' is in their derivative."""
    def hk(t, y, yp):
        return [y[0] + yp[0] + yp[1] - math.sin(t), y[1] - math.cos(t)]

    start = consistent_start(hk, 0.5, [1.0, math.cos(0.5)], fixed=[0, 1], form=form, band=band)
    assert start.success, start.message
    np.testing.assert_allclose(start.yp, [2 * math.sin(0.5) - 1.0, -math.sin(0.5)], atol=1e-6)
    off = consistent_start(hk, 0.5, [1.0, 0.0], fixed=[0, 1], form=form, band=band)
    assert not off.success
    assert "equation 1 (off by -0.878)" in off.message


def test_forms_belong_to_a_given_y():
    with pytest.raises(ValueError, match="form"):
        consistent_start(circuit, 0.0, [1.0, 0.5], form="sparse")


# --- refusals ---------------------------------------------------------------------------------


def test_contradicting_fixed_values_are_named():
    start = consistent_start(pendulum, 0.0, [0.6, -0.7, 0, 0, 0], fixed=["x", "z"], names=NAMES,
                             constraints=HIDDEN)
    assert not start.success
    assert "too much is fixed" in start.message
    assert "equation 4" in start.message
    assert "x, z" in start.message


def test_free_values_that_nothing_determines_are_named():
    def tank(t, y, yp):
        level, flow, heat = y
        return [yp[0] + flow, level - flow**2, yp[2] + heat]

    start = consistent_start(tank, 0.0, [1.0, 1.0, 2.0], free=["flow", "heat"],
                             names=["level", "flow", "heat"])
    assert not start.success
    assert "do not determine heat;" in start.message


def test_equations_without_a_solution_are_named():
    start = consistent_start(lambda t, y, yp: [yp[0], y[1] ** 2 + 1.0], 0.0, [1.0, 3.0])
    assert not start.success
    assert "equation 1" in start.message


def test_the_same_equation_twice():
    start = consistent_start(lambda t, y, yp: [y[0] + y[1] - 2, y[0] + y[1] - 3], 0.0, [1.0, 1.0])
    assert not start.success
    assert "equation" in start.message


@pytest.mark.parametrize(("arguments", "match"), [
    ({"y0": [math.nan, 0, 0, 0, 0]}, "y0"),
    ({"yp0": [0.0] * 4}, "yp0"),
    ({"fixed": ["q"], "names": NAMES}, "fixed"),
    ({"fixed": [7]}, "fixed"),
    ({"free": [1.5]}, "free"),
    ({"fixed": [0], "free": [0]}, "both"),
    ({"names": ["a", "b"]}, "names"),
    ({"names": ["a"] * 5}, "names"),
    ({"weights": [1.0, 2.0]}, "weights"),
    ({"weights": [0.0] * 5}, "weights"),
])
def test_bad_input(arguments, match):
    y0 = arguments.pop("y0", [1.0, 0.0, 0.0, 0.0, 0.0])
    with pytest.raises((ValueError, TypeError), match=match):
        consistent_start(pendulum, 0.0, y0, **arguments)


def test_users_exception_passes():
    def broken(t, y, yp):
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        consistent_start(broken, 0.0, [1.0])


def circuit(t, y, yp):
    return [yp[0] + y[1], y[0] - 2.0 * y[1]]


# --- names ------------------------------------------------------------------------------------


def by_index(t, y, yp):
    """The same pendulum, without names for its unknowns."""
    return [yp[0] - y[2], yp[1] - y[3], yp[2] + y[4] * y[0], yp[3] + y[4] * y[1] + G,
            y[0] * y[0] + y[1] * y[1] - 1.0]


@pytest.mark.parametrize(("fun", "names", "said"), [
    (pendulum, None, "x"),
    (pendulum, ["a", "b", "c", "d", "e"], "a"),
    (by_index, None, "y[0]"),
    (by_index, NAMES, "x"),
])
def test_messages_have_the_names_that_a_run_has(fun, names, said):
    start = consistent_start(fun, 0.0, [0.7, -0.8, 0.0, 0.0, 0.0], fixed=[1], names=names)
    assert start.success
    assert start.message.startswith(f"moved {said}")
    told = solve_dae(fun, (0.0, 0.1), [0.7, -0.8, 0.0, 0.0, 0.0], names=names,
                     options={"start": "check"})
    assert not told.success
    assert said in told.message


@pytest.mark.parametrize("fixed", [["x", "z"], ["y[0]", "y[1]"], [0, 1], ["x", 1], [-5, "y[1]"]])
def test_components_go_by_name_and_by_number(fixed):
    start = consistent_start(pendulum, 0.0, [0.6, -0.8, 1.0, 0.0, 0.0], fixed=fixed)
    np.testing.assert_array_equal(start.y[:2], [0.6, -0.8])
    np.testing.assert_allclose(start.y[2:4], [0.64, 0.48], atol=1e-9)


def test_a_name_that_the_function_does_not_have():
    with pytest.raises(ValueError, match=r"'q', which is not an unknown; the unknowns are \['x'"):
        consistent_start(pendulum, 0.0, [0.6, -0.8, 1.0, 0.0, 0.0], fixed=["q"])
