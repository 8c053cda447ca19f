"""y' for a given y (HK Appendix II): dense, sparse and banded; inconsistent y; index above 1."""

import math
import sys

import numpy as np
import pytest
from scipy import sparse
from support.helpers import start_python

from tether import Bdf, Problem, gallery
from tether.explain.start_words import start_words
from tether.start.derivative import (
    StateSystem,
    System,
    _Point,
    find_derivative,
)
from tether.start.double_system import Banded, Dense, Sparse

FORMS = ("dense", "sparse", "banded")


class Functions(System):
    """A system from functions, which counts its residuals."""

    def __init__(self, residual, jacobian, time_derivative=None):
        self.count = 0
        self._residual, self._jacobian = residual, jacobian
        if time_derivative is not None:
            self.time_derivative = time_derivative

    def residual(self, t, y, yp):
        self.count += 1
        return np.asarray(self._residual(t, y, yp))

    def jacobian(self, t, y, yp):
        return self._jacobian(t, y, yp)


class Linear(System):
    """E (y' - w') + A (y - w) + offset = 0, w(t) = a + b sin(t + c): its solution if offset = 0."""

    def __init__(self, rng, E, A, offset=0.0):
        self.E, self.A, self.offset = E, A, offset
        self.a, self.b, self.c = rng.uniform(-2, 2, (3, E.shape[0]))

    def w(self, t, derivative):
        return self.a * (derivative == 0) + self.b * np.sin(t + self.c + derivative * math.pi / 2)

    def residual(self, t, y, yp):
        return self.E @ (yp - self.w(t, 1)) + self.A @ (y - self.w(t, 0)) + self.offset

    def jacobian(self, t, y, yp):
        return self.A, self.E

    def time_derivative(self, t, y, yp):
        return -(self.E @ self.w(t, 2) + self.A @ self.w(t, 1))


def orthogonal(rng, n):
    return np.linalg.qr(rng.standard_normal((n, n)))[0]


def null_spaces(E, rank):
    """Orthonormal bases of the left and right null spaces."""
    u, _, vt = np.linalg.svd(E.toarray() if sparse.issparse(E) else E)
    return u[:, rank:], vt[rank:].T


def well_posed(E, A, rank):
    """Whether the pencil has index 1 and everything that is inverted has a condition below 1e4."""
    dense = E.toarray() if sparse.issparse(E) else E
    s = np.linalg.svd(dense, compute_uv=False)
    left, right = null_spaces(E, rank)
    return s[0] < 1e4 * s[rank - 1] and np.linalg.cond(left.T @ (A @ right)) < 1e4


def random_dense(rng):
    """E of any rank, rows and columns mixed."""
    n = int(rng.integers(2, 31))
    rank = int(rng.integers(1, n))
    E = np.diag(np.where(np.arange(n) < rank, rng.uniform(0.3, 3, n), 0.0))
    A = rng.standard_normal((n, n))
    A[rank:, rank:] = orthogonal(rng, n - rank) * rng.uniform(0.5, 2, n - rank)
    U, V = orthogonal(rng, n), orthogonal(rng, n)
    return U @ E @ V, U @ A @ V, rank


def random_banded(rng, ml, mu):
    """E = L D U with zeros in D: singular without a zero row, and of bandwidths ml, mu."""
    n = int(rng.integers(max(ml, mu) + 2, 31))
    rank = int(rng.integers(1, n))
    low, high = np.eye(n), np.eye(n)
    for k in range(1, ml + 1):
        low += np.diag(rng.uniform(-0.5, 0.5, n - k), -k)
    for k in range(1, mu + 1):
        high += np.diag(rng.uniform(-0.5, 0.5, n - k), k)
    D = np.where(rng.permutation(n) < rank, rng.uniform(0.3, 3, n), 0.0)
    A = np.triu(np.tril(rng.standard_normal((n, n)), mu), -ml) + 2 * np.eye(n)
    return low @ np.diag(D) @ high, A, rank


