"""Choice of the order from the sizes of the successive Taylor terms, math (9).

Plain terms may raise the order. Before they lower it, and now and then when they keep it, the
filtered terms are consulted.
"""

import cython
from cython.cimports.libc.math import fabs, pow

if not cython.compiled:
    from tether._core.codes import H211B, MAX_ORDER
    from tether._core.terms import filter_terms

# In tolerances: steps grow with errors below the first and shrink beyond the second, which is the
# limit for both in DASSL (2 err + 1e-4).
TARGET = cython.declare(cython.double, 0.1)
KEEP_BELOW = cython.declare(cython.double, 0.5)
LOW_ORDER = cython.declare(cython.int, 3)
TINY_ERROR = cython.declare(cython.double, 1e-4)
# Steps grow slowly if each is at most so many times as long as the one before.
SLOW_GROWTH = cython.declare(cython.double, 1.06)


def lower_order(s):
    """Order k - 1 when the terms do not decrease towards order k, else k."""
    if not decreasing(s) and may_mislead(s):
        filter_terms(s, s.k - 2)
    return s.k if decreasing(s) else s.k - 1


def decreasing(s):
    """Tell whether the terms decrease towards order k."""
    k: cython.int = s.k
    if k == 1 or is_quiet(s):
        return True
    if k == 2:
        return s.order_term[1] > 0.5 * s.order_term[2]
    return s.order_term[k - 1] > s.order_term[k] or s.order_term[k - 2] > s.order_term[k]


def is_quiet(s):
    """Tell whether to raise the order of a solution at rest for the sake of its derivatives.

    There are no terms then. It is raised at the start, and later while steps are nearly equal: the
    formulas of high order are unstable for steps that go on growing fast.
    """
    return (
        s.keeps_order and s.order_term[s.k] == 0.0
        and (s.starting or fabs(s.h) <= SLOW_GROWTH * fabs(s.last_h))
    )


def next_order(s):
    """Order of the next step after a success.

    DASSL raises the order only after k + 1 steps of one size, because its estimate at order
    k + 1 assumes equal steps. Ours does not (`error.judge_orders`), so it is enough that
    the differences belong to order k: k + 1 steps at this order, equal or not.
    """
    k: cython.int = s.k
    best: cython.int
    if lower_order(s) < k:
        return k - 1
    if s.steps_at_order <= k:
        return k
    if k == MAX_ORDER and gains_nothing(s):
        return k - 1
    if k == s.max_order:
        return k
    best = best_neighbour(s)
    if best <= k and s.steps_at_order % (k + 1) == 0 and may_mislead(s):  # the filter is expensive
        filter_terms(s, k - 1)
        best = best_neighbour(s)
    return best


def gains_nothing(s):
    """Tell whether order 6 gains nothing, math (9b).

    If the differences of the next higher order grow, they are errors: of the iteration, or of a
    mode for which the formula is unstable. They keep the step short, but less so at the order
    below.
    """
    k: cython.int = s.k
    return (
        s.order_term[k + 1] > s.order_term[k]
        and possible_growth(s, k - 1) > possible_growth(s, k)
    )


def possible_growth(s, q):
    """How many times longer than this one the next step could be at order q, math (11).

    Some tenths of the tolerance may be errors that no shorter step reduces: round-off, or those of
    an inexact function. With such an error the step stays; with a larger one it shrinks, but at low
    orders, to which such errors lead, no more than necessary.
    """
    error: cython.double = s.order_error[q]
    share: cython.double = error / TARGET
    if s.controller != H211B or (error > KEEP_BELOW and q <= LOW_ORDER):
        share = error / KEEP_BELOW
    elif TARGET < error <= KEEP_BELOW:
        share = 1.0
    return pow(share + TINY_ERROR, -1.0 / (q + 1))


def may_mislead(s):
    """Tell whether the terms are unfiltered and contain unknowns which follow from slopes.

    At index 2 and 3 as written these are known and left out of the terms.
    """
    return not s.terms_filtered and (s.highest_kind < 2 or s.exact_at_steps)


def best_neighbour(s):
    """Return the one of the orders k - 1, k and k + 1 that has the smallest term."""
    k: cython.int = s.k
    if is_quiet(s):
        return k + 1
    if k == 1:
        return 2 if s.order_term[2] < 0.5 * s.order_term[1] else 1
    if s.order_term[k - 1] <= min(s.order_term[k], s.order_term[k + 1]):
        return k - 1
    return k + 1 if s.order_term[k + 1] < s.order_term[k] else k
