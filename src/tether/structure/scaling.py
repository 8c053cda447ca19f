"""Matrices in natural units."""

from __future__ import annotations

import numpy as np

__all__ = ["balanced", "nonzero"]


def balanced(matrix: np.ndarray, sweeps: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """Factors of rows and columns that bring their largest entries towards 1.

    Examples
    --------
    >>> import numpy as np
    >>> from tether.structure.scaling import balanced
    >>> row, column = balanced(np.diag([1e6, 1e-4]))
    >>> row * column * [1e6, 1e-4]
    array([1., 1.])
    """
    size = np.abs(matrix)
    row, column = np.ones(len(size)), np.ones(size.shape[1])
    for _ in range(sweeps):
        scaled = row[:, None] * size * column
        row = row / np.sqrt(nonzero(scaled.max(axis=1, initial=0.0)))
        column = column / np.sqrt(nonzero(scaled.max(axis=0, initial=0.0)))
    return row, column


def nonzero(x: np.ndarray) -> np.ndarray:
    """Replace 0 by 1, for divisors."""
    return np.where(x > 0.0, x, 1.0)
