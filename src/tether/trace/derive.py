# cython: annotation_typing=False
"""Exact derivatives of expressions: sparse Jacobians, directions, total time derivatives.

Everything is done by forward sweeps through the graph. A reverse sweep through ``select`` would
multiply the branch not taken by zero, and zero times the infinite slope of a square root at zero
is NaN. Besides, the equations of one system share subexpressions, which a forward sweep
differentiates once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import cython
import numpy as np

from tether.trace import opcodes as op
from tether.trace.operations import OPERATIONS
from tether.trace.piecewise import from_points

if not cython.compiled:
    from tether.trace.graph import Graph, arity
    from tether.trace.opcodes import *

Gradient = dict[int, int]

_NO_GRADIENT: Gradient = {}
_TURNING = frozenset(code for code, o in OPERATIONS.items() if o.turns)


@dataclass(frozen=True)
class SparseJacobian:
    """Entries of a Jacobian that are not identically zero, by rows.

    Attributes
    ----------
    shape : tuple of int
        Number of expressions and of inputs.
    rows, cols : list of int
        Positions of the entries.
    nodes : list of int
        The entries, as nodes.
    """

    shape: tuple[int, int]
    rows: list[int]
    cols: list[int]
    nodes: list[int]


def jacobian(graph: Graph, outputs: Sequence[int], inputs: Sequence[int]) -> SparseJacobian:
    """Differentiate expressions with respect to inputs.

    Parameters
    ----------
    graph : Graph
        The graph of the expressions, to which nodes are added.
    outputs : sequence of int
        Expressions, one per row.
    inputs : sequence of int
        Leaves of the graph, one per column.

    Examples
    --------
    >>> from tether.trace.derive import jacobian
    >>> from tether.trace.graph import Graph
    >>> g = Graph()
    >>> x, y = g.y(0), g.y(1)
    >>> jacobian(g, [g.mul(x, y)], [x, y]).nodes == [y, x]
    True
    """
    column = {node: j for j, node in enumerate(inputs)}
    rows: list[int] = []
    cols: list[int] = []
    nodes: list[int] = []
    for i, gradient in enumerate(gradients(graph, outputs, inputs)):
        entries = sorted((column[x], node) for x, node in gradient.items() if node != graph.zero)
        rows += [i] * len(entries)
        cols += [j for j, _ in entries]
        nodes += [node for _, node in entries]
    return SparseJacobian((len(outputs), len(inputs)), rows, cols, nodes)


def gradients(graph: Graph, outputs: Sequence[int], inputs: Iterable[int]) -> list[Gradient]:
    """Differentiate each output: return one dictionary per output, from inputs to derivatives."""
    cone = graph.cone(outputs)
    uses = _count_uses(graph, cone, outputs)
    seeds = set(inputs)
    known: dict[int, Gradient] = {}
    for node in cone:
        if node in seeds:
            known[node] = {node: graph.one}
        elif graph.nodes[node][0] in op.LEAVES:
            known[node] = _NO_GRADIENT
        else:
            known[node] = _gradient(graph, node, known, uses)
    return [known[node] for node in outputs]


def directional(graph: Graph, outputs: Sequence[int], seeds: dict[int, int]) -> list[int]:
    """Jacobian times vector: derivatives in the direction in which each input moves by its seed."""
    return _directional(graph, outputs, seeds, {})


def total_derivative(graph: Graph, outputs: Sequence[int], times: int = 1) -> list[int]:
    """Differentiate expressions along a solution, with respect to time.

    The rate of t is 1, and that of derivative k of an unknown is its derivative k + 1.

    Examples
    --------
    >>> from tether.trace.derive import total_derivative
    >>> from tether.trace.graph import Graph
    >>> g = Graph()
    >>> total_derivative(g, [g.add(g.time(), g.y(0))]) == [g.add(g.one, g.y(0, 1))]
    True
    """
    nodes = list(outputs)
    for _ in range(times):
        seeds = {}
        for leaf in graph.inputs(nodes):
            code, component, order, _ = graph.nodes[leaf]
            if code == TIME:
                seeds[leaf] = graph.one
            elif code == Y:
                seeds[leaf] = graph.y(component, order + 1)
        nodes = _directional(graph, nodes, seeds, graph.rates)
    return nodes


def switches(graph: Graph, outputs: Iterable[int], order: float = 1) -> list[int]:
    """Nodes at which the outputs may have a kink or a jump.

    Splines count if a derivative up to `order` jumps: 1 finds those with kinks, 2 also those whose
    curvature jumps, infinity all that have more than one piece.
    """
    def turns(node: int) -> bool:
        code, _, number, _ = graph.nodes[node]
        if code != TABLE:
            return code in _TURNING
        table = graph.tables[number]
        return table.smoothness < order or (order == math.inf and len(table.starts) > 0)

    return [node for node in graph.cone(outputs) if turns(node)]


def switching_function(graph: Graph, switch: int) -> int:
    """Expression that passes through zero where a switch turns."""
    code, a, b, _ = graph.nodes[switch]
    if code in (ABS, SIGN):
        return a
    if code in (FLOOR, CEIL, MOD):
        periods = graph.div(a, b) if code == MOD else a
        return graph.unary(SIN, graph.mul(graph.constant(math.pi), periods))
    if code == TABLE:
        return _passing(graph, a, graph.tables[b].starts)
    return graph.sub(a, b)


def _passing(graph: Graph, a: int, places: np.ndarray) -> int:
    """Expression that passes through zero where `a` passes one of the places, nowhere else."""
    if len(places) == 1:
        return graph.sub(a, graph.constant(places[0]))
    passed = graph.table(from_points(places, np.arange(len(places)), "passed"), a)
    least, most = graph.constant(-0.5), graph.constant(len(places) - 0.5)
    limited = graph.binary(MIN, graph.binary(MAX, passed, least), most)
    return graph.unary(SIN, graph.mul(graph.constant(math.pi), limited))


# --- rules --------------------------------------------------------------------------------


def choice(g: Graph, node: int) -> tuple[int, int, int] | None:
    """Condition and the two operands for nodes that choose one of them, or None."""
    fields = g.nodes[node]
    code = fields[0]
    if code == SELECT:
        return fields[1:]
    if code != MIN and code != MAX:
        return None
    a, b = fields[1], fields[2]
    return (g.binary(LE, a, b) if code == MIN else g.binary(LE, b, a)), a, b


def _partials(g: Graph, node: int) -> tuple[int, ...]:
    """Differentiate a node by its operands; nothing for step functions."""
    fields = g.nodes[node]
    code = fields[0]
    if code == MUL:                # by far the most common
        return fields[2], fields[1]
    rule = OPERATIONS[code].slopes
    if rule is None:
        return ()
    _, a, b, _ = fields
    return rule(g, node, a) if b < 0 and code != POWI else rule(g, node, a, b)


# --- sweeps -------------------------------------------------------------------------------


def _count_uses(graph: Graph, cone: list[int], outputs: Sequence[int]) -> dict[int, int]:
    uses = dict.fromkeys(cone, 0)
    for node in cone:
        fields = graph.nodes[node]
        for k in range(1, 1 + arity(fields)):
            uses[fields[k]] += 1
    for node in outputs:
        uses[node] += 1
    return uses


def _gradient(
    graph: Graph, node: int, known: dict[int, Gradient], uses: dict[int, int]
) -> Gradient:
    fields = graph.nodes[node]
    code = fields[0]
    operands = graph.operands(node)
    for operand in operands:
        if known[operand]:
            break
    else:
        return _NO_GRADIENT
    chosen = choice(graph, node)
    if chosen is not None:
        return _chosen_gradient(graph, chosen, known)
    a, b = fields[1], fields[2]
    if code in (ADD, SUB):
        return _sum_gradient(graph, code, a, b, known, uses)
    if a == b and code == MUL:
        return _scaled(graph, graph.mul(graph.constant(2.0), a), known[a])
    result: Gradient = {}
    partials = _partials(graph, node)
    for k in range(min(len(operands), len(partials))):
        partial = partials[k]
        if partial != graph.zero and known[operands[k]]:
            result = _joined(graph, result, _scaled(graph, partial, known[operands[k]]))
    return result


def _scaled(graph: Graph, factor: int, gradient: Gradient) -> Gradient:
    found: Gradient = {}
    for x, d in gradient.items():
        found[x] = _product(graph, factor, d)
    return found


def _product(graph: Graph, factor: int, slope: int) -> int:
    """Make factor * slope: zero on a branch where the slope is, even if the factor is infinite.

    So the slope of sqrt(max(x, 0)) is zero, not NaN, where x is not positive. A table that has no
    value outside has no slope there either.
    """
    if graph.nodes[factor][0] == TABLE:
        return graph.mul(factor, slope)
    fields = graph.nodes[slope]
    code = fields[0]
    if code == NEG:
        return graph.neg(_product(graph, factor, fields[1]))
    if code == SELECT:
        condition, a, b = fields[1], fields[2], fields[3]
        if a == graph.zero or b == graph.zero:
            a, b = _product(graph, factor, a), _product(graph, factor, b)
            return graph.select(condition, a, b)
    return graph.mul(factor, slope)


def _joined(graph: Graph, target: Gradient, other: Gradient) -> Gradient:
    """Sum of two gradients; the first is changed in place, so nothing else may refer to it."""
    if not target:
        return other
    for x, d in other.items():
        target[x] = graph.add(target[x], d) if x in target else d
    return target


def _sum_gradient(
    graph: Graph, code: int, a: int, b: int, known: dict[int, Gradient], uses: dict[int, int]
) -> Gradient:
    """Gradient of a sum or difference.

    The dictionary of a partial sum that is used only here is reused: the cost of a sum of n terms
    is then proportional to n, not to n squared.
    """
    first, second = known[a], known[b]
    if code == ADD and len(second) > len(first):
        a, b, first, second = b, a, second, first
    result = first if uses[a] == 1 and first is not _NO_GRADIENT else dict(first)
    if code == ADD:
        return _joined(graph, result, second) if result else dict(second)
    for x, d in second.items():
        result[x] = graph.sub(result[x], d) if x in result else graph.neg(d)
    return result


def _chosen_gradient(
    graph: Graph, choice: tuple[int, int, int], known: dict[int, Gradient]
) -> Gradient:
    condition = choice[0]
    first, second, zero = known[choice[1]], known[choice[2]], graph.zero
    found: Gradient = {}
    for x in first | second:
        found[x] = graph.select(condition, first.get(x, zero), second.get(x, zero))
    return found


def _directional(
    graph: Graph, outputs: Sequence[int], seeds: dict[int, int], known: dict[int, int]
) -> list[int]:
    for node in graph.cone(outputs):
        if node in known:
            continue
        if graph.nodes[node][0] in op.LEAVES:
            known[node] = seeds.get(node, graph.zero)
        else:
            known[node] = _rate(graph, node, known)
    return [known[node] for node in outputs]


def _rate(graph: Graph, node: int, known: dict[int, int]) -> int:
    operands = graph.operands(node)
    for operand in operands:
        if known[operand] != graph.zero:
            break
    else:
        return graph.zero
    chosen = choice(graph, node)
    if chosen is not None:
        condition, a, b = chosen
        return graph.select(condition, known[a], known[b])
    total, partials = graph.zero, _partials(graph, node)
    for k in range(min(len(operands), len(partials))):
        rate = known[operands[k]]
        if rate != graph.zero:
            total = graph.add(total, _product(graph, partials[k], rate))
    return total
