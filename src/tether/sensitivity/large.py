"""Sweeps of systems with many unknowns, by sparse matrices; `replay` serves for few unknowns."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csc_array, csr_array
from scipy.sparse.linalg import splu

from tether.sensitivity.slopes import Slopes

__all__ = ["LargeStart", "backwards", "forwards"]


class _Steps:
    """The matrices of some steps."""

    def __init__(self, slopes: Slopes) -> None:
        self.slopes = slopes
        n, m = slopes.n, slopes.m
        ends = np.cumsum([0, *(len(part) for part in slopes.places)])
        self._parts = [slice(a, b) for a, b in pairwise(ends)]
        self._rows = [divmod(part, width) for part, width in zip(
            slopes.places, (n, n, n, n, max(m, 1)), strict=True
        )]
        self._shapes = (n, n), (n, n), (slopes.n_parameters, n), (m, n), (slopes.n_parameters, m)

    def matrix(self, which: int, step: int) -> csr_array:
        """Return F_y, F_y', F_p, G_y or G_p of a step."""
        values = self.slopes.values[step, self._parts[which]]
        return csr_array(coo_array((values, self._rows[which]), self._shapes[which]))

    def at(self, step: int, c: float) -> _Step:
        """Return the matrices of a step, and the factors of F_y + c F_y'."""
        fy, fyp, fp, gy, gp = (self.matrix(which, step) for which in range(5))
        factors = splu(csc_array(fy + c * fyp))
        scale = self.slopes.scale[step] if self.slopes.m else None
        return _Step(factors, fy, fyp, fp, gy, gp, scale)


