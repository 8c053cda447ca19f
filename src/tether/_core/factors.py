"""The interface between sparse matrices and what factors them.

`sparse.py` stores the entries and leaves the elimination to one of these: `sparse_lu.py`, which
keeps zeros out of the factors, or `band.py`, which keeps them within a band.
"""

import cython
import numpy as np
from cython.cimports.libc.math import fabs

if not cython.compiled:
    from tether._core.arrays import address
    from tether._core.codes import OK, SINGULAR


class Factors:
    """Factors of a matrix with a fixed pattern.

    Attributes
    ----------
    n : int
        Size.
    factored : bool
        Whether there are factors.
    failed, error : bool, Exception
        Whether a user's object has raised an exception, and the exception.
    """

    if not cython.compiled:
        failed, error = False, None

    @property
    def entries(self):
        """Number of entries of the factors."""
        return 0

    @property
    def words(self):
        """Short description, for people."""
        return f"factors of {self.entries}"

    @property
    def operations(self):
        """Number of multiplications in a factorisation."""
        return 0

    def forget(self):
        """Choose new pivots the next time."""
        self.factored = False

    def take(self, values):
        """Factor, for callers outside the core; tell whether that worked."""
        return self.factor(address(np.ascontiguousarray(values, float))) == OK

    def weigh(self, weight):
        """Measure solutions with these weights; NULL: all entries alike."""

    def factor(self, values):
        """Factor the matrix with these entries; return OK or SINGULAR."""
        return SINGULAR

    def solve(self, b):
        """Solve A x = b in place."""

    def solve_transposed(self, b):
        """Solve A^T x = b in place."""

    def pivot_ratio(self):
        """Ratio of the largest to the smallest pivot."""
        return 0.0

    @property
    def pivot_range(self):
        """Ratio of the largest to the smallest pivot, for callers outside the core."""
        return self.pivot_ratio()


def range_of(v, n):
    """Ratio of the largest to the smallest magnitude of n numbers."""
    k: cython.int
    size: cython.double = fabs(v[0])
    largest: cython.double = size
    smallest: cython.double = size
    for k in range(1, n):
        size = fabs(v[k])
        largest = max(largest, size)
        smallest = min(smallest, size)
    return largest / smallest
