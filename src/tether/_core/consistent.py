"""Consistent y and y' for a system of index 0 or 1.

The unknowns are split by the null space of F_y': those that y' determines (differential) keep y and
get a new y'; those whose y' does not matter (algebraic) get a new y. With R a basis of the
complement and N a basis of the null space, math (15),

    F(t, y + N b, y' + R a) = 0   for (a, b),    B = [F_y' R, F_y N],

and B is invertible exactly when the index is at most 1. The slopes of the algebraic part
follow from d/dt F = 0 with the same matrix, math (16) (HK Appendix II, eq. 21-23).
"""

import cython
import numpy as np
from cython.cimports.libc.math import fabs, floor, sqrt

from tether.base.blocks import zeros

if not cython.compiled:
    from tether._core.adapters import evaluate
    from tether._core.arrays import address, doubles_of, integer_address
    from tether._core.codes import (
        AS_GIVEN,
        ITERATION,
        MAX_NORM,
        NO_CONVERGENCE,
        NON_FINITE,
        OF_Y,
        OF_YP,
        OK,
        SINGULAR,
        USER_EXCEPTION,
    )
    from tether._core.jacobian import largest
    from tether._core.norms import all_finite, set_weights, weighted_norm

ROOT_EPS = cython.declare(cython.double, 2.0**-26)
EPS = cython.declare(cython.double, 2.0**-52)
MAX_ITERATIONS = cython.declare(cython.int, 30)
MAX_HALVINGS = cython.declare(cython.int, 12)
# A derivative counts as absent if its share is below this in all equations.
ABSENT = cython.declare(cython.double, 1e-14)
LARGEST_CONDITION = cython.declare(cython.double, 1e14)
PROBES = cython.declare(cython.int, 4)
# In tolerances: a start whose correction is below this is consistent as given.
NEGLIGIBLE = cython.declare(cython.double, 1e-2)
# Newton increments relatively below this are round-off.
CONVERGED = cython.declare(cython.double, 1e-10)
# After so many negligible corrections in a row the search has converged, even if each still reduces
# the residual a little: an unknown may be far below the round-off of its equations.
SETTLED = cython.declare(cython.int, 8)
UNKNOWN = cython.declare(cython.double, float("nan"))


class ConsistentSearch:
    """The search for consistent values near a point, and the memory it takes.

    Parameters
    ----------
    s : State
        The equations; its weights, Jacobian and matrix are those of the search afterwards.
    t : float
        Time.
    y, yp : ndarray
        The point.
    scale : float
        Time scale of the solution.
    """

    def __init__(self, s, t, y, yp, scale):
        n: cython.int = s.n
        self.s, self.n, self.t, self.scale = s, n, t, scale
        numbers, marks = zeros(11 * n), np.zeros(n, np.intc)
        self.arrays = [numbers, marks]
        if cython.compiled:
            memory: cython.p_double = address(numbers)
            self.y, self.yp, self.ypp, self.r = memory, memory + n, memory + 2 * n, memory + 3 * n
            self.dy, self.dyp, self.x = memory + 4 * n, memory + 5 * n, memory + 6 * n
            self.y_tried, self.yp_tried = memory + 7 * n, memory + 8 * n
            self.rows, self.columns = memory + 9 * n, memory + 10 * n
        else:
            (self.y, self.yp, self.ypp, self.r, self.dy, self.dyp, self.x, self.y_tried,
             self.yp_tried, self.rows, self.columns) = np.split(numbers, 11)
        self.algebraic = integer_address(marks)
        y, yp = doubles_of(y, n), doubles_of(yp, n)
        begin_search(self, address(y), address(yp))

    def split_by(self, basis, dual, algebraic):
        """Take R and N from the columns of `basis`, not unit vectors; `algebraic` marks those of N.

        The columns of `dual`, the inverse transposed, give the coordinates of a vector. Both are
        arrays, or sparse matrices stored by columns.
        """
        self.arrays[1][:] = algebraic
        parts = [*columns_of(basis), *columns_of(dual)]
        self.arrays += parts
        self.with_basis = True
        if cython.compiled:
            starts: cython.int[::1] = parts[0]
            rows: cython.int[::1] = parts[1]
            values: cython.double[::1] = parts[2]
            dual_starts: cython.int[::1] = parts[3]
            dual_rows: cython.int[::1] = parts[4]
            dual_values: cython.double[::1] = parts[5]
            self.basis_start = cython.address(starts[0])
            self.basis_row = cython.address(rows[0])
            self.basis = cython.address(values[0])
            self.dual_start = cython.address(dual_starts[0])
            self.dual_row = cython.address(dual_rows[0])
            self.dual = cython.address(dual_values[0])
        else:
            self.basis_start, self.basis_row, self.basis = parts[:3]
            self.dual_start, self.dual_row, self.dual = parts[3:]
        self.s.matrix.open_split(*parts[:2])

    def run(self, slopes_given):
        """Search from the current values; return OK, AS_GIVEN, or why nothing was found.

        SINGULAR means that B is singular; with the right R and N the index is then above 1.
        """
        return find_consistent(self, self.s, slopes_given)

    def renew(self):
        """Evaluate the Jacobian at the current values, unless it is known; tell if it is finite.

        The state must have weights from an earlier search.
        """
        if self.fresh:
            return True
        if evaluate(self.s, self.t, self.y, self.yp, self.r) != OK:
            return False
        return renew_jacobian(self, self.s)

    @property
    def jacobian(self):
        """F_y and F_y' as last evaluated."""
        return self.s.matrix.get(OF_Y), self.s.matrix.get(OF_YP)

    def values(self):
        """Return y, y', y'' (NaN where it could not be found) and the residual."""
        numbers, n = self.arrays[0], self.n
        return numbers[:n], numbers[n : 2 * n], numbers[2 * n : 3 * n], numbers[3 * n : 4 * n]

    def rows_scale(self):
        """Return how far changes within the tolerances move each equation."""
        return self.arrays[0][9 * self.n : 10 * self.n]

    def differential(self):
        """Components of y that were kept; empty if only combinations were."""
        if self.with_basis:
            return ()
        j: cython.int
        kept = []
        for j in range(self.n):                # a function of NumPy's takes ten times as long
            if not self.algebraic[j]:
                kept.append(j)
        return tuple(kept)


