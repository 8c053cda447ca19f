"""LU factors of three diagonals, eliminated from both ends at once.

Each pivot waits for the one before it, and so does each unknown of a solution. From both ends to
the middle there are two such chains, on which a processor works at the same time:

    A = L D U,

with ones on the diagonals of L and U. Besides these, L has entries below the diagonal in its upper
half and above it in its lower half, and U the opposite. The transposed matrix thus has the same
factors with L and U exchanged. If a pivot is too small, rows have to be exchanged, and `band.py`
takes over.

In a solution, two unknowns at a time are computed from the one before, so that each waits for half
as many.
"""

import cython
import numpy as np
from cython.cimports.libc.math import fabs

from tether.base.blocks import zeros

if not cython.compiled:
    from tether._core.arrays import address
    from tether._core.band import BandLU
    from tether._core.codes import OK, SINGULAR
    from tether._core.factors import Factors, range_of

# The diagonal entry is the pivot unless it is smaller than this share of its column.
PREFERRED = cython.declare(cython.double, 0.1)


class ThreeLU(Factors):
    """Factors of a sparse matrix within three diagonals.

    Parameters
    ----------
    pattern : Pattern
        Positions of the entries; `pattern.band` is the order of its rows and columns.
    """

    def __init__(self, pattern):
        n: cython.longlong = pattern.n
        self.n, self.size, self.factored = n, pattern.size, False
        self.pattern, self.with_exchanges, self.exchanged = pattern, None, False
        self.in_pairs = False
        self.in_order = pattern.three.in_order
        self.numbers, self.integers = zeros(7 * n), pattern.three.places
        memory: cython.p_double = address(self.numbers)
        if cython.compiled:
            self.above, self.diagonal, self.below = memory, memory + n, memory + 2 * n
            self.lower, self.upper = memory + 3 * n, memory + 4 * n
            self.inverse, self.x = memory + 5 * n, memory + 6 * n
            places: cython.int[::1] = self.integers
            rows: cython.int[::1] = pattern.three.rows
            columns: cython.int[::1] = pattern.three.columns
            self.place = cython.address(places[0])
            self.row, self.column = cython.address(rows[0]), cython.address(columns[0])
        else:
            (_, self.diagonal, self.below, self.lower, self.upper, self.inverse,
             self.x) = np.split(memory, 7)
            self.above = memory                    # entries are written from here on
            self.place = self.integers
            self.row, self.column = pattern.three.rows, pattern.three.columns

    @property
    def entries(self):
        """Number of entries of the factors."""
        return 3 * self.n

    @property
    def words(self):
        """Short description, for people."""
        return "factors in a band of 1 + 1 + 1 diagonals"

    @property
    def operations(self):
        """Number of multiplications in a factorisation."""
        return 2 * self.n

    def factor(self, values):
        """Factor the matrix with these entries."""
        p: cython.longlong
        for p in range(self.size):
            self.above[self.place[p]] = values[p]
        self.exchanged = eliminate_three(self) != OK
        self.factored = True
        if self.exchanged:
            with cython.gil:
                if self.with_exchanges is None:
                    self.with_exchanges = BandLU(self.pattern)
            self.factored = self.with_exchanges.factor(values) == OK
        return OK if self.factored else SINGULAR

    def solve(self, b):
        """Solve A x = b in place."""
        if self.exchanged:
            self.with_exchanges.solve(b)
        elif self.in_order:
            solve_three(self, b, self.lower, self.upper)
        else:
            solve_permuted(self, b, self.row, self.column, self.lower, self.upper)

    def solve_transposed(self, b):
        """Solve A^T x = b in place."""
        if self.exchanged:
            self.with_exchanges.solve_transposed(b)
        else:
            solve_permuted(self, b, self.column, self.row, self.upper, self.lower)

    def pivot_ratio(self):
        """Ratio of the largest to the smallest pivot."""
        if self.exchanged:
            return self.with_exchanges.pivot_ratio()
        return range_of(self.inverse, self.n)


