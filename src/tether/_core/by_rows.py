"""The entries of single rows of a matrix that is stored column by column."""

import cython
from cython.cimports.libc.math import fabs


class ByRows:
    """Positions of the entries of each row, found when they are first needed.

    Parameters
    ----------
    pattern : Pattern
        Positions of all entries.
    """

    def __init__(self, pattern):
        self.pattern, self.integers = pattern, None

    def open(self):
        """Find the positions."""
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
        """Return row i of F_y times x, over the entries that change."""
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
        """Sum of |entry y| and |entry y'| in row i; entries that change count for 1 - `missing`."""
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
    """Find the positions unless they are known."""
    if rows.integers is None:
        with cython.gil:
            rows.open()
