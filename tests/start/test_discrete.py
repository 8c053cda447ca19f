"""The start of the difference equations of implicit Euler in index 3 (A08)."""

import math

import numpy as np
import pytest
from support.helpers import RELAX_START, circle, relax, start_python

from tether import Status
from tether.fixed import solve_fixed
from tether.studies import arevalo
from tether.studies.orders import circuit, circuit_exact, flow, flow_exact

CIRCLE, SPHERE = arevalo.EXAMPLES


def errors(sol, exact):
    return np.abs(sol.y - exact(sol.t))


# --- A08 ----------------------------------------------------------------------------------------

# Errors of λ, recomputed with more digits than the tables have. First the exact start, step by
# step; then the first step from the corrected start.
TABLES = [
    (CIRCLE, 0.0005, [2.004002, 0.004008508, 0.004018537, 0.004028588], 0.004003),
    (CIRCLE, 0.001, [2.008008, 0.008034064], 0.008012),
    (SPHERE, 0.0005, [2.397324, 0.00561247, 0.005557268, 0.005502762], 0.004799536),
    (SPHERE, 0.001, [2.391691, 0.01106196], 0.009585951),
]
each_table = pytest.mark.parametrize(("example", "h", "from_exact", "first_corrected"), TABLES)


@each_table
def test_tables_of_arevalo(example, h, from_exact, first_corrected):
    exact = arevalo.multiplier_errors(example, h, "exact")
    np.testing.assert_allclose(exact, from_exact, rtol=5e-5)
    corrected = arevalo.multiplier_errors(example, h, "discrete")
    np.testing.assert_allclose(corrected, [first_corrected, *from_exact[1:]], rtol=5e-5)


@each_table
def test_printed_digits(example, h, from_exact, first_corrected):
    for start in arevalo.STARTS:
        printed = example.published[h, start]
        for value, digits in zip(
            arevalo.multiplier_errors(example, h, start), printed, strict=True
        ):
            last = 10.0 ** -len(digits.partition(".")[2])
            assert value == pytest.approx(float(digits), abs=0.51 * last)


@pytest.mark.parametrize(
    ("example", "h", "velocities"),
    [
        (CIRCLE, 0.0005, [1.0814, -1.6824]),
        (CIRCLE, 0.001, [1.0823, -1.6819]),
        (SPHERE, 0.001, [-0.72985, 0.93931, 1.0]),
    ],
)
def test_corrected_velocities(example, h, velocities):
    unit = 10.0 ** -len(str(velocities[0]).partition(".")[2])
    found = arevalo.corrected_velocities(example, h)
    np.testing.assert_allclose(found, velocities, rtol=0, atol=0.51 * unit)


@pytest.mark.parametrize("h", [1e-5, 1e-6])
def test_small_steps_leave_only_round_off_in_the_multiplier(h):
    """An iteration that stops too early shows here: λ takes part in the equations by h λ only."""
    sol = solve_fixed(
        CIRCLE.residual, (0, 4 * h), CIRCLE.exact(0.0), order=1, step=h, start="discrete"
    )
    assert errors(sol, CIRCLE.exact)[4, 1:].max() < 10 * h + 5 * np.finfo(float).eps / h**2


def test_what_was_moved_is_reported():
    exact = CIRCLE.exact(0.0)
    sol = arevalo.solve_example(CIRCLE, 0.001, "discrete")
    assert sorted(sol.start.moved) == [2, 3]
    np.testing.assert_array_equal(sol.y[:, 0], sol.start.y)
    for i, change in sol.start.moved.items():
        assert sol.start.y[i] == pytest.approx(exact[i] + change, abs=1e-15)
    assert "velocities" in sol.start.message
    assert arevalo.solve_example(CIRCLE, 0.001, "exact").start.moved == {}


def test_command_prints_the_tables():
    process = start_python(
        "import runpy\nrunpy.run_module('tether.studies.arevalo', run_name='__main__')\n"
    )
    out, err = process.communicate()
    assert (process.returncode, err) == (0, "")
    for printed in ("Table 5.1", "Table 5.2", "| 2.0040 | 2.0040 | 0.0040030 | 0.0040030 |",
                    "| 2.3973 | 2.3973 | 0.0047995 | 0.0047995 |", "| -0.72985 | 0.93931 |"):
        assert printed in out


def angle(t):
    """An angle with its first two derivatives, far from uniform motion."""
    return 0.3 + 1.5 * t + np.sin(2 * t), 1.5 + 2 * np.cos(2 * t), -4 * np.sin(2 * t)


def on_circle(t):
    """Position, velocity and acceleration on the unit circle."""
    phi, rate, change = angle(t)
    along = np.array([np.cos(phi), -np.sin(phi)])
    inwards = -np.array([np.sin(phi), np.cos(phi)])
    return -inwards, rate * along, change * along + rate**2 * inwards


def mass(p):
    return np.array([[2.0, 0.5], [0.5, 1.0 + p[0] ** 2]])


def heavy(t, y, yp):
    """M(p) v' = F(t, v) + G^T λ with M far from the identity; the force is made to fit."""
    p, v = y[:2], y[2:4]
    position, velocity, acceleration = on_circle(t)
    force = mass(position) @ acceleration - 2 * position * heavy_multiplier(t) + velocity
    return [*(yp[:2] - v), *(mass(p) @ yp[2:4] + v - force - 2 * p * y[4]), p @ p - 1.0]


def heavy_multiplier(t):
    return -3.0 - t


def heavy_exact(t):
    position, velocity, _ = on_circle(t)
    return np.array([*position, *velocity, heavy_multiplier(t)])


