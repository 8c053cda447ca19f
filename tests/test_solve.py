"""Every way into solve_dae and Bdf, and every way to look at what comes out."""

import ctypes
import dataclasses
import io
import math
import pickle
import threading
import time

import numpy as np
import pytest
from scipy import LowLevelCallable, sparse
from support.helpers import (
    C_ARGUMENTS,
    RELAX_START,
    c_function,
    circle,
    decay,
    error_at_steps,
    relax,
    relax_exact,
)

from tether import Bdf, DaeResult, Interpolant, Options, Problem, Statistics, Status, solve_dae

SPAN = (0.0, 2.0)


@pytest.fixture(scope="module")
def reference():
    """The relaxation from a residual that returns a list."""
    return solve_dae(relax, SPAN, RELAX_START)


@pytest.fixture(scope="module")
def called():
    """The same with the residual called from the core, its Jacobian by differences."""
    return solve_dae(relax, SPAN, RELAX_START, trace="never")


called_or_traced = pytest.mark.parametrize("trace", ["never", "auto"])


def assert_same(sol, reference, tolerance=0.0):
    """Assert that two runs took the same steps to the same values."""
    assert sol.success
    assert len(sol.t) == len(reference.t)
    np.testing.assert_allclose(sol.t, reference.t, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(sol.y, reference.y, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(sol.yp, reference.yp, rtol=1e3 * tolerance, atol=1e3 * tolerance)


# --- the residual in Python -----------------------------------------------------------------


def test_reference_is_accurate(reference, called):
    for sol in (reference, called):
        assert error_at_steps(sol, relax_exact) < 2e-5


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

JACOBIAN = (np.array([[0.0, 1.0], [1.0, -1.0]]), np.array([[1.0, 0.0], [0.0, 0.0]]))


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
def test_forms_of_the_jacobian(jac, called, trace):
    sol = solve_dae(relax, SPAN, RELAX_START, jac=jac, trace=trace)
    assert_same(sol, called, 1e-6)
    assert sol.nfev < called.nfev
    assert sol.njev > 0


def van_der_pol(t, y, yp):
    return [yp[0] - y[1], yp[1] - 50.0 * (1.0 - y[0] ** 2) * y[1] + y[0]]


def test_jacobian_saves_residuals_of_a_nonlinear_problem():
    def jac(t, y, yp):
        return [[0.0, -1.0], [1.0 + 100.0 * y[0] * y[1], -50.0 * (1.0 - y[0] ** 2)]], np.eye(2)

    differences = solve_dae(van_der_pol, (0, 100), [2.0, 0.0], trace="never")
    given = solve_dae(van_der_pol, (0, 100), [2.0, 0.0], jac=jac, trace="never")
    traced = solve_dae(van_der_pol, (0, 100), [2.0, 0.0], trace="always")
    assert differences.njev > 10
    for exact in (given, traced):
        assert exact.nfev < differences.nfev - differences.njev
        np.testing.assert_allclose(exact.y[:, -1], differences.y[:, -1], rtol=1e-2)


@called_or_traced
def test_the_users_jacobian_is_used_and_not_another(trace):
    seen = []

    def jac(t, y, yp):
        seen.append(t)
        return [[0.0, -1.0], [1.0 + 100.0 * y[0] * y[1], -50.0 * (1.0 - y[0] ** 2)]], np.eye(2)

    sol = solve_dae(van_der_pol, (0, 100), [2.0, 0.0], jac=jac, trace=trace)
    assert sol.njev == len(seen) > 10


# --- C functions -------------------------------------------------------------------------------


@pytest.mark.parametrize("wrapped", [False, True], ids=["ctypes", "LowLevelCallable"])
@pytest.mark.parametrize("returns", [None, ctypes.c_int], ids=["void", "int"])
def test_c_functions(library, called, returns, wrapped):
    fun = c_function(library, "relax_status" if returns else "relax", returns)
    sol = solve_dae(LowLevelCallable(fun) if wrapped else fun, SPAN, RELAX_START)
    assert_same(sol, called, 1e-9)
    assert sol.nfev == called.nfev


@pytest.mark.parametrize("returns", [None, ctypes.c_int], ids=["void", "int"])
def test_c_functions_with_user_data(library, called, returns):
    name = "relax_status_data" if returns else "relax_data"
    fun = c_function(library, name, returns, data=True)
    one, five = ctypes.c_double(1.0), ctypes.c_double(5.0)

    def solve(number):
        data = ctypes.cast(ctypes.pointer(number), ctypes.c_void_p)
        return solve_dae(LowLevelCallable(fun, data), SPAN, RELAX_START)

    assert_same(solve(one), called, 1e-9)
    faster = solve_dae(
        lambda t, y, yp: [yp[0] + 5.0 * y[1], y[0] - y[1] + np.sin(t)], SPAN, RELAX_START,
        trace="never",
    )
    assert_same(solve(five), faster, 1e-6)


@called_or_traced
def test_c_function_with_python_jacobian_and_event(library, trace):
    def event(t, y, yp):
        return y[0]

    fun = c_function(library, "relax")
    sol = solve_dae(fun, SPAN, RELAX_START, jac=JACOBIAN, events=event)
    same = solve_dae(relax, SPAN, RELAX_START, jac=JACOBIAN, events=event, trace=trace)
    assert_same(sol, same, 1e-9)
    assert sol.t_events[0] == pytest.approx(same.t_events[0], rel=1e-9)
    assert len(sol.t_events[0]) == 1


def test_python_function_behind_a_c_pointer(called):
    @ctypes.CFUNCTYPE(None, *C_ARGUMENTS)
    def pointer(t, y, yp, out):
        out[0], out[1] = relax(t, y, yp)

    assert_same(solve_dae(pointer, SPAN, RELAX_START), called, 1e-9)


def test_numba_cfunc(called):
    numba = pytest.importorskip("numba")
    vector = numba.types.CPointer(numba.float64)

    @numba.cfunc(numba.void(numba.float64, vector, vector, vector))
    def fun(t, y, yp, out):
        out[0] = yp[0] + y[1]
        out[1] = y[0] - y[1] + math.sin(t)

    @numba.cfunc(numba.int32(numba.float64, vector, vector, vector))
    def fun_with_status(t, y, yp, out):
        out[0] = yp[0] + y[1]
        out[1] = y[0] - y[1] + math.sin(t)
        return 0

    assert_same(solve_dae(fun, SPAN, RELAX_START), called, 1e-9)
    assert_same(solve_dae(fun_with_status, SPAN, RELAX_START), called, 1e-9)
    assert_same(solve_dae(LowLevelCallable(fun.ctypes), SPAN, RELAX_START), called, 1e-9)


def test_c_function_runs_without_the_gil(library, called):
    """The residual waits for what only another Python thread can do."""
    counter = ctypes.c_int.in_dll(library, "counter")
    results = []
    thread = threading.Thread(
        target=lambda: results.append(
            solve_dae(c_function(library, "waiting"), SPAN, RELAX_START)
        )
    )
    thread.start()
    while thread.is_alive() and counter.value < 1000:
        counter.value += 1
        time.sleep(1e-5)
    thread.join()
    assert not ctypes.c_int.in_dll(library, "gave_up").value
    assert_same(results[0], called, 1e-9)


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
            assert given.nfev < differences.nfev


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


# --- direction and output times ----------------------------------------------------------------


def test_backward():
    end = solve_dae(relax, SPAN, RELAX_START, rtol=1e-9, atol=1e-11).y[:, -1]
    sol = solve_dae(relax, SPAN[::-1], end, rtol=1e-8, atol=1e-10, dense_output=True)
    assert sol.success
    assert sol.t[0] == 2.0
    assert sol.t[-1] == 0.0
    assert np.all(np.diff(sol.t) < 0)
    assert np.all(sol.stats.h < 0)
    assert sol.y[:, -1] == pytest.approx(RELAX_START, abs=1e-5)
    times = np.linspace(0, 2, 7)
    np.testing.assert_allclose(sol.sol(times)[0], relax_exact(times), atol=1e-5)


def test_backward_is_the_mirror_of_forward():
    forward = solve_dae(decay, (0, 1), [1.0])
    mirrored = solve_dae(lambda t, y, yp: [yp[0] - y[0]], (0, -1), [1.0])
    np.testing.assert_allclose(mirrored.t, -forward.t, rtol=1e-12)
    np.testing.assert_allclose(mirrored.y, forward.y, rtol=1e-9)
    np.testing.assert_allclose(mirrored.yp, -forward.yp, rtol=1e-7)


@pytest.mark.parametrize("dense_output", [False, True])
def test_t_eval(reference, dense_output):
    times = np.linspace(*SPAN, 57)
    sol = solve_dae(relax, SPAN, RELAX_START, t_eval=times, dense_output=dense_output)
    dense = solve_dae(relax, SPAN, RELAX_START, dense_output=True)
    np.testing.assert_array_equal(sol.t, times)
    assert sol.y.shape == sol.yp.shape == (2, 57)
    y, yp = dense.sol(times)
    np.testing.assert_allclose(sol.y, y, rtol=1e-11)
    # at the start y' is that of the start, not of the first step's straight line
    np.testing.assert_allclose(sol.yp[:, 1:], yp[:, 1:], rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(sol.yp[:, 0], [-1.5, -0.5], atol=1e-6)
    np.testing.assert_array_equal(sol.y[:, 0], RELAX_START)
    np.testing.assert_allclose(sol.y[:, -1], reference.y[:, -1], rtol=1e-13)
    assert sol.stats.steps == reference.stats.steps
    assert (sol.stats.t is None) is not dense_output
    assert (sol.sol is None) is not dense_output
    if dense_output:
        np.testing.assert_allclose(sol.sol(times)[0], y, rtol=1e-13)


@pytest.mark.parametrize("times", [[], [0.0], [2.0], [0.0, 2.0], [0.3], (0.1, 1), np.array([1])])
def test_few_output_times(times):
    sol = solve_dae(relax, SPAN, RELAX_START, t_eval=times)
    np.testing.assert_array_equal(sol.t, np.asarray(times, float))
    assert sol.y.shape == (2, len(times))
    assert str(sol).startswith("success")
    if len(times):
        np.testing.assert_allclose(sol.y, relax_exact(sol.t), atol=2e-5)


def test_more_output_times_than_steps_and_backward():
    times = np.linspace(2, 0, 1001)
    end = relax_exact(2.0)
    sol = solve_dae(relax, (2, 0), end, t_eval=times)
    np.testing.assert_array_equal(sol.t, times)
    np.testing.assert_allclose(sol.y, relax_exact(times), atol=1e-4)


def test_unreached_output_times_are_left_out():
    times = np.linspace(0, 100, 11)
    sol = solve_dae(circle, (0, 100), [1.0, 0.0], t_eval=times, max_steps=500)
    assert not sol.success
    assert 1 < len(sol.t) < 11
    np.testing.assert_array_equal(sol.t, times[: len(sol.t)])
    np.testing.assert_allclose(sol.y, [np.cos(sol.t), -np.sin(sol.t)], atol=1e-3)


# --- dense output ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def dense():
    return solve_dae(circle, (0, 10), [1.0, 0.0], rtol=1e-8, atol=1e-10, dense_output=True)


def test_dense_output_passes_through_the_steps(dense):
    y, yp = dense.sol(dense.t)
    np.testing.assert_allclose(y, dense.y, atol=1e-14)
    # y' of the polynomial and of the formula differ by their errors, most at order 1
    np.testing.assert_allclose(yp, dense.yp, atol=1e-4)
    np.testing.assert_allclose(yp[:, 50:], dense.yp[:, 50:], atol=1e-6)


def test_dense_output_is_continuous_at_the_steps(dense):
    inner = dense.t[1:-1]
    left, _ = dense.sol(inner)
    right, _ = dense.sol(np.nextafter(inner, np.inf))
    np.testing.assert_allclose(left, right, atol=1e-13)


def test_dense_output_is_as_accurate_as_the_steps(dense):
    times = np.linspace(0, 10, 1234)
    exact = np.array([np.cos(times), -np.sin(times)])
    y, yp = dense.sol(times)
    at_steps = error_at_steps(dense, lambda t: [np.cos(t), -np.sin(t)])
    assert np.max(np.abs(y - exact)) < 3 * at_steps < 1e-5
    assert np.max(np.abs(yp - [-np.sin(times), -np.cos(times)])) < 1e-4


def test_dense_output_shapes(dense):
    assert isinstance(dense.sol, Interpolant)
    assert (dense.sol.t_min, dense.sol.t_max) == (0.0, 10.0)
    for t in (3.0, 3, np.float64(3.0), np.array(3.0)):
        y, yp = dense.sol(t)
        assert y.shape == yp.shape == (2,)
    for times in ([1.0, 3.0, 2.0], np.array([1.0, 3.0, 2.0]), (1, 3, 2)):
        y, yp = dense.sol(times)
        assert y.shape == yp.shape == (2, 3)
        np.testing.assert_array_equal(y[:, 1], dense.sol(3.0)[0])
    assert dense.sol([])[0].shape == (2, 0)
    np.testing.assert_array_equal(dense(3.0), dense.sol(3.0))


@pytest.mark.parametrize("t", [-0.1, 10.1, [5.0, 11.0], math.nan, math.inf, [[1.0, 2.0]]])
def test_dense_output_out_of_range(dense, t):
    with pytest.raises(ValueError, match=r"\bt must"):
        dense.sol(t)


def test_no_dense_output_unless_asked_for(reference):
    assert reference.sol is None
    with pytest.raises(ValueError, match="dense_output=True"):
        reference(0.5)


# --- options that limit the steps --------------------------------------------------------------


@pytest.mark.parametrize("first_step", [1e-8, 1e-4, 0.01])
def test_first_step(first_step):
    sol = solve_dae(decay, (0, 1), [1.0], first_step=first_step, rtol=1e-2, atol=1e-2)
    assert sol.t[1] - sol.t[0] == pytest.approx(first_step, rel=1e-12)
    backward = solve_dae(decay, (1, 0), [1.0], first_step=first_step, rtol=1e-2, atol=1e-2)
    assert backward.t[0] - backward.t[1] == pytest.approx(first_step, rel=1e-6)


def test_first_step_of_the_whole_interval():
    sol = solve_dae(lambda t, y, yp: [yp[0] - 1.0], (0, 1), [0.0], first_step=1.0)
    assert sol.t.tolist() == [0.0, 1.0]


@pytest.mark.parametrize("max_step", [0.01, 0.25])
def test_max_step(max_step):
    sol = solve_dae(lambda t, y, yp: [yp[0] - 1.0], (0, 3), [0.0], max_step=max_step)
    assert sol.success
    assert np.max(np.diff(sol.t)) <= max_step * (1 + 1e-12)
    assert np.max(np.diff(sol.t)) > 0.9 * max_step
    assert len(sol.t) - 1 >= 3 / max_step


@pytest.mark.parametrize("max_order", [1, 2, 3, 4, 5])
def test_max_order(max_order):
    sol = solve_dae(circle, (0, 20), [1.0, 0.0], max_order=max_order, rtol=1e-7, atol=1e-7,
                    max_steps=3000)
    assert sol.stats.order.max() == max_order
    assert sol.stats.order[0] == 1


def test_max_order_pays():
    steps = [solve_dae(circle, (0, 5), [1.0, 0.0], max_order=k).stats.steps for k in (1, 2, 5)]
    assert steps[0] > 5 * steps[1]
    assert steps[1] > 1.5 * steps[2]


@pytest.mark.parametrize("option", [{"controller": "dassl"}, {"error_norm": "rms"},
                                    {"newton_norm": "rms"}, {"newton_tolerance": 0.01}])
def test_other_options_reach_the_core(option):
    usual = solve_dae(van_der_pol, (0, 100), [2.0, 0.0])
    sol = solve_dae(van_der_pol, (0, 100), [2.0, 0.0], options=option)
    assert sol.success
    assert sol.nfev != usual.nfev
    np.testing.assert_allclose(sol.y[:, -1], usual.y[:, -1], rtol=1e-2)


def test_arguments_override_options():
    tight = solve_dae(relax, SPAN, RELAX_START, rtol=1e-9, max_order=3)
    for options in (Options(rtol=1e-3, max_order=3), {"rtol": 1e-3, "max_order": 3}):
        assert_same(solve_dae(relax, SPAN, RELAX_START, rtol=1e-9, options=options), tight)
    loose = solve_dae(relax, SPAN, RELAX_START, rtol=1e-3)
    assert_same(solve_dae(relax, SPAN, RELAX_START, options={"rtol": 1e-3}), loose)


def test_tolerance_per_component():
    """A component that asks for less is solved with less work."""
    both = solve_dae(circle, (0, 20), [1.0, 0.0], rtol=0, atol=1e-9)
    same = solve_dae(circle, (0, 20), [1.0, 0.0], rtol=[0, 0], atol=[1e-9, 1e-9])
    one = solve_dae(circle, (0, 20), [1.0, 0.0], rtol=0, atol=[1e-3, 1e-3])
    assert_same(same, both)
    assert one.stats.steps < 0.6 * both.stats.steps
    mixed = solve_dae(lambda t, y, yp: [*circle(t, y, yp), yp[2] - 50 * np.cos(50 * t)], (0, 3),
                      [1.0, 0.0, 0.0], rtol=0, atol=[1e-8, 1e-8, 1e3])
    assert np.max(np.abs(mixed.y[0] - np.cos(mixed.t))) < 1e-5
    assert mixed.stats.steps < 200


# --- callback and progress ---------------------------------------------------------------------


def test_callback_sees_every_step(reference):
    seen = []
    sol = solve_dae(relax, SPAN, RELAX_START, callback=lambda t, y, yp: seen.append((t, *y, *yp)))
    assert_same(sol, reference)
    np.testing.assert_array_equal(np.array(seen).T, np.vstack([sol.t, sol.y, sol.yp])[:, 1:])


def test_callback_stops():
    sol = solve_dae(decay, (0, 10), [1.0], callback=lambda t, y, yp: y[0] < 0.5)
    assert sol.status == Status.STOPPED
    assert sol.success
    assert np.all(sol.y[0, :-1] >= 0.5)
    assert sol.y[0, -1] < 0.5


def test_callback_cannot_undo_the_end():
    sol = solve_dae(decay, (0, 1), [1.0], callback=lambda t, y, yp: t == 1.0)
    assert sol.status == Status.REACHED_END


def test_callback_with_t_eval_and_failure():
    steps = []
    sol = solve_dae(decay, (0, 1), [1.0], t_eval=[0.5], max_steps=9,
                    callback=lambda t, y, yp: steps.append(t))
    assert sol.status == Status.MAX_STEPS
    assert len(steps) == 9


def test_progress(capfd):
    sol = solve_dae(circle, (0, 10), [1.0, 0.0], progress=True)
    out, err = capfd.readouterr()
    assert out == ""
    assert err.endswith("\n")
    last = err.rsplit("\r", 1)[-1]
    assert last.startswith("[" + "#" * 30 + "] 100.0%")
    assert f"steps={sol.stats.steps}" in last
    assert f"order={sol.stats.order[-1]}" in last
    assert "h=" in last
    assert "t=10" in last


def test_progress_of_a_run_that_stops_half_way(capfd):
    solve_dae(decay, (0, 10), [1.0], progress=True, callback=lambda t, y, yp: t > 5)
    last = capfd.readouterr().err.rsplit("\r", 1)[-1]
    assert 14 <= last.count("#") <= 20
    solve_dae(decay, (10, 0), [1.0], progress=True, callback=lambda t, y, yp: t < 5)
    last = capfd.readouterr().err.rsplit("\r", 1)[-1]
    assert 14 <= last.count("#") <= 20


def test_nothing_is_written_without_progress(capfd):
    solve_dae(circle, (0, 10), [1.0, 0.0])
    assert capfd.readouterr() == ("", "")


# --- the result --------------------------------------------------------------------------------


def test_names_and_shapes_of_scipy(reference):
    sol = reference
    assert isinstance(sol, DaeResult)
    assert sol.t.shape == (len(sol.t),)
    assert sol.y.shape == sol.yp.shape == (2, len(sol.t))
    assert sol.t[0] == SPAN[0]
    assert sol.t[-1] == SPAN[1]
    assert sol.sol is sol.t_events is sol.y_events is sol.yp_events is None
    assert sol.status == 0
    assert sol.success is True
    assert sol.message == Status.REACHED_END.text
    assert isinstance(sol.stats, Statistics)
    assert (sol.nfev, sol.njev, sol.nlu) == (sol.stats.nfev, sol.stats.njev, sol.stats.nlu)
    for count in (sol.nfev, sol.njev, sol.nlu):
        assert isinstance(count, int)
        assert count > 0


def test_counters_count_the_calls():
    calls = {"fun": 0, "jac": 0}

    def fun(t, y, yp):
        calls["fun"] += 1
        return relax(t, y, yp)

    def jac(t, y, yp):
        calls["jac"] += 1
        return JACOBIAN

    sol = solve_dae(fun, SPAN, RELAX_START, trace="never")
    assert sol.nfev == calls["fun"]
    calls["fun"] = 0
    sol = solve_dae(fun, SPAN, RELAX_START, jac=jac, trace="never")
    assert (sol.nfev, sol.njev) == (calls["fun"], calls["jac"])
    calls["fun"] = calls["jac"] = 0
    sol = solve_dae(relax, SPAN, RELAX_START, jac=jac)
    assert sol.njev == calls["jac"]


def test_work_is_modest(reference):
    assert reference.stats.steps < 60
    assert reference.nfev < 3 * reference.stats.steps
    assert reference.njev <= 5
    assert reference.nlu < reference.stats.steps


def test_history_of_the_steps(reference):
    stats = reference.stats
    assert len(stats.t) == len(stats.h) == len(stats.order) == stats.steps
    np.testing.assert_array_equal(stats.t, reference.t[1:])
    np.testing.assert_array_equal(stats.h, np.diff(reference.t))
    assert stats.order[0] == 1
    assert np.all(np.abs(np.diff(stats.order)) <= 1)
    assert stats.seconds > 0


def test_no_step_is_kept_with_t_eval():
    sol = solve_dae(circle, (0, 1000), [1.0, 0.0], t_eval=[1000.0])
    assert sol.stats.steps > 5000
    assert sol.stats.t is sol.stats.h is sol.stats.order is None
    assert sol.t.shape == (1,)
    assert sol.y.base is None or sol.y.base.size <= 4


def test_many_steps_are_kept():
    """More than the record has room for at first."""
    sol = solve_dae(circle, (0, 500), [1.0, 0.0], dense_output=True)
    assert len(sol.t) == sol.stats.steps + 1 > 3000
    assert np.all(np.diff(sol.t) > 0)
    np.testing.assert_allclose(sol.sol(sol.t)[0], sol.y, atol=1e-12)


def test_results_compare_by_identity(reference):
    assert reference == reference
    assert reference != solve_dae(relax, SPAN, RELAX_START)
    assert len({reference, reference}) == 1


def test_results_can_be_pickled():
    sol = solve_dae(relax, SPAN, RELAX_START, dense_output=True, events=lambda t, y, yp: y[0] - 1)
    copy = pickle.loads(pickle.dumps(sol))
    assert copy.status is sol.status
    assert str(copy) == str(sol)
    np.testing.assert_array_equal(copy.sol(0.7), sol.sol(0.7))


def test_print_of_a_success(reference):
    text = str(reference)
    stats = reference.stats
    assert text.startswith("success: The end of the interval was reached.")
    assert f"{stats.steps} accepted" in text
    assert f"{stats.nfev} residuals, {stats.njev} Jacobians, {stats.nlu} factorisations" in text
    assert f"order up to {stats.order.max()}" in text
    assert "2 unknowns" in text
    assert f"{reference.y[0, -1]:.6g}" in text
    assert all(len(line) < 110 for line in text.splitlines())


def test_print_of_a_failure():
    sol = solve_dae(decay, (0, 1), [1.0], max_steps=3)
    text = str(sol)
    assert text.startswith("FAILED: The limit of steps was reached.")
    assert "3 accepted" in text
    assert "residuals" in text


def test_print_of_events_and_many_unknowns():
    events = [lambda t, y, yp: y[0] - 0.5, lambda t, y, yp: 1.0]
    sol = solve_dae(lambda t, y, yp: yp + y, (0, 1), np.ones(30), events=events)
    text = str(sol)
    assert "event 0  1 times, last at 0.69314" in text
    assert "event 1  0 times" in text
    assert "..." in text


@pytest.fixture
def pyplot():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    yield pyplot
    pyplot.close("all")


def test_plot(pyplot, reference):
    figure = reference.plot()
    states, size, order = figure.axes
    assert len(states.lines) == 2
    np.testing.assert_array_equal(states.lines[1].get_ydata(), reference.y[1])
    np.testing.assert_array_equal(size.lines[0].get_ydata(), np.diff(reference.t))
    np.testing.assert_array_equal(order.lines[0].get_ydata(), reference.stats.order)
    figure.savefig(io.BytesIO())


def test_plot_of_chosen_components_with_t_eval_and_events(pyplot):
    def event(t, y, yp):
        return y[0] - 1.0

    sol = solve_dae(relax, SPAN, RELAX_START, t_eval=[0.0, 1.0, 2.0], events=event)
    figure = sol.plot(components=[1], labels=["current"])
    (states,) = figure.axes
    assert len(states.lines) == 1 + len(sol.t_events[0]) == 2
    assert states.get_legend().get_texts()[0].get_text() == "current"
    figure.savefig(io.BytesIO())
    with pytest.raises(ValueError, match="labels"):
        sol.plot(labels=["one"])


def test_plot_of_a_failed_start(pyplot):
    sol = solve_dae(lambda t, y, yp: [math.nan], (0, 1), [1.0])
    assert len(sol.plot().axes) == 1


# --- Bdf ---------------------------------------------------------------------------------------


@called_or_traced
def test_bdf_takes_the_steps_of_solve_dae(trace):
    sol = solve_dae(relax, SPAN, RELAX_START, rtol=1e-8, dense_output=True, trace=trace)
    bdf = Bdf(Problem(relax), SPAN[0], RELAX_START, options={"rtol": 1e-8, "trace": trace},
              t_bound=SPAN[1])
    assert bdf.t == 0.0
    assert bdf.t_old is None
    assert bdf.status == Status.RUNNING
    np.testing.assert_array_equal(bdf.yp, sol.yp[:, 0])
    for row in range(1, len(sol.t)):
        expected_size = bdf.next_step
        status = bdf.step()
        assert status == bdf.status
        assert (bdf.t_old, bdf.t) == (sol.t[row - 1], sol.t[row])
        np.testing.assert_array_equal(bdf.y, sol.y[:, row])
        np.testing.assert_array_equal(bdf.yp, sol.yp[:, row])
        assert bdf.order == sol.stats.order[row - 1]
        assert bdf.step_size == pytest.approx(bdf.t - bdf.t_old, rel=1e-12)
        assert abs(bdf.step_size) <= abs(expected_size) * (1 + 1e-12)
        inside = np.linspace(bdf.t_old, bdf.t, 5)
        y, yp = bdf.dense_output()(inside)
        np.testing.assert_allclose(y, sol.sol(inside)[0], rtol=1e-12)
        np.testing.assert_allclose(yp[:, 1:], sol.sol(inside)[1][:, 1:], rtol=1e-5, atol=1e-8)
    assert bdf.status == Status.REACHED_END
    assert bdf.stats.steps == sol.stats.steps
    checks = 2 if trace == "never" else 1      # a called function is asked twice
    assert (bdf.stats.nfev + checks, bdf.stats.nlu) == (sol.nfev, sol.nlu)
    assert bdf.step() == Status.REACHED_END
    assert bdf.t == SPAN[1]


def test_bdf_without_bound_and_backward():
    bdf = Bdf(decay, 0.0, [1.0])
    while bdf.t < 5.0:
        assert bdf.step() == Status.RUNNING
    assert bdf.y[0] == pytest.approx(math.exp(-bdf.t), rel=1e-4)
    backward = Bdf(decay, 0.0, [1.0], t_bound=-math.inf)
    while backward.t > -1.0:
        assert backward.step() == Status.RUNNING
    assert backward.y[0] == pytest.approx(math.exp(-backward.t), rel=1e-4)


def test_bdf_hands_out_copies():
    bdf = Bdf(decay, 0.0, [1.0], t_bound=1.0)
    bdf.step()
    bdf.y[:] = 7.0
    bdf.yp[:] = 7.0
    polynomial = bdf.dense_output()
    before = polynomial(bdf.t)[0].copy()
    while bdf.step() == Status.RUNNING:
        pass
    assert bdf.y[0] == pytest.approx(math.exp(-1), rel=1e-5)
    np.testing.assert_array_equal(polynomial(polynomial.t)[0], before)


@called_or_traced
def test_two_integrations_side_by_side(trace):
    """No state is shared: interleaved they go the ways they go alone."""
    problems = ((decay, [1.0]), (circle, [1.0, 0.0]))
    alone = [solve_dae(fun, (0, 1), y0, trace=trace) for fun, y0 in problems]
    pair = [Bdf(fun, 0.0, y0, options={"trace": trace}, t_bound=1.0) for fun, y0 in problems]
    while any(bdf.step() == Status.RUNNING for bdf in pair):
        pass
    while pair[1].step() == Status.RUNNING:
        pass
    for bdf, sol in zip(pair, alone, strict=True):
        np.testing.assert_array_equal(bdf.y, sol.y[:, -1])


def test_residual_that_integrates_another_problem():
    """A run inside a run."""
    def fun(t, y, yp):
        inner = solve_dae(decay, (0, 1), [1.0]).y[0, -1]
        return [yp[0] + inner * y[0]]

    sol = solve_dae(fun, (0, 1), [1.0])
    rate = solve_dae(decay, (0, 1), [1.0]).y[0, -1]
    assert sol.y[0, -1] == pytest.approx(math.exp(-rate), rel=1e-5)


@called_or_traced
def test_runs_in_threads_agree(library, trace):
    fun = c_function(library, "spin")
    results = {}

    def run(name, problem):
        results[name] = solve_dae(problem, (0, 5), [1.0, 0.0], trace=trace)

    threads = [threading.Thread(target=run, args=(i, fun if i % 2 else circle)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i in range(2, 6):
        np.testing.assert_array_equal(results[i].y, results[i % 2].y)


def test_one_semi_explicit_problem_serves_two_sizes():
    problem = Problem.semi_explicit(lambda t, x, z: -z, lambda t, x, z: x - z)
    for n in (1, 3):
        sol = solve_dae(problem, (0, 1), np.ones(2 * n))
        np.testing.assert_allclose(sol.y[:, -1], np.exp(-1.0), rtol=1e-5)


@called_or_traced
def test_runs_in_threads_do_not_disturb_each_other(trace):
    from concurrent.futures import ThreadPoolExecutor

    def run(rtol):
        return solve_dae(lambda t, y, yp: [yp[0] + y[1], yp[1] - y[0]], (0, 20), [1.0, 0.0],
                         rtol=rtol, trace=trace)

    rtols = [1e-4, 1e-5, 1e-6, 1e-7] * 3
    alone = [run(rtol) for rtol in rtols]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(run, rtols))
    for one, other in zip(alone, together, strict=True):
        assert one.nfev == other.nfev
        np.testing.assert_array_equal(one.y, other.y)


def test_dense_output_at_many_times_in_any_order():
    """Many times over many steps are sorted into the steps once."""
    sol = solve_dae(lambda t, y, yp: [yp[0] + y[1], yp[1] - y[0]], (0, 300), [1.0, 0.0],
                    rtol=1e-8, atol=1e-8, dense_output=True)
    times = np.random.default_rng(0).uniform(0, 300, 30_000)
    y, yp = sol.sol(times)
    np.testing.assert_allclose(y, [np.cos(times), np.sin(times)], atol=1e-4)
    np.testing.assert_allclose(yp, [-np.sin(times), np.cos(times)], atol=1e-4)
    assert sol.sol([])[0].shape == (2, 0)


def test_what_a_run_makes_has_all_of_its_fields_and_cannot_be_changed():
    sol = solve_dae(lambda t, y, yp: [yp[0] + y[0]], (0, 1), [1.0])
    for thing in (sol, sol.stats, sol.start):
        again = dataclasses.replace(thing)
        for field in dataclasses.fields(thing):
            assert getattr(again, field.name) is getattr(thing, field.name)
        with pytest.raises(dataclasses.FrozenInstanceError):
            thing.message = None


@pytest.mark.parametrize("n", [1, 2, 40])
def test_large_values_are_finite_and_infinite_ones_are_named(n):
    large = np.full(n, 1e200)
    sol = solve_dae(lambda t, y, yp: [yp[i] for i in range(n)], (0, 1), large, large * 0)
    assert sol.success
    assert (sol.y == 1e200).all()
    large[-1] = np.inf
    with pytest.raises(ValueError, match=rf"y0\[{n - 1}\] is inf"):
        solve_dae(lambda t, y, yp: [yp[i] for i in range(n)], (0, 1), large)


def test_the_history_of_steps_leaves_out_the_rows_of_restarts():
    kicks = []

    def kick(t, y, yp):
        return y[0] - 0.5

    def apply(t, y, yp):
        kicks.append(t)
        return [2.0]

    kick.apply, kick.direction = apply, -1
    fun = lambda t, y, yp: [yp[0] + y[0]]  # noqa: E731
    for options in ({}, {"events": kick}, {"t_breaks": [0.5]}):
        sol = solve_dae(fun, (0, 3), [1.0], **options)
        stats = sol.stats
        assert len(stats.t) == len(stats.h) == len(stats.order) == stats.steps
        assert stats.order.min() > 0
        assert stats.t[-1] == 3.0
        assert stats.h.sum() == pytest.approx(3.0, rel=1e-12)
        assert set(stats.t) <= set(sol.t)
        assert not np.shares_memory(stats.t, sol.t)
    assert kicks
