"""The seam of matrices: what a way of storing and factoring them owns, and what it is asked for.

Newton's iteration needs F_y and F_y', two n-by-n matrices, and the factors of F_y + c F_y'. How
these are stored is nobody's business but that of the `Matrix` in `State.matrix`: it owns all
memory that grows faster than n, and every verb of the core works through the methods below, one
call per operation. `dense.py` is the first that fills the seam, `lapack.py` the second: it stores
as the first does and factors in its own way. Another one is a file with a class derived from
`Matrix` that has every method below, and a line in `tether.plan.memory` that says when to take it.

Which matrix is meant is said by a code (`codes.pxd`):

    OF_Y         F_y, by the last Jacobian
    OF_YP        F_y'
    ITERATION    what `assemble` or `assemble_split` has made of them, until it is factored

The two Jacobians are filled in three ways. A program (`machine.py`, `native.py`) writes its entries
straight into the vectors `fy` and `fyp`, of `room` numbers each; where an entry stands there was
settled when the program was made (the layout in `tether.trace.backend`). Differences put columns.
A function of the user's gives whole matrices, dense or sparse, to `put`.

Differences also need patterns: the rows in which each column has been seen to stand, of F_y
(OF_Y), of F_y' (OF_YP), and those in which it may stand (CANDIDATES), while one looks for them
(`sparsity.py`). They are kept here as well: a matrix that stores few entries has to know which.

Vectors have n numbers. Lists of rows are in ascending order, in memory for n of them.
"""

import cython
from cython.cimports.libc.math import fabs

if not cython.compiled:
    from tether._core.codes import SINGULAR


# An entry has changed if it differs by this share of itself: differences are less exact than this.
CHANGED = cython.declare(cython.double, 1e-3)


def has_changed(new, old, size, noise):
    """Tell whether an entry of F_y is another than in the last Jacobian.

    Its change, times the size of its unknown, is more than the noise of its equation.
    """
    change: cython.double = fabs(new - old)
    return change > CHANGED * max(fabs(new), fabs(old)) and change * size > noise


