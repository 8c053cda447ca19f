"""Linear systems by iteration: accurate enough, independent of units, and honest if they fail."""

import numpy as np
import pytest
from scipy.sparse import coo_array, csc_array, diags_array, eye_array, kron, random_array

from tether import solve_dae
from tether._core.krylov import Krylov
from tether._core.sparse import Sparse
from tether.base.pattern import Pattern

LEFT = 0.0101


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
