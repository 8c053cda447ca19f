"""Solutions that stay on a surface where the equations jump, because both sides push them onto it.

Examples are dry friction at rest, a relay that holds a temperature, an ideal saturation. On the
surface the equations are a mixture of those of its two sides (Filippov): the share of one side,
between 0 and 1, is a further unknown, and the condition that the solution stays on the surface is a
further equation. The result has a higher index and is reduced like any other system. It holds as
long as the share stays between 0 and 1.
"""

from __future__ import annotations

from collections.abc import Sequence

from tether.structure.modes import Surface
from tether.trace import Trace
from tether.trace.rewrite import decided

__all__ = ["sliding"]


def sliding(traced: Trace, surfaces: Sequence[Surface]) -> Trace:
    """Return the equations of solutions that stay on some surfaces.

    Their last unknowns are the shares that the equations below each surface have.

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
    for number, surface in enumerate(surfaces):
        below, above = (
            decided(graph, outputs, {node: held == side for node, held in surface.conditions})
            for side in (True, False)
        )
        share = graph.y(n + number)
        outputs = [
            a if a == b else graph.add(a, graph.mul(share, graph.sub(b, a)))
            for a, b in zip(above, below, strict=True)
        ]
    return traced.with_unknowns(
        outputs + [surface.function for surface in surfaces], len(surfaces)
    )
