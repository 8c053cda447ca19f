"""Conditions on the elements of whole arrays, frozen while a step is taken.

As `frozen.py`, but on batches instead of single numbers: every element of a comparison, minimum,
maximum, absolute value or sign that depends on unknowns gets an input of its own, a shift. An
infinite shift fixes its answer to that of one side; a shift of zero changes nothing. The
resulting templates have a table of shifts, one row for each condition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tether._core.rows import Rows
from tether.structure.frozen import CHOOSING, COMPARISONS, CONTINUOUS, OVERFLOWING
from tether.structure.row_structure import has_regular_structure
from tether.trace import opcodes as op
from tether.trace.array_tracer import ArrayTrace
from tether.trace.backend import Backend, prepare_rows
from tether.trace.batches import LINEAR, Batch, Batches, Elements, as_index, picked
from tether.trace.operations import OPERATIONS
from tether.trace.refusal import Untraceable
from tether.trace.row_table import RowTable
from tether.trace.templates import fold
from tether.trace.timed_elements import OF_TIME, OF_UNKNOWNS, levels

__all__ = ["FrozenRows", "freeze_rows", "is_smooth_on_all_sides"]

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
    """

    table: RowTable
    heights: Backend
    operands: Backend
    groups: np.ndarray

    @property
    def unknowns(self) -> np.ndarray:
        """Marks of the unknowns on which heights depend."""
        found = np.zeros(self.table.n, bool)
        for _, columns in (self.heights.fy, self.heights.fyp):
            found[columns] = True
        return found

    def shifts(self, sides: np.ndarray) -> np.ndarray:
        """Shifts that freeze conditions: side 1 is above, -1 below, 0 leaves a condition free."""
        return np.where(sides == 0.0, 0.0, -np.inf * np.where(sides == 0.0, 1.0, sides))


def freeze_rows(found: ArrayTrace) -> FrozenRows | None:
    """Give every condition on elements of arrays an input that freezes it; None if there is none.

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
        return _Freezing(batches, chosen).frozen(outputs)
    except Untraceable:
        return None


def is_smooth_on_all_sides(
    found: ArrayTrace, frozen: FrozenRows, t: float, y: np.ndarray, yp: np.ndarray,
    args: np.ndarray,
) -> bool:
    """Tell whether equations have only kinks, and the same structure on all sides of them.

    Then no solution stays on a surface, and the index is the same on all sides.
    """
    assert found.source is not None
    batches, outputs = found.source
    turning = tuple(code for code, operation in OPERATIONS.items() if operation.turns)
    if any(batches.batches[k].code not in CONTINUOUS
           for k in _conditions(batches, outputs, turning)):
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
        count = sum(map(len, conditions.values()))
        self.new = Batches(old.n, old.p + count)
        self.new.tables = old.tables
        self.element = np.arange(old.size, dtype=np.int64)     # of the new ones, for each old one
        self.above: list[np.ndarray] = []
        self.below: list[np.ndarray] = []
        self.groups: list[np.ndarray] = []

    def frozen(self, outputs: np.ndarray) -> FrozenRows:
        """Write all batches again and make templates of them."""
        for k, batch in enumerate(self.old.batches):
            self.element[batch.start : batch.stop] = self._copied(batch)
            if k in self.conditions:
                places = self.conditions[k]
                self.groups.append(np.full(len(places), len(self.groups)))
                self.element[batch.start + places] = self._with_shifts(batch, places)
        above, below = np.concatenate(self.above), np.concatenate(self.below)
        heights = self.new.add(op.SUB, above, below)
        return FrozenRows(
            fold(self.new, self.element[outputs]), prepare_rows(fold(self.new, heights)),
            prepare_rows(fold(self.new, np.concatenate([above, below]))),
            np.concatenate(self.groups),
        )

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
