"""Expressions multiplied out, for printing: 2*x*u + 2*z*w becomes x*u + z*w."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tether.trace import formula
from tether.trace import opcodes as op
from tether.trace.graph import Graph

__all__ = ["tidy_formula"]

# More terms than this are not multiplied out.
MOST_TERMS = 16
# Digits of the numbers in a formula.
DIGITS = 6

Terms = dict[tuple[int, ...], float]


def tidy_formula(
    graph: Graph, node: int, names: Sequence[str], arg_names: Sequence[str] = ()
) -> str:
    """Write an expression that is zero as a sum without a common factor.

    Parameters
    ----------
    graph, node : Graph, int
        The expression.
    names, arg_names : sequence of str
        Names of unknowns and arguments.

    Examples
    --------
    >>> from tether.explain.tidy import tidy_formula
    >>> from tether.trace import total_derivative, trace
    >>> circle = trace(lambda t, y, yp: [y[0]**2 + y[1]**2 - 1.21, yp[1]], 2)
    >>> (rate,) = total_derivative(circle.graph, circle.outputs[:1])
    >>> tidy_formula(circle.graph, rate, ["x", "z"])
    "x*x' + z*z'"
    """
    terms = _terms(graph, node)
    if terms:
        node = _sum(graph, _without_common_factor(terms))
    return formula(graph, node, names, arg_names, digits=DIGITS)


def _terms(graph: Graph, node: int) -> Terms | None:
    """Products of nodes with their factors; None if there are too many."""
    code, a, b, _ = graph.nodes[node]
    if code == op.CONST:
        return {(): a} if a else {}
    if code == op.NEG:
        return _scaled(_terms(graph, a), -1.0)
    if code in (op.ADD, op.SUB):
        return _added(_terms(graph, a), _scaled(_terms(graph, b), 1.0 if code == op.ADD else -1.0))
    if code == op.DIV and graph.is_constant(b):
        return _divided(_terms(graph, a), graph.value(b))
    if code == op.MUL:
        return _multiplied(_terms(graph, a), _terms(graph, b))
    return {(node,): 1.0}


def _scaled(terms: Terms | None, factor: float) -> Terms | None:
    return None if terms is None else {key: factor * value for key, value in terms.items()}


def _divided(terms: Terms | None, divisor: float) -> Terms | None:
    if terms is None or divisor == 0.0:
        return None
    return {key: value / divisor for key, value in terms.items()}


def _added(first: Terms | None, second: Terms | None) -> Terms | None:
    if first is None or second is None:
        return None
    total = dict(first)
    for key, value in second.items():
        total[key] = total.get(key, 0.0) + value
    total = {key: value for key, value in total.items() if value}
    return total if len(total) <= MOST_TERMS else None


def _multiplied(first: Terms | None, second: Terms | None) -> Terms | None:
    if first is None or second is None or len(first) * len(second) > MOST_TERMS:
        return None
    total: Terms | None = {}
    for x, a in first.items():
        for y, b in second.items():
            total = _added(total, {tuple(sorted(x + y)): a * b})
    return total


def _without_common_factor(terms: Terms) -> Terms:
    whole = [int(abs(value)) for value in terms.values() if value == int(value)]
    common = float(math.gcd(*whole)) if whole else 1.0
    sign = math.copysign(1.0, next(iter(terms.values())))
    return {key: value * sign / common for key, value in terms.items()}


def _sum(graph: Graph, terms: Terms) -> int:
    total = graph.zero
    # numbers last
    for key in sorted(terms, key=lambda key: not key):
        product = graph.one
        for factor in key:
            product = graph.mul(product, factor)
        term = graph.mul(graph.constant(abs(terms[key])), product)
        total = graph.add(total, term) if terms[key] > 0 else graph.sub(total, term)
    return total
