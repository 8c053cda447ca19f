"""Find out from values of a function that is called which unknowns occur in which equations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tether.base.pattern import Pattern
from tether.problem.problem import Problem
from tether.problem.sparsity import Sparsity, sparsity_of

__all__ = ["ASIDE", "find_entries", "find_pattern", "groups_of", "see_sparsity"]

# How often the unknowns are divided into parts at random: after so many divisions, only few wrong
# entries remain possible.
DIVISIONS = 3
# In equations with more unknowns than this, possible entries are not checked.
LONG_ROW = 200
# If moving a part of the unknowns changes more than this share of the values, the pattern is
# nearly full and there is nothing to gain.
FULL_SHARE = 0.5
# Relative size of a move, and of the distance from the given point, where derivatives may vanish
# by coincidence, to the nearby point from which moves are made.
MOVE, ASIDE = 1e-5, 1e-3

Function = Callable[[np.ndarray], np.ndarray | None]


def see_sparsity(
    problem: Problem, t: float, y: np.ndarray, yp: np.ndarray | None
) -> tuple[Sparsity | None, int]:
    """Find the patterns of F_y and F_y', and count the calls of the function that it took.

    None if they cannot be found. A Jacobian of the user's shows them if it is sparse.
    """
    slopes = np.zeros_like(y) if yp is None else yp
    if problem.jac is not None:
        return _of_jacobian(problem, t, y, slopes), 0
    if problem.capsule is not None:
        return None, 0
    calls = [0]

    def values(y: np.ndarray, yp: np.ndarray) -> np.ndarray | None:
        calls[0] += 1
        return _residual(problem, t, y, yp)

    size = np.maximum(np.abs(y), np.abs(y).max(initial=0.0) * ASIDE) + ASIDE
    fy = find_pattern(lambda x: values(x, slopes), y, size)
    if fy is None:
        return None, calls[0]
    if hasattr(problem.fyp, "tocoo"):
        fyp: Pattern | None = Pattern(len(y), problem.fyp.tocoo().coords)
    else:
        fyp = find_pattern(lambda x: values(y, x), slopes, 1.0 + np.abs(slopes))
    return None if fyp is None else Sparsity(fy, fyp, by_user=False), calls[0]


def _residual(problem: Problem, t: float, y: np.ndarray, yp: np.ndarray) -> np.ndarray | None:
    """Values at a point; None if they cannot be computed, which the run itself will report."""
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
        of_y, of_yp = (matrix.tocoo().coords for matrix in found)
    except Exception:                  # it is dense, or raises, which the run itself will report
        return None
    return sparsity_of(len(y), of_y, of_yp, by_user=False)


def find_pattern(values: Function, x: np.ndarray, size: np.ndarray) -> Pattern | None:
    """Find the pattern of the derivative of a function with as many values as unknowns."""
    found = find_entries(values, x, size, len(x), FULL_SHARE)
    return None if found is None else Pattern(len(x), found)


def find_entries(
    values: Function, x: np.ndarray, size: np.ndarray, count: int, most: float = 1.0
) -> tuple[np.ndarray, np.ndarray] | None:
    """Find which entries of the derivative of a function are not zero near a point.

    Parts of the unknowns are moved together: an unknown can only occur in an equation that
    changed every time it was moved. The entries left as possible are then checked by moving groups
    of unknowns that share no equation.

    Parameters
    ----------
    values : callable
        Values at a point; None where they are not finite.
    x, size : ndarray
        The point, and the sizes of its components.
    count : int
        Number of values.
    most : float
        Share of the values that may change with a group.

    Returns
    -------
    pair of ndarray, or None
        Rows and columns, column by column; None if they cannot be found, or if most entries are
        nonzero.
    """
    n = len(x)
    draw = np.random.default_rng(n)
    near = x + ASIDE * size * draw.uniform(0.5, 1.0, n)
    before = values(near)
    if before is None:
        near = x.copy()
        before = values(near)
    if before is None or len(before) != count:
        return None

    def changed(part_of: np.ndarray, parts: int) -> np.ndarray | None:
        """Tell which values change when a part of the unknowns is moved."""
        found = np.zeros((parts, count), bool)
        for part in range(parts):
            mine = part_of == part
            moved = np.where(mine, near + MOVE * size * draw.uniform(0.5, 1.0, n), near)
            after = values(moved)
            if after is None:
                return None
            found[part] = after != before
        return found

    parts = int(np.sqrt(n)) + 1
    divisions = [draw.permutation(n) % parts for _ in range(DIVISIONS)]
    seen = []
    for division in divisions:
        found = changed(division, parts)
        if found is None or found.mean() > FULL_SHARE:
            return None
        seen.append(found)
    rows, columns = _in_both(divisions[0], seen[0], divisions[1], seen[1])
    for division, found in zip(divisions[2:], seen[2:], strict=True):
        keep = found[division[columns], rows]
        rows, columns = rows[keep], columns[keep]
    long = np.bincount(rows, minlength=count)[rows] > LONG_ROW
    groups, group_of = groups_of(rows[~long], columns[~long], count, n)
    found = changed(group_of, groups)
    if found is None or found.mean() > most:
        return None
    keep = long | found[group_of[columns], rows]
    rows, columns = rows[keep], columns[keep]
    in_order = np.lexsort((rows, columns))
    return rows[in_order], columns[in_order]


def groups_of(
    rows: np.ndarray, columns: np.ndarray, count: int, n: int
) -> tuple[int, np.ndarray]:
    """Put n columns into groups that share no row, each into the first group that it fits."""
    order = np.argsort(columns, kind="stable")
    start, row = np.searchsorted(columns[order], np.arange(n + 1)), rows[order]
    group_of = np.full(n, -1)
    left, group = np.arange(n), 0
    while len(left):
        taken = np.zeros(count, bool)
        for j in left:
            mine = row[start[j] : start[j + 1]]
            if not taken[mine].any():
                taken[mine] = True
                group_of[j] = group
        left, group = left[group_of[left] < 0], group + 1
    return group, group_of


def _in_both(
    part_of: np.ndarray, changed: np.ndarray, other_part_of: np.ndarray, other: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Entries that two divisions leave possible; part by part, since one alone leaves many."""
    rows, columns = [], []
    for part in range(len(changed)):
        mine, seen = np.flatnonzero(part_of == part), np.flatnonzero(changed[part])
        both = other[np.ix_(other_part_of[mine], seen)]
        column, row = np.nonzero(both)
        rows.append(seen[row])
        columns.append(mine[column])
    return np.concatenate(rows), np.concatenate(columns)
