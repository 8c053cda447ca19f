"""Row templates: expressions in batches as a few short programs that run over many rows.

Rows of equal shape (the same operations in the same order on different elements) become one
template: an expression over a few inputs, with a table of the element that each input is in each
row. It is differentiated once, and its derivatives are the entries of the Jacobian in all its rows.

Elements that are needed in many places and are costly, and sums of many terms, are computed once,
as intermediate results that other templates read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from tether._core.schedule import Schedule, levels_of_each, schedule
from tether.trace import opcodes as op
from tether.trace.batches import LINEAR, Batch, Batches, Elements, as_index, picked, same
from tether.trace.derive import jacobian
from tether.trace.emit import Program, emit
from tether.trace.graph import STATIC, Graph
from tether.trace.piecewise import piecewise_at
from tether.trace.refusal import refuse
from tether.trace.row_step import TO_FY, TO_FYP, TO_MEMORY, TO_VALUES, Step
from tether.trace.row_table import RowTable, joined

__all__ = ["fold", "fold_program"]

# Rough cost of operations that take longer than an addition.
_COST = dict.fromkeys(
    (op.POW, op.EXP, op.LOG, op.SIN, op.COS, op.TAN, op.ASIN, op.ACOS, op.ATAN, op.SINH, op.COSH,
     op.TANH, op.ASINH, op.ACOSH, op.ATANH, op.ATAN2, op.HYPOT, op.LOG1P, op.EXPM1, op.ERF,
     op.TABLE, op.SPECIAL, op.MOD), 15.0,
) | dict.fromkeys((op.DIV, op.SQRT, op.POWI), 4.0)  # fmt: skip
# Elements that cost more than this and are needed more often than this become intermediate results.
_LEAST_COST, _LEAST_USES = 6.0, 1.5
# Parts of templates with more operations than this become intermediate results.
_MOST_OPERATIONS = 200
# If an array has at most so many different numbers apart from zero, each of them makes a shape.
_FEW_NUMBERS = 3
# With more shapes than this, most rows have a shape of their own.
_MOST_SHAPES = 250


def fold(batches: Batches, outputs: np.ndarray) -> RowTable:
    """Make templates from the elements that a function returned.

    Parameters
    ----------
    batches : Batches
        The batches of the elements.
    outputs : ndarray
        Numbers of the elements to compute, one for each equation.

    Raises
    ------
    Untraceable
        If the rows have too many shapes, or depend on too many unknowns.

    Examples
    --------
    >>> import numpy as np
    >>> from tether._core.rows import Rows
    >>> from tether.trace import opcodes as op
    >>> from tether.trace.batches import Batches
    >>> from tether.trace.templates import fold
    >>> batches = Batches(3)
    >>> squares = batches.add(op.MUL, np.arange(3), np.arange(3))
    >>> Rows(fold(batches, squares)).values(0.0, [1.0, 2.0, 3.0], [0.0, 0.0, 0.0])
    array([1., 4., 9.])
    """
    return _Folding(batches, [(np.asarray(outputs, np.intc), TO_VALUES)], True).table()


def fold_program(program: Program, n_values: int, fy: Places, fyp: Places) -> RowTable:
    """Make templates from a program whose rows were written one by one but have equal shapes.

    Parameters
    ----------
    program : Program
        Its outputs are first the values, then the entries of F_y, then those of F_y'.
    n_values : int
        How many outputs are values.
    fy, fyp : pair of sequences
        Rows and columns of the entries.

    Raises
    ------
    Untraceable
        If most rows have a shape of their own.

    Examples
    --------
    >>> from tether._core.rows import Rows
    >>> from tether.trace import trace
    >>> from tether.trace.templates import fold_program
    >>> def chain(t, y, yp):
    ...     return [yp[i] - y[i - 1] * y[i] for i in range(100)]
    >>> program = trace(chain, 100).program()
    >>> table = fold_program(program, 100, ([], []), ([], []))
    >>> program.size, len(table.code)
    (200, 1)
    """
    batches, elements, is_static = _batches_of(program)
    ends = np.cumsum([n_values, len(fy[0]), len(fyp[0])])
    values, of_y, of_slopes = np.split(elements[program.outputs], ends[:2])
    groups = [(values, TO_VALUES), (of_y, TO_FY), (of_slopes, TO_FYP)]
    table = _Folding(batches, groups, False).table()
    table.fy, table.fyp = ((np.asarray(r, np.intc), np.asarray(c, np.intc)) for r, c in (fy, fyp))
    table.fyp_is_static = bool(is_static[program.outputs[ends[1] :]].all())
    return table


def _batches_of(program: Program) -> tuple[Batches, np.ndarray, np.ndarray]:
    """Combine equal operations that do not depend on each other into batches.

    Returns
    -------
    batches : Batches
        The operations.
    elements : ndarray
        Number of the element of each slot.
    is_static : ndarray
        Whether slots depend on constants and arguments only.
    """
    n, p, constants = program.n, program.p, program.n_const
    batches = Batches(n, p)
    level, changes = levels_of_each(
        *(np.ascontiguousarray(x, np.intc) for x in (program.op, program.a, program.b, program.c)),
        constants, constants + 1 + 2 * n, program.base,
    )
    elements = np.empty(program.base + program.size, np.intc)
    numbers = np.asarray(program.constants, float)
    if len(numbers):
        elements[:constants] = batches.many_constants(numbers)
    elements[constants] = batches.time
    elements[constants + 1 : constants + 1 + 2 * n] = np.arange(2 * n)
    elements[constants + 1 + 2 * n : program.base] = batches.argument(0) + np.arange(p)
    numbered = np.isin(program.op, _NUMBERED)
    number = np.where(numbered, program.b, -1)
    order = np.lexsort((number, program.op, level))
    keys = np.stack([level, program.op, number])[:, order]
    starts = np.flatnonzero(np.any(np.diff(keys, axis=1, prepend=-2) != 0, axis=0))
    tables: dict[int, int] = {}
    for mine in np.split(order, starts[1:]) if len(order) else []:
        first = mine[0]
        code, chosen = int(program.op[first]), int(number[first])
        slots = [program.a[mine]]
        if not numbered[first] and program.b[first] >= 0:
            slots.append(program.b[mine])
        if program.c[first] >= 0:
            slots.append(program.c[mine])
        if code == op.TABLE:
            if chosen not in tables:
                tables[chosen] = len(batches.tables)
                batches.tables.append(piecewise_at(program.tables, chosen))
            chosen = tables[chosen]
        operands = [elements[slot] for slot in slots]
        elements[program.base + mine] = batches.add(code, *operands, number=chosen)
    return batches, elements, changes == 0


_NUMBERED = (op.POWI, op.SPECIAL, op.TABLE)
Places = tuple[Any, Any]


class _Folding:
    """Makes the steps that compute elements.

    Parameters
    ----------
    batches : Batches
        The batches of the elements.
    groups : list of (ndarray, int)
        Elements to compute, and where they go.
    differentiates : bool
        Whether templates have entries of the Jacobian.
    """

    def __init__(
        self, batches: Batches, groups: list[tuple[np.ndarray, int]], differentiates: bool
    ) -> None:
        self.batches, self.groups, self.differentiates = batches, groups, differentiates
        self.outputs = np.concatenate([elements for elements, _ in groups])
        self.starts = np.array([b.start for b in batches.batches], np.intc)
        self.is_kept = self._choose_kept()
        self.kept_places: dict[int, np.ndarray] = {}           # of kept batches in the memory
        self.shapes: list[tuple] = [(_LOAD, k) for k in range(5)]
        self._shape_numbers: dict[tuple, int] = {}
        self.number_values: dict[int, float] = {}
        self._classify()

    # --- which elements are kept ----------------------------------------------------------

    def _choose_kept(self) -> list[bool]:
        """Choose the batches whose elements are intermediate results."""
        all_batches = self.batches.batches
        cost, size = np.zeros(len(all_batches)), np.zeros(len(all_batches))
        kept = [b.code == LINEAR for b in all_batches]
        sources = [self._sources(b) for b in all_batches]
        for k, batch in enumerate(all_batches):
            inner = [j for j in set().union(*(s.keys() for s in sources[k])) if not kept[j]]
            written = _times_written(batch, sources[k])
            cost[k] = _COST.get(batch.code, 1.0) + sum(cost[j] for j in inner)
            size[k] = 1.0 + sum(written[j] * size[j] for j in inner)
            if size[k] > _MOST_OPERATIONS and batch.code != op.CONST:
                kept[k], cost[k], size[k] = True, 0.0, 0.0
        times = np.zeros(len(all_batches))
        for j, count in self._counted(self.outputs).items():
            times[j] += count
        for k in reversed(range(len(all_batches))):
            batch = all_batches[k]
            if batch.code == op.CONST or not times[k]:
                kept[k] = False
                continue
            if times[k] > _LEAST_USES * batch.size and cost[k] > _LEAST_COST:
                kept[k] = True
            runs = min(times[k], batch.size) if kept[k] else times[k]
            for source in sources[k]:
                total = sum(source.values())
                for j, count in source.items():
                    if batch.code == LINEAR:
                        kept[j] = kept[j] or all_batches[j].code != op.CONST
                    times[j] += runs * count / max(total, 1)
        for k, batch in enumerate(all_batches):
            if batch.code == LINEAR and times[k]:
                self._keep_terms(batch, kept)
        return kept

    def _keep_terms(self, batch: Batch, kept: list[bool]) -> None:
        """Keep the terms of linear combinations, which are read from the memory."""
        for j in self._counted(batch.operands[0]):
            kept[j] = True

    def _sources(self, batch: Batch) -> list[dict[int, int]]:
        return [self._counted(operand) for operand in batch.operands]

    def _counted(self, elements: Elements) -> dict[int, int]:
        """Count how many of some elements belong to each batch; leaves are left out."""
        if isinstance(elements, range) and elements.stop <= self.batches.first:
            return {}
        inner = picked(elements)
        inner = inner[inner >= self.batches.first]
        if not len(inner):
            return {}
        low, high = int(inner.min()), int(inner.max())
        first, last = np.searchsorted(self.starts, [low, high], side="right") - 1
        if first == last:
            return {int(first): len(inner)}
        counts = np.bincount(np.searchsorted(self.starts, inner, side="right") - 1)
        return {int(j): int(counts[j]) for j in np.flatnonzero(counts)}

    # --- shapes ---------------------------------------------------------------------------

    def _classify(self) -> None:
        """Give every element the number of its shape: its batch, and its operands' shapes."""
        n, time, first = self.batches.n, self.batches.time, self.batches.first
        self.shape = np.full(self.batches.size, _OF_KEPT, np.int16)
        self.shape[:n], self.shape[n:time], self.shape[time] = _OF_Y, _OF_SLOPES, _OF_TIME
        self.shape[time + 1 : first] = _OF_ARGUMENTS
        for k, batch in enumerate(self.batches.batches):
            part = self.shape[batch.start : batch.stop]
            if self.is_kept[k] or batch.code == LINEAR:        # a LINEAR not kept is unused
                continue
            if batch.code == op.CONST:
                self._classify_numbers(k, batch, part)
            else:
                found = [self.shape[as_index(x)] for x in batch.operands]
                part[:] = self._combined(k, found, batch.size)

    def _classify_numbers(self, k: int, batch: Batch, part: np.ndarray) -> None:
        values = batch.values
        assert values is not None
        if batch.size == 1:
            part[0] = self._number_shape(values[0])
            return
        distinct = np.unique(values[: 64 * _FEW_NUMBERS])
        few = len(distinct) <= _FEW_NUMBERS + 1 and np.isin(values, distinct).all()
        if few and not np.isnan(distinct).any():
            for value in distinct:
                part[values == value] = self._number_shape(value)
            return
        part[:] = self._numbered((_NUMBERS, k))
        zero = values == 0.0
        if zero.any():
            part[zero] = self._number_shape(0.0)

    def _number_shape(self, value: float) -> int:
        number = self._numbered((_NUMBER, np.float64(value).tobytes()))
        self.number_values[number] = float(value)
        return number

    def _numbered(self, key: tuple) -> int:
        if key not in self._shape_numbers:
            if len(self.shapes) > np.iinfo(np.int16).max:
                refuse("has rows of too many different shapes")
            self._shape_numbers[key] = len(self.shapes)
            self.shapes.append(key)
        return self._shape_numbers[key]

    def _combined(self, k: int, found: list[np.ndarray], size: int) -> Any:
        uniform = [bool((x == x[0]).all()) for x in found]
        if all(uniform):
            return self._numbered((k, *(int(x[0]) for x in found)))
        key = np.zeros(size, np.int64)
        for x in found:
            key = key * len(self.shapes) + x
        distinct, first, inverse = np.unique(key, return_index=True, return_inverse=True)
        if len(distinct) > 40 * _MOST_SHAPES:
            refuse("has rows of too many different shapes")
        numbers = [
            self._numbered((k, *(int(x[i if len(x) > 1 else 0]) for x in found))) for i in first
        ]
        return np.array(numbers, np.int16)[inverse]

    # --- steps ----------------------------------------------------------------------------

    def table(self) -> RowTable:
        """Make all steps and join them."""
        steps, place = [], self.batches.first
        needed = self.batches.needed_for(self.outputs)
        for_values = needed if self.differentiates else self.batches.needed_for(self.groups[0][0])
        for k, batch in enumerate(self.batches.batches):
            if not self.is_kept[k]:
                continue
            wanted = np.flatnonzero(needed[batch.start : batch.stop]).astype(np.intc)
            places = np.full(batch.size, -1, np.intc)
            if batch.code == LINEAR:
                wanted = np.arange(batch.size, dtype=np.intc)
                made = [self._sum_step(batch, place)]
                places[:] = place + wanted
            else:
                made = []
                for rows, step in self._template_steps(wanted + batch.start, k):
                    step.to, step.place = TO_MEMORY, place + sum(len(s.results) for s in made)
                    places[wanted[rows]] = step.place + np.arange(len(rows), dtype=np.intc)
                    made.append(step)
            for step in made:
                step.for_entries = not for_values[batch.start : batch.stop].any()
            self.kept_places[k] = places
            steps += made
            place += len(wanted)
        for elements, to in self.groups:
            for rows, step in self._template_steps(elements):
                step.results, step.to, step.for_entries = rows, to, to != TO_VALUES
                steps.append(step)
        if len(steps) > _MOST_SHAPES:
            refuse(f"has rows of {len(steps)} different shapes")
        n, n_args = self.batches.n, self.batches.p
        del self.shape, self.batches           # only the steps are needed from here on
        return joined(n, n_args, len(self.groups[0][0]), steps, place)

    def _sum_step(self, batch: Batch, place: int) -> Step:
        terms = self.places_of(picked(batch.operands[0]))
        elements = np.arange(batch.start, batch.stop, dtype=np.intc)
        return Step(
            elements, TO_MEMORY, place, loads=[terms], sources=[terms], is_static=[True],
            ends=np.asarray(batch.ends, np.intc), factors=batch.values,
        )

    def places_of(self, elements: np.ndarray) -> np.ndarray:
        """Places of elements in the memory."""
        if not len(elements) or elements.max() < self.batches.first:
            return elements.astype(np.intc, copy=False)
        found = elements.astype(np.intc)
        inner = np.flatnonzero(elements >= self.batches.first)
        owner = np.searchsorted(self.starts, elements[inner], side="right") - 1
        for k in np.unique(owner):
            mine = inner[owner == k]
            found[mine] = self.kept_places[int(k)][elements[mine] - self.starts[k]]
        return found

    def _template_steps(
        self, elements: np.ndarray, own: int | None = None
    ) -> Iterator[tuple[np.ndarray, Step]]:
        """Yield a step for each shape among some elements, together with the rows it computes.

        `own` is the number of a kept batch, whose elements are computed here but loaded elsewhere.
        """
        if own is None:
            shape = self.shape[elements]
        else:
            batch = self.batches.batches[own]
            found = [self.shape[as_index(x)] for x in batch.operands]
            inside = elements - batch.start
            shape = np.broadcast_to(self._combined(own, found, batch.size), batch.size)[inside]
        order = np.argsort(shape, kind="stable").astype(np.intc)
        ends = np.flatnonzero(np.diff(shape[order])) + 1
        for rows in np.split(order, ends):
            if len(rows):
                number = int(shape[rows[0]])
                template = _Template(self, elements[rows], number)
                yield rows, template.step


