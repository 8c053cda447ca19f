# cython: annotation_typing=False
"""Expressions with some of their leaves replaced."""

from __future__ import annotations

from collections.abc import Sequence

import cython

if not cython.compiled:
    from tether.trace.derive import choice
    from tether.trace.graph import Graph
    from tether.trace.opcodes import *


def substitute(graph: Graph, outputs: Sequence[int], replacements: dict[int, int]) -> list[int]:
    """Replace nodes in expressions, all at once.

    Parameters
    ----------
    graph : Graph
        The graph of the expressions, to which nodes are added.
    outputs : sequence of int
        Expressions.
    replacements : dict
        For each node to be replaced, the new one.

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
            new[node] = rebuilt(graph, node, new)
    return [new[node] for node in outputs]


def decided(graph: Graph, outputs: Sequence[int], held: dict[int, bool]) -> list[int]:
    """Simplify expressions by the known answers of some conditions.

    Parameters
    ----------
    graph : Graph
        The graph of the expressions, to which nodes are added.
    outputs : sequence of int
        Expressions.
    held : dict
        Comparisons and their answers. A minimum, maximum or sign is decided by the comparison
        that `alternatives` returns for it.

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
        if found is not None and found[0] in held and graph.nodes[node][0] != SELECT:
            taken = found[1] if held[found[0]] else found[2]
            new[node] = new.get(taken, taken)          # a constant may not be in the cone
        else:
            new[node] = rebuilt(graph, node, new)
    return [new[node] for node in outputs]


def alternatives(graph: Graph, node: int) -> tuple[int, int, int] | None:
    """Condition and the two expressions between which it decides; None for other nodes."""
    code, a, _, _ = graph.nodes[node]
    if code == SIGN:
        return graph.binary(LT, a, graph.zero), graph.constant(-1.0), graph.one
    return choice(graph, node)


def rebuilt(graph: Graph, node: int, new: dict[int, int]) -> int:
    """Make a node again with its new operands; return it unchanged if none has changed."""
    old = graph.operands(node)
    operands = []
    changed = False
    for x in old:
        found = new[x]
        operands.append(found)
        if found != x:
            changed = True
    if not changed:
        return node
    fields = graph.nodes[node]
    code, b = fields[0], fields[2]
    if code == POWI:
        return graph.powi(operands[0], b)
    if code == SPECIAL:
        return graph.special(operands[0], b)
    if code == OPAQUE:
        return graph.opaque(graph.opaques[b], operands[0])
    if code == TABLE:
        return graph.table(graph.tables[b], operands[0])
    if len(operands) == 1:
        return _of_one(graph, code, operands[0])
    if code == SELECT:
        return graph.select(operands[0], operands[1], operands[2])
    return _of_two(graph, code, operands[0], operands[1])


def _of_one(graph: Graph, code: int, a: int) -> int:
    if code == NEG:
        return graph.neg(a)
    return graph.logical_not(a) if code == NOT else graph.unary(code, a)


def _of_two(graph: Graph, code: int, a: int, b: int) -> int:
    if code == ADD:
        return graph.add(a, b)
    if code == SUB:
        return graph.sub(a, b)
    if code == MUL:
        return graph.mul(a, b)
    if code == DIV:
        return graph.div(a, b)
    if code == POW:
        return graph.pow(a, b)
    if code == AND:
        return graph.logical_and(a, b)
    return graph.logical_or(a, b) if code == OR else graph.binary(code, a, b)
