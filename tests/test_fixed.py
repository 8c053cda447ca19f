"""Constant-step BDF: the orders of the theory, every kind of function, failures, bad input."""

import math

import numpy as np
import pytest
from scipy import LowLevelCallable
from support.helpers import RELAX_START, c_function, decay, relax, relax_exact

from tether import Constraint, Problem, Status
from tether.fixed import differentiation, extrapolate, radau_nodes, solve_fixed
from tether.studies import arevalo
from tether.studies.orders import LEAST_ORDER, PROBLEMS, circuit, circuit_exact, late_error

CIRCLE, SPHERE = arevalo.EXAMPLES


def errors(sol, exact):
    return np.abs(sol.y - exact(sol.t))


# --- orders -------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", LEAST_ORDER)
@pytest.mark.parametrize("name", PROBLEMS)
def test_order_is_k_in_all_components(name, k):
    coarse, fine = (late_error(name, k, n, with_history=True) for n in (80, 160))
    assert LEAST_ORDER[k] <= math.log2(coarse / fine) < k + 1


@pytest.mark.parametrize("k", [2, 3, 4, 5, 6])
@pytest.mark.parametrize("name", PROBLEMS)
def test_order_is_k_from_y0_alone(name, k):
    """The starting values that are found do as well as the exact ones."""
    coarse, fine = (late_error(name, k, n, with_history=False) for n in (80, 160))
    assert LEAST_ORDER[k] <= math.log2(coarse / fine)
    assert fine == pytest.approx(late_error(name, k, 160, with_history=True), rel=0.2)


@pytest.mark.parametrize(
    ("name", "k", "orders"),
    # by component: k + 1 and more where there is a derivative, k in multipliers of index 3
    [("circuit", 3, [4, 4]), ("flow", 3, [4, 4, 4, 4]), ("mechanism", 3, [4, 4, 4, 4, 3])],
)
def test_starting_values_have_the_order_that_is_promised(name, k, orders):
    fun, exact = PROBLEMS[name].residual, PROBLEMS[name].exact
    coarse, fine = (
        errors(solve_fixed(fun, (0, k * h), exact(0.0), order=k, step=h), exact)[:, 1:k].max(axis=1)
        for h in (1 / 10, 1 / 20)
    )
    assert np.all(fine > 1e-15)
    assert np.all(np.log2(coarse / fine) > np.array(orders) - 0.3)


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_multiplier_loses_an_order_in_the_first_k_steps(k):
    """LP1: with exact starting values, in index 3."""
    sizes = []
    for n in (80, 160):
        history = CIRCLE.exact(np.arange(k) / n)
        sol = solve_fixed(CIRCLE.residual, (0, 1), None, order=k, step=1 / n, history=history)
        sizes.append(errors(sol, CIRCLE.exact)[4, k : 2 * k].max())
    assert math.log2(sizes[0] / sizes[1]) == pytest.approx(k - 1, abs=0.3)


def circle_jac(t, y, yp):
    x, z, lam = y[0], y[1], y[4]
    fy = np.zeros((5, 5))
    fy[0, 2] = fy[1, 3] = -1.0
    fy[2, [0, 1, 4]] = -lam, -2.0, -x
    fy[3, [0, 1, 4]] = 2.0, -lam, -z
    fy[4, :2] = 2 * x, 2 * z
    return fy, np.diag([1.0, 1.0, 1.0, 1.0, 0.0])


# --- what is returned ---------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 2, 5])
def test_derivative_is_the_difference_formula(k):
    sol = solve_fixed(relax, (0, 1), RELAX_START, order=k, step=0.1)
    for n in range(k, 11):
        np.testing.assert_allclose(relax(sol.t[n], sol.y[:, n], sol.yp[:, n]), 0, atol=1e-13)
    first = np.polynomial.Polynomial.fit(sol.t[: k + 1], sol.y[0, : k + 1], k).deriv()
    np.testing.assert_allclose(sol.yp[0, :k], first(sol.t[:k]), rtol=1e-10)


