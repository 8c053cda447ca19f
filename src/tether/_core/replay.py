"""Go through accepted steps once more, with derivatives: forwards for tangents, or backwards.

A step of order k solves F(t_i, y_i, y'_i) = 0 with y'_i = c_0 y_i + c_1 y_(i-1) + ..., math (33).
Differentiated by a parameter, with s = dy/dp, it is linear, math (34):

    (F_y + c_0 F_y') s_i = -F_p - F_y' (c_1 s_(i-1) + ... + c_(k+1) s_(i-k-1)),

and then s_i is projected as y_i was, s_i -= Q (G_y s_i + G_p). The way back applies the transposed
of the same maps in the opposite order. Matrices are small here and stored by rows.
"""

import cython
import numpy as np
from cython.cimports.libc.math import fabs

if not cython.compiled:
    from tether._core.arrays import address, integer_address

WIDTH = cython.declare(cython.int, 7)  # coefficients of a step of order 5


def coefficients(t, order, first, out):
    """Fill row i of `out` with c_0, c_1, ... of the step that ends at t[first + i]."""
    times: cython.double[::1] = t
    orders: cython.int[::1] = order
    c: cython.double[:, ::1] = out
    end: cython.double
    harmonic: cython.double
    value: cython.double
    slope: cython.double
    inverse: cython.double
    i: cython.Py_ssize_t
    row: cython.Py_ssize_t
    j: cython.int
    other: cython.int
    points: cython.int
    for i in range(c.shape[0]):
        row = first + i
        end = times[row]
        points = orders[i] + 1
        harmonic = 0.0
        for j in range(1, points):
            harmonic += 1.0 / j
        c[i, 0] = harmonic / (end - times[row - 1])
        for j in range(1, WIDTH):
            c[i, j] = 0.0
        for j in range(1, points + 1):
            # the predictor as a sum of values at past points, and its slope
            value = 1.0
            slope = 0.0
            for other in range(1, points + 1):
                if other != j:
                    inverse = 1.0 / (times[row - j] - times[row - other])
                    slope = (slope * (end - times[row - other]) + value) * inverse
                    value *= (end - times[row - other]) * inverse
            c[i, j] = slope - c[i, 0] * value


def shares(t, row, degree, at, out):
    """Shares of the last points in a polynomial through them, from `row` on backwards."""
    times: cython.double[::1] = t
    share: cython.double[::1] = out
    place: cython.Py_ssize_t = row
    points: cython.int = degree + 1
    end: cython.double = at
    j: cython.int
    other: cython.int
    value: cython.double
    for j in range(points):
        value = 1.0
        for other in range(points):
            if other != j:
                value *= (end - times[place - other]) / (times[place - j] - times[place - other])
        share[j] = value


def factor(a, pivot, n):
    """LU of a matrix stored by rows, with row exchanges; a pivot of zero gives no finite values."""
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


def solve(a, pivot, n, b):
    """Solve in place with the factors."""
    i: cython.int
    k: cython.int
    x: cython.double
    for k in range(n):
        i = pivot[k]
        x = b[i]
        b[i] = b[k]
        b[k] = x
    for k in range(1, n):
        x = b[k]
        for i in range(k):
            x -= a[k * n + i] * b[i]
        b[k] = x
    for k in range(n - 1, -1, -1):
        x = b[k]
        for i in range(k + 1, n):
            x -= a[k * n + i] * b[i]
        b[k] = x * a[k * n + k]


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


