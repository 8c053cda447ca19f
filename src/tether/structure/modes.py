"""Conditions on which the structure of the equations depends.

A residual with an `if`, `np.where`, `min` or `max` is several systems in one, and some of them may
have another index than the others: a mass that is free, or held by a stop. Such a system is
analysed, reduced and integrated one branch at a time. The comparisons that decide about it change
their answers where the difference of their operands passes zero: on a *surface*. The branch that
belongs to the sides of all surfaces on which a point lies is a *mode*.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product

import numpy as np

from tether.structure.certain import certain_unknowns
from tether.structure.sigma import Unmatched, find_signature
from tether.trace import Trace
from tether.trace import opcodes as op
from tether.trace.backend import Backend, prepare
from tether.trace.emit import NoProgram
from tether.trace.graph import STATIC, TIMED, Graph
from tether.trace.operations import OPERATIONS
from tether.trace.rewrite import alternatives, decided

__all__ = ["Modes", "Sides", "Surface", "find_modes"]

Sides = tuple[bool, ...]               # per surface: whether a point lies below it

# Up to this many surfaces are examined on all sides of each other, more of them one by one.
MOST_TOGETHER = 4


@dataclass(frozen=True)
class Surface:
    """Where comparisons of the same two expressions a and b change their answers.

    Attributes
    ----------
    function : int
        The node a - b: below the surface it is negative.
    conditions : tuple of (int, bool)
        The comparisons, and their answers below the surface.
    """

    function: int
    conditions: tuple[tuple[int, bool], ...]


@dataclass(frozen=True, eq=False)
class Modes:
    """The surfaces that matter for the structure of a traced system.

    Attributes
    ----------
    traced : Trace
        The equations with all their branches.
    surfaces : tuple of Surface
        Surfaces on which their structure may change.
    lock : Lock
        Held while the expressions of a mode are worked on.
    """

    traced: Trace
    surfaces: tuple[Surface, ...]
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @cached_property
    def _program(self) -> Backend:
        first = [surface.conditions[0][0] for surface in self.surfaces]
        functions = [surface.function for surface in self.surfaces]
        return prepare(self.traced.program(first + functions))

    @cached_property
    def moving(self) -> tuple[int, ...]:
        """Surfaces that a solution can pass: not those of arguments alone."""
        level = self.traced.graph.level
        return tuple(
            k for k, surface in enumerate(self.surfaces) if level[surface.function] > STATIC
        )

    @cached_property
    def timed(self) -> tuple[int, ...]:
        """Moving surfaces that depend on time alone: when they are passed is known in advance."""
        level = self.traced.graph.level
        return tuple(k for k in self.moving if level[self.surfaces[k].function] == TIMED)

    @cached_property
    def evolving(self) -> tuple[int, ...]:
        """Unknowns whose derivative occurs in the equations of any mode."""
        graph, outputs = self.traced.graph, self.traced.outputs
        leaves = set().union(*_unknowns(graph, outputs).values())
        return tuple(sorted({graph.nodes[leaf][1] for leaf in leaves if graph.nodes[leaf][2] > 0}))

    def height(self, surface: int, args: np.ndarray) -> Callable[..., float]:
        """How far above a surface a point lies, as a function of t, y and y'."""
        runner, place = self._program.new(args), len(self.surfaces) + surface
        return lambda t, y, yp, *_: float(runner.values(t, y, yp)[place])

    def unknowns(self, surface: int) -> np.ndarray:
        """Mark the unknowns on which the height above a surface depends."""
        return self.traced.depends_on([self.surfaces[surface].function], self.traced.n)

    def heights(
        self, t: float, y: np.ndarray, yp: np.ndarray, args: np.ndarray
    ) -> np.ndarray:
        """How far above all surfaces a point lies."""
        return self._values(t, y, yp, args)[len(self.surfaces) :]

    def band(
        self, surface: int, t: float, y: np.ndarray, yp: np.ndarray, args: np.ndarray,
        tolerance: tuple[np.ndarray, np.ndarray],
    ) -> float:
        """Largest change of the height of a point if y and y' change within their tolerances."""
        height = self.height(surface, args)
        here = height(t, y, yp)
        by_y = (height(t, beside, yp) for beside in y + np.diag(tolerance[0]))
        by_yp = (height(t, y, beside) for beside in yp + np.diag(tolerance[1]))
        return sum(abs(there - here) for there in (*by_y, *by_yp))

    def sides(self, t: float, y: np.ndarray, yp: np.ndarray, args: np.ndarray) -> Sides:
        """Sides on which a point lies; on a surface itself, the answer of its comparison."""
        answers = self._values(t, y, yp, args)[: len(self.surfaces)] != 0.0
        return tuple(
            bool(answer) == surface.conditions[0][1]
            for answer, surface in zip(answers, self.surfaces, strict=True)
        )

    def _values(self, t: float, y: np.ndarray, yp: np.ndarray, args: np.ndarray) -> np.ndarray:
        return self._program.new(args).values(t, y, yp)

    def equations(self, sides: Sides) -> Trace:
        """Return the equations of one mode."""
        whole = self.traced
        outputs = decided(whole.graph, whole.outputs, _answers(self.surfaces, sides))
        return whole.with_outputs(outputs)


