"""Go through accepted steps again, with derivatives: forwards for tangents, or backwards.

A step of order k solves F(t_i, y_i, y'_i) = 0 with y'_i = c_0 y_i + c_1 y_(i-1) + ..., math (33).
Differentiated by a parameter, with s = dy/dp, it is linear, math (34):

    (F_y + c_0 F_y') s_i = -F_p - F_y' (c_1 s_(i-1) + ... + c_(k+1) s_(i-k-1)),

and then s_i is projected as y_i was, s_i -= Q (G_y s_i + G_p). Going back applies the transposes of
the same maps in the opposite order. Matrices are small here and stored by rows.
"""

import cython
import numpy as np
from cython.cimports.libc.math import fabs, sqrt

if not cython.compiled:
    from tether._core.arrays import address, integer_address
    from tether._core.codes import WIDTH

# Length left of a constraint, as a share, if it depends on others.
DEPENDENT = cython.declare(cython.double, 1e-7)
# If c F_y' is so much smaller than F_y, adding them loses digits that matter.
NEGLIGIBLE = cython.declare(cython.double, 1e-4)


def factor(a, pivot, n):
    """LU of a matrix stored by rows, with row exchanges; not finite if a pivot is zero."""
    i: cython.int
    j: cython.int
    k: cython.int
    row: cython.int
    x: cython.double
    inverse: cython.double
    for k in range(n):
        row = k
        for i in range(k + 1, n):
            if fabs(a[i * n + k]) > fabs(a[row * n + k]):
                row = i
        pivot[k] = row
        if row != k:
            for j in range(n):
                x = a[k * n + j]
                a[k * n + j] = a[row * n + j]
                a[row * n + j] = x
        inverse = 1.0 / a[k * n + k]
        a[k * n + k] = inverse
        for i in range(k + 1, n):
            if a[i * n + k] != 0.0:
                x = a[i * n + k] * inverse
                a[i * n + k] = x
                for j in range(k + 1, n):
                    a[i * n + j] -= x * a[k * n + j]


def solve(a, pivot, n, b, lines):
    """Solve in place with the factors; `b` has `lines` right-hand sides next to each other."""
    i: cython.int
    k: cython.int
    p: cython.int
    x: cython.double
    for k in range(n):
        i = pivot[k]
        if i != k:
            for p in range(lines):
                x = b[i * lines + p]
                b[i * lines + p] = b[k * lines + p]
                b[k * lines + p] = x
    for k in range(1, n):
        for i in range(k):
            x = a[k * n + i]
            if x != 0.0:
                for p in range(lines):
                    b[k * lines + p] -= x * b[i * lines + p]
    for k in range(n - 1, -1, -1):
        for i in range(k + 1, n):
            x = a[k * n + i]
            if x != 0.0:
                for p in range(lines):
                    b[k * lines + p] -= x * b[i * lines + p]
        x = a[k * n + k]
        for p in range(lines):
            b[k * lines + p] *= x


def invert(matrix, found):
    """Fill `found` with the inverse of a matrix in any units.

    Returns its condition in the norm of sums, with rows and columns of size 1, which is not finite
    where it is singular.
    """
    given: cython.double[:, ::1] = matrix
    result: cython.double[:, ::1] = found
    n: cython.int = given.shape[0]
    owned = np.zeros((2, n * n + 1)), np.zeros((2, n + 1)), np.zeros(n + 1, np.intc)
    row: cython.p_double = address(owned[1][0])
    column: cython.p_double = address(owned[1][1])
    a: cython.p_double = address(owned[0][0])
    b: cython.p_double = address(owned[0][1])
    pivot: cython.p_int = integer_address(owned[2])
    i: cython.int
    j: cython.int
    x: cython.double
    size: cython.double = 0.0
    inverse_size: cython.double = 0.0
    for i in range(n):
        for j in range(n):
            row[i] = max(row[i], fabs(given[i, j]))
    for i in range(n):
        for j in range(n):
            a[i * n + j] = given[i, j] / row[i]
            column[j] = max(column[j], fabs(a[i * n + j]))
        b[i * n + i] = 1.0
    for j in range(n):
        x = 0.0
        for i in range(n):
            a[i * n + j] /= column[j]
            x += fabs(a[i * n + j])
        size = max(size, x)
    factor(a, pivot, n)
    solve(a, pivot, n, b, n)
    for j in range(n):
        x = 0.0
        for i in range(n):
            x += fabs(b[i * n + j])
            result[i, j] = b[i * n + j] / column[i] / row[j]
        if not x <= inverse_size:
            inverse_size = x
    return size * inverse_size


