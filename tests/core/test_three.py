"""Three diagonals, eliminated from both ends: any size and order, and pivots that are too small."""

import numpy as np
import pytest
from scipy.sparse import coo_array, csc_array

from tether._core.sparse import Sparse
from tether._core.three import ThreeLU
from tether.base.pattern import Pattern


def factors_of(matrix):
    matrix = csc_array(matrix)
    matrix.sort_indices()
    sparse = Sparse(Pattern(matrix.shape[0], coo_array(matrix).coords), ThreeLU)
    return sparse, sparse.open_factors().take(matrix.data)


def three_diagonals(n, seed, diagonal=2.0):
    draw = np.random.default_rng(seed)
    return sum(
        np.diag(size * draw.choice([-1.0, 1.0], n - abs(k)) * draw.uniform(0.5, 1, n - abs(k)), k)
        for k, size in ((-1, 1.0), (0, diagonal), (1, 1.0)) if abs(k) < n
    )


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("n", [*range(1, 12), 60, 61])
def test_systems_are_solved_to_round_off(n, shuffled):
    matrix = three_diagonals(n, n)
    if shuffled:
        order = np.random.default_rng(n).permutation(n)
        matrix = matrix[order][:, order]
    sparse, worked = factors_of(matrix)
    assert worked
    b = np.random.default_rng(7).standard_normal(n)
    np.testing.assert_allclose(matrix @ sparse.solution(b), b, atol=1e-12)
    np.testing.assert_allclose(matrix.T @ sparse.transposed_solution(b), b, atol=1e-12)
    assert sparse.lu.words == "factors in a band of 1 + 1 + 1 diagonals"
    assert sparse.lu.pivot_range >= 1.0


@pytest.mark.parametrize("n", [2, 3, 8, 9])
def test_rows_are_exchanged_where_a_pivot_is_small(n):
    matrix = three_diagonals(n, 5, diagonal=1e-13)
    matrix[-1, -1] = 1.0                   # an odd one would be singular
    sparse, worked = factors_of(matrix)
    assert worked
    b = np.arange(1.0, n + 1)
    np.testing.assert_allclose(sparse.solution(b), np.linalg.solve(matrix, b), rtol=1e-10)
    other = np.linalg.solve(matrix.T, b)
    np.testing.assert_allclose(sparse.transposed_solution(b), other, rtol=1e-10)
    good = three_diagonals(n, 6)
    assert sparse.lu.take(csc_array(good).data)        # and not where it is not
    np.testing.assert_allclose(good @ sparse.solution(b), b, rtol=1e-12)


@pytest.mark.parametrize("bad", [0.0, np.nan, np.inf])
@pytest.mark.parametrize("n", [1, 2, 7, 8])
def test_singular_matrices_and_those_without_numbers_are_told(n, bad):
    for place in range(n):
        matrix = three_diagonals(n, 3)
        whole = matrix.copy()
        matrix[:, place] *= 0.0
        matrix[place, place] = bad
        sparse, worked = factors_of(whole)
        assert worked
        stored = csc_array(whole)
        stored.sort_indices()
        rows, columns = stored.tocoo().coords
        assert not sparse.lu.take(matrix[rows, columns])
        assert sparse.lu.take(whole[rows, columns])


@pytest.mark.parametrize("n", [*range(8, 16), 50])
def test_residuals_stay_small_however_rows_are_scaled(n):
    """Rows with a small diagonal have large entries in U: one unknown at a time is found then."""
    draw = np.random.default_rng(n)
    large = np.arange(n - 1) % 40 == 2
    above = np.where(large, 1e7, draw.uniform(0.5, 1.0, n - 1))
    matrix = np.diag(draw.uniform(1, 2, n)) + np.diag(above, 1)
    matrix += np.diag(10.0 ** draw.uniform(-9, -8, n - 1), -1)
    sparse, worked = factors_of(matrix)
    assert worked
    exact = draw.uniform(1, 2, n)
    exact[1:][large] = 1e-8                # what is multiplied by the large ones
    b = matrix @ exact
    x = sparse.solution(b)
    assert np.all(np.abs(matrix @ x - b) <= 1e-14 * (np.abs(matrix) @ np.abs(x) + np.abs(b)))


@pytest.mark.parametrize("n", [6, 7, 8, 9, 1001])
def test_pairs_of_unknowns_have_the_residuals_of_single_ones(n):
    draw = np.random.default_rng(n)
    matrix = np.diag(np.full(n, 2.0)) - np.diag(np.ones(n - 1), 1) - np.diag(np.ones(n - 1), -1)
    sparse, worked = factors_of(matrix)
    assert worked
    b = draw.standard_normal(n)
    x = sparse.solution(b)
    assert np.all(np.abs(matrix @ x - b) <= 1e-15 * (np.abs(matrix) @ np.abs(x) + np.abs(b)))
