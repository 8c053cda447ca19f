"""Incomplete factors of sparse matrices, with which GMRES solves systems by iteration.

M of `gmres.py` is a product of incomplete factors with no entries where A has none (ILU(0)), after
rows and columns were matched so that no diagonal entry is missing; or the user provides M.
"""

import cython
import numpy as np
from cython.cimports.libc.math import fabs

if not cython.compiled:
    from tether._core.arrays import address
    from tether._core.codes import OK, SINGULAR
    from tether._core.gmres import Gmres, ask_user, weight_of

# A pivot smaller than this share of its row is replaced: incomplete factors need not be exact.
SMALLEST_PIVOT = cython.declare(cython.double, 1e-6)
# With more unknowns than this, matching by the size of entries may take quadratic time.
LARGEST_MATCHING = 100_000


class Krylov(Gmres):
    """Incomplete factors of a sparse matrix, and solutions by iteration.

    Parameters
    ----------
    pattern : Pattern
        Positions of the entries.
    user : object, optional
        Replaces the incomplete factors: has ``factor(matrix)`` and ``solve(b)``.
    """

    def __init__(self, pattern, user=None):
        Gmres.__init__(self, pattern.n, user)
        self.size = pattern.size
        self.numbers = [np.zeros(pattern.size + 1), np.zeros(pattern.size + 1)]
        self.values, self.factors = address(self.numbers[0]), address(self.numbers[1])
        self.pattern = pattern
        self.arrange(pattern.matching)
        # without a whole diagonal the rows were matched by the pattern alone
        self.to_arrange = not np.array_equal(self.integers[6][: self.n], np.arange(self.n))

    def arrange(self, matched):
        """Arrange the matrix so that column j has its pivot in row `matched[j]`."""
        n, pattern = self.n, self.pattern
        self.complete = bool(np.all(matched >= 0))
        column_of = np.full(n, -1, np.intc)
        column_of[matched[matched >= 0]] = np.flatnonzero(matched >= 0)
        # the matrix with its rows in the order of their columns, row by row
        rows = column_of[pattern.row]
        order = np.lexsort((pattern.columns, rows)).astype(np.intc)
        first = np.searchsorted(rows[order], np.arange(n + 1))
        columns = pattern.columns[order]
        diagonal = np.flatnonzero(columns == rows[order]) if self.complete else np.zeros(n)
        self.integers = [
            np.append(array, 0).astype(np.intc)
            for array in (pattern.start, pattern.row, first, columns, order, diagonal, matched,
                          np.full(n, -1))
        ]
        if cython.compiled:
            self.start, self.row = integers(self.integers[0]), integers(self.integers[1])
            self.first, self.column = integers(self.integers[2]), integers(self.integers[3])
            self.source, self.diagonal = integers(self.integers[4]), integers(self.integers[5])
            self.matched, self.place = integers(self.integers[6]), integers(self.integers[7])
        else:
            (self.start, self.row, self.first, self.column, self.source, self.diagonal,
             self.matched, self.place) = self.integers

    def arrange_by_size(self):
        """Maximise the product of the entries on the diagonal; tell whether the order is new.

        Duff and Koster, SIAM J. Matrix Anal. Appl. 20, 1999, 889-901.
        """
        from scipy.sparse.csgraph import min_weight_full_bipartite_matching  # late, to save time

        sizes = np.abs(self.numbers[0][: self.size])
        if self.n > LARGEST_MATCHING or not self.size:
            return False
        kept = sizes > 0.0
        price = np.zeros(self.size)
        price[kept] = np.log(sizes[kept])
        price[kept] = 1.0 + price[kept].max() - price[kept]
        matrix = self.pattern.matrix(price).tocsr()     # a copy: the other shares its arrays
        matrix.eliminate_zeros()
        try:
            rows, columns = min_weight_full_bipartite_matching(matrix)
        except ValueError:                         # singular whatever the values
            return False
        matched = np.empty(self.n, np.intc)
        matched[columns] = rows
        if np.array_equal(matched, self.integers[6][: self.n]):
            return False
        self.arrange(matched)
        return True

    @property
    def entries(self):
        """Number of entries of the incomplete factors."""
        return self.size

    @property
    def by(self):
        """What takes the place of the matrix, for people."""
        return type(self.user).__name__ if self.by_user else "incomplete factors"

    def factor(self, values):
        """Make the incomplete factors; SINGULAR if a diagonal entry is missing, or for a NaN."""
        p: cython.longlong
        for p in range(self.size):
            if not fabs(values[p]) <= 1e300:
                return SINGULAR
            self.values[p] = values[p]
        measure_rows(self)
        if self.by_user:
            with cython.gil:
                self.factored = self.call_factor() == OK
            return OK if self.factored else SINGULAR
        if not self.complete:
            return SINGULAR
        self.factored = eliminate_within(self) == OK
        if self.replaced > 0 or self.to_arrange:
            self.to_arrange = False
            with cython.gil:
                if self.arrange_by_size():
                    self.factored = eliminate_within(self) == OK
        return OK if self.factored else SINGULAR

    def pivot_ratio(self):
        """Ratio of the largest to the smallest pivot of the incomplete factors."""
        k: cython.int
        pivot: cython.double
        largest: cython.double = 0.0
        smallest: cython.double = 1e300
        if self.by_user:
            return 0.0
        for k in range(self.n):
            pivot = fabs(self.factors[self.diagonal[k]])
            largest = max(largest, pivot)
            smallest = min(smallest, pivot)
        return largest / smallest if self.n > 0 else 1.0

    def hand_over(self):
        """Let the user's object factor the matrix."""
        self.user.factor(self.pattern.matrix(self.numbers[0][: self.size]).copy())

    def precondition(self, v, out):
        """Set `out` to M^-1 v."""
        n: cython.int = self.n
        i: cython.int
        p: cython.int
        value: cython.double
        lu: cython.p_double = self.factors
        if self.by_user:
            ask_user(self, v, out)
            return
        for i in range(n):
            value = v[self.matched[i]]
            for p in range(self.first[i], self.diagonal[i]):
                value -= lu[p] * out[self.column[p]]
            out[i] = value
        for i in range(n - 1, -1, -1):
            value = out[i]
            for p in range(self.diagonal[i] + 1, self.first[i + 1]):
                value -= lu[p] * out[self.column[p]]
            out[i] = value * lu[self.diagonal[i]]

    def precondition_transposed(self, v, out):
        """Set `out` to M^-T v; `v` is overwritten."""
        n: cython.int = self.n
        i: cython.int
        p: cython.int
        value: cython.double
        lu: cython.p_double = self.factors
        if self.by_user:                              # the user's object need not have this
            for i in range(n):
                out[i] = v[i]
            return
        for i in range(n):
            value = v[i] * lu[self.diagonal[i]]
            v[i] = value
            for p in range(self.diagonal[i] + 1, self.first[i + 1]):
                v[self.column[p]] -= lu[p] * value
        for i in range(n - 1, -1, -1):
            value = v[i]
            out[self.matched[i]] = value
            for p in range(self.first[i], self.diagonal[i]):
                v[self.column[p]] -= lu[p] * value

    def multiply(self, x, out, transposed):
        """Set `out` to A x, or to A^T x."""
        j: cython.int
        p: cython.int
        total: cython.double
        if transposed:
            for j in range(self.n):
                total = 0.0
                for p in range(self.start[j], self.start[j + 1]):
                    total += self.values[p] * x[self.row[p]]
                out[j] = total
            return
        for j in range(self.n):
            out[j] = 0.0
        for j in range(self.n):
            for p in range(self.start[j], self.start[j + 1]):
                out[self.row[p]] += self.values[p] * x[j]


