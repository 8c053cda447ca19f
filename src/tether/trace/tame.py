"""Expressions whose functions are continued along tangents, for searches far from a solution.

A search for starting values goes far from where functions are meant to be evaluated: an
exponential overflows, a logarithm has no value. Beyond a limit each of them is replaced by its
tangent there, f(c) + f'(c) (x - c), where c is the nearest point within the limit. A straight line
is added to exponentials, whose slope vanishes on the other side. Limits and slope are further
arguments, so that one program serves while the search relaxes them.
"""

from __future__ import annotations

from collections.abc import Sequence

from tether.trace import opcodes as op
from tether.trace.graph import Graph
from tether.trace.rewrite import substitute

__all__ = ["tame"]

EXPONENTIALS = frozenset((op.EXP, op.EXPM1))
WITH_LIMITED_DOMAIN = frozenset((op.LOG, op.SQRT, op.LOG1P))


def tame(graph: Graph, outputs: Sequence[int], first: int) -> tuple[list[int], bool, bool]:
    """Continue exponentials, logarithms, roots and powers in expressions along their tangents.

    Parameters
    ----------
    graph : Graph
        The graph of the expressions, to which nodes are added.
    outputs : sequence of int
        The expressions.
    first : int
        Number of the first of three arguments: the largest operand of an exponential, the smallest
        operand of a function whose domain ends at zero, and the slope of the line.

    Returns
    -------
    outputs : list of int
        The new expressions.
    grows, ends : bool
        Whether there are exponentials, and functions whose domain ends.

    Examples
    --------
    >>> import math
    >>> from tether.trace.graph import Graph
    >>> from tether.trace import emit, evaluate, opcodes as op
    >>> from tether.trace.tame import tame
    >>> g = Graph()
    >>> [tamed], grows, ends = tame(g, [g.unary(op.EXP, g.y(0))], 0)
    >>> program = emit(g, [tamed], 1, 3)
    >>> values = [evaluate(program, 0.0, [x], [0.0], [2.0, 0.1, 0.0])[0] for x in (1.0, 1e3)]
    >>> [round(float(v / w), 6) for v, w in zip(values, (math.e, math.exp(2.0) * 999.0))], grows
    ([1.0, 1.0], True)
    """
    largest, smallest, slope = (graph.arg(first + k) for k in range(3))
    new: dict[int, int] = {}
    grows = ends = False
    for node in graph.cone(outputs):
        code, a, b, _ = graph.nodes[node]
        if code in EXPONENTIALS:
            [x] = substitute(graph, [a], new)
            new[node] = _growing(graph, code, x, largest, slope)
            grows = True
        elif code in WITH_LIMITED_DOMAIN:
            [x] = substitute(graph, [a], new)
            new[node] = _ending(graph, code, x, smallest)
            ends = True
        elif code == op.POW and graph.is_constant(b):
            [x] = substitute(graph, [a], new)
            new[node] = _power(graph, x, b, smallest)
            ends = True
    return substitute(graph, outputs, new), grows, ends


def _growing(graph: Graph, code: int, x: int, largest: int, slope: int) -> int:
    c = graph.binary(op.MIN, x, largest)
    value = graph.unary(code, c)
    rate = value if code == op.EXP else graph.add(value, graph.one)
    tangent = graph.add(value, graph.mul(rate, graph.sub(x, c)))
    return graph.add(tangent, graph.mul(slope, x))


def _ending(graph: Graph, code: int, x: int, smallest: int) -> int:
    low = graph.sub(smallest, graph.one) if code == op.LOG1P else smallest
    c = graph.binary(op.MAX, x, low)
    value, beyond = graph.unary(code, c), graph.sub(x, c)
    if code == op.SQRT:
        return graph.add(value, graph.div(beyond, graph.mul(graph.constant(2.0), value)))
    base = graph.add(c, graph.one) if code == op.LOG1P else c
    return graph.add(value, graph.div(beyond, base))


def _power(graph: Graph, x: int, exponent: int, smallest: int) -> int:
    c = graph.binary(op.MAX, x, smallest)
    value = graph.pow(c, exponent)
    rate = graph.mul(exponent, graph.div(value, c))
    return graph.add(value, graph.mul(rate, graph.sub(x, c)))
