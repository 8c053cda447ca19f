"""LU factors of a sparse matrix: found once, then renewed on the same pattern.

The columns are eliminated one after another in an order that was chosen to keep the factors sparse
(Gilbert and Peierls, SIAM J. Sci. Stat. Comput. 9, 1988, 862-874). Column k of the factors solves L
x = a with the columns of L so far; the pattern of x follows from the graph of L by a depth-first
search, so that the work is proportional to the number of arithmetic operations. Rows are first
multiplied by powers of two that bring their largest entries near 1, whatever their units. Pivots
are chosen within the column; the row that keeps the factors sparse is preferred while its entry is
not smaller than a thousandth of the largest. For circuits that is enough according to KLU (Davis
and Palamadai Natarajan, ACM TOMS 37, 2010, 36); a tenth would more than double the entries of the
factors there. Where it is not enough, entries grow, and pivots are chosen again with a tenth.

In an integration the same pattern is factored again and again with other values. Pivots and pattern
are then used again, and nothing is searched for. If a pivot has become small compared with the rest
of its column, or entries grow, new ones are chosen.
"""

import cython
import numpy as np
from cython.cimports.libc.math import fabs, frexp, ldexp

if not cython.compiled:
    from tether._core.arrays import address
    from tether._core.codes import OK, SINGULAR
    from tether._core.factors import Factors, range_of

# The preferred pivot is used unless it is smaller than this share of the largest entry in its
# column, or than the second share once entries have grown with the first ...
PREFERRED = cython.declare(cython.double, 1e-3)
STRICT = cython.declare(cython.double, 0.1)
# ... and an earlier pivot is used again unless it is smaller than this share.
REUSED = cython.declare(cython.double, 1e-4)
# Entries may grow by the first factor during elimination; with pivots that are used again also by
# the second, compared with when these were chosen.
MAX_GROWTH = cython.declare(cython.double, 500.0)
REUSED_GROWTH = cython.declare(cython.double, 10.0)
# Factors are first given room for this many times the entries of the matrix.
FIRST_ROOM = 4
# Up to this many columns, with at most so many entries each on average, are eliminated by levels.
MOST_LEVELLED, SHORT_COLUMN = 10_000, 8