def find_modes(traced: Trace, form: int, of: Iterable[int] = ()) -> Modes | None:
    """Find out whether the structure of a system depends on conditions; None if it does not.

    Parameters
    ----------
    traced : Trace
        The equations.
    form : int
        Highest index at which they are integrated as written, so that structure does not matter.
    of : iterable of int
        Equations whose conditions count in any case.

    Examples
    --------
    >>> import numpy as np
    >>> from tether.structure.modes import find_modes
    >>> from tether.trace import trace
    >>> def stop(t, y, yp):
    ...     x, v, force = y
    ...     return [yp[0] - v, yp[1] + 1 - force, force if t < 2 else x]
    >>> modes = find_modes(trace(stop, 3), 1)
    >>> [modes.sides(t, np.zeros(3), np.zeros(3), np.zeros(0)) for t in (1.0, 3.0)]
    [(True,), (False,)]
    """
    surfaces = _surfaces(traced.graph, traced.outputs)
    if not surfaces:
        return None
    structure = _Structure(traced, surfaces, form)
    if len(surfaces) <= MOST_TOGETHER:
        matter = structure.by_all_sides()
    else:
        matter = [
            _differ(structure.of({k: True}), structure.of({k: False})) for k in range(len(surfaces))
        ]
    wanted = set(of)
    chosen = tuple(
        s for s, matters, rows in zip(surfaces, matter, structure.rows, strict=True)
        if matters or wanted.intersection(rows)
    )
    modes = Modes(traced, chosen)
    if not chosen:
        return None
    try:
        modes._program  # noqa: B018
    except NoProgram:
        return None                    # the system has no program either
    return modes


def _answers(surfaces: Iterable[Surface], sides: Iterable[bool]) -> dict[int, bool]:
    return {
        node: answer == below
        for surface, below in zip(surfaces, sides, strict=True)
        for node, answer in surface.conditions
    }


def _differ(one: Hashable, other: Hashable) -> bool:
    """Tell whether two branches need different plans; singular ones, such as NaN, have none."""
    return one != other and not isinstance(one, Unmatched) and not isinstance(other, Unmatched)


class _Structure:
    """The offsets by which a system is reduced, for given sides of some surfaces."""

    def __init__(self, traced: Trace, surfaces: Sequence[Surface], form: int) -> None:
        self.graph, self.outputs, self.form = traced.graph, traced.outputs, form
        self.surfaces = surfaces
        self.rows = _rows_of(self.graph, self.outputs, surfaces)
        self.orders = self._orders(self.outputs)
        self._known: dict[Hashable, Hashable] = {}
        self._match = self._match_of_all()
        self._certain = self._rows_that_keep_their_match()

    def by_all_sides(self) -> list[bool]:
        """Tell which surfaces matter on some sides of the others."""
        count = len(self.surfaces)
        every = list(product((True, False), repeat=count))
        found = {sides: self.of(dict(enumerate(sides))) for sides in every}
        return [
            any(_differ(found[sides], found[(*sides[:k], not sides[k], *sides[k + 1 :])])
                for sides in every)
            for k in range(count)
        ]

    def of(self, sides: dict[int, bool]) -> Hashable:
        """Offsets if the index is above that of the form; None if integrated as written."""
        rows = sorted({row for k in sides for row in self.rows[k]})
        if self._certain.issuperset(rows):
            return None
        answers = _answers([self.surfaces[k] for k in sides], sides.values())
        found = decided(self.graph, [self.outputs[row] for row in rows], answers)
        changed = {row: order for row, order in zip(rows, self._orders(found), strict=True)
                   if order != self.orders[row]}
        if self._match is not None and all(map(self._keeps_match, changed, changed.values())):
            return None
        key = tuple((row, tuple(sorted(order.items()))) for row, order in changed.items())
        if key not in self._known:
            self._known[key] = self._offsets(
                [changed.get(row, order) for row, order in enumerate(self.orders)]
            )
        return self._known[key]

    def _offsets(self, orders: list[dict[int, int]]) -> Hashable:
        signature = find_signature(orders)
        if isinstance(signature, Unmatched):
            return signature
        return None if signature.structural_index <= self.form else (signature.c, signature.d)

    def _match_of_all(self) -> tuple[int, ...] | None:
        """Variable assigned to each equation, if no equation has to be differentiated.

        An equation that loses some of its variables need not be differentiated either, as long as
        it keeps the one assigned to it: all offsets of equations stay zero.
        """
        signature = find_signature(self.orders)
        if isinstance(signature, Unmatched) or signature.structural_index > self.form:
            return None
        return None if any(signature.c) else signature.match

    def _rows_that_keep_their_match(self) -> set[int]:
        """Equations that keep the variable assigned to them in every branch."""
        if self._match is None:
            return set()
        leaves = [self.graph.y(j, self.orders[row][j]) for row, j in enumerate(self._match)]
        found = certain_unknowns(self.graph, self.outputs)
        return {row for row, leaf in enumerate(leaves) if leaf in found[row]}

    def _keeps_match(self, row: int, orders: dict[int, int]) -> bool:
        assert self._match is not None
        whole, j = self.orders[row], self._match[row]
        return orders.get(j) == whole[j] and all(
            order <= whole.get(k, -1) for k, order in orders.items()
        )

    def _orders(self, outputs: Sequence[int]) -> list[dict[int, int]]:
        """Highest order of every variable in each expression."""
        unknowns = _unknowns(self.graph, outputs)
        orders: list[dict[int, int]] = []
        for node in outputs:
            row: dict[int, int] = {}
            for leaf in unknowns[node]:
                _, j, order, _ = self.graph.nodes[leaf]
                row[j] = max(order, row.get(j, 0))
            orders.append(row)
        return orders


