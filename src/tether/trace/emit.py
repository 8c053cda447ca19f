# cython: annotation_typing=False
"""Programs: expressions flattened to a list of operations on numbered slots."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import cython
import numpy as np

if not cython.compiled:
    from tether.trace.graph import Graph, arity
    from tether.trace.opcodes import *


@dataclass(frozen=True, eq=False)
class Program:
    """Operations on a flat array of doubles, the slots.

    First come the constants, then t, y (n), y' (n), the arguments (p), then one temporary per
    instruction: instruction i writes slot ``base + i``. The instructions before `n_static` depend
    on constants and arguments only, those before `n_time` on time as well, the others on the
    unknowns.

    Attributes
    ----------
    n, p : int
        Number of unknowns and of arguments.
    op, a, b, c : ndarray of int32
        Operation of each instruction and the slots of its operands, -1 where there is none. POWI
        has its exponent in `b`, TABLE the place of its function in `tables`.
    outputs : ndarray of int32
        Slots of the results.
    constants : ndarray of float64
        Values of the first slots.
    n_static, n_time : int
        Ends of the first two groups of instructions.
    tables : ndarray of float64
        Piecewise polynomials, one after the other; see `Piecewise.flat`.
    opaques : tuple of callable
        Functions that OPAQUE instructions call, by the number in `b`. Empty unless `emit` was
        told to allow them: only the reference interpreter can run them.
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


UNUSED = -1


class NoProgram(ValueError):  # noqa: N818  (not an error of the user)
    """The expressions contain something that a program cannot express."""


