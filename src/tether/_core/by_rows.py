"""The entries of single rows of a matrix that is stored column by column."""

import cython
from cython.cimports.libc.math import fabs


class ByRows:
    """Where the entries of each row stand; that is found when it is first asked for.

    Parameters
    ----------
    pattern : Pattern
        Where all entries stand.
    """

    def __init__(self, pattern):
        self.pattern, self.integers = pattern, None

    def open(self):
        """Find where the entries stand."""
        self.integers = self.pattern.by_rows
        if cython.compiled:
            starts: cython.int[::1] = self.integers[0]
            places: cython.int[::1] = self.integers[1]
            columns: cython.int[::1] = self.integers[2]
            self.start, self.place = cython.address(starts[0]), cython.address(places[0])
            self.column = cython.address(columns[0])
        else:
            self.start, self.place, self.column = self.integers

    def changing(self, i, fy, changes, x):
        """Row i of F_y times x, of the entries that change."""
        q: cython.int
        p: cython.int
        total: cython.double = 0.0
        make_ready(self)
        for q in range(self.start[i], self.start[i + 1]):
            p = self.place[q]
            if changes[p]:
                total += fy[p] * x[self.column[q]]
        return total

    def size(self, i, fy, fyp, changes, y, yp, missing):
        """Sum of |entry y| and |entry y'| in row i; of entries that change a share is missing."""
        q: cython.int
        p: cython.int
        size: cython.double
        total: cython.double = 0.0
        make_ready(self)
        for q in range(self.start[i], self.start[i + 1]):
            total += fabs(fyp[self.place[q]] * yp[self.column[q]])
        for q in range(self.start[i], self.start[i + 1]):
            p = self.place[q]
            size = fabs(fy[p] * y[self.column[q]])
            total += size * fabs(1.0 - missing) if changes[p] else size
        return total


def make_ready(rows):
    """Find where the entries stand, unless that is known."""
    if rows.integers is None:
        with cython.gil:
            rows.open()
