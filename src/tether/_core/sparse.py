"""Sparse matrices: F_y and F_y' on one pattern, stored column by column.

The pattern is that of both together, so that F_y + c F_y' is formed in one loop. Programs know
theirs beforehand. If a difference or a user's function turns out to have an entry elsewhere, the
pattern grows; that is rare, and everything that depends on it is made again.
"""

import cython
import numpy as np
from cython.cimports.libc.math import fabs

from tether.base.blocks import zeros
from tether.base.pattern import Pattern

if not cython.compiled:
    from tether._core.arrays import address
    from tether._core.by_rows import ByRows
    from tether._core.codes import ITERATION, OF_Y, OF_YP, ROWS, SINGULAR
    from tether._core.matrix import Matrix, has_changed
    from tether._core.sparse_lu import SparseLU

PATTERNS = cython.declare(cython.int, 3)
# With up to so many unknowns, a start uses complete factors even if the run iterates.
MOST_EXACT = cython.declare(cython.int, 20_000)


def entries_of(m, which):
    """Memory of one of the matrices; B with a basis is stored separately."""
    if which == OF_Y:
        return m.fy
    if which == OF_YP:
        return m.fyp
    return m.split.made if m.mixed else m.made


def starts_of(m, which):
    """First entries of the columns of one of the matrices."""
    return m.split.start if which == ITERATION and m.mixed else m.start


def places_of(m, which):
    """Rows of the entries of one of the matrices."""
    return m.split.row if which == ITERATION and m.mixed else m.row


