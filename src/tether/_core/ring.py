"""The last attempts at a step, kept in a ring to explain why a run failed."""

import cython
from cython.cimports.libc.math import fabs

if not cython.compiled:
    from tether._core.codes import ERROR_TEST, OK, RING_COLUMNS
    from tether._core.estimates import filters


def remember(s, outcome):
    """Write one attempt over the oldest; the columns are `tether.run.attempts.COLUMNS`, then y'."""
    i: cython.int
    row: cython.longlong = s.attempts & (s.ring_size - 1)    # a power of two
    row *= RING_COLUMNS + s.n
    s.ring[row] = s.t_new
    s.ring[row + 1] = s.h
    s.ring[row + 2] = s.k
    s.ring[row + 3] = s.order_error[s.k] if outcome == OK or outcome == ERROR_TEST else -1.0
    s.ring[row + 4] = worst_component(s) if outcome == ERROR_TEST else -1.0
    s.ring[row + 5] = s.first_increment
    s.ring[row + 6] = s.rate
    s.ring[row + 7] = s.iterations
    s.ring[row + 8] = outcome
    s.ring[row + 9] = s.projection_size
    s.ring[row + 10] = s.condition
    for i in range(s.n):
        s.ring[row + RING_COLUMNS + i] = s.yp[i]
    s.attempts += 1


def worst_component(s):
    """Return the unknown with the largest part in the error of this attempt."""
    i: cython.int
    x: cython.double
    worst: cython.int = 0
    largest: cython.double = -1.0
    for i in range(s.n):
        if filters(s):
            x = fabs(s.filtered[i]) * s.filtered_weight[i]
        else:
            x = fabs(s.correction[i]) * s.error_weight[i]
        if x > largest:
            largest = x
            worst = i
    return worst
