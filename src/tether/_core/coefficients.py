"""Coefficients of the variable-step BDF."""

import cython


def set_coefficients(s):
    """Coefficients of a step of size h at order k from the true past steps, math (3)-(8).

    The history is not overwritten, so a failed attempt leaves nothing to undo.
    """
    j: cython.int
    k: cython.int = s.k
    h: cython.double = s.h
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
        s.beta[j] = s.beta[j - 1] * (s.psi_new[j] / s.psi[j])   # no division waits for another
    s.cj = s.gamma[k]
    # With short steps after long ones alpha tends to zero, but the error at kinks and jumps of y'
    # does not. Only order 1, to which many failures lead, lets a jump of an algebraic unknown pass.
    s.error_constant[1] = s.alpha[2]
    for j in range(2, k + 2):
        s.error_constant[j] = max(s.alpha[j + 1], 1.0 / (j + 1))
