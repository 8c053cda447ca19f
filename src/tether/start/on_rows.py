"""How the state jumps in a large system that was reduced as whole arrays."""

from __future__ import annotations

import numpy as np

from tether._core import probe
from tether._core.adapters import raise_user_error
from tether._core.constraints import constraints_at, jacobian_of_constraints_at
from tether._core.state import State
from tether.structure.jump import Jump
from tether.structure.row_reduction import LeadingMatrix, RowReduction

__all__ = ["jump_on_rows"]

MOST_ITERATIONS = 20
# Change, in tolerances, that ends the iteration.
SETTLED = 1e-6
# A coefficient has changed if it has by more than this share of the largest in its equation.
SAME = 1e-9
# Points and weights of a mean over the interval from 0 to 1.
GAUSS_LEGENDRE = np.polynomial.legendre.leggauss(8)
PLACES, SHARES = 0.5 * (1.0 + GAUSS_LEGENDRE[0]), 0.5 * GAUSS_LEGENDRE[1]
# An impulse below this share of the largest is round-off.
NO_IMPULSE = 1e-12


def jump_on_rows(
    reduction: RowReduction, leading: LeadingMatrix, state: State, t: float, y: np.ndarray
) -> Jump | None:
    """Find the values on the constraints to which others jump by the law of the equations.

    F_y' (y+ - y-) + F_z P = 0 with the impulses P of the multipliers z, and g(y+) = 0: that is a
    system with the matrix of the slopes and multipliers. As for other systems (math (28) to (31)),
    the mean of F_y' on the straight path from y- to y+ is taken, and F_z after the jump. Positions,
    which no impulse moves, are first brought onto their constraints by the least change.

    Parameters
    ----------
    reduction : RowReduction
        Which equations are constraints, and which unknowns multipliers.
    leading : LeadingMatrix
        The matrix.
    state : State
        Holds the constraints, those of the equations first.
    t, y : float, ndarray
        The values before.

    Returns
    -------
    Jump or None
        None where no such values were found.
    """
    rows, differential = reduction.rows, ~reduction.multipliers
    if reduction.index > 2:
        moved = _move_positions(reduction, state, t, y)
        if moved is None:
            return None
        y = moved
    constrains = np.isin(leading.rows, rows)
    rest = np.zeros_like(y)
    change, impulse = np.zeros_like(y), np.zeros_like(y)
    for _ in range(MOST_ITERATIONS):
        there = y + change
        status, g = constraints_at(state, t, there)
        raise_user_error(state)
        if status != 0:
            return None
        here = leading.at(t, there, rest)
        mean = sum(
            share * leading.at(t, y + place * change, rest)
            for place, share in zip(PLACES, SHARES, strict=True)
        )
        solve = leading.solver(np.where(leading.of_slopes & ~constrains, mean, here))
        if solve is None:
            return None
        right = np.zeros_like(y)           # linearised there: g + g_y (y+ - y- - change) = 0
        places = leading.rows[constrains]
        np.add.at(right, places, here[constrains] * change[leading.columns[constrains]])
        right[rows] -= g[reduction.last]
        found = solve(right)
        moved = np.where(differential, found, 0.0) - change
        change += moved
        impulse = np.where(differential, 0.0, found)
        if probe.weighted_size(state, moved) <= SETTLED:
            large = np.abs(impulse) > NO_IMPULSE * np.abs(impulse).max()
            impulses = {int(j): float(impulse[j]) for j in np.flatnonzero(large)}
            there = y + change
            return Jump(there, impulses, _open_rows(reduction, leading, t, y, there))
    return None


def _move_positions(
    reduction: RowReduction, state: State, t: float, y: np.ndarray
) -> np.ndarray | None:
    """Move positions onto the constraints that were differentiated twice; None if that fails."""
    from scipy.sparse import csr_array, diags_array  # late, to save time
    from scipy.sparse.linalg import splu

    count = len(reduction.rows)
    twice = np.flatnonzero(reduction.last >= count)
    alike = np.ones_like(y) if state.atols.min() <= 0.0 else state.atols / state.atols.max()
    scale = np.where(reduction.positions, alike, 0.0)
    there = y.copy()
    for _ in range(MOST_ITERATIONS):
        status, g = constraints_at(state, t, there)
        if status == 0:
            status, slopes = jacobian_of_constraints_at(state, t, there)
        raise_user_error(state)
        if status != 0:
            return None
        scaled = csr_array(slopes)[twice] @ diags_array(scale)
        try:
            change = scale * (scaled.T @ splu((scaled @ scaled.T).tocsc()).solve(-g[twice]))
        except RuntimeError:  # exactly singular
            return None
        there += change
        if probe.weighted_size(state, change) <= SETTLED:
            return there
    return None


def _open_rows(
    reduction: RowReduction, leading: LeadingMatrix, t: float, before: np.ndarray,
    after: np.ndarray,
) -> tuple[int, ...]:
    """List equations whose coefficients change in the jump."""
    rest = np.zeros_like(before)
    old, new = leading.at(t, before, rest), leading.at(t, after, rest)
    size = np.zeros(len(before))
    np.maximum.at(size, leading.rows, np.abs(old))
    changed = np.unique(leading.rows[np.abs(new - old) > SAME * size[leading.rows]])
    return tuple(np.setdiff1d(changed, reduction.rows).tolist())