def random_sparse(rng):
    """Permuted band matrices with a few entries far from the diagonal."""
    E, A, rank = random_banded(rng, 1, 1)
    n = len(E)
    rows, columns = rng.permutation(n), rng.permutation(n)
    A += np.where(rng.uniform(size=(n, n)) < 1 / n, rng.standard_normal((n, n)), 0.0)
    return sparse.csr_array(E[rows][:, columns]), sparse.csr_array(A[rows][:, columns]), rank


def random_system(rng, form):
    """A system of index 1, with arguments that choose the form."""
    while True:
        if form == "dense":
            E, A, rank = random_dense(rng)
        elif form == "sparse":
            E, A, rank = random_sparse(rng)
        else:
            band = int(rng.integers(0, 4)), int(rng.integers(0, 4))
            E, A, rank = random_banded(rng, *band)
        if well_posed(E, A, rank):
            break
    more = {"band": band} if form == "banded" else {}
    return Linear(rng, E, A), rank, {"form": form, **more}


# --- HK's example and index 0 -------------------------------------------------------------


def hk_example(time_derivative):
    """y1 + y1' + y2' - g1 = 0, y2 - g2 = 0 with g1 = cos 2t, g2 = sin t."""
    return Functions(
        lambda t, y, yp: [y[0] + yp[0] + yp[1] - np.cos(2 * t), y[1] - np.sin(t)],
        lambda t, y, yp: (np.eye(2), np.array([[1.0, 1.0], [0.0, 0.0]])),
        time_derivative,
    )


@pytest.mark.parametrize("t", [0.0, 0.7, -3.0])
@pytest.mark.parametrize(
    "arguments", [{}, {"form": "sparse"}, {"form": "banded", "band": (0, 1)}], ids=FORMS
)
def test_the_example_of_hanson_and_krogh(t, arguments):
    y = np.array([1.5, np.sin(t)])
    exact = np.array([np.cos(2 * t) - 1.5 - np.cos(t), np.cos(t)])
    second = -2 * np.sin(2 * t) - exact[0]          # y1'' + y2'', in equal shares for least norm
    system = hk_example(lambda t, y, yp: np.array([2 * np.sin(2 * t), -np.cos(t)]))
    found = find_derivative(system, t, y, **arguments)
    assert found.success
    np.testing.assert_allclose(found.yp, exact, rtol=0, atol=1e-14)
    np.testing.assert_allclose(found.ypp.sum(), second, rtol=0, atol=1e-13)
    if not arguments:
        np.testing.assert_allclose(found.ypp, [second / 2, second / 2], rtol=0, atol=1e-13)
    differenced = find_derivative(hk_example(None), t, y, **arguments)
    assert differenced.success
    np.testing.assert_allclose(differenced.yp, exact, rtol=0, atol=1e-9)


def test_an_ode_takes_one_update():
    rng = np.random.default_rng(1)
    M = rng.standard_normal((6, 6))
    system = Functions(
        lambda t, y, yp: np.sin(M @ y) + t**2 - yp,
        lambda t, y, yp: (np.cos(M @ y)[:, None] * M, -np.eye(6)),
        lambda t, y, yp: np.full(6, 2 * t),
    )
    y = rng.standard_normal(6)
    found = find_derivative(system, 0.5, y)
    slope = np.sin(M @ y) + 0.25
    assert found.success
    assert found.iterations == (1, 0)
    assert system.count == 2
    np.testing.assert_allclose(found.yp, slope, rtol=1e-15, atol=1e-15)
    np.testing.assert_allclose(found.ypp, np.cos(M @ y) * (M @ slope) + 1.0, rtol=1e-13)
    for form in ({"form": "sparse"}, {"form": "banded", "band": (5, 5)}):
        again = find_derivative(system, 0.5, y, **form)
        assert again.success
        assert again.iterations in ((1, 0), (2, 0))
        np.testing.assert_allclose(again.yp, slope, rtol=1e-13, atol=1e-13)


def test_residual_before_and_after():
    system = hk_example(None)
    found = find_derivative(system, 0.0, [1.5, 0.0], [4.0, 0.0])
    assert found.residual[0] == 4.5
    assert found.residual[1] < 1e-14
    assert find_derivative(system, 0.0, [1.5, 0.0], found.yp).iterations == (0, 0)


