"""Conditions on the elements of whole arrays, frozen while a step is taken.

As `frozen.py`, but on batches instead of single numbers: every element of a comparison, minimum,
maximum, absolute value or sign that depends on unknowns gets an input of its own, a shift. An
infinite shift fixes its answer to that of one side; a shift of zero changes nothing. The
resulting templates have a table of shifts, one row for each condition. Where solutions may stay on
the surfaces (`row_sliding.py`), a further input for each condition says whether they do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tether._core.rows import Rows
from tether.structure.frozen import CHOOSING, COMPARISONS, CONTINUOUS, OVERFLOWING
from tether.structure.row_sliding import equations_decided, layers_of
from tether.structure.row_structure import has_regular_structure
from tether.trace import opcodes as op
from tether.trace.array_tracer import ArrayTrace
from tether.trace.backend import Backend, prepare_rows
from tether.trace.batches import LINEAR, Batch, Batches, Elements, as_index, picked
from tether.trace.element_rates import rates
from tether.trace.operations import OPERATIONS
from tether.trace.refusal import Untraceable
from tether.trace.row_table import RowTable
from tether.trace.templates import fold
from tether.trace.timed_elements import OF_TIME, OF_UNKNOWNS, levels

__all__ = [
    "ON_SURFACE", "FrozenRows", "freeze_rows", "is_smooth_on_all_sides", "keeps_structure",
]

# Operations whose results are answers.
ANSWERS = (op.LT, op.LE, op.EQ, op.NE, op.AND, op.OR, op.NOT)
# In place of a side: the solution stays on the surface.
ON_SURFACE = 2.0

# A minimum or maximum compares its operands in this order.
_COMPARED = {op.MIN: (0, 1), op.MAX: (1, 0)}


@dataclass(frozen=True, eq=False)
class FrozenRows:
    """Templates whose conditions can be frozen.

    Attributes
    ----------
    table : RowTable
        The equations; the last of their arguments are the shifts.
    heights, operands : Backend
        Templates of the heights above all surfaces, and of the values of which they are the
        differences: all minuends, then all subtrahends.
    groups : ndarray of int
        For every condition, the operation on arrays that it belongs to.
    rows : ndarray of int
        The equation in which it decides, if the solution may stay on its surface; -1 otherwise.
    layers : ndarray of int
        Its number among the conditions in the same equation.
    rates : Backend or None
        Templates of the rates of the heights at which the solution may stay, if there are any.
    """

    table: RowTable
    heights: Backend
    operands: Backend
    groups: np.ndarray
    rows: np.ndarray
    layers: np.ndarray
    rates: Backend | None

    @property
    def may_slide(self) -> np.ndarray:
        """Marks of the conditions on whose surfaces the solution may stay."""
        return self.rows >= 0

    @property
    def n_inputs(self) -> int:
        """Number of inputs that freeze the conditions."""
        return 2 * len(self.groups)

    @property
    def unknowns(self) -> np.ndarray:
        """Marks of the unknowns on which heights depend."""
        found = np.zeros(self.table.n, bool)
        for _, columns in (self.heights.fy, self.heights.fyp):
            found[columns] = True
        return found

    def shifts(self, sides: np.ndarray) -> np.ndarray:
        """Return the inputs that freeze conditions.

        Side 1 is above, -1 below; 0 leaves a condition free, and on `ON_SURFACE` solutions stay.
        """
        slides = sides == ON_SURFACE
        is_free = slides | (sides == 0.0)
        shifts = np.where(is_free, 0.0, -np.inf * np.where(is_free, 1.0, sides))
        return np.append(shifts, slides)


def freeze_rows(found: ArrayTrace, slides: bool = True) -> FrozenRows | None:
    """Give every condition on elements of arrays an input that freezes it; None if there is none.

    If solutions may stay on surfaces is looked at with `slides` only.

    Examples
    --------
    >>> import numpy as np
    >>> from tether._core.rows import Rows
    >>> from tether.structure.frozen_rows import freeze_rows
    >>> from tether.trace.array_tracer import trace_arrays
    >>> frozen = freeze_rows(trace_arrays(lambda t, y, yp: yp + np.maximum(y, 3.0), 2))
    >>> sides = np.array([[0.0, 0.0], [1.0, 1.0], [-1.0, 1.0]])        # free; 3 above y; both
    >>> runners = [Rows(frozen.table, frozen.shifts(x)) for x in sides]
    >>> [runner.values(0.0, [5.0, 1.0], [0.0, 0.0]).tolist() for runner in runners]
    [[5.0, 3.0], [3.0, 3.0], [5.0, 3.0]]
    """
    assert found.source is not None
    batches, outputs = found.source
    conditions = _conditions(batches, outputs)
    risky = _risky(batches, conditions)
    chosen = {k: places for k, places in conditions.items() if k not in risky}
    if not chosen:
        return None
    try:
        return _Freezing(batches, chosen).frozen(outputs, found.table, slides)
    except Untraceable:
        return freeze_rows(found, slides=False) if slides else None


def keeps_structure(
    found: ArrayTrace, frozen: FrozenRows, t: float, y: np.ndarray, yp: np.ndarray,
    args: np.ndarray,
) -> bool:
    """Tell whether equations have a regular structure where all solutions stay on surfaces."""
    table = frozen.table
    room = max(len(table.fy[0]), len(table.fyp[0]))
    for layer in range(frozen.layers.max() + 1):
        sides = np.where(frozen.layers == layer, ON_SURFACE, 1.0)
        entries = np.zeros(room), np.zeros(room)
        Rows(table, np.append(args, frozen.shifts(sides))).entries_into(t, y, yp, *entries)
        kept = tuple(
            values[: len(places[0])] != 0.0
            for values, places in zip(entries, (table.fy, table.fyp), strict=True)
        )
        if not has_regular_structure(table, (kept[0], kept[1])):
            return False
    return True


def is_smooth_on_all_sides(
    found: ArrayTrace, frozen: FrozenRows, t: float, y: np.ndarray, yp: np.ndarray,
    args: np.ndarray,
) -> bool:
    """Tell whether equations have the same structure on all sides of their surfaces.

    Where they do not only have kinks, solutions must be able to stay on the surfaces.
    """
    assert found.source is not None
    batches, outputs = found.source
    turning = tuple(code for code, operation in OPERATIONS.items() if operation.turns)
    jumping = {k: places for k, places in _conditions(batches, outputs, turning).items()
               if not (batches.batches[k].code in CONTINUOUS or _compares_answers(batches, k))}
    if sum(map(len, jumping.values())) != np.count_nonzero(frozen.may_slide):
        return False
    if found.timed is None and _conditions(batches, outputs, turning, OF_TIME):
        return False                           # too many switch times to watch for
    table, sides = frozen.table, np.ones(len(frozen.groups))
    kept = np.ones(len(table.fy[0]), bool), np.ones(len(table.fyp[0]), bool)
    room = max(map(len, kept))
    for side in (0.0, 1.0, -1.0):
        entries = np.zeros(room), np.zeros(room)
        runner = Rows(table, np.append(args, frozen.shifts(side * sides)))
        runner.entries_into(t, y, yp, *entries)
        for marks, values in zip(kept, entries, strict=True):
            marks &= values[: len(marks)] != 0.0
    return has_regular_structure(table, kept)


def _compares_answers(batches: Batches, number: int) -> bool:
    """Whether an operation only asks what others have answered, as `np.where` does."""
    batch, starts = batches.batches[number], [batch.start for batch in batches.batches]
    if batch.code not in (op.EQ, op.NE):
        return False
    elements = np.unique(np.concatenate([picked(x) for x in batch.operands]))
    owners = np.searchsorted(starts, elements[elements >= batches.first], side="right") - 1
    codes = {batches.batches[k].code for k in owners.tolist()}
    return elements[0] >= batches.first and codes <= {op.CONST, *ANSWERS}


def _conditions(
    batches: Batches, outputs: np.ndarray, codes: Sequence[int] = (*COMPARISONS, *CHOOSING),
    wanted: int = OF_UNKNOWNS,
) -> dict[int, np.ndarray]:
    """Operations that choose by unknowns, by number, and their elements that do so."""
    needed, level = batches.needed_for(outputs), levels(batches)
    found = {}
    for k, batch in enumerate(batches.batches):
        if batch.code in codes:
            part = slice(batch.start, batch.stop)
            places = np.flatnonzero(needed[part] & (level[part] == wanted))
            if len(places):
                found[k] = places
    return found


def _risky(batches: Batches, conditions: dict[int, np.ndarray]) -> set[int]:
    """Find conditions that keep an operand in its domain, and those in a divisor.

    They stay free, as in `tether.structure.frozen`: on the wrong side there may be no value.
    """
    starts = np.array([batch.start for batch in batches.batches])
    deciding: list[frozenset[int]] = []
    has_domain: list[bool] = []
    risky: set[int] = set()

    def owners(elements: Elements) -> list[int]:
        numbers = picked(elements)
        inner = numbers[numbers >= batches.first]
        return np.unique(np.searchsorted(starts, inner, side="right") - 1).tolist()

    for k, batch in enumerate(batches.batches):
        sources = [owners(x) for x in batch.operands]
        of_each = [frozenset().union(*(deciding[j] for j in some)) for some in sources]
        blank = [any(_is_blank(batches.batches[j]) for j in some) for some in sources]
        partial = [any(has_domain[j] for j in some) for some in sources]
        code, mine = batch.code, frozenset().union(*of_each)
        total = code in (op.CONST, LINEAR) or OPERATIONS[code].total or code in OVERFLOWING
        if k in conditions:
            mine |= {k}
        elif not total:
            risky |= mine
        elif code == op.DIV:
            risky |= of_each[1]
        if code == op.SELECT and (any(blank) or any(partial[1:])):
            risky |= of_each[0]
        deciding.append(mine)
        has_domain.append(not total or any(blank) or any(partial))
    return risky


def _is_blank(batch: Batch) -> bool:
    """Whether some of a batch's numbers stand for missing values."""
    return batch.code == op.CONST and not np.isfinite(np.asarray(batch.values)).all()