class SparseLU(Factors):
    """Factors P A Q = L U of a sparse matrix with a fixed pattern.

    Parameters
    ----------
    pattern : Pattern
        Positions of the entries.
    levelled : bool
        Whether columns may be eliminated by levels, see `order_by_levels`.

    Attributes
    ----------
    column : int
        The column for which no pivot was found; -1 if there was none.
    full, again : int
        Number of factorisations with new pivots, and with those of an earlier one.
    """

    def __init__(self, pattern, levelled=True):
        n: cython.int = pattern.n
        order, preferred = order_by_levels(pattern) if levelled else pattern.elimination
        self.n, self.column, self.factored, self.strict = n, -1, False, False
        self.full = self.again = 0
        self.l_room = self.u_room = FIRST_ROOM * pattern.size + n
        lists = np.zeros((8, n + 1), np.intc)
        self.integers = [
            np.zeros(self.l_room, np.intc), np.zeros(self.u_room, np.intc), lists,
            *(np.append(array, 0).astype(np.intc)
              for array in (pattern.start, pattern.row, order, preferred)),
        ]
        self.numbers = [
            np.zeros(self.l_room), np.zeros(self.u_room), np.zeros(n), np.zeros(n), np.ones(n)
        ]
        self.l_value, self.u_value = address(self.numbers[0]), address(self.numbers[1])
        self.inverse, self.x = address(self.numbers[2]), address(self.numbers[3])
        self.scale = address(self.numbers[4])
        self.l_row = indices(self, 0, self.integers[0])
        self.u_row = indices(self, 0, self.integers[1])
        self.start = indices(self, 0, self.integers[3])
        self.row = indices(self, 0, self.integers[4])
        self.order = indices(self, 0, self.integers[5])
        self.preferred = indices(self, 0, self.integers[6])
        self.place, self.l_start = indices(self, 0, lists), indices(self, 1, lists)
        self.u_start, self.reach = indices(self, 2, lists), indices(self, 3, lists)
        self.mark, self.stack = indices(self, 4, lists), indices(self, 5, lists)
        self.child = indices(self, 6, lists)

    @property
    def entries(self):
        """Number of entries of the factors, with the diagonal of U."""
        return self.l_start[self.n] + self.u_start[self.n] + self.n if self.factored else 0

    @property
    def operations(self):
        """Number of multiplications in a factorisation."""
        k: cython.int
        p: cython.int
        total: cython.longlong = 0
        if self.factored:
            for k in range(self.n):
                total += self.l_start[k + 1] - self.l_start[k]
                for p in range(self.u_start[k], self.u_start[k + 1]):
                    total += self.l_start[self.u_row[p] + 1] - self.l_start[self.u_row[p]]
        return total

    @property
    def levels(self):
        """Number of columns that must be eliminated before each column, one after another."""
        k: cython.int
        p: cython.int
        level: cython.int
        found = np.zeros(self.n + 1, np.intc)
        levels: cython.p_int = indices(self, 0, found)
        if self.factored:
            for k in range(self.n):
                level = levels[k]
                for p in range(self.u_start[k], self.u_start[k + 1]):
                    level = max(level, levels[self.u_row[p]] + 1)
                levels[k] = level
                for p in range(self.l_start[k], self.l_start[k + 1]):
                    levels[self.l_row[p]] = max(levels[self.l_row[p]], level + 1)
        return found[: self.n]

    def factor(self, values):
        """Factor the matrix with these entries; return OK or SINGULAR."""
        if self.factored and refactor(self, values) == OK:
            self.again += 1
            return OK
        self.full += 1
        scale_rows(self, values)
        self.factored = factor_with_new_pivots(self, values) == OK
        if not self.strict and not (self.factored and self.growth <= MAX_GROWTH):
            self.strict = True
            self.factored = factor_with_new_pivots(self, values) == OK
        self.most_growth = max(MAX_GROWTH, REUSED_GROWTH * self.growth)
        return OK if self.factored else SINGULAR

    def solve(self, b):
        """Solve A x = b in place."""
        n: cython.int = self.n
        k: cython.int
        p: cython.int
        value: cython.double
        x: cython.p_double = self.x
        start: cython.p_int = self.l_start
        row: cython.p_int = self.l_row
        entry: cython.p_double = self.l_value
        for k in range(n):
            x[self.place[k]] = b[k] * self.scale[k]
        for k in range(n):
            value = x[k]
            if value != 0.0:
                for p in range(start[k], start[k + 1]):
                    x[row[p]] -= entry[p] * value
        start, row, entry = self.u_start, self.u_row, self.u_value
        for k in range(n - 1, -1, -1):
            value = x[k] * self.inverse[k]
            x[k] = 0.0
            b[self.order[k]] = value
            if value != 0.0:
                for p in range(start[k], start[k + 1]):
                    x[row[p]] -= entry[p] * value

    def solve_transposed(self, b):
        """Solve A^T x = b in place."""
        n: cython.int = self.n
        k: cython.int
        p: cython.int
        value: cython.double
        x: cython.p_double = self.x
        for k in range(n):
            value = b[self.order[k]]
            for p in range(self.u_start[k], self.u_start[k + 1]):
                value -= self.u_value[p] * x[self.u_row[p]]
            x[k] = value * self.inverse[k]
        for k in range(n - 1, -1, -1):
            value = x[k]
            for p in range(self.l_start[k], self.l_start[k + 1]):
                value -= self.l_value[p] * x[self.l_row[p]]
            x[k] = value
        for k in range(n):
            b[k] = x[self.place[k]] * self.scale[k]
        for k in range(n):
            x[k] = 0.0

    def pivot_ratio(self):
        """Ratio of the largest to the smallest pivot."""
        return range_of(self.inverse, self.n)