def test_an_algebraic_system_without_derivatives():
    rng = np.random.default_rng(2)
    A = orthogonal(rng, 4)
    system = Linear(rng, np.zeros((4, 4)), A)
    for form in FORMS:
        band = (3, 3) if form == "banded" else None
        found = find_derivative(system, 1.0, system.w(1.0, 0), form=form, band=band)
        assert found.success
        np.testing.assert_allclose(found.yp, system.w(1.0, 1), atol=1e-13)


# --- random systems of index 1 ------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_random_systems(form):
    rng = np.random.default_rng(3)
    for _ in range(200):
        system, rank, arguments = random_system(rng, form)
        t = float(rng.uniform(-2, 2))
        guess = rng.standard_normal(len(system.a))
        found = find_derivative(system, t, system.w(t, 0), guess, **arguments)
        assert found.success, start_words(found.reason)
        assert found.equations == {}
        np.testing.assert_allclose(found.yp, system.w(t, 1), rtol=0, atol=1e-10)
        np.testing.assert_allclose(system.E @ (found.ypp - system.w(t, 2)), 0, atol=1e-9)
        if form == "dense":            # the least norm: no part in the null space of E
            _, right = null_spaces(system.E, rank)
            np.testing.assert_allclose(right.T @ found.ypp, 0, atol=1e-10)


def test_one_solve_of_the_linear_equations():
    """HK eq. 21 for any right-hand side that is compatible, in all forms."""
    rng = np.random.default_rng(11)
    for _ in range(30):
        E, A, rank = random_banded(rng, 2, 2)
        if not well_posed(E, A, rank):
            continue
        b1, b2 = E @ rng.standard_normal(len(E)), rng.standard_normal(len(E))
        for factors in (Dense(A, E, 1e-10), Sparse(A, E, 1e-10), Banded(A, E, 1e-10, 2, 2)):
            dyp, ypp = factors.solve(b1, b2)
            np.testing.assert_allclose(E @ dyp, b1, rtol=0, atol=1e-9)
            np.testing.assert_allclose(A @ dyp + E @ ypp, b2, rtol=0, atol=1e-9)


def test_nothing_is_left_to_solve_at_the_solution():
    rng = np.random.default_rng(12)
    system, _, _ = random_system(rng, "dense")
    y, yp, ypp = (system.w(0.3, k) for k in range(3))
    F, Ft = system.residual(0.3, y, yp), system.time_derivative(0.3, y, yp)
    b1, b2 = _Point(yp, F, Ft, system.A, system.E).right_hand_side(ypp, np.zeros_like(y))
    assert max(np.abs(b1).max(), np.abs(b2).max()) < 1e-12


def test_rows_in_other_units():
    rng = np.random.default_rng(4)
    for trial in range(60):
        system, _, arguments = random_system(rng, FORMS[trial % 3])
        units = 10.0 ** rng.integers(-9, 10, len(system.a))
        E, A = (sparse.csr_array(M) if sparse.issparse(M) else M for M in (system.E, system.A))
        system.E = sparse.diags_array(units) @ E if sparse.issparse(E) else units[:, None] * E
        system.A = sparse.diags_array(units) @ A if sparse.issparse(A) else units[:, None] * A
        found = find_derivative(system, 0.3, system.w(0.3, 0), **arguments)
        assert found.success, start_words(found.reason)
        np.testing.assert_allclose(found.yp, system.w(0.3, 1), rtol=0, atol=1e-10)


def test_forms_agree_and_take_dense_or_sparse_matrices():
    rng = np.random.default_rng(5)
    E, A, _ = random_banded(rng, 2, 1)
    for wrap in (np.asarray, sparse.csc_array, sparse.dia_array):
        system = Linear(np.random.default_rng(6), wrap(E), wrap(A))
        for form in FORMS:
            band = (2, 1) if form == "banded" else None
            found = find_derivative(system, 0.3, system.w(0.3, 0), form=form, band=band)
            np.testing.assert_allclose(found.yp, system.w(0.3, 1), rtol=0, atol=1e-11)


