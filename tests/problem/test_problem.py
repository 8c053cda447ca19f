"""Every way to write a problem: residuals, Jacobians, mass matrices, semi-explicit systems."""

import math

import numpy as np
import pytest
from scipy import sparse
from support.front_door import JACOBIAN, SPAN, assert_same, called_or_traced, van_der_pol
from support.helpers import RELAX_START, decay, error_at_steps, relax, relax_exact

from tether import Problem, solve_dae


@pytest.fixture(scope="module")
def called():
    """The same with the residual called from the core, its Jacobian by differences."""
    return solve_dae(relax, SPAN, RELAX_START, trace="never")


# --- the residual in Python -----------------------------------------------------------------


def test_reference_is_accurate(reference, called):
    for sol in (reference, called):
        assert error_at_steps(sol, relax_exact) < 2e-6


def as_tuple(t, y, yp):
    return tuple(relax(t, y, yp))


def as_array(t, y, yp):
    return np.array(relax(t, y, yp))


def as_strided(t, y, yp):
    return np.repeat(relax(t, y, yp), 2)[::2]


def as_reversed_bytes(t, y, yp):
    return np.array(relax(t, y, yp)).astype(">f8")


def as_numpy_scalars(t, y, yp):
    return [np.float64(value) for value in relax(t, y, yp)]


def filled(t, y, yp, out):
    out[:] = relax(t, y, yp)


def filled_by_default(t, y, yp, out=None):
    out[:] = relax(t, y, yp)


def filled_and_returned(t, y, yp, out):
    out[:] = relax(t, y, yp)
    return out


def open_ended(*everything):
    return relax(*everything)


class Callable:
    def __call__(self, t, y, yp):
        return relax(t, y, yp)

    def method(self, t, y, yp, out):
        out[:] = relax(t, y, yp)


FORMS = [
    as_tuple, as_array, as_strided, as_numpy_scalars, filled, filled_by_default,
    filled_and_returned, open_ended, Callable(), Callable().method, Problem(relax),
]


def name_of(fun):
    return getattr(fun, "__name__", type(fun).__name__)


@pytest.mark.parametrize("fun", [*FORMS, as_reversed_bytes], ids=name_of)
def test_forms_of_the_residual(fun, called):
    assert_same(solve_dae(fun, SPAN, RELAX_START, trace="never"), called)


@pytest.mark.parametrize("fun", FORMS, ids=name_of)
def test_forms_of_the_residual_traced(fun, reference):
    assert_same(solve_dae(fun, SPAN, RELAX_START, trace="always"), reference)


def test_a_form_that_cannot_be_traced_is_called(called):
    assert_same(solve_dae(as_reversed_bytes, SPAN, RELAX_START), called)


@called_or_traced
@pytest.mark.parametrize("kind", [np.int64, np.float32, bool])
def test_residual_of_another_number_type(kind, trace):
    sol = solve_dae(lambda t, y, yp: np.array([kind(0)]) + (yp + y), (0, 1), [1.0], trace=trace)
    assert_same(sol, solve_dae(decay, (0, 1), [1.0], trace=trace))


@called_or_traced
@pytest.mark.parametrize("y0", [[1], (1,), np.array([1]), np.array([1.0], np.float32), [True]])
def test_forms_of_the_starting_values(y0, trace):
    same = solve_dae(decay, (0.0, 1.0), [1.0], trace=trace)
    assert_same(solve_dae(decay, [0, 1], y0, trace=trace), same)


@called_or_traced
def test_residual_may_overwrite_and_keep_its_arguments(called, trace):
    kept = []

    def careless(t, y, yp):
        result = relax(t, y, yp)
        kept.append(y)
        y[:] = math.nan
        yp[:] = math.nan
        return result

    assert_same(solve_dae(careless, SPAN, RELAX_START, trace=trace), called)


def test_y0_and_yp0_are_left_alone():
    y0, yp0 = np.array([1.5, 1.5]), np.array([3.0, 3.0])
    solve_dae(relax, SPAN, y0, yp0)
    assert y0.tolist() == [1.5, 1.5]
    assert yp0.tolist() == [3.0, 3.0]


@called_or_traced
def test_jac_events_and_callback_may_overwrite_their_arguments(trace):
    def jac(t, y, yp):
        y[:] = yp[:] = math.nan
        return [[0.0, 1.0], [1.0, -1.0]], [[1.0, 0.0], [0.0, 0.0]]

    def event(t, y, yp):
        y[:] = yp[:] = math.nan
        return 1.0

    def callback(t, y, yp):
        y[:] = yp[:] = math.nan

    sol = solve_dae(relax, SPAN, RELAX_START, jac=jac, events=event, callback=callback, trace=trace)
    assert_same(sol, solve_dae(relax, SPAN, RELAX_START, jac=JACOBIAN, trace=trace))


