"""The law of jumps: for linear systems it is the consistent projector."""

import warnings

import numpy as np
import pytest

from tether import solve_dae
from tether.structure.jump import Jumping, find_jump

SYSTEMS = [(sizes, dof, seed) for seed, (sizes, dof) in enumerate([
    ((1,), 2), ((2,), 1), ((2, 1), 3), ((2, 2), 2), ((3,), 1), ((3,), 3), ((3, 2), 2), ((3, 1), 2),
    ((3, 3), 2), ((4,), 2),
])]


def pencil(sizes, dof, seed, in_units):
    """Random E, A with nilpotent blocks, their consistent projector, and what the unknowns are."""
    rng, n = np.random.default_rng(seed), dof + sum(sizes)
    E, A, keep = np.zeros((3, n, n))
    E[:dof, :dof] = keep[:dof, :dof] = np.eye(dof)
    A[:dof, :dof] = rng.normal(size=(dof, dof))
    place = dof
    for size in sizes:
        part = slice(place, place + size)
        E[part, part], A[part, part] = np.diag(np.ones(size - 1), 1), np.eye(size)
        place += size
    left, right = rng.normal(size=(2, n, n)) + 2 * np.eye(n)
    if in_units:
        left = 10.0 ** rng.uniform(-4, 4, (n, 1)) * left
        right = right * 10.0 ** rng.uniform(-3, 3, n)
    return left @ E @ right, left @ A @ right, np.linalg.solve(right, keep @ right), right


@pytest.mark.parametrize("in_units", [False, True])
@pytest.mark.parametrize(("sizes", "dof", "seed"), SYSTEMS)
def test_linear_system_of_any_index_jumps_by_its_consistent_projector(sizes, dof, seed, in_units):
    E, A, projector, right = pencil(sizes, dof, seed, in_units)
    y0 = np.linalg.solve(right, np.random.default_rng(seed + 1).normal(size=len(E)))
    exact = projector @ y0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sol = solve_dae(
            lambda t, y, yp: E @ yp + A @ y, (0, 1e-3), y0,
            atol=1e-9 * (np.abs(y0) + np.abs(exact)),
        )
    assert sol.start.success
    assert sol.start.lawful
    np.testing.assert_allclose(sol.start.y, exact, rtol=1e-9, atol=1e-10 * np.abs(y0).max())


def test_redundant_reactions_leave_the_jump_unique():
    """Two rods in the same place share their impulse; the velocity does not care."""
    E = np.diag([2.0, 3.0, 0.0, 0.0])
    A = np.array([[0, 0, 1.0, 1.0], [0, 0, 0, 0], [1.0, 0, 0, 0], [1.0, 0, 0, 0]])

    def onto_constraints(y, directions):
        rows = np.array([[1.0, 0, 0, 0]])
        return y - directions @ np.linalg.lstsq(rows @ directions, rows @ y, rcond=None)[0]

    system = Jumping(
        lambda y: (E, A), onto_constraints, np.ones(4), np.ones(4, bool), np.zeros(4, bool)
    )
    jump = find_jump(system, np.array([1.0, 1, 0, 0]), np.array([0.0, 1, 0, 0]))
    np.testing.assert_allclose(jump.y[:2], [0, 1], atol=1e-14)
    assert sum(jump.impulses.values()) == pytest.approx(2.0)


def test_nothing_is_found_where_no_impulse_leads_to_the_constraints():
    """y[0] would have to jump, but there is nothing that could push it."""
    E, A = np.eye(2), np.zeros((2, 2))
    system = Jumping(
        lambda y: (E, A), lambda y, directions: None, np.ones(2), np.ones(2, bool),
        np.zeros(2, bool),
    )
    assert find_jump(system, np.array([1.0, 0.0]), np.zeros(2)) is None
