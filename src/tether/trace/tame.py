"""Expressions without cliffs: functions that grow or end go on along their tangents.

A search for starting values goes far from where functions are meant to be evaluated: an
exponential overflows, a logarithm has no value. Beyond a limit each of them is replaced by its
tangent there, f(c) + f'(c) (x - c), with c the nearest point within; and a straight line is added
to exponentials, which have no slope on their other side. Limit and line are further arguments, so
one program serves while they move out of the way.
"""

from __future__ import annotations

from collections.abc import Sequence

from tether.trace import opcodes as op
from tether.trace.graph import Graph
from tether.trace.rewrite import substitute

__all__ = ["tame"]

GROWING = frozenset((op.EXP, op.EXPM1))
ENDING = frozenset((op.LOG, op.SQRT, op.LOG1P))


def tame(graph: Graph, outputs: Sequence[int], first: int) -> tuple[list[int], bool, bool]:
    """Replace functions in expressions.

    Parameters
    ----------
    graph : Graph
        Where the expressions live; it grows.
    outputs : sequence of int
        The expressions.
    first : int
        Numbers of three arguments from here on: the largest argument of an exponential, the
        smallest one of a function that ends at zero, and the slope of the line.

    Returns
    -------
    outputs : list of int
        The expressions with their functions replaced.
    grows, ends : bool
        Whether there are exponentials among these, and functions that end.

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
        if code in GROWING:
            [x] = substitute(graph, [a], new)
            new[node] = _growing(graph, code, x, largest, slope)
            grows = True
        elif code in ENDING:
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