class Matrix:
    """F_y, F_y' and the factors of F_y + c F_y', however they are stored.

    Attributes
    ----------
    n : int
        Size.
    fy, fyp : vectors
        Entries of F_y and F_y', for programs.
    room : int
        Length of these vectors.
    arrays : dict
        Arrays that `State.array` shows by name.
    changes : bool
        Whether an entry of F_y may be another in the next Jacobian.
    follows : bool
        Whether there are no entries, but products at the point that was noted last.
    failed, error : bool, Exception
        Whether a linear solver of the user's has raised an exception, and which. Until that is
        raised again there are no factors, and solutions are not numbers.
    """

    if not cython.compiled:
        follows, changes = False, True

    # --- the Jacobians as a whole, from Python

    def clear(self):
        """Make all entries of F_y and F_y' zero."""
        raise NotImplementedError

    def put(self, which, matrix):
        """Take all entries of F_y or F_y' from a NumPy array or a SciPy sparse matrix."""
        raise NotImplementedError

    def get(self, which):
        """Return F_y or F_y' as an array of two dimensions; it may be the memory itself."""
        raise NotImplementedError

    def positions(self, rows, columns):
        """Return where entries of F_y or F_y' stand in the vectors `fy` and `fyp`."""
        raise NotImplementedError

    # --- their columns

    def put_column(self, which, j, rows, values, count):
        """Replace column j by these values in these rows, and zeros; return the largest change."""
        return 0.0

    def put_entries(self, which, j, rows, values, count):
        """Replace the entries of column j in these rows; the others stay."""

    def column(self, which, j, rows, values):
        """List the rows and values of the entries of column j that are not zero; return how many.

        NaN is not zero.
        """
        return 0

    # --- products and sizes

    def add_product(self, which, x, out):
        """Add the matrix times x to `out`; columns for which x is zero take no part."""

    def add_linear(self, y, yp, out):
        """Add F_y y + F_y' yp to `out`."""

    def add_sizes(self, which, x, out):
        """Add to `out` the sum of |entry x[column]| in each row."""

    def largest_in_rows(self, which, x, out):
        """Set `out` to the largest of |entry| x[column] in each row."""

    def largest_in_column(self, which, j, rows):
        """Return the largest of |entry| / rows[row] in column j, where the latter is positive."""
        return 0.0

    # --- entries of F_y that change from one Jacobian to the next

    def forget_changes(self):
        """Let every entry that is stored be one that may change."""
        p: cython.longlong
        self.changes = self.all_change = self.room > 0
        for p in range(self.room):
            self.changing[p] = 1

    def keep_jacobian(self):
        """Keep F_y in the memory of the iteration matrix, to compare the next one with it."""
        p: cython.longlong
        for p in range(self.room):
            self.made[p] = self.fy[p]

    def note_changes(self, first, size, noise):
        """Note which entries are not what they were; if it is the first time, these alone.

        `size` is that of the unknowns; a change of a term is seen if it is above `noise`.
        """

    def add_changing(self, x, out):
        """Add the entries that change, times x, to `out`."""

    def changing_in_row(self, i, x):
        """Return row i of F_y times x, of the entries that change."""
        return 0.0

    def size_of_row(self, i, y, yp, missing):
        """Return the sum of |entry y| and |entry y'| in row i of F_y and F_y'.

        Of entries that change this share is missing.
        """
        return 0.0

    # --- patterns, for differences

    def open_patterns(self):
        """Make memory for the patterns; they are empty."""
        raise NotImplementedError

    def rows_of(self, pattern, j, rows):
        """List the rows in which column j stands; return how many."""
        return 0

    def set_rows(self, pattern, j, rows, count):
        """Let column j stand in these rows alone."""

    def mark_rows(self, pattern, j, rows, count):
        """Let column j stand in these rows too; return whether one of them is new."""
        return False

    def meets(self, pattern, j, marks):
        """Tell whether column j stands in a row whose mark is not zero."""
        return False

    def take_difference(self, which, pattern, j, moved, unmoved, delta, share, rows, values):
        """Turn a moved residual into column j, in the rows of a pattern; tell if it is another one.

        It is, if it has changed by more than this share of its largest entry. `rows` and `values`
        are memory for the entries.
        """
        k: cython.int
        count: cython.int = self.rows_of(pattern, j, rows)
        size: cython.double = 0.0
        for k in range(count):
            values[k] = (moved[rows[k]] - unmoved[rows[k]]) / delta
            size = max(size, fabs(values[k]))
        return self.put_column(which, j, rows, values, count) > share * size

    # --- the iteration matrix and its factors

    def assemble(self, c):
        """Make F_y + c F_y'."""

    def scale(self, mode, c, rows, columns):
        """Multiply what was assembled by `rows` and `columns`, math (25).

        The factors of the columns are given, those of the rows are found here. By ROWS the largest
        entry of a row becomes 1. By KINDS a row is divided by the largest that stands in it of
        c times the factor of the column, for an entry of F_y', and this factor, for one of F_y.
        """

    def open_split(self, start, row):
        """Make memory for B with a basis whose entries stand in these rows; it may be large."""

    def assemble_split(self, of_y, start, row, basis):
        """Make B of math (15): of F_y the columns that are marked, of F_y' the others.

        With a basis, whose entries in column j are those from start[j] to start[j + 1], a column of
        B is the matrix times that of the basis; NULL stands for unit vectors.
        """

    def divide(self, rows, columns):
        """Divide what was assembled by `rows` and `columns`; return its 1-norm."""
        return 0.0

    def weigh(self, weight):
        """Measure solutions by these weights, if they are not exact; NULL: all entries alike."""

    def factor(self):
        """Factor what was assembled; return OK or SINGULAR, which a NaN or infinity is as well."""
        return SINGULAR

    def solve(self, b):
        """Solve in place with the factors."""

    def solve_well(self, b):
        """Solve in place, also where rows and columns are of very different sizes."""
        self.solve(b)

    def pivot_ratio(self):
        """Ratio of the largest to the smallest pivot: a lower estimate of the condition number."""
        return 0.0

    def reciprocal_condition(self, norm):
        """Estimate 1 / condition number from the factors; `norm` is the 1-norm of the matrix."""
        raise NotImplementedError
