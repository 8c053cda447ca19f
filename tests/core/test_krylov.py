"""Linear systems by iteration: accurate enough, independent of units, and honest if they fail."""

import re

import numpy as np
import pytest
from scipy.sparse import coo_array, csc_array, diags_array, eye_array, kron, random_array
from scipy.sparse.linalg import spilu

from tether import Cause, Status, solve_dae
from tether._core.krylov import Krylov
from tether._core.sparse import Sparse
from tether.base.pattern import Pattern

LEFT = 1.01e-3


def factors_of(matrix):
    """Incomplete factors of a matrix."""
    matrix = csc_array(matrix)
    matrix.sort_indices()
    sparse = Sparse(Pattern(matrix.shape[0], coo_array(matrix).coords), Krylov)
    assert sparse.open_factors().take(matrix.data)
    return sparse


def laplacian(k):
    line = diags_array([1.0, -2.0, 1.0], offsets=[-1, 0, 1], shape=(k, k))
    return csc_array(kron(eye_array(k), line) + kron(line, eye_array(k)))


def left_by_rows(matrix, x, b):
    size = abs(matrix).max(axis=1).toarray().reshape(-1)
    return np.linalg.norm((b - matrix @ x) / size) / np.linalg.norm(b / size)


@pytest.mark.parametrize("seed", range(30))
def test_equations_are_met_as_closely_as_newton_needs(seed):
    draw = np.random.default_rng(seed)
    n = int(draw.integers(1, 80))
    # no diagonal, and rows of very different sizes
    matrix = 0.3 * random_array((n, n), density=min(1.0, 3 / n), rng=draw) + eye_array(n).tocsr()[
        draw.permutation(n)
    ]
    matrix = csc_array(diags_array(10.0 ** draw.uniform(-6, 6, n)) @ matrix)
    if np.linalg.cond(matrix.toarray() / abs(matrix).max(axis=1).toarray()[:, None]) > 1e6:
        pytest.skip("close to singular")
    b = matrix @ draw.standard_normal(n)
    sparse = factors_of(matrix)
    assert left_by_rows(matrix, sparse.solution(b), b) <= LEFT
    assert sparse.lu.failures == 0
    c = matrix.T @ draw.standard_normal(n)
    found = sparse.transposed_solution(c)
    assert np.linalg.norm(matrix.T @ found - c) <= LEFT * np.linalg.norm(c)


def test_large_steps_take_more_iterations_than_small_ones():
    matrix, draw = laplacian(40), np.random.default_rng(0)
    b = draw.standard_normal(1600)
    counts = []
    for step in (0.1, 10.0, 1000.0):
        sparse = factors_of(eye_array(1600) - step * matrix)
        x = sparse.solution(b)
        assert left_by_rows(eye_array(1600) - step * matrix, x, b) <= LEFT
        assert sparse.lu.failures == 0
        counts.append(sparse.lu.iterations)
    assert counts[0] <= 4
    assert counts[0] < counts[1] < counts[2] < 60


def test_pivots_are_put_where_entries_are_large():
    # the diagonal has all of its entries, and none that would do for a pivot
    matrix = csc_array(np.array([[1e-12, 1.0, 0.0], [1.0, 1e-12, 0.5], [0.0, 1.0, 1e-9]]))
    sparse = factors_of(matrix)
    b = np.array([1.0, 2.0, 3.0])
    assert left_by_rows(matrix, sparse.solution(b), b) <= LEFT


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_the_equations_does_not_matter(seed):
    """A network whose equations are not in the order of their unknowns."""
    rng = np.random.default_rng(seed)
    n = 116
    ends, place = rng.integers(0, n, (2, 150)), rng.permutation(n)
    weights = 10.0 ** rng.uniform(-1, 2, 150)

    def network(t, y, yp, order):
        found = [yp[order[i]] + y[order[i]] - np.sin(3 * t + i) for i in range(n)]
        for i, j, weight in zip(*ends, weights, strict=True):
            flow = weight * (y[order[i]] - y[order[j]])
            found[i], found[j] = found[i] + flow, found[j] - flow
        return found

    runs = [
        solve_dae(lambda t, y, yp, order=order: network(t, y, yp, order), (0, 1), np.zeros(n),
                  rtol=1e-6, atol=1e-8, options={"linear_solver": solver})
        for order, solver in ((place, "krylov"), (np.arange(n), "sparse"))
    ]
    assert all(sol.success for sol in runs), runs[0].message
    assert np.abs(runs[0].y[place, -1] - runs[1].y[:, -1]).max() < 1e-5
    assert runs[0].stats.steps < 1.2 * runs[1].stats.steps


