"""The gallery against itself, finite differences, a C compiler and SciPy's integrators."""

import ctypes
import math
import subprocess
import sys

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.special import ellipj
from support.pencils import pencil_index

from tether import gallery
from tether.gallery.mechanisms import jacobi_functions

NAMES = gallery.names("classic")
WITH_EXACT = [name for name in NAMES if gallery.get(name).exact]
WITH_JAC = [name for name in NAMES if gallery.get(name).jac]
WITH_C = [name for name in NAMES if gallery.get(name).c_source]

# Weights of f(t + k h) - f(t - k h), k = 1..4: central difference of order 8.
STENCIL = (4 / 5, -1 / 5, 4 / 105, -1 / 280)

# x, z, u, v at a time, from elliptic functions with 40 digits.
PENDULUM_VALUES = {
    1.0: (-0.98613976100547567, -0.16591676155248249, -0.29920126764531144, 1.7783270587459709),
    10.0: (0.29627171698661608, -0.95510369579109182, -4.1324139985344078, -1.2818685510699871),
    100.0: (0.39239041268654008, -0.91979876279090893, -3.9054156952514480, -1.6660684253611750),
}


def evaluate(problem, t, y, yp):
    """Residual on lists, or on arrays if the problem wants them, as an array."""
    if not problem.vectorised:
        y, yp = np.asarray(y).tolist(), np.asarray(yp).tolist()
    return np.asarray(problem.fun(t, y, yp), dtype=float)


def slope(f, t, h):
    return sum(w * (f(t + k * h) - f(t - k * h)) for k, w in enumerate(STENCIL, 1)) / h


def perturbed_point(problem, seed, size=0.1):
    """A point near the start at which no unknown and no slope sits on a special value."""
    rng = np.random.default_rng(seed)
    y = problem.y0 + size * rng.uniform(1, 2, problem.n)
    yp = problem.yp0 * rng.uniform(0.9, 1.1, problem.n) + rng.uniform(-1, 1, problem.n)
    return 0.3 * problem.t_span[1] / (1 + problem.t_span[1]), y, yp


def largest_terms(problem, t, y, yp):
    """Size of the numbers a residual adds up, which bounds its rounding error."""
    f_y, f_yp = difference_jacobians(problem, t, y, yp)
    return 1 + np.abs(f_y) @ np.abs(y) + np.abs(f_yp) @ np.abs(yp)


def difference_matrix(f, x):
    """Central differences; every residual here is smooth on the scale of a thousandth."""
    columns = []
    for j, size in enumerate(np.abs(x)):
        step = np.zeros(x.size)
        step[j] = 3e-6 * max(size, 1e-2)
        columns.append((f(x + step) - f(x - step)) / (2 * step[j]))
    return np.column_stack(columns)


def difference_jacobians(problem, t, y, yp):
    return (
        difference_matrix(lambda x: evaluate(problem, t, x, yp), y),
        difference_matrix(lambda x: evaluate(problem, t, y, x), yp),
    )


@pytest.mark.parametrize("name", NAMES)
def test_start_is_consistent(name):
    problem = gallery.get(name)
    t0 = problem.t_span[0]
    residual = evaluate(problem, t0, problem.y0, problem.yp0)
    scale = largest_terms(problem, t0, problem.y0, problem.yp0)
    assert np.max(np.abs(residual) / scale) < 5e-14


@pytest.mark.parametrize("name", NAMES)
def test_slopes_do_not_matter_for_algebraic_unknowns_and_do_for_others(name):
    problem = gallery.get(name)
    t, y, yp = perturbed_point(problem, 1)
    _, f_yp = difference_jacobians(problem, t, y, yp)
    unused = tuple(np.flatnonzero(np.abs(f_yp).max(axis=0) == 0).tolist())
    assert unused == problem.algebraic


@pytest.mark.parametrize("name", NAMES)
def test_index_is_that_of_the_linearised_equations(name):
    problem = gallery.get(name)
    jacobians = difference_jacobians(problem, problem.t_span[0], problem.y0, problem.yp0)
    assert pencil_index(*jacobians) == problem.index