@dataclass(frozen=True, eq=False)
class _Step:
    factors: Any
    fy: csr_array
    fyp: csr_array
    fp: csr_array
    gy: csr_array
    gp: csr_array
    scale: np.ndarray | None

    @cached_property
    def _rows(self) -> csr_array:
        return csr_array(self.gy.multiply(self.scale))

    @cached_property
    def _products(self) -> np.ndarray:
        return (self._rows @ self._rows.T).toarray()

    def _solve(self, right: np.ndarray) -> np.ndarray:
        return np.linalg.lstsq(self._products, right, rcond=1e-14)[0]

    def project(self, s: np.ndarray) -> np.ndarray:
        """Project tangents, one column per parameter."""
        if self.scale is None:
            return s
        left = self.gy @ s + self.gp.toarray().T
        return s - self.scale[:, None] * (self._rows.T @ self._solve(left))

    def project_back(self, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Apply the transposed projection; return also the adjoints of the constraints."""
        if self.scale is None:
            return b, np.zeros((0, b.shape[1]))
        pull = self._solve(self._rows @ (self.scale[:, None] * b))
        return b - self.gy.T @ pull, pull


def _coefficients(c: np.ndarray) -> Iterator[tuple[int, float]]:
    return ((k, float(x)) for k, x in enumerate(c) if k and x != 0.0)


def forwards(
    slopes: Slopes, c: np.ndarray, s: np.ndarray, first: int, predictor: np.ndarray,
    changes: np.ndarray,
) -> None:
    """Do what `replay.forwards` does; `s[k]` has one row per unknown, one column per parameter."""
    steps = _Steps(slopes)
    for step in range(len(slopes.values)):
        row, here = first + step, steps.at(step, c[step, 0])
        past = sum(x * s[row - k] for k, x in _coefficients(c[step]))
        # as in the core, the change of the tangents is what is solved for
        c0, old = c[step, 0], s[row - 1]
        right = here.fp.toarray().T + here.fyp @ (past + c0 * old) + here.fy @ old
        s[row] = here.project(old - here.factors.solve(right))
        if len(changes):
            before = sum(x * s[row - k] for k, x in _coefficients(predictor[step]))
            changes[step] = s[row] - before


def backwards(
    slopes: Slopes, c: np.ndarray, s: np.ndarray, first: int, gradient: np.ndarray,
    pull: np.ndarray,
) -> None:
    """Do what `replay.backwards` does; `s[k]` has one row per scalar, one column per unknown."""
    steps = _Steps(slopes)
    for step in range(len(slopes.values) - 1, -1, -1):
        row, here = first + step, steps.at(step, c[step, 0])
        b, pulled = here.project_back(s[row].T)
        pull[step] = pulled.T
        if slopes.m:
            gradient -= (here.gp @ pulled).T
        w = here.factors.solve(np.ascontiguousarray(b), trans="T")
        left = b - here.fy.T @ w - c[step, 0] * (here.fyp.T @ w)
        w += here.factors.solve(np.ascontiguousarray(left), trans="T")
        gradient -= (here.fp @ w).T
        past = (here.fyp.T @ w).T
        for k, x in _coefficients(c[step]):
            s[row - k] -= x * past


class LargeStart:
    """How consistent values of a system of index 0 or 1 depend on the values given.

    Algebraic unknowns are determined by the others; see `starts.StartMap`.
    """

    def __init__(self, slopes: Slopes, yp: np.ndarray, n_user: int) -> None:
        steps = _Steps(slopes)
        fy, fyp, self._fp = (steps.matrix(which, 0) for which in range(3))
        self._fy, self._n_user, self._yp = fy, n_user, yp[:n_user]
        self._evolves = np.zeros(slopes.n, bool)
        self._evolves[np.unique(fyp.indices[fyp.data != 0.0])] = True
        chosen = csc_array(
            fyp.multiply(self._evolves[None]) + fy.multiply(~self._evolves[None])
        )
        try:
            self._factors = splu(chosen)
        except RuntimeError:
            raise ValueError(
                "sensitivity: the equations determine only combinations of derivatives, which is "
                "not supported for so many unknowns; write them so that every derivative has an "
                "equation of its own"
            ) from None

    def along(self, direction: np.ndarray) -> LargeStart:
        """Return the map for one combination of the parameters."""
        other = copy(self)
        other._fp = csr_array(direction[None] @ self._fp)
        return other

    def _completed(self, kept: np.ndarray) -> np.ndarray:
        """Slopes of differential unknowns and values of the others, one row per parameter."""
        return self._factors.solve(-(self._fp.toarray().T + self._fy @ kept.T)).T

    def values(self, w: np.ndarray, shift: np.ndarray) -> np.ndarray:
        """Return the tangents of the values, from those of the values given and of the time."""
        kept = np.zeros((len(w), len(self._evolves)))
        kept[:, : self._n_user] = w - np.outer(shift, self._yp)
        kept[:, ~self._evolves] = 0.0
        return np.where(self._evolves, kept, self._completed(kept))

    def slopes(self, s: np.ndarray) -> np.ndarray:
        """Return the tangents of the slopes, from those of the values."""
        kept = np.where(self._evolves, s, 0.0)
        return np.where(self._evolves, self._completed(kept), 0.0)

    def motion(
        self, yp: np.ndarray, r: np.ndarray, f_t: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """First and second derivatives from approximate slopes, their residual and F_t."""
        slopes = yp - np.where(self._evolves, self._factors.solve(r), 0.0)
        kept = np.where(self._evolves, slopes, 0.0)
        found = self._factors.solve(-(f_t + self._fy @ kept))
        return np.where(self._evolves, slopes, found), np.where(self._evolves, found, 0.0)

    def _back(self, bar: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """Return adjoints of the values kept, from those of the values determined."""
        w = self._factors.solve(np.ascontiguousarray(bar.T), trans="T")
        gradient -= (self._fp @ w).T
        found = -(self._fy.T @ w).T
        found[:, ~self._evolves] = 0.0
        return found

    def take_back(
        self, of_values: np.ndarray, gradient: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return adjoints of the values given and of the time, from those of the values found."""
        kept = np.where(self._evolves, of_values, 0.0)
        kept = kept + self._back(np.where(self._evolves, 0.0, of_values), gradient)
        of_given = kept[:, : self._n_user]
        return of_given, -of_given @ self._yp

    def take_slopes_back(self, of_slopes: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """Return adjoints of the values found, from those of their slopes."""
        return self._back(np.where(self._evolves, of_slopes, 0.0), gradient)
