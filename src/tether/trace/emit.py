"""Programs: expressions flattened to a list of operations on numbered slots."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from tether.trace import opcodes as op
from tether.trace.graph import FULL, STATIC, TIMED, Graph
from tether.trace.operations import ARITY


@dataclass(frozen=True, eq=False)
class Program:
    """Operations on a flat array of doubles, the slots.

    First come the constants, then t, y (n), y' (n), the arguments (p), then one temporary per
    instruction: instruction i writes slot ``base + i``. Instructions that depend on constants and
    arguments only stand first, up to `n_static`; those that depend on time as well follow up to
    `n_time`; the rest depends on the unknowns.

    Attributes
    ----------
    n, p : int
        Number of unknowns and of arguments.
    op, a, b, c : ndarray of int32
        Operation of each instruction and the slots of its operands, -1 where there is none. The
        operation POWI has its exponent in `b`, TABLE the place of its function in `tables`.
    outputs : ndarray of int32
        Slots of the results.
    constants : ndarray of float64
        First slots.
    n_static, n_time : int
        Ends of the first two groups of instructions.
    tables : ndarray of float64
        Piecewise polynomials, one after the other; see `Piecewise.flat`.
    opaques : tuple of callable
        Functions that OPAQUE instructions call, by the number in `b`. Empty unless asked for: only
        the reference interpreter can run them.
    """

    n: int
    p: int
    op: np.ndarray
    a: np.ndarray
    b: np.ndarray
    c: np.ndarray
    outputs: np.ndarray
    constants: np.ndarray
    n_static: int
    n_time: int
    tables: np.ndarray = field(default_factory=lambda: np.zeros(0))
    opaques: tuple[Callable[[float], float], ...] = ()

    @property
    def n_const(self) -> int:
        """Number of constants."""
        return len(self.constants)

    @property
    def base(self) -> int:
        """Slot of the first temporary."""
        return self.n_const + 1 + 2 * self.n + self.p

    @property
    def size(self) -> int:
        """Number of instructions."""
        return len(self.op)


class NoProgram(ValueError):  # noqa: N818  (not an error of the user)
    """The expressions contain something that a program cannot express."""


def emit(
    graph: Graph, outputs: Sequence[int], n: int, p: int = 0, opaque: bool = False
) -> Program:
    """Flatten expressions to a program.

    Parameters
    ----------
    graph : Graph
        Where the expressions live.
    outputs : sequence of int
        What to compute, in order.
    n, p : int
        Number of unknowns and of arguments.
    opaque : bool
        Allow calls of functions that only Python can run.

    Raises
    ------
    NoProgram
        Where the expressions contain such a call, or a derivative higher than y'.

    Examples
    --------
    >>> from tether.trace.emit import emit
    >>> from tether.trace.interpret import evaluate
    >>> from tether.trace.graph import Graph
    >>> g = Graph()
    >>> program = emit(g, [g.mul(g.y(0), g.time())], n=1)
    >>> program.size, evaluate(program, 2.0, [3.0], [0.0])
    (1, array([6.]))
    """
    cone = graph.cone(outputs)
    signs = _absorbed_signs(graph, cone, outputs)
    slots, constants = _leaf_slots(graph, cone, signs, n, p)
    groups: list[list[int]] = [[], [], []]
    opaques = ()
    for node in cone:
        if graph.nodes[node][0] == op.OPAQUE:
            opaques = tuple(graph.opaques)
            if not opaque:
                name = getattr(opaques[graph.nodes[node][2]], "__name__", "a function")
                raise NoProgram(f"{name} can only be called from Python")
        if graph.nodes[node][0] not in op.LEAVES and node not in signs.swallowed:
            groups[_GROUP[graph.level[node]]].append(node)
    base = len(constants) + 1 + 2 * n + p
    order = [node for group in groups for node in group]
    for i, node in enumerate(order, base):
        slots[node] = i
    tables, places = _tables(graph, order)
    code = [_instruction(graph, node, slots, signs, places) for node in order]
    fields = np.array(code, dtype=np.int32).reshape(len(code), 4)
    return Program(
        n=n,
        p=p,
        op=fields[:, 0].copy(),
        a=fields[:, 1].copy(),
        b=fields[:, 2].copy(),
        c=fields[:, 3].copy(),
        outputs=np.array([slots[node] for node in outputs], dtype=np.int32),
        constants=np.array(constants, dtype=np.float64),
        n_static=len(groups[0]),
        n_time=len(groups[0]) + len(groups[1]),
        tables=tables,
        opaques=opaques,
    )


# An operation on constants that was not folded has level 0 and runs once as well.
_GROUP = {0: 0, STATIC: 0, TIMED: 1, FULL: 2}


@dataclass(frozen=True)
class _Signs:
    """Negations that their operand takes over: -(2 x) runs as (-2) x, -(x - y) as y - x."""

    negated: dict[int, tuple[int, int, int]]  # NEG node: operation and operands to run instead
    swallowed: set[int]  # operands that vanish by it
    constants: dict[int, float]  # constants that appear by it: negative numbers stand for nodes


def _absorbed_signs(graph: Graph, cone: list[int], outputs: Iterable[int]) -> _Signs:
    nodes = graph.nodes
    uses: dict[int, int] = dict.fromkeys(outputs, 2)
    for node in cone:
        for operand in graph.operands(node):
            uses[operand] = uses.get(operand, 0) + 1
    signs = _Signs({}, set(), {})
    for node in cone:
        code, inner, _, _ = nodes[node]
        if code != op.NEG or uses[inner] > 1:
            continue
        inner_code, a, b, _ = nodes[inner]
        if inner_code == op.SUB:
            signs.negated[node] = (op.SUB, b, a)
        elif inner_code in (op.MUL, op.DIV) and nodes[a][0] == op.CONST:
            signs.constants[-1 - a] = -nodes[a][1]
            signs.negated[node] = (inner_code, -1 - a, b)
        else:
            continue
        signs.swallowed.add(inner)
    return signs


def _leaf_slots(
    graph: Graph, cone: list[int], signs: _Signs, n: int, p: int
) -> tuple[dict[int, int], list[float]]:
    slots: dict[int, int] = {}
    constants: list[float] = []
    for node in cone:
        if graph.nodes[node][0] == op.CONST:
            slots[node] = len(constants)
            constants.append(graph.nodes[node][1])
    for key, value in signs.constants.items():
        slots[key] = len(constants)
        constants.append(value)
    first = len(constants)
    for node in cone:
        code, a, order, _ = graph.nodes[node]
        if code == op.TIME:
            slots[node] = first
        elif code == op.ARG:
            slots[node] = first + 1 + 2 * n + a
        elif code == op.Y:
            if order > 1:
                raise NoProgram(f"derivative {order} of unknown {a} has no place in a program")
            slots[node] = first + 1 + order * n + a
    return slots, constants


def _tables(graph: Graph, order: list[int]) -> tuple[np.ndarray, dict[int, int]]:
    """Tables that the nodes use, joined, and where each of them begins."""
    used = dict.fromkeys(graph.nodes[node][2] for node in order if graph.nodes[node][0] == op.TABLE)
    parts = [graph.tables[number].flat for number in used]
    ends = np.cumsum([0, *map(len, parts)]).tolist()
    return np.concatenate([np.zeros(0), *parts]), dict(zip(used, ends, strict=False))


def _instruction(
    graph: Graph, node: int, slots: dict[int, int], signs: _Signs, tables: dict[int, int]
) -> tuple[int, int, int, int]:
    if node in signs.negated:
        code, a, b = signs.negated[node]
        return code, slots[a], slots[b], -1
    code, a, b, c = graph.nodes[node]
    if code in (op.POWI, op.OPAQUE):
        return code, slots[a], b, -1
    if code == op.TABLE:
        return code, slots[a], tables[b], -1
    arity = ARITY[code]
    return (
        code,
        slots[a],
        slots[b] if arity > 1 else -1,
        slots[c] if arity > 2 else -1,
    )
