"""Redundant constraints: equations that repeat others along the solution.

They leave multipliers undetermined, but not the forces: the motion is determined. The shortest
multipliers at the start are taken, and made unique from there on (`Reduced.with_fixed_gauge`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tether.structure.equations import is_regular
from tether.structure.hidden import Reduced
from tether.structure.reduced_start import Search, reduced_start
from tether.structure.scaling import Units, balanced, nonzero

__all__ = ["Redundancy", "find_redundancy"]

# Singular values of the scaled matrix below this share of the largest are zero.
RANK = 1e-9
# Components of unit vectors below this do not take part.
PARTICIPATES = 1e-7
# Shift to a second consistent point, relative to the values; each value counts with at least this
# share of the largest one.
SHIFT = 1e-2
LEAST_SIZE = 0.3


@dataclass(frozen=True, eq=False)
class Redundancy:
    """Whether the leading matrix of the fully differentiated equations is regular, and if not, why.

    Attributes
    ----------
    kind : {"none", "redundant", "point", "open"}
        The matrix is regular; singular because differentiated equations repeat each other, while
        the motion is determined; singular at the start only; or singular in another way.
    equations, unknowns : tuple of int
        Rows and columns that take part in its null vectors.
    left, right : ndarray
        Null vectors, for `Reduced.with_fixed_gauge`.
    """

    kind: str
    equations: tuple[int, ...] = ()
    unknowns: tuple[int, ...] = ()
    left: np.ndarray | None = None
    right: np.ndarray | None = None


def find_redundancy(
    reduced: Reduced, t: float, y: np.ndarray, yp: np.ndarray, units: Units | None = None
) -> Redundancy:
    """Look for redundant equations at a consistent point and at another one near it.

    Parameters
    ----------
    reduced : Reduced
        The system, fully differentiated.
    t, y, yp : float, ndarray, ndarray
        A consistent point.
    units : Units, optional
        Units in which the length of multipliers is measured; all alike by default.
    """
    search = Search(reduced, t, units=units)
    K = search.leading_matrix(y, yp)
    if not np.isfinite(K).all():
        return Redundancy("open")
    if is_regular(K[None])[0]:
        return Redundancy("none")
    left, right = _null_vectors(K, search.scale(y))
    found = Redundancy("open", _support(left), _support(right), left, right)
    nearby = _nearby_point(reduced, t, y, search.units)
    if nearby is None:
        return found
    others = _null_vectors(search.leading_matrix(*nearby), search.scale(y))[0]
    if others.shape[1] < left.shape[1]:
        return Redundancy("point", found.equations, found.unknowns)
    c = reduced.source[1].c
    if any(reduced.stages[j] < 0 for j in found.unknowns) or any(
        i >= len(c) or c[i] == 0 for i in found.equations
    ):
        return found
    return Redundancy("redundant", found.equations, found.unknowns, left, right)


def _nearby_point(
    reduced: Reduced, t: float, y: np.ndarray, units: Units
) -> tuple[np.ndarray, np.ndarray] | None:
    """Find another consistent point nearby; None if the equations cannot be solved there."""
    rng = np.random.default_rng(3)
    user = y[: reduced.n_user]
    in_units = np.abs(user) / units.y
    kept = in_units[np.array(reduced.stages)[: len(user)] < 0]
    size = units.y * np.maximum(in_units, LEAST_SIZE * kept.max(initial=0.0))
    moved = user + SHIFT * size * rng.uniform(-1.0, 1.0, user.shape)
    start = reduced_start(reduced, t, moved, units=units)
    return (start.y, start.yp) if start.success else None


def _null_vectors(K: np.ndarray, scale: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Left and right null vectors of a matrix with rows of any units.

    The right ones are to be multiplied with vectors whose length is measured in units of `scale`;
    their number does not depend on it.
    """
    row, column = balanced(K)
    values = np.linalg.svd(row[:, None] * K * column, compute_uv=False)
    rank = int(np.sum(values > RANK * values[0])) if values[0] > 0 else 0
    length = nonzero(np.abs(K * scale).max(axis=1))[:, None]
    u, _, vt = np.linalg.svd(K * scale / length)
    left, right = u[:, rank:], vt[rank:].T
    left = np.where(np.abs(left) > PARTICIPATES, left, 0.0) * length
    return left, np.where(np.abs(right) > PARTICIPATES, right, 0.0) / scale[:, None]


def _support(vectors: np.ndarray) -> tuple[int, ...]:
    return tuple(np.flatnonzero(vectors.any(axis=1)).tolist())