@pytest.mark.parametrize("form", ["sparse", "banded"])
def test_equations_in_an_order_that_hk_eq_24_does_not_bear(form):
    """y2' + y1 = ..., y1 + y2 = ...: the null spaces of E from left and right are orthogonal."""
    E, A = np.array([[0.0, 1.0], [0.0, 0.0]]), np.array([[1.0, 0.0], [1.0, 1.0]])
    system = Linear(np.random.default_rng(0), E, A)
    rhs = -system.residual(0.3, system.w(0.3, 0), 0.0), -system.time_derivative(0.3, 0, 0)
    printed = np.linalg.solve(np.block([[E, 1e-9 * np.eye(2)], [A, E]]), np.concatenate(rhs))
    assert np.abs(printed[:2] - system.w(0.3, 1)).max() > 0.1
    band = (1, 1) if form == "banded" else None
    found = find_derivative(system, 0.3, system.w(0.3, 0), form=form, band=band)
    assert found.success, start_words(found.reason)
    np.testing.assert_allclose(found.yp, system.w(0.3, 1), rtol=0, atol=1e-14)
    if form == "banded":
        assert Banded(A, E, 1e-10, 1, 1).widths == (3, 3)


# --- inconsistent y -----------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_inconsistent_values_are_detected(form):
    """Whatever the mixture: the answer has the same violated combinations as the residual."""
    rng = np.random.default_rng(7)
    for _ in range(200):
        system, rank, arguments = random_system(rng, form)
        left, _ = null_spaces(system.E, rank)
        combination = left @ rng.standard_normal(left.shape[1])
        size = 10.0 ** rng.uniform(-6, 0)
        system.offset = size * combination / np.linalg.norm(combination)
        found = find_derivative(system, 0.5, system.w(0.5, 0), **arguments)
        assert not found.success
        assert "inconsistent" in start_words(found.reason)
        np.testing.assert_allclose(
            left.T @ found.incompatibility, left.T @ system.offset, rtol=0, atol=1e-8 * size
        )
        assert set(found.equations.values()) <= set(found.incompatibility)
        # The violation is kept out of y', which solves the derivative of the combinations.
        np.testing.assert_allclose(
            left.T @ (system.A @ (found.yp - system.w(0.5, 1))), 0, atol=1e-10
        )


def test_the_violated_equations_are_named():
    rng = np.random.default_rng(8)
    for trial in range(200):
        form = FORMS[trial % 3]
        n = int(rng.integers(2, 31))
        rank = int(rng.integers(1, n))
        differential = rng.permutation(n) < rank
        E = np.diag(np.where(differential, rng.uniform(0.3, 3, n), 0.0))
        A = rng.standard_normal((n, n)) * (rng.uniform(size=(n, n)) < 0.2)
        A[np.ix_(~differential, ~differential)] = np.diag(rng.uniform(1, 2, n - rank))
        bad = rng.choice(np.flatnonzero(~differential), int(rng.integers(1, n - rank + 1)), False)
        offset = np.zeros(n)
        offset[bad] = rng.choice([-1, 1], len(bad)) * 10.0 ** rng.uniform(-6, 0, len(bad))
        system = Linear(rng, E, A, offset)
        band = (n, n) if form == "banded" else None
        found = find_derivative(system, 0.5, system.w(0.5, 0), form=form, band=band)
        assert not found.success
        assert found.equations == pytest.approx({int(i): offset[i] for i in bad}, rel=1e-6)
        assert f" {next(iter(found.equations))} (off by" in start_words(found.reason)
        np.testing.assert_allclose(found.yp, system.w(0.5, 1), rtol=0, atol=1e-9)


def test_the_worst_equation_comes_first_whatever_its_units():
    E, A = np.diag([1.0, 0.0, 0.0]), np.diag([1.0, 1e-6, 1e6])
    system = Linear(np.random.default_rng(0), E, A, offset=np.array([0.0, 1e-7, 1.0]))
    found = find_derivative(system, 0.0, system.w(0.0, 0))
    assert list(found.equations) == [1, 2]
    assert "equations 1 (off by 1e-07), 2 (off by 1)" in start_words(found.reason)