def forwards(slopes, c, s, first):
    """Take the steps that `slopes` belong to with the tangents in `s`, from row `first` on.

    `s` has the tangents before these rows: one row per point, one line per parameter.
    """
    fy: cython.double[:, :, ::1] = slopes.fy
    fyp: cython.double[:, :, ::1] = slopes.fyp
    fp: cython.double[:, :, ::1] = slopes.fp
    gy: cython.double[:, :, ::1] = slopes.gy
    gp: cython.double[:, :, ::1] = slopes.gp
    back: cython.double[:, :, ::1] = slopes.back
    cs: cython.double[:, ::1] = c
    tangents: cython.double[:, :, ::1] = s
    n: cython.int = fy.shape[1]
    m: cython.int = gy.shape[1]
    count: cython.Py_ssize_t = fy.shape[0]
    n_parameters: cython.int = fp.shape[1]
    step: cython.Py_ssize_t
    row: cython.Py_ssize_t
    i: cython.int
    j: cython.int
    k: cython.int
    p: cython.int
    x: cython.double
    matrix = np.empty(n * n)
    exchanges = np.empty(n, np.intc)
    before, off = np.empty(n), np.empty(max(m, 1))
    past: cython.double[::1] = before
    left: cython.double[::1] = off
    a: cython.p_double = address(matrix)
    pivot: cython.p_int = integer_address(exchanges)
    for step in range(count):
        row = first + step
        for i in range(n):
            for j in range(n):
                a[i * n + j] = fy[step, i, j] + cs[step, 0] * fyp[step, i, j]
        factor(a, pivot, n)
        for p in range(n_parameters):
            for i in range(n):
                x = 0.0
                for k in range(1, WIDTH):
                    if cs[step, k] != 0.0:
                        x += cs[step, k] * tangents[row - k, p, i]
                past[i] = x
            for i in range(n):
                x = fp[step, p, i]
                for j in range(n):
                    x += fyp[step, i, j] * past[j]
                tangents[row, p, i] = -x
            if cython.compiled:
                solve(a, pivot, n, cython.address(tangents[row, p, 0]))
            else:
                solve(a, pivot, n, tangents[row, p])
            if m > 0:
                for k in range(m):
                    x = gp[step, p, k]
                    for j in range(n):
                        x += gy[step, k, j] * tangents[row, p, j]
                    left[k] = x
                for i in range(n):
                    x = 0.0
                    for k in range(m):
                        x += back[step, i, k] * left[k]
                    tangents[row, p, i] -= x


def backwards(slopes, c, s, first, gradient, pull):
    """Take the steps back: `s` has what depends on the values at the points, line by line.

    What depends on the values of the steps is handed on to those before and, as far as it comes
    from parameters, added to `gradient`; row i of `pull` says what comes from the constraints.
    """
    fy: cython.double[:, :, ::1] = slopes.fy
    fyp: cython.double[:, :, ::1] = slopes.fyp
    fp: cython.double[:, :, ::1] = slopes.fp
    gy: cython.double[:, :, ::1] = slopes.gy
    gp: cython.double[:, :, ::1] = slopes.gp
    back: cython.double[:, :, ::1] = slopes.back
    cs: cython.double[:, ::1] = c
    weights: cython.double[:, :, ::1] = s
    total: cython.double[:, ::1] = gradient
    pulls: cython.double[:, :, ::1] = pull
    n: cython.int = fy.shape[1]
    m: cython.int = gy.shape[1]
    n_parameters: cython.int = fp.shape[1]
    lines: cython.int = weights.shape[1]
    step: cython.Py_ssize_t
    row: cython.Py_ssize_t
    i: cython.int
    j: cython.int
    k: cython.int
    p: cython.int
    line: cython.int
    x: cython.double
    matrix = np.empty(n * n)
    exchanges = np.empty(n, np.intc)
    of_past, of_step = np.empty(n), np.empty(n)
    past: cython.double[::1] = of_past
    w: cython.double[::1] = of_step
    a: cython.p_double = address(matrix)
    pivot: cython.p_int = integer_address(exchanges)
    b: cython.p_double = address(of_step)
    for step in range(fy.shape[0] - 1, -1, -1):
        row = first + step
        for i in range(n):
            for j in range(n):
                a[i * n + j] = fy[step, i, j] + cs[step, 0] * fyp[step, i, j]
        factor(a, pivot, n)
        for line in range(lines):
            for i in range(n):
                w[i] = weights[row, line, i]
            for k in range(m):
                x = 0.0
                for i in range(n):
                    x += back[step, i, k] * weights[row, line, i]
                pulls[step, line, k] = x
                for j in range(n):
                    w[j] -= gy[step, k, j] * x
                for p in range(n_parameters):
                    total[line, p] -= gp[step, p, k] * x
            solve_transposed(a, pivot, n, b)
            for p in range(n_parameters):
                x = 0.0
                for i in range(n):
                    x += fp[step, p, i] * w[i]
                total[line, p] -= x
            for j in range(n):
                past[j] = 0.0
            for i in range(n):
                x = w[i]
                if x != 0.0:
                    for j in range(n):
                        past[j] += fyp[step, i, j] * x
            for k in range(1, WIDTH):
                if cs[step, k] != 0.0:
                    for j in range(n):
                        weights[row - k, line, j] -= cs[step, k] * past[j]
