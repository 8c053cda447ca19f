"""Weighted norms, in which 1 is the tolerance."""

import cython
from cython.cimports.libc.math import fabs, sqrt

if not cython.compiled:
    from tether._core.codes import MAX_NORM, OK, ZERO_WEIGHT


# Tolerances, whatever the share, are at least this relative to y.
LEAST_RTOL = cython.declare(cython.double, 1e-12)


def set_weights(s):
    """Weights of this step from y_n and y_n-1, math (10).

    With y_n alone an unknown that is just passing zero would have almost no tolerance.
    """
    i: cython.int
    size: cython.double
    scale: cython.double
    share: cython.double = s.share
    largest: cython.double = 0.0
    s.y_norm = 0.0
    for i in range(s.n):
        size = larger(fabs(s.phi[i]), fabs(s.phi[i] - s.phi[s.n + i]))
        scale = s.rtol[i] * size + s.atol[i]
        if scale <= 0.0:
            return ZERO_WEIGHT
        if share < 1.0:
            scale = max(share * scale, LEAST_RTOL * size)
        s.tolerance[i] = scale
        scale = 1.0 / scale
        s.weight[i] = scale
        size = size * scale
        if size > largest:
            largest = size
    s.y_norm = largest
    return OK


def measure(s, v):
    """Size of an increment, P82 eq. 5.9 or 5.10."""
    size: cython.double = weighted_norm(s, v, s.newton_weight, s.newton_norm)
    return size / fabs(s.h) if s.newton_by_step else size


def largest_product(v, weight, n):
    """Largest |v weight|, by four independent maxima."""
    i: cython.int
    whole: cython.int = n - n % 4
    x0: cython.double = 0.0
    x1: cython.double = 0.0
    x2: cython.double = 0.0
    x3: cython.double = 0.0
    for i in range(0, whole, 4):
        x0 = larger(x0, v[i] * weight[i])
        x1 = larger(x1, v[i + 1] * weight[i + 1])
        x2 = larger(x2, v[i + 2] * weight[i + 2])
        x3 = larger(x3, v[i + 3] * weight[i + 3])
    for i in range(whole, n):
        x0 = larger(x0, v[i] * weight[i])
    return larger(larger(x0, x1), larger(x2, x3))


def larger(size, x):
    """Return the larger of `size` and |x|; NaN does not count as larger."""
    x = fabs(x)
    return x if x > size else size


def all_finite(v, n):
    """Tell whether n entries are all finite, by four independent sums."""
    i: cython.longlong
    whole: cython.longlong = n - n % 4
    x0: cython.double = 0.0
    x1: cython.double = 0.0
    x2: cython.double = 0.0
    x3: cython.double = 0.0
    for i in range(0, whole, 4):
        x0 += 0.0 * v[i]
        x1 += 0.0 * v[i + 1]
        x2 += 0.0 * v[i + 2]
        x3 += 0.0 * v[i + 3]
    for i in range(whole, n):
        x0 += 0.0 * v[i]
    return x0 + x1 + x2 + x3 == 0.0


def weighted_norm(s, v, weight, norm):
    """Largest weighted component, or the root of the mean square."""
    i: cython.int
    x: cython.double
    total: cython.double = 0.0
    if norm == MAX_NORM:
        return largest_product(v, weight, s.n)
    for i in range(s.n):
        x = v[i] * weight[i]
        total += x * x
    return sqrt(total / s.n)
