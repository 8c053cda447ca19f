"""The error test, and what the error would have been at the neighbouring orders."""

import cython
from cython.cimports.libc.math import fabs, sqrt

if not cython.compiled:
    from tether._core.codes import ERROR_TEST, MAX_NORM, OK


def test_error(s):
    """Accept the step if the local error at order k is within the tolerance, math (8)."""
    judge_orders(s)
    return OK if s.order_error[s.k] <= 1.0 else ERROR_TEST


def judge_orders(s):
    """Estimate the local error at orders k-2 .. k+1 from the new differences, math (8), (9).

    The new differences follow from the correction and the old ones, so all four norms
    come out of one sweep. Every coefficient is that of the true, variable steps:
    the estimates hold whether or not the step has just changed.
    """
    n: cython.int = s.n
    k: cython.int = s.k
    i: cython.int
    q: cython.int
    here: cython.double = 0.0       # norm of the new difference of order k+1
    above: cython.double = 0.0      # ... of order k+2
    below: cython.double = 0.0      # ... of order k
    lowest: cython.double = 0.0     # ... of order k-1
    difference: cython.double
    factor: cython.double = 1.0     # (q+1)! h^(q+1) / (psi_1 ... psi_(q+1))
    norm: cython.double
    for i in range(n):
        difference = s.correction[i]
        here = accumulate(here, difference * s.weight[i], s.error_norm)
        above = accumulate(
            above, (difference - s.beta[k + 1] * s.phi[(k + 1) * n + i]) * s.weight[i], s.error_norm
        )
        difference += s.beta[k] * s.phi[k * n + i]
        below = accumulate(below, difference * s.weight[i], s.error_norm)
        difference += s.beta[k - 1] * s.phi[(k - 1) * n + i]
        lowest = accumulate(lowest, difference * s.weight[i], s.error_norm)
    for q in range(k + 2):
        factor *= (q + 1) * s.alpha[q + 1]
        if q < k - 2:
            continue
        norm = above if q > k else (here if q == k else (below if q == k - 1 else lowest))
        if s.error_norm != MAX_NORM:
            norm = sqrt(norm / n)
        s.order_term[q] = factor * norm
        if q > 0:
            s.order_error[q] = s.error_constant[q] * norm


def accumulate(total, x, norm):
    """Add one weighted component to a norm in the making."""
    x = fabs(x)
    if norm == MAX_NORM:
        return x if x > total else total
    return total + x * x
