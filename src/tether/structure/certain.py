"""Unknowns that occur in an expression whichever way its conditions go."""

from __future__ import annotations

from collections.abc import Sequence

from tether.trace import opcodes as op
from tether.trace.graph import Graph, members

__all__ = ["certain_unknowns"]


def certain_unknowns(graph: Graph, outputs: Sequence[int]) -> list[set[int]]:
    """Leaves that occur in each expression in all of its branches.

    In a branch a term may be multiplied by zero, or cancel another one. Where that cannot be
    excluded at a glance its leaves are left out, so a set may be too small, but never too large.

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
    known = _Occurrences(graph, bit)
    for node in cone:
        known.visit(node)
    return [set(members(known.sure[node], leaves)) for node in outputs]


class _Occurrences:
    """Which leaves occur in the nodes visited so far."""

    def __init__(self, graph: Graph, bit: dict[int, int]) -> None:
        self._graph, self._bit = graph, bit
        self._all: dict[int, int] = {}         # leaves, as bits
        self.sure: dict[int, int] = {}         # those that cannot vanish
        self._fixed: set[int] = set()          # nodes without conditions
        self._constant: set[int] = set()       # nodes that may become constants

    def visit(self, node: int) -> None:
        """Find the leaves of a node whose operands have been visited."""
        graph = self._graph
        code = graph.nodes[node][0]
        operands = graph.influences(node)
        whole = self._bit.get(node, 0)
        for x in operands:
            whole |= self._all[x]
        self._all[node] = whole
        fixed = code not in _CONDITIONAL and all(x in self._fixed for x in graph.operands(node))
        if fixed:
            self._fixed.add(node)
            self.sure[node] = whole
            if code == op.CONST or (code not in op.LEAVES and not operands):
                self._constant.add(node)
            return
        self.sure[node] = self._sure(code, operands) if operands else 0
        if not self.sure[node]:                # no leaf is certain: it may be constant
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
            # terms do not cancel if one certainly has a leaf that the other never has
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


_CONDITIONAL = frozenset((*op.CONDITIONS, op.SELECT, op.MIN, op.MAX, op.ABS, op.SIGN))
