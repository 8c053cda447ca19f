"""Special functions for programs: SciPy's own, called by address, and polygamma functions.

The number of a call says which function it is and, for those with an order, twice the order. The
addresses are stored here when a function that uses them is traced (`tether.trace.special`).
"""

import cython

if not cython.compiled:
    from math import nan, pi, sin

    callables = {}

SPREAD, MIDDLE = 4096, 2048            # of the doubled orders
POLYGAMMA = 0                          # the one function that is not SciPy's
MOST = 32
# Bernoulli numbers B_2, B_4, ...
B2, B4, B6, B8 = 1.0 / 6.0, -1.0 / 30.0, 1.0 / 42.0, -1.0 / 30.0
B10, B12, B14 = 5.0 / 66.0, -691.0 / 2730.0, 7.0 / 6.0


def numbering():
    """Return how calls are numbered: SPREAD, MIDDLE and the number of the polygamma functions."""
    return SPREAD, MIDDLE, POLYGAMMA


def put(which, has_order, address, function):
    """Register a function by its address, or the function itself if the core is interpreted."""
    if cython.compiled:
        place: cython.longlong = address
        if not 0 < which < MOST:
            raise ValueError(f"no special function can have the number {which}")
        if has_order:
            with_order[which] = cython.cast(with_order_t, cython.cast(cython.p_void, place))
        else:
            without_order[which] = cython.cast(without_order_t, cython.cast(cython.p_void, place))
    else:
        callables[which] = function


def special(number, x):
    """Value of a special function."""
    which: cython.int = number // SPREAD
    order: cython.double = 0.5 * (number % SPREAD - MIDDLE)
    if which == POLYGAMMA:
        return polygamma(int(order), x)
    if cython.compiled:
        if with_order[which] != cython.NULL:
            return with_order[which](order, x, 0)
        if without_order[which] != cython.NULL:
            return without_order[which](x, 0)
        return 0.0 / 0.0
    return float(callables[which](order, x))


def polygamma(m, x):
    """Return derivative m >= 1 of the digamma function for x > 0, for m = 1 for all x; else NaN.

    x is shifted to where the asymptotic series is accurate to rounding.
    """
    result: cython.double
    power: cython.double
    term: cython.double
    factor: cython.double = 1.0        # (m - 1)!
    i: cython.int
    k: cython.int
    if m == 1 and x <= 0.0:
        result = sin(pi * x)
        return -polygamma(1, 1.0 - x) + pi * pi / (result * result)
    if not x > 0.0:
        return x - x if x != x else nan
    for i in range(2, m):
        factor *= i
    result = 0.0
    while x < 15.0 + m:
        power = 1.0
        for i in range(m + 1):
            power *= x
        result += m * factor / power
        x += 1.0
    power = 1.0
    for i in range(m):
        power *= x
    result += factor / power + m * factor / (2.0 * power * x)
    term = m * factor / power          # (2k + m - 1)! / (2k)! / x^(2k + m), for k = 0 times m
    for k in range(1, 8):
        if k == 1:
            term = factor * m * (m + 1) / (2.0 * power * x * x)
        else:
            term *= (2 * k + m - 2) * (2 * k + m - 1) / ((2.0 * k - 1) * (2.0 * k) * x * x)
        result += term * bernoulli(k)
    return result if m % 2 else -result


def bernoulli(k):
    """Bernoulli number B_2k."""
    if k == 1:
        return B2
    if k == 2:
        return B4
    if k == 3:
        return B6
    if k == 4:
        return B8
    if k == 5:
        return B10
    return B12 if k == 6 else B14