def test_shape_of_the_result():
    sol = solve_fixed(relax, (1, 0), relax_exact(1.0), [0.5, 0.25], order=3, step=0.1)
    assert sol.success
    assert sol.status == Status.REACHED_END
    assert sol.t[0] == 1.0
    assert sol.t[-1] == 0.0
    np.testing.assert_allclose(np.diff(sol.t), -0.1)
    assert sol.y.shape == sol.yp.shape == (2, 11)
    assert sol.yp[:, 0].tolist() == [0.5, 0.25]
    assert errors(sol, relax_exact).max() < 1e-3
    assert sol.stats.steps == 8
    assert len(sol.stats.h) == len(sol.stats.order) == len(sol.stats.t) == 8
    assert "2 values by Radau" in str(sol)


def test_history_is_used_as_it_is():
    history = relax_exact(np.arange(3) * 0.1)
    sol = solve_fixed(relax, (0, 1), None, order=3, step=0.1, history=history)
    np.testing.assert_array_equal(sol.y[:, :3], history)
    shifted = solve_fixed(relax, (0, 1), [9.0, 9.0], order=3, step=0.1, history=history + 0.01)
    np.testing.assert_array_equal(shifted.y[:, :3], history + 0.01)
    assert abs(shifted.y[0, -1] - sol.y[0, -1]) > 1e-3


def test_newton_takes_two_iterations_on_a_linear_problem():
    """One to solve it, one to see that nothing is left."""
    matrices = np.array([[0.0, 1.0], [1.0, -1.0]]), np.diag([1.0, 0.0])
    sol = solve_fixed(relax, (0, 1), RELAX_START, order=2, step=0.05, jac=matrices)
    assert sol.stats.iterations <= 2 * 20
    assert sol.njev == sol.nfev <= 2 * 19 + 2 * 3      # three stages of Radau, once


def test_guess_follows_the_solution():
    """At high order the extrapolated values leave two iterations to do."""
    sol = solve_fixed(
        circuit, (0, 1), circuit_exact(0.0), order=5, step=1 / 160, jac=circuit_jac
    )
    assert sol.stats.iterations < 2.2 * 160


def circuit_jac(t, y, yp):
    return np.diag([1.0, 1.0 + 3 * y[1] ** 2]), np.array([[1.0, -1.0], [-1.0, 1.0]])


def test_mass_matrix_is_differenced_anew():
    """exp(60 y) y' = 1: with F_y' of the first step Newton would crawl or diverge."""
    sol = solve_fixed(
        lambda t, y, yp: [math.exp(60 * y[0]) * yp[0] - math.exp(60 * t)], (0, 1), [0.0],
        order=2, step=1 / 80,
    )
    assert sol.success
    np.testing.assert_allclose(sol.y[0], sol.t, atol=1e-12)
    assert sol.stats.iterations < 7 * 80


def test_solution_that_passes_through_zero():
    """There round-off, exaggerated here, is large against the solution, not against its past."""
    sol = solve_fixed(
        lambda t, y, yp: [yp[0] - 0.7 + 1e-14 * math.sin(1e18 * y[0])], (0, 2), [-0.7],
        order=3, step=0.1, jac=([[0.0]], [[1.0]]),
    )
    assert sol.success
    np.testing.assert_allclose(sol.y[0], 0.7 * (sol.t - 1), atol=1e-13)


def test_units_of_a_multiplier_do_not_spoil_the_matrix():
    scale = np.array([1.0, 1.0, 1.0, 1.0, 1e12])

    def jac(t, y, yp):
        fy, fyp = circle_jac(t, y / scale, yp)
        return fy / scale, fyp

    sol = solve_fixed(
        lambda t, y, yp: CIRCLE.residual(t, y / scale, yp), (0, 0.002), scale * CIRCLE.exact(0.0),
        order=1, step=0.001, jac=jac,
    )
    assert sol.success
    error = np.abs(sol.y / scale[:, None] - CIRCLE.exact(sol.t))
    np.testing.assert_allclose(error[4, 1:], [2.008008, 0.008034064], rtol=5e-5)


# --- every kind of function ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def reference():
    return solve_fixed(relax, (0, 1), RELAX_START, order=2, step=0.1).y