@pytest.mark.parametrize("name", WITH_EXACT)
def test_exact_solution_satisfies_the_equations(name):
    problem = gallery.get(name)
    h = {"heat1d": 3e-5}.get(name, 5e-3)
    for t in np.linspace(0.11, 0.97, 7) * min(problem.t_span[1], 10.0):
        y, yp = problem.exact(t), slope(problem.exact, t, h)
        residual = evaluate(problem, t, y, yp)
        assert np.max(np.abs(residual) / largest_terms(problem, t, y, yp)) < 1e-12


@pytest.mark.parametrize("name", WITH_EXACT)
def test_exact_solution_gives_start_and_reference(name):
    problem = gallery.get(name)
    t0, t_end = problem.t_span
    np.testing.assert_allclose(problem.exact(t0), problem.y0, rtol=0, atol=1e-15)
    h = {"heat1d": 3e-5}.get(name, 5e-3)
    np.testing.assert_allclose(
        slope(problem.exact, t0, h), problem.yp0, atol=1e-11 * (1 + np.abs(problem.yp0).max())
    )
    np.testing.assert_array_equal(problem.exact(t_end)[list(problem.compare)], problem.reference)


@pytest.mark.parametrize("name", WITH_JAC)
@pytest.mark.parametrize("seed", [2, 3])
def test_jacobian_agrees_with_differences(name, seed):
    problem = gallery.get(name, **({"m": 30} if name == "heat1d" else {}))
    # in units of each unknown's own scale: at 0.1 Robertson's rates would drown the slopes
    t, y, yp = perturbed_point(problem, seed, size=0.1 * problem.atol_scale)
    for given, expected in zip(
        problem.jac(t, y, yp), difference_jacobians(problem, t, y, yp), strict=True
    ):
        tolerance = 1e-7 * np.abs(expected).max(axis=1, keepdims=True) + 1e-12
        assert given.shape == (problem.n, problem.n)
        assert (np.abs(given - expected) <= tolerance).all()


@pytest.mark.skipif(gallery.find_compiler() is None, reason="no C compiler")
@pytest.mark.parametrize("name", WITH_C)
def test_c_text_agrees_with_python(name, tmp_path):
    problem = gallery.get(name)
    function = gallery.compile_residual(problem, tmp_path)
    pointer = ctypes.POINTER(ctypes.c_double)
    for seed in range(5):
        t, y, yp = perturbed_point(problem, seed)
        out = np.full(problem.n, np.nan)
        function(t, *(x.ctypes.data_as(pointer) for x in (y, yp, out)))
        difference = np.abs(out - evaluate(problem, t, y, yp))
        assert np.max(difference / largest_terms(problem, t, y, yp)) < 1e-14


def test_c_text_is_there_where_it_is_promised():
    mechanisms = {name for name in NAMES if name.startswith(("pend", "caraxis", "andrews"))}
    assert {"trivial", "robertson", "akzo", "fekete"} | mechanisms <= set(WITH_C)


def underlying_ode(problem):
    """y' = f(t, y) on the differential unknowns, the others by Newton at every call."""
    algebraic = np.isin(np.arange(problem.n), problem.algebraic)
    guess = np.where(algebraic, problem.y0, problem.yp0)

    def split(x, w):
        """Unknowns and slopes from differential unknowns x and what the equations determine."""
        y, yp = w.copy(), np.where(algebraic, 0.0, w)
        y[~algebraic] = x
        return y, yp

    def determine(t, x):
        w = guess.copy()
        for _ in range(10):
            step = np.linalg.solve(
                difference_matrix(lambda v: evaluate(problem, t, *split(x, v)), w),
                evaluate(problem, t, *split(x, w)),
            )
            w -= step
            # relative to each unknown: the slopes of Robertson's problem end at 1e-18
            if np.all(np.abs(step) <= 1e-6 * np.abs(w)):
                break
        guess[:] = w
        return w

    return (
        lambda t, x: determine(t, x)[~algebraic],
        lambda t, x: split(x, determine(t, x))[0],
        ~algebraic,
    )


