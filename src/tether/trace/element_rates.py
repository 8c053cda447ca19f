"""Rates of elements: whole arrays differentiated with respect to time.

Every batch is differentiated once, for all of its elements. The derivatives are batches again, and
templates are made from these as from any others.
"""

from __future__ import annotations

import numpy as np

from tether.trace import opcodes as op
from tether.trace.batches import LINEAR, Batch, Batches, picked
from tether.trace.derive import jacobian
from tether.trace.graph import Graph
from tether.trace.refusal import refuse

__all__ = ["rates"]

# In place of the number of an element whose rate is zero, or unknown.
_ZERO, _UNKNOWN = -1, -2


def rates(
    batches: Batches, elements: np.ndarray, slopes: np.ndarray | None = None
) -> np.ndarray:
    """Differentiate elements that depend on t and y with respect to time.

    Parameters
    ----------
    batches : Batches
        The batches of the elements, to which those of the rates are added.
    elements : ndarray
        Numbers of the elements.
    slopes : ndarray, optional
        Numbers of the elements that stand for y'; those of y' itself when left out.

    Returns
    -------
    ndarray
        Numbers of the elements df/dt + sum df/dy_j y_j'.

    Raises
    ------
    Untraceable
        If one of them depends on y'.

    Examples
    --------
    >>> import numpy as np
    >>> from tether._core.rows import Rows
    >>> from tether.trace import opcodes as op
    >>> from tether.trace.batches import Batches
    >>> from tether.trace.element_rates import rates
    >>> from tether.trace.templates import fold
    >>> batches = Batches(2)
    >>> squares = batches.add(op.MUL, np.arange(2), np.arange(2))
    >>> Rows(fold(batches, rates(batches, squares))).values(0.0, [1.0, 2.0], [10.0, 20.0])
    array([20., 80.])
    """
    known = np.arange(batches.n, 2 * batches.n) if slopes is None else slopes
    return _Rates(batches, known).of(np.asarray(elements))


class _Rates:
    """Differentiates one batch after the other."""

    def __init__(self, batches: Batches, slopes: np.ndarray) -> None:
        n = batches.n
        self.batches = batches
        self.rate = np.full(batches.size, _ZERO, np.int64)
        self.rate[:n] = slopes
        self.rate[n : 2 * n] = _UNKNOWN
        self.rate[batches.time] = batches.constant(1.0)
        self._rules: dict[tuple[int, int, int], tuple[Graph, int]] = {}

    def of(self, elements: np.ndarray) -> np.ndarray:
        """Return the rates of some elements."""
        needed = self.batches.needed_for(elements)
        if needed[self.batches.n : 2 * self.batches.n].any():
            refuse("depends on y' where it has to be differentiated")
        for batch in list(self.batches.batches):
            places = np.flatnonzero(needed[batch.start : batch.stop])
            if len(places) and batch.code == LINEAR:
                self._differentiate_sums(batch)
            elif len(places) and batch.code != op.CONST:
                self._differentiate(batch, places)
        found = self.rate[elements]
        return np.where(found == _ZERO, self.batches.constant(0.0), found)

    def _differentiate_sums(self, batch: Batch) -> None:
        """Add up the rates of the terms in linear combinations."""
        assert batch.values is not None
        assert batch.ends is not None
        rate = self.rate[picked(batch.operands[0])]
        moves = rate >= 0
        owner = np.repeat(np.arange(batch.size), np.diff(batch.ends, prepend=0))
        count = np.bincount(owner[moves], minlength=batch.size)
        rows = np.flatnonzero(count)
        if len(rows):
            self.rate[batch.start + rows] = self.batches.linear(
                rate[moves], batch.values[moves], np.cumsum(count[rows])
            )

    def _differentiate(self, batch: Batch, places: np.ndarray) -> None:
        """Differentiate some elements, those with the same constant operands together."""
        operands = [picked(x, places) for x in batch.operands]
        rate = [self.rate[x] for x in operands]
        moving = sum((r >= 0) * 2**k for k, r in enumerate(rate))
        for which in np.unique(moving):
            mine = np.flatnonzero(moving == which)
            graph, root = self._rule(batch, int(which))
            if graph.is_constant(root) and graph.value(root) == 0.0:
                continue
            inputs = [x[mine] for x in (*operands, *rate)]
            self.rate[batch.start + places[mine]] = self._play(graph, root, inputs)

    def _rule(self, batch: Batch, moving: int) -> tuple[Graph, int]:
        """Sum of partial derivatives times rates, over the operands that move."""
        key = batch.code, batch.number, moving
        if key not in self._rules:
            graph, count = Graph(), len(batch.operands)
            operands = [graph.y(k) for k in range(count)]
            node = graph.make(batch.code, operands, batch.number, self.batches.tables)
            chosen = [k for k in range(count) if moving >> k & 1]
            found = jacobian(graph, [node], [operands[k] for k in chosen])
            total = graph.zero
            for column, slope in zip(found.cols, found.nodes, strict=True):
                total = graph.add(total, graph.mul(slope, graph.y(count + chosen[column])))
            self._rules[key] = graph, total
        return self._rules[key]

    def _play(self, graph: Graph, root: int, inputs: list[np.ndarray]) -> np.ndarray:
        """Apply an expression to elements."""
        batches, made = self.batches, {}
        for node in graph.cone([root]):
            code, a, b, _ = graph.nodes[node]
            if code == op.Y:
                made[node] = inputs[a]
            elif code == op.CONST:
                made[node] = np.array([batches.constant(a)])
            else:
                number = b if code in (op.POWI, op.SPECIAL, op.TABLE) else -1
                if code == op.TABLE:
                    batches.tables.append(graph.tables[b])
                    number = len(batches.tables) - 1
                operands = [made[x] for x in graph.operands(node)]
                made[node] = batches.add(code, *operands, number=number)
        return made[root]
