"""Piecewise polynomials: breakpoints and coefficients that a graph and its programs contain.

A spline or a table of measured values becomes one operation on one operand, whatever the number of
its points. Outside, the first and the last polynomial continue; `tether.trace.splines` limits the
operand if a spline does something else there.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np

_ROUND_OFF = 1e-9


class Piecewise:
    """A function that is a polynomial between breakpoints; it never changes.

    Parameters
    ----------
    starts : array_like, shape (k,)
        Breakpoints between the polynomials, ascending; at a breakpoint the next one holds.
    bases : array_like, shape (k + 1,)
        Points about which the polynomials are expanded.
    coefficients : array_like, shape (k + 1, width)
        Coefficients of the powers 0, 1, ... of x minus the base.
    name : str
        Its name in formulas.

    Examples
    --------
    >>> from tether.trace.piecewise import Piecewise
    >>> ramp = Piecewise([1.0], [0.0, 1.0], [[0.0, 2.0], [2.0, 0.0]], "ramp")
    >>> [float(value) for value in (ramp(0.5), ramp(3.0), ramp.derivative()(0.5))]
    [1.0, 2.0, 2.0]
    """

    def __init__(self, starts: Any, bases: Any, coefficients: Any, name: str) -> None:
        self.starts = np.array(starts, float)
        self.bases = np.array(bases, float)
        self.coefficients = np.array(coefficients, float)
        self.name = name

    def __call__(self, x: Any) -> Any:
        """Evaluate at a number or at each element of an array."""
        return evaluate_piecewise(self.flat, 0, x)

    @property
    def width(self) -> int:
        """Number of coefficients of each polynomial."""
        return self.coefficients.shape[1]

    @cached_property
    def flat(self) -> np.ndarray:
        """All numbers in one array, as in a program.

        These are the numbers of breakpoints and of coefficients, the breakpoints, and for each
        polynomial its base and its coefficients.
        """
        pieces = np.column_stack([self.bases, self.coefficients])
        return np.concatenate([[len(self.starts), self.width], self.starts, pieces.ravel()])

    @cached_property
    def key(self) -> bytes:
        """The content as bytes, to find equal functions."""
        return self.flat.tobytes()

    def derivative(self) -> Piecewise:
        """Differentiate once; every call returns the same object."""
        return self._derivative

    @cached_property
    def _derivative(self) -> Piecewise:
        slopes = self.coefficients[:, 1:] * np.arange(1, self.width)
        if self.width == 1:
            slopes = np.zeros_like(self.coefficients)
        return Piecewise(self.starts, self.bases, slopes, self.name + "'")

    @property
    def constant(self) -> float | None:
        """The value of a constant function, None for others."""
        values = self.coefficients
        return float(values[0, 0]) if self.width == 1 and np.all(values == values[0, 0]) else None

    @cached_property
    def smoothness(self) -> float:
        """Order of the highest continuous derivative: -1 if the function itself jumps."""
        order, function = 0, self
        while order < self.width:
            rows, base = function.coefficients, function.bases
            left = _terms(rows[:-1], self.starts - base[:-1])
            right = _terms(rows[1:], self.starts - base[1:])
            size = np.maximum(np.abs(left).sum(axis=0), np.abs(right).sum(axis=0))
            scale = np.maximum(size, np.abs(rows[:, 0]).max(initial=0.0))
            if np.any(np.abs(left.sum(axis=0) - right.sum(axis=0)) > _ROUND_OFF * scale):
                return order - 1
            order, function = order + 1, function.derivative()
        return math.inf


def _terms(rows: np.ndarray, distance: np.ndarray) -> np.ndarray:
    """Terms of the polynomials in `rows`, one row for each power."""
    return rows.T * distance ** np.arange(rows.shape[1])[:, np.newaxis]


def from_points(x: np.ndarray, y: np.ndarray, name: str, stays: bool = False) -> Piecewise:
    """Join points by straight lines; the last line continues, or the last value if `stays`."""
    with np.errstate(all="ignore"):
        slopes = np.diff(y) / np.diff(x)
    jumps = np.diff(x) == 0.0
    if not stays:                      # the first and the last line also hold outside
        jumps[[0, -1]] = False
    slopes[jumps] = 0.0                # a line that holds nowhere: of it only its value counts
    if stays:
        return Piecewise(x[1:], x, np.column_stack([y, np.append(slopes, 0.0)]), name)
    return Piecewise(x[1:-1], x[:-1], np.column_stack([y[:-1], slopes]), name)


def evaluate_piecewise(tables: np.ndarray, first: int, x: Any) -> Any:
    """Evaluate the function that begins at `first` in the tables of a program.

    The terms are added in the same order as in SciPy, in the machine and in C.
    """
    starts, pieces = _parts(tables, first)
    chosen = pieces[np.searchsorted(starts, np.real(x), side="right")]
    distance = x - chosen[..., 0]
    total: Any = 0.0
    power: Any = 1.0
    for k in range(1, pieces.shape[1]):
        total = total + chosen[..., k] * power
        power = power * distance
    return np.where(np.isnan(x), np.nan, total)[()]


def piecewise_at(tables: np.ndarray, first: int) -> Piecewise:
    """Return the function that begins at `first` in the tables of a program."""
    starts, pieces = _parts(tables, first)
    return Piecewise(starts, pieces[:, 0], pieces[:, 1:], "table")


def _parts(tables: np.ndarray, first: int) -> tuple[np.ndarray, np.ndarray]:
    """Breakpoints, and one row for each polynomial: its base and its coefficients."""
    count, width = int(tables[first]), int(tables[first + 1])
    begin = first + 2 + count
    pieces = tables[begin : begin + (count + 1) * (width + 1)]
    return tables[first + 2 : begin], pieces.reshape(count + 1, width + 1)
