"""Factors within a band: accurate for any order of rows and columns, and honest if singular."""

import numpy as np
import pytest
from scipy.sparse import coo_array, csc_array, diags_array

from tether._core.band import BandLU
from tether._core.sparse import Sparse
from tether.base.pattern import Pattern
from tether.plan.cost import cheapest_way

WIDTHS = [(1, 1), (0, 0), (0, 3), (3, 0), (2, 5), (7, 4), (12, 20), (25, 25), (40, 3)]


def banded(n, below, above, draw, diagonal=0.0):
    offsets = [k for k in range(-below, above + 1) if abs(k) < n]
    values = [draw.standard_normal(n - abs(k)) + diagonal * (k == 0) for k in offsets]
    return csc_array(diags_array(values, offsets=offsets, shape=(n, n)))


def factors_of(matrix):
    """Factors of a matrix, and its values in their order."""
    matrix = csc_array(matrix)
    matrix.sort_indices()
    sparse = Sparse(Pattern(matrix.shape[0], coo_array(matrix).coords), BandLU)
    sparse.open_factors()
    return sparse, matrix.data


def error(matrix, x, b):
    return np.abs(matrix @ x - b).max() / (abs(matrix) @ np.abs(x) + np.abs(b)).max()


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("diagonal", [0.0, 30.0])
@pytest.mark.parametrize("widths", WIDTHS)
@pytest.mark.parametrize("n", [1, 2, 60, 61])
def test_bands_are_solved_to_round_off(n, widths, diagonal, shuffled):
    draw = np.random.default_rng([n, *widths])
    matrix = banded(n, *widths, draw, diagonal)
    if shuffled:
        matrix = csc_array(matrix[draw.permutation(n)][:, draw.permutation(n)])
    sparse, values = factors_of(matrix)
    if np.linalg.cond(matrix.toarray()) > 1e12:
        pytest.skip("close to singular")
    b = draw.standard_normal(n)
    for factor in (1.0, -3.0):
        assert sparse.lu.take(factor * values)
        assert error(factor * matrix, sparse.solution(b), b) < 1e-12
        assert error(factor * matrix.T, sparse.transposed_solution(b), b) < 1e-12


def test_a_shuffled_band_is_found_again():
    draw = np.random.default_rng(0)
    matrix = banded(300, 2, 2, draw, 9.0)
    shuffled = matrix[draw.permutation(300)][:, draw.permutation(300)]
    band = Pattern(300, coo_array(shuffled).coords).band
    assert band.width <= 15
    assert Pattern(300, coo_array(matrix).coords).band.width == 5


@pytest.mark.parametrize("n", [5, 100])
@pytest.mark.parametrize("wide", [1, 20])
@pytest.mark.parametrize("bad", [0.0, np.nan, np.inf])
def test_singular_matrices_and_those_without_numbers_are_told(n, wide, bad):
    draw = np.random.default_rng(1)
    matrix = banded(n, wide, wide, draw, 9.0)
    sparse, values = factors_of(matrix)
    column = slice(matrix.indptr[2], matrix.indptr[3])
    wrong = values.copy()
    wrong[column] = bad
    assert not sparse.lu.take(wrong)
    assert sparse.lu.take(values)
    assert sparse.lu.pivot_range >= 1.0


def test_the_cheapest_way_is_taken():
    draw = np.random.default_rng(2)

    def way(matrix):
        return cheapest_way(Pattern(matrix.shape[0], coo_array(matrix).coords))

    assert way(banded(1000, 1, 1, draw)) == "band"
    assert way(banded(1000, 20, 20, draw)) == "band"
    arrow = csc_array(coo_array((np.ones(2999), (
        np.concatenate([np.arange(1000), np.zeros(1000), np.arange(999)])[:2999],
        np.concatenate([np.arange(1000), np.arange(1000), np.full(999, 999)])[:2999],
    )), shape=(1000, 1000)))
    assert way(arrow) == "sparse"
    assert way(csc_array(np.ones((100, 100)))) == "dense"