def _rows_of(
    graph: Graph, outputs: Sequence[int], surfaces: Sequence[Surface]
) -> list[list[int]]:
    """Equations in which the conditions of each surface occur."""
    bit = {node: 1 << k for k, surface in enumerate(surfaces) for node, _ in surface.conditions}
    mask: dict[int, int] = {}
    for node in graph.cone(outputs):
        mask[node] = bit.get(node, 0)
        for operand in graph.operands(node):
            mask[node] |= mask[operand]
        chosen = alternatives(graph, node)
        if chosen is not None:
            mask[node] |= bit.get(chosen[0], 0)
    rows: list[list[int]] = [[] for _ in surfaces]
    for row, node in enumerate(outputs):
        left = mask[node]
        while left:
            lowest = left & -left
            rows[lowest.bit_length() - 1].append(row)
            left ^= lowest
    return rows


def _surfaces(graph: Graph, outputs: Sequence[int]) -> list[Surface]:
    """Collect comparisons whose answer changes which unknowns occur."""
    found: dict[tuple[int, int], dict[int, bool]] = {}
    for node in _relevant(graph, outputs):
        code, a, b, _ = graph.nodes[node]
        if code in (op.LT, op.LE):
            found.setdefault((min(a, b), max(a, b)), {})[node] = a < b
    return [
        Surface(graph.sub(*pair), tuple(conditions.items())) for pair, conditions in found.items()
    ]


_TURNING = {code for code, o in OPERATIONS.items() if o.turns} | op.CONDITIONS | {op.SELECT}


def _relevant(graph: Graph, outputs: Sequence[int]) -> list[int]:
    """Comparisons that choose between expressions of different unknowns, or switch one off."""
    cone = graph.cone(outputs)
    if _TURNING.isdisjoint(graph.nodes[node][0] for node in cone):
        return []
    conditions: set[int] = set()
    choices: list[tuple[int, int, int]] = []
    inside: set[int] = set()           # the conditions and those that they are made of
    for node in cone:
        code = graph.nodes[node][0]
        if code in op.CONDITIONS:
            continue
        chosen = alternatives(graph, node)
        if chosen is not None:
            choices.append(chosen)
        else:                          # an answer as a number: it may be a factor of zero
            used = (x for x in graph.operands(node) if graph.nodes[x][0] in op.CONDITIONS)
            conditions.update(used)
    unknowns = _unknowns(graph, [x for _, a, b in choices for x in (a, b)])
    for condition, a, b in choices:
        if graph.is_constant(a) or graph.is_constant(b) or unknowns[a] != unknowns[b]:
            conditions.add(condition)
    stack = list(conditions)
    while stack:
        node = stack.pop()
        if node in inside:
            continue
        inside.add(node)
        if graph.nodes[node][0] in (op.AND, op.OR, op.NOT):
            stack += graph.operands(node)
    return sorted(node for node in inside if graph.nodes[node][0] in op.COMPARISONS)


def _unknowns(graph: Graph, nodes: Sequence[int]) -> dict[int, frozenset[int]]:
    """Unknowns and slopes that occur in each of several expressions."""
    return {
        node: frozenset(leaf for leaf in leaves if graph.nodes[leaf][0] == op.Y)
        for node, leaves in zip(nodes, graph.supports(nodes), strict=True)
    }
