"""Signs of unknowns that are written in other ways.

Dry friction may be written ``copysign(mu, v)`` or ``mu * v / abs(v)`` as well as ``mu * sign(v)``.
They differ only at v = 0, where the first has two values and the second none. A solution that
sticks stays there, governed by the equations on both sides (`tether.structure.sliding`).
"""

from __future__ import annotations

from tether.trace import Trace
from tether.trace import opcodes as op
from tether.trace.graph import FULL, Graph
from tether.trace.rewrite import substitute

__all__ = ["with_signs"]


def with_signs(traced: Trace) -> Trace:
    """Return the same equations with ``sign`` for every quotient or choice that equals one.

    Examples
    --------
    >>> from tether.structure.signs import with_signs
    >>> from tether.trace import trace
    >>> from tether.trace.formula import formula
    >>> found = with_signs(trace(lambda t, y, yp: [yp[0] + y[0] / abs(y[0])], 1))
    >>> formula(found.graph, found.outputs[0], ["v"])
    "v' + sign(v)"
    """
    graph = traced.graph
    signs = {}
    for node in graph.cone(traced.outputs):
        if graph.level[node] == FULL:
            found = _as_sign(graph, node)
            if found is not None:
                signs[node] = found
    return traced.with_outputs(substitute(graph, traced.outputs, signs)) if signs else traced


def _as_sign(graph: Graph, node: int) -> int | None:
    code, a, b, c = graph.nodes[node]
    if code == op.DIV:
        return _quotient(graph, a, b)
    if code == op.SELECT:
        return _choice(graph, a, b, c)
    return None


def _quotient(graph: Graph, a: int, b: int) -> int | None:
    """Write a / b as a sign if one of them is the absolute value of the other, or of a factor."""
    for absolute, x, is_below in ((b, a, True), (a, b, False)):
        inner = _in_absolute(graph, absolute)
        if inner is None:
            continue
        sign = graph.unary(op.SIGN, inner)
        if is_below:
            rest = _without(graph, x, inner)
            return None if rest is None else graph.mul(rest, sign)
        if x == inner:
            return sign
        if x == graph.neg(inner):
            return graph.neg(sign)
    return None


def _in_absolute(graph: Graph, node: int) -> int | None:
    """Return x for abs(x), for the square root of its square and for hypot(x, 0)."""
    code, a, b, _ = graph.nodes[node]
    if code == op.ABS:
        return a
    if code == op.HYPOT and graph.zero in (a, b):
        return a if b == graph.zero else b
    if code != op.SQRT:
        return None
    square, x, y, _ = graph.nodes[a]
    return x if (square == op.MUL and x == y) or (square == op.POWI and y == 2) else None


def _without(graph: Graph, node: int, factor: int) -> int | None:
    """Return a product without one of its factors; None if it has no such factor."""
    if node == factor:
        return graph.one
    code, a, b, _ = graph.nodes[node]
    if code == op.NEG:
        rest = _without(graph, a, factor)
        return None if rest is None else graph.neg(rest)
    if code == op.MUL:
        for x, other in ((a, b), (b, a)):
            rest = _without(graph, x, factor)
            if rest is not None:
                return graph.mul(rest, other)
    return None


def _choice(graph: Graph, condition: int, a: int, b: int) -> int | None:
    """Write ``a if x < y else at_zero if x == y else -a`` without the case of equality."""
    inner = graph.nodes[b]
    if graph.nodes[condition][0] != op.LT or inner[0] != op.SELECT:
        return None
    equal, other = graph.nodes[inner[1]], inner[3]
    is_sign = equal[0] == op.EQ and a == graph.neg(other)
    same = set(graph.operands(inner[1])) == set(graph.operands(condition))
    return graph.select(condition, a, other) if is_sign and same else None