def columns_of(matrix):
    """Return the starts of a matrix's columns, the rows and the values of its entries."""
    if hasattr(matrix, "indptr"):
        start, row, value = matrix.indptr, matrix.indices, matrix.data
    else:
        column, row = np.nonzero(matrix.T)
        start = np.searchsorted(column, np.arange(matrix.shape[1] + 1))
        value = matrix[row, column]
    return start.astype(np.intc), row.astype(np.intc), np.array(value, float)


def begin_search(c, y, yp):
    """Reset the search to another point."""
    i: cython.int
    c.with_basis = c.fresh = c.moved = False
    for i in range(c.n):
        c.y[i] = y[i]
        c.yp[i] = yp[i]
        c.algebraic[i] = 0


def find_consistent(c, s, slopes_given):
    """Find consistent values; keep the given ones untouched if they already are."""
    i: cython.int
    iteration: cython.int
    status: cython.int
    settled: cython.int = 0
    converged: cython.bint = False
    s.h = s.direction * c.scale                # differences use it
    s.t = c.t
    for i in range(c.n):
        s.phi[i] = c.y[i]
    status = set_weights(s)
    if status != OK:
        return status
    if c.scale * weighted_norm(s, c.yp, s.weight, MAX_NORM) < EPS:
        for i in range(c.n):                   # too small to scale the increments of differences
            c.yp[i] = 0.0
    c.before = c.after = 0.0
    if evaluate(s, c.t, c.y, c.yp, c.r) != OK:
        return NON_FINITE
    c.before = c.after = largest(c.r, c.n)
    for iteration in range(MAX_ITERATIONS):
        status = split(c, s)
        if status != OK:
            return status
        for i in range(c.n):
            c.x[i] = -c.r[i]
        solve_split(c, s)
        if iteration == 0 and slopes_given and is_negligible(c, s):
            find_slopes(c, s)
            return AS_GIVEN
        if not take_damped(c, s):                 # round-off: no step reduces the residual
            converged = is_negligible(c, s) or is_small(c, s)
            break
        settled = settled + 1 if is_negligible(c, s) else 0
        converged = is_small(c, s) or settled == SETTLED
        if converged:
            break
    c.after = largest(c.r, c.n)
    if not converged:
        return NO_CONVERGENCE
    find_slopes(c, s)
    return OK