def order_by_levels(pattern):
    """Return the order of elimination of a pattern, and the preferred row for each column.

    If columns are short, those that do not wait for each other are placed next to each other. Along
    a chain a processor waits for each column before it can begin the next; with several chains it
    works on the others in the meantime. The factors have the same entries.
    """
    if not pattern.is_levelled and pattern.n <= MOST_LEVELLED:
        factors = SparseLU(pattern, levelled=False)
        if factors.take(pattern.regular_values) and factors.entries <= SHORT_COLUMN * pattern.n:
            order, preferred = pattern.elimination
            pattern.elimination = order[np.argsort(factors.levels, kind="stable")], preferred
        pattern.is_levelled = True
    return pattern.elimination


def scale_rows(f, values):
    """Find a power of two for each row that brings its largest entry near 1."""
    i: cython.int
    p: cython.int
    size: cython.double
    exponent: cython.int = 0
    for i in range(f.n):
        f.scale[i] = 0.0
    for p in range(f.start[f.n]):
        size = fabs(values[p])
        if size > f.scale[f.row[p]]:
            f.scale[f.row[p]] = size
    for i in range(f.n):
        size = f.scale[i]
        if 0.0 < size <= 1e300:
            if cython.compiled:
                frexp(size, cython.address(exponent))
            else:
                exponent = frexp(size)[1]
            f.scale[i] = ldexp(1.0, -exponent)
        else:
            f.scale[i] = 1.0


def factor_with_new_pivots(f, values):
    """Determine pattern, pivots and values of the factors."""
    n: cython.int = f.n
    i: cython.int
    j: cython.int
    k: cython.int
    p: cython.int
    top: cython.int
    column: cython.int
    pivot: cython.int
    l_count: cython.int = 0
    u_count: cython.int = 0
    value: cython.double
    x: cython.p_double = f.x
    f.growth = 0.0
    for i in range(n):
        f.place[i] = f.mark[i] = -1
    for k in range(n):
        column = f.order[k]
        f.l_start[k], f.u_start[k] = l_count, u_count
        top = find_reach(f, column, k)
        if l_count + n - top > f.l_room or u_count + n - top > f.u_room:
            if not reserve(f, l_count + n - top, u_count + n - top):
                return SINGULAR
        for p in range(f.start[column], f.start[column + 1]):
            x[f.row[p]] = values[p] * f.scale[f.row[p]]
        for p in range(top, n):
            i = f.reach[p]
            j = f.place[i]
            if j >= 0:
                value = x[i]
                x[i] = 0.0
                f.u_row[u_count] = j
                f.u_value[u_count] = value
                u_count += 1
                f.growth = max(f.growth, fabs(value))
                for i in range(f.l_start[j], f.l_start[j + 1]):
                    x[f.l_row[i]] -= f.l_value[i] * value
        pivot = choose_pivot(f, top, column)
        if pivot < 0:
            f.column = column
            for p in range(top, n):
                x[f.reach[p]] = 0.0
            return SINGULAR
        f.inverse[k] = 1.0 / x[pivot]
        x[pivot] = 0.0
        for p in range(top, n):
            i = f.reach[p]
            if f.place[i] < 0 and i != pivot:
                f.l_row[l_count] = i
                f.l_value[l_count] = x[i] * f.inverse[k]
                l_count += 1
                x[i] = 0.0
        f.place[pivot] = k
        f.l_start[k + 1], f.u_start[k + 1] = l_count, u_count
    for p in range(l_count):
        f.l_row[p] = f.place[f.l_row[p]]
    f.column = -1
    return OK


def find_reach(f, column, k):
    """List the rows of column k of the factors at the end of `f.reach`; return where they begin.

    A row with a pivot comes before the rows that it affects.
    """
    p: cython.int
    top: cython.int = f.n
    for p in range(f.start[column], f.start[column + 1]):
        if f.mark[f.row[p]] != k:
            top = search_from(f, f.row[p], k, top)
    return top


def search_from(f, row, k, top):
    """Put the rows that a row affects before `top`, the row itself first; return the new top."""
    head: cython.int = 0
    i: cython.int
    j: cython.int
    p: cython.int
    stop: cython.int
    below: cython.bint
    f.stack[0] = row
    f.mark[row] = k
    j = f.place[row]
    f.child[0] = f.l_start[j] if j >= 0 else 0
    while head >= 0:
        i = f.stack[head]
        j = f.place[i]
        below = False
        if j >= 0:
            stop = f.l_start[j + 1]
            p = f.child[head]
            while p < stop:
                if f.mark[f.l_row[p]] != k:
                    below = True
                    break
                p += 1
            if below:
                f.child[head] = p + 1
                i = f.l_row[p]
                head += 1
                f.stack[head] = i
                f.mark[i] = k
                j = f.place[i]
                f.child[head] = f.l_start[j] if j >= 0 else 0
        if not below:
            head -= 1
            top -= 1
            f.reach[top] = i
    return top


