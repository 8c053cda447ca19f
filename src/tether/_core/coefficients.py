"""Coefficients of the variable-step BDF with fixed leading coefficient."""

import cython
from cython.cimports.libc.math import fabs


def set_coefficients(s):
    """Coefficients of a step of size h at order k from the true past steps, math (3)-(8).

    Nothing of the history is overwritten: a failed attempt needs no undoing.
    """
    j: cython.int
    q: cython.int
    k: cython.int = s.k
    h: cython.double = s.h
    harmonic: cython.double = 0.0      # 1 + 1/2 + ... + 1/q = -alpha_s of order q
    sum_alpha: cython.double = 0.0     # -alpha_0 of order q
    constant: cython.double
    inverse: cython.double

    s.beta[0] = 1.0
    s.gamma[0] = 0.0
    s.psi_new[0] = 0.0
    for j in range(1, k + 3):
        s.psi_new[j] = s.psi[j - 1] + h
        inverse = 1.0 / s.psi_new[j]
        s.alpha[j] = h * inverse
        s.gamma[j] = s.gamma[j - 1] + inverse
    for j in range(1, k + 2):
        s.beta[j] = s.beta[j - 1] * (s.psi_new[j] / s.psi[j])   # divisions need not wait
    for q in range(1, k + 2):
        harmonic += 1.0 / q
        sum_alpha += s.alpha[q]
        constant = fabs(s.alpha[q + 1] - harmonic + sum_alpha)
        # The second term keeps the error of interpolation between the steps in view.
        s.error_constant[q] = constant if constant > s.alpha[q + 1] else s.alpha[q + 1]
        if q == k:
            s.cj = harmonic / h