class _Freezing:
    """Writes the batches again, with shifts.

    Parameters
    ----------
    old : Batches
        The operations.
    conditions : dict
        The operations that are frozen, by number, and which of their elements.
    """

    def __init__(self, old: Batches, conditions: dict[int, np.ndarray]) -> None:
        self.old, self.conditions = old, conditions
        self.count = count = sum(map(len, conditions.values()))
        self.new = Batches(old.n, old.p + 2 * count)
        self.new.tables = old.tables
        self.element = np.arange(old.size, dtype=np.int64)     # of the new ones, for each old one
        self.above: list[np.ndarray] = []
        self.below: list[np.ndarray] = []
        self.groups: list[np.ndarray] = []
        self.answers: list[np.ndarray] = []
        self.jumps: list[np.ndarray] = []      # whether something may jump at a surface

    def frozen(self, outputs: np.ndarray, table: RowTable, slides: bool) -> FrozenRows:
        """Write all batches again and make templates of them."""
        for k, batch in enumerate(self.old.batches):
            self.element[batch.start : batch.stop] = self._copied(batch)
            if k in self.conditions:
                places = self.conditions[k]
                self.groups.append(np.full(len(places), len(self.groups)))
                self.answers.append(self._with_shifts(batch, places))
                self.jumps.append(np.full(len(places), batch.code not in CONTINUOUS))
                self.element[batch.start + places] = self.answers[-1]
        above, below = np.concatenate(self.above), np.concatenate(self.below)
        heights, equations = self.new.add(op.SUB, above, below), self.element[outputs]
        of_heights = prepare_rows(fold(self.new, heights))
        rows, rates_of_all = np.full(self.count, -1), None
        if slides:
            rows = self._rows_decided(above, below, equations)
            of_rows, columns = map(np.asarray, of_heights.fy)
            rows[of_rows[~np.isin(columns, table.fyp[1])]] = -1
            rows[np.asarray(of_heights.fyp[0])] = -1
        layers = layers_of(rows)
        if np.any(rows >= 0):
            equations, some = self._with_rates(heights, equations, rows, layers)
            rates_of_all = prepare_rows(fold(self.new, some))
        return FrozenRows(
            fold(self.new, equations), of_heights,
            prepare_rows(fold(self.new, np.concatenate([above, below]))),
            np.concatenate(self.groups), rows, layers, rates_of_all,
        )

    def _rows_decided(
        self, above: np.ndarray, below: np.ndarray, equations: np.ndarray
    ) -> np.ndarray:
        """Find the equation that holds the solution on each surface; -1 if there is none."""
        rows = np.full(self.count, -1)
        answers, jumps = np.concatenate(self.answers), np.concatenate(self.jumps)
        groups, operands = np.concatenate(self.groups), np.concatenate([above, below])
        for group in np.unique(groups[jumps]):
            mine = np.flatnonzero(groups == group)
            rows[mine] = equations_decided(self.new, answers[mine], operands, equations)
        # two conditions on one surface would have to be held by the same equation
        surfaces = np.stack([np.minimum(above, below), np.maximum(above, below)])
        _, place, count = np.unique(
            surfaces[:, jumps], axis=1, return_inverse=True, return_counts=True
        )
        rows[np.flatnonzero(jumps)[count[place] > 1]] = -1
        return rows

    def _with_rates(
        self, heights: np.ndarray, equations: np.ndarray, rows: np.ndarray, layers: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Put rates of heights in the place of equations where an input says so."""
        new, may = self.new, np.flatnonzero(rows >= 0)
        found = rates(new, heights[may])
        half, equations = np.array([new.constant(0.5)]), equations.copy()
        for layer in range(layers.max() + 1):
            mine = layers[may] == layer
            here = may[mine]
            slides = new.add(op.LT, half, new.argument(self.old.p + self.count) + here)
            equations[rows[here]] = new.add(
                op.SELECT, slides, found[mine], equations[rows[here]]
            )
        return equations, found

    def _copied(self, batch: Batch) -> np.ndarray | int:
        if batch.code == op.CONST:
            assert batch.values is not None
            if batch.size == 1:
                return self.new.constant(batch.values[0])
            return self.new.many_constants(batch.values)
        operands = [self.element[as_index(x)] for x in batch.operands]
        if batch.code == LINEAR:
            assert batch.values is not None
            assert batch.ends is not None
            return self.new.linear(operands[0], batch.values, batch.ends)
        return self.new.add(batch.code, *operands, number=batch.number)

    def _with_shifts(self, batch: Batch, places: np.ndarray) -> np.ndarray:
        """Write elements of an operation that chooses, with a shift in its comparison."""
        new, code = self.new, batch.code
        operands = [self.element[picked(x, places)] for x in batch.operands]
        zeros = np.full(len(places), new.constant(0.0))
        if code in (op.ABS, op.SIGN):
            answer, moved = self._shifted(op.LT, operands[0], zeros)
        elif code in _COMPARED:
            first, second = (operands[k] for k in _COMPARED[code])
            answer, moved = self._shifted(op.LE, first, second)
        else:
            answer, moved = self._shifted(code, *operands)
        if code == op.ABS:
            return new.add(op.SELECT, answer, new.add(op.NEG, operands[0]), operands[0])
        if code == op.SIGN:
            ones = np.full(len(places), new.constant(1.0))
            above = new.add(op.SELECT, new.add(op.LT, moved, operands[0]), ones, zeros)
            return new.add(op.SELECT, answer, np.array([new.constant(-1.0)]), above)
        if code in _COMPARED:
            return new.add(op.SELECT, answer, *operands)
        return answer

    def _shifted(
        self, code: int, a: np.ndarray, b: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Compare a with b + shift; return the answers and b + shift."""
        first = self.new.argument(self.old.p + sum(map(len, self.above)))
        self.above.append(a)
        self.below.append(b)
        moved = self.new.add(op.ADD, b, first + np.arange(len(a)))
        return self.new.add(code, a, moved), moved