@pytest.mark.parametrize(
    ("name", "method", "rtol", "digits"),
    [
        ("akzo", "Radau", 1e-7, 8.5),
        ("vdpol", "Radau", 1e-7, 8.5),
        ("caraxis-i1", "DOP853", 1e-9, 7.0),
        ("pend-i1", "DOP853", 1e-9, 6.0),
        ("andrews-i1", "DOP853", 1e-8, 7.5),
        ("rotor", "DOP853", 1e-9, 8.5),
        ("implicit-oscillator", "DOP853", 1e-9, 8.5),
    ],
)
def test_reference_is_reached_by_an_unrelated_integrator(name, method, rtol, digits):
    problem = gallery.get(name)
    rhs, end_state, differential = underlying_ode(problem)
    t_end = problem.t_span[1]
    run = solve_ivp(
        rhs,
        problem.t_span,
        problem.y0[differential],
        method=method,
        rtol=rtol,
        atol=problem.atol(rtol)[differential],
    )
    assert run.success
    assert problem.digits(end_state(t_end, run.y[:, -1])) > digits


@pytest.mark.parametrize("family", ["pend", "caraxis", "andrews"])
def test_motion_of_the_index_1_form_satisfies_the_others(family):
    """Differentiating the constraints does not change the motion, so one check serves all."""
    reduced = gallery.get(f"{family}-i1")
    rhs, state, differential = underlying_ode(reduced)
    t_end = 0.2 * reduced.t_span[1]
    times = np.linspace(0.0, t_end, 5)
    run = solve_ivp(
        rhs, (0.0, t_end), reduced.y0[differential], "DOP853", times, rtol=1e-11, atol=1e-11
    )
    for t, x in zip(times, run.y.T, strict=True):
        y, yp = state(t, x), np.zeros(reduced.n)
        yp[differential] = rhs(t, x)
        for index in (1, 2, 3):
            problem = gallery.get(f"{family}-i{index}")
            np.testing.assert_array_equal(problem.y0, reduced.y0)
            residual = evaluate(problem, t, y, yp)
            assert np.max(np.abs(residual) / largest_terms(problem, t, y, yp)) < 1e-9


def test_fekete_reference():
    """With the multipliers put in it is an ODE; it creeps off the sphere, within its tolerance."""
    problem = gallery.fekete()

    def rates(y):
        return -evaluate(problem, 0.0, y, np.zeros(problem.n))[:120]

    def rhs(t, x):
        p, v = x.reshape(2, 20, 3)
        y = np.concatenate([x, np.zeros(40)])
        force = rates(y)[60:].reshape(20, 3)
        y[120:140] = -np.sum(v * v + p * force, axis=1) / (2 * np.sum(p * p, axis=1))
        return rates(y)

    run = solve_ivp(rhs, problem.t_span, problem.y0[:120], "DOP853", rtol=1e-10, atol=1e-10)
    assert problem.digits(np.append(run.y[:, -1], np.zeros(40))) > 8.5


def test_fekete_start_accelerates_tangentially():
    problem = gallery.fekete()
    p, acceleration = problem.y0[:60].reshape(20, 3), problem.yp0[60:120].reshape(20, 3)
    assert np.abs(np.sum(p * acceleration, axis=1)).max() < 1e-14


@pytest.mark.parametrize("t_end", [4e10, 1e11])
def test_robertson_references(t_end):
    """All three rate equations instead of the conservation of mass."""
    problem = gallery.robertson(t_end)

    def rates(y, first_two):
        return np.concatenate([first_two, -first_two.sum(axis=0, keepdims=True)])

    run = solve_ivp(
        lambda t, y: rates(y, -evaluate(problem, t, y, np.zeros(3))[:2]),
        problem.t_span,
        problem.y0,
        method="Radau",
        jac=lambda t, y: rates(y, -problem.jac(t, y, y)[0][:2]),
        rtol=1e-10,
        atol=problem.atol(1e-10),
    )
    assert problem.digits(run.y[:, -1]) > 8.5
    # the reference of the first component is worth more digits than its scale lets through
    np.testing.assert_allclose(run.y[:, -1], problem.reference, rtol=1e-4)


