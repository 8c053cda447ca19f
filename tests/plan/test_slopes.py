"""Derivatives of constraints that are called: the same numbers, without zeros."""

import ctypes
import subprocess
import tracemalloc

import numpy as np
import pytest
from scipy import LowLevelCallable
from scipy.sparse import coo_array

from tether import Constraint, Problem, solve_dae
from tether._core.adapters import WrongResult
from tether._core.constraints import jacobian_of_constraints_at
from tether.plan.slopes import see_differences, see_matrices
from tether.run.integration import Integration

EPS = np.finfo(float).eps


def circles(n):
    """Make n circles that are run through, and what is kept on the way."""

    def equations(t, y, yp):
        return np.concatenate([yp[:n] + y[n:], yp[n:] - y[:n]])

    def radii(t, y):
        return y[:n] ** 2 + y[n:] ** 2 - 1.0

    def slopes(t, y):
        row = np.arange(n)
        entries = np.concatenate([2 * y[:n], 2 * y[n:]])
        return coo_array((entries, (np.tile(row, 2), np.arange(2 * n))), shape=(n, 2 * n))

    return equations, radii, slopes, np.concatenate([np.ones(n), np.zeros(n)])


@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("traced", ["auto", "never"])
def test_circles_stay_circles(given, traced):
    equations, radii, slopes, y0 = circles(100)
    calls = []

    def called(t, y):
        calls.append(t)
        return radii(t, y)

    problem = Problem(equations, constraints=[Constraint(called, jac=slopes if given else None)])
    state = Integration(problem, 0.0, y0, t_bound=1.0, options={"trace": traced}).state
    assert state.gy_sparse
    calls.clear()
    sol = solve_dae(problem, (0, 20), y0, rtol=1e-5, trace=traced)
    full = solve_dae(problem, (0, 20), y0, rtol=1e-5, trace=traced,
                     options={"projection_solver": "orthogonal"})
    assert sol.success
    assert np.abs(radii(0, sol.y[:, -1])).max() < 1e-13
    np.testing.assert_allclose(sol.y[:100, -1], np.cos(20), atol=2e-3)
    np.testing.assert_allclose(sol.y[:, -1], full.y[:, -1], atol=2e-6)
    assert len(calls) < 20 * (sol.stats.steps + full.stats.steps)


def test_the_same_numbers_as_one_by_one():
    draw = np.random.default_rng(1)
    n, count = 300, 90
    columns = draw.integers(0, n, (count, 3))
    y = draw.standard_normal(n)
    y[::7] = 0.0

    def values(t, y):
        a, b, c = y[columns].T
        return a * b + np.sin(c) + t * a**2

    seen = see_differences(values, 0.5, y, count, np.ones(n))
    found = seen.full(0.5, y)
    increments = np.maximum(EPS**0.5 * np.abs(y), EPS**0.75 * np.abs(y).max())
    for j in range(n):
        moved = y + increments * (np.arange(n) == j)
        single = (values(0.5, moved) - values(0.5, y)) / (moved[j] - y[j])
        np.testing.assert_array_equal(found[:, j], single)
    assert seen.groups < 15
    assert len(seen.rows) < 6 * count


def test_entries_that_were_zero_are_found_when_they_are_none():
    n, looks = 200, []

    def values(t, y):
        looks.append(t)
        return y[:100] ** 2 + np.maximum(y[100:] - 2.0, 0.0)

    y = np.linspace(0.5, 1.0, n)
    seen = see_differences(values, 0.0, y, 100, np.ones(n))
    assert len(seen.values(0.0, y)) == 100
    y[150:160] = 3.0
    found = seen.values(0.0, y)
    assert len(found) == len(seen.rows) == 110
    np.testing.assert_allclose(seen.full(0.0, y)[np.arange(50, 60), np.arange(150, 160)], 1.0,
                               rtol=1e-6)
    looks.clear()
    seen.values(0.0, y)
    assert len(looks) == 1 + seen.groups + 1


def test_looking_for_entries_in_vain_comes_to_an_end():
    n, looks = 400, []
    draw = np.random.default_rng(0)

    def noisy(t, y):
        looks.append(t)
        return y[:200] * y[200:] + 1e-6 * draw.standard_normal(200) * y[:200]

    y = np.linspace(0.5, 1.0, n)
    seen = see_differences(lambda t, y: y[:200] * y[200:], 0.0, y, 200, np.ones(n))
    seen.fun = noisy
    for _ in range(10):
        seen.values(0.0, y)
    before = len(looks)
    seen.values(0.0, y)
    assert len(looks) - before == 1 + seen.groups


def test_unknowns_at_the_edge_of_a_domain_have_sides_of_their_own():
    n = 100
    upper = np.arange(n) % 2 == 0

    def values(t, y):
        if np.any(y[upper] > 1.0) or np.any(y[~upper] < 0.0):
            raise ValueError("outside")
        return y**2

    y = np.where(upper, 1.0, 0.0)
    inside = np.where(upper, 0.9, 0.1)
    seen = see_differences(lambda t, y: y**2, 0.0, inside, n, np.ones(n))
    seen.fun = values
    np.testing.assert_allclose(np.diag(seen.full(0.0, y)), 2 * y, atol=1e-6)
    seen.fun = lambda t, y: y**2 if np.array_equal(y, inside) else y / 0.0 * np.nan
    with np.errstate(all="ignore"):
        assert seen.values(0.0, inside) is None
        assert np.isnan(seen.full(0.0, inside)).all()