def solve_transposed(a, pivot, n, b):
    """Solve with the transposed matrix in place."""
    i: cython.int
    k: cython.int
    x: cython.double
    for k in range(n):
        x = b[k] * a[k * n + k]
        b[k] = x
        for i in range(k + 1, n):
            b[i] -= a[k * n + i] * x
    for k in range(n - 1, 0, -1):
        x = b[k]
        for i in range(k):
            b[i] -= a[k * n + i] * x
    for k in range(n - 1, -1, -1):
        i = pivot[k]
        x = b[i]
        b[i] = b[k]
        b[k] = x


class Workspace:
    """Matrices of one step: those to solve with, and those for its projection.

    Parameters
    ----------
    slopes : Slopes
        Of the steps to come: numbers in rows, one row per step, and the positions of these numbers.
    lines : int
        Number of tangents that are solved for together.
    """

    def __init__(self, slopes, lines):
        n: cython.int = slopes.n
        m: cython.int = slopes.m
        p: cython.int = slopes.n_parameters
        self.n, self.m, self.lines = n, m, lines
        ends = np.cumsum([0, *(len(part) for part in slopes.places)])
        starts = ends[3] + np.searchsorted(slopes.places[3], n * np.arange(m + 1))
        whole = np.concatenate([*slopes.places, [0]])
        width = np.full(len(whole), n)
        width[ends[4] : ends[5]] = m           # rows of G_p have as many entries as G has
        self.integers = [
            whole.astype(np.intc), ends.astype(np.intc), starts.astype(np.intc),
            np.zeros(n, np.intc), (whole // width).astype(np.intc), (whole % width).astype(np.intc),
        ]
        self.place = integer_address(self.integers[0])
        self.begin = integer_address(self.integers[1])
        self.row_start = integer_address(self.integers[2])
        self.pivot = integer_address(self.integers[3])
        self.row = integer_address(self.integers[4])
        self.column = integer_address(self.integers[5])
        # one more number, since an empty array has no address
        self.arrays = [np.zeros(size + 1) for size in (
            n * n, n * n, p * n, m * n, p * m, n * n, m * n, m * m, m, m * lines, n * lines, n,
        )]
        self.fy, self.fyp = address(self.arrays[0]), address(self.arrays[1])
        self.fp, self.gy = address(self.arrays[2]), address(self.arrays[3])
        self.gp, self.lu = address(self.arrays[4]), address(self.arrays[5])
        self.rows, self.triangle = address(self.arrays[6]), address(self.arrays[7])
        self.length, self.left = address(self.arrays[8]), address(self.arrays[9])
        self.past, self.scale = address(self.arrays[10]), address(self.arrays[11])


def fill(w, values, first):
    """Copy the numbers of a step, from `first` on, into the matrices."""
    k: cython.int
    for k in range(w.begin[0], w.begin[1]):
        w.fy[w.place[k]] = values[first + k]
    for k in range(w.begin[1], w.begin[2]):
        w.fyp[w.place[k]] = values[first + k]
    for k in range(w.begin[2], w.begin[3]):
        w.fp[w.place[k]] = values[first + k]
    for k in range(w.begin[3], w.begin[4]):
        w.gy[w.place[k]] = values[first + k]
    for k in range(w.begin[4], w.begin[5]):
        w.gp[w.place[k]] = values[first + k]


def prepare(w, c):
    """Factor the matrix of a step, and that of its projection."""
    n: cython.int = w.n
    m: cython.int = w.m
    i: cython.int
    j: cython.int
    k: cython.int
    e: cython.int
    x: cython.double
    large: cython.double = 0.0
    small: cython.double = 0.0
    for i in range(n * n):
        w.lu[i] = w.fy[i] + c * w.fyp[i]
    factor(w.lu, w.pivot, n)
    for e in range(w.begin[0], w.begin[1]):
        large = max(large, fabs(w.fy[w.place[e]]))
    for e in range(w.begin[1], w.begin[2]):
        small = max(small, fabs(w.fyp[w.place[e]]))
    w.loses_digits = fabs(c) * small < NEGLIGIBLE * large
    for k in range(m):
        x = 0.0
        for e in range(w.row_start[k], w.row_start[k + 1]):
            j = w.column[e]
            w.rows[k * n + j] = w.gy[k * n + j] * w.scale[j]
            x += w.rows[k * n + j] * w.rows[k * n + j]
        x = sqrt(x)
        w.length[k] = x if x > 0.0 else 1.0
        for e in range(w.row_start[k], w.row_start[k + 1]):
            w.rows[w.place[e]] /= w.length[k]
    for i in range(m):
        for k in range(i + 1):
            x = 0.0
            for e in range(w.row_start[i], w.row_start[i + 1]):
                x += w.rows[w.place[e]] * w.rows[k * n + w.column[e]]
            for j in range(k):
                x -= w.triangle[i * m + j] * w.triangle[k * m + j]
            if k < i:
                w.triangle[i * m + k] = x * w.triangle[k * m + k]
            else:                              # zero if the row depends on others
                w.triangle[i * m + i] = 1.0 / sqrt(x) if x > DEPENDENT * DEPENDENT else 0.0


def solve_projection(w, lines):
    """Solve with the matrix of the projection in `w.left`, without dependent rows."""
    m: cython.int = w.m
    i: cython.int
    k: cython.int
    p: cython.int
    x: cython.double
    for i in range(m):
        for k in range(i):
            x = w.triangle[i * m + k]
            if x != 0.0:
                for p in range(lines):
                    w.left[i * lines + p] -= x * w.left[k * lines + p]
        for p in range(lines):
            w.left[i * lines + p] *= w.triangle[i * m + i]
    for i in range(m - 1, -1, -1):
        for k in range(i + 1, m):
            x = w.triangle[k * m + i]
            if x != 0.0:
                for p in range(lines):
                    w.left[i * lines + p] -= x * w.left[k * lines + p]
        for p in range(lines):
            w.left[i * lines + p] *= w.triangle[i * m + i]


def forwards(slopes, c, s, first, predictor, changes):
    """Take the steps that `slopes` belong to with the tangents in `s`, from row `first` on.

    `s` has the tangents before these rows: for every point a matrix with a line per unknown and a
    column per parameter. Row i of `changes`, if it has rows, receives the difference that step i
    has made to the prediction.
    """
    numbers = slopes.values.reshape(-1)
    values: cython.p_double = address(numbers)
    scales: cython.double[:, ::1] = slopes.scale
    cs: cython.double[:, ::1] = c
    tangents: cython.double[:, :, ::1] = s
    foreseen: cython.double[:, ::1] = predictor
    made: cython.double[:, :, ::1] = changes
    w: Workspace = Workspace(slopes, slopes.n_parameters)
    size: cython.Py_ssize_t = slopes.values.shape[1]
    count: cython.Py_ssize_t = slopes.values.shape[0]
    step: cython.Py_ssize_t
    i: cython.int
    k: cython.int
    new: cython.p_double
    old: cython.p_double
    if count == 0 or w.lines == 0:
        return
    for step in range(count):
        fill(w, values, step * size)
        for i in range(w.n if w.m > 0 else 0):
            w.scale[i] = scales[step, i]
        prepare(w, cs[step, 0])
        for i in range(w.n * w.lines):
            w.past[i] = 0.0
        subtract_past(w, tangents, first + step, cs, step)
        if cython.compiled:
            new = cython.address(tangents[first + step, 0, 0])
            old = cython.address(tangents[first + step - 1, 0, 0])
        else:
            new = tangents[first + step].reshape(-1)
            old = tangents[first + step - 1].reshape(-1)
        take_step(w, new, old, cs[step, 0])
        if made.shape[0] == 0:                 # not wanted
            continue
        for i in range(w.n * w.lines):
            w.past[i] = new[i]
        subtract_past(w, tangents, first + step, foreseen, step)
        for i in range(w.n):
            for k in range(w.lines):
                made[step, i, k] = w.past[i * w.lines + k]


def subtract_past(w, tangents, row, shares, step):
    """Subtract the weighted points before a row from `w.past`."""
    i: cython.int
    k: cython.int
    x: cython.double
    old: cython.p_double
    for k in range(1, WIDTH):
        x = shares[step, k]
        if x != 0.0:
            if cython.compiled:
                old = cython.address(tangents[row - k, 0, 0])
            else:
                old = tangents[row - k].reshape(-1)
            for i in range(w.n * w.lines):
                w.past[i] -= x * old[i]


def take_step(w, new, old, c):
    """Solve for the tangents at the end of a step, and project them.

    F_y + c F_y' has lost digits of c F_y' where that is tiny compared with F_y, but F_y times the
    previous tangents and c F_y' times them have not: then the change of the tangents is solved for.
    """
    n: cython.int = w.n
    m: cython.int = w.m
    lines: cython.int = w.lines
    e: cython.int
    i: cython.int
    j: cython.int
    k: cython.int
    p: cython.int
    x: cython.double
    for i in range(n * lines):
        new[i] = 0.0
    for e in range(w.begin[2], w.begin[3]):
        new[w.column[e] * lines + w.row[e]] = -w.fp[w.place[e]]
    if w.loses_digits:
        for i in range(n * lines):
            w.past[i] -= c * old[i]
    for e in range(w.begin[1], w.begin[2]):
        x = w.fyp[w.place[e]]
        i = w.row[e]
        j = w.column[e]
        for p in range(lines):
            new[i * lines + p] += x * w.past[j * lines + p]
    for e in range(w.begin[0], w.begin[1] if w.loses_digits else w.begin[0]):
        x = w.fy[w.place[e]]
        i = w.row[e]
        j = w.column[e]
        for p in range(lines):
            new[i * lines + p] -= x * old[j * lines + p]
    solve(w.lu, w.pivot, n, new, lines)
    if w.loses_digits:
        for i in range(n * lines):
            new[i] += old[i]
    if m == 0:
        return
    for i in range(m * lines):
        w.left[i] = 0.0
    for e in range(w.begin[4], w.begin[5]):
        w.left[w.column[e] * lines + w.row[e]] = w.gp[w.place[e]]
    for k in range(m):
        for e in range(w.row_start[k], w.row_start[k + 1]):
            x = w.gy[w.place[e]]
            j = w.column[e]
            for p in range(lines):
                w.left[k * lines + p] += x * new[j * lines + p]
        for p in range(lines):
            w.left[k * lines + p] /= w.length[k]
    solve_projection(w, lines)
    for k in range(m):
        for e in range(w.row_start[k], w.row_start[k + 1]):
            j = w.column[e]
            x = w.scale[j] * w.rows[w.place[e]]
            for p in range(lines):
                new[j * lines + p] -= x * w.left[k * lines + p]


def backwards(slopes, c, s, first, gradient, pull):
    """Go through the steps backwards; `s` has the derivatives by the values at the points.

    They are passed from the values of a step to the values before it; the part due to parameters is
    added to `gradient`, and row i of `pull` receives the part due to the constraints.
    """
    numbers = slopes.values.reshape(-1)
    values: cython.p_double = address(numbers)
    scales: cython.double[:, ::1] = slopes.scale
    cs: cython.double[:, ::1] = c
    weights: cython.double[:, :, ::1] = s
    total: cython.double[:, ::1] = gradient
    pulls: cython.double[:, :, ::1] = pull
    w: Workspace = Workspace(slopes, 1)
    n: cython.int = w.n
    m: cython.int = w.m
    size: cython.Py_ssize_t = slopes.values.shape[1]
    count: cython.Py_ssize_t = slopes.values.shape[0]
    step: cython.Py_ssize_t
    row: cython.Py_ssize_t
    e: cython.int
    i: cython.int
    k: cython.int
    line: cython.int
    x: cython.double
    b: cython.p_double
    if count == 0:
        return
    for step in range(count - 1, -1, -1):
        row = first + step
        fill(w, values, step * size)
        for i in range(n if m > 0 else 0):
            w.scale[i] = scales[step, i]
        prepare(w, cs[step, 0])
        for line in range(weights.shape[1]):
            b = cython.address(weights[row, line, 0]) if cython.compiled else weights[row, line]
            if m > 0:
                apply_transposed_projection(w, b)
                for k in range(m):
                    pulls[step, line, k] = w.left[k]
                for e in range(w.begin[4], w.begin[5]):
                    total[line, w.row[e]] -= w.gp[w.place[e]] * w.left[w.column[e]]
            solve_well_transposed(w, b, cs[step, 0])
            for e in range(w.begin[2], w.begin[3]):
                total[line, w.row[e]] -= w.fp[w.place[e]] * b[w.column[e]]
            for i in range(n):
                w.past[i] = 0.0
            for e in range(w.begin[1], w.begin[2]):
                w.past[w.column[e]] += w.fyp[w.place[e]] * b[w.row[e]]
            for k in range(1, WIDTH):
                x = cs[step, k]
                if x != 0.0:
                    for i in range(n):
                        weights[row - k, line, i] -= x * w.past[i]


def solve_well_transposed(w, b, c):
    """Solve with the transposed matrix of a step, and correct the solution once if necessary.

    The remainder is computed from F_y and c F_y' separately: their sum may have lost digits, see
    `take_step`.
    """
    n: cython.int = w.n
    e: cython.int
    i: cython.int
    for i in range(n):
        w.past[i] = b[i]
    solve_transposed(w.lu, w.pivot, n, b)
    if not w.loses_digits:
        return
    for e in range(w.begin[0], w.begin[1]):
        w.past[w.column[e]] -= w.fy[w.place[e]] * b[w.row[e]]
    for e in range(w.begin[1], w.begin[2]):
        w.past[w.column[e]] -= c * w.fyp[w.place[e]] * b[w.row[e]]
    solve_transposed(w.lu, w.pivot, n, w.past)
    for i in range(n):
        b[i] += w.past[i]


def apply_transposed_projection(w, b):
    """Apply the transposed projection to `b`; leave the part due to the constraints in `w.left`."""
    e: cython.int
    j: cython.int
    k: cython.int
    x: cython.double
    for k in range(w.m):
        x = 0.0
        for e in range(w.row_start[k], w.row_start[k + 1]):
            j = w.column[e]
            x += w.rows[w.place[e]] * w.scale[j] * b[j]
        w.left[k] = x
    solve_projection(w, 1)
    for k in range(w.m):
        w.left[k] /= w.length[k]
        for e in range(w.row_start[k], w.row_start[k + 1]):
            b[w.column[e]] -= w.gy[w.place[e]] * w.left[k]
