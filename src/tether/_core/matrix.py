"""The interface to matrices: what a way of storing and factoring them must provide.

Newton's iteration needs F_y and F_y', two n-by-n matrices, and the factors of F_y + c F_y'. Only
the `Matrix` in `State.matrix` knows how these are stored: it owns all memory that grows faster than
n, and every verb of the core works through the methods below, one call per operation. `dense.py` is
the first class of this kind; `lapack.py`, the second, stores matrices in the same way and factors
them differently. Another one is a file with a class derived from `Matrix` that has every method
below, and a line in `tether.plan.memory` that says when to use it.

A code says which matrix is meant (`codes.pxd`):

    OF_Y         F_y, from the last Jacobian
    OF_YP        F_y'
    ITERATION    what `assemble` or `assemble_split` has made of them, until it is factored

The two Jacobians are filled in three ways. A program (`machine.py`, `native.py`) writes its entries
straight into the vectors `fy` and `fyp`, of `room` numbers each; the positions were settled when
the program was made (the layout in `tether.trace.backend`). Differences replace columns. A user's
function returns whole matrices, dense or sparse, which go to `put`.

Differences also need patterns: the rows that each column has been seen to have, in F_y (OF_Y) and
in F_y' (OF_YP), and those that it may have (CANDIDATES), while they are being determined
(`sparsity.py`). They are kept here as well: a matrix that stores few entries must know which.

Vectors have n numbers. Lists of rows are in ascending order, in memory for n of them.
"""

import cython
from cython.cimports.libc.math import fabs

if not cython.compiled:
    from tether._core.codes import SINGULAR


# An entry has changed if it differs by this share of itself; differences are not exact enough for
# less.
CHANGED = cython.declare(cython.double, 1e-3)


def has_changed(new, old, size, noise):
    """Tell whether an entry of F_y has changed since the last Jacobian.

    Its change, times the size of its unknown, must be more than the noise of its equation.
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
        Arrays that `State.array` returns by name.
    changes : bool
        Whether an entry of F_y may change from one Jacobian to the next.
    has_no_entries : bool
        Whether no entries are stored, and products are those at the point noted last.
    failed, error : bool, Exception
        Whether a user's linear solver has raised an exception, and the exception. Until that is
        raised again there are no factors, and solutions are NaN.
    """

    if not cython.compiled:
        has_no_entries, changes = False, True

    # --- the Jacobians as a whole, from Python

    def clear(self):
        """Make all entries of F_y and F_y' zero."""
        raise NotImplementedError

    def put(self, which, matrix):
        """Replace all entries of F_y or F_y', from a NumPy array or a SciPy sparse matrix."""
        raise NotImplementedError

    def get(self, which):
        """Return F_y or F_y' as a two-dimensional array; it may be the memory itself."""
        raise NotImplementedError

    def positions(self, rows, columns):
        """Return the positions of entries of F_y or F_y' in the vectors `fy` and `fyp`."""
        raise NotImplementedError

    # --- their columns

    def put_column(self, which, j, rows, values, count):
        """Replace column j by these values in these rows; return the largest change."""
        return 0.0

    def put_entries(self, which, j, rows, values, count):
        """Replace the entries of column j in these rows and keep the others."""

    def column(self, which, j, rows, values):
        """List the rows and values of the nonzero entries of column j; return how many there are.

        NaN counts as nonzero.
        """
        return 0

    # --- products and sizes

    def add_product(self, which, x, out):
        """Add the matrix times x to `out`; columns for which x is zero are skipped."""

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
        """Assume that every stored entry may change."""
        p: cython.longlong
        self.changes = self.all_change = self.room > 0
        for p in range(self.room):
            self.changing[p] = 1

    def keep_jacobian(self):
        """Copy F_y to the memory of the iteration matrix, to compare the next one with it."""
        p: cython.longlong
        for p in range(self.room):
            self.made[p] = self.fy[p]

    def note_changes(self, first, size, noise):
        """Mark the entries that differ from before; if `first`, unmark all others.

        `size` is that of the unknowns; a change of a term counts if it is above `noise`.
        """

    def set_changes(self, x, share, remainder, product):
        """Set `product` to that of x with the entries that change.

        Subtract `share` F_y' x from `remainder`; rows without entries that change may be left out.
        """

    def changing_in_row(self, i, x):
        """Return row i of F_y times x, over the entries that change."""
        return 0.0

    def size_of_row(self, i, y, yp, missing):
        """Return the sum of |entry y| and |entry y'| in row i of F_y and F_y'.

        Entries that change count for 1 - `missing`.
        """
        return 0.0

    # --- patterns, for differences

    def open_patterns(self):
        """Allocate the patterns, which are empty."""
        raise NotImplementedError

    def rows_of(self, pattern, j, rows):
        """List the rows of column j; return how many there are."""
        return 0

    def set_rows(self, pattern, j, rows, count):
        """Replace the rows of column j."""

    def mark_rows(self, pattern, j, rows, count):
        """Add rows to column j; return whether one of them is new."""
        return False

    def meets(self, pattern, j, marks):
        """Tell whether column j has a row whose mark is not zero."""
        return False

    def take_difference(self, which, pattern, j, moved, unmoved, delta, share, rows, values):
        """Turn a moved residual into column j, in the rows of a pattern; tell if it has changed.

        It has if the change is more than this share of its largest entry. `rows` and `values` are
        memory for the entries.
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
        """Multiply the assembled matrix by `rows` and `columns`, math (25).

        The factors of the columns are given, those of the rows are computed here. With ROWS the
        largest entry of a row becomes 1. With KINDS a row is divided by its largest power: an entry
        of F_y' counts as c times the factor of its column, one of F_y as the factor itself.
        """

    def open_split(self, start, row):
        """Allocate B for a basis with entries in these rows; it may be large."""

    def assemble_split(self, of_y, start, row, basis):
        """Make B of math (15): the marked columns are those of F_y, the others those of F_y'.

        With a basis, whose column j has the entries from start[j] to start[j + 1], a column of B is
        the matrix times that of the basis; NULL means unit vectors.
        """

    def divide(self, rows, columns):
        """Divide the assembled matrix by `rows` and `columns`; return its 1-norm."""
        return 0.0

    def weigh(self, weight):
        """Measure inexact solutions with these weights; NULL: all entries alike."""

    def factor(self):
        """Factor the assembled matrix; return OK or SINGULAR, also for NaN or infinity."""
        return SINGULAR

    def solve(self, b):
        """Solve in place with the factors."""

    def solve_well(self, b):
        """Solve in place, accurately also when rows and columns differ greatly in size."""
        self.solve(b)

    def pivot_ratio(self):
        """Ratio of the largest to the smallest pivot: a lower estimate of the condition number."""
        return 0.0

    def reciprocal_condition(self, norm):
        """Estimate 1 / condition number from the factors; `norm` is the 1-norm of the matrix."""
        raise NotImplementedError