def split(c, s):
    """Factor B of math (15) at the present point."""
    if not c.fresh and not renew_jacobian(c, s):
        return SINGULAR
    if not c.with_basis:
        mark_algebraic(c, s)
    if c.with_basis:
        s.matrix.assemble_split(c.algebraic, c.basis_start, c.basis_row, c.basis)
    else:
        s.matrix.assemble_split(c.algebraic, cython.NULL, cython.NULL, cython.NULL)
    s.matrix.weigh(cython.NULL)
    size: cython.double = equilibrate(c, s)
    if s.matrix.factor() != OK or not size * largest_response(c, s) < LARGEST_CONDITION:
        return SINGULAR
    return OK


def renew_jacobian(c, s):
    """Evaluate the Jacobian at the current point; tell whether it is finite."""
    i: cython.int
    for i in range(c.n):
        s.r[i] = c.r[i]
        s.y[i] = c.y[i]
        s.yp[i] = c.yp[i]
    s.njev += 1
    s.jacobian_exists = s.jacobian(s, c.t, s.y, s.yp) == OK
    s.jacobian_step = s.steps
    if not s.jacobian_exists:
        return False
    c.fresh = all_finite(s.matrix.fy, s.matrix.room) and all_finite(s.matrix.fyp, s.matrix.room)
    return c.fresh


def mark_algebraic(c, s):
    """Mark unknowns as algebraic whose derivative appears in no equation.

    A derivative is judged by its share in each equation, so the units of equations do not matter.
    """
    j: cython.int
    share: cython.double
    s.matrix.largest_in_rows(OF_YP, s.tolerance, c.rows)
    for j in range(c.n):
        share = s.matrix.largest_in_column(OF_YP, j, c.rows) * s.tolerance[j]
        c.algebraic[j] = not share > ABSENT


def equilibrate(c, s):
    """Divide rows, then columns of B by their largest entries; return its 1-norm.

    The size of a row is how far a change within the tolerances moves it: a residual divided by it
    is, in any units, as large as the changes that remove it.
    """
    n: cython.int = c.n
    i: cython.int
    j: cython.int
    for j in range(n):
        c.x[j] = unit_of(c, s, j)
    s.matrix.largest_in_rows(ITERATION, c.x, c.rows)
    for i in range(n):
        if c.rows[i] == 0.0:
            c.rows[i] = 1.0
    for j in range(n):
        c.columns[j] = s.matrix.largest_in_column(ITERATION, j, c.rows)
        if c.columns[j] == 0.0:
            c.columns[j] = 1.0
    return s.matrix.divide(c.rows, c.columns)


def unit_of(c, s, j):
    """Multiple of column j of the basis that amounts to one tolerance."""
    p: cython.int
    size: cython.double = s.weight[j]
    if c.with_basis:
        size = 0.0
        for p in range(c.basis_start[j], c.basis_start[j + 1]):
            size = max(size, fabs(c.basis[p]) * s.weight[c.basis_row[p]])
    return 1.0 / size if c.algebraic[j] else 1.0 / (size * c.scale)


def largest_response(c, s):
    """Estimate the norm of the inverse from its products with a few irregular vectors."""
    i: cython.int
    probe: cython.int
    total: cython.double
    place: cython.double
    response: cython.double = 0.0
    for probe in range(PROBES):
        for i in range(c.n):
            place = (1.0 + i) * (0.6180339887498949 + 0.0704 * probe)
            c.x[i] = 2.0 * (place - floor(place)) - 1.0
        s.matrix.solve(c.x)
        total = 0.0
        for i in range(c.n):
            total += fabs(c.x[i])
        if not total <= response:              # also true of NaN
            response = total
    return response


def solve_split(c, s):
    """Solve F_y dy + F_y' dyp = x with dy in the null space of F_y'."""
    i: cython.int
    for i in range(c.n):
        c.x[i] /= c.rows[i]
    s.matrix.solve_well(c.x)
    for i in range(c.n):
        c.x[i] /= c.columns[i]
        c.dy[i] = c.x[i] if c.algebraic[i] else 0.0
        c.dyp[i] = 0.0 if c.algebraic[i] else c.x[i]
    if c.with_basis:
        expand(c, c.dy)
        expand(c, c.dyp)