def test_uncertainty_decides_what_is_inconsistent():
    system = hk_example(None)
    y = [1.5, 1e-6]
    assert find_derivative(system, 0.0, y).equations == pytest.approx({1: 1e-6})
    assert find_derivative(system, 0.0, y, uncertainty=[0.0, 2e-6]).success
    assert not find_derivative(system, 0.0, y, uncertainty=[1.0, 5e-7]).success
    assert not find_derivative(system, 0.0, y, uncertainty=5e-7).success


# --- nonlinear systems --------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [{}, {"form": "sparse"}, {"form": "banded", "band": (2, 1)}],
                         ids=FORMS)
def test_transistor_amplifier(arguments):
    problem = gallery.get("transamp")
    system = Functions(problem.fun, problem.jac)
    system.time_scale = 1e-3
    found = find_derivative(system, 0.0, problem.y0, **arguments)
    assert found.success, start_words(found.reason)
    np.testing.assert_allclose(found.yp, problem.yp0, rtol=1e-9, atol=1e-7)
    y = problem.y0.copy()
    y[0] = 0.1                          # a current that leaves the first pair
    found = find_derivative(system, 0.0, y, **arguments)
    assert not found.success
    assert set(found.equations) == {0, 1}
    assert sum(found.equations.values()) == pytest.approx(-0.1 / 1000)


@pytest.mark.parametrize(
    ("exact", "trace"), [(True, "never"), (False, "never"), (False, "always")],
    ids=["jac", "differences", "traced"],
)
def test_transistor_amplifier_behind_the_core(exact, trace):
    problem = gallery.get("transamp")
    bdf = Bdf(Problem(problem.fun, jac=problem.jac if exact else None), 0.0, problem.y0,
              options={"rtol": 1e-6, "atol": 1e-6, "trace": trace}, t_bound=0.2)
    system = StateSystem(bdf._integration.state, 0.0, problem.y0, np.zeros(8))
    assert system.rank_tolerance == (1e-10 if exact or trace == "always" else 1e-7)
    found = find_derivative(system, 0.0, problem.y0)
    assert found.success, start_words(found.reason)
    np.testing.assert_allclose(found.yp, problem.yp0, rtol=1e-6, atol=1e-3)


def test_the_core_reports_what_is_not_finite_and_what_users_raise():
    def fun(t, y, yp):
        if y[0] > 1.0:
            raise KeyError("mine")
        return [yp[0] - np.sqrt(y[0])]

    options = {"trace": "never"}
    state = Bdf(Problem(fun), 0.0, [0.5], options=options, t_bound=-1.0)._integration.state
    system = StateSystem(state, 0.0, np.array([0.5]), np.zeros(1))
    assert system.time_scale == -1e-3
    assert find_derivative(system, 0.0, [0.5]).yp[0] == pytest.approx(math.sqrt(0.5))
    with np.errstate(invalid="ignore"):
        found = find_derivative(system, 0.0, [-0.5])
    assert not found.success
    assert "not finite at the guess, equation 0" in start_words(found.reason)
    with pytest.raises(KeyError, match="mine"):
        find_derivative(system, 0.0, [2.0])


def varying_null_space(t, y, yp):
    """M(y) y' + ..., the null spaces of M turning with y; solution (sin t, cos t, t)."""
    along = np.cos(y[2]) * (yp[0] - np.cos(t)) + np.sin(y[2]) * (yp[1] + np.sin(t))
    speed = along + along**3 + y[0] - np.sin(t)
    circle = y[0] ** 2 + y[1] ** 2 - 1.0
    # The differential equation stands in all rows.
    return np.array([speed + circle, 2 * speed - circle, yp[2] - 1.0 + 0.5 * speed])


def differences(fun):
    """A Jacobian by central differences."""
    def jacobian(t, y, yp):
        h, unit = 1e-6, np.eye(len(y))
        fy = [(fun(t, y + h * e, yp) - fun(t, y - h * e, yp)) / (2 * h) for e in unit]
        fyp = [(fun(t, y, yp + h * e) - fun(t, y, yp - h * e)) / (2 * h) for e in unit]
        return np.array(fy).T, np.array(fyp).T
    return jacobian


