"""The projection onto many constraints by the sparse compound system."""

import numpy as np
import pytest

from tether import solve_dae
from tether.plan.compound import CompoundSystem


def chain(links):
    """Equations and start of a chain of rods that hangs from the origin and is let go slanting."""
    length = 1.0 / links

    def equations(t, y, yp):
        x, z, u, w, pull = np.split(y, 5)
        dx, dz = (np.concatenate([v[:1], v[1:] - v[:-1]]) for v in (x, z))
        above = pull * dx, pull * dz
        below = [np.concatenate([force[1:], [0.0]]) for force in above]
        slopes = np.split(yp, 5)
        return np.concatenate([
            slopes[0] - u, slopes[1] - w, slopes[2] + above[0] - below[0],
            slopes[3] + above[1] - below[1] + 9.81, dx**2 + dz**2 - length**2,
        ])

    along = np.arange(1, links + 1) * length
    still = np.zeros(3 * links)
    return equations, np.concatenate([along * np.cos(0.7), -along * np.sin(0.7), still])


def rods(y):
    x, z = (np.concatenate([[0.0], v]) for v in np.split(y, 5)[:2])
    return np.hypot(np.diff(x), np.diff(z)) * (len(x) - 1) - 1.0


@pytest.mark.parametrize("solver", ["auto", "sparse"])
def test_a_chain_stays_on_its_constraints_as_with_orthogonal_factors(solver):
    equations, y0 = chain(32)

    def run(solver):
        return solve_dae(
            equations, (0, 0.2), y0, start="quiet", rtol=1e-6, options={"projection_solver": solver}
        )

    known, sol = run("orthogonal"), run(solver)
    assert sol.success
    assert np.abs(rods(sol.y[:, -1])).max() < 1e-12
    np.testing.assert_allclose(sol.y[:128, -1], known.y[:128, -1], atol=1e-5)
    assert sol.stats.steps <= 1.1 * known.stats.steps


def test_the_sparse_one_is_taken_for_many_constraints_only(monkeypatch):
    made = []
    monkeypatch.setattr(CompoundSystem, "_open", lambda *args: made.append(1) or 1 / 0)
    few, y0 = chain(5)
    assert solve_dae(few, (0, 0.01), y0, start="quiet").success
    assert not made
    many, y0 = chain(32)
    with pytest.raises(ZeroDivisionError):
        solve_dae(many, (0, 0.01), y0, start="quiet")


def circles(n, copies=1):
    """Points that turn, with their distances from the centre as constraints, given repeatedly."""

    def equations(t, y, yp):
        x, z = y[:n], y[n:]
        return np.concatenate([yp[:n] - z, yp[n:] + x])

    def constraint(t, y):
        return np.tile(y[:n] ** 2 + y[n:] ** 2 - 1.0, copies)

    angle = np.linspace(0, 6, n)
    return equations, constraint, np.concatenate([np.cos(angle), np.sin(angle)]), angle


@pytest.mark.parametrize("copies", [1, 2])
def test_constraints_that_depend_on_each_other_are_left_to_orthogonal_factors(copies):
    equations, constraint, y0, angle = circles(70, copies)
    sol = solve_dae(equations, (0, 3), y0, constraints=constraint, rtol=1e-6)
    assert sol.success
    assert np.abs(constraint(0, sol.y[:, -1])).max() < 1e-13
    np.testing.assert_allclose(sol.y[:70, -1], np.cos(angle - 3), atol=1e-4)


def test_full_constraints_are_left_to_orthogonal_factors_too():
    n = 70
    mix = np.random.default_rng(2).standard_normal((n, 2 * n))
    sol = solve_dae(
        lambda t, y, yp: yp + 0 * y, (0, 1), np.ones(2 * n), invariants=lambda t, y: mix @ y
    )
    assert sol.success
    np.testing.assert_allclose(sol.y[:, -1], 1.0, rtol=1e-12)
