"""Choice of the order from the sizes of the successive Taylor terms, math (9)."""

import cython


def lower_order(s):
    """Order k - 1 when the terms do not decrease towards order k, else k."""
    k: cython.int = s.k
    if k == 1:
        return k
    if k == 2:
        return 1 if s.order_term[1] <= 0.5 * s.order_term[2] else k
    if s.order_term[k - 1] <= s.order_term[k] and s.order_term[k - 2] <= s.order_term[k]:
        return k - 1
    return k


def next_order(s):
    """Order of the next step after a success.

    DASSL raises the order only after k + 1 steps of one size, because its estimate at order
    k + 1 assumes equal steps. Ours does not (`error.judge_orders`), so it is enough that
    the differences belong to order k: k + 1 steps at this order, equal or not.
    """
    k: cython.int = s.k
    lower: cython.int = lower_order(s)
    if lower < k:
        return lower
    if k == s.max_order or s.steps_at_order <= k:
        return k
    if k == 1:
        return 2 if s.order_term[2] < 0.5 * s.order_term[1] else 1
    if s.order_term[k - 1] <= (
        s.order_term[k] if s.order_term[k] < s.order_term[k + 1] else s.order_term[k + 1]
    ):
        return k - 1
    return k + 1 if s.order_term[k + 1] < s.order_term[k] else k
