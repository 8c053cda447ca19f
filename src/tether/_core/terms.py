"""Sizes of the successive Taylor terms, from which the order is chosen, math (9).

Plain differences mislead where an unknown follows from slopes, because of the equations or because
they are stiff: each formula gives its error another size, so that a change of step or order
disturbs it, and for k steps the terms seem to grow. The effect of the errors on the solution, math
(20), is not disturbed.
"""

import cython

if not cython.compiled:
    from tether._core.estimates import propagate
    from tether._core.norms import weighted_norm


def set_terms(s):
    """Terms of the orders k-2 .. k+1 from the norms of the differences, math (9)."""
    k: cython.int = s.k
    q: cython.int
    factor: cython.double = 1.0     # (q+1)! h^(q+1) / (psi_1 ... psi_(q+1))
    for q in range(k + 2):
        factor *= (q + 1) * s.alpha[q + 1]
        if q >= k - 2:
            s.order_term[q] = factor * s.difference_norm[q]
    s.terms_filtered = False


def filter_terms(s, lowest):
    """Replace the differences d in the terms from order `lowest` on by T d, math (20)."""
    k: cython.int = s.k
    i: cython.int
    j: cython.int
    q: cython.int
    for q in range(max(lowest, 0), k + 2):
        for i in range(s.n):
            s.increment[i] = s.correction[i]
        if q > k:
            add_difference(s, k + 1, -s.beta[k + 1])
        for j in range(q + 1, k + 1):
            add_difference(s, j, s.beta[j])
        propagate(s, s.increment)
        s.difference_norm[q] = weighted_norm(s, s.increment, s.error_weight, s.error_norm)
    set_terms(s)
    s.terms_filtered = True


def add_difference(s, j, factor):
    """Add a multiple of the differences of order j to `s.increment`."""
    i: cython.longlong
    column: cython.longlong = j
    column *= s.n
    for i in range(s.n):
        s.increment[i] += factor * s.phi[column + i]
