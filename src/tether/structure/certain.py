"""Unknowns that stand in an expression whatever the answers to its conditions are."""

from __future__ import annotations

from collections.abc import Sequence

from tether.trace import opcodes as op
from tether.trace.graph import Graph, members

__all__ = ["certain_unknowns"]


def certain_unknowns(graph: Graph, outputs: Sequence[int]) -> list[set[int]]:
    """Leaves that are left in every way through each of some expressions, or fewer.

    A term may vanish on one of the ways, as a factor of zero or against another term; where that
    cannot be excluded at a glance its leaves do not count.

    Examples
    --------
    >>> from tether.structure.certain import certain_unknowns
    >>> from tether.trace import trace
    >>> traced = trace(lambda t, y, yp: [yp[0] + (y[0] if t < 1 else y[1]), y[1] * (t < 1)], 2)
    >>> [len(leaves) for leaves in certain_unknowns(traced.graph, traced.outputs)]
    [1, 0]
    """
    cone = graph.cone(outputs)
    leaves = [node for node in cone if graph.nodes[node][0] == op.Y]
    bit = {leaf: 1 << place for place, leaf in enumerate(leaves)}
    looked = _Look(graph, bit)
    for node in cone:
        looked.at(node)
    return [set(members(looked.sure[node], leaves)) for node in outputs]


class _Look:
    """What is known about the nodes looked at so far."""

    def __init__(self, graph: Graph, bit: dict[int, int]) -> None:
        self._graph, self._bit = graph, bit
        self._all: dict[int, int] = {}         # leaves, as bits
        self.sure: dict[int, int] = {}         # those that cannot vanish
        self._fixed: set[int] = set()          # nodes without conditions
        self._constant: set[int] = set()       # nodes that may become constants

    def at(self, node: int) -> None:
        """Look at a node, whose operands are known."""
        graph = self._graph
        code = graph.nodes[node][0]
        operands = graph.influences(node)
        whole = self._bit.get(node, 0)
        for x in operands:
            whole |= self._all[x]
        self._all[node] = whole
        fixed = code not in _DECIDED and all(x in self._fixed for x in graph.operands(node))
        if fixed:
            self._fixed.add(node)
            self.sure[node] = whole
            if code == op.CONST or (code not in op.LEAVES and not operands):
                self._constant.add(node)
            return
        self.sure[node] = self._sure(code, operands) if operands else 0
        if not self.sure[node]:                # no leaf is safe: for all we know, a constant
            self._constant.add(node)

    def _sure(self, code: int, operands: tuple[int, ...]) -> int:
        if code in op.CONDITIONS or code == op.SIGN:
            return 0
        if code == op.SELECT:
            operands = operands[1:]
        sure = [self.sure[x] for x in operands]
        if len(sure) == 1:
            return sure[0]
        (a, b), (first, second) = operands, sure
        if code in (op.SELECT, op.MIN, op.MAX):
            return first & second
        if code in (op.ADD, op.SUB):
            if self._is_number(a) or self._is_number(b):
                return first | second
            # two terms that are left with different leaves do not cancel
            apart = (first & ~self._all[b]) | (second & ~self._all[a])
            return first | second if apart else 0
        if code in (op.MUL, op.DIV) and (self._may_be_zero(a) or self._may_be_zero(b)):
            return 0
        if code == op.POW and b in self._constant and not self._is_number(b):
            return 0
        return first | second

    def _is_number(self, node: int) -> bool:
        return self._graph.nodes[node][0] == op.CONST

    def _may_be_zero(self, node: int) -> bool:
        if self._is_number(node):
            return bool(self._graph.nodes[node][1] == 0.0)
        return node in self._constant


_DECIDED = frozenset((*op.CONDITIONS, op.SELECT, op.MIN, op.MAX, op.ABS, op.SIGN))