def test_functions_of_all_unknowns_and_other_results():
    y = np.ones(100)
    assert see_differences(lambda t, y: np.full(70, y.sum()), 0.0, y, 70, y) is None
    assert see_differences(lambda t, y: 1 / 0, 0.0, y, 70, y) is None
    seen = see_differences(lambda t, y: y**2, 0.0, y, 100, y)
    seen.fun = lambda t, y: y[:-1]
    with pytest.raises(WrongResult, match="returned 100 real values before"):
        seen.values(0.0, y)
    assert see_matrices(lambda t, y: np.ones((3, 4)), 0.0, y, 100) is None
    given = see_matrices(lambda t, y: coo_array(np.diag(y)), 0.0, y, 100)
    given.jac = lambda t, y: np.ones((3, 4))
    with pytest.raises(WrongResult, match=r"shape \(100, 100\), got shape \(3, 4\)"):
        given.values(0.0, y)


def test_matrices_of_the_users_may_get_more_entries():
    n = 120
    given = see_matrices(lambda t, y: np.diag(y), 0.0, np.arange(float(n)), n)
    assert len(given.rows) == n - 1
    y = np.ones(n)
    np.testing.assert_array_equal(given.values(0.0, y), y)
    assert len(given.rows) == len(given.columns) == n


@pytest.mark.parametrize("place", ["first", "last"])
def test_the_memory_of_the_core_grows_along(place):
    """What rests on nothing at the start is held later: a ball on each of many strings."""
    n = 80

    def flight(t, y, yp):
        return np.concatenate([yp[:n] - y[n:], yp[n:]])

    def strings(t, y):
        return np.maximum(y[:n] - 1.0, 0.0)

    def speeds(t, y):
        return y[n:] - 1.0

    pieces = [strings, speeds] if place == "first" else [speeds, strings]
    y0 = np.concatenate([np.linspace(0, 0.5, n), np.ones(n)])
    run = Integration(Problem(flight, constraints=pieces), 0.0, y0, t_bound=1.0,
                      options={"trace": "never"})
    state, before = run.state, run.state.constraint_slopes.nnz
    assert before == n
    beyond = np.concatenate([np.linspace(0.5, 1.5, n), np.ones(n)])
    status, slopes = jacobian_of_constraints_at(state, 0.0, beyond)
    assert status == 0
    held = np.flatnonzero(beyond[:n] > 1.0)
    assert slopes.nnz == n + len(held)
    first = 0 if place == "first" else n
    np.testing.assert_allclose(slopes.toarray()[first + held, held], 1.0, rtol=1e-6)
    np.testing.assert_allclose(slopes.toarray()[n - first + np.arange(n), n + np.arange(n)], 1.0,
                               rtol=1e-6)
    assert len(state.array("gy")) == slopes.nnz
    from tether._core import project

    status, on = project.projected(state, 0.0, beyond)
    assert status == 0
    np.testing.assert_allclose(on[:n], np.minimum(beyond[:n], 1.0), atol=1e-12)


def test_few_constraints_of_many_unknowns_take_few_calls():
    n, calls = 2000, []

    def equations(t, y, yp):
        return np.concatenate([yp[: n // 2] + y[n // 2 :], yp[n // 2 :] - y[: n // 2]])

    def some(t, y):
        calls.append(t)
        return y[:5] ** 2 + y[n // 2 : n // 2 + 5] ** 2 - 1.0

    y0 = np.concatenate([np.ones(n // 2), np.zeros(n // 2)])
    sol = solve_dae(equations, (0, 1), y0, constraints=Constraint(some), trace="never")
    assert sol.success
    assert np.abs(some(0, sol.y[:, -1])).max() < 1e-13
    assert len(calls) < 3 * 45 + 12 * sol.stats.steps


C_SOURCE = """
void radii(double t, double *y, double *values)
{
    for (int i = 0; i < 100; i++)
        values[i] = y[i] * y[i] + y[100 + i] * y[100 + i] - 1.0;
}
"""


def test_functions_in_c(tmp_path):
    equations, radii, _, y0 = circles(100)
    (tmp_path / "radii.c").write_text(C_SOURCE)
    library = tmp_path / "radii.so"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", library, tmp_path / "radii.c"],
                   check=True)
    function = ctypes.CDLL(str(library)).radii
    function.argtypes = [ctypes.c_double, *[ctypes.POINTER(ctypes.c_double)] * 2]
    function.restype = None
    problem = Problem(equations, constraints=Constraint(LowLevelCallable(function), size=100))
    assert Integration(problem, 0.0, y0, t_bound=1.0).state.gy_sparse
    sol = solve_dae(problem, (0, 20), y0, rtol=1e-5)
    assert sol.success
    assert np.abs(radii(0, sol.y[:, -1])).max() < 1e-13


@pytest.mark.parametrize("given", [False, True])
def test_nothing_of_the_size_of_a_full_matrix_is_made(given):
    n = 10_000
    equations, radii, slopes, y0 = circles(n)
    held = Constraint(radii, jac=slopes if given else None)
    rows = np.arange(n)
    pattern = coo_array((np.ones(4 * n), (
        np.concatenate([rows, rows, n + rows, n + rows]),
        np.concatenate([rows, n + rows, rows, n + rows]))), shape=(2 * n, 2 * n))
    tracemalloc.start()
    sol = solve_dae(equations, (0, 0.1), y0, constraints=held, trace="never",
                    jac_sparsity=pattern, rtol=1e-4, t_eval=[0.1])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert sol.success
    assert np.abs(radii(0, sol.y[:, -1])).max() < 1e-13
    np.testing.assert_allclose(sol.y[:n, -1], np.cos(0.1), atol=1e-3)
    assert peak < 0.05 * 8 * n * 2 * n
