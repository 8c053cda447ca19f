"""Factors by KLU, where it is installed."""

from functools import partial

import numpy as np
import pytest
from scipy.sparse import coo_array, csc_array, eye_array

from tether.base.pattern import Pattern
from tether.plan.libraries import find_klu

if find_klu() is None:
    pytest.skip("KLU is not installed", allow_module_level=True)

from tether._core.klu import KluFactors, Library
from tether._core.sparse import Sparse


def made(matrix):
    """Return a matrix that KLU factors, its factors and its entries."""
    given = csc_array(matrix)
    pattern = Pattern(given.shape[0], given.tocoo().coords)
    matrix = Sparse(pattern, partial(KluFactors, find_klu()))
    return matrix, matrix.open_factors(), given


def random(n, seed):
    draw = np.random.default_rng(seed)
    places = draw.integers(0, n, (2, 2 * n))
    return coo_array((draw.random(2 * n), places), shape=(n, n)).tocsc() + 3 * eye_array(n)


@pytest.mark.parametrize("n", [1, 2, 30, 300])
def test_factors_solve(n):
    solver, factors, matrix = made(random(n, n))
    x = np.random.default_rng(0).standard_normal(n)
    for scale in (1.0, 1e-3, 7.0):
        assert factors.take(scale * matrix.data)
        np.testing.assert_allclose(solver.solution(scale * matrix @ x), x, rtol=1e-9)
        np.testing.assert_allclose(
            solver.transposed_solution(scale * matrix.T @ x), x, rtol=1e-9
        )
    assert (factors.full, factors.again) == (1, 2)


def test_pivots_that_would_let_entries_grow_are_chosen_anew():
    solver, factors, _ = made(np.ones((2, 2)))
    assert factors.take([1.0, 0.0, 0.5, 1.0])
    assert factors.take([1e-14, 1.0, 1.0, 1.0])
    assert (factors.full, factors.again) == (2, 0)
    np.testing.assert_allclose(solver.solution([1.0, 2.0]), [1.0, 1.0], rtol=1e-12)


@pytest.mark.parametrize("values", [
    [1.0, 2.0, 2.0, 4.0], [0.0, 0.0, 0.0, 0.0], [1.0, np.nan, 0.0, 1.0], [np.inf, 1.0, 1.0, 1.0],
])
def test_singular_matrices_are_told(values):
    _, factors, _ = made(np.ones((2, 2)))
    assert not factors.take(values)
    assert factors.take([1.0, 0.0, 0.0, 1.0])
    assert not factors.take(values)


def test_a_pattern_without_a_diagonal_is_singular_or_not():
    solver, factors, _ = made([[0.0, 1.0], [1.0, 0.0]])
    assert factors.take([2.0, 4.0])
    np.testing.assert_allclose(solver.solution([4.0, 2.0]), [1.0, 1.0])
    solver, factors, _ = made([[1.0, 1.0, 1.0], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    assert not factors.take(np.ones(5))


def test_memory_is_given_back():
    resource = pytest.importorskip("resource")
    matrix = random(1000, 1)
    for count in range(60):
        assert made(matrix)[1].take(matrix.data)
        if count == 20:
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert after - before < 20_000                       # kB; 40 sets of factors have 100 MB


@pytest.mark.parametrize("path", ["libm.so.6", "no such library"])
def test_other_libraries_are_refused(path):
    with pytest.raises((OSError, AttributeError)):
        Library(path)
