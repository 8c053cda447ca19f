"""Weighted norms: 1 is the tolerance."""

import cython
from cython.cimports.libc.math import fabs, sqrt

if not cython.compiled:
    from tether._core.codes import MAX_NORM, OK, ZERO_WEIGHT


# However small the share of a tolerance: relative to y it is not less than this.
LEAST_RTOL = cython.declare(cython.double, 1e-12)


def set_weights(s):
    """Weights of this step from y_n, math (10)."""
    i: cython.int
    size: cython.double
    scale: cython.double
    s.y_norm = 0.0
    for i in range(s.n):
        size = fabs(s.phi[i])
        scale = s.rtol[i] * size + s.atol[i]
        if scale <= 0.0:
            return ZERO_WEIGHT
        if s.share < 1.0:
            scale = max(s.share * scale, LEAST_RTOL * size)
        s.tolerance[i] = scale
        s.weight[i] = 1.0 / scale
        size = size * s.weight[i]
        if size > s.y_norm:
            s.y_norm = size
    return OK


def weighted_norm(s, v, weight, norm):
    """Largest weighted component, or the root of the mean square."""
    i: cython.int
    x: cython.double
    total: cython.double = 0.0
    if norm == MAX_NORM:
        for i in range(s.n):
            x = fabs(v[i] * weight[i])
            if x > total:
                total = x
        return total
    for i in range(s.n):
        x = v[i] * weight[i]
        total += x * x
    return sqrt(total / s.n)