def test_c_function(library, reference):
    fun = LowLevelCallable(c_function(library, "relax"))
    sol = solve_fixed(fun, (0, 1), RELAX_START, order=2, step=0.1)
    np.testing.assert_allclose(sol.y, reference, atol=1e-13)


def test_function_that_fills_and_takes_args(reference):
    def fun(t, y, yp, out, factor, shift):
        out[:] = relax(t, y, yp)
        out[0] = factor * out[0] + shift

    sol = solve_fixed(fun, (0, 1), RELAX_START, order=2, step=0.1, args=(3.0, 0.0))
    np.testing.assert_allclose(sol.y, reference, atol=1e-13)
    shifted = solve_fixed(fun, (0, 1), RELAX_START, order=2, step=0.1, args=(3.0, 0.3))
    assert np.abs(shifted.y - reference).max() > 0.01


def test_jac_is_called_with_args_and_saves_residuals(reference):
    calls = []

    def jac(t, y, yp, factor):
        calls.append(t)
        return [[0.0, factor], [1.0, -1.0]], np.diag([factor, 0.0])

    def fun(t, y, yp, factor):
        r = relax(t, y, yp)
        return [factor * r[0], r[1]]

    options = {"order": 2, "step": 0.1, "args": (2.0,)}
    sol = solve_fixed(fun, (0, 1), RELAX_START, jac=jac, **options)
    np.testing.assert_allclose(sol.y, reference, atol=1e-13)
    assert len(calls) == sol.njev
    assert sol.nfev < 0.5 * solve_fixed(fun, (0, 1), RELAX_START, **options).nfev


def test_problem_objects(reference):
    mass_form = Problem.mass_matrix(
        np.diag([1.0, 0.0]), lambda t, y: [-y[1], y[0] - y[1] + np.sin(t)]
    )
    split_form = Problem.semi_explicit(lambda t, x, z: -z, lambda t, x, z: x - z + np.sin(t))
    for problem in (mass_form, split_form):
        sol = solve_fixed(problem, (0, 1), RELAX_START, order=2, step=0.1)
        np.testing.assert_allclose(sol.y, reference, atol=1e-12)


def test_exact_jacobian_and_differences_agree_in_index_3():
    options = {"order": 1, "step": 0.001, "start": "discrete"}
    start = CIRCLE.exact(0.0)
    exact = solve_fixed(CIRCLE.residual, (0, 0.01), start, jac=circle_jac, **options)
    differenced = solve_fixed(CIRCLE.residual, (0, 0.01), start, **options)
    np.testing.assert_allclose(differenced.y[4, 1:], exact.y[4, 1:], rtol=0, atol=1e-6)
    assert errors(exact, CIRCLE.exact)[4, 1] == pytest.approx(0.0080120, rel=5e-6)
    assert exact.nfev < 0.1 * differenced.nfev


# --- coefficients -------------------------------------------------------------------------------


def test_bdf_coefficients():
    """The sum of the backward differences divided by their order."""
    for k in range(1, 7):
        alpha = np.zeros(k + 1)
        for j in range(1, k + 1):
            for i in range(j + 1):
                alpha[k - i] += (-1) ** i * math.comb(j, i) / j
        np.testing.assert_allclose(differentiation(np.arange(k + 1.0))[-1], alpha, rtol=1e-13)


def test_radau_nodes_integrate_to_twice_their_number():
    for stages in range(2, 8):
        nodes = radau_nodes(stages)
        vandermonde = nodes ** np.arange(stages)[:, None]
        weights = np.linalg.solve(vandermonde, 1 / np.arange(1, stages + 1))
        degree = 2 * stages - 2
        assert weights @ nodes**degree == pytest.approx(1 / (degree + 1), rel=1e-12)
        assert nodes[-1] == 1.0


def test_extrapolation_continues_a_polynomial():
    t = np.arange(4.0)
    assert extrapolate((t**3 - t)[None, :])[0] == pytest.approx(60.0)
    assert extrapolate(np.array([[2.0]]))[0] == 2.0


# --- failures -----------------------------------------------------------------------------------