def measure_rows(f):
    """Find the largest entry of each row, with every entry divided by its unknown's weight."""
    j: cython.int
    p: cython.int
    unit: cython.double
    for j in range(f.n):
        f.row_size[j] = 0.0
    for j in range(f.n):
        unit = 1.0 if f.weight is cython.NULL else 1.0 / f.weight[j]
        for p in range(f.start[j], f.start[j + 1]):
            f.row_size[f.row[p]] = max(f.row_size[f.row[p]], fabs(f.values[p]) * unit)
    for j in range(f.n):
        if f.row_size[j] == 0.0:
            f.row_size[j] = 1.0


def eliminate_within(f):
    """Factor row by row, without entries outside the pattern; pivots are stored as inverses."""
    n: cython.int = f.n
    i: cython.int
    k: cython.int
    p: cython.int
    q: cython.int
    factor: cython.double
    largest: cython.double
    pivot: cython.double
    lu: cython.p_double = f.factors
    f.replaced = 0
    for i in range(n):
        largest = 0.0
        for p in range(f.first[i], f.first[i + 1]):
            lu[p] = f.values[f.source[p]]
            f.place[f.column[p]] = p
            largest = max(largest, fabs(lu[p]) / weight_of(f, f.column[p], False))
        for p in range(f.first[i], f.diagonal[i]):
            k = f.column[p]
            factor = lu[p] * lu[f.diagonal[k]]
            lu[p] = factor
            if factor != 0.0:
                for q in range(f.diagonal[k] + 1, f.first[k + 1]):
                    if f.place[f.column[q]] >= 0:
                        lu[f.place[f.column[q]]] -= factor * lu[q]
        for p in range(f.first[i], f.first[i + 1]):
            f.place[f.column[p]] = -1
        if largest == 0.0:
            return SINGULAR
        pivot = lu[f.diagonal[i]]
        largest *= SMALLEST_PIVOT * weight_of(f, i, False)
        if not fabs(pivot) >= largest:
            f.replaced += 1
            pivot = -largest if pivot < 0.0 else largest
        lu[f.diagonal[i]] = 1.0 / pivot
    return OK


def integers(array):
    """Return the address of C integers."""
    view: cython.int[::1] = array
    return cython.address(view[0])
