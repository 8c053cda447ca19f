"""Equations solved with as little change as possible.

The size of a change is measured by a metric, one scale for every unknown, which does not depend
on the values. Another metric, such as a mass matrix for velocities, would replace it here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tether.structure.scaling import Units, balanced, balanced_sparse, evened, independent, nonzero

__all__ = ["Failure", "jet_scale", "least_change", "movable", "shortest", "shortest_solution"]

MAX_ITERATIONS = 100
MAX_HALVINGS = 30
# Singular values of the scaled Jacobian below this share of the largest are zero.
RANK = 1e-11
# A singular value below this share of the next larger one may stand for zero.
GAP = 1e-2
WELL_CONDITIONED = 1e8
# No other step is tried when one makes the equations smaller by this factor.
GOOD_STEP = 0.25
# An equation holds if its value is below this share of the sum of its linearised terms.
LEFT_OVER = 1e-9
ROUND_OFF = 2.0**-52
# In the sum of the terms of an equation, an unknown counts with at least this share of its scale.
LEAST_SHARE = 1e-9
# An equation also holds if its value is below this many times its possible rounding errors.
ROUNDED = 8.0
# Larger entries are refused: products and sums of them could overflow.
LARGEST_ENTRY = 1e150
# A change of a derivative costs this much less than one of a value.
DERIVATIVE_FREEDOM = 1e3


@dataclass(frozen=True)
class Failure:
    """The equation that is worst satisfied, and its value."""

    row: int
    value: float


def least_change(
    values: Callable[[np.ndarray], np.ndarray],
    slopes: Callable[[np.ndarray], Any],
    x: np.ndarray,
    scale: np.ndarray,
    determined: bool,
    free: np.ndarray | None = None,
    rounding: Callable[[np.ndarray], np.ndarray] | None = None,
    directions: np.ndarray | None = None,
) -> tuple[np.ndarray, Failure | None]:
    """Solve equations near given values by damped Gauss-Newton steps.

    Parameters
    ----------
    values, slopes : callable
        The equations and their Jacobian as functions of the unknowns. The Jacobian may be a sparse
        matrix of SciPy's, which is made full only if it is `determined` and ill-conditioned.
    x : ndarray
        The given values.
    scale : ndarray
        Units in which a change of each unknown is measured.
    determined : bool
        There are as many equations as unknowns, normally independent.
    free : ndarray of bool, optional
        Unknowns that may be changed; all by default.
    rounding : callable, optional
        Rounding errors of the equations, as a function of the unknowns. It is called where an
        equation cannot be made smaller although its linearised terms say that it could.
    directions : ndarray, optional
        Vectors, one in each column, of which the change is to be a combination. They all cost the
        same; `scale` then only tells which values are small.

    Returns
    -------
    x : ndarray
        The solution, or the best that was found.
    failure : Failure or None
        None if the equations hold.

    Examples
    --------
    >>> import numpy as np
    >>> from tether.structure.least_change import least_change
    >>> x, failure = least_change(
    ...     lambda x: np.array([x @ x - 1]), lambda x: 2 * x[None], np.array([0.66, 0.88]),
    ...     np.ones(2), determined=False)
    >>> x.round(12), failure
    (array([0.6, 0.8]), None)
    """
    r = values(x)
    if not r.any():
        return x, None
    metric = scale if free is None else np.where(free, scale, 0.0)
    terms = np.zeros_like(r)
    for _ in range(MAX_ITERATIONS):
        if not np.isfinite(r).all():
            return x, Failure(int(np.argmin(np.isfinite(r))), float("nan"))
        A = slopes(x)
        sizes = abs(A)
        if not (sizes.data if hasattr(A, "tocsc") else sizes).max(initial=0.0) <= LARGEST_ENTRY:
            break
        terms = sizes @ (np.abs(x) + LEAST_SHARE * scale)
        if np.all(np.abs(r) <= 2 * ROUND_OFF * terms):
            return x, None
        new, close = None, bool(np.all(np.abs(r) <= LEFT_OVER * terms))
        weight = 1.0 / nonzero(sizes @ (np.abs(x) + scale))
        for step in _steps_along(A, -r, metric, determined, directions):
            candidate = _damped(values, x, r, step, weight, close)
            if candidate is not None and (new is None or candidate.ratio < new.ratio):
                new = candidate
                if new.ratio < GOOD_STEP:
                    break
        if new is None:
            break
        x, r = new.x, new.r
    allowed = LEFT_OVER * terms
    if rounding is not None and np.any(np.abs(r) > allowed):
        allowed = np.maximum(allowed, ROUNDED * rounding(x))
    left = np.where(np.abs(r) > allowed, np.abs(r) / nonzero(terms), 0.0)
    worst = int(np.argmax(left))
    return x, Failure(worst, float(r[worst])) if left[worst] > 0 else None


def movable(enters: Sequence[int], more: int) -> Iterator[np.ndarray]:
    """Yield sets of unknowns that may be changed, each larger than the one before.

    Derivatives may always be changed, and at first nothing else. Variables that are constrained
    only after many differentiations come next: multipliers, then velocities, then positions.

    Parameters
    ----------
    enters : sequence of int
        For every variable, the number of differentiations after which it is constrained.
    more : int
        Number of derivatives that follow the variables.
    """
    numbers = np.array(enters, int)
    for least in (max(enters) + 1, *sorted(set(enters), reverse=True)):
        yield np.append(numbers >= least, np.ones(more, bool))


def jet_scale(
    x: np.ndarray, units: Units, derivatives: Sequence[tuple[int, int]]
) -> np.ndarray:
    """Units in which changes of variables and of derivatives are measured.

    Parameters
    ----------
    x : ndarray
        Values of the variables and of the derivatives that follow.
    units : Units
        Units of the variables and of time.
    derivatives : sequence of (int, int)
        Variable and order of the derivatives that follow the variables.
    """
    higher = np.array([units.y[j] / units.t**k for j, k in derivatives])
    return np.append(units.y, DERIVATIVE_FREEDOM * np.maximum(higher, np.abs(x[len(units.y) :])))


def shortest_solution(A: Any, b: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Solve A x = b, square, by the x that is shortest in units of `scale` if A is singular."""
    *_, x = _steps(A, b, scale, determined=True)
    return x