def emit(
    graph: Graph, outputs: Sequence[int], n: int, p: int = 0, opaque: bool = False
) -> Program:
    """Flatten expressions to a program.

    Parameters
    ----------
    graph : Graph
        The graph of the expressions.
    outputs : sequence of int
        The expressions to compute, in order.
    n, p : int
        Number of unknowns and of arguments.
    opaque : bool
        Allow calls of functions that only Python can run.

    Raises
    ------
    NoProgram
        If the expressions contain such a call, or a derivative higher than y'.

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
    layout = _Layout(graph, list(outputs), n, p)
    tables, places = _tables(graph, layout.table_calls)
    op, a, b, c = layout.instructions(places)
    program = Program(
        n=n,
        p=p,
        op=op,
        a=a,
        b=b,
        c=c,
        outputs=layout.output_slots(),
        constants=np.array(layout.constants, dtype=np.float64),
        n_static=layout.n_static,
        n_time=layout.n_time,
        tables=tables,
        opaques=tuple(graph.opaques) if layout.opaque_calls else (),
    )
    if not opaque:
        check_runs_alone(program)
    return program


def check_runs_alone(program: Program) -> None:
    """Raise `NoProgram` where a program calls functions that only Python can run."""
    if program.opaques:
        function = program.opaques[program.b[program.op == OPAQUE][0]]
        name = getattr(function, "__name__", "a function")
        raise NoProgram(f"{name} can only be called from Python")


class _Layout:
    """Assigns slots to constants and leaves, and one instruction to every other node in use.

    A negation is merged into its operand if nothing else uses that: -(2 x) runs as (-2) x, and
    -(x - y) as y - x.
    """

    def __init__(self, graph: Graph, outputs: list[int], n: int, p: int) -> None:
        self.graph, self.outputs = graph, outputs
        self.size = max(outputs) + 1 if outputs else 0
        self.constants: list[float] = []
        self.opaque_calls: list[int] = []
        self.table_calls: list[int] = []
        self.slots = np.full(self.size, UNUSED, np.intc)
        self.negative = np.full(self.size, UNUSED, np.intc)   # slots of negated constants
        self._count_uses()
        self._absorb_signs()
        self._place_constants()
        self._place_leaves(len(self.constants), n)
        self._place_instructions(len(self.constants) + 1 + 2 * n + p)

    def _count_uses(self) -> None:
        """Count the uses of each node; an output counts twice, so that nothing absorbs it."""
        self.uses = np.zeros(self.size, np.intc)
        uses, nodes = self.uses, self.graph.nodes
        for node in self.outputs:
            uses[node] = 2
        for i in range(self.size - 1, -1, -1):
            if uses[i] > 0:
                fields = nodes[i]
                for k in range(1, 1 + arity(fields)):
                    uses[fields[k]] += 1

    def _absorb_signs(self) -> None:
        """Find the negations that need no instruction of their own."""
        self.absorbs = np.zeros(self.size, np.intc)           # negations that run their operand
        self.absorbed = np.zeros(self.size, np.intc)          # operands that are run by a negation
        uses, absorbs, absorbed, nodes = self.uses, self.absorbs, self.absorbed, self.graph.nodes
        for i in range(self.size):
            if uses[i] == 0:
                continue
            fields = nodes[i]
            code = fields[0]
            if code != NEG:
                continue
            inner = fields[1]
            if uses[inner] > 1:
                continue
            fields = nodes[inner]
            code = fields[0]
            if code == SUB or ((code in (MUL, DIV)) and self.graph.is_constant(fields[1])):
                absorbs[i] = absorbed[inner] = 1

    def _place_constants(self) -> None:
        """Place the constants of the expressions, then those that have absorbed a sign."""
        uses, absorbs, slots, negative = self.uses, self.absorbs, self.slots, self.negative
        nodes, constants = self.graph.nodes, self.constants
        for i in range(self.size):
            if uses[i] > 0:
                fields = nodes[i]
                code = fields[0]
                if code == CONST:
                    slots[i] = len(constants)
                    constants.append(fields[1])
        for i in range(self.size):
            if absorbs[i]:
                fields = nodes[nodes[i][1]]
                code = fields[0]
                if code != SUB:
                    number = fields[1]
                    if negative[number] == UNUSED:
                        negative[number] = len(constants)
                        constants.append(-nodes[number][1])

    def _place_leaves(self, first: int, n: int) -> None:
        uses, slots, nodes = self.uses, self.slots, self.graph.nodes
        for i in range(self.size):
            if uses[i] == 0:
                continue
            fields = nodes[i]
            code = fields[0]
            if code == TIME:
                slots[i] = first
            elif code == ARG:
                number = fields[1]
                slots[i] = first + 1 + 2 * n + number
            elif code == Y:
                number, order = fields[1], fields[2]
                if order > 1:
                    raise NoProgram(
                        f"derivative {order} of unknown {number} has no place in a program"
                    )
                slots[i] = first + 1 + order * n + number

    def _place_instructions(self, base: int) -> None:
        """Order the instructions: those that change with arguments, with time, with unknowns."""
        uses, slots, absorbed = self.uses, self.slots, self.absorbed
        nodes, levels = self.graph.nodes, self.graph.level
        order: list[int] = []
        ends = []
        for group in range(3):
            for i in range(self.size):
                if uses[i] == 0 or absorbed[i]:
                    continue
                level = levels[i]
                # an operation on constants that was not folded has level 0 and also runs once
                if (0 if level <= 1 else level - 1) != group:
                    continue
                fields = nodes[i]
                code = fields[0]
                if CONST >= code >= ARG:
                    continue
                slots[i] = base + len(order)
                order.append(i)
                if code == OPAQUE:
                    self.opaque_calls.append(i)
                elif code == TABLE:
                    self.table_calls.append(i)
            ends.append(len(order))
        self.order, self.n_static, self.n_time = order, ends[0], ends[1]

    def instructions(self, places: dict[int, int]) -> np.ndarray:
        """Operations and operands, one column each; `places` says where each table begins."""
        order, absorbs, slots = self.order, self.absorbs, self.slots
        nodes, negative = self.graph.nodes, self.negative
        table = np.full((4, len(order)), UNUSED, np.intc)
        columns = table
        for i in range(len(order)):
            node = order[i]
            fields = nodes[node]
            code = fields[0]
            if absorbs[node]:
                fields = nodes[fields[1]]
                code = fields[0]
                first, second = fields[1], fields[2]
                columns[0, i] = code
                columns[1, i] = slots[second] if code == SUB else negative[first]
                columns[2, i] = slots[first] if code == SUB else slots[second]
                continue
            first = fields[1]
            columns[0, i] = code
            columns[1, i] = slots[first]
            if code in (POWI, SPECIAL, OPAQUE):
                second = fields[2]
                columns[2, i] = second
            elif code == TABLE:
                columns[2, i] = places[fields[2]]
            else:
                second, third = fields[2], fields[3]
                if second >= 0:
                    columns[2, i] = slots[second]
                if third >= 0:
                    columns[3, i] = slots[third]
        return table

    def output_slots(self) -> np.ndarray:
        """Slots of the results."""
        return np.array([self.slots[node] for node in self.outputs], dtype=np.int32)


def _tables(graph: Graph, calls: list[int]) -> tuple[np.ndarray, dict[int, int]]:
    """Tables that the nodes use, concatenated, and where each of them begins."""
    used = dict.fromkeys(graph.nodes[node][2] for node in calls)
    parts = [graph.tables[number].flat for number in used]
    ends = np.cumsum([0, *map(len, parts)]).tolist()
    return np.concatenate([np.zeros(0), *parts]), dict(zip(used, ends, strict=False))
