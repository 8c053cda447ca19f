"""The gallery against itself, finite differences, a C compiler and SciPy's integrators."""

import ctypes
import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from tether import gallery

NAMES = gallery.names()
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


def perturbed_point(problem, seed):
    """A point near the start at which no unknown and no slope sits on a special value."""
    rng = np.random.default_rng(seed)
    y = problem.y0 + 1e-3 * rng.uniform(1, 2, problem.n)
    yp = problem.yp0 * rng.uniform(0.9, 1.1, problem.n) + rng.uniform(-1, 1, problem.n)
    return 0.3 * problem.t_span[1] / (1 + problem.t_span[1]), y, yp


def largest_terms(problem, t, y, yp):
    """Size of the numbers a residual adds up, which bounds its rounding error."""
    f_y, f_yp = difference_jacobians(problem, t, y, yp)
    return 1 + np.abs(f_y) @ np.abs(y) + np.abs(f_yp) @ np.abs(yp)


def difference_jacobians(problem, t, y, yp):
    def column(wrt_slope, j):
        x = yp if wrt_slope else y
        step = np.zeros(problem.n)
        step[j] = 1e-6 * max(abs(x[j]), 1e-3)
        if wrt_slope:
            high, low = evaluate(problem, t, y, yp + step), evaluate(problem, t, y, yp - step)
        else:
            high, low = evaluate(problem, t, y + step, yp), evaluate(problem, t, y - step, yp)
        return (high - low) / (2 * step[j])

    return tuple(
        np.column_stack([column(wrt_slope, j) for j in range(problem.n)])
        for wrt_slope in (False, True)
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


@pytest.mark.parametrize("name", WITH_EXACT)
def test_exact_solution_satisfies_the_equations(name):
    problem = gallery.get(name)
    h = {"heat1d": 3e-5}.get(name, 1e-2)
    for t in np.linspace(0.11, 0.97, 7) * min(problem.t_span[1], 10.0):
        y, yp = problem.exact(t), slope(problem.exact, t, h)
        residual = evaluate(problem, t, y, yp)
        assert np.max(np.abs(residual) / largest_terms(problem, t, y, yp)) < 3e-13


@pytest.mark.parametrize("name", WITH_EXACT)
def test_exact_solution_gives_start_and_reference(name):
    problem = gallery.get(name)
    t0, t_end = problem.t_span
    np.testing.assert_allclose(problem.exact(t0), problem.y0, rtol=0, atol=1e-15)
    h = {"heat1d": 3e-5}.get(name, 1e-2)
    np.testing.assert_allclose(
        slope(problem.exact, t0, h), problem.yp0, atol=1e-11 * (1 + np.abs(problem.yp0).max())
    )
    np.testing.assert_array_equal(problem.exact(t_end)[list(problem.compare)], problem.reference)


@pytest.mark.parametrize("name", WITH_JAC)
@pytest.mark.parametrize("seed", [2, 3])
def test_jacobian_agrees_with_differences(name, seed):
    problem = gallery.get(name, **({"m": 30} if name == "heat1d" else {}))
    t, y, yp = perturbed_point(problem, seed)
    for given, expected in zip(
        problem.jac(t, y, yp), difference_jacobians(problem, t, y, yp), strict=True
    ):
        # differences of a sum lose what its largest term loses
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
    assert {"trivial", "robertson", "akzo", "pend-i1", "caraxis-i1"} <= set(WITH_C)


def underlying_ode(problem):
    """y' = f(t, y) on the differential unknowns, the others by Newton at every call."""
    algebraic = list(problem.algebraic)
    differential = [i for i in range(problem.n) if i not in problem.algebraic]
    guess = np.where(np.isin(np.arange(problem.n), algebraic), problem.y0, problem.yp0)

    def complete(t, x, w):
        y, yp = w.copy(), w.copy()
        y[differential] = x
        yp[algebraic] = 0.0
        return y, yp

    def solve(t, x):
        w = guess.copy()
        for _ in range(20):
            y, yp = complete(t, x, w)
            f_y, f_yp = difference_jacobians(problem, t, y, yp)
            matrix = f_yp
            matrix[:, algebraic] = f_y[:, algebraic]
            step = np.linalg.solve(matrix, evaluate(problem, t, y, yp))
            w = w - step
            if np.all(np.abs(step) <= 1e-12 * (1 + np.abs(w))):
                guess[:] = w
                return w
        raise RuntimeError(f"no convergence at t = {t}")

    def rhs(t, x):
        return solve(t, x)[differential]

    def end_state(t, x):
        return complete(t, x, solve(t, x))[0]

    return rhs, end_state, differential


@pytest.mark.parametrize(
    ("name", "options", "method", "digits"),
    [
        ("robertson", {}, "Radau", 7.5),
        ("robertson", {"t_end": 1e11}, "Radau", 7.5),
        ("akzo", {}, "Radau", 8.0),
        ("vdpol", {}, "Radau", 7.0),
        ("caraxis-i1", {}, "DOP853", 7.0),
        ("pend-i1", {}, "DOP853", 8.0),
        ("rotor", {}, "DOP853", 8.0),
        ("implicit-oscillator", {}, "DOP853", 8.0),
    ],
)
def test_reference_is_reached_by_an_unrelated_integrator(name, options, method, digits):
    problem = gallery.get(name, **options)
    rhs, end_state, differential = underlying_ode(problem)
    t_end = problem.t_span[1]
    run = solve_ivp(
        rhs,
        problem.t_span,
        problem.y0[differential],
        method=method,
        rtol=1e-9,
        atol=problem.atol(1e-9)[differential],
    )
    assert run.success
    assert problem.digits(end_state(t_end, run.y[:, -1])) > digits


def test_transistor_amplifier_reference_and_slopes():
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

    np.testing.assert_allclose(problem.yp0, rhs(0.0, problem.y0), rtol=1e-13)
    printed = [51.338775, 51.338775, -166.6666667, -24.9757667, -24.9757667]
    np.testing.assert_allclose(problem.yp0[:5], printed, rtol=1e-6)
    # a looser problem of the same kind would do, but a short one would not test the reference
    run = solve_ivp(rhs, problem.t_span, problem.y0, method="LSODA", rtol=1e-8, atol=1e-8)
    assert problem.digits(run.y[:, -1]) > 5.0


def test_pendulum_against_multiple_precision():
    for t, values in PENDULUM_VALUES.items():
        np.testing.assert_allclose(gallery.pendulum().exact(t)[:4], values, rtol=0, atol=2e-13)


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
        (lambda: gallery.compile_residual(gallery.transamp(), "."), "no C residual"),
    ],
)
def test_wrong_arguments_are_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()
