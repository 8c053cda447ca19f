"""Solutions that stay on a surface where the equations jump, because both sides push them onto it.

Examples are dry friction at rest, a relay that holds a temperature, an ideal saturation. On the
surface the equations are a mixture of those of its two sides (Filippov): the share of one side,
between 0 and 1, is a further unknown, and the condition that the solution stays on the surface is a
further equation. The result has a higher index and is reduced like any other system. It holds as
long as the share stays between 0 and 1.

Where several surfaces meet, staying on some of them may imply staying on the others. If x is zero
for ever, so is its velocity v, and friction and another force that jumps at x = 0 can share the
load in many ways. Then the shares of the surfaces that are implied are given numbers: these
surfaces are pinned.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tether.structure.modes import Surface
from tether.trace import Trace
from tether.trace.graph import FULL, STATIC, Graph
from tether.trace.operations import OPERATIONS
from tether.trace.rewrite import decided, rebuilt

__all__ = ["Pins", "sliding"]

# Numbers of surfaces, and the shares that the equations below them have.
Pins = tuple[tuple[int, float], ...]


def sliding(
    traced: Trace, surfaces: Sequence[Surface], pinned: Sequence[tuple[Surface, float]] = ()
) -> Trace:
    """Return the equations of solutions that stay on some surfaces.

    Their last unknowns are the shares that the equations below each surface have. Those of the
    `pinned` surfaces are given.

    Examples
    --------
    >>> import numpy as np
    >>> from tether.structure.frozen import freeze
    >>> from tether.structure.sliding import sliding
    >>> from tether.trace import trace
    >>> from tether.trace.backend import prepare
    >>> relay = trace(lambda t, y, yp: [yp[0] + 2 * np.sign(y[0]) - 1], 1)
    >>> on_surface = sliding(relay, freeze(relay).surfaces)
    >>> shares = (0.25, 0.75)
    >>> program = prepare(on_surface.program()).new()
    >>> [float(program.values(0.0, [0.0, share], [0.0, 0.0])[0]) for share in shares]
    [-2.0, 0.0]
    """
    graph, outputs, n = traced.graph, list(traced.outputs), traced.n
    shares = [graph.y(n + number) for number in range(len(surfaces))]
    shares += [graph.constant(share) for _, share in pinned]
    every = [*surfaces, *(surface for surface, _ in pinned)]
    for surface, share in zip(every, shares, strict=True):
        below, above = (
            decided(graph, outputs, {node: held == side for node, held in surface.conditions})
            for side in (True, False)
        )
        outputs = [
            a if a == b else graph.add(a, graph.mul(share, graph.sub(b, a)))
            for a, b in zip(above, below, strict=True)
        ]
    on_them = dict(pair for surface in every for pair in _equal_on(graph, surface))
    functions = [surface.function for surface in surfaces]
    outputs = _without_roots(graph, outputs + functions, on_them)
    return traced.with_unknowns(outputs, len(surfaces))


def _equal_on(graph: Graph, surface: Surface) -> list[tuple[int, int]]:
    """List what a surface compares with a number, and that number: on it they are equal."""
    a, b = graph.operands(surface.conditions[0][0])
    return [
        (x, number) for x, number in ((a, b), (b, a))
        if graph.level[x] == FULL and graph.level[number] <= STATIC
    ]


def _without_roots(graph: Graph, outputs: list[int], on_them: dict[int, int]) -> list[int]:
    """Replace roots and powers that are constant on the surfaces by their values there.

    The derivative of ``sqrt(abs(x))`` is infinite where x is held at zero.
    """
    there = dict(on_them)
    new: dict[int, int] = {}
    for node in graph.cone(outputs):
        if node not in there:
            there[node] = rebuilt(graph, node, there)
        code, value = graph.nodes[node][0], there[node]
        is_partial = code >= 0 and not OPERATIONS[code].total
        if is_partial and graph.is_constant(value) and math.isfinite(graph.value(value)):
            new[node] = value
        else:
            new[node] = rebuilt(graph, node, new)
    return [new[node] for node in outputs]