@called_or_traced
@pytest.mark.parametrize("args", [(2.0, 3.0), [2.0, 3.0]])
def test_args(args, trace):
    def with_args(t, y, yp, a, b):
        return [yp[0] + a * b * y[0]]

    def fills(t, y, yp, out, a, b):
        out[0] = yp[0] + a * b * y[0]

    def jac(t, y, yp, a, b):
        return [[a * b]], [[1.0]]

    def event(t, y, yp, a, b):
        assert (a, b) == (2.0, 3.0)
        return y[0] - 0.5

    plain = solve_dae(lambda t, y, yp: [yp[0] + 6.0 * y[0]], (0, 1), [1.0], trace=trace)
    for fun in (with_args, fills, lambda t, y, yp, *both: with_args(t, y, yp, *both)):
        assert_same(solve_dae(fun, (0, 1), [1.0], args=args, trace=trace), plain)
        assert_same(solve_dae(Problem(fun, args=args), (0, 1), [1.0], trace=trace), plain)
    sol = solve_dae(with_args, (0, 1), [1.0], args=args, jac=jac, events=event, trace=trace)
    assert sol.t_events[0] == pytest.approx([math.log(2) / 6], abs=1e-6)


def test_one_problem_serves_many_runs(reference, called):
    problem = Problem(relax)
    for _ in range(2):
        assert_same(solve_dae(problem, SPAN, RELAX_START), reference)
        assert_same(solve_dae(problem, SPAN, RELAX_START, trace="never"), called)


# --- the Jacobian ------------------------------------------------------------------------------


@called_or_traced
@pytest.mark.parametrize(
    "jac",
    [
        lambda t, y, yp: JACOBIAN,
        lambda t, y, yp: [matrix.tolist() for matrix in JACOBIAN],
        lambda t, y, yp: tuple(np.asfortranarray(matrix) for matrix in JACOBIAN),
        lambda t, y, yp: tuple(sparse.csr_array(matrix) for matrix in JACOBIAN),
        JACOBIAN,
        tuple(sparse.csc_matrix(matrix) for matrix in JACOBIAN),
    ],
    ids=["function", "lists", "fortran", "sparse", "pair", "sparse pair"],
)
def test_forms_of_the_jacobian(jac, reference, called, trace):
    sol = solve_dae(relax, SPAN, RELAX_START, jac=jac, trace=trace)
    assert_same(sol, called if trace == "never" else reference, 1e-6)
    assert beside_iterations(sol) < beside_iterations(called)
    assert sol.njev > 0


def beside_iterations(sol):
    """Residuals that were not evaluated for an iteration: for differences, and at the start."""
    return sol.nfev - sol.stats.iterations


def test_jacobian_saves_residuals_of_a_nonlinear_problem():
    def jac(t, y, yp):
        return [[0.0, -1.0], [1.0 + 100.0 * y[0] * y[1], -50.0 * (1.0 - y[0] ** 2)]], np.eye(2)

    differences = solve_dae(van_der_pol, (0, 100), [2.0, 0.0], trace="never")
    given = solve_dae(van_der_pol, (0, 100), [2.0, 0.0], jac=jac, trace="never")
    traced = solve_dae(van_der_pol, (0, 100), [2.0, 0.0], trace="always")
    assert differences.njev > 10
    for exact in (given, traced):
        assert beside_iterations(exact) < beside_iterations(differences) - differences.njev
        np.testing.assert_allclose(exact.y[:, -1], differences.y[:, -1], rtol=1e-2)


@called_or_traced
def test_the_users_jacobian_is_used_and_not_another(trace):
    seen = []

    def jac(t, y, yp):
        seen.append(t)
        return [[0.0, -1.0], [1.0 + 100.0 * y[0] * y[1], -50.0 * (1.0 - y[0] ** 2)]], np.eye(2)

    sol = solve_dae(van_der_pol, (0, 100), [2.0, 0.0], jac=jac, trace=trace)
    assert sol.njev == len(seen) > 10


# --- special forms of the problem --------------------------------------------------------------

MASS = np.array([[1.0, 0.0], [0.0, 0.0]])


def rhs(t, y):
    return [-y[1], y[0] - y[1] + np.sin(t)]


@pytest.mark.parametrize(
    "M",
    [
        MASS, MASS.tolist(), MASS.astype(int), sparse.csr_array(MASS), lambda t, y: MASS,
        lambda t, y: sparse.csr_array(MASS),
    ],
    ids=["array", "list", "integers", "sparse", "callable", "sparse callable"],
)
@called_or_traced
def test_mass_matrix(M, trace):
    sol = solve_dae(Problem.mass_matrix(M, rhs), SPAN, RELAX_START, trace=trace)
    assert sol.success
    assert error_at_steps(sol, relax_exact) < 2e-5


