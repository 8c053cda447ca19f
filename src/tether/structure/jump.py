"""How unknowns jump: by the law that follows from the equations themselves, math (28) to (31).

Where y is inconsistent with the constraints that hold from now on, the solution is a distribution.
Its jump y+ - y- and impulses p_0, p_1, ..., the coefficients of Dirac's delta and its derivatives,
satisfy

    E (y+ - y-) + A p_0 = 0,   E p_0 + A p_1 = 0,   ...,      E = F_y', A = F_y,

so the jump lies in W_k for some k, with W_0 = {0} and W_(i+1) = {w: E w in A W_i}. In a mechanism
W_2 has what impulses of the reactions do to the velocities: momentum is kept. In a circuit it has
what impulses of currents do to voltages: charge is kept. W_1 is the null space of E: unknowns
without a derivative jump freely.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tether.structure.scaling import balanced, nonzero

__all__ = [
    "Jump", "Jumping", "LargeJumping", "Matrices", "find_jump", "highest_order", "reached_space",
]

# Relative size of what is left of terms that cancel.
ROUND_OFF = 1e-13
# Singular values of matrices in natural units below this share of the largest are zero.
RANK = 1e-9
# Change, relative to the unknowns, at which the mean of E along a jump is found.
SETTLED = 1e-14
MAX_ROUNDS = 60
# A small change that has not fallen to this share of the one before is round-off.
STILL_SETTLING = 0.5
# Relative difference below which terms are the same.
SAME = 1e-6
# Relative difference below which coefficients are constant.
CONSTANT = 1e-9
# An impulse below this share of the largest is round-off.
NO_IMPULSE = 1e-12

# F_y' and F_y at a point, full or sparse
Matrices = Callable[[np.ndarray], tuple[Any, Any]]


@dataclass(frozen=True, eq=False)
class Jumping:
    """What must be known about equations to find a jump.

    Attributes
    ----------
    matrices : callable
        F_y' and F_y of the equations as written, as a function of y.
    onto_constraints : callable
        Bring values onto the constraints, given and hidden, by a change that is a combination of
        the columns of a matrix; None where that cannot be done.
    unit : ndarray
        Units of the unknowns.
    movable : ndarray of bool
        Unknowns that may change.
    early : ndarray of bool
        Unknowns that could only jump by derivatives of impulses, such as positions.
    sparse : LargeJumping, optional
        The same for a system that is too large for full matrices.
    """

    matrices: Matrices
    onto_constraints: Callable[[np.ndarray, np.ndarray], np.ndarray | None]
    unit: np.ndarray
    movable: np.ndarray
    early: np.ndarray
    sparse: LargeJumping | None = None


@dataclass(frozen=True, eq=False)
class LargeJumping:
    """What must be known about a large system to find a jump.

    Attributes
    ----------
    matrices : callable
        F_y' and F_y as sparse matrices that always have the same entries.
    constraints, slopes : callable
        All constraints, and their sparse derivatives, as functions of all unknowns: those of the
        user, then the others.
    others : ndarray
        Their starting values.
    scale : ndarray
        Units of all unknowns.
    take : callable
        Called with all unknowns after the jump, if one was found.
    """

    matrices: Callable[[np.ndarray], tuple[Any, Any]]
    constraints: Callable[[np.ndarray], np.ndarray]
    slopes: Callable[[np.ndarray], Any]
    others: np.ndarray
    scale: np.ndarray
    take: Callable[[np.ndarray], None]


@dataclass(frozen=True, eq=False)
class Jump:
    """Values after a jump.

    Attributes
    ----------
    y : ndarray
        The values.
    impulses : dict
        Impulse of every unknown that has one, by index.
    open_rows : tuple of int
        Equations whose coefficients change with the unknowns that jump, so that the jump depends
        on the path from the old to the new values.
    """

    y: np.ndarray
    impulses: dict[int, float]
    open_rows: tuple[int, ...] = ()

    def after(self, earlier: Jump | None) -> Jump:
        """Combine this jump with an earlier one."""
        if earlier is None:
            return self
        impulses = dict(earlier.impulses)
        for j, impulse in self.impulses.items():
            impulses[j] = impulses.get(j, 0.0) + impulse
        return Jump(self.y, impulses, tuple(sorted({*earlier.open_rows, *self.open_rows})))


def find_jump(system: Jumping, before: np.ndarray, nearby: np.ndarray) -> Jump | None:
    """Find the values to which inconsistent values jump by the law of the equations.

    Positions, which no impulse moves, are taken from `nearby`, unless the equations are linear
    and so have a law for them too.

    Parameters
    ----------
    system : Jumping
        The equations.
    before : ndarray
        Values before the jump.
    nearby : ndarray
        Values on the constraints.

    Returns
    -------
    Jump or None
        None if no values on the constraints can be reached.

    Examples
    --------
    Two cars of masses 1 and 9 that stick together, with the force between them as third unknown:

    >>> import numpy as np
    >>> from tether.structure.jump import Jumping, find_jump
    >>> E, A = np.diag([1.0, 9.0, 0.0]), np.array([[0, 0, 1.0], [0, 0, -1.0], [1, -1, 0]])
    >>> def onto_constraints(y, directions):
    ...     gap = np.array([1.0, -1.0, 0.0])
    ...     return y - directions @ np.linalg.lstsq((gap @ directions)[None], [gap @ y])[0]
    >>> cars = Jumping(lambda y: (E, A), onto_constraints, np.ones(3), np.ones(3, bool),
    ...                np.zeros(3, bool))
    >>> jump = find_jump(cars, np.array([10.0, 0, 0]), np.array([5.0, 5, 0]))
    >>> jump.y.round(12), {j: round(p, 12) for j, p in jump.impulses.items()}
    (array([1., 1., 0.]), {2: 9.0})
    """
    found = _follow_sparse(system, before, nearby)
    if found is None:
        found = _follow(system, before, nearby, 0, system.movable)
    if found is not None:
        return found
    if _is_linear(system, before, nearby):
        for order in range(1, highest_order(system, nearby) + 1):
            found = _follow(system, before, nearby, order, system.movable)
            if found is not None:
                return found
    if not system.early.any():
        return None
    moved = np.where(system.early, nearby, before)
    return _follow(system, moved, nearby, 0, system.movable & ~system.early)


def _follow_sparse(system: Jumping, before: np.ndarray, nearby: np.ndarray) -> Jump | None:
    """Jump without derivatives of impulses, by sparse matrices; None if there is no such jump."""
    large = system.sparse
    if large is None:
        return None
    from tether.structure.sparse_jump import SparseLaw, impulses_of  # late, to save time

    start = np.append(before, large.others)
    size = large.scale + np.abs(start)
    size[: len(before)] += np.abs(nearby)

    def mean(first: np.ndarray, last: np.ndarray) -> tuple[Any, Any]:
        return _mean(large.matrices, first, last)[:2]

    law = SparseLaw(mean, large.constraints, large.slopes, size)
    found = law.follow(start, system.movable)
    if found is None and system.early.any() and not _is_linear(large, before, nearby):
        start[: len(before)] = np.where(system.early, nearby, before)
        found = law.follow(start, system.movable & ~system.early)
    if found is None:
        return None
    x, p = found
    after, impulses = x[: len(before)], impulses_of(p, system.unit)
    large.take(x)
    before = start[: len(before)]
    return Jump(after, impulses, _open_rows(large.matrices, before, after, impulses))


def _is_linear(
    system: Jumping | LargeJumping, before: np.ndarray, nearby: np.ndarray
) -> bool:
    """Whether the matrices are the same everywhere between two points."""
    first, last = system.matrices(before), system.matrices(nearby)
    return all(_same(one, other) for one, other in zip(first, last, strict=True))


def highest_order(system: Jumping, y: np.ndarray) -> int:
    """Highest derivative of impulses that may occur: beyond it the spaces grow no further."""
    E, A = system.matrices(y)
    everything, sizes = np.ones(len(y), bool), [0]
    W = np.zeros((len(y), 0))
    while len(sizes) < 2 or sizes[-1] > sizes[-2]:
        W = _next_space(E, A, system.unit, W, everything)
        sizes.append(W.shape[1])
    return max(len(sizes) - 4, 0)


def _same(one: Any, other: Any, tolerance: float = SAME) -> bool:
    if hasattr(one, "tocsr"):              # sparse, with the same entries
        one, other = one.data, other.data
    size = np.maximum(np.abs(one), np.abs(other))
    return bool(np.all(np.abs(one - other) <= tolerance * size))


def _follow(
    system: Jumping, before: np.ndarray, nearby: np.ndarray, order: int, movable: np.ndarray
) -> Jump | None:
    """Jump with derivatives of impulses up to some order.

    With the mean of E along the path, E (y+ - y-) is the change of the quantities whose rates
    stand in the equations, such as a charge that is a nonlinear function of the voltage.
    """
    after, size = nearby, system.unit + np.abs(before) + np.abs(nearby)
    last = np.inf
    for _ in range(MAX_ROUNDS):
        E, A, constant = _mean(system.matrices, before, after)
        if not (np.isfinite(E).all() and np.isfinite(A).all()):
            return None
        directions, impulsive = reached_space(E, A, system.unit, order, movable)
        if not directions.shape[1]:
            return None
        found = system.onto_constraints(before, directions)
        if found is None:
            return None
        change, after = np.max(np.abs(found - after) / size), found
        # values found with differences never settle
        if constant or change <= SETTLED or last * STILL_SETTLING <= change <= SAME:
            break
        last = change
    impulses = _impulses(E, A, impulsive, after - before, system.unit)
    return Jump(after, impulses, _open_rows(system.matrices, before, after, impulses))


def _mean(
    matrices: Matrices, before: np.ndarray, after: np.ndarray
) -> tuple[Any, Any, bool]:
    """Mean of E on the straight path, A after the jump, and whether both are constant."""
    (first, A_first), (last, A) = matrices(before), matrices(after)
    if _same(first, last, CONSTANT):
        return last, A, _same(A_first, A, CONSTANT)
    places, shares = np.polynomial.legendre.leggauss(8)
    first, *others = (
        share / 2 * matrices(before + (1 + place) / 2 * (after - before))[0]
        for place, share in zip(places, shares, strict=True)
    )
    return sum(others, first), A, False


def reached_space(
    E: np.ndarray, A: np.ndarray, unit: np.ndarray, order: int, movable: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Bases of W_(order + 2), restricted to unknowns that may move, and of W_(order + 1)."""
    everything = np.ones(len(unit), bool)
    impulsive = _next_space(E, A, unit, np.zeros((len(unit), 0)), everything)
    for _ in range(order):
        impulsive = _next_space(E, A, unit, impulsive, everything)
    return _next_space(E, A, unit, impulsive, movable), impulsive