def test_newton_that_cannot_converge():
    """y' + y^2 = -1 reaches infinity at t = π/2; close to it the equation has no real solution."""
    sol = solve_fixed(lambda t, y, yp: [yp[0] + y[0] ** 2 + 1], (0, 2), [0.0], order=1, step=0.25)
    assert not sol.success
    assert sol.status == Status.NO_CONVERGENCE
    assert sol.message.startswith("Newton")
    assert f"t = {sol.t[-1] + 0.25:.10g}" in sol.message
    assert 2 <= len(sol.t) < 8
    assert sol.y.shape == sol.yp.shape == (1, len(sol.t))
    assert np.all(np.diff(sol.y[0]) < 0)
    assert sol.stats.steps == len(sol.t) - 1


def test_dependent_equations():
    sol = solve_fixed(
        lambda t, y, yp: [yp[0] + y[1], 2 * yp[0] + 2 * y[1]], (0, 1), [1.0, 1.0],
        order=2, step=0.1,
    )
    assert sol.status == Status.SINGULAR_MATRIX
    assert "singular" in sol.message
    assert sol.y.tolist() == [[1.0], [1.0]]
    assert np.isnan(sol.yp).all()
    assert not sol.start.success


@pytest.mark.parametrize("seed", range(5))
def test_dependence_that_round_off_hides(seed):
    """The last equation is a combination of the others; elimination leaves no exact zero."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(4, 4))
    A[3] = rng.normal(size=3) @ A[:3]
    sol = solve_fixed(
        lambda t, y, yp: A @ (y - t), (0, 1), np.ones(4), order=1, step=0.1,
        jac=(A, np.zeros((4, 4))),
    )
    assert sol.status == Status.SINGULAR_MATRIX


def test_unknown_that_appears_nowhere():
    sol = solve_fixed(
        lambda t, y, yp: [yp[0] + y[0], y[0] - math.exp(-t)], (0, 1), [1.0, 0.0], order=1, step=0.1
    )
    assert sol.status == Status.SINGULAR_MATRIX


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_residual_that_stops_being_finite(bad):
    sol = solve_fixed(
        lambda t, y, yp: [yp[0] + y[0] if t < 0.55 else bad], (0, 1), [1.0], order=2, step=0.1
    )
    assert sol.status == Status.NON_FINITE
    assert len(sol.t) == 6
    np.testing.assert_allclose(sol.y[0], np.exp(-sol.t), rtol=1e-2)
    assert "t = 0.6" in sol.message


def test_jacobian_that_is_not_finite():
    sol = solve_fixed(decay, (0, 1), [1.0], order=1, step=0.5, jac=([[math.nan]], [[1.0]]))
    assert sol.status == Status.NON_FINITE


def test_too_few_iterations():
    sol = solve_fixed(
        lambda t, y, yp: [yp[0] + y[0] ** 3], (0, 1), [1.0], order=1, step=0.5, max_iterations=1
    )
    assert sol.status == Status.NO_CONVERGENCE
    assert "1 iterations" in sol.message


def test_wrong_jacobian_does_not_pass_for_convergence():
    """Newton with half the slope goes back and forth for ever."""
    sol = solve_fixed(decay, (0, 1), [1.0], order=1, step=0.5, jac=([[0.5]], [[0.5]]))
    assert sol.status == Status.NO_CONVERGENCE


def test_exceptions_of_the_user_pass_through():
    def fun(t, y, yp):
        if t > 0.5:
            raise ZeroDivisionError("mine")
        return decay(t, y, yp)

    with pytest.raises(ZeroDivisionError, match="mine"):
        solve_fixed(fun, (0, 1), [1.0], order=1, step=0.1)


# --- bad input ----------------------------------------------------------------------------------

BAD = [
    ({"order": 0}, ValueError, r"\border\b.*1 to 6"),
    ({"order": 7}, ValueError, r"\border\b.*1 to 6"),
    ({"order": 2.0}, TypeError, r"\border\b"),
    ({"order": True}, TypeError, r"\border\b"),
    ({"step": 0.0}, ValueError, r"\bstep\b"),
    ({"step": -0.1}, ValueError, r"\bstep\b.*direction"),
    ({"step": math.nan}, ValueError, r"\bstep\b"),
    ({"step": "small"}, TypeError, r"\bstep\b"),
    ({"step": 0.3}, ValueError, r"t_span.*whole number of steps.*3\.33"),
    ({"step": 0.1 * (1 + 1e-8)}, ValueError, r"whole number of steps"),
    ({"step": 2.0}, ValueError, r"at least order=2 steps"),
    ({"step": 1.0}, ValueError, r"at least order=2 steps"),
    ({"t_span": (0, 0)}, ValueError, r"t_span"),
    ({"t_span": (0, 1, 2)}, ValueError, r"t_span"),
    ({"t_span": 1.0}, ValueError, r"t_span"),
    ({"t_span": (0, math.inf)}, ValueError, r"t_span\[1\]"),
    ({"y0": None}, TypeError, r"\by0\b"),
    ({"y0": []}, ValueError, r"\by0\b"),
    ({"y0": [math.nan]}, ValueError, r"\by0\b"),
    ({"yp0": [1.0, 2.0]}, ValueError, r"\byp0\b"),
    ({"start": "guess"}, ValueError, r"\bstart\b.*exact.*discrete"),
    ({"start": "discrete"}, ValueError, r"discrete.*order=1"),
    ({"start": "discrete", "order": 1, "history": [[1.0]]}, ValueError, r"discrete.*history"),
    ({"blocks": ([0], [0])}, ValueError, r"blocks.*discrete"),
    ({"start": "discrete", "order": 1, "blocks": ([0], [1])}, ValueError, r"blocks.*0 to 0"),
    ({"start": "discrete", "order": 1, "blocks": ([0, 0], [0])}, ValueError, r"blocks"),
    ({"start": "discrete", "order": 1, "blocks": ([0], [])}, ValueError, r"blocks"),
    ({"start": "discrete", "order": 1, "blocks": ([0.5], [0])}, ValueError, r"blocks"),
    ({"start": "discrete", "order": 1, "blocks": 3}, ValueError, r"blocks"),
    ({"history": [1.0, 2.0]}, ValueError, r"history.*\(2,\)"),
    ({"history": [[1.0, 1.0, 1.0]]}, ValueError, r"history.*order=2"),
    ({"history": [[1.0, math.nan]]}, ValueError, r"history must be finite"),
    ({"history": [["a", "b"]]}, TypeError, r"history"),
    ({"history": [[1.0, 2.0], [1.0, 2.0]]}, ValueError, r"\by0\b"),
    ({"newton_tolerance": 0.0}, ValueError, r"newton_tolerance"),
    ({"newton_tolerance": "tight"}, TypeError, r"newton_tolerance"),
    ({"max_iterations": 0}, ValueError, r"max_iterations"),
    ({"max_iterations": 2.5}, TypeError, r"max_iterations"),
    ({"fun": 3}, TypeError, r"\bfun\b"),
    ({"fun": lambda t, y: y}, TypeError, r"\bfun\b"),
    ({"fun": lambda t, y, yp: [1.0, 2.0]}, ValueError, r"\bfun\b"),
    ({"jac": 3}, TypeError, r"\bjac\b"),
    ({"args": 3}, TypeError, r"\bargs\b"),
    ({"fun": Problem(decay), "jac": lambda t, y, yp: None}, ValueError, r"jac belong"),
    ({"fun": Problem(decay), "args": (1,)}, ValueError, r"args.*belong"),
    ({"fun": Problem(decay, invariants=Constraint(lambda t, y: y[0]))}, ValueError, r"project"),
    ({"fun": Problem.mass_matrix(np.eye(2), lambda t, y: y)}, ValueError, r"\by0\b"),
]


@pytest.mark.parametrize(("change", "error", "words"), BAD)
def test_bad_input_is_refused_by_name(change, error, words):
    arguments = {"fun": decay, "t_span": (0, 1), "y0": [1.0], "order": 2, "step": 0.1, **change}
    with pytest.raises(error, match=words):
        solve_fixed(
            arguments.pop("fun"), arguments.pop("t_span"), arguments.pop("y0"), **arguments
        )


def test_step_may_be_inexact_by_round_off():
    sol = solve_fixed(decay, (0, 1), [1.0], order=1, step=0.1 * (1 + 1e-11))
    assert len(sol.t) == 11
    assert sol.t[-1] == 1.0
