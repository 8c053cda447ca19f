"""Sparse factors: accurate, sparse, renewed on their pattern, and honest about singular ones."""

import numpy as np
import pytest
from scipy.sparse import coo_array, csc_array, diags_array, eye_array, kron, random_array
from scipy.sparse.linalg import splu

from tether._core.codes import OF_Y
from tether._core.sparse import Sparse
from tether._core.sparse_lu import SparseLU
from tether.base.pattern import Pattern


def factors_of(matrix):
    """Factors of a matrix, and its values in their order."""
    matrix = csc_array(matrix)
    matrix.sum_duplicates()
    matrix.sort_indices()
    sparse = Sparse(Pattern(matrix.shape[0], coo_array(matrix).coords))
    sparse.open_factors()
    return sparse, matrix


def laplacian(k):
    line = diags_array([1.0, -2.0, 1.0], offsets=[-1, 0, 1], shape=(k, k))
    return kron(eye_array(k), line) + kron(line, eye_array(k))


def backward_error(matrix, x, b):
    return np.abs(matrix @ x - b).max() / (abs(matrix) @ np.abs(x) + np.abs(b)).max()


@pytest.mark.parametrize("seed", range(40))
def test_random_matrices_are_solved_to_round_off(seed):
    draw = np.random.default_rng(seed)
    n = int(draw.integers(1, 120))
    # without a diagonal, and with rows and columns of very different sizes
    matrix = random_array((n, n), density=min(1.0, 3 / n), rng=draw) + eye_array(n).tocsr()[
        draw.permutation(n)
    ]
    matrix = diags_array(10.0 ** draw.uniform(-3, 3, n)) @ matrix
    sparse, matrix = factors_of(matrix)
    if np.linalg.cond(matrix.toarray()) > 1e12:
        pytest.skip("close to singular")
    assert sparse.lu.take(matrix.data)
    b = draw.standard_normal(n)
    assert backward_error(matrix, sparse.solution(b), b) < 1e-13
    assert backward_error(matrix.T, sparse.transposed_solution(b), b) < 1e-12
    # the same pattern with other values
    other = csc_array((matrix.data * draw.uniform(0.5, 2.0, matrix.nnz), matrix.indices,
                       matrix.indptr))
    if np.linalg.cond(other.toarray()) < 1e12:
        assert sparse.lu.take(other.data)
        assert backward_error(other, sparse.solution(b), b) < 1e-11
    assert sparse.lu.full + sparse.lu.again <= 2


def test_values_are_renewed_on_the_pattern_without_another_search():
    sparse, matrix = factors_of(laplacian(12) - 0.1 * eye_array(144))
    draw = np.random.default_rng(0)
    for _ in range(5):
        values = matrix.data * draw.uniform(0.9, 1.1, matrix.nnz)
        assert sparse.lu.take(values)
        b = draw.standard_normal(144)
        other = csc_array((values, matrix.indices, matrix.indptr))
        assert backward_error(other, sparse.solution(b), b) < 1e-14
    assert (sparse.lu.full, sparse.lu.again) == (1, 4)


def test_pivots_that_have_become_small_are_chosen_anew():
    sparse, matrix = factors_of(np.array([[4.0, 1.0, 0.0], [1.0, 4.0, 1.0], [0.0, 1.0, 4.0]]))
    assert sparse.lu.take(matrix.data)
    values = matrix.copy()
    values[0, 0] = values[1, 1] = 1e-14
    assert sparse.lu.take(values.data)
    assert sparse.lu.full == 2
    b = np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(values @ sparse.solution(b), b, rtol=1e-13)


def test_the_factors_are_no_fuller_than_those_of_superlu():
    matrix = laplacian(40) - 0.1 * eye_array(1600)
    sparse, matrix = factors_of(matrix)
    assert sparse.lu.take(matrix.data)
    other = splu(matrix)
    assert sparse.lu.entries < 0.8 * (other.L.nnz + other.U.nnz)


def test_a_chain_has_factors_without_fill_in_whatever_its_order():
    n = 300
    chain = csc_array(diags_array([1.0, -2.5, 1.0], offsets=[-1, 0, 1], shape=(n, n)))
    shuffle = np.random.default_rng(3).permutation(n)
    sparse, matrix = factors_of(chain[shuffle][:, shuffle])
    assert sparse.lu.take(matrix.data)
    assert sparse.lu.entries == matrix.nnz


