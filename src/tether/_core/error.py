"""The error test, and what the error would have been at the neighbouring orders."""

import cython
from cython.cimports.libc.math import fabs, sqrt

if not cython.compiled:
    from tether._core.codes import ERROR_TEST, MAX_NORM, OK


def test_error(s):
    """Accept the step if the local error at order k is within the tolerance, math (8)."""
    judge_orders(s)
    s.error_estimate = s.order_error[s.k]
    return OK if s.error_estimate <= 1.0 else ERROR_TEST


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
    d: cython.double[4]       # differences of order k-1, k, k+1, k+2
    norm: cython.double[4]
    term: cython.double
    for q in range(4):
        norm[q] = 0.0
    for i in range(n):
        d[2] = s.correction[i]
        d[3] = d[2] - s.beta[k + 1] * s.phi[(k + 1) * n + i]
        d[1] = d[2] + s.beta[k] * s.phi[k * n + i]
        d[0] = d[1] + s.beta[k - 1] * s.phi[(k - 1) * n + i]
        for q in range(4):
            term = fabs(d[q] * s.weight[i])
            if s.error_norm == MAX_NORM:
                if term > norm[q]:
                    norm[q] = term
            else:
                norm[q] += term * term
    if s.error_norm != MAX_NORM:
        for q in range(4):
            norm[q] = sqrt(norm[q] / n)
    term = 1.0                # (q+1)! h^(q+1) / (psi_1 ... psi_(q+1))
    for q in range(k + 2):
        term *= (q + 1) * s.alpha[q + 1]
        if q >= k - 2 and q >= 0:
            s.order_term[q] = term * norm[q - k + 2]
            if q >= 1:
                s.order_error[q] = s.error_constant[q] * norm[q - k + 2]
