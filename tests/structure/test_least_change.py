"""Equations solved with as little change as possible."""

import math

import numpy as np
import pytest
from scipy.sparse import block_diag, csr_array, random_array

from tether import solve_dae
from tether.structure import least_change as module
from tether.structure.least_change import least_change, shortest, shortest_solution


def bob(t, y, yp):
    x, z, u, w, S = y
    return [yp[0] - u, yp[1] - w, yp[2] + S * x, yp[3] + S * z + 9.81, min(S, 1 - x * x - z * z)]


def velocity_after_taut(sol):
    (first,) = np.flatnonzero(np.diff(sol.t) == 0.0)
    return sol.y[2:4, first + 1]


@pytest.mark.parametrize("u0", [0.0, 1e-12, 1e-9, -1e-9, 1e-6, 1e-3])
def test_a_string_goes_taut_whatever_the_size_of_a_velocity(u0):
    sol = solve_dae(bob, (0, 0.5), [0.6, 0, u0, 0, 0])
    fall = math.sqrt(2 * 9.81 * 0.8)                   # at (0.6, -0.8): only what is along it stays
    expected = -fall * 0.6 * np.array([0.8, 0.6])
    assert sol.success
    assert velocity_after_taut(sol) == pytest.approx(expected, abs=1e-5 + 2 * abs(u0))


@pytest.mark.parametrize("size", [0.0, 1e-15, 1e-9, 1e-3])
def test_a_start_is_continuous_in_the_values(size):
    x, failure = least_change(
        lambda x: np.array([0.6 * x[0] + 0.8 * x[1]]), lambda x: np.array([[0.6, 0.8]]),
        np.array([size, -3.0]), np.ones(2), determined=False,
    )
    assert failure is None
    assert x == pytest.approx([1.44, -1.08], abs=2 * size + 1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_the_least_change_does_not_depend_on_units_of_rows_or_unknowns(seed):
    rng = np.random.default_rng(seed)
    A, b = rng.normal(size=(3, 6)), rng.normal(size=3)
    expected = shortest(A, b, np.ones(6))
    rows, unit = (10.0 ** rng.uniform(-12, 12, size) for size in (3, 6))
    found = shortest(rows[:, None] * A / unit, rows * b, unit)
    assert found / unit == pytest.approx(expected, rel=1e-6, abs=1e-8)
    assert expected == pytest.approx(np.linalg.pinv(A) @ b)


@pytest.mark.parametrize("rows", [[[1.0, 2.0], [1.0, 2.0]], [[1.0, 2.0], [0.0, 0.0]]])
def test_the_shortest_solution_of_rows_that_depend_on_each_other(rows):
    """They are not meant to, but values decide, and a failure here would end a whole run."""
    A = np.array(rows)
    found = shortest(A, A @ [3.0, 1.0], np.ones(2))
    assert np.allclose(found, [1.0, 2.0])


@pytest.mark.parametrize("seed", range(10))
def test_sparse_equations_have_the_solution_of_full_ones(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    n = 40
    A = random_array((n, n), density=0.1, rng=rng).toarray() + np.diag(rng.uniform(1, 2, n))
    A = 10.0 ** rng.uniform(-9, 9, n)[:, None] * A * 10.0 ** rng.uniform(-1, 1, n)
    exact = rng.normal(size=n)
    assert shortest_solution(A, A @ exact, np.ones(n)) == pytest.approx(exact, rel=1e-7)
    monkeypatch.setattr(module, "_well_conditioned", None)          # nothing is made full
    assert shortest_solution(csr_array(A), A @ exact, np.ones(n)) == pytest.approx(exact, rel=1e-7)


def test_singular_sparse_equations_are_solved_as_full_ones():
    A = np.diag([1.0, 2.0, 0.0]) + np.diag([1.0, 0.0], 1)
    b = A @ [1.0, 2.0, 3.0]
    expected = shortest_solution(A, b, np.ones(3))
    assert shortest_solution(csr_array(A), b, np.ones(3)) == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(10))
def test_equations_that_share_no_unknowns_are_solved_apart(seed):
    rng = np.random.default_rng(seed)
    parts = [rng.normal(size=(rng.integers(1, 4), 5)) for _ in range(6)]
    parts[2][-1] = parts[2][0]                                      # one that is repeated
    A = block_diag(parts).toarray()
    rows, columns = rng.permutation(A.shape[0]), rng.permutation(A.shape[1])
    A = A[rows][:, columns]
    solution, given = rng.normal(size=(2, 30))
    free = rng.random(30) < 0.9

    def values(x):
        y = x - solution
        return A @ y + 0.01 * (A @ y) ** 2

    def slopes(x):
        return A * (1 + 0.02 * (A @ (x - solution)))[:, None]

    full, failure = least_change(values, slopes, given, np.ones(30), False, free)
    assert failure is None
    apart, failure = least_change(
        values, lambda x: csr_array(slopes(x)), given, np.ones(30), False, free
    )
    assert failure is None
    assert apart == pytest.approx(full, abs=1e-7)