@pytest.mark.parametrize("matrix", [
    [[1.0, 1.0], [1.0, 1.0]], [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]],
])
def test_a_singular_matrix_is_not_passed_for_solved(matrix):
    sparse = factors_of(np.array(matrix))
    x = sparse.solution(np.arange(1.0, len(matrix) + 1) ** 2)
    assert sparse.lu.failures == 1 or not np.isfinite(x).all() or np.abs(x).max() > 1e8


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_no_number_is_told(bad):
    matrix = laplacian(3)
    sparse = factors_of(matrix)
    wrong = matrix.data.copy()
    wrong[4] = bad
    assert not sparse.lu.take(wrong)
    assert sparse.lu.take(matrix.data)
    assert np.isnan(sparse.solution(np.full(9, np.nan))).all()


def test_a_missing_row_is_singular():
    sparse = Sparse(Pattern(2, ([0, 0], [0, 1])), Krylov)
    assert not sparse.open_factors().take([1.0, 2.0])


@pytest.mark.parametrize("trace", ["auto", "never"])
def test_units_make_no_difference(trace):
    k = 12
    around = laplacian(k) * (k + 1.0) ** 2
    unit = 10.0 ** np.random.default_rng(3).uniform(-8, 8, k * k)
    rows = 10.0 ** np.random.default_rng(4).uniform(-8, 8, k * k)
    y0 = np.random.default_rng(5).uniform(1, 2, k * k)

    def fields(t, y, yp):
        return yp - around @ y + y**3

    def in_other_units(t, y, yp):
        return rows * fields(t, y / unit, yp / unit)

    options = {"linear_solver": "krylov"}
    plain = solve_dae(fields, (0, 0.1), y0, atol=1e-8, trace=trace, options=options)
    other = solve_dae(
        in_other_units, (0, 0.1), y0 * unit, atol=1e-8 * unit, trace=trace, options=options
    )
    full = solve_dae(fields, (0, 0.1), y0, atol=1e-8, trace=trace)
    assert "GMRES" in plain.how
    assert abs(other.stats.steps - plain.stats.steps) <= 0.1 * plain.stats.steps
    np.testing.assert_allclose(other.y[:, -1] / unit, full.y[:, -1], atol=2e-6)
    np.testing.assert_allclose(plain.y[:, -1], full.y[:, -1], atol=2e-6)
    assert plain.stats.steps <= 1.1 * full.stats.steps


class Incomplete:
    """A preconditioner of the user's."""

    def __init__(self, wrong=None):
        self.factored = self.solved = 0
        self.wrong = wrong

    def factor(self, matrix):
        self.factored += 1
        if self.wrong == "factor raises" and self.factored == 5:
            raise OSError("no license")
        self.lu = spilu(matrix, drop_tol=1e-3)

    def solve(self, b):
        self.solved += 1
        if self.solved > 60:
            if self.wrong == "solve raises":
                raise OSError("no license")
            if self.wrong == "shape":
                return b[:-1]
            if self.wrong == "nan":
                return np.full(len(b), np.nan)
        return self.lu.solve(b)


def plate(k):
    around = laplacian(k) * (k + 1.0) ** 2
    y0 = np.random.default_rng(5).uniform(1, 2, k * k)
    return (lambda t, y, yp: yp - around @ y + y**3), y0


def test_a_preconditioner_of_the_users_saves_iterations():
    equations, y0 = plate(30)
    mine = Incomplete()
    options = {"linear_solver": "krylov"}
    plain = solve_dae(equations, (0, 0.5), y0, options=options)
    helped = solve_dae(equations, (0, 0.5), y0, options={**options, "preconditioner": mine})
    how = re.compile(r"GMRES with (.+), ([\d.]+) iterations each")
    words = [how.search(sol.how) for sol in (helped, plain)]
    assert [found[1] for found in words] == ["Incomplete", "incomplete factors"]
    assert float(words[0][2]) < float(words[1][2])
    assert 0 < mine.factored <= helped.nlu + 5
    np.testing.assert_allclose(helped.y[:, -1], plain.y[:, -1], atol=1e-5)


