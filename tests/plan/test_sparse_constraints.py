"""Many constraints: their derivatives are stored without zeros, and nothing full is made."""

import tracemalloc

import numpy as np
import pytest

from tether import Problem, solve_dae
from tether.run.integration import Integration


def chain(n):
    """Make a chain of n rods as Newton and Lagrange give it, of index 3, and its start."""

    def rods(t, y, yp):
        x, z, u, w, pull = (y[k * n : (k + 1) * n] for k in range(5))
        dx, dz = (np.concatenate([v[:1], v[1:] - v[:-1]]) for v in (x, z))
        above = pull * dx, pull * dz
        below = [np.concatenate([force[1:], [0.0]]) for force in above]
        return np.concatenate([
            yp[:n] - u, yp[n : 2 * n] - w, yp[2 * n : 3 * n] + above[0] - below[0],
            yp[3 * n : 4 * n] + above[1] - below[1] + 9.81, dx**2 + dz**2 - 1.0 / n**2,
        ])

    along = np.arange(1, n + 1) / n
    return rods, np.concatenate([along * np.cos(0.7), -along * np.sin(0.7), np.zeros(3 * n)])


def network(nodes):
    """Make pipes of water that cannot be compressed, of index 2: flows, then pressures."""
    pipes = [(k, k + 1) for k in range(nodes - 1)] + [(k, k + 7) for k in range(0, nodes - 7, 3)]
    count = len(pipes)

    def flows(t, y, yp):
        q, p = y[:count], y[count:]
        balance = [0.0] * nodes
        out = []
        for k, (a, b) in enumerate(pipes):
            out.append(yp[k] - (p[a] - p[b]) + q[k] * (1 + 0.3 * q[k] ** 2))
            balance[a] = balance[a] - q[k]
            balance[b] = balance[b] + q[k]
        balance[0] = p[0]                              # a tank
        balance[-1] = balance[-1] - 0.1 * np.sin(t)    # a tap
        return out + balance

    return flows, np.zeros(count + nodes), count


def balance_of(flows, y, t):
    """What is left of the balances."""
    return np.abs(np.array(flows(t, y, np.zeros_like(y)))[-50:]).max()


@pytest.mark.parametrize("n", [35, 60])
def test_the_projection_is_that_of_full_matrices(n):
    rods, y0 = chain(n)
    sparse, full = (
        solve_dae(rods, (0, 0.1), y0, start="quiet", options={"projection_solver": solver})
        for solver in ("auto", "orthogonal")
    )
    assert sparse.success
    assert full.success
    assert abs(sparse.stats.steps - full.stats.steps) <= 2
    np.testing.assert_allclose(sparse.y[: 4 * n, -1], full.y[: 4 * n, -1], atol=2e-6)
    assert np.abs(sparse.drift).max() < 1e-12


def test_derivatives_have_no_zeros_and_are_right():
    rods, y0 = chain(40)
    run = Integration(rods, 0.0, y0, options={"start": "quiet"}, t_bound=0.1)
    state = run.state
    assert state.gy_sparse
    assert state.n_constraints == 80
    slopes = state.constraint_slopes
    assert slopes.nnz <= 14 * 40
    assert len(state.array("gy")) == slopes.nnz
    assert state.array("basis").size == 0
    y, step = state.y_now.copy(), 1e-6
    from tether._core.constraints import constraints_at, jacobian_of_constraints_at

    exact = jacobian_of_constraints_at(state, 0.0, y)[1].toarray()
    for j in (0, 57, 130):
        moved = [y + sign * step * (np.arange(len(y)) == j) for sign in (1, -1)]
        found = np.subtract(*(constraints_at(state, 0.0, v)[1] for v in moved)) / (2 * step)
        np.testing.assert_allclose(found, exact[:, j], atol=1e-8)


def test_water_in_pipes_stays_in_balance():
    flows, y0, count = network(150)
    sparse = solve_dae(flows, (0, 2), y0, start="quiet")
    full = solve_dae(flows, (0, 2), y0, start="quiet",
                     options={"projection_solver": "orthogonal", "linear_solver": "dense"})
    assert sparse.success
    assert "index 2 reduced" in sparse.how
    np.testing.assert_allclose(sparse.y[:count, -1], full.y[:count, -1], atol=1e-6)
    assert balance_of(flows, sparse.y[:, -1], 2.0) < 1e-12


def test_invariants_of_the_users_stand_beside_those_of_the_equations():
    n = 80

    def springs(t, y, yp):
        x, v = y[:n], y[n:]
        return np.concatenate([yp[:n] - v, yp[n:] + np.linspace(1, 2, n) * x])

    def energies(t, y):
        return 0.5 * y[n:] ** 2 + 0.5 * np.linspace(1, 2, n) * y[:n] ** 2

    y0 = np.concatenate([np.linspace(0.5, 1.0, n), np.zeros(n)])
    problem = Problem(springs, invariants=[energies])
    run = Integration(problem, 0.0, y0, t_bound=1.0)
    assert run.state.gy_sparse
    sol = solve_dae(problem, (0, 10), y0, rtol=1e-5)
    np.testing.assert_allclose(energies(0, sol.y[:, -1]), energies(0, y0), rtol=1e-13)
    exact = y0[:n] * np.cos(np.sqrt(np.linspace(1, 2, n)) * 10)
    np.testing.assert_allclose(sol.y[:n, -1], exact, atol=1e-3)


def test_constraints_that_repeat_each_other_are_kept_all_the_same():
    n = 80

    def circles(t, y, yp):
        x, z = y[:n], y[n:]
        return np.concatenate([yp[:n] + z, yp[n:] - x])

    def twice(t, y):
        radii = y[:n] ** 2 + y[n:] ** 2 - 1.0
        return np.concatenate([radii, 3.0 * radii[: n // 2]])

    y0 = np.concatenate([np.ones(n), np.zeros(n)])
    problem = Problem(circles, constraints=[twice])
    run = Integration(problem, 0.0, y0, t_bound=1.0)
    assert run.state.gy_sparse
    sol = solve_dae(problem, (0, 20), y0, rtol=1e-4)
    assert sol.success
    assert np.abs(twice(0, sol.y[:, -1])).max() < 1e-12
    np.testing.assert_allclose(sol.y[:n, -1], np.cos(20), atol=0.03)


@pytest.mark.parametrize("kind", ["rods", pytest.param("pipes", marks=pytest.mark.slow)])
def test_nothing_of_the_size_of_a_full_matrix_is_made(kind):
    if kind == "rods":
        (equations, y0), constraints = chain(4000), 8000
    else:
        (equations, y0, _), constraints = network(8600), 8600
    assert len(y0) >= 20_000
    solve = {"rtol": 1e-3, "atol": 1e-5, "start": "quiet", "t_eval": [1e-4]}
    solve_dae(equations, (0, 1e-4), y0, **solve)       # the plan: its formulas are no arrays
    tracemalloc.start()
    sol = solve_dae(equations, (0, 1e-4), y0, **solve)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert sol.success
    assert sol.drift.shape[0] >= constraints - 1
    assert peak < 0.1 * 8 * constraints * len(y0)