def driven(t, y, yp):
    """p' = U(t, q) = (1 + t) q + a(t): U depends on time, A08 (4.1)."""
    p, q = y[:2], y[2:4]
    position, _, acceleration = on_circle(t)
    q_exact = driven_exact(t)[2:4]
    a_slope = np.array([3 * math.cos(3 * t), -math.sin(t)])
    q_slope = (acceleration - q_exact - a_slope) / (1 + t)
    force = q_slope - 2 * position * heavy_multiplier(t)
    return [*(yp[:2] - (1 + t) * q - drive(t)), *(yp[2:4] - force - 2 * p * y[4]), p @ p - 1.0]


def drive(t):
    return np.array([np.sin(3 * t), np.cos(t)])


def driven_exact(t):
    position, velocity, _ = on_circle(t)
    return np.array([*position, *((velocity - drive(t)) / (1 + t)), heavy_multiplier(t)])


@pytest.mark.parametrize(("fun", "exact"), [(heavy, heavy_exact), (driven, driven_exact)])
@pytest.mark.parametrize("t0", [0.0, 0.7])
def test_first_multiplier_is_accurate_to_order_h(fun, exact, t0):
    first = {
        (start, h): errors(
            solve_fixed(fun, (t0, t0 + h), exact(t0), order=1, step=h, start=start), exact
        )[4, 1]
        for start in ("exact", "discrete")
        for h in (2e-3, 1e-3)
    }
    assert first["exact", 2e-3] / first["exact", 1e-3] == pytest.approx(1.0, abs=0.05)
    assert first["discrete", 2e-3] / first["discrete", 1e-3] == pytest.approx(2.0, abs=0.1)
    assert first["discrete", 1e-3] < 0.05 * first["exact", 1e-3]


def test_correction_backwards_in_time():
    t0, h = 0.7, 1e-3
    sol = solve_fixed(heavy, (t0, t0 - 2 * h), heavy_exact(t0), order=1, step=h, start="discrete")
    assert errors(sol, heavy_exact)[4, 1:].max() < 0.05


def with_length(t, y, yp):
    """Problem 5.1 with the squared length as an unknown that has its own equation."""
    x, z, length = y[0], y[1], y[5]
    r = CIRCLE.residual(t, y[:5], yp[:5])
    return [*r[:4], length - 1.0, length - x * x - z * z]


def test_unknowns_with_their_own_equation_need_blocks():
    y0 = np.append(CIRCLE.exact(0.0), 1.0)
    with pytest.raises(ValueError, match=r"unknowns \[5\].*equation of their own.*blocks"):
        solve_fixed(with_length, (0, 0.002), y0, order=1, step=0.001, start="discrete")
    sol = solve_fixed(
        with_length, (0, 0.002), y0, order=1, step=0.001, start="discrete", blocks=([4], [4])
    )
    plain = arevalo.solve_example(CIRCLE, 0.001, "discrete")
    np.testing.assert_allclose(sol.start.y[:4], plain.start.y[:4], rtol=0, atol=1e-9)
    assert np.abs(sol.y[4, 1] - plain.y[4, 1]) < 1e-6


def test_units_do_not_matter():
    """A force equation in units of 1e-15 is no constraint."""
    def tiny(t, y, yp):
        r = CIRCLE.residual(t, y, yp)
        return [r[0], r[1], 1e-15 * r[2], 1e-15 * r[3], 1e6 * r[4]]

    sol = solve_fixed(tiny, (0, 0.002), CIRCLE.exact(0.0), order=1, step=0.001, start="discrete")
    assert errors(sol, CIRCLE.exact)[4, 1] == pytest.approx(0.008012, rel=5e-5)


REFUSED = [
    (circle, [1.0, 0.0], "no multipliers"),
    (relax, RELAX_START, r"unknowns \[1\].* appear in the constraints \[1\]"),
    (flow, flow_exact(0.0), r"unknowns \[0, 1, 2\] are held by a constraint and pushed"),
    (circuit, circuit_exact(0.0), "no multipliers"),
    # λ' = 0 takes the place of the constraint
    (lambda t, y, yp: [yp[0] - y[1], yp[1] + y[2], yp[1] + y[2] + y[0]], [0.0, 0.0, 0.0],
     "no constraints"),
    # one unknown without a derivative, two equations
    (lambda t, y, yp: [yp[0] + yp[1] - y[2], y[0] - t, y[1] - 1.0], [0.0, 1.0, 1.0],
     r"as many multipliers as constraints.*\[2\].*\[1, 2\]"),
    # a chain of three integrators: index 4
    (lambda t, y, yp: [yp[0] - y[1], yp[1] - y[2], yp[2] - y[3], y[0] - t], [0.0, 1.0, 0.0, 0.0],
     r"multipliers \[3\] cannot hold the constraints \[3\]"),
]


@pytest.mark.parametrize(("fun", "y0", "words"), REFUSED)
def test_systems_of_another_form_are_refused(fun, y0, words):
    with pytest.raises(ValueError, match=f"discrete.*{words}"):
        solve_fixed(fun, (0, 0.01), y0, order=1, step=0.01, start="discrete")


# --- failures -----------------------------------------------------------------------------------


def test_discrete_start_whose_first_step_fails():
    sol = solve_fixed(
        lambda t, y, yp: [yp[0] + y[1], yp[1] + y[2], y[0] ** 2 + 1.0], (0, 0.1), [0.3, 0.0, 0.0],
        order=1, step=0.1, start="discrete",
    )
    assert sol.status == Status.NO_CONVERGENCE
    assert sol.y[:, 0].tolist() == [0.3, 0.0, 0.0]