def test_transistor_amplifier_reference():
    """Differentiate the three hidden algebraic equations, then it is an ODE for SciPy."""
    problem = gallery.get("transamp")

    def rhs(t, y):
        f_y, matrix = problem.jac(t, y, np.zeros(8))
        right = -evaluate(problem, t, y, np.zeros(8))
        for row in (0, 3, 6):
            matrix[row] = f_y[row] + f_y[row + 1]
            right[row] = 0.0
        right[0] = -0.1 * 200 * math.pi * math.cos(200 * math.pi * t) / 1000.0
        return np.linalg.solve(matrix, right)

    run = solve_ivp(rhs, problem.t_span, problem.y0, method="LSODA", rtol=1e-8, atol=1e-8)
    assert problem.digits(run.y[:, -1]) > 5.0


def test_transistor_amplifier_slopes_keep_the_hidden_equations():
    problem = gallery.get("transamp")

    def hidden(t):
        rows = evaluate(problem, t, problem.y0 + t * problem.yp0, problem.yp0)
        return rows[[0, 3, 6]] + rows[[1, 4, 7]]

    # currents change at about 0.1 A/s; slopes with six digits would leave 1e-7 of it
    assert np.abs(slope(hidden, 0.0, 1e-5)).max() < 1e-11
    # the printed slopes of the test set keep four digits with its own parameters
    printed = [51.338775, 51.338775, -166.6666667, -24.9757667, -24.9757667, -83.3333333]
    np.testing.assert_allclose(problem.yp0[:6], printed, rtol=3e-4)


def test_pendulum_against_multiple_precision():
    for t, values in PENDULUM_VALUES.items():
        computed = gallery.pendulum().exact(t)[:4]
        np.testing.assert_allclose(computed, values, rtol=0, atol=1e-14 * (10 + t))


def test_digits_counts_the_worst_compared_component():
    problem = gallery.pendulum()
    y = np.append(problem.reference, 1e9)  # the force in the rod is not compared
    assert problem.digits(y) == 16.0
    y[1] += 1e-4 * (1 + abs(problem.reference[1]))
    y[2] += 1e-7
    assert problem.digits(y) == pytest.approx(4.0, abs=1e-9)
    assert problem.digits(y + np.nan) == -math.inf
    y[0] = math.inf
    assert problem.digits(y) == -math.inf


def test_atol_follows_the_scale():
    problem = gallery.robertson()
    np.testing.assert_allclose(problem.atol(1e-6), [1e-10, 1e-16, 1e-8], rtol=1e-15)


def test_names_are_those_of_the_problems():
    assert [gallery.get(name).name for name in NAMES] == list(NAMES)


def test_arrays_cannot_be_changed_by_accident():
    with pytest.raises(ValueError, match="read-only"):
        gallery.akzo().y0[0] = 1.0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: gallery.get("nonsense"), "unknown problem 'nonsense'"),
        (lambda: gallery.robertson(t_end=1.0), "t_end must be one of"),
        (lambda: gallery.heat1d(m=11), "at least 12"),
        (lambda: gallery.pendulum(index=0), "index must be 1, 2 or 3, got 0"),
        (lambda: gallery.car_axis(index=4), "index must be 1, 2 or 3, got 4"),
        (lambda: gallery.andrews(index="3"), "index must be 1, 2 or 3, got '3'"),
        (lambda: gallery.compile_residual(gallery.transamp(), "."), "no C residual"),
    ],
)
def test_wrong_arguments_are_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()


@pytest.mark.parametrize("m", [0.01, 0.5, 0.9])
def test_jacobi_functions_are_those_of_scipy(m):
    for u in (0.0, 0.3, 1.85, 31.3, -4.0):
        np.testing.assert_allclose(jacobi_functions(u, m), ellipj(u, m)[:3], rtol=0, atol=3e-14)


def test_listing_the_problems_does_not_import_scipy():
    text = ("import sys\nfrom tether import gallery\n[gallery.get(n) for n in gallery.names()]\n"
            "assert 'scipy' not in sys.modules, [n for n in sys.modules if 'scipy' in n][:3]\n")
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