def expand(c, v):
    """Replace the coordinates `v` by the vector they belong to."""
    i: cython.int
    j: cython.int
    p: cython.int
    for i in range(c.n):
        c.x[i] = 0.0
    for j in range(c.n):
        for p in range(c.basis_start[j], c.basis_start[j + 1]):
            c.x[c.basis_row[p]] += c.basis[p] * v[j]
    for i in range(c.n):
        v[i] = c.x[i]


def take_damped(c, s):
    """Take the longest of the steps 1, 1/2, 1/4, ... that makes the residual smaller."""
    i: cython.int
    halving: cython.int
    status: cython.int
    size: cython.double = 0.0
    tried: cython.double
    length: cython.double = 1.0
    for i in range(c.n):
        size += (c.r[i] / c.rows[i]) ** 2
    for halving in range(MAX_HALVINGS):
        for i in range(c.n):
            c.y_tried[i] = c.y[i] + length * c.dy[i]
            c.yp_tried[i] = c.yp[i] + length * c.dyp[i]
        status = evaluate(s, c.t, c.y_tried, c.yp_tried, s.r)
        if status == USER_EXCEPTION:
            return False
        if status == OK:
            tried = 0.0
            for i in range(c.n):
                tried += (s.r[i] / c.rows[i]) ** 2
            if sqrt(tried) <= (1.0 - 1e-4 * length) * sqrt(size):
                c.fresh = False
                c.moved = True
                for i in range(c.n):
                    c.y[i] = c.y_tried[i]
                    c.yp[i] = c.yp_tried[i]
                    c.r[i] = s.r[i]
                return True
        length /= 2.0
    return False


def is_negligible(c, s):
    """Tell whether the correction is far below the tolerance over the first step."""
    slope: cython.double = weighted_norm(s, c.yp, s.weight, MAX_NORM)
    h: cython.double = min(c.scale, 0.5 / slope) if slope > 0.0 else c.scale
    return (
        weighted_norm(s, c.dy, s.weight, MAX_NORM) <= NEGLIGIBLE
        and h * weighted_norm(s, c.dyp, s.weight, MAX_NORM) <= NEGLIGIBLE
    )


def is_small(c, s):
    """Tell whether Newton has converged to about round-off."""
    i: cython.int
    for i in range(c.n):
        if not fabs(c.dy[i]) <= CONVERGED * max(fabs(c.y[i]), s.tolerance[i]):
            return False
    return weighted_norm(s, c.dyp, s.weight, MAX_NORM) <= CONVERGED * max(
        weighted_norm(s, c.yp, s.weight, MAX_NORM),
        weighted_norm(s, c.y, s.weight, MAX_NORM) / c.scale,
    )


def find_slopes(c, s):
    """Solve math (16) for what F does not determine: algebraic slopes, with y'' of the rest."""
    n: cython.int = c.n
    i: cython.int
    dt: cython.double = ROOT_EPS * max(fabs(c.t), c.scale) * s.direction
    forget_algebraic_slopes(c)
    if evaluate(s, c.t + dt, c.y, c.yp, s.r) != OK:
        dt = -dt
        if evaluate(s, c.t + dt, c.y, c.yp, s.r) != OK:
            for i in range(n):
                c.ypp[i] = UNKNOWN
            return
    for i in range(n):
        c.x[i] = -(s.r[i] - c.r[i]) / dt
        c.dyp[i] = -c.yp[i]
    s.matrix.add_product(OF_Y, c.dyp, c.x)
    solve_split(c, s)
    for i in range(n):
        c.yp[i] += c.dy[i]
        c.ypp[i] = c.dyp[i]


def forget_algebraic_slopes(c):
    """Remove the part of y' on which F does not depend."""
    n: cython.int = c.n
    i: cython.int
    j: cython.int
    p: cython.int
    if not c.with_basis:
        for i in range(n):
            if c.algebraic[i]:
                c.yp[i] = 0.0
        return
    for j in range(n):
        c.dyp[j] = 0.0
        if not c.algebraic[j]:
            for p in range(c.dual_start[j], c.dual_start[j + 1]):
                c.dyp[j] += c.dual[p] * c.yp[c.dual_row[p]]
    expand(c, c.dyp)
    for i in range(n):
        c.yp[i] = c.dyp[i]
