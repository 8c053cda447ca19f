"""Dense LU of the iteration matrix.

Up to about twenty unknowns this loop beats a call of LAPACK; above, `lapack.py` takes
over through the same two pointers.
"""

import cython
from cython.cimports.libc.math import fabs

if not cython.compiled:
    from tether._core.codes import KINDS, OK, ROWS, SINGULAR, UNSCALED


def use_small_factor(s):
    """Install this file's factorisation."""
    s.factor = small_factor
    s.solve = small_solve


def assemble_and_factor(s):
    """Factor F_y + cj F_y' for the cj of this step, math (7)."""
    i: cython.int
    status: cython.int
    for i in range(s.n * s.n):
        s.lu[i] = s.fy[i] + s.cj * s.fyp[i]
    if s.scaling_mode != UNSCALED:
        scale_matrix(s)
    s.nlu += 1
    status = s.factor(s)
    s.cj_factored = s.cj if status == OK else 0.0
    s.condition = pivot_ratio(s) if status == OK else -1.0
    return status


def pivot_ratio(s):
    """Ratio of the largest to the smallest pivot: a lower estimate of the condition number."""
    i: cython.int
    pivot: cython.double = fabs(s.lu[0])
    largest: cython.double = pivot
    smallest: cython.double = pivot
    for i in range(1, s.n):
        pivot = fabs(s.lu[i * (s.n + 1)])
        largest = max(largest, pivot)
        smallest = min(smallest, pivot)
    return largest / smallest


def scale_matrix(s):
    """Scale the matrix in `s.lu`, math (25): by kind (PL2 section 3), or rows to largest entry 1.

    A column of var_index v is multiplied by c^(v-1), then every row divided by the largest
    power of c that stands in it.
    """
    n: cython.int = s.n
    i: cython.int
    j: cython.int
    power: cython.double
    for i in range(n):
        s.row_scale[i] = 0.0
        s.column_scale[i] = 1.0
    for j in range(n):
        if s.scaling_mode == KINDS:
            for i in range(1, s.kind[j]):
                s.column_scale[j] *= fabs(s.cj)
        for i in range(n):
            if s.scaling_mode == ROWS:
                power = fabs(s.lu[j * n + i])
            elif s.fyp[j * n + i] != 0.0:
                power = fabs(s.cj) * s.column_scale[j]
            else:
                power = s.column_scale[j] if s.fy[j * n + i] != 0.0 else 0.0
            s.row_scale[i] = max(s.row_scale[i], power)
    for i in range(n):
        s.row_scale[i] = 1.0 / s.row_scale[i] if s.row_scale[i] > 0.0 else 1.0
    for j in range(n):
        for i in range(n):
            s.lu[j * n + i] *= s.row_scale[i] * s.column_scale[j]


def solve_scaled(s, b):
    """Solve with the factors, whatever their scaling."""
    i: cython.int
    if s.scaling_mode == UNSCALED:
        s.solve(s, b)
        return
    for i in range(s.n):
        b[i] *= s.row_scale[i]
    s.solve(s, b)
    for i in range(s.n):
        b[i] *= s.column_scale[i]


def small_factor(s):
    """Factor in place with row exchanges; matrix stored column by column."""
    n: cython.int = s.n
    i: cython.int
    j: cython.int
    k: cython.int
    row: cython.int
    largest: cython.double
    x: cython.double
    for k in range(n):
        row = k
        largest = fabs(s.lu[k * n + k])
        for i in range(k + 1, n):
            if fabs(s.lu[k * n + i]) > largest:
                largest = fabs(s.lu[k * n + i])
                row = i
        s.pivot[k] = row
        if not largest > 0.0:          # also true of NaN
            return SINGULAR
        if row != k:
            for j in range(n):
                x = s.lu[j * n + k]
                s.lu[j * n + k] = s.lu[j * n + row]
                s.lu[j * n + row] = x
        x = 1.0 / s.lu[k * n + k]
        s.pivot_inverse[k] = x
        for i in range(k + 1, n):
            s.lu[k * n + i] *= x
        for j in range(k + 1, n):
            x = s.lu[j * n + k]
            if x != 0.0:
                for i in range(k + 1, n):
                    s.lu[j * n + i] -= x * s.lu[k * n + i]
    return OK


def small_solve(s, b):
    """Solve in place with the factors of `small_factor`."""
    n: cython.int = s.n
    i: cython.int
    k: cython.int
    x: cython.double
    for k in range(n):
        i = s.pivot[k]
        x = b[i]
        b[i] = b[k]
        b[k] = x
    for k in range(n - 1):
        x = b[k]
        for i in range(k + 1, n):
            b[i] -= x * s.lu[k * n + i]
    for k in range(n - 1, -1, -1):
        x = b[k] * s.pivot_inverse[k]
        b[k] = x
        for i in range(k):
            b[i] -= x * s.lu[k * n + i]