class Sparse(Matrix):
    """Matrices of one pattern.

    Parameters
    ----------
    pattern : Pattern
        Positions of the entries of F_y and F_y'.
    way : type
        Class of the factors, derived from `Factors`; `SparseLU` by default.
    iterates : bool
        Whether solutions are found by iteration, only as accurately as Newton's method needs.
    """

    def __init__(self, pattern, way=None, iterates=False):
        self.way = way or SparseLU
        self.iterates = iterates
        self.weight = cython.NULL
        self.marks = self.split = None
        self.store_on(pattern, zeros(3 * max(pattern.size, 1)).reshape(3, -1))

    def store_on(self, pattern, memory):
        """Store the matrices on a pattern, with these entries."""
        self.n, self.room, self.pattern, self.memory = pattern.n, pattern.size, pattern, memory
        self.mixed = self.exactly = False
        self.exact, self.by_rows = None, ByRows(pattern)
        self.arrays = {}
        self.integers = [pattern.start, pattern.row if pattern.size else np.zeros(1, np.intc)]
        self.fy, self.fyp, self.made = address(memory[0]), address(memory[1]), address(memory[2])
        self.changing_owner = np.ones(max(self.room, 1), np.int8)
        self.changes = self.all_change = True
        self.changing_places = np.empty((2, max(self.room, 1)), np.intc)
        if cython.compiled:
            changing: cython.schar[::1] = self.changing_owner
            self.changing = cython.address(changing[0])
            places: cython.int[:, ::1] = self.changing_places
            self.change_place = cython.address(places[0, 0])
            self.change_column = cython.address(places[1, 0])
            starts: cython.int[::1] = self.integers[0]
            rows: cython.int[::1] = self.integers[1]
            self.start, self.row = cython.address(starts[0]), cython.address(rows[0])
        else:
            self.start, self.row = self.integers
            self.changing = self.changing_owner
            self.change_place, self.change_column = self.changing_places
        self.rest = np.zeros(max(self.n, 1))
        self.left = address(self.rest)
        self.outdated = True  # factors of the old pattern are used until there are new ones

    @property
    def words(self):
        """Short description, for people."""
        factors = f", {self.lu.words}" if self.lu is not None else ""
        return f"sparse matrices of {self.room} entries{factors}"

    # --- the Jacobians as a whole

    def clear(self):
        """Make all entries of F_y and F_y' zero."""
        self.memory[:2] = 0.0

    def put(self, which, matrix):
        """Replace all entries of F_y or F_y'."""
        from scipy.sparse import coo_array  # late, to save time

        entries = self.memory[1 if which == OF_YP else 0]
        known = self.pattern.given.get(which)      # found in this run or another
        if known is not None and getattr(matrix, "format", "") == "csc" and (
            np.array_equal(matrix.indptr, known[0]) and np.array_equal(matrix.indices, known[1])
        ):
            entries[:] = 0.0
            entries[known[2]] = matrix.data
            return
        given = coo_array(matrix)
        given.sum_duplicates()
        rows, columns = given.coords
        places = self.positions(rows, columns)
        entries = self.memory[1 if which == OF_YP else 0]
        entries[:] = 0.0
        entries[places] = given.data
        self.pattern.given.pop(which, None)
        if getattr(matrix, "format", "") == "csc" and matrix.has_canonical_format:
            rows, columns = matrix.tocoo().coords
            places = self.pattern.positions(rows, columns)
            self.pattern.given[which] = matrix.indptr.copy(), matrix.indices.copy(), places

    def get(self, which):
        """F_y or F_y' as a SciPy matrix that shares the memory."""
        return self.pattern.matrix(self.memory[1 if which == OF_YP else 0, : self.room])

    def positions(self, rows, columns):
        """Return the positions of entries of F_y or F_y'; the pattern grows if it lacks them."""
        places = self.pattern.positions(rows, columns)
        if np.any(places < 0):
            self.extend(rows, columns)
            places = self.pattern.positions(rows, columns)
        return places

    def extend(self, rows, columns):
        """Add entries to the pattern."""
        old, memory, marks = self.pattern, self.memory, self.marks
        new = Pattern(self.n, (old.row, old.columns), (rows, columns))
        places = new.positions(old.row, old.columns)
        entries = np.zeros((3, new.size))
        entries[:, places] = memory[:, : old.size]
        self.store_on(new, entries)
        if marks is not None:
            self.open_patterns()
            self.marks[:, places] = marks[:, : old.size]

    # --- their columns

    def put_column(self, which, j, rows, values, count):
        """Replace column j; return the largest change."""
        k: cython.int
        p: cython.int
        change: cython.double = 0.0
        entry: cython.double
        entries: cython.p_double
        if grow(self, j, rows, count) != 0:
            return 1e300
        entries = entries_of(self, which)
        k = 0
        for p in range(self.start[j], self.start[j + 1]):
            entry = 0.0
            if k < count and rows[k] == self.row[p]:
                entry = values[k]
                k += 1
            change = max(change, fabs(entry - entries[p]))
            entries[p] = entry
        return change

    def put_entries(self, which, j, rows, values, count):
        """Replace the entries of column j in these rows."""
        k: cython.int
        entries: cython.p_double
        if grow(self, j, rows, count) != 0:
            return
        entries = entries_of(self, which)
        for k in range(count):
            entries[find(self, j, rows[k])] = values[k]

    def column(self, which, j, rows, values):
        """List the nonzero entries of column j."""
        p: cython.int
        count: cython.int = 0
        entries: cython.p_double = entries_of(self, which)
        for p in range(self.start[j], self.start[j + 1]):
            if entries[p] != 0.0:
                rows[count] = self.row[p]
                values[count] = entries[p]
                count += 1
        return count

    # --- products and sizes

    def add_product(self, which, x, out):
        """Add the matrix times x to `out`."""
        j: cython.int
        p: cython.int
        factor: cython.double
        entries: cython.p_double = entries_of(self, which)
        for j in range(self.n):
            factor = x[j]
            if factor != 0.0:
                for p in range(self.start[j], self.start[j + 1]):
                    out[self.row[p]] += entries[p] * factor

    def add_linear(self, y, yp, out):
        """Add F_y y + F_y' yp to `out`."""
        j: cython.int
        p: cython.int
        for j in range(self.n):
            for p in range(self.start[j], self.start[j + 1]):
                out[self.row[p]] += self.fy[p] * y[j] + self.fyp[p] * yp[j]

    def add_sizes(self, which, x, out):
        """Add to `out` the sum of |entry x[column]| in each row."""
        j: cython.int
        p: cython.int
        factor: cython.double
        entries: cython.p_double = entries_of(self, which)
        for j in range(self.n):
            factor = x[j]
            if factor != 0.0:
                for p in range(self.start[j], self.start[j + 1]):
                    out[self.row[p]] += fabs(entries[p] * factor)

    def largest_in_rows(self, which, x, out):
        """Set `out` to the largest of |entry| x[column] in each row."""
        i: cython.int
        j: cython.int
        p: cython.int
        start: cython.p_int = starts_of(self, which)
        row: cython.p_int = places_of(self, which)
        entries: cython.p_double = entries_of(self, which)
        for i in range(self.n):
            out[i] = 0.0
        for j in range(self.n):
            for p in range(start[j], start[j + 1]):
                i = row[p]
                out[i] = max(out[i], fabs(entries[p]) * x[j])

    def largest_in_column(self, which, j, rows):
        """Return the largest of |entry| / rows[row] in column j."""
        p: cython.int
        size: cython.double = 0.0
        start: cython.p_int = starts_of(self, which)
        row: cython.p_int = places_of(self, which)
        entries: cython.p_double = entries_of(self, which)
        for p in range(start[j], start[j + 1]):
            if rows[row[p]] > 0.0:
                size = max(size, fabs(entries[p]) / rows[row[p]])
        return size

    # --- entries of F_y that change

    def note_changes(self, first, size, noise):
        """Mark and list the entries that differ from before; if `first`, unmark all others."""
        j: cython.int
        p: cython.int
        count: cython.int = 0
        for j in range(self.n):
            for p in range(self.start[j], self.start[j + 1]):
                if self.fy[p] != self.made[p] and has_changed(
                    self.fy[p], self.made[p], size[j], noise[self.row[p]]
                ):
                    self.changing[p] = 1
                elif first:
                    self.changing[p] = 0
                self.change_place[count] = p
                self.change_column[count] = j
                count += self.changing[p]
        self.change_count = count
        self.changes = count > 0
        self.all_change = False

    def set_changes(self, x, share, remainder, product):
        """Set `product`, and subtract `share` F_y' x from `remainder`."""
        i: cython.int
        k: cython.int
        p: cython.int
        if share != 0.0:
            for i in range(self.n):
                product[i] = 0.0
            self.add_product(OF_YP, x, product)
            for i in range(self.n):
                remainder[i] -= share * product[i]
        for i in range(self.n):
            product[i] = 0.0
        if self.all_change:
            self.add_product(OF_Y, x, product)
            return
        for k in range(self.change_count):
            p = self.change_place[k]
            product[self.row[p]] += self.fy[p] * x[self.change_column[k]]

    def changing_in_row(self, i, x):
        """Return row i of F_y times x, over the entries that change."""
        return self.by_rows.changing(i, self.fy, self.changing, x)

    def size_of_row(self, i, y, yp, missing):
        """Sum of |entry y| and |entry y'| in row i; entries that change count for 1 - `missing`."""
        return self.by_rows.size(i, self.fy, self.fyp, self.changing, y, yp, missing)

    # --- patterns: a byte for every entry, 1 if it is in the pattern

    def open_patterns(self):
        """Allocate the patterns."""
        self.marks = np.zeros((PATTERNS, max(self.room, 1)), np.int8)
        flat = self.marks.reshape(-1)
        if cython.compiled:
            view: cython.schar[::1] = flat
            self.in_pattern = cython.address(view[0])
        else:
            self.in_pattern = flat

    def rows_of(self, pattern, j, rows):
        """List the rows of column j."""
        p: cython.int
        count: cython.int = 0
        first: cython.longlong = pattern * self.room
        for p in range(self.start[j], self.start[j + 1]):
            if self.in_pattern[first + p]:
                rows[count] = self.row[p]
                count += 1
        return count

    def set_rows(self, pattern, j, rows, count):
        """Replace the rows of column j."""
        p: cython.int
        first: cython.longlong = pattern * self.room
        for p in range(self.start[j], self.start[j + 1]):
            self.in_pattern[first + p] = 0
        self.mark_rows(pattern, j, rows, count)

    def mark_rows(self, pattern, j, rows, count):
        """Add rows to column j; tell whether one is new."""
        k: cython.int
        p: cython.int
        first: cython.longlong
        new: cython.bint = False
        if grow(self, j, rows, count) != 0:
            return True
        first = pattern * self.room
        for k in range(count):
            p = find(self, j, rows[k])
            if not self.in_pattern[first + p]:
                self.in_pattern[first + p] = 1
                new = True
        return new

    def meets(self, pattern, j, marks):
        """Tell whether column j has a marked row."""
        p: cython.int
        first: cython.longlong = pattern * self.room
        for p in range(self.start[j], self.start[j + 1]):
            if self.in_pattern[first + p] and marks[self.row[p]] != 0.0:
                return True
        return False

    def take_difference(self, which, pattern, j, moved, unmoved, delta, share, rows, values):
        """Turn a moved residual into column j, in one pass over its entries."""
        p: cython.int
        entry: cython.double
        size: cython.double = 0.0
        change: cython.double = 0.0
        first: cython.longlong = pattern * self.room
        entries: cython.p_double = entries_of(self, which)
        for p in range(self.start[j], self.start[j + 1]):
            entry = 0.0
            if self.in_pattern[first + p]:
                entry = (moved[self.row[p]] - unmoved[self.row[p]]) / delta
                size = max(size, fabs(entry))
            change = max(change, fabs(entry - entries[p]))
            entries[p] = entry
        return change > share * size

    def fill_pattern(self, pattern):
        """Let a pattern have all stored entries."""
        self.marks[pattern] = 1

    # --- the iteration matrix

    def assemble(self, c):
        """Make F_y + c F_y'."""
        p: cython.longlong
        self.mixed = self.exactly = False
        for p in range(self.room):
            self.made[p] = self.fy[p] + c * self.fyp[p]

    def scale(self, mode, c, rows, columns):
        """Find the scale factors of rows; multiply by them and those of columns, math (25)."""
        i: cython.int
        j: cython.int
        p: cython.int
        power: cython.double
        for i in range(self.n):
            rows[i] = 0.0
        for j in range(self.n):
            for p in range(self.start[j], self.start[j + 1]):
                if mode == ROWS:
                    power = fabs(self.made[p])
                elif self.fyp[p] != 0.0:
                    power = c * columns[j]
                else:
                    power = columns[j] if self.fy[p] != 0.0 else 0.0
                rows[self.row[p]] = max(rows[self.row[p]], power)
        for i in range(self.n):
            rows[i] = 1.0 / rows[i] if rows[i] > 0.0 else 1.0
        for j in range(self.n):
            for p in range(self.start[j], self.start[j + 1]):
                self.made[p] *= rows[self.row[p]] * columns[j]

    def open_split(self, start, row):
        """Allocate a separate matrix for B: a basis combines columns, and thus their patterns."""
        from scipy.sparse import csc_array  # late, to save time

        shape = self.n, self.n
        basis = csc_array((np.ones(len(row)), row, start), shape=shape)
        product = (self.pattern.matrix(np.ones(self.room)) @ basis).tocoo()
        self.split = Sparse(Pattern(self.n, product.coords))

    def assemble_split(self, of_y, start, row, basis):
        """Make B = [F_y' R, F_y N] of math (15)."""
        j: cython.int
        k: cython.int
        p: cython.int
        q: cython.int
        entries: cython.p_double
        made: cython.p_double
        self.mixed = start is not cython.NULL
        self.exactly = self.iterates and self.n <= MOST_EXACT
        if not self.mixed:
            for j in range(self.n):
                entries = self.fy if of_y[j] else self.fyp
                for p in range(self.start[j], self.start[j + 1]):
                    self.made[p] = entries[p]
            return
        made = self.split.made
        for p in range(self.split.room):
            made[p] = 0.0
        for j in range(self.n):
            entries = self.fy if of_y[j] else self.fyp
            for q in range(start[j], start[j + 1]):
                k = row[q]
                for p in range(self.start[k], self.start[k + 1]):
                    made[find(self.split, j, self.row[p])] += basis[q] * entries[p]

    def divide(self, rows, columns):
        """Divide by the factors of rows and columns; return the 1-norm."""
        j: cython.int
        p: cython.int
        total: cython.double
        norm: cython.double = 0.0
        start: cython.p_int = starts_of(self, ITERATION)
        row: cython.p_int = places_of(self, ITERATION)
        entries: cython.p_double = entries_of(self, ITERATION)
        for j in range(self.n):
            total = 0.0
            for p in range(start[j], start[j + 1]):
                entries[p] = entries[p] / rows[row[p]] / columns[j]
                total += fabs(entries[p])
            norm = max(norm, total)
        return norm

    # --- its factors

    def open_factors(self):
        """Return the factors; the order of elimination is determined at first use."""
        if self.outdated:
            self.lu, self.outdated = self.way(self.pattern), False
        return self.lu

    def weigh(self, weight):
        """Measure inexact solutions with these weights."""
        self.weight = weight

    def factor(self):
        """Factor the assembled matrix, with the last pivots if they are good enough."""
        if self.mixed:
            return self.split.factor()
        if self.exactly:
            return factor_exactly(self)
        if self.outdated:
            with cython.gil:
                try:
                    self.open_factors()
                except MemoryError:
                    return SINGULAR
        self.lu.weigh(self.weight)
        status: cython.int = self.lu.factor(self.made)
        self.take_error()
        return status

    def solve(self, b):
        """Solve in place with the factors."""
        if self.mixed:
            self.split.solve(b)
        elif self.exactly:
            self.exact.solve(b)
        else:
            self.lu.solve(b)
            self.take_error()

    def take_error(self):
        """Take over an exception of a user's object."""
        if self.lu.failed:
            with cython.gil:
                self.failed, self.error = True, self.lu.error

    def solve_well(self, b):
        """Solve in place and correct the solution once, by its residual.

        Pivots that keep the factors sparse do not always keep them accurate (Skeel, Math. Comput.
        35, 1980, 817-832).
        """
        j: cython.int
        p: cython.int
        start: cython.p_int = starts_of(self, ITERATION)
        row: cython.p_int = places_of(self, ITERATION)
        entries: cython.p_double = entries_of(self, ITERATION)
        for j in range(self.n):
            self.left[j] = b[j]
        self.solve(b)
        for j in range(self.n):
            for p in range(start[j], start[j + 1]):
                self.left[row[p]] -= entries[p] * b[j]
        self.solve(self.left)
        for j in range(self.n):
            b[j] += self.left[j]

    def pivot_ratio(self):
        """Ratio of the largest to the smallest pivot."""
        return self.lu.pivot_ratio()

    def reciprocal_condition(self, norm):
        """Estimate the reciprocal condition number by a few solutions (Higham's estimator)."""
        from scipy.sparse.linalg import LinearOperator, onenormest  # late, to save time

        inverse = LinearOperator(
            (self.n, self.n), matvec=self.solution, rmatvec=self.transposed_solution, dtype=float
        )
        return float(1.0 / (norm * onenormest(inverse)))

    def solution(self, b):
        """Return the solution of A x = b, for callers outside the core."""
        x = np.array(b, float).reshape(-1)
        self.lu.solve(address(x))
        return x

    def transposed_solution(self, b):
        """Return the solution of A^T x = b."""
        x = np.array(b, float).reshape(-1)
        self.lu.solve_transposed(address(x))
        return x


def factor_exactly(m):
    """Factor the assembled matrix completely for a start, for which iterations are too inexact."""
    with cython.gil:
        try:
            if m.exact is None:
                m.exact = SparseLU(m.pattern)
        except MemoryError:
            return SINGULAR
    return m.exact.factor(m.made)


def find(m, j, row):
    """Position of the entry of column j in a row; -1 if there is none."""
    low: cython.int = m.start[j]
    high: cython.int = m.start[j + 1]
    middle: cython.int
    while low < high:
        middle = (low + high) // 2
        if m.row[middle] < row:
            low = middle + 1
        else:
            high = middle
    return low if low < m.start[j + 1] and m.row[low] == row else -1


def grow(m, j, rows, count):
    """Add these rows of column j to the pattern; return 0, or -1 if there is no memory."""
    k: cython.int
    for k in range(count):
        if find(m, j, rows[k]) < 0:
            with cython.gil:
                try:
                    m.extend([rows[i] for i in range(count)], np.full(count, j))
                except MemoryError:
                    return -1
            return 0
    return 0
