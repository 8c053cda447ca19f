"""Equations solved with as little change as possible."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

__all__ = [
    "Failure", "jet_scale", "least_change", "movable", "shortest_solution", "units_of",
]

MAX_ITERATIONS = 100
MAX_HALVINGS = 30
# Singular values of the scaled Jacobian below this, of the largest, are zero.
RANK = 1e-11
# A singular value below this, of the one before it, may be meant to be zero.
GAP = 1e-2
WELL_CONDITIONED = 1e8
# No other step is tried when one makes the equations smaller by this factor.
GOOD_STEP = 0.25
# What may be left of an equation, of the sum of its linearised terms.
LEFT_OVER = 1e-9
ROUND_OFF = 2.0**-52
# A value below this, of the largest, is meant to be zero, as cos(pi/2) is: no unit follows from it.
AS_GOOD_AS_ZERO = 1e-13
# Derivatives may change by that much more than values.
FREEDOM = 1e3


@dataclass(frozen=True)
class Failure:
    """The equation that is worst satisfied, and what is left of it."""

    row: int
    value: float


def least_change(
    values: Callable[[np.ndarray], np.ndarray],
    slopes: Callable[[np.ndarray], np.ndarray],
    x: np.ndarray,
    scale: np.ndarray,
    determined: bool,
    free: np.ndarray | None = None,
) -> tuple[np.ndarray, Failure | None]:
    """Solve equations near given values by damped Gauss-Newton steps.

    Parameters
    ----------
    values, slopes : callable
        The equations and their Jacobian as functions of the unknowns.
    x : ndarray
        Where to begin.
    scale : ndarray
        Units in which a change of each unknown is measured.
    determined : bool
        There are as many equations as unknowns, normally independent.
    free : ndarray of bool, optional
        Unknowns that may be changed; all by default.

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
    scale = scale if free is None else np.where(free, scale, 0.0)
    terms = np.zeros_like(r)
    for _ in range(MAX_ITERATIONS):
        if not np.isfinite(r).all():
            return x, Failure(int(np.argmin(np.isfinite(r))), float("nan"))
        A = slopes(x)
        if not np.isfinite(A).all():
            break
        terms = np.abs(A) @ (np.abs(x) + scale)
        if np.all(np.abs(r) <= 2 * ROUND_OFF * terms):
            return x, None
        new = None
        for step in _steps(A * scale, -r, determined):
            candidate = _damped(values, x, r, step * scale, terms)
            if candidate is not None and (new is None or candidate.ratio < new.ratio):
                new = candidate
                if new.ratio < GOOD_STEP:
                    break
        if new is None:
            break
        x, r = new.x, new.r
    left = np.abs(r) - LEFT_OVER * terms
    worst = int(np.argmax(left))
    return x, Failure(worst, float(r[worst])) if left[worst] > 0 else None


def movable(enters: Sequence[int], more: int) -> Iterator[np.ndarray]:
    """Give sets of unknowns that may be changed, each larger than the one before.

    Derivatives may always be changed, and at first nothing else. Variables that are constrained
    only after many differentiations come next: multipliers, then velocities, then positions.

    Parameters
    ----------
    enters : sequence of int
        Of every variable, the number of differentiations after which it is constrained.
    more : int
        Number of derivatives that follow the variables.
    """
    numbers = np.array(enters, int)
    for least in (max(enters) + 1, *sorted(set(enters), reverse=True)):
        yield np.append(numbers >= least, np.ones(more, bool))


def units_of(y: np.ndarray) -> np.ndarray:
    """Choose units to measure changes in: all alike, unless a value is far smaller."""
    size = np.abs(y)
    largest = size.max(initial=0.0) or 1.0
    return np.where(size > AS_GOOD_AS_ZERO * largest, np.minimum(100.0 * size, largest), largest)


def jet_scale(x: np.ndarray, unit: np.ndarray, owner: Sequence[int]) -> np.ndarray:
    """Units to measure changes of variables and of derivatives in.

    Parameters
    ----------
    x : ndarray
        Values of the variables and of the derivatives that follow.
    unit : ndarray
        Units of the variables.
    owner : sequence of int
        Variables that the derivatives belong to.
    """
    higher = np.maximum(unit[list(owner)], np.abs(x[len(unit) :]))
    return np.append(unit, FREEDOM * higher)


def shortest_solution(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Solve A x = b, square, by the shortest x if A is singular."""
    *_, x = _steps(A, b, determined=True)
    return x


def _steps(A: np.ndarray, b: np.ndarray, determined: bool) -> Iterator[np.ndarray]:
    """Shortest solutions of A x = b with rows of any units.

    Where the singular values have a gap, those below it are taken for zero first: where
    constraints repeat each other on their solutions only, Newton's method itself converges slowly
    and goes far.
    """
    length = np.abs(A).max(axis=1, initial=0.0)
    length[length == 0.0] = 1.0
    A, b = A / length[:, None], b / length
    if determined and _well_conditioned(A):
        yield np.linalg.solve(A, b)
        return
    u, s, vt = np.linalg.svd(A, full_matrices=False)
    if not len(s) or s[0] == 0.0:
        yield np.zeros(A.shape[1])
        return
    along = u.T @ b
    full = int(np.sum(s > RANK * s[0]))
    gaps = s[1:full] / s[: full - 1]
    ranks = [int(np.argmin(gaps)) + 1] if len(gaps) and gaps.min() < GAP else []
    for rank in (*ranks, full):
        yield vt[:rank].T @ (along[:rank] / s[:rank])


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
    terms: np.ndarray,
) -> _Point | None:
    """Take the longest of 1, 1/2, 1/4, ... of a step that makes the equations smaller."""
    weight = 1.0 / np.where(terms > 0.0, terms, 1.0)
    size = float(np.linalg.norm(weight * r))
    for halvings in range(MAX_HALVINGS):
        new = x + 0.5**halvings * step
        new_r = values(new)
        with np.errstate(over="ignore", invalid="ignore"):
            new_size = float(np.linalg.norm(weight * new_r))
        if new_size < size:
            return _Point(new, new_r, new_size / size)
        if size < LEFT_OVER:  # round-off decides from here on
            break
    return None