def _next_space(
    E: np.ndarray, A: np.ndarray, unit: np.ndarray, W: np.ndarray, movable: np.ndarray
) -> np.ndarray:
    """All w with E w in the range of A W; columns of about one unit."""
    columns, n = np.flatnonzero(movable), len(unit)
    right = A @ W
    right[np.abs(right) <= ROUND_OFF * (np.abs(A) @ np.abs(W))] = 0.0
    row, column = _balanced(np.hstack([E[:, columns] * unit[columns], right]))
    right = row[:, None] * right * column[len(columns) :]
    left = row[:, None] * E[:, columns] * unit[columns]
    if right.shape[1]:
        u, s, _ = np.linalg.svd(right, full_matrices=False)
        u = u[:, s > RANK * s[0]] if s[0] > 0.0 else u[:, :0]
        left = left - u @ (u.T @ left)
    # of a column that lies in the range only its own round-off is left
    scale = nonzero(np.abs(row[:, None] * E[:, columns] * unit[columns]).max(axis=0, initial=0.0))
    _, s, vt = np.linalg.svd(left / scale)
    rank = int(np.sum(s > RANK * s[0])) if len(s) and s[0] > RANK else 0
    vt[np.abs(vt) <= ROUND_OFF] = 0.0
    space = np.zeros((n, len(columns) - rank))
    basis = vt[rank:].T / scale[:, None]
    space[columns] = unit[columns, None] * basis / nonzero(np.abs(basis).max(axis=0, initial=0.0))
    return space


