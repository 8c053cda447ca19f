"""Conditions on unknowns, frozen while a step is taken.

A residual that switches with the solution has a jump or a kink on a surface in the space of its
unknowns. A step that uses both sides of it converges badly and has a large error. So every
comparison of expressions a and b gets an input, a shift: a is compared with b + shift. An infinite
shift fixes the answer to that of one side, whatever the unknowns are; a shift of zero changes
nothing. The run decides which side it is, and finds where the solution passes the surface
(`tether.run.switching`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tether.structure.modes import Surface
from tether.trace import Trace
from tether.trace import opcodes as op
from tether.trace.backend import Backend, prepare
from tether.trace.derive import total_derivative
from tether.trace.emit import Program
from tether.trace.graph import FULL, Graph
from tether.trace.operations import OPERATIONS
from tether.trace.rewrite import alternatives, rebuilt

__all__ = ["Frozen", "freeze"]

COMPARISONS = (op.LT, op.LE)
CHOOSING = (op.MIN, op.MAX, op.ABS, op.SIGN)
CONTINUOUS = (op.MIN, op.MAX, op.ABS)
ROOTS = (op.SQRT, op.POW)
# Operations that are finite except where they overflow.
OVERFLOWING = (op.EXP, op.EXPM1, op.SINH, op.COSH)


@dataclass(frozen=True, eq=False)
class Frozen:
    """Equations whose conditions can be frozen.

    Attributes
    ----------
    traced : Trace
        The equations; the last of their inputs are the shifts.
    surfaces : tuple of Surface
        Where the conditions change their answers. Then come the surfaces on which a sliding
        solution is pinned. The last ones, two for each share, are where the share is 0 and 1.
    shares, pins : int
        Number of shares, and of surfaces on which the solution is pinned.
    has_roots : bool
        Whether derivatives may be infinite on a surface.
    """

    traced: Trace
    surfaces: tuple[Surface, ...]
    shares: int = 0
    pins: int = 0
    has_roots: bool = False

    @cached_property
    def equations(self) -> Program:
        """Program of the equations."""
        return self.traced.program()

    @cached_property
    def heights(self) -> Backend:
        """Program of the heights above all surfaces."""
        return prepare(self.traced.program([surface.function for surface in self.surfaces]))

    @cached_property
    def unknowns(self) -> np.ndarray:
        """Marks of the unknowns on which heights depend."""
        functions = [surface.function for surface in self.surfaces]
        return self.traced.depends_on(functions, self.traced.n)

    @cached_property
    def sizes(self) -> Backend:
        """Program of the two values of which each height is the difference."""
        graph = self.traced.graph
        operands = [
            graph.operands(surface.conditions[0][0]) if surface.conditions
            else (surface.function, graph.one)
            for surface in self.surfaces
        ]
        return prepare(self.traced.program([x for pair in operands for x in pair]))

    @cached_property
    def rates(self) -> tuple[Backend, tuple[bool, ...]]:
        """Program of the heights' derivatives along a solution, and which of them are known.

        They are not known where a height depends on slopes.
        """
        graph = self.traced.graph
        rates = total_derivative(graph, [surface.function for surface in self.surfaces])
        known = tuple(
            all(graph.nodes[leaf][0] != op.Y or graph.nodes[leaf][2] < 2 for leaf in leaves)
            for leaves in graph.supports(rates)
        )
        chosen = [rate if is_known else graph.zero for rate, is_known in zip(
            rates, known, strict=True
        )]
        return prepare(self.traced.program(chosen)), known

    @property
    def pinned(self) -> range:
        """Numbers of the surfaces on which the solution is pinned."""
        end = len(self.surfaces) - 2 * self.shares
        return range(end - self.pins, end)

    def exit_of(self, number: int) -> tuple[int, float] | None:
        """Share that leaves its bounds at a surface, and on which side; None for other surfaces."""
        first = len(self.surfaces) - 2 * self.shares
        if number < first:
            return None
        share, at_one = divmod(number - first, 2)
        return share, -1.0 if at_one else 1.0

    def shifts(self, sides: np.ndarray) -> np.ndarray:
        """Shifts that freeze conditions: side 1 is above, -1 below, 0 leaves a condition free."""
        return np.where(sides == 0.0, 0.0, -np.inf * np.where(sides == 0.0, 1.0, sides))


def freeze(traced: Trace, shares: int = 0, pinned: Sequence[int] = ()) -> Frozen | None:
    """Give every condition on unknowns an input that freezes it; None if there is no condition.

    The last unknowns are the shares of sliding solutions, as many as `shares` says. `pinned` are
    functions of further surfaces on which the solution stays.

    Examples
    --------
    >>> import numpy as np
    >>> from tether.structure.frozen import freeze
    >>> from tether.trace import trace
    >>> from tether.trace.backend import prepare
    >>> found = freeze(trace(lambda t, y, yp: [yp[0] + max(y[0], 3.0)], 1))
    >>> program, sides = prepare(found.traced.program()), np.array([[0.0], [1.0], [-1.0]])
    >>> values = [program.new(found.shifts(x)).values(0.0, [5.0], [0.0])[0] for x in sides]
    >>> [float(value) for value in values]             # free, and on both sides
    [5.0, 5.0, 3.0]
    """
    graph = traced.graph
    cone = [node for node in graph.cone(traced.outputs) if graph.level[node] == FULL]
    conditions = _conditions(graph, cone)
    if not conditions and not shares:
        return None
    guards, divisors = _risky(graph, cone)
    beside_roots = _beside_roots(graph, traced.outputs, cone)
    pairs: dict[tuple[int, int], dict[int, bool]] = {}
    for node, uses in conditions.items():
        if _may_be_frozen(graph, uses, guards, divisors, beside_roots):
            _, a, b, _ = graph.nodes[node]
            pairs.setdefault((min(a, b), max(a, b)), {})[node] = a < b
    if not pairs and not shares:
        return None
    surfaces = tuple(
        Surface(graph.sub(*pair), tuple(answers.items())) for pair, answers in pairs.items()
    )
    first = traced.args.size
    shifted: dict[int, int] = {}
    for number, surface in enumerate(surfaces):
        shift = graph.arg(first + number)
        for node, is_true_below in surface.conditions:
            code, a, b, _ = graph.nodes[node]
            moved = graph.add(b, shift) if is_true_below else graph.sub(b, shift)
            shifted[node] = graph.binary(code, a, moved)
    outputs = _with_shifts(graph, traced.outputs, shifted, guards | divisors)
    surfaces += tuple(Surface(function, ()) for function in pinned)
    for number in range(traced.n - shares, traced.n):
        share = graph.y(number)
        surfaces += (Surface(share, ()), Surface(graph.sub(graph.one, share), ()))
    frozen_uses = {use for node in shifted for use in conditions[node]}
    return Frozen(
        traced.with_shifts(outputs, len(surfaces)), surfaces, shares, len(pinned),
        not guards.isdisjoint(frozen_uses),
    )


def _conditions(graph: Graph, cone: Sequence[int]) -> dict[int, list[int]]:
    """Comparisons of unknowns, also those in minima, maxima, absolute values, signs; their uses.

    A use is a node that chooses by the comparison, or the comparison itself where it is written.
    """
    found: dict[int, list[int]] = {}
    for node in cone:
        code = graph.nodes[node][0]
        if code in COMPARISONS:
            found.setdefault(node, []).append(node)
        elif code in CHOOSING:
            found.setdefault(_condition(graph, node), []).append(node)
    return found


def _may_be_frozen(
    graph: Graph, uses: Sequence[int], guards: set[int], divisors: set[int],
    beside_roots: set[int],
) -> bool:
    """Whether a condition can be frozen in its uses, or in some of them.

    Uses in a divisor and those that keep an operand in its domain are left free if nothing jumps
    there: of ``sign(v) / (1 + abs(v))`` and ``sqrt(abs(x)) * sign(x)`` the sign has to be frozen
    and the absolute value must not be. Where such a product is the only use of the sign, nothing
    jumps at all.
    """
    free = [use for use in uses if use in guards or use in divisors]
    codes = {graph.nodes[use][0] for use in uses}
    if any(use in guards for use in uses) and codes != {op.ABS, op.SIGN}:
        return False
    if not all(graph.nodes[use][0] in CONTINUOUS for use in free):
        return False
    return any(use not in free and use not in beside_roots for use in uses)


def _beside_roots(graph: Graph, outputs: Sequence[int], cone: Sequence[int]) -> set[int]:
    """Find signs that are only factors of roots and powers that are zero where the sign changes."""
    zero_with: dict[int, int] = {}             # nodes that are zero where another one is
    sign_of: dict[int, int] = {}               # products with a sign, and the sign
    alone: set[int] = set()                    # signs that jump somewhere
    for node in cone:
        code, operands = graph.nodes[node][0], graph.operands(node)
        zeros = {zero_with[x] for x in operands[:1] if x in zero_with}
        if code == op.MUL:
            zeros = {zero_with[x] for x in operands if x in zero_with}
        signs = [sign_of[x] for x in operands if x in sign_of]
        if code == op.ABS:
            zero_with[node] = operands[0]
        elif code in (op.MUL, op.DIV, op.NEG, *ROOTS) and zeros:
            zero_with[node] = zeros.pop()
        if code == op.SIGN:
            sign_of[node] = node
        is_product = code in (op.MUL, op.NEG) or (code == op.DIV and operands[1] not in sign_of)
        if signs and not (is_product and len(signs) == 1):
            alone.update(signs)
        elif signs and zero_with.get(node) != graph.operands(signs[0])[0]:
            sign_of[node] = signs[0]
    alone.update(sign_of[node] for node in outputs if node in sign_of)
    return {node for node in cone if graph.nodes[node][0] == op.SIGN and node not in alone}


def _condition(graph: Graph, node: int) -> int:
    """Comparison that a minimum, maximum, absolute value or sign is decided by."""
    code, a, _, _ = graph.nodes[node]
    if code == op.ABS:
        return graph.binary(op.LT, a, graph.zero)
    chosen = alternatives(graph, node)
    assert chosen is not None
    return chosen[0]


def _with_shifts(
    graph: Graph, outputs: Sequence[int], shifted: dict[int, int], free: set[int]
) -> list[int]:
    """Replace comparisons by shifted ones, except in `free` uses."""
    new = dict(shifted)
    for node in graph.cone(outputs):
        if node in new:
            continue
        code, a, b, _ = graph.nodes[node]
        condition = _condition(graph, node) if code in CHOOSING and node not in free else -1
        made = rebuilt(graph, node, new)
        if condition in shifted:
            x, answer = new[a], shifted[condition]
            if code == op.ABS:
                made = graph.select(answer, graph.neg(x), x)
            elif code == op.SIGN:
                above = graph.binary(op.LT, graph.nodes[answer][2], x)
                zero_or_one = graph.select(above, graph.one, graph.zero)
                made = graph.select(answer, graph.constant(-1.0), zero_or_one)
            else:
                made = graph.select(answer, x, new[b])
        new[node] = made
    return [new[node] for node in outputs]


def is_blank(graph: Graph, node: int) -> bool:
    """Whether a node stands for a missing value, as where a function raises an exception."""
    return graph.is_constant(node) and not math.isfinite(graph.value(node))


def _risky(graph: Graph, cone: Sequence[int]) -> tuple[set[int], set[int]]:
    """Find uses of conditions that keep an operand in its domain, and those in a divisor.

    On the wrong side there may be no value. Examples of the former are the absolute value in
    ``sqrt(abs(x))``, and the comparison in ``sqrt(x) if x > 0 else 0``.
    """
    deciding: dict[int, frozenset[int]] = {}           # uses of conditions that a node depends on
    has_domain: dict[int, bool] = {}                   # whether it has no value for some unknowns
    guards: set[int] = set()
    divisors: set[int] = set()
    nothing: frozenset[int] = frozenset()
    for node in cone:
        code, operands = graph.nodes[node][0], graph.operands(node)
        blank = any(is_blank(graph, x) for x in operands)
        mine = nothing.union(*(deciding.get(x, nothing) for x in operands))
        is_partial = code >= 0 and not (OPERATIONS[code].total or code in OVERFLOWING)
        if code in CHOOSING or code in COMPARISONS:
            mine |= {node}
        elif is_partial:
            guards |= mine
        elif code == op.DIV:
            divisors |= deciding.get(operands[1], nothing)
        if code == op.SELECT and (blank or any(has_domain.get(x, False) for x in operands[1:])):
            guards |= deciding.get(operands[0], nothing)
        if mine:
            deciding[node] = mine
        has_domain[node] = is_partial or blank or any(has_domain.get(x, False) for x in operands)
    return guards, divisors
