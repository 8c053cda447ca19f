"""Which unknowns stand in which equations of a function that is called, seen from its values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tether.base.pattern import Pattern
from tether.problem.problem import Problem
from tether.problem.sparsity import Sparsity

__all__ = ["find_pattern", "see_sparsity"]

# Ways to divide the unknowns into parts, by lot; there are no more once one has struck out nothing.
DIVISIONS = 10
# Relative size of a move, and of the step aside before it: where something is zero by chance,
# derivatives may be so as well.
MOVE, ASIDE = 1e-5, 1e-3

Function = Callable[[np.ndarray], np.ndarray | None]


def see_sparsity(
    problem: Problem, t: float, y: np.ndarray, yp: np.ndarray | None
) -> Sparsity | None:
    """See where the derivatives of a problem's functions stand; None where they do not tell.

    A Jacobian of the user's tells by itself if it is sparse.
    """
    slopes = np.zeros_like(y) if yp is None else yp
    if problem.jac is not None:
        return _of_jacobian(problem, t, y, slopes)
    if problem.capsule is not None:
        return None
    size = np.maximum(np.abs(y), np.abs(y).max(initial=0.0) * ASIDE) + ASIDE
    fy = find_pattern(lambda x: _residual(problem, t, x, slopes), y, size)
    if fy is None:
        return None
    if hasattr(problem.fyp, "tocoo"):
        fyp: Pattern | None = Pattern(len(y), problem.fyp.tocoo().coords)
    else:
        fyp = find_pattern(lambda x: _residual(problem, t, y, x), slopes, 1.0 + np.abs(slopes))
    return None if fyp is None else Sparsity(fy, fyp, by_user=False)


def _residual(problem: Problem, t: float, y: np.ndarray, yp: np.ndarray) -> np.ndarray | None:
    """Values at a point; None where there are none: the run will come to that by itself."""
    out = np.zeros(len(y))
    try:
        with np.errstate(all="ignore"):
            if problem.fills:
                problem.fun(t, y.copy(), yp.copy(), out, *problem.args)
            else:
                out = np.array(problem.fun(t, y.copy(), yp.copy(), *problem.args), float)
    except Exception:
        return None
    return out if out.shape == y.shape and np.isfinite(out).all() else None


def _of_jacobian(problem: Problem, t: float, y: np.ndarray, yp: np.ndarray) -> Sparsity | None:
    assert problem.jac is not None
    try:
        found: Any = problem.jac(t, y.copy(), yp.copy(), *problem.args)
        patterns = [Pattern(len(y), matrix.tocoo().coords) for matrix in found]
    except Exception:                  # it is dense, or has something to say that the run will hear
        return None
    return Sparsity(patterns[0], patterns[1], by_user=False) if len(patterns) == 2 else None


def find_pattern(values: Function, x: np.ndarray, size: np.ndarray) -> Pattern | None:
    """Find the pattern of the derivative of a function of n values and n unknowns near a point.

    Parts of the unknowns are moved together: an unknown can only stand in an equation that has
    changed whenever it was moved. What is left is a little more than the true pattern.

    Parameters
    ----------
    values : callable
        Values at a point; None where they are not finite.
    x, size : ndarray
        The point, and the sizes of its components.

    Returns
    -------
    Pattern or None
        None where it cannot be seen, or where it is full.
    """
    n = len(x)
    draw = np.random.default_rng(n)
    near = x + ASIDE * size * draw.uniform(0.5, 1.0, n)
    before = values(near)
    if before is None:
        near = x.copy()
        before = values(near)
    if before is None or len(before) != n:
        return None
    parts = int(np.sqrt(n)) + 1
    rows = columns = np.zeros(0, int)
    part_of_first = np.zeros(0, int)
    changed_first = np.zeros((0, 0), bool)
    for division in range(DIVISIONS):
        part_of = draw.permutation(n) % parts
        changed = np.zeros((parts, n), bool)
        for part in range(parts):
            moved = near.copy()
            mine = np.flatnonzero(part_of == part)
            moved[mine] += MOVE * size[mine] * draw.uniform(0.5, 1.0, len(mine))
            after = values(moved)
            if after is None:
                return None
            changed[part] = after != before
        if changed.mean() > 0.5:
            return None
        if division == 0:
            part_of_first, changed_first = part_of, changed
        elif division == 1:
            rows, columns = _in_both(part_of_first, changed_first, part_of, changed)
        else:
            keep = changed[part_of[columns], rows]
            rows, columns = rows[keep], columns[keep]
            if keep.all():
                break
    return Pattern(n, (rows, columns))


def _in_both(
    part_of: np.ndarray, changed: np.ndarray, other_part_of: np.ndarray, other: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns that two divisions leave, part by part: there are many in one of them."""
    rows, columns = [], []
    for part in range(len(changed)):
        mine, seen = np.flatnonzero(part_of == part), np.flatnonzero(changed[part])
        both = other[np.ix_(other_part_of[mine], seen)]
        column, row = np.nonzero(both)
        rows.append(seen[row])
        columns.append(mine[column])
    return np.concatenate(rows), np.concatenate(columns)
