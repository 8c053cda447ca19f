"""Systems of index 0 to 3 made from a known solution, in disguise: order, units, combinations.

y(t) is chosen, G(t, y, y') has the structure of an index, and F = G(t, y, y') - G on y(t) vanishes
on it. Equations and unknowns are then permuted, scaled over twelve orders of magnitude, and mixed.
Values on the solution are consistent: a run that starts from them follows it.
"""

import math

import numpy as np
import pytest

from tether import ConsistencyWarning, analyze, solve_dae

RTOL = 1e-6


class Manufactured:
    """One of them; what it is made of follows from a number."""

    def __init__(self, seed, index, disguise):
        rng = np.random.default_rng(seed)
        self.index, self.disguise = index, disguise
        m = self.m = int(rng.integers(1, 4)) if index else 0
        nx = self.nx = m + int(rng.integers(1, 5))
        n = self.n = nx + m if index < 3 else 2 * nx + m
        self.wave = rng.normal(size=n), rng.uniform(0.3, 1, n), rng.uniform(0.3, 2, n)
        A = 0.3 * rng.normal(size=(nx, nx))
        self.A = A - A.T + 0.5 * np.eye(nx)
        self.C = rng.normal(size=(m, nx))
        self.D = np.eye(m) + 0.2 * rng.normal(size=(m, m))
        self.rows, self.columns, self.units = np.eye(n), np.eye(n), np.ones(n)
        if "units" in disguise:
            self.rows = np.diag(10.0 ** rng.uniform(-6, 6, n))
            self.units = 10.0 ** rng.uniform(-6, 6, n)
        if "mixed" in disguise:
            self.columns = np.linalg.qr(rng.normal(size=(n, n)))[0]
        self.rows = self.rows[rng.permutation(n)]
        self.columns = self.columns[:, rng.permutation(n)]

    @property
    def dof(self):
        return {0: self.nx, 1: self.nx, 2: self.nx - self.m, 3: 2 * (self.nx - self.m)}[self.index]

    def solution(self, t):
        """Return y and y' before the disguise."""
        mean, size, speed = self.wave
        y, yp = mean + size * np.sin(speed * t + mean), size * speed * np.cos(speed * t + mean)
        if self.index < 3:
            return y, yp
        nx, ypp = self.nx, -size * speed * speed * np.sin(speed * t + mean)
        return (
            np.concatenate([y[:nx], yp[:nx], y[2 * nx :]]),
            np.concatenate([yp[:nx], ypp[:nx], yp[2 * nx :]]),
        )

    def plain(self, y, yp):
        nx, A, C = self.nx, self.A, self.C
        x, z = y[:nx], y[self.n - self.m :]
        if self.index == 0:
            return yp + A @ x + 0.2 * np.sin(x)
        if self.index == 1:
            along = self.D @ z + 0.1 * np.tanh(z) + 0.1 * C @ x
            return np.concatenate([yp[:nx] + A @ x + C.T @ z, along])
        along = C @ x + 0.1 * np.sin(C @ x)
        if self.index == 2:
            return np.concatenate([yp[:nx] + A @ x + 0.2 * np.sin(x) + C.T @ z, along])
        v = y[nx : 2 * nx]
        force = A @ x + 0.5 * v + 0.2 * np.sin(x) + C.T @ z
        return np.concatenate([yp[:nx] - v, yp[nx : 2 * nx] + force, along])

    def fun(self, t, y, yp):
        given = self.columns @ (self.units * y), self.columns @ (self.units * yp)
        f = list(self.rows @ (self.plain(*given) - self.plain(*self.solution(t))))
        if "combined" in self.disguise:
            s = np.sin(0.4 * t + 0.3 * y[0])
            f[0] = f[0] + s * f[1]
            f[1] = f[1] - 0.5 * s * f[0]
        return f

    def exact(self, t):
        return self.columns.T @ self.solution(t)[0] / self.units


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("disguise", ["", "units", "mixed", "combined", "mixed, units"])
@pytest.mark.parametrize("index", [0, 1, 2, 3])
def test_a_run_from_consistent_values_follows_the_solution(index, disguise, seed):
    problem = Manufactured(seed, index, disguise)
    t0, t1 = [(0.0, 1.0), (-3.0, -4.0), (1000.0, 1001.0)][seed % 3]
    sol = solve_dae(problem.fun, (t0, t1), problem.exact(t0), rtol=RTOL, atol=RTOL / problem.units)
    assert sol.success, sol.message
    errors = (sol.y[:, -1] - problem.exact(t1)) * problem.units
    assert np.abs(errors).max() < 300 * RTOL


@pytest.mark.parametrize("disguise", ["units", "combined", "mixed, units"])
@pytest.mark.parametrize("index", [2, 3])
def test_a_disguise_hides_neither_index_nor_freedom(index, disguise):
    for seed in range(3):
        problem = Manufactured(seed, index, disguise)
        report = analyze(problem.fun, 0.5, problem.exact(0.5))
        assert (report.index, report.dof) == (index, problem.dof)


@pytest.mark.parametrize("trace", ["auto", "never"])
def test_units_of_equations_do_not_decide_what_is_algebraic(trace):
    def fun(t, y, yp):
        return [1e8 * (yp[0] + y[0]), 1e-8 * (yp[1] + y[1])]

    sol = solve_dae(fun, (0, 1), [1.0, 1.0], trace=trace)
    assert not sol.start.moved
    assert sol.y[:, -1] == pytest.approx(math.exp(-1), rel=1e-4)


@pytest.mark.parametrize("power", [-12, 9, 12, 18])
def test_a_constraint_in_any_units(power):
    def pendulum(t, y, yp):
        x, z, u, w, lam = y
        return [yp[0] - u, yp[1] - w, yp[2] + lam * x, yp[3] + lam * z + 9.81,
                10.0**power * (x * x + z * z - 1)]

    report = analyze(pendulum, 0.0, [0.6, -0.8, 0.8, 0.6, 0.0])
    assert (report.index, report.dof, report.repair) == (3, 2, "none")
    sol = solve_dae(pendulum, (0, 1), [0.6, -0.8, 0.8, 0.6, 0.0])
    energy = 0.5 * (sol.y[2] ** 2 + sol.y[3] ** 2) + 9.81 * sol.y[1]
    assert sol.success
    assert np.ptp(energy) < 1e-4


@pytest.mark.parametrize("power", [4, 8, 14])
def test_combinations_of_equations_in_any_units(power):
    def capacitor(t, y, yp):
        current = yp[0] - yp[1]
        return [10.0**power * (current + y[0]), 10.0**-power * (-current + 2 * y[1])]

    report = analyze(capacitor, 0.0, [2.0, -1.0])
    assert (report.index, report.dof, report.repair) == (1, 1, "combinations")


@pytest.mark.parametrize("length", [1e-12, 1e-9, 1e-8, 1e6, 1e12])
def test_a_pendulum_of_any_length(length):
    def pendulum(t, y, yp):
        x, z, u, w, lam = y
        return [yp[0] - u, yp[1] - w, yp[2] + lam * x, yp[3] + lam * z + 9.81 * length,
                x * x + z * z - length**2]

    start = length * np.array([0.66, -0.88, 1.0, 0.0, 0.0])
    with pytest.warns(ConsistencyWarning):
        sol = solve_dae(pendulum, (0, 1), start, atol=1e-9 * length)
    assert sol.success, sol.message
    assert sol.start.y[:4] / length == pytest.approx([0.6, -0.8, 0.64, 0.48])
    assert sol.start.y[4] == pytest.approx(8.488)
    assert "index 3 reduced to 1, kept on 2 constraints" in sol.how
