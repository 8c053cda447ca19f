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
    from tether._core.codes import CLASSICAL, ERROR_TEST, LOCAL, MAX_NORM, OK
    from tether._core.estimates import filter_error, interpolation_error
    from tether._core.norms import weighted_norm
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
    if s.estimate >= LOCAL:
        replace_error(s)
    elif s.interpolated and not s.exact_at_steps and s.estimate != CLASSICAL:
        raise_error(s, interpolation_error(s))


def raise_error(s, error):
    """Let the error be at least this, at the other orders in proportion."""
    q: cython.int
    before: cython.double = s.order_error[s.k]
    if error <= before:
        return
    for q in range(max(s.k - 2, 1), s.k + 2):
        s.order_error[q] = s.order_error[q] * error / before if before > 0.0 else error
    s.order_error[s.k] = error


def replace_error(s):
    """Put the filtered error in place of the plain one, at the other orders in proportion.

    The terms that choose the order stay those of the plain differences, math (9).
    """
    k: cython.int = s.k
    q: cython.int
    i: cython.int
    error: cython.double
    plain: cython.double = s.order_error[k]
    for i in range(s.n):
        s.filtered[i] = s.correction[i]
    filter_error(s)
    error = s.error_constant[k] * weighted_norm(s, s.filtered, s.filtered_weight, s.error_norm)
    if s.interpolated:
        error = max(error, interpolation_error(s))
    if s.starting:                     # too early to know what the filter may take away
        error = max(error, plain)
    for q in range(max(k - 2, 1), k + 2):
        s.order_error[q] = s.order_error[q] * error / plain if plain > 0.0 else error
    s.order_error[k] = error


def measure_differences(s):
    """Norms of the new differences of orders k-1 .. k+2.

    They follow from the correction and the old ones, so all four come out of one sweep.
    """
    n: cython.int = s.n
    k: cython.int = s.k
    i: cython.int
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
            above, (difference - s.beta[k + 1] * s.phi[(k + 1) * n + i]) * weight, s.error_norm
        )
        difference += s.beta[k] * s.phi[k * n + i]
        below = accumulate(below, difference * weight, s.error_norm)
        difference += s.beta[k - 1] * s.phi[(k - 1) * n + i]
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
    """Add one weighted component to a norm in the making."""
    x = fabs(x)
    if norm == MAX_NORM:
        return x if x > total else total
    return total + x * x
