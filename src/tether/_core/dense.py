"""Dense matrices, stored column by column, and their LU for small systems.

Up to about twenty unknowns this loop beats a call of LAPACK; above, `lapack.py` takes over.
"""

import cython
import numpy as np
from cython.cimports.libc.math import fabs

if not cython.compiled:
    from tether._core.arrays import address, byte_address, integer_address
    from tether._core.codes import OF_Y, OF_YP, OK, ROWS, SINGULAR
    from tether._core.matrix import Matrix, has_changed

PATTERNS = cython.declare(cython.int, 3)


def storage(d, which):
    """Memory of F_y, F_y' or the iteration matrix."""
    if which == OF_Y:
        return d.fy
    return d.fyp if which == OF_YP else d.lu


def list_entries(d, k, first, last, count):
    """List the entries of row k in the columns `first` to `last` after `count` others."""
    j: cython.int
    for j in range(first, last):
        d.entry_column[count] = j
        d.entry[count] = d.lu[j * d.n + k]
        count += d.entry[count] != 0.0
    return count


class Dense(Matrix):
    """The n-by-n arrays of a state: F_y, F_y', and the iteration matrix, which LU overwrites."""

    def __init__(self, n):
        size: cython.longlong = n * n
        self.n, self.room = n, size
        self.memory = np.zeros(4 * size + n)
        self.pivots = np.zeros(n, np.intc)
        self.pivot = integer_address(self.pivots)
        self.changing_owner, self.changes = np.empty(size, np.int8), True
        self.changing = byte_address(self.changing_owner)
        self.forget_changes()
        self.arrays = {
            "fy": (self.memory, 0, size), "fyp": (self.memory, size, 2 * size),
            "lu": (self.memory, 2 * size, 3 * size),
        }
        if cython.compiled:
            block: cython.p_double = address(self.memory)
            self.fy, self.fyp, self.lu = block, block + size, block + 2 * size
            self.moving = block + 3 * size
            self.pivot_inverse = self.moving + size
        else:
            self.fy, self.fyp, self.lu, self.moving, self.pivot_inverse = np.split(
                self.memory, (size, 2 * size, 3 * size, 4 * size)
            )
        self.made = self.lu                # factored in place
        self.open_factors()

    def open_factors(self):
        """Allocate the lists of `list_factors`."""
        n: cython.int = self.n
        places, values = np.zeros(self.room + 3 * n, np.intc), np.zeros(self.room + n)
        self.factor_lists = places, values
        if cython.compiled:
            self.order, self.entry = integer_address(places), address(values)
            self.upper_end, self.lower_end = self.order + n, self.order + 2 * n
            self.entry_column = self.order + 3 * n
            self.permuted = self.entry + self.room
        else:
            self.order, self.upper_end, self.lower_end, self.entry_column = np.split(
                places, (n, 2 * n, 3 * n)
            )
            self.entry, self.permuted = np.split(values, [self.room])

    # --- the Jacobians as a whole

    def clear(self):
        """Make all entries of F_y and F_y' zero."""
        i: cython.longlong
        for i in range(self.room):
            self.fy[i] = self.fyp[i] = 0.0

    def put(self, which, matrix):
        """Replace all entries of F_y or F_y'."""
        self.get(which)[:] = matrix.toarray() if hasattr(matrix, "toarray") else matrix

    def get(self, which):
        """Return F_y or F_y': the memory itself."""
        start = self.room if which == OF_YP else 0
        return self.memory[start : start + self.room].reshape(self.n, self.n).T

    def positions(self, rows, columns):
        """Return the positions of entries of F_y or F_y'."""
        return np.asarray(columns, int) * self.n + np.asarray(rows, int)

    # --- their columns

    def put_column(self, which, j, rows, values, count):
        """Replace column j; return the largest change."""
        n: cython.int = self.n
        i: cython.int
        k: cython.int
        change: cython.double = 0.0
        matrix: cython.p_double = storage(self, which)
        for k in range(count):
            change = max(change, fabs(values[k] - matrix[j * n + rows[k]]))
            matrix[j * n + rows[k]] = 0.0
        for i in range(n):                     # other rows seldom have entries
            if matrix[j * n + i] != 0.0:
                change = max(change, fabs(matrix[j * n + i]))
                matrix[j * n + i] = 0.0
        for k in range(count):
            matrix[j * n + rows[k]] = values[k]
        return change

    def put_entries(self, which, j, rows, values, count):
        """Replace the entries of column j in these rows."""
        k: cython.int
        matrix: cython.p_double = storage(self, which)
        for k in range(count):
            matrix[j * self.n + rows[k]] = values[k]

    def column(self, which, j, rows, values):
        """List the nonzero entries of column j."""
        n: cython.int = self.n
        i: cython.int
        count: cython.int = 0
        entry: cython.double
        matrix: cython.p_double = storage(self, which)
        for i in range(n):
            entry = matrix[j * n + i]
            if entry != 0.0:
                rows[count] = i
                values[count] = entry
                count += 1
        return count

    # --- products and sizes

    def add_product(self, which, x, out):
        """Add the matrix times x to `out`."""
        n: cython.int = self.n
        i: cython.int
        j: cython.int
        factor: cython.double
        matrix: cython.p_double = storage(self, which)
        for j in range(n):
            factor = x[j]
            if factor != 0.0:
                for i in range(n):
                    out[i] += matrix[j * n + i] * factor

    def add_linear(self, y, yp, out):
        """Add F_y y + F_y' yp to `out`."""
        n: cython.int = self.n
        i: cython.int
        j: cython.int
        value: cython.double
        slope: cython.double
        fy: cython.p_double = self.fy
        fyp: cython.p_double = self.fyp
        for j in range(n):
            value = y[j]
            slope = yp[j]
            for i in range(n):
                out[i] += fy[j * n + i] * value + fyp[j * n + i] * slope

    def add_sizes(self, which, x, out):
        """Add to `out` the sum of |entry x[column]| in each row."""
        n: cython.int = self.n
        i: cython.int
        j: cython.int
        factor: cython.double
        matrix: cython.p_double = storage(self, which)
        for j in range(n):
            factor = x[j]
            if factor != 0.0:
                for i in range(n):
                    out[i] += fabs(matrix[j * n + i] * factor)

    def largest_in_rows(self, which, x, out):
        """Set `out` to the largest of |entry| x[column] in each row."""
        n: cython.int = self.n
        i: cython.int
        j: cython.int
        factor: cython.double
        matrix: cython.p_double = storage(self, which)
        for i in range(n):
            out[i] = 0.0
        for j in range(n):
            factor = x[j]
            if factor != 0.0:
                for i in range(n):
                    out[i] = max(out[i], fabs(matrix[j * n + i]) * factor)

    def largest_in_column(self, which, j, rows):
        """Return the largest of |entry| / rows[row] in column j."""
        n: cython.int = self.n
        i: cython.int
        size: cython.double = 0.0
        matrix: cython.p_double = storage(self, which)
        for i in range(n):
            if rows[i] > 0.0:
                size = max(size, fabs(matrix[j * n + i]) / rows[i])
        return size

    # --- entries of F_y that change

    def note_changes(self, first, size, noise):
        """Mark the entries that differ from before; if `first`, unmark all others."""
        n: cython.int = self.n
        i: cython.int
        j: cython.int
        p: cython.longlong
        if first:
            for p in range(self.room):
                self.changing[p] = 0
            self.changes = self.all_change = False
        for j in range(n):
            for i in range(n):
                p = j * n + i
                if self.fy[p] != self.lu[p] and not self.changing[p] and has_changed(
                    self.fy[p], self.lu[p], size[j], noise[i]
                ):
                    self.changing[p] = 1
                    self.changes = True
        for p in range(self.room):
            self.moving[p] = self.fy[p] if self.changing[p] else 0.0

    def set_changes(self, x, share, remainder, product):
        """Set `product`, and subtract `share` F_y' x from `remainder`, row by row.

        With few unknowns sums in registers are faster than sums in memory, column by column.
        """
        n: cython.int = self.n
        i: cython.int
        j: cython.int
        total: cython.double
        slope: cython.double
        moving: cython.p_double = self.fy if self.all_change else self.moving
        fyp: cython.p_double = self.fyp
        for i in range(n):
            total = slope = 0.0
            for j in range(n):
                total += moving[j * n + i] * x[j]
                slope += fyp[j * n + i] * x[j]
            product[i] = total
            remainder[i] -= share * slope

    def changing_in_row(self, i, x):
        """Return row i of F_y times x, over the entries that change."""
        n: cython.int = self.n
        j: cython.int
        total: cython.double = 0.0
        moving: cython.p_double = self.fy if self.all_change else self.moving
        for j in range(n):
            total += moving[j * n + i] * x[j]
        return total

    def size_of_row(self, i, y, yp, missing):
        """Sum of |entry y| and |entry y'| in row i; entries that change count for 1 - `missing`."""
        n: cython.int = self.n
        j: cython.int
        size: cython.double
        total: cython.double = 0.0
        for j in range(n):
            total += fabs(self.fyp[j * n + i] * yp[j])
        for j in range(n):
            size = fabs(self.fy[j * n + i] * y[j])
            total += size * fabs(1.0 - missing) if self.changing[j * n + i] else size
        return total

    # --- patterns: a byte for every entry, 1 if it is in the pattern

    def open_patterns(self):
        """Allocate the patterns."""
        self.marks = np.zeros(PATTERNS * self.room, np.int8)
        if cython.compiled:
            view: cython.schar[::1] = self.marks
            self.in_pattern = cython.address(view[0])
        else:
            self.in_pattern = self.marks

    def rows_of(self, pattern, j, rows):
        """List the rows of column j."""
        n: cython.int = self.n
        i: cython.int
        count: cython.int = 0
        first: cython.longlong = pattern * self.room + j * n
        for i in range(n):
            if self.in_pattern[first + i]:
                rows[count] = i
                count += 1
        return count

    def set_rows(self, pattern, j, rows, count):
        """Replace the rows of column j."""
        n: cython.int = self.n
        i: cython.int
        first: cython.longlong = pattern * self.room + j * n
        for i in range(n):
            self.in_pattern[first + i] = 0
        for i in range(count):
            self.in_pattern[first + rows[i]] = 1

    def mark_rows(self, pattern, j, rows, count):
        """Add rows to column j; tell whether one is new."""
        k: cython.int
        new: cython.bint = False
        first: cython.longlong = pattern * self.room + j * self.n
        for k in range(count):
            if not self.in_pattern[first + rows[k]]:
                self.in_pattern[first + rows[k]] = 1
                new = True
        return new

    def meets(self, pattern, j, marks):
        """Tell whether column j has a marked row."""
        n: cython.int = self.n
        i: cython.int
        first: cython.longlong = pattern * self.room + j * n
        for i in range(n):
            if self.in_pattern[first + i] and marks[i] != 0.0:
                return True
        return False

    # --- the iteration matrix

    def assemble(self, c):
        """Make F_y + c F_y'."""
        i: cython.longlong
        fy: cython.p_double = self.fy
        fyp: cython.p_double = self.fyp
        lu: cython.p_double = self.lu
        for i in range(self.room):
            lu[i] = fy[i] + c * fyp[i]

    def scale(self, mode, c, rows, columns):
        """Find the scale factors of rows; multiply by them and those of columns, math (25)."""
        n: cython.int = self.n
        i: cython.int
        j: cython.int
        power: cython.double
        for i in range(n):
            rows[i] = 0.0
        for j in range(n):
            for i in range(n):
                if mode == ROWS:
                    power = fabs(self.lu[j * n + i])
                elif self.fyp[j * n + i] != 0.0:
                    power = c * columns[j]
                else:
                    power = columns[j] if self.fy[j * n + i] != 0.0 else 0.0
                rows[i] = max(rows[i], power)
        for i in range(n):
            rows[i] = 1.0 / rows[i] if rows[i] > 0.0 else 1.0
        for j in range(n):
            for i in range(n):
                self.lu[j * n + i] *= rows[i] * columns[j]

    def assemble_split(self, of_y, start, row, basis):
        """Make B = [F_y' R, F_y N] of math (15)."""
        n: cython.int = self.n
        i: cython.int
        j: cython.int
        k: cython.int
        p: cython.int
        share: cython.double
        matrix: cython.p_double
        for j in range(n):
            matrix = self.fy if of_y[j] else self.fyp
            if basis is cython.NULL:
                for i in range(n):
                    self.lu[j * n + i] = matrix[j * n + i]
                continue
            for i in range(n):
                self.lu[j * n + i] = 0.0
            for p in range(start[j], start[j + 1]):
                k = row[p]
                share = basis[p]
                for i in range(n):
                    self.lu[j * n + i] += share * matrix[k * n + i]

    def divide(self, rows, columns):
        """Divide by the factors of rows and columns; return the 1-norm."""
        n: cython.int = self.n
        i: cython.int
        j: cython.int
        entry: cython.double
        total: cython.double
        norm: cython.double = 0.0
        for j in range(n):
            total = 0.0
            for i in range(n):
                entry = self.lu[j * n + i] / rows[i] / columns[j]
                self.lu[j * n + i] = entry
                total += fabs(entry)
            norm = max(norm, total)
        return norm

    # --- its factors

    def factor(self):
        """Factor in place with row exchanges."""
        n: cython.int = self.n
        i: cython.int
        j: cython.int
        k: cython.int
        row: cython.int
        largest: cython.double
        x: cython.double
        lu: cython.p_double = self.lu
        for k in range(n):
            row = k
            largest = fabs(lu[k * n + k])
            for i in range(k + 1, n):
                if fabs(lu[k * n + i]) > largest:
                    largest = fabs(lu[k * n + i])
                    row = i
            self.pivot[k] = row
            if not largest > 0.0:          # also true of NaN
                return SINGULAR
            if row != k:
                for j in range(n):
                    x = lu[j * n + k]
                    lu[j * n + k] = lu[j * n + row]
                    lu[j * n + row] = x
            x = 1.0 / lu[k * n + k]
            self.pivot_inverse[k] = x
            for i in range(k + 1, n):
                lu[k * n + i] *= x
            for j in range(k + 1, n):
                x = lu[j * n + k]
                if x != 0.0:
                    for i in range(k + 1, n):
                        lu[j * n + i] -= x * lu[k * n + i]
        self.list_factors()
        return OK

    def list_factors(self):
        """List the entries of the factors that are not zero, and the order of the rows.

        Small matrices are sparse, too: half of their factors' entries are zero.
        """
        n: cython.int = self.n
        k: cython.int
        row: cython.int
        count: cython.int = 0
        for k in range(n):
            self.order[k] = k
        for k in range(n):
            row = self.order[self.pivot[k]]
            self.order[self.pivot[k]] = self.order[k]
            self.order[k] = row
            count = list_entries(self, k, 0, k, count)
            self.lower_end[k] = count
        for k in range(n - 1, -1, -1):
            count = list_entries(self, k, k + 1, n, count)
            self.upper_end[k] = count

    def solve(self, b):
        """Solve in place with the factors, row by row: sums stay in a register."""
        n: cython.int = self.n
        k: cython.int
        p: cython.int = 0
        last: cython.int
        x: cython.double
        column: cython.p_int = self.entry_column
        entry: cython.p_double = self.entry
        permuted: cython.p_double = self.permuted
        for k in range(n):
            x = b[self.order[k]]
            last = self.lower_end[k]
            while p < last:
                x -= entry[p] * permuted[column[p]]
                p += 1
            permuted[k] = x
        for k in range(n - 1, -1, -1):
            x = permuted[k]
            last = self.upper_end[k]
            while p < last:
                x -= entry[p] * b[column[p]]
                p += 1
            b[k] = x * self.pivot_inverse[k]

    def pivot_ratio(self):
        """Ratio of the largest to the smallest pivot; pivots are on the diagonal."""
        i: cython.int
        pivot: cython.double = fabs(self.lu[0])
        largest: cython.double = pivot
        smallest: cython.double = pivot
        for i in range(1, self.n):
            pivot = fabs(self.lu[i * (self.n + 1)])
            largest = max(largest, pivot)
            smallest = min(smallest, pivot)
        return largest / smallest

    def reciprocal_condition(self, norm):
        """Estimate the reciprocal condition number by LAPACK's gecon."""
        from scipy.linalg.lapack import dgecon  # late, to save time

        factors = self.memory[2 * self.room : 3 * self.room].reshape(self.n, self.n).T
        return float(dgecon(factors, norm)[0])