def _steps_along(
    A: Any, b: np.ndarray, scale: np.ndarray, determined: bool,
    directions: np.ndarray | None,
) -> Iterator[np.ndarray]:
    """Solutions of A x = b as in `_steps`, or those that are combinations of directions."""
    if directions is None:
        yield from _steps(A, b, scale, determined)
        return
    for step in _steps(A @ directions, b, np.ones(directions.shape[1]), determined):
        yield directions @ step


def _steps(
    A: Any, b: np.ndarray, scale: np.ndarray, determined: bool
) -> Iterator[np.ndarray]:
    """Solutions of A x = b that are shortest in units of `scale`; where that is 0, x is too.

    Which rows are independent must not depend on the scale, so it is decided with rows and columns
    balanced. If the singular values have a gap, the step without those below the gap comes first:
    where constraints repeat each other only on their solutions, Newton's method itself converges
    slowly and takes long steps.
    """
    x, free = np.zeros(A.shape[1]), np.flatnonzero(scale)
    A, scale = A[:, free], scale[free]
    if hasattr(A, "tocsc"):
        if determined and (found := _sparse_solution(A, b)) is not None:
            x[free] = found
            yield x
            return
        if not determined:
            for found in _steps_of_parts(A.tocsr(), b, scale):
                x[free] = found
                yield x.copy()
            return
        A = A.toarray()
    for balance in (balanced, evened) if determined else ():
        row, column = balance(A)
        if _well_conditioned(row[:, None] * A * column):
            x[free] = column * np.linalg.solve(row[:, None] * A * column, row * b)
            yield x
            return
    _, column = balanced(A)
    if (short := _above_gap(A * scale, b)) is not None:
        x[free] = scale * short
        yield x.copy()
    rows = independent(A, column, RANK)
    x[free] = shortest(rows @ A, rows @ b, scale)
    yield x


