"""Expressions with some of their leaves replaced."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tether.trace import opcodes as op
from tether.trace.derive import choice
from tether.trace.graph import Graph

_METHODS: dict[int, Callable[..., int]] = {
    op.ADD: Graph.add,
    op.SUB: Graph.sub,
    op.MUL: Graph.mul,
    op.DIV: Graph.div,
    op.NEG: Graph.neg,
    op.POW: Graph.pow,
    op.POWI: Graph.powi,
    op.AND: Graph.logical_and,
    op.OR: Graph.logical_or,
    op.NOT: Graph.logical_not,
    op.SELECT: Graph.select,
}


def substitute(graph: Graph, outputs: Sequence[int], replacements: dict[int, int]) -> list[int]:
    """Replace nodes in expressions, all at once.

    Parameters
    ----------
    graph : Graph
        Where the expressions live; it grows.
    outputs : sequence of int
        Expressions.
    replacements : dict
        What to put in place of which node.

    Examples
    --------
    >>> from tether.trace import Graph, substitute
    >>> g = Graph()
    >>> x, y = g.y(0), g.y(1)
    >>> substitute(g, [g.sub(x, y)], {x: y, y: x}) == [g.sub(y, x)]
    True
    """
    new = dict(replacements)
    for node in graph.cone(outputs):
        if node not in new:
            new[node] = _rebuilt(graph, node, new)
    return [new[node] for node in outputs]


def decided(graph: Graph, outputs: Sequence[int], held: dict[int, bool]) -> list[int]:
    """Take the way through expressions that conditions with known answers leave open.

    Parameters
    ----------
    graph : Graph
        Where the expressions live; it grows.
    outputs : sequence of int
        Expressions.
    held : dict
        Comparisons and their answers. A minimum, maximum or sign becomes what the comparison of
        `alternatives` says.

    Examples
    --------
    >>> from tether.trace.graph import Graph
    >>> from tether.trace import opcodes as op
    >>> from tether.trace.rewrite import decided
    >>> g = Graph()
    >>> below = g.binary(op.LT, g.time(), g.one)
    >>> decided(g, [g.select(below, g.y(0), g.y(1))], {below: False}) == [g.y(1)]
    True
    """
    new = {node: graph.one if answer else graph.zero for node, answer in held.items()}
    for node in graph.cone(outputs):
        if node in new:
            continue
        found = alternatives(graph, node)
        if found is not None and found[0] in held and graph.nodes[node][0] != op.SELECT:
            taken = found[1] if held[found[0]] else found[2]
            new[node] = new.get(taken, taken)          # a constant may stand nowhere else
        else:
            new[node] = _rebuilt(graph, node, new)
    return [new[node] for node in outputs]


def alternatives(graph: Graph, node: int) -> tuple[int, int, int] | None:
    """Condition and the two expressions between which it decides; None for other nodes."""
    code, a, _, _ = graph.nodes[node]
    if code == op.SIGN:
        return graph.binary(op.LT, a, graph.zero), graph.constant(-1.0), graph.one
    return choice(graph, node)


def _rebuilt(graph: Graph, node: int, new: dict[int, int]) -> int:
    code, _, b, _ = graph.nodes[node]
    old = graph.operands(node)
    operands = [new[x] for x in old]
    if operands == list(old):
        return node
    if code == op.POWI:
        return graph.powi(operands[0], b)
    if code == op.OPAQUE:
        return graph.opaque(graph.opaques[b], operands[0])
    if code == op.TABLE:
        return graph.table(graph.tables[b], operands[0])
    if code in _METHODS:
        return _METHODS[code](graph, *operands)
    if len(operands) == 2:
        return graph.binary(code, *operands)
    return graph.unary(code, *operands)