@pytest.mark.parametrize("wrong", [
    [[1.0, 2.0], [2.0, 4.0]], [[0.0, 0.0], [1.0, 1.0]], [[np.nan, 1.0], [1.0, 1.0]],
    [[np.inf, 1.0], [1.0, 1.0]],
])
def test_matrices_without_factors_are_refused_and_others_taken_afterwards(wrong):
    full = Pattern(2, ([0, 1, 0, 1], [0, 0, 1, 1]))
    sparse = Sparse(full)
    factors = sparse.open_factors()
    values = np.array(wrong).T.ravel()
    assert not factors.take(values)
    good = np.array([2.0, 1.0, 1.0, 3.0])
    assert factors.take(good)
    np.testing.assert_allclose(sparse.solution([3.0, 4.0]), [1.0, 1.0])
    assert not factors.take(values)
    assert factors.take(good)
    np.testing.assert_allclose(sparse.solution([3.0, 4.0]), [1.0, 1.0])


def test_a_column_that_no_row_is_left_for_is_singular():
    sparse = Sparse(Pattern(3, ([0, 0, 1, 2], [0, 1, 2, 2])))
    assert not sparse.open_factors().take(np.ones(4))


def test_the_condition_number_is_estimated():
    draw = np.random.default_rng(1)
    matrix = (random_array((60, 60), density=0.05, rng=draw) + 2.0 * eye_array(60)).tocsc()
    sparse, matrix = factors_of(matrix)
    assert sparse.lu.take(matrix.data)
    exact = np.linalg.cond(matrix.toarray(), 1)
    norm = abs(matrix).sum(axis=0).max()
    assert 0.1 * exact < 1.0 / sparse.reciprocal_condition(norm) < 1.01 * exact


def test_factors_serve_while_the_pattern_grows():
    sparse, matrix = factors_of(np.array([[2.0, 1.0], [0.0, 3.0]]))
    assert sparse.lu.take(matrix.data)
    sparse.extend([1], [0])
    np.testing.assert_allclose(sparse.solution([3.0, 3.0]), [1.0, 1.0])
    assert sparse.open_factors().take(np.array([2.0, 1.0, 1.0, 3.0]))
    np.testing.assert_allclose(sparse.solution([3.0, 4.0]), [1.0, 1.0])


def network(n, seed):
    """Conductances over five powers of ten between nodes near each other, and to ground."""
    draw = np.random.default_rng(seed)
    k = np.arange(1, n)
    matrix = diags_array(10.0 ** draw.uniform(-6, 0, n)).tocoo()
    for _ in range(2):
        other, g = k - draw.integers(1, np.minimum(k, 20) + 1), 10.0 ** draw.uniform(-4, 1, n - 1)
        places = np.concatenate([k, other, k, other]), np.concatenate([k, other, other, k])
        matrix = matrix + coo_array((np.concatenate([g, g, -g, -g]), places), shape=(n, n))
    return matrix.tocsc()


@pytest.mark.parametrize("seed", range(5))
def test_conductances_of_all_sizes_do_not_fill_the_factors_of_a_network(seed):
    sparse, matrix = factors_of(network(600, seed))
    # units of the equations have no say in it either
    units = 2.0 ** np.random.default_rng(seed).integers(-20, 20, 600)
    scaled = matrix.data * units[matrix.indices]
    assert sparse.lu.take(scaled)
    entries = sparse.lu.entries
    dominated = np.where(matrix.indices == np.repeat(np.arange(600), np.diff(matrix.indptr)),
                         1.0, 1e-6)
    sparse.lu.forget()
    assert sparse.lu.take(dominated)
    assert entries < 1.1 * sparse.lu.entries
    assert not sparse.lu.strict
    assert sparse.lu.take(matrix.data)
    b = np.ones(600)
    assert backward_error(matrix, sparse.solution(b), b) < 1e-14


