"""The index-1 form of a system that is only known by its derivative array.

Differentiated as often as the index says, the array determines y' wherever y is consistent
(Campbell 1985). Its rows depend on each other as equations for the derivatives of y: as many as
there are constraints can be left out, and as many of the highest derivatives are not determined
and may take any value. So

    y' = w1,    chosen rows of the array (y, w) = 0

is a square system of index 1 for y and those derivatives w that are determined, and all rows
together are the constraints onto which it is projected. Rows and derivatives are chosen by pivots
at the start; nothing is eliminated, so it does not matter how the derivatives cancel. Where the
choice becomes a bad one, a new one is made.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tether.structure.array import DerivativeArray
from tether.structure.equations import is_regular
from tether.structure.hidden import Level, Reduced
from tether.structure.least_change import movable
from tether.structure.ranks import ArrayRanks
from tether.structure.scaling import balanced
from tether.structure.sigma import Signature
from tether.trace import substitute

__all__ = ["reduce_by_array"]


def reduce_by_array(found: ArrayRanks, t: float, y: np.ndarray) -> Reduced | None:
    """Make a system of index 1 from the derivative array.

    Parameters
    ----------
    found : ArrayRanks
        Ranks of the array, of kind "regular".
    t, y : float, ndarray
        Starting values, possibly approximate.

    Returns
    -------
    Reduced or None
        None if no consistent values are found, or if the rows and derivatives chosen there do not
        serve at points near it.

    Examples
    --------
    >>> import numpy as np
    >>> from math import exp
    >>> from tether.structure.array import DerivativeArray
    >>> from tether.structure.equations import Equations, general_points
    >>> from tether.structure.implicit import reduce_by_array
    >>> from tether.structure.ranks import find_ranks
    >>> from tether.trace import trace
    >>> def fun(t, y, yp):
    ...     return [yp[0] - y[1] + y[2], exp(yp[0] - y[1] + y[2]) + y[0] - 2, yp[2] - 1]
    >>> array = DerivativeArray(Equations.of_trace(trace(fun, 3)))
    >>> y0 = np.array([1.0, 1.0, 1.0])
    >>> found = find_ranks(array, general_points(0.0, y0, np.zeros(3)))
    >>> found.index, reduce_by_array(found, 0.0, y0).unknowns
    (2, ((0, 0), (1, 0), (2, 0), (1, 1)))
    """
    array, n = found.array.differentiated(), len(y)
    x = _nearest(array, found, t, y)
    if x is None:
        return None
    M = array.jacobian(t, x)[:, n:]
    rows, columns = _pivots(M, array.size - found.constraints)
    others = [(s, array.consistent(s, array.extended(jet))) for s, jet in found.jets]
    minors = [array.jacobian(s, jet)[np.ix_(rows, n + columns)]
              for s, jet in others if jet is not None]
    minors.append(M[np.ix_(rows, columns)])
    if not is_regular(np.array(minors)).all():
        return None
    return _form(array, found.enters, x, rows, columns)


def _nearest(
    array: DerivativeArray, found: ArrayRanks, t: float, y: np.ndarray
) -> np.ndarray | None:
    """Find a consistent jet that keeps as many of the variables as can be kept.

    The derivatives at the points near the start where the ranks were found are a good guess.
    """
    for free in movable(found.enters, array.size):
        for _, jet in found.jets:
            x = array.consistent(t, array.extended(np.append(y, jet[len(y) :])), free)
            if x is not None:
                return x
    return None


def _pivots(M: np.ndarray, rank: int) -> tuple[np.ndarray, np.ndarray]:
    """Independent rows, and columns in which they are regular."""
    from scipy.linalg import qr

    row, column = balanced(M)
    M = row[:, None] * M * column
    rows = np.sort(qr(M.T, mode="r", pivoting=True)[1][:rank])
    return rows, np.sort(qr(M[rows], mode="r", pivoting=True)[1][:rank])


def _form(
    array: DerivativeArray,
    enters: tuple[int, ...],
    x: np.ndarray,
    rows: np.ndarray,
    columns: np.ndarray,
) -> Reduced:
    system, n = array.system, array.system.n
    graph = system.graph
    chosen = [array.derivatives[k] for k in columns]
    names = {
        graph.y(j, k): graph.constant(value)
        for (j, k), value in zip(array.derivatives, x[n:], strict=True)
    }
    names |= {graph.y(j, k): graph.y(place) for place, (j, k) in enumerate(chosen, start=n)}
    nodes = substitute(graph, array.nodes, names)
    tops = list(system.rows)
    for i, j in zip(array.rows, array.variables, strict=True):
        tops[i] = graph.sub(graph.y(j, 1), names[graph.y(j, 1)])
    return Reduced(
        graph=graph,
        n_user=n,
        unknowns=(*((j, 0) for j in range(n)), *chosen),
        equations=(*tops, *(nodes[k] for k in rows)),
        levels=tuple(
            Level(i, k, node, k - array.order)
            for (i, k), node in zip(array.equations, nodes, strict=True)
            if graph.inputs([node])
        ),
        stages=(-1,) * n + (0,) * len(chosen),
        form=1,
        args=system.args,
        source=(system, _offsets(array)),
        enters=enters,
        guess=tuple(x[n + columns].tolist()),
    )


def _offsets(array: DerivativeArray) -> Signature:
    """How often the equations are differentiated, and to which order of the variables."""
    signature, order = array.system.signature, array.order
    assert isinstance(signature, Signature)
    return replace(
        signature,
        c=tuple(order if i in array.rows else 0 for i in range(array.system.n)),
        d=tuple(order + 1 if j in array.variables else 1 for j in range(array.system.n)),
    )