def choose_pivot(f, top, column):
    """Return the row of the pivot; -1 if there is none, or if a value is not finite."""
    i: cython.int
    p: cython.int
    pivot: cython.int = -1
    largest: cython.double = 0.0
    size: cython.double
    wanted: cython.int = f.preferred[column]
    for p in range(top, f.n):
        i = f.reach[p]
        if f.place[i] < 0:
            size = fabs(f.x[i])
            if not size <= 1e300:                  # also true of NaN
                return -1
            if size > largest:
                largest = size
                pivot = i
    f.growth = max(f.growth, largest)
    if pivot >= 0 and wanted >= 0 and f.place[wanted] < 0:
        if fabs(f.x[wanted]) >= (STRICT if f.strict else PREFERRED) * largest:
            pivot = wanted
    return pivot


def refactor(f, values):
    """Compute the values of the factors on their pattern; SINGULAR: other pivots are needed."""
    n: cython.int = f.n
    j: cython.int
    k: cython.int
    p: cython.int
    r: cython.int
    column: cython.int
    value: cython.double
    pivot: cython.double
    inverse: cython.double
    largest: cython.double
    growth: cython.double = 0.0
    x: cython.p_double = f.x
    l_row: cython.p_int = f.l_row
    l_value: cython.p_double = f.l_value
    l_start: cython.p_int = f.l_start
    for k in range(n):
        column = f.order[k]
        for p in range(f.start[column], f.start[column + 1]):
            r = f.row[p]
            x[f.place[r]] = values[p] * f.scale[r]
        for p in range(f.u_start[k], f.u_start[k + 1]):
            j = f.u_row[p]
            value = x[j]
            x[j] = 0.0
            f.u_value[p] = value
            growth = max(growth, fabs(value))
            if value != 0.0:
                for r in range(l_start[j], l_start[j + 1]):
                    x[l_row[r]] -= l_value[r] * value
        pivot = x[k]
        x[k] = 0.0
        inverse = 1.0 / pivot
        largest = 0.0
        for r in range(l_start[k], l_start[k + 1]):
            value = x[l_row[r]]
            x[l_row[r]] = 0.0
            largest = max(largest, fabs(value))
            l_value[r] = value * inverse
        f.inverse[k] = inverse
        growth = max(growth, largest)
        # also true of NaN and infinity
        if not (fabs(pivot) > 0.0 and fabs(pivot) <= 1e300 and largest * REUSED <= fabs(pivot)):
            return SINGULAR
    return OK if growth <= f.most_growth else SINGULAR


def reserve(f, l_count, u_count):
    """Make room for so many entries of L and of U; tell whether there was memory for it."""
    with cython.gil:
        try:
            if l_count > f.l_room:
                f.integers[0] = np.resize(f.integers[0], 2 * l_count)
                f.numbers[0] = np.resize(f.numbers[0], 2 * l_count)
                f.l_row, f.l_value = indices(f, 0, f.integers[0]), address(f.numbers[0])
                f.l_room = 2 * l_count
            if u_count > f.u_room:
                f.integers[1] = np.resize(f.integers[1], 2 * u_count)
                f.numbers[1] = np.resize(f.numbers[1], 2 * u_count)
                f.u_row, f.u_value = indices(f, 0, f.integers[1]), address(f.numbers[1])
                f.u_room = 2 * u_count
        except MemoryError:
            return False
    return True


def indices(f, which, array):
    """Return the address of C integers: of all of them, or of one row."""
    if not cython.compiled:
        return array if array.ndim == 1 else array[which]
    flat: cython.int[::1] = array.reshape(-1)
    return cython.address(flat[which * (f.n + 1)])