@pytest.mark.parametrize("form", FORMS)
def test_null_spaces_that_turn_and_slopes_that_are_not_linear(form):
    t = 0.4
    system = Functions(varying_null_space, differences(varying_null_space))
    system.rank_tolerance = 1e-7
    y = np.array([np.sin(t), np.cos(t), t])
    band = (2, 2) if form == "banded" else None
    found = find_derivative(system, t, y, [3.0, 2.0, -1.0], form=form, band=band)
    assert found.success, start_words(found.reason)
    np.testing.assert_allclose(found.yp, [np.cos(t), -np.sin(t), 1.0], atol=1e-8)
    assert found.iterations[0] > 1


@pytest.mark.parametrize("form", FORMS)
def test_a_shorter_step_is_taken_where_the_full_one_fails(form):
    band = (0, 0) if form == "banded" else None
    # The full step of Newton's method diverges from 5, and leaves the domain from 10.
    arctan = Functions(
        lambda t, y, yp: np.arctan(yp - y), lambda t, y, yp: (-1 / (1 + (yp - y) ** 2) * np.eye(1),
                                                             1 / (1 + (yp - y) ** 2) * np.eye(1)))
    found = find_derivative(arctan, 0.0, [1.0], [6.0], form=form, band=band)
    assert found.success, start_words(found.reason)
    assert found.yp[0] == pytest.approx(1.0, abs=1e-12)
    logarithm = Functions(
        lambda t, y, yp: np.log(np.where(yp > 0, yp, np.nan)) - y,
        lambda t, y, yp: (-np.eye(1), np.eye(1) / yp))
    found = find_derivative(logarithm, 0.0, [1.0], [10.0], form=form, band=band)
    assert found.success, start_words(found.reason)
    assert found.yp[0] == pytest.approx(math.e, abs=1e-12)


def test_equations_without_a_solution():
    system = Functions(
        lambda t, y, yp: np.exp(yp) + 1.0 + y, lambda t, y, yp: (np.eye(1), np.diag(np.exp(yp)))
    )
    found = find_derivative(system, 0.0, [0.0], [1.0])
    assert not found.success
    assert found.ypp is None
    assert "equation 0" in start_words(found.reason)