def _balanced(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Balance rows first: the units of the columns are known, those of equations are not."""
    first = 1.0 / nonzero(np.abs(matrix).max(axis=1, initial=0.0))
    row, column = balanced(first[:, None] * matrix)
    return first * row, column


def _impulses(
    E: np.ndarray, A: np.ndarray, impulsive: np.ndarray, change: np.ndarray, unit: np.ndarray
) -> dict[int, float]:
    """Find p_0 of E (y+ - y-) + A p_0 = 0."""
    right, value = A @ impulsive, -E @ change
    row, column = _balanced(right)
    w = column * np.linalg.lstsq(row[:, None] * right * column, row * value, rcond=RANK)[0]
    impulse = impulsive @ w
    size = np.abs(impulsive) @ np.abs(w)
    large = np.abs(impulse) > NO_IMPULSE * np.maximum(size, unit * np.max(size / unit, initial=0.0))
    return {int(j): float(impulse[j]) for j in np.flatnonzero(large)}


def _open_rows(
    matrices: Matrices, before: np.ndarray, after: np.ndarray, impulses: dict[int, float]
) -> tuple[int, ...]:
    """Rows for which another path from the old to the new values would give another jump."""
    (E, A), (E_last, A_last) = matrices(before), matrices(after)
    impulse, change = np.zeros(len(after)), after - before
    impulse[list(impulses)] = list(impulses.values())
    # also for other values of the unknowns that are infinite during the jump
    shifted = after.copy()
    shifted[list(impulses)] += 1.0 + np.abs(shifted[list(impulses)])
    E_shifted, A_shifted = matrices(shifted)
    size = abs(E_last) @ np.abs(change) + abs(A_last) @ np.abs(impulse)
    differs = np.zeros(len(after), bool)
    for other in (A, A_shifted):
        differs |= np.abs((other - A_last) @ impulse) > SAME * size
    differs |= np.abs((E_shifted - E_last) @ change) > SAME * size
    if not _same(E, E_last, CONSTANT):
        bend = np.linspace(-0.7, 0.7, len(after))
        one, other = (_along(matrices, before, after, way * bend) for way in (0.0, 1.0))
        differs |= np.abs(one - other) > SAME * size
    return tuple(np.flatnonzero(differs).tolist())


def _along(
    matrices: Matrices, before: np.ndarray, after: np.ndarray, bend: np.ndarray
) -> np.ndarray:
    """Integrate E dy along a path from one point to another, straight or bent."""
    places, shares = np.polynomial.legendre.leggauss(8)
    total, change = np.zeros(len(after)), after - before
    for place, share in zip((1 + places) / 2, shares / 2, strict=True):
        E = matrices(before + change * (place + bend * place * (1 - place)))[0]
        total += share * (E @ (change * (1 + bend * (1 - 2 * place))))
    return total
