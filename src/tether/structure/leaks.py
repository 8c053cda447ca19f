"""Leaks: small terms that determine what equations leave open as far as the tolerances go.

Between two junctions that block, a voltage has no say in any equation: the currents that it changes
are far below the tolerance of all currents, and below round-off. Simulators of circuits put a tiny
conductance beside every junction. Here an equation without y' gets a term c y_j with an unknown
that it hardly depends on, and c is so small that the equation still holds up to a thousandth of
what the tolerances of its unknowns allow. What the equations do determine does not feel it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tether.trace import Trace

__all__ = ["Leak", "find_leaks", "with_leaks"]

# Equation, unknown and coefficient.
Leak = tuple[int, int, float]

# Of what the tolerances allow an equation to be off by: the term that is added to it.
SHARE = 1e-3
# Of the tolerance: an unknown that such terms move by more is left open by the equations.
LEFT_OPEN = 1.0
# Of the coefficient: a dependence that is larger than this needs no leak.
WEAK = 10.0
# In units of the tolerance: how far unknowns are moved to see what equations say about it.
LENGTHS = 10.0 ** np.arange(10)
# Of the largest in an equation: what an unknown weighs that weighs much.
HEAVY = 1e-3
# Times the tolerance: unknowns count as at least that large.
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
    """Look for leaks that determine what the equations leave open; none where that is nothing.

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
    allowed = SHARE * np.max((np.abs(fy) * tolerance)[:, columns], axis=1)
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
    """Whether the equations leave the same way on both sides of a point: a fold ends there.

    Where they leave something open they rise on one side, if anywhere, and fall on the other.
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
        for length in LENGTHS:
            there = residual(y + sign * length * way)
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
        if part[i, k] * abs(y[columns[k]]) <= most[i]:         # else it has a say as it is
            # the other sign would cancel what dependence there is; a zero has one, too
            found.append((rows[i], columns[k], float(np.copysign(size, signed[i, k]))))
    return tuple(found)


def _sizes(fy: np.ndarray, y: np.ndarray, tolerance: np.ndarray) -> np.ndarray:
    """How large unknowns are, or may become beside others in equations that they weigh much in."""
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
