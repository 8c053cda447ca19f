"""Leaks: small terms that determine what equations leave open as far as the tolerances go.

The voltage between two junctions that block has no effect in any equation: the currents that it
changes are far below the tolerance of all currents, and below round-off. Circuit simulators put a
tiny conductance beside every junction. Here an equation without y' gets a term c y_j with an
unknown that it hardly depends on. c is so small that the equation still holds up to a thousandth
of what the tolerances of its unknowns allow, so unknowns that are determined do not change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tether.trace import Trace

__all__ = ["Leak", "find_leaks", "with_leaks"]

# Equation, unknown and coefficient.
Leak = tuple[int, int, float]

# Size of a leak, as a share of the error that the tolerances allow in its equation.
LEAK_SHARE = 1e-3
# An unknown that such terms move by more than this many tolerances is left open by the equations.
LEFT_OPEN = 1.0
# A dependence more than this many times as strong as the leak would be needs no leak.
WEAK = 10.0
# How far unknowns are moved, in tolerances, to see how the equations answer.
DISTANCES = 10.0 ** np.arange(10)
# An unknown with this share of the largest weight in an equation has much weight in it.
HEAVY = 1e-3
# Smallest size of an unknown, in tolerances.
LEAST_SIZE = 1e3


def with_leaks(traced: Trace, leaks: Sequence[Leak]) -> Trace:
    """Return the same equations with leaks.

    Examples
    --------
    >>> import numpy as np
    >>> from tether.structure.leaks import with_leaks
    >>> from tether.trace import trace
    >>> from tether.trace.backend import prepare
    >>> found = with_leaks(trace(lambda t, y, yp: [y[0] - y[1], yp[1]], 2), [(0, 1, 0.25)])
    >>> prepare(found.program()).new().values(0.0, [1.0, 4.0], [0.0, 0.0]).tolist()
    [-2.0, 0.0]
    """
    graph, outputs = traced.graph, list(traced.outputs)
    for equation, unknown, size in leaks:
        term = graph.mul(graph.constant(size), graph.y(unknown))
        outputs[equation] = graph.add(outputs[equation], term)
    return traced.with_outputs(outputs)


def find_leaks(
    traced: Trace, fy: np.ndarray, fyp: np.ndarray, h: float, y: np.ndarray, tolerance: np.ndarray,
    residual: Callable[[np.ndarray], np.ndarray | None],
) -> tuple[Leak, ...]:
    """Look for leaks that determine what the equations leave open; empty if they leave nothing.

    Parameters
    ----------
    traced : Trace
        The equations as written.
    fy, fyp, h, y, tolerance
        Jacobians at a point where no step of size h succeeds, the unknowns and their tolerances.
    residual : callable
        Residual for other values of the unknowns, None where it is not finite.
    """
    matrix = fy + fyp / h
    if not np.all(np.isfinite(matrix)):
        return ()
    rows, columns = _algebraic(traced)
    if not columns or len(rows) != len(columns):
        return ()
    allowed = LEAK_SHARE * np.max((np.abs(fy) * tolerance)[:, columns], axis=1)
    if not np.any(_moved_by(allowed, matrix) > LEFT_OPEN * tolerance):
        return ()
    leaks = _weakest_pairs(traced, fy, y, tolerance, allowed)
    block = np.ix_(rows, columns)
    if not leaks or _turns_back(fy, block, allowed, y, tolerance, residual):
        return ()
    for equation, unknown, size in leaks:
        matrix[equation, unknown] += size
    return leaks if np.all(np.isfinite(_moved_by(allowed, matrix))) else ()


def _algebraic(traced: Trace) -> tuple[list[int], list[int]]:
    """Equations and unknowns without slopes."""
    used = set(traced.f_yp.rows), set(traced.f_yp.cols)
    rows, columns = ([k for k in range(traced.n) if k not in some] for some in used)
    return rows, columns


def _turns_back(
    fy: np.ndarray, block: tuple[np.ndarray, ...], allowed: np.ndarray, y: np.ndarray,
    tolerance: np.ndarray, residual: Callable[[np.ndarray], np.ndarray | None],
) -> bool:
    """Whether residuals change in the same direction on both sides of a point, as at a fold.

    Where equations leave something open, residuals rise on one side, if at all, and fall on the
    other.
    """
    rows, columns = (part.ravel() for part in block)
    sizes = np.where(allowed > 0.0, allowed, 1.0)[rows]
    left, _, right = np.linalg.svd(fy[block] * tolerance[columns] / sizes[:, None])
    weights, way = np.zeros_like(y), np.zeros_like(y)
    weights[rows], way[columns] = left[:, -1] / sizes, tolerance[columns] * right[-1]
    here = residual(y)
    if here is None:
        return True
    sides = []
    for sign in (1.0, -1.0):
        for distance in DISTANCES:
            there = residual(y + sign * distance * way)
            if there is None:
                break
            change = float(weights @ (there - here))
            if abs(change) > 1.0:
                sides.append(change)
                break
    return len(sides) == 2 and sides[0] * sides[1] > 0.0


def _weakest_pairs(
    traced: Trace, fy: np.ndarray, y: np.ndarray, tolerance: np.ndarray, allowed: np.ndarray
) -> tuple[Leak, ...]:
    """Pair equations with unknowns that they hardly depend on, among those without slopes."""
    from scipy.optimize import linear_sum_assignment  # late, to save time

    rows, columns = _algebraic(traced)
    stands = np.zeros((traced.n, traced.n), bool)
    stands[traced.f_y.rows, traced.f_y.cols] = True
    stands = stands[np.ix_(rows, columns)]
    signed, most = fy[np.ix_(rows, columns)], allowed[rows]
    part = np.abs(signed)
    with np.errstate(all="ignore"):
        strength = np.log(np.maximum(part * tolerance[columns] / most[:, None], 1e-300))
    strength[~np.isfinite(strength)] = 0.0
    cost = np.where(stands, strength, 1e6)
    pairs = zip(*linear_sum_assignment(cost), strict=True)
    sizes = _sizes(np.abs(fy), y, tolerance)
    found = []
    for i, k in pairs:
        size = most[i] / sizes[columns[k]]
        if not (stands[i, k] and size > 0.0 and part[i, k] < WEAK * size):
            continue
        if part[i, k] * abs(y[columns[k]]) <= most[i]:         # else it matters as it is
            # the other sign would cancel the dependence there is; zeros have a sign too
            found.append((rows[i], columns[k], float(np.copysign(size, signed[i, k]))))
    return tuple(found)


def _sizes(fy: np.ndarray, y: np.ndarray, tolerance: np.ndarray) -> np.ndarray:
    """Sizes of unknowns now, or when they balance other terms of equations they weigh much in."""
    weight = fy * tolerance
    heavy = weight >= HEAVY * np.max(weight, axis=1, keepdims=True)
    largest = np.max(fy * np.abs(y), axis=1, keepdims=True)
    beside = np.divide(largest, fy, out=np.zeros_like(fy), where=heavy & (fy > 0.0))
    return np.maximum(np.max(beside, axis=0), np.abs(y) + LEAST_SIZE * tolerance)


def _moved_by(change: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """How far a change of linear equations moves their solution at most."""
    try:
        with np.errstate(all="ignore"):
            moved = np.abs(np.linalg.inv(matrix)) @ change
    except np.linalg.LinAlgError:
        return np.full(len(change), np.inf)
    return np.where(np.isnan(moved), np.inf, moved)
