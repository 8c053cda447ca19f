"""Elements that depend on time and arguments alone, as expressions of single numbers.

A function of whole arrays may branch on them, and a run has to know when such switches turn.
"""

from __future__ import annotations

import bisect

import numpy as np

from tether.trace import opcodes as op
from tether.trace.batches import LINEAR, Batch, Batches, as_index, picked
from tether.trace.graph import Graph
from tether.trace.operations import OPERATIONS
from tether.trace.refusal import refuse

__all__ = ["OF_TIME", "OF_UNKNOWNS", "TimedElements", "levels"]

# SELECT is not among them: its condition is what turns.
_TURNING = frozenset(code for code, o in OPERATIONS.items() if o.turns)
# What elements depend on at most: arguments, time, unknowns.
OF_ARGUMENTS, OF_TIME, OF_UNKNOWNS = range(3)
# With more elements than this, expressions of single numbers are given up.
MOST_ELEMENTS = 5000


class TimedElements:
    """Makes expressions of single elements in a graph of its own.

    Parameters
    ----------
    batches : Batches
        The batches of the elements.

    Attributes
    ----------
    graph : Graph
        The graph of the expressions.
    elements : dict
        For each expression that `node` has returned, an element that has its value.
    """

    def __init__(self, batches: Batches) -> None:
        self.batches, self.graph = batches, Graph()
        self.elements: dict[int, int] = {}
        self._nodes: dict[int, int] = {}

    def node(self, element: int) -> int:
        """Return the expression of an element; refuse one that depends on unknowns."""
        stack = [element]
        while stack:
            last = stack[-1]
            missing = [x for x in self._operands(last) if x not in self._nodes]
            if missing:
                stack += missing
                if len(stack) + len(self._nodes) > MOST_ELEMENTS:
                    refuse("branches on an expression that is too long")
                continue
            stack.pop()
            if last not in self._nodes:
                self._nodes[last] = self._made(last)
        self.elements.setdefault(self._nodes[element], element)
        return self._nodes[element]

    def _batch(self, element: int) -> Batch | None:
        if element < self.batches.first:
            return None
        found = self.batches.batches
        return found[bisect.bisect_right(found, element, key=lambda b: b.start) - 1]

    def _operands(self, element: int) -> list[int]:
        batch = self._batch(element)
        if batch is None or batch.code == op.CONST:
            return []
        place = np.array([element - batch.start])
        if batch.code != LINEAR:
            return [int(picked(x, place)[0]) for x in batch.operands]
        assert batch.ends is not None
        return picked(batch.operands[0])[_terms(batch, int(place[0]))].tolist()

    def _made(self, element: int) -> int:
        graph, batch = self.graph, self._batch(element)
        if batch is None:
            if element < self.batches.time:
                refuse("branches on a traced number")
            number = element - self.batches.argument(0)
            return graph.time() if element == self.batches.time else graph.arg(number)
        nodes = [self._nodes[x] for x in self._operands(element)]
        place = element - batch.start
        if batch.code == op.CONST:
            assert batch.values is not None
            return graph.constant(float(batch.values[place]))
        if batch.code == LINEAR:
            assert batch.values is not None
            total = graph.zero
            factors = batch.values[_terms(batch, place)]
            for node, factor in zip(nodes, factors, strict=True):
                total = graph.add(total, graph.mul(graph.constant(float(factor)), node))
            return total
        return graph.make(batch.code, nodes, batch.number, self.batches.tables)

    # --- switches -------------------------------------------------------------------------

    def turning(self, outputs: np.ndarray) -> tuple[list[int], bool]:
        """Return the switches that depend on time alone, and whether there are others."""
        level = levels(self.batches)
        needed = np.zeros(self.batches.size, bool)
        needed[outputs] = True
        timed: list[int] = []
        others = False
        for batch in reversed(self.batches.batches):
            mine = needed[batch.start : batch.stop]
            if batch.code == op.CONST or not mine.any():
                continue
            places = None if batch.code == LINEAR or mine.all() else np.flatnonzero(mine)
            for operand in batch.operands:
                whole = places is None or len(operand) == 1
                needed[as_index(operand) if whole else picked(operand, places)] = True
            if batch.code in _TURNING or batch.code == op.TABLE:       # tables have breakpoints
                found = level[batch.start : batch.stop][mine]
                others |= batch.code != op.TABLE and bool((found == OF_UNKNOWNS).any())
                timed += (batch.start + np.flatnonzero(mine)[found == OF_TIME]).tolist()
        if len(timed) > MOST_ELEMENTS:
            return [], True
        return list(dict.fromkeys(map(self.node, reversed(timed)))), others


def levels(batches: Batches) -> np.ndarray:
    """Return for each element what it depends on at most: arguments, time or unknowns."""
    level = np.full(batches.size, OF_ARGUMENTS, np.int8)
    level[: batches.time] = OF_UNKNOWNS
    level[batches.time] = OF_TIME
    for batch in batches.batches:
        part = level[batch.start : batch.stop]
        if batch.code == LINEAR:
            assert batch.ends is not None
            terms = level[as_index(batch.operands[0])]
            for k in range(batch.size) if len(terms) < MOST_ELEMENTS else ():
                part[k] = terms[_terms(batch, k)].max(initial=OF_ARGUMENTS)
            if len(terms) >= MOST_ELEMENTS:    # one of so many will depend on an unknown
                part[:] = OF_UNKNOWNS
            continue
        for operand in batch.operands:
            np.maximum(part, level[as_index(operand)], out=part)
    return level


def _terms(batch: Batch, place: int) -> slice:
    assert batch.ends is not None
    return slice(int(batch.ends[place - 1]) if place else 0, int(batch.ends[place]))
