"""How the unknowns of larger systems jump: the law of `jump.py` with sparse matrices.

The jump w = y+ - y- and the impulses p are solved for together with the constraints,

    E w + A p = 0,   E p = 0,   g(y- + w, v) = 0,

by Newton's method, with the mean of E along the path and A after the jump both taken at the last
iterate; v are derivatives that are unknowns of the reduced system. If these equations leave
something open or contradict each other nothing is found, and `jump.py` uses full matrices.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tether.structure.scaling import nonzero

__all__ = ["SparseLaw", "impulses_of"]

# Change, relative to the unknowns, that ends the iteration.
SETTLED = 1e-14
# A relative change below this is round-off if it has not fallen to this share of the one before.
ROUND_OFF = 1e-11
STILL_SETTLING = 0.5
MAX_ROUNDS = 60
# An equation holds if its value is below this share of the sum of its terms ...
LEFT_OVER = 1e-9
# ... or, where nothing moves, below this share of what unknowns and impulses of full size give.
NOISE = 1e-13
# Equations leave something open if a pivot is below this share of the largest.
OPEN = 1e-10
# An impulse below this share of the largest is round-off.
NO_IMPULSE = 1e-12

Solver = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, eq=False)
class SparseLaw:
    """Equations and constraints of a jump.

    Attributes
    ----------
    mean : callable
        Mean of F_y' on the straight path between two points, and F_y at the second, for the
        unknowns of the user.
    constraints, slopes : callable
        All constraints, and their sparse derivatives, as functions of all unknowns.
    size : ndarray
        Sizes of all unknowns.
    """

    mean: Callable[[np.ndarray, np.ndarray], tuple[Any, Any]]
    constraints: Callable[[np.ndarray], np.ndarray]
    slopes: Callable[[np.ndarray], Any]
    size: np.ndarray

    def follow(
        self, before: np.ndarray, movable: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Find all unknowns after the jump, and the impulses; None if that fails.

        `movable` says which unknowns of the user may change; derivatives always may.
        """
        n = len(movable)
        free = np.append(movable, np.ones(len(before) - n, bool))
        x, p, last = before.copy(), np.zeros(n), np.inf
        for _ in range(MAX_ROUNDS):
            E, A = self.mean(before[:n], x[:n])
            g, g_x = self.constraints(x), self.slopes(x)
            w = x[:n] - before[:n]
            left = np.concatenate([E @ w + A @ p, E @ p, g])
            if not np.isfinite(left).all():
                return None
            step = self._step(E, A, g_x, left, free)
            if step is None:
                return None
            x, p = x + step[: len(x)], p + step[len(x) :]
            change = np.max(np.abs(step[: len(x)]) / self.size)
            if change <= SETTLED or last * STILL_SETTLING <= change <= ROUND_OFF:
                return (x, p) if self._holds(before, x, p) else None
            last = change
        return None

    def _step(
        self, E: Any, A: Any, g_x: Any, left: np.ndarray, free: np.ndarray
    ) -> np.ndarray | None:
        """Newton step for all unknowns and impulses; None if the equations leave some open."""
        from scipy.sparse import block_array, csr_array  # late, to save time

        n, further = E.shape[0], len(free) - E.shape[0]
        none = csr_array((n, further))
        matrix = block_array([
            [E, none, A], [None, None, E], [g_x[:, :n], g_x[:, n:], None],
        ]).tocsr()
        matrix = matrix @ _diagonal(np.append(self.size, self.size[:n]))
        largest = abs(matrix).max(axis=1).toarray().reshape(-1)
        if not np.isfinite(largest).all():
            return None
        rows = np.flatnonzero(largest)
        columns = abs(matrix).max(axis=0).toarray().reshape(-1) > 0.0
        columns[: len(free)] &= free           # unknowns that occur nowhere stay as they are
        columns = np.flatnonzero(columns)
        solve = _solver((_diagonal(1.0 / nonzero(largest)) @ matrix)[rows][:, columns])
        if solve is None:
            return None
        step = np.zeros(len(free) + n)
        step[columns] = solve(-left[rows] / largest[rows])
        return step * np.append(self.size, self.size[:n])

    def _holds(self, before: np.ndarray, x: np.ndarray, p: np.ndarray) -> bool:
        """Whether all equations of the law hold up to round-off."""
        n = len(p)
        E, A = self.mean(before[:n], x[:n])
        g, g_x = self.constraints(x), self.slopes(x)
        w = x[:n] - before[:n]
        left = np.concatenate([E @ w + A @ p, E @ p, g])
        impulse = self.size[:n] * np.max(np.abs(p) / self.size[:n], initial=0.0)
        noise = NOISE * (abs(E) @ self.size[:n] + abs(A) @ impulse)
        allowed = np.concatenate([
            noise + LEFT_OVER * (abs(E) @ np.abs(w) + abs(A) @ np.abs(p)),
            LEFT_OVER * (abs(E) @ impulse),
            LEFT_OVER * (abs(g_x) @ (np.abs(x) + self.size)),
        ])
        return bool(np.all(np.abs(left) <= allowed))


def impulses_of(p: np.ndarray, unit: np.ndarray) -> dict[int, float]:
    """List the impulses that are more than round-off."""
    size = np.abs(p)
    large = size > NO_IMPULSE * np.maximum(size, unit * np.max(size / unit, initial=0.0))
    return {int(j): float(p[j]) for j in np.flatnonzero(large)}


def _diagonal(values: np.ndarray) -> Any:
    from scipy.sparse import diags_array

    return diags_array(values).tocsr()


def _solver(matrix: Any) -> Solver | None:
    """Return a function that solves equations, some redundant; None if too few are independent.

    The residual r of least squares and the solution x satisfy [I M; M^T 0] [r; x] = [b; 0].
    """
    from scipy.sparse import block_array, eye_array
    from scipy.sparse.linalg import splu

    m, n = matrix.shape
    if m < n:
        return None
    square = m == n
    whole = matrix if square else block_array([[eye_array(m), matrix], [matrix.T, None]])
    try:
        factors = splu(whole.tocsc())
    except RuntimeError:  # exactly singular
        return None
    pivots = np.abs(factors.U.diagonal())
    if not pivots.min() > OPEN * pivots.max():
        return None
    if square:
        return factors.solve
    return lambda right: factors.solve(np.append(right, np.zeros(n)))[m:]
