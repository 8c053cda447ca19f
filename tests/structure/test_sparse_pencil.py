"""Singular pencils of sparse matrices: the same verdict as with singular values."""

import numpy as np
import pytest
from scipy.sparse import csc_array, diags_array, eye_array

from tether import solve_dae
from tether.structure.pencil import local_pencil
from tether.structure.sparse_pencil import singular_pencil


def ladder(n, *changes):
    """E and A of a chain of resistors and capacitors, with other equations in some rows."""
    E = eye_array(n).tolil()
    A = diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n)).tolil()
    for row, entries in changes:
        E[row, :] = 0.0
        A[row, :] = 0.0
        for column, value in entries.items():
            A[row, column] = value
    return E.tocsc(), A.tocsc()


SINGULAR = {
    "twice": [(20, {20: 1.0, 21: -1.0}), (21, {20: 2.0, 21: -2.0})],
    "sum": [(10, {3: 1.0, 4: 1.0}), (11, {4: 1.0, 5: 2.0}), (30, {3: 1.0, 4: 3.0, 5: 4.0})],
    "two pairs": [
        (5, {6: 1.0}), (6, {6: 3.0}), (30, {31: 1.0, 33: 1.0}), (31, {31: -2.0, 33: -2.0}),
    ],
    "empty": [(12, {})],
    "too few unknowns": [(8, {9: 1.0, 10: 2.0}), (9, {9: 2.0, 10: 1.0}), (10, {9: 1.0, 10: 1.0})],
}
REGULAR = {
    "as it is": [],
    "index 1": [(7, {7: 1.0, 8: -1.0})],
    "index 2": [(7, {8: 1.0})],
    "index 3": [(7, {9: 1.0})],
    "nearly the same": [(20, {20: 1.0, 21: -1.0}), (21, {20: 1.0, 21: -1.001})],
}


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("name", SINGULAR)
def test_singular_pencils_blame_the_equations_that_singular_values_blame(name, scaled):
    n = 40
    E, A = ladder(n, *SINGULAR[name])
    expected = local_pencil(E.toarray(), A.toarray())
    if scaled:
        draw = np.random.default_rng(1)
        rows, columns = (diags_array(10.0 ** draw.uniform(-5, 5, n)) for _ in range(2))
        E, A = rows @ E @ columns, rows @ A @ columns
    found = singular_pencil(E.tocsc(), A.tocsc(), np.ones(n))
    assert expected.singular
    assert found is not None
    assert found.singular
    assert found.dependent == expected.dependent
    if not scaled:
        assert found.undetermined
        assert set(found.undetermined) <= set(expected.undetermined)


@pytest.mark.parametrize("n", [40, 500])
@pytest.mark.parametrize("name", REGULAR)
def test_regular_pencils_are_regular(name, n):
    E, A = ladder(n, *REGULAR[name])
    assert not local_pencil(E.toarray(), A.toarray()).singular
    assert singular_pencil(E, A, np.ones(n)) is None
    assert singular_pencil(1e-9 * E, A, np.ones(n)) is None
    assert singular_pencil(E, 1e-9 * A, np.ones(n)) is None


def test_more_dependences_than_are_looked_for_at_first():
    n = 300
    changes = []
    for k in range(0, 60, 3):
        changes += [(k, {k: 1.0, k + 1: 1.0}), (k + 1, {k: 2.0, k + 1: 2.0})]
    E, A = ladder(n, *changes)
    found = singular_pencil(E, A, np.ones(n))
    assert found.dependent == tuple(i for k in range(0, 60, 3) for i in (k, k + 1))


def test_errors_of_differences_do_not_hide_a_dependence():
    E, A = ladder(200, *SINGULAR["twice"])
    A.data *= 1.0 + 1e-9 * np.random.default_rng(0).standard_normal(A.nnz)
    assert singular_pencil(E, A, np.ones(200)).dependent == (20, 21)


@pytest.mark.parametrize("seed", range(20))
def test_random_pencils(seed):
    draw = np.random.default_rng(seed)
    n = int(draw.integers(3, 60))
    E = np.where(draw.random((n, n)) < 2 / n, draw.standard_normal((n, n)), 0.0)
    A = np.where(draw.random((n, n)) < 3 / n, draw.standard_normal((n, n)), 0.0)
    E[draw.random(n) < 0.4] = 0.0
    found = singular_pencil(csc_array(E), csc_array(A), np.ones(n))
    values = [np.linalg.svd(shift * E + A, compute_uv=False) for shift in (0.3, 1.7, -2.9)]
    assert (found is not None) == all(v[-1] < 1e-12 * v[0] for v in values)
    if found is not None:
        rows = (0.3 * E + A)[list(found.dependent)]
        missing = n - np.linalg.matrix_rank(0.3 * E + A)
        assert len(rows) == np.linalg.matrix_rank(rows, 1e-3) + missing


# --- whole runs --------------------------------------------------------------------------------


def chain(n, kind):
    m = n // 2

    def equations(t, v, dv):
        out = []
        for k in range(n):
            before = v[k - 1] if k else 5 * np.sin(2 * np.pi * t)
            after = v[k] - v[k + 1] if k < n - 1 else 0.0
            out.append(dv[k] + after - (before - v[k]))
        if kind == "twice":
            out[m], out[m + 1] = v[m] - v[m + 1], 2 * v[m] - 2 * v[m + 1]
        else:
            out[m] = out[m + 1] = v[m + 1] - v[m + 2]
        return out

    return equations


@pytest.mark.parametrize("trace", ["auto", "never"])
@pytest.mark.parametrize("kind", ["twice", "missing"])
def test_a_large_singular_system_is_reported_without_full_matrices(kind, trace, monkeypatch):
    n = 600
    svd = np.linalg.svd

    def watched(matrix, *args, **kwargs):
        assert min(np.shape(matrix)[-2:]) < 200, "singular values of a full matrix"
        return svd(matrix, *args, **kwargs)

    small = solve_dae(chain(100, kind), (0, 1), np.zeros(100), trace=trace)
    monkeypatch.setattr(np.linalg, "svd", watched)
    sol = solve_dae(chain(n, kind), (0, 1), np.zeros(n), trace=trace)
    assert sol.status == small.status
    assert sol.diagnosis.cause == small.diagnosis.cause
    assert [row - 300 for row in sol.diagnosis.where.rows] == [
        row - 50 for row in small.diagnosis.where.rows
    ]
    assert 300 in sol.diagnosis.where.columns


@pytest.mark.parametrize("trace", ["auto", "never"])
def test_a_large_system_of_index_2_is_not_taken_for_singular(trace):
    n = 400
    m = n // 2

    def equations(t, v, dv):
        out = list(dv + 2 * v - np.concatenate([[0.0], v[:-1]]) - np.concatenate([v[1:], [0.0]]))
        out[m] = v[m + 1] - np.sin(t)
        return out

    sol = solve_dae(equations, (0, 0.1), np.zeros(n), trace=trace, start="quiet")
    assert sol.success, sol.message
    np.testing.assert_allclose(sol.y[m + 1, -1], np.sin(0.1), rtol=1e-6)
