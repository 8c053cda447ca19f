"""The sparsity of F_y and F_y', as given by the user or found."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from tether.base.pattern import Pattern

__all__ = ["Sparsity", "sparsity_of"]

# How many recent patterns are kept: their elimination order is found once and reused.
PATTERNS_KEPT = 2
_recent: tuple[tuple[tuple[np.ndarray, ...], Sparsity], ...] = ()

Places = tuple[np.ndarray, np.ndarray]


class Sparsity:
    """Patterns of F_y and F_y'.

    Parameters
    ----------
    fy, fyp : Pattern
        Where the matrices may have entries.
    by_user : bool
        Whether the user gave them; otherwise they are what was seen so far.
    """

    def __init__(self, fy: Pattern, fyp: Pattern, by_user: bool = True) -> None:
        self.fy, self.fyp, self.by_user = fy, fyp, by_user
        both = ((pattern.row, pattern.columns) for pattern in (fy, fyp))
        self.both = fy if fy is fyp else Pattern(fy.n, *both)


class GivenSparsity:
    """What was passed as `jac_sparsity`, `lband` and `uband`; the size is not known yet."""

    def __init__(self, matrices: Any, lband: Any, uband: Any) -> None:
        self.bands = None
        if lband is not None or uband is not None:
            if matrices is not None:
                raise ValueError("pass either jac_sparsity or lband and uband, not both")
            self.bands = _check_band("lband", lband), _check_band("uband", uband)
            return
        pair = matrices if isinstance(matrices, (tuple, list)) and len(matrices) == 2 else None
        if pair is not None and all(np.ndim(_entries(each)) == 2 for each in pair):
            self.matrices = tuple(_check_matrix(each) for each in pair)
        else:
            self.matrices = (_check_matrix(matrices),) * 2

    def of_size(self, n: int) -> Sparsity:
        """Patterns for n unknowns."""
        if self.bands is not None:
            return _of_bands(n, *self.bands)
        for matrix in self.matrices:
            if matrix.shape != (n, n):
                raise ValueError(
                    f"jac_sparsity must be of shape {(n, n)} for the {n} values of y0, got "
                    f"{matrix.shape}"
                )
        return sparsity_of(n, *(matrix.coords for matrix in self.matrices))


def sparsity_of(n: int, of_y: Places, of_yp: Places, by_user: bool = True) -> Sparsity:
    """Patterns with entries in these places; those of recent runs are reused."""
    global _recent
    for known, sparsity in _recent:
        if sparsity.fy.n != n or sparsity.by_user != by_user:
            continue
        if all(map(np.array_equal, known, (*of_y, *of_yp))):
            return sparsity
    fy = Pattern(n, of_y)
    found = Sparsity(fy, fy if of_yp is of_y else Pattern(n, of_yp), by_user)
    places = tuple(part.copy() for part in (*of_y, *of_yp))       # the user may change the arrays
    _recent = ((places, found), *_recent)[:PATTERNS_KEPT]
    return found


@lru_cache(maxsize=4)                  # so that its elimination order serves later runs too
def _of_bands(n: int, lower: int, upper: int) -> Sparsity:
    offsets = np.arange(-upper, lower + 1)
    columns = np.repeat(np.arange(n), len(offsets))
    rows = columns + np.tile(offsets, n)
    inside = (rows >= 0) & (rows < n)
    pattern = Pattern(n, (rows[inside], columns[inside]))
    return Sparsity(pattern, pattern)


def given_sparsity(matrices: Any, lband: Any, uband: Any) -> GivenSparsity | None:
    """Check what was passed as `jac_sparsity`, `lband` and `uband`; None if nothing was.

    Examples
    --------
    >>> from tether.problem.sparsity import given_sparsity
    >>> given_sparsity(None, 1, 1).of_size(4).both.size
    10
    """
    if matrices is None and lband is None and uband is None:
        return None
    return GivenSparsity(matrices, lband, uband)


def _entries(matrix: Any) -> Any:
    return matrix if hasattr(matrix, "tocoo") else np.asarray(matrix)


def _check_matrix(given: Any) -> Any:
    from scipy.sparse import coo_array  # late, to save time

    matrix = _entries(given)
    if matrix.ndim != 2 or matrix.dtype.kind not in "bfiu":
        raise TypeError(
            "jac_sparsity must be a matrix that is not zero where F_y or F_yp may have entries, or "
            f"a pair of them, got {type(given).__name__}"
        )
    found = coo_array(matrix)
    found.eliminate_zeros()
    return found


def _check_band(name: str, width: Any) -> int:
    if width is None:
        raise ValueError(f"{name} is missing: pass both lband and uband")
    if isinstance(width, bool) or not isinstance(width, (int, np.integer)) or width < 0:
        raise ValueError(f"{name} must be an integer that is not negative, got {width!r}")
    return int(width)
