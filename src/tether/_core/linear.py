"""The iteration matrix: assembled, scaled and factored, however it is stored (`matrix.py`)."""

import cython
from cython.cimports.libc.math import fabs

if not cython.compiled:
    from tether._core.codes import KINDS, OK, UNSCALED


def assemble_and_factor(s):
    """Factor F_y + cj F_y' for the cj of this step, math (7)."""
    status: cython.int
    s.matrix.assemble(s.cj)
    if s.scaling_mode != UNSCALED:
        scale_matrix(s)
    s.matrix.weigh(s.weight if s.scaling_mode == UNSCALED else cython.NULL)
    s.nlu += 1
    status = s.matrix.factor()
    s.cj_factored = s.cj if status == OK else 0.0
    s.condition = s.matrix.pivot_ratio() if status == OK else -1.0
    return status


def scale_matrix(s):
    """Scale the assembled matrix, math (25): by kind (PL2 section 3), or rows to largest entry 1.

    A column of var_index v is multiplied by c^(v-1), then every row divided by the largest power of
    c in it.
    """
    i: cython.int
    j: cython.int
    for j in range(s.n):
        s.column_scale[j] = 1.0
        if s.scaling_mode == KINDS:
            for i in range(1, s.kind[j]):
                s.column_scale[j] *= fabs(s.cj)
    s.matrix.scale(s.scaling_mode, fabs(s.cj), s.row_scale, s.column_scale)


def solve_scaled(s, b):
    """Solve with the factors, undoing any scaling."""
    i: cython.int
    if s.scaling_mode == UNSCALED:
        s.matrix.solve(b)
        return
    for i in range(s.n):
        b[i] *= s.row_scale[i]
    s.matrix.solve(b)
    for i in range(s.n):
        b[i] *= s.column_scale[i]