def eliminate_three(f):
    """Factor from both ends; SINGULAR if a pivot is too small, or not finite."""
    n: cython.longlong = f.n
    middle: cython.longlong = n // 2
    k: cython.longlong
    q: cython.longlong = n - 1
    pivot: cython.double = f.diagonal[0]
    other: cython.double = f.diagonal[n - 1]
    good: cython.bint = True
    large: cython.double = 0.0                     # the largest off-diagonal entry of U
    for k in range(middle):
        good = good and is_pivot(pivot, f.below[k])
        f.inverse[k] = 1.0 / pivot
        f.lower[k] = f.below[k] * f.inverse[k]
        f.upper[k] = f.above[k] * f.inverse[k]
        large = max(large, fabs(f.upper[k]))
        pivot = f.diagonal[k + 1] - f.lower[k] * f.above[k]
        if q > middle:
            good = good and is_pivot(other, f.above[q - 1])
            f.inverse[q] = 1.0 / other
            f.lower[q] = f.above[q - 1] * f.inverse[q]
            f.upper[q] = f.below[q - 1] * f.inverse[q]
            large = max(large, fabs(f.upper[q]))
            other = f.diagonal[q - 1] - f.lower[q] * f.below[q - 1]
            q -= 1
    if middle + 1 < n:
        pivot -= f.lower[middle + 1] * f.below[middle]
    f.inverse[middle] = 1.0 / pivot
    f.in_pairs = large * PREFERRED <= 1.0          # so are those of L, or round-off would grow
    return OK if good and is_pivot(pivot, 0.0) else SINGULAR


def is_pivot(pivot, other):
    """Tell whether a number is large enough for a pivot, given another one of its column."""
    return 0.0 < fabs(pivot) <= 1e300 and fabs(pivot) >= PREFERRED * fabs(other)


def solve_permuted(f, b, rows, columns, lower, upper):
    """Solve with rows and columns in the order of the band."""
    k: cython.int
    for k in range(f.n):
        f.x[k] = b[rows[k]]
    solve_three(f, f.x, lower, upper)
    for k in range(f.n):
        b[columns[k]] = f.x[k]


def solve_three(f, x, lower, upper):
    """Solve in place: from both ends to the middle, and back.

    With v_1 = b_1 - l_0 v_0 and v_2 = b_2 - l_1 v_1 in pairs, v_2 is b_2 - l_1 b_1 + l_1 l_0 v_0.
    """
    n: cython.longlong = f.n
    middle: cython.longlong = n // 2
    both: cython.longlong = n - 1 - middle     # rows after the middle; maybe one more before it
    k: cython.longlong = 0
    p: cython.longlong
    q: cython.longlong
    first: cython.double
    last: cython.double
    value: cython.double = x[0]
    other: cython.double = x[n - 1]
    while f.in_pairs and k + 2 < both:
        q = n - 1 - k
        first = x[k + 1]
        last = x[q - 1]
        x[k + 1] = first - lower[k] * value
        x[q - 1] = last - lower[q] * other
        value = (x[k + 2] - lower[k + 1] * first) + (lower[k + 1] * lower[k]) * value
        other = (x[q - 2] - lower[q - 1] * last) + (lower[q - 1] * lower[q]) * other
        x[k + 2] = value
        x[q - 2] = other
        k += 2
    while k < both - 1:
        q = n - 1 - k
        value = x[k + 1] - lower[k] * value
        other = x[q - 1] - lower[q] * other
        x[k + 1] = value
        x[q - 1] = other
        k += 1
    if middle > both and middle > 1:
        k = middle - 2
        x[k + 1] -= lower[k] * x[k]
    value = x[middle]
    if middle > 0:
        value -= lower[middle - 1] * x[middle - 1]
    if both > 0:
        value -= lower[middle + 1] * x[middle + 1]
    value *= f.inverse[middle]
    x[middle] = other = value
    p = middle - 1
    q = middle + 1
    while f.in_pairs and q + 1 < n:
        first = x[p] * f.inverse[p]
        last = x[q] * f.inverse[q]
        x[p] = first - upper[p] * value
        x[q] = last - upper[q] * other
        value = x[p - 1] * f.inverse[p - 1] - upper[p - 1] * first + upper[p - 1] * upper[p] * value
        other = x[q + 1] * f.inverse[q + 1] - upper[q + 1] * last + upper[q + 1] * upper[q] * other
        x[p - 1] = value
        x[q + 1] = other
        p -= 2
        q += 2
    while q < n:
        value = x[p] * f.inverse[p] - upper[p] * value
        other = x[q] * f.inverse[q] - upper[q] * other
        x[p] = value
        x[q] = other
        p -= 1
        q += 1
    if middle > both:
        x[0] = x[0] * f.inverse[0] - upper[0] * x[1]