def test_where_entries_grow_pivots_are_chosen_strictly():
    # small entries where pivots are preferred: 500 times as large after one elimination
    n = 40
    hard = diags_array([1.0, 2e-3, 1.0], offsets=[-1, 0, 1], shape=(n, n)).tocsc()
    sparse, matrix = factors_of(hard + 0.3 * eye_array(n, k=3))
    assert sparse.lu.take(matrix.data)
    assert sparse.lu.strict
    assert sparse.lu.growth < 100.0
    b = np.arange(1.0, n + 1)
    assert backward_error(matrix, sparse.solution(b), b) < 1e-15


def test_pivots_that_let_entries_grow_are_not_taken_over():
    sparse, matrix = factors_of(np.full((6, 6), 0.1) + 2.0 * np.eye(6))
    assert sparse.lu.take(matrix.data)
    assert sparse.lu.take(1.1 * matrix.data)
    other = csc_array(np.random.default_rng(0).uniform(0.5, 1.0, (6, 6)) - 0.998 * np.eye(6) * 0.7)
    assert sparse.lu.take(other.data * 1e4)
    assert (sparse.lu.full, sparse.lu.again) == (2, 1)
    b = np.ones(6)
    assert backward_error(other * 1e4, sparse.solution(b), b) < 1e-13


def test_matrices_that_runs_share_places_for_leave_nothing_behind():
    pattern = Pattern(3, ([0, 1, 2, 0], [0, 1, 2, 1]))
    first, second = Sparse(pattern), Sparse(pattern)
    with_more = csc_array(np.array([[1.0, 5.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 3.0]]))
    diagonal = csc_array(np.diag([7.0, 8.0, 9.0]))
    first.put(OF_Y, with_more)
    second.put(OF_Y, diagonal)
    assert np.array_equal(first.get(OF_Y).toarray(), with_more.toarray())
    first.put(OF_Y, diagonal)                       # in places that the second has found
    assert np.array_equal(first.get(OF_Y).toarray(), diagonal.toarray())
    first.put(OF_Y, with_more)
    assert np.array_equal(first.get(OF_Y).toarray(), with_more.toarray())


def chains(count, length):
    """Rods side by side that share nothing but the last unknown."""
    line = diags_array([1.0, -3.0, 1.0], offsets=[-1, 0, 1], shape=(length, length))
    matrix = kron(eye_array(count), line).tolil()
    matrix.resize(count * length + 1, count * length + 1)
    matrix[-1, ::length] = matrix[::length, -1] = 0.5
    matrix[-1, -1] = -2.0 * count
    return matrix


def test_columns_that_do_not_wait_for_each_other_are_eliminated_side_by_side():
    matrix = chains(20, 30)
    sparse, matrix = factors_of(matrix)
    before = SparseLU(Pattern(601, coo_array(matrix).coords), levelled=False)
    assert sparse.lu.take(matrix.data)
    assert before.take(matrix.data)
    levels = sparse.lu.levels
    assert np.all(np.diff(levels) >= 0)
    assert sparse.lu.entries <= before.entries
    assert np.bincount(levels).max() >= 20
    b = np.arange(601.0)
    assert backward_error(matrix, sparse.solution(b), b) < 1e-14


@pytest.mark.parametrize("seed", range(20))
def test_levels_leave_the_factors_as_sparse_as_they_are(seed):
    draw = np.random.default_rng(seed)
    n = int(draw.integers(2, 200))
    matrix = random_array((n, n), density=1.5 / n, rng=draw) + eye_array(n).tocsr()[
        draw.permutation(n)
    ]
    pattern = Pattern(n, coo_array(matrix).coords)
    plain = SparseLU(pattern, levelled=False)
    assert plain.take(pattern.regular_values)
    level = plain.levels
    levelled = SparseLU(pattern)
    assert pattern.is_levelled
    assert levelled.take(pattern.regular_values)
    assert levelled.entries == plain.entries
    assert levelled.operations == plain.operations
    if plain.entries <= 8 * n:
        assert np.array_equal(levelled.levels, np.sort(level))


def test_full_factors_are_left_in_their_order():
    pattern = Pattern(900, coo_array(laplacian(30)).coords)
    order = pattern.elimination[0].copy()
    SparseLU(pattern)
    assert np.array_equal(pattern.elimination[0], order)