def _times_written(batch: Batch, sources: list[dict[int, int]]) -> dict[int, int]:
    """Count how often a row of a batch contains expressions of other batches, by their numbers."""
    different: list[tuple[Elements, dict[int, int]]] = []
    for operand, source in zip(batch.operands, sources, strict=True):
        if not any(same(operand, known) for known, _ in different):
            different.append((operand, source))
    return Counter(j for _, source in different for j in source)


_LOAD, _NUMBER, _NUMBERS = -1, -2, -3          # shapes that are not operations
_OF_Y, _OF_SLOPES, _OF_TIME, _OF_ARGUMENTS, _OF_KEPT = range(5)        # shapes of loads


class _Template:
    """The expression of one shape, and the tables of its inputs."""

    def __init__(self, folding: _Folding, elements: np.ndarray, shape: int) -> None:
        self.folding, self.graph = folding, Graph()
        self.loads: list[np.ndarray] = []      # inputs by which derivatives are taken
        self.fixed: list[np.ndarray] = []      # arguments
        self.numbers: list[np.ndarray] = []    # numbers that differ from row to row
        self._parameters: list[tuple[bool, int]] = []
        self._known: dict[tuple[int, bytes], int] = {}
        root = self._node(elements, shape)
        graph, inputs = self.graph, [self.graph.y(k) for k in range(len(self.loads))]
        derivatives = jacobian(graph, [root], inputs if folding.differentiates else [])
        is_static = [graph.level[node] <= STATIC for node in derivatives.nodes]
        of_each = list(zip(derivatives.nodes, is_static, strict=True))
        changing, constant = ([x for x, never in of_each if never == y] for y in (False, True))
        numbers = [
            self.fixed[k] if is_argument else self.numbers[k] for is_argument, k in self._parameters
        ]
        self.step = Step(
            elements, loads=[*self.loads], numbers=numbers,
            schedule=self._program([root]), is_constant=graph.level[root] <= STATIC,
            sources=[self.loads[k] for k in derivatives.cols], is_static=is_static,
            of_entries=(self._program(changing), self._program(constant)),
        )

    def _program(self, nodes: list[int]) -> Schedule | None:
        """Make a program of some nodes; None if there are none."""
        if not nodes:
            return None
        program = emit(self.graph, nodes, len(self.loads), len(self._parameters))
        return schedule(program, len(nodes))

    def _node(self, elements: np.ndarray, shape: int) -> int:
        """Node of elements of one shape; elements that a row uses twice are one node."""
        value = self.folding.number_values.get(shape)
        if value is not None:
            return self.graph.constant(value)
        key = (shape, elements.tobytes())
        if key not in self._known:
            self._known[key] = self._new_node(elements, shape)
        return self._known[key]

    def _new_node(self, elements: np.ndarray, shape: int) -> int:
        kind, *operands = self.folding.shapes[shape]
        if kind == _LOAD:
            return self._load(self.folding.places_of(elements), shape)
        batch = self.folding.batches.batches[operands[0] if kind == _NUMBERS else kind]
        inside = elements - batch.start
        if batch.code == op.CONST:
            assert batch.values is not None
            values = batch.values[inside]
            if (values == values[0]).all():
                return self.graph.constant(values[0])
            return self._parameter(self.numbers, values, False)
        nodes = [
            self._node(picked(x, inside), part)
            for x, part in zip(batch.operands, operands, strict=True)
        ]
        return self._operation(batch, nodes)

    def _load(self, places: np.ndarray, shape: int) -> int:
        if shape == _OF_TIME:
            return self.graph.time()
        if shape == _OF_ARGUMENTS:
            return self._parameter(self.fixed, places, True)
        self.loads.append(places)
        return self.graph.y(len(self.loads) - 1)

    def _parameter(self, lists: list[np.ndarray], values: np.ndarray, is_argument: bool) -> int:
        lists.append(values)
        self._parameters.append((is_argument, len(lists) - 1))
        return self.graph.arg(len(self._parameters) - 1)

    def _operation(self, batch: Batch, nodes: list[int]) -> int:
        graph, code = self.graph, batch.code
        if not self.folding.differentiates:
            number = batch.number
            if code == op.TABLE:
                graph.tables.append(self.folding.batches.tables[number])
                number = len(graph.tables) - 1
            return graph.unsimplified(code, nodes, number)
        return graph.make(code, nodes, batch.number, self.folding.batches.tables)