# --- index above 1 ------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_index_two_is_recognised(form):
    rng = np.random.default_rng(9)
    for trial in range(60):
        n = int(rng.integers(2, 20))
        rank = int(rng.integers((n + 1) // 2, n))
        E = np.diag(np.where(np.arange(n) < rank, 1.0, 0.0))
        A = rng.standard_normal((n, n))
        A[rank:, rank:] = 0.0
        U, V = (orthogonal(rng, n), orthogonal(rng, n)) if trial % 2 else (np.eye(n), np.eye(n))
        system = Linear(rng, U @ E @ V, U @ A @ V)
        band = (n, n) if form == "banded" else None
        found = find_derivative(system, 0.5, system.w(0.5, 0), form=form, band=band)
        assert not found.success
        assert "index is above 1" in start_words(found.reason)


@pytest.mark.parametrize("form", FORMS)
def test_dependent_equations_are_recognised(form):
    row = np.array([[1.0, 2.0], [1.0, 2.0]])
    system = Linear(np.random.default_rng(0), np.zeros((2, 2)), row)
    band = (1, 1) if form == "banded" else None
    found = find_derivative(system, 0.0, system.w(0.0, 0), form=form, band=band)
    assert not found.success
    assert "depend" in start_words(found.reason)


# --- the band -----------------------------------------------------------------------------


@pytest.mark.parametrize("ml", range(4))
@pytest.mark.parametrize("mu", range(4))
def test_interleaved_bandwidths(ml, mu):
    """HK: 2 ml + 1 diagonals below and max(2 mu, 1) above, no more and no less."""
    rng = np.random.default_rng(10)
    n = 7
    A, B = (np.triu(np.tril(rng.uniform(1, 2, (n, n)), mu), -ml) for _ in range(2))
    factors = Banded(A, B, 1e-10, ml, mu)
    compound = np.block([[B, factors.eps * np.eye(n)], [A, B]])
    order = np.arange(2 * n).reshape(2, n).T.ravel()
    interleaved = compound[np.ix_(order, order)]
    i, j = np.nonzero(interleaved)
    assert factors.widths == (2 * ml + 1, max(2 * mu, 1))
    assert ((i - j).max(), (j - i).max()) == factors.widths
    stored = np.zeros_like(interleaved)
    stored[i, j] = factors.matrix[factors.widths[1] + i - j, j]
    np.testing.assert_array_equal(stored, interleaved)
    assert np.count_nonzero(factors.matrix) == len(i)


# --- trouble and bad input ----------------------------------------------------------------


def test_what_is_not_finite_is_told():
    nan = np.full((2, 2), np.nan)
    example = hk_example(None)
    example.residual = lambda t, y, yp: np.array([0.0, np.inf])
    assert "equation 1" in start_words(find_derivative(example, 0.0, [1.0, 0.0]).reason)
    example = hk_example(None)
    example.jacobian = lambda t, y, yp: (nan, np.eye(2))
    assert "Jacobian or F_t" in start_words(find_derivative(example, 0.0, [1.0, 0.0]).reason)
    example = hk_example(lambda t, y, yp: np.array([np.nan, 0.0]))
    found = find_derivative(example, 0.0, [1.0, 0.0])
    assert not found.success
    assert "Jacobian or F_t" in start_words(found.reason)


def test_time_is_differenced_on_the_side_where_the_residual_is_defined():
    system = hk_example(None)
    inside = system.residual

    def until_one(t, y, yp):
        return inside(t, y, yp) if t <= 1.0 else np.full(2, np.nan)

    system.residual = until_one
    found = find_derivative(system, 1.0, [1.5, np.sin(1.0)])
    assert found.success
    assert found.yp[1] == pytest.approx(np.cos(1.0), abs=1e-9)


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"t": math.nan}, ValueError, "t must be finite"),
        ({"t": [0.0]}, ValueError, "t must be a number"),
        ({"y": [1.0, math.nan]}, ValueError, "y must be finite"),
        ({"y": [[1.0, 0.0]]}, ValueError, "y must be one-dimensional"),
        ({"y": []}, ValueError, "y is empty"),
        ({"y": [1j, 0.0]}, TypeError, "y must be real"),
        ({"yp": [1.0]}, ValueError, "yp must have 2 values"),
        ({"yp": [1.0, math.inf]}, ValueError, "yp must be finite"),
        ({"form": "full"}, ValueError, "form must be"),
        ({"band": (1, 1)}, ValueError, "band belongs to"),
        ({"form": "banded"}, ValueError, "band must be a pair"),
        ({"form": "banded", "band": (1, -1)}, ValueError, "band must be two integers"),
        ({"form": "banded", "band": (1.0, 1)}, ValueError, "band must be two integers"),
        ({"form": "banded", "band": (1, 0)}, ValueError, "too narrow"),
        ({"uncertainty": -1.0}, ValueError, "uncertainty must be"),
        ({"uncertainty": [1.0, 1.0, 1.0]}, ValueError, "uncertainty must be"),
    ],
)
def test_bad_arguments(change, error, text):
    arguments = {"t": 0.0, "y": [1.0, 0.0], **change}
    with pytest.raises(error, match=text):
        find_derivative(hk_example(None), **arguments)


@pytest.mark.parametrize(
    ("name", "value", "error", "text"),
    [
        ("residual", np.zeros(3), ValueError, "residual must return 2 values"),
        ("time_derivative", np.zeros(1), ValueError, "time_derivative must return 2 values"),
        ("jacobian", (np.eye(2), np.eye(3)), ValueError, r"shape \(2, 2\)"),
        ("jacobian", np.eye(3), TypeError, "pair"),
    ],
)
def test_bad_systems(name, value, error, text):
    system = hk_example(None)
    setattr(system, name, lambda t, y, yp: value)
    with pytest.raises(error, match=text):
        find_derivative(system, 0.0, [1.0, 0.0])


def test_scipy_is_loaded_only_when_needed():
    code = "import sys, tether.start.derivative; print('scipy.linalg' in sys.modules)"
    process = start_python(code)
    out, err = process.communicate(timeout=60)
    assert out.strip() == "False", err
    assert "scipy.linalg" in sys.modules
