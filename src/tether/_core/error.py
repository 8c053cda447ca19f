"""The error test, and what the error would have been at the neighbouring orders."""

import cython
from cython.cimports.libc.math import fabs, sqrt

if not cython.compiled:
    from tether._core.between import (
        largest_difference,
        measure_round_off,
        only_between,
        passes_jump,
    )
    from tether._core.codes import ERROR_TEST, MAX_NORM, OK
    from tether._core.estimates import apply_estimate
    from tether._core.terms import set_terms


def test_error(s):
    """Accept the step if the local error at order k is within the tolerance, math (8)."""
    judge_orders(s)
    if s.order_error[s.k] > 1.0 and s.interpolated and s.exact_at_steps and only_between(s):
        if measure_round_off(s):
            judge_orders(s)
        if s.order_error[s.k] > 1.0 and passes_jump(s, largest_difference(s)):
            return OK
    return OK if s.order_error[s.k] <= 1.0 else ERROR_TEST


def judge_orders(s):
    """Estimate the local error at orders k-2 .. k+1 from the new differences, math (8), (9).

    Every coefficient is that of the true, variable steps: the estimates hold whether or not
    the step has just changed.
    """
    q: cython.int
    measure_differences(s)
    set_terms(s)
    for q in range(max(s.k - 2, 1), s.k + 2):
        s.order_error[q] = s.error_constant[q] * s.difference_norm[q]
    apply_estimate(s)


def measure_differences(s):
    """Norms of the new differences of orders k-1 .. k+2.

    They follow from the correction and the old differences, so one sweep gives all four.
    """
    n: cython.longlong = s.n
    k: cython.int = s.k
    i: cython.longlong
    first: cython.longlong = (k + 1) * n       # where the differences of these orders begin
    second: cython.longlong = k * n
    third: cython.longlong = (k - 1) * n
    here: cython.double = 0.0       # norm of the new difference of order k+1
    above: cython.double = 0.0      # ... of order k+2
    below: cython.double = 0.0      # ... of order k
    lowest: cython.double = 0.0     # ... of order k-1
    weight: cython.double
    difference: cython.double
    for i in range(n):
        weight = s.error_weight[i]
        difference = s.correction[i]
        here = accumulate(here, difference * weight, s.error_norm)
        above = accumulate(
            above, (difference - s.beta[k + 1] * s.phi[first + i]) * weight, s.error_norm
        )
        difference += s.beta[k] * s.phi[second + i]
        below = accumulate(below, difference * weight, s.error_norm)
        difference += s.beta[k - 1] * s.phi[third + i]
        lowest = accumulate(lowest, difference * weight, s.error_norm)
    if s.error_norm != MAX_NORM:
        here, above = sqrt(here / n), sqrt(above / n)
        below, lowest = sqrt(below / n), sqrt(lowest / n)
    s.difference_norm[k] = here
    s.difference_norm[k + 1] = above
    s.difference_norm[k - 1] = below
    if k > 1:
        s.difference_norm[k - 2] = lowest


def accumulate(total, x, norm):
    """Add one weighted component to a partial norm."""
    x = fabs(x)
    if norm == MAX_NORM:
        return x if x > total else total
    return total + x * x