def test_mass_matrix_with_jac_and_args():
    def f(t, y, k):
        return np.array([-k * y[1], y[0] - y[1] + np.sin(t)])

    def slope(t, y, k):
        return np.array([[0.0, -k], [1.0, -1.0]])

    plain = Problem.mass_matrix(MASS, f, args=(1.0,))
    differences = solve_dae(plain, SPAN, RELAX_START, trace="never")
    for jac in (slope, lambda t, y, k: sparse.csr_array(slope(t, y, k))):
        problem = Problem.mass_matrix(MASS, f, jac=jac, args=(1.0,))
        for trace in ("never", "auto"):
            given = solve_dae(problem, SPAN, RELAX_START, trace=trace)
            assert error_at_steps(given, relax_exact) < 2e-5
            assert beside_iterations(given) < beside_iterations(differences)


def test_mass_matrix_that_changes():
    """(2 + sin t) y' = -(2 + sin t) y, and y y' = -y^2."""
    moving = Problem.mass_matrix(lambda t, y: [[2 + np.sin(t)]], lambda t, y: -(2 + np.sin(t)) * y)
    nonlinear = Problem.mass_matrix(lambda t, y: [[y[0]]], lambda t, y: -(y**2))
    for problem in (moving, nonlinear):
        sol = solve_dae(problem, (0, 3), [1.0])
        assert sol.success
        assert error_at_steps(sol, lambda t: np.exp(-t)) < 1e-5


def test_mass_matrix_that_is_not_diagonal():
    """M y' = M A y is the circle, whatever the invertible M."""
    M = np.array([[2.0, 1.0], [-1.0, 3.0]])
    A = np.array([[0.0, 1.0], [-1.0, 0.0]])
    sol = solve_dae(Problem.mass_matrix(M, lambda t, y: M @ A @ y), (0, 5), [1.0, 0.0])
    assert error_at_steps(sol, lambda t: [np.cos(t), -np.sin(t)]) < 1e-4


@called_or_traced
@pytest.mark.parametrize("n_differential", [None, 1])
def test_semi_explicit(n_differential, trace):
    problem = Problem.semi_explicit(
        lambda t, x, z: -z, lambda t, x, z: x - z + np.sin(t), n_differential=n_differential
    )
    sol = solve_dae(problem, SPAN, RELAX_START, trace=trace)
    assert sol.success
    assert error_at_steps(sol, relax_exact) < 2e-5


def test_semi_explicit_of_unequal_parts_with_args():
    """x' = (-k z, 0, 1): three differential and one algebraic unknown, found from the lengths."""
    problem = Problem.semi_explicit(
        lambda t, x, z, k: [-k * z[0], 0.0, 1.0],
        lambda t, x, z, k: x[0] - z[0] + np.sin(t),
        args=(1.0,),
    )
    sol = solve_dae(problem, SPAN, [1.5, 7.0, 0.0, 1.5])
    exact = relax_exact(sol.t)
    assert np.max(np.abs(sol.y[[0, 3]] - exact)) < 2e-5
    np.testing.assert_allclose(sol.y[1], 7.0, rtol=1e-12)
    np.testing.assert_allclose(sol.y[2], sol.t, atol=1e-6)


def test_semi_explicit_without_algebraic_part():
    problem = Problem.semi_explicit(lambda t, x, z: -x, lambda t, x, z: [])
    sol = solve_dae(problem, (0, 1), [1.0, 2.0])
    np.testing.assert_allclose(sol.y[:, -1], np.exp(-1) * np.array([1.0, 2.0]), rtol=1e-5)


@pytest.mark.parametrize("n", [3, 25])
def test_small_and_lapack_factorisations_agree(n):
    """n below and above the size where LAPACK takes over: a chain of relaxing copies."""
    def fun(t, y, yp):
        return np.r_[yp[0] + y[0], y[1:] - y[:-1]]

    sol = solve_dae(fun, (0, 1), np.ones(n))
    assert error_at_steps(sol, lambda t: np.exp(-t) * np.ones((n, 1))) < 1e-5


# --- Bdf ---------------------------------------------------------------------------------------


def test_one_semi_explicit_problem_serves_two_sizes():
    problem = Problem.semi_explicit(lambda t, x, z: -z, lambda t, x, z: x - z)
    for n in (1, 3):
        sol = solve_dae(problem, (0, 1), np.ones(2 * n))
        np.testing.assert_allclose(sol.y[:, -1], np.exp(-1.0), rtol=1e-5)