@pytest.mark.parametrize("trace", ["auto", "never"])
@pytest.mark.parametrize(("wrong", "error", "words"), [
    ("factor raises", OSError, "no license"), ("solve raises", OSError, "no license"),
    ("shape", ValueError, "preconditioner Incomplete: solve must return 100 real numbers"),
])
def test_what_a_preconditioner_raises_passes_through(trace, wrong, error, words):
    equations, y0 = plate(10)
    options = {"linear_solver": "krylov", "preconditioner": Incomplete(wrong)}
    with pytest.raises(error, match=words) as caught:
        solve_dae(equations, (0, 0.5), y0, trace=trace, options=options)
    assert caught.value.result.t[-1] > 0.0


def test_a_preconditioner_without_numbers_ends_the_run_and_is_named():
    equations, y0 = plate(10)
    options = {"linear_solver": "krylov", "preconditioner": Incomplete("nan")}
    sol = solve_dae(equations, (0, 0.5), y0, options=options)
    assert not sol.success
    assert sol.t[-1] > 0.0
    assert sol.diagnosis.cause == Cause.LINEAR_SOLVER
    assert "'linear_solver': 'sparse'" in sol.message


@pytest.mark.parametrize(("options", "error", "words"), [
    ({"preconditioner": Incomplete()}, ValueError, "preconditioner needs linear_solver='krylov'"),
    ({"linear_solver": "krylov", "preconditioner": 3}, TypeError, "preconditioner must be an obj"),
    ({"linear_solver": "krylov", "preconditioner": Incomplete}, TypeError, "class Incomplete"),
])
def test_what_is_no_preconditioner_is_refused(options, error, words):
    with pytest.raises(error, match=words):
        solve_dae(lambda t, y, yp: yp + y, (0, 1), [1.0], options=options)


def test_systems_that_iterations_do_not_solve_are_reported():
    """Index 1, but what the algebraic part needs is far from its incomplete factors."""
    n = 300
    draw = np.random.default_rng(8)
    tangle = random_array((n, n), density=0.05, rng=draw).toarray() + 0.5 * np.eye(n)[::-1]

    def equations(t, y, yp):
        return np.concatenate([yp[:1] + y[:1], tangle @ y[1:] - y[0]])

    options = {"linear_solver": "krylov"}
    sol = solve_dae(equations, (0, 1), np.ones(n + 1), start="quiet", options=options)
    exact = np.exp(-1) * np.append(1.0, np.linalg.solve(tangle, np.ones(n)))
    assert not sol.success
    assert np.isfinite(sol.y).all()
    assert sol.diagnosis.cause == Cause.LINEAR_SOLVER
    assert sol.message.startswith("The linear systems of Newton's iteration could not be solved")
    assert "'linear_solver': 'sparse'" in sol.message
    sol = solve_dae(equations, (0, 1), np.ones(n + 1), start="quiet")
    np.testing.assert_allclose(sol.y[:, -1], exact, atol=1e-3 * np.abs(exact).max())


def test_a_run_that_ends_for_want_of_linear_solutions_says_so_first():
    """The matrix departs from its incomplete factors only on the way; the residual is finite."""
    n = 300
    draw = np.random.default_rng(8)
    tangle = random_array((n, n), density=0.05, rng=draw).toarray() + 0.5 * np.eye(n)[::-1]

    def equations(t, y, yp):
        share = np.clip(10 * (t - 0.2), 0, 1)
        return np.concatenate([
            yp[:1] + y[:1], (1 - share) * y[1:] + share * (tangle @ y[1:]) - y[0]
        ])

    sol = solve_dae(equations, (0, 1), np.ones(n + 1), trace="never", start="quiet",
                    options={"linear_solver": "krylov"})
    assert sol.t[-1] > 0.2
    assert sol.status in (Status.NO_CONVERGENCE, Status.SMALLER_IS_WORSE)
    assert sol.message.startswith("The linear systems of Newton's iteration could not be solved")
    assert "step size" in sol.message
    assert "residual is infinite" not in sol.message