def _steps_of_parts(A: Any, b: np.ndarray, scale: np.ndarray) -> Iterator[np.ndarray]:
    """As `_steps`, separately for each group of equations that share no unknown with others."""
    from scipy.sparse import block_array  # late, to save time
    from scipy.sparse.csgraph import connected_components

    m = len(b)
    A.eliminate_zeros()
    count, group = connected_components(block_array([[None, A], [A.T, None]]), directed=False)
    rows, columns = (np.argsort(part, kind="stable") for part in (group[:m], group[m:]))
    row_ends = np.cumsum(np.bincount(group[:m], minlength=count))
    column_ends = np.cumsum(np.bincount(group[m:], minlength=count))
    steps = np.zeros((2, A.shape[1]))
    several = False
    for i, j in zip(np.split(rows, row_ends[:-1]), np.split(columns, column_ends[:-1]),
                    strict=True):
        if len(i) and len(j):
            part = list(_steps(A[i][:, j].toarray(), b[i], scale[j], False))
            steps[:, j] = part[0], part[-1]
            several = several or len(part) > 1
    if several:
        yield steps[0]
    yield steps[1]


def _sparse_solution(A: Any, b: np.ndarray) -> np.ndarray | None:
    """Solve A x = b with sparse factors; None if A is not square or not well-conditioned."""
    from scipy.sparse import csc_array, diags_array  # late, to save time
    from scipy.sparse.linalg import LinearOperator, onenormest, splu

    n = len(b)
    if A.shape != (n, n):
        return None
    row, column = balanced_sparse(A)
    matrix = csc_array(diags_array(row) @ A @ diags_array(column))
    try:
        factors = splu(matrix)
    except RuntimeError:                       # exactly singular
        return None
    inverse = LinearOperator(
        (n, n), matvec=factors.solve, rmatvec=lambda x: factors.solve(x, "T"), dtype=float
    )
    with np.errstate(all="ignore"):
        condition = abs(matrix).sum(axis=0).max() * onenormest(inverse)
    if not condition < WELL_CONDITIONED:
        return None
    return np.asarray(column * factors.solve(row * b))


def _above_gap(A: np.ndarray, b: np.ndarray) -> np.ndarray | None:
    """Shortest solution with the singular values above the largest gap; None without a gap."""
    length = nonzero(np.abs(A).max(axis=1, initial=0.0))
    u, s, vt = np.linalg.svd(A / length[:, None], full_matrices=False)
    s = s[s > RANK * s[0]] if len(s) else s
    gaps = s[1:] / s[:-1]
    if not len(gaps) or gaps.min() >= GAP:
        return None
    rank = int(np.argmin(gaps)) + 1
    return vt[:rank].T @ (u[:, :rank].T @ (b / length) / s[:rank])


def shortest(A: np.ndarray, b: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Solve A x = b, with independent rows, by the x that is shortest in units of `scale`.

    The largest entries come first: then orthogonal factors are accurate whatever the scales are.
    """
    if not len(A):
        return np.zeros_like(scale)
    length = nonzero(np.abs(A * scale).max(axis=1, keepdims=True))
    scaled = (A * scale / length).T
    order = np.argsort(-np.abs(scaled).max(axis=1))
    q, r = np.linalg.qr(scaled[order])
    x = np.empty_like(scale)
    try:
        x[order] = q @ np.linalg.solve(r.T, b / length[:, 0])
    except np.linalg.LinAlgError:              # rows that depend on each other after all
        x[order] = q @ np.linalg.lstsq(r.T, b / length[:, 0], rcond=None)[0]
    return scale * x


def _well_conditioned(A: np.ndarray) -> bool:
    try:
        inverse = np.linalg.inv(A)
    except np.linalg.LinAlgError:
        return False
    return bool(np.linalg.norm(A, 1) * np.linalg.norm(inverse, 1) < WELL_CONDITIONED)


@dataclass(frozen=True, eq=False)
class _Point:
    x: np.ndarray
    r: np.ndarray
    ratio: float  # of the residuals after and before


def _damped(
    values: Callable[[np.ndarray], np.ndarray],
    x: np.ndarray,
    r: np.ndarray,
    step: np.ndarray,
    weight: np.ndarray,
    close: bool,
) -> _Point | None:
    """Take the longest of 1, 1/2, 1/4, ... of a step that makes the equations smaller."""
    size = float(np.linalg.norm(weight * r))
    for halvings in range(MAX_HALVINGS):
        new = x + 0.5**halvings * step
        new_r = values(new)
        with np.errstate(over="ignore", invalid="ignore"):
            new_size = float(np.linalg.norm(weight * new_r))
        if new_size < size:
            return _Point(new, new_r, new_size / size)
        if close:  # round-off decides from here on
            break
    return None
