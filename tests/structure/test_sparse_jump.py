"""The law of jumps with sparse matrices: the values and impulses that full ones give."""

import numpy as np
import pytest

from tether import solve_dae
from tether.plan.shelf import shelf
from tether.structure import jump, reduced_start, row_reduction
from tether.structure.sparse_jump import SparseLaw


def capacitors(n, seed):
    """Charges that depend on voltages in a bent way, some voltages held by sources: index 2."""
    rng = np.random.default_rng(seed)
    held = rng.permutation(n)[: n // 4]
    bend = rng.uniform(0.1, 0.5, n)
    partner = np.roll(np.arange(n), 1)

    def equations(t, y, yp):
        v, i = y[:n], y[n:]
        out = []
        for k in range(n):
            j = partner[k]
            # d/dt of v + bend v^3, and of a capacitor to the neighbour
            out.append((1 + 3 * bend[k] * v[k] ** 2) * yp[k] + 0.3 * (yp[k] - yp[j]) + 0.5 * v[k])
        for place, k in enumerate(held):
            out[k] = out[k] + i[place] * (1 + 0.2 * v[k])
        return out + [v[k] + 0.1 * v[k] ** 3 - 0.2 * v[partner[k]] - 1.0 for k in held]

    return equations, rng.uniform(-0.5, 0.5, n + len(held))


def chain(n, seed, far):
    """Rods with velocities, and positions if they are `far`, that do not fit: index 3."""

    def rods(t, y, yp):
        x, z, u, w, pull = (y[k * n : (k + 1) * n] for k in range(5))
        out = []
        for k in range(n):
            out += [yp[k] - u[k], yp[n + k] - w[k]]
        for k in range(n):
            dx, dz = (x[k] - x[k - 1], z[k] - z[k - 1]) if k else (x[0], z[0])
            fx, fz = pull[k] * dx, pull[k] * dz
            if k < n - 1:
                fx = fx - pull[k + 1] * (x[k + 1] - x[k])
                fz = fz - pull[k + 1] * (z[k + 1] - z[k])
            out += [(1 + k) * yp[2 * n + k] + fx, (1 + k) * yp[3 * n + k] + fz + 9.81]
            out.append(dx**2 + dz**2 - 1.0)
        return out

    rng = np.random.default_rng(seed)
    along = np.arange(1, n + 1)
    y0 = np.concatenate([along * np.cos(0.7), -along * np.sin(0.7), np.zeros(3 * n)])
    y0[2 * n : 4 * n] = rng.standard_normal(2 * n)
    if far:
        y0[: 2 * n] += 0.02 * rng.standard_normal(2 * n)
    return rods, y0


def both(monkeypatch, equations, y0, **options):
    """Solve with sparse and with full matrices; count what the sparse ones have found."""
    found = []
    follow = SparseLaw.follow

    def counted(self, *args):
        result = follow(self, *args)
        found.append(result is not None)
        return result

    monkeypatch.setattr(SparseLaw, "follow", counted)
    monkeypatch.setattr(row_reduction, "reduce_rows", lambda *args: None)
    results = []
    for least in (1, 10**9):
        monkeypatch.setattr(reduced_start, "LARGE", least)
        shelf.empty()
        results.append(solve_dae(equations, (0, 1e-3), y0, start="quiet", rtol=1e-8, atol=1e-10,
                                 t_eval=[0.0, 1e-3], **options))
    shelf.empty()
    return *results, found


def compare(sparse, full):
    assert sparse.success
    assert full.success
    np.testing.assert_allclose(sparse.y[:, 0], full.y[:, 0], rtol=1e-9, atol=1e-9)
    mine, theirs = sparse.jumps[0], full.jumps[0]
    assert mine.by_law
    assert theirs.by_law
    assert mine.impulses.keys() == theirs.impulses.keys()
    for j, impulse in theirs.impulses.items():
        assert mine.impulses[j] == pytest.approx(impulse, rel=1e-9, abs=1e-9)
    assert sparse.start.jump.open_rows == full.start.jump.open_rows


@pytest.mark.parametrize("seed", range(4))
def test_charge_is_kept_as_by_full_matrices(monkeypatch, seed):
    sparse, full, found = both(monkeypatch, *capacitors(24, seed))
    assert found == [True]
    compare(sparse, full)
    assert sparse.start.jump.open_rows


@pytest.mark.parametrize("far", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_chains_are_pulled_as_by_full_matrices(monkeypatch, seed, far):
    sparse, full, found = both(monkeypatch, *chain(8, seed, far))
    assert found == ([False, True] if far else [True])
    compare(sparse, full)


def test_equations_that_leave_something_open_are_left_to_full_matrices():
    """Two rods in the same place: how they share their impulse is open."""
    law = SparseLaw(
        lambda before, after: tuple(map(np_sparse, (
            np.diag([2.0, 3.0, 0.0, 0.0]),
            np.array([[0, 0, 1.0, 1.0], [0, 0, 0, 0], [1.0, 0, 0, 0], [1.0, 0, 0, 0]])))),
        lambda x: x[:1], lambda x: np_sparse(np.eye(4)[:1]), np.ones(4))
    assert law.follow(np.array([1.0, 1, 0, 0]), np.ones(4, bool)) is None


def np_sparse(matrix):
    from scipy.sparse import csr_array

    return csr_array(matrix)


def two_cars(constraint, slopes):
    """Masses 1 and 9, and the force between them."""
    mass = np_sparse(np.diag([1.0, 9.0, 0.0]))
    forces = np_sparse(np.array([[0, 0, 1.0], [0, 0, -1.0], [1, -1, 0]]))
    return SparseLaw(lambda *points: (mass, forces), constraint, slopes, np.ones(3))


def test_cars_that_stick_together():
    law = two_cars(lambda x: x[:1] - x[1:2], lambda x: np_sparse(np.array([[1.0, -1, 0]])))
    x, p = law.follow(np.array([10.0, 0, 0]), np.ones(3, bool))
    np.testing.assert_allclose(x, [1, 1, 0], atol=1e-13)
    np.testing.assert_allclose(p, [0, 0, 9], atol=1e-12)


def test_what_contradicts_itself_or_is_no_number_is_not_found():
    both_ways = two_cars(
        lambda x: np.array([x[0] - x[1], x[0] - x[1] - 1.0]),
        lambda x: np_sparse(np.array([[1.0, -1, 0], [1.0, -1, 0]])))
    assert both_ways.follow(np.array([10.0, 0, 0]), np.ones(3, bool)) is None
    nowhere = two_cars(lambda x: np.full(1, np.nan), lambda x: np_sparse(np.ones((1, 3))))
    assert nowhere.follow(np.array([10.0, 0, 0]), np.ones(3, bool)) is None
    held = two_cars(lambda x: x[:1] - x[1:2], lambda x: np_sparse(np.array([[1.0, -1, 0]])))
    assert held.follow(np.array([10.0, 0, 0]), np.zeros(3, bool)) is None


def test_large_systems_take_no_full_decomposition(monkeypatch):
    """Of 130 unknowns: the law took dozens of them, of all unknowns."""
    calls = []

    def next_space(*args):
        calls.append(1)
        return original(*args)

    original = jump._next_space
    monkeypatch.setattr(jump, "_next_space", next_space)
    equations, y0 = capacitors(104, 5)
    sol = solve_dae(equations, (0, 1e-3), y0, start="quiet")
    assert sol.success
    assert sol.jumps[0].by_law
    assert not calls


def ladder(nodes, stage):
    """Capacitors along a line and to ground; sources, whose currents are unknown, jump."""

    def equations(t, y, yp):
        step = 1.0 if t < 0.5 else 2.0
        sources = range(0, nodes, stage)
        out = [0.2 * yp[k] + 0.1 * y[k] for k in range(nodes)]
        for k in range(nodes - 1):
            current = 0.5 * (yp[k] - yp[k + 1]) + 0.3 * (y[k] - y[k + 1])
            out[k] = out[k] + current
            out[k + 1] = out[k + 1] - current
        for number, k in enumerate(sources):
            out[k] = out[k] - y[nodes + number]
            out.append(y[k] - step)
        return out

    return equations, np.zeros(nodes + len(range(0, nodes, stage)))


@pytest.mark.parametrize("stage", [10**6, 8])
def test_nothing_of_the_size_of_a_full_matrix_is_taken_apart(monkeypatch, stage):
    """There were dozens of inverses and singular vectors of all unknowns."""
    sizes = []

    def counting(original):
        def counted(matrix, *args, **options):
            sizes.append(matrix.shape[-2] * matrix.shape[-1])
            return original(matrix, *args, **options)

        return counted

    for name in ("svd", "inv", "solve", "qr", "lstsq"):
        monkeypatch.setattr(np.linalg, name, counting(getattr(np.linalg, name)))
    nodes = 600
    equations, y0 = ladder(nodes, stage)
    sol = solve_dae(equations, (0, 1), y0, start="quiet", rtol=1e-6, atol=1e-9,
                    t_eval=[0.5 - 1e-12, 0.5, 0.5 + 1e-9])
    assert sol.success
    assert sol.jumps[-1].by_law
    assert max(sizes, default=0) <= 10 * len(y0)
    jump = sol.y[:nodes, -1] - sol.y[:nodes, 0]
    # charge of every node without a source is kept: 0.2 w_k = 0.5 (w_(k-1) - 2 w_k + w_(k+1))
    inner = np.arange(nodes) % stage != 0
    change = np.diff(jump, append=jump[-1], prepend=0.0)
    left = 0.2 * jump - 0.5 * (change[1:] - change[:-1])
    np.testing.assert_allclose(jump[~inner], 1.0, atol=1e-6)
    np.testing.assert_allclose(left[inner], 0.0, atol=1e-5)
