"""The tables that the core runs over many rows: all steps, and where their entries go.

A step is a template, or a set of linear combinations; `templates.py` makes them. Here their tables
are joined into one (`RowTable`), which `tether._core.rows` runs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tether._core.schedule import Schedule
from tether.trace import opcodes as op
from tether.trace.refusal import refuse
from tether.trace.row_entries import find_entries
from tether.trace.row_step import TO_FACTORS, TO_FY, TO_FYP, TO_MEMORY, TO_NOTHING, TO_VALUES, Step

__all__ = ["RowTable", "joined"]

# Number of rows that the core runs at a time.
BLOCK = 128
# With more runs of consecutive places in a block than this, its places are listed one by one.
_MOST_RUNS = 8


@dataclass(eq=False, repr=False)
class RowTable:
    """The steps that `tether._core.rows.Rows` runs: lists over all steps, with common slots."""

    n: int
    n_args: int
    n_values: int
    fy: tuple[np.ndarray, np.ndarray] = (np.zeros(0, np.intc), np.zeros(0, np.intc))
    fyp: tuple[np.ndarray, np.ndarray] = (np.zeros(0, np.intc), np.zeros(0, np.intc))
    fyp_is_static: bool = False
    kind: Any = field(default_factory=list)
    count: Any = field(default_factory=list)
    code: Any = field(default_factory=list)
    to: Any = field(default_factory=list)
    a: Any = field(default_factory=list)
    b: Any = field(default_factory=list)
    second: Any = field(default_factory=list)
    c: Any = field(default_factory=list)
    first: Any = field(default_factory=lambda: [0])
    runs_for: Any = field(default_factory=list)                 # bits: values, entries
    t_slot: Any = field(default_factory=list)
    pieces: Any = field(default_factory=list)
    load_start: Any = field(default_factory=lambda: [0])
    load_slot: Any = field(default_factory=list)
    load_of: Any = field(default_factory=list)                  # 0: y, 1: y', 2: the memory
    load_table: Any = field(default_factory=list)
    load_blocks: Any = field(default_factory=list)
    result_slot: Any = field(default_factory=list)
    result_to: Any = field(default_factory=list)
    result_table: Any = field(default_factory=list)
    result_first: Any = field(default_factory=list)
    entry_start: Any = field(default_factory=lambda: [0])
    entry_slot: Any = field(default_factory=list)
    entry_kind: Any = field(default_factory=list)
    entry_table: Any = field(default_factory=list)
    entry_sets: Any = field(default_factory=list)               # whether all are set, none added to
    places: Any = ()                  # numbers of entries of F_y and F_y'; ~number: add to it
    based: Any = ()                   # changing entries that begin with their constant part
    zeros: Any = ()                   # entries whose constant part begins with zero
    index: Any = field(default_factory=list)
    sum_start: Any = field(default_factory=list)
    sum_end: Any = field(default_factory=list)
    target: Any = field(default_factory=list)
    factor: Any = field(default_factory=list)
    through: Any = field(default_factory=list)
    product_ends: Any = ()            # ends of constant ones: totals, F_y, F_y'; of changing ones
    n_totals: int = 0
    total_zeros: Any = ()             # totals that are constant, and that change
    copies_point: bool = False        # whether some input reads y, y' or t from the memory
    memory: Any = None                # y, y', t, args, intermediate results, numbers
    slots: Any = field(default_factory=list)
    factors: Any = field(default_factory=list)

    @property
    def nbytes(self) -> int:
        """Memory of all tables, in bytes."""
        fields = [x if isinstance(x, tuple) else (x,) for x in vars(self).values()]
        return sum(x.nbytes for some in fields for x in some if isinstance(x, np.ndarray))

    @property
    def templates(self) -> int:
        """Number of templates: the programs apart from those of derivatives."""
        to = np.asarray(self.result_to)
        return int(np.sum((np.asarray(self.kind) == 0) & (to != TO_NOTHING)))


# What a step is run for, as bits: values, entries that change from point to point, constant ones.
_VALUES, _CHANGING, _CONSTANT = 1, 2, 4


def joined(n: int, n_args: int, count: int, steps: list[Step], size: int) -> RowTable:
    """Join steps into one table.

    Parameters
    ----------
    n, n_args, count : int
        Numbers of unknowns, arguments and values.
    steps : list of Step
        The steps in the order in which they are run.
    size : int
        Size of the memory, without the numbers of single rows.
    """
    return _Joining(n, n_args, count, steps, size).table()


class _Joining:
    """Joins steps into one table, and finds out where their entries go."""

    def __init__(self, n: int, n_args: int, count: int, steps: list[Step], size: int) -> None:
        self.n, self.first, self.size = n, 2 * n + 1 + n_args, size
        self.row_table = RowTable(n, n_args, count)
        self.steps, self.index_size, self.memory_size = steps, 0, size
        self.numbers: list[np.ndarray] = []
        self.tables_of: dict[tuple[int, bool], tuple[int, int, int]] = {}
        self.number_places: dict[int, np.ndarray] = {}
        self.places: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
        self.places_size = [0, 0]

    def table(self) -> RowTable:
        """Join all steps."""
        self.entries = found = find_entries(self.n, self.first, self.size, self.steps)
        table = self.row_table
        table.fy, table.fyp, table.fyp_is_static = found.fy, found.fyp, found.fyp_is_static
        table.n_totals = found.n_totals
        self._find_needed()
        for step in self.steps:
            self._join(step)
        self._finish()
        return self.row_table

    def _find_needed(self) -> None:
        """Find the steps whose results are needed for entries that change."""
        needed = np.zeros(self.size - self.first, bool)
        self.needed_for_entries = set()
        for step in reversed(self.steps):
            own = slice(step.place - self.first, step.place - self.first + len(step.results))
            plans = [step.of_entries[0]]
            if step.to == TO_MEMORY and needed[own].any():
                self.needed_for_entries.add(id(step))
            if id(step) in self.needed_for_entries or step.to in (TO_FY, TO_FYP):
                plans.append(step.schedule)
                if step.ends is not None:
                    inner = step.loads[0][step.loads[0] >= self.first]
                    needed[inner - self.first] = True
            for plan in plans:
                if plan is not None:
                    for k in _inputs_read(plan, len(step.loads))[0]:
                        inner = step.loads[k][step.loads[k] >= self.first]
                        needed[inner - self.first] = True

    # --- steps ----------------------------------------------------------------------------

    def _add_index(self, table: np.ndarray) -> int:
        place = self.index_size
        self.row_table.index.append(np.asarray(table, np.intc))
        self.index_size += len(table)
        return place

    def _add_places(self, kind: int, numbers: np.ndarray) -> int:
        place = self.places_size[kind]
        self.places[kind].append(np.asarray(numbers, np.intc))
        self.places_size[kind] += len(numbers)
        return place

    def _join(self, step: Step) -> None:
        """Add the program of the results, and those of the entries."""
        runs_for = self._runs_for(step)
        if runs_for:
            self._begin(step, runs_for, step.to)
            if step.ends is None:
                assert step.schedule is not None
                values = self._join_program(step, step.schedule)
                self.row_table.result_slot.append(int(values[0]))
            else:
                self._join_sums(step)
            self._join_results(step)
            self._end()
        for plan, constant in zip(step.of_entries, (False, True), strict=True):
            if plan is not None:
                self._begin(step, _CONSTANT if constant else _CHANGING, TO_NOTHING)
                slots = iter(self._join_program(step, plan))
                for k, is_static in enumerate(step.is_static):
                    if is_static == constant:
                        self._join_entry(step, k, int(next(slots)))
                self.row_table.result_slot.append(0)
                self.row_table.result_table.append(0)
                self.row_table.result_first.append(-1)
                self._end()

    def _runs_for(self, step: Step) -> int:
        if step.to == TO_VALUES:
            return _VALUES
        if step.to != TO_MEMORY:
            return _CONSTANT if step.is_constant else _CHANGING
        for_entries = _CHANGING if id(step) in self.needed_for_entries else 0
        return for_entries | (0 if step.for_entries else _VALUES)

    def _begin(self, step: Step, runs_for: int, to: int) -> None:
        table = self.row_table
        table.count.append(len(step.results))
        table.kind.append(0 if step.ends is None else 1)
        table.runs_for.append(runs_for)
        table.result_to.append(to)

    def _end(self) -> None:
        table = self.row_table
        table.first.append(len(table.code))
        table.load_start.append(len(table.load_slot))
        table.entry_start.append(len(table.entry_slot))

    def _join_results(self, step: Step) -> None:
        table, contiguous = self.row_table, False
        if step.to == TO_MEMORY:
            table.result_table.append(step.place)
        elif step.to in (TO_FY, TO_FYP):
            table.result_table.append(self._add_places(step.to, step.results))
        else:
            contiguous = bool((np.diff(step.results) == 1).all())
            table.result_table.append(-1 if contiguous else self._add_index(step.results))
        table.result_first.append(int(step.results[0]) if contiguous else -1)

    def _join_sums(self, step: Step) -> None:
        table = self.row_table
        assert step.ends is not None
        assert step.factors is not None
        table.t_slot.append(-1)
        table.result_slot.append(0)
        self._join_load(0, step.loads[0], always=True)
        table.sum_start.append(sum(map(len, table.sum_end)))
        table.sum_end.append(step.ends)
        self._join_entry(step, 0, 0)
        place = self.entries.factor_places[id(step), 0]
        table.factors.append((place, step.factors))

    def _join_program(self, step: Step, plan: Schedule) -> np.ndarray:
        """Add a program and the inputs that it reads; return the slots of its results."""
        table, slots = self.row_table, len(self.row_table.slots)
        constants, loads = plan.n_constants, len(step.loads)
        table.slots.extend(plan.slots.tolist())
        table.t_slot.append(slots + constants if plan.takes_t else -1)
        table.sum_start.append(0)
        read, numbers = _inputs_read(plan, loads)
        for k in read:
            self._join_load(slots + constants + 1 + k, step.loads[k])
        for k in numbers:
            self._join_load(slots + constants + 1 + 2 * loads + k, self._place_of(step.numbers[k]))
        pieces = sum(map(len, table.pieces))
        table.pieces.append(plan.tables)
        code = np.repeat(plan.run_op, np.diff(plan.run_start))
        count = len(code)
        numbered = np.isin(code, _NUMBERED)
        b = np.where(numbered, plan.b + np.where(code == op.TABLE, pieces, 0), plan.b + slots)
        table.code.extend(code.tolist())
        table.to.extend((slots + plan.base + np.arange(count)).tolist())
        table.a.extend((plan.a + slots).tolist())
        table.b.extend(b.tolist())
        # any slot where there is no such operand
        table.second.extend(np.where(numbered | (plan.b < 0), slots, plan.b + slots).tolist())
        table.c.extend((np.maximum(plan.c, 0) + slots).tolist())
        return slots + plan.values

    def _place_of(self, source: np.ndarray) -> np.ndarray:
        """Return the places of an input that is not differentiated by; numbers go to the memory."""
        if source.dtype != np.float64:
            return source
        if id(source) not in self.number_places:
            self.numbers.append(source)
            self.number_places[id(source)] = self.memory_size + np.arange(len(source))
            self.memory_size += len(source)
        return self.number_places[id(source)]

    def _join_load(self, slot: int, source: np.ndarray, always: bool = False) -> None:
        """Add an input: its slot, in which of the vectors it is, and at which places there."""
        table = self.row_table
        if (id(source), always) not in self.tables_of:
            self.tables_of[id(source), always] = self._tables_of(source, always)
        of, blocks, places = self.tables_of[id(source), always]
        table.load_slot.append(slot)
        table.load_of.append(of)
        table.load_blocks.append(blocks)
        table.load_table.append(places)

    def _tables_of(self, source: np.ndarray, always: bool) -> tuple[int, int, int]:
        """Return the vector of an input, and where its tables begin.

        For a block whose places are consecutive, the first place is enough; for one of a few such
        runs, their list (`RUNS` in `tether._core.rows`).
        """
        low, high = int(source.min(initial=self.size)), int(source.max(initial=0))
        of = 0 if high < self.n else 1 if self.n <= low and high < 2 * self.n else 2
        if of == 1:
            source = source - self.n
        self.row_table.copies_point |= of == 2 and low <= 2 * self.n
        if len(source) > 1 and low == high:                    # the same for all rows
            return of, int(source[0]), self._add_index(source) if always else -2
        first = source[::BLOCK].astype(np.intc)
        jumps = np.diff(source) != 1
        inside = np.arange(1, len(source)) % BLOCK != 0        # not between two blocks
        starts = np.flatnonzero(jumps & inside) + 1
        broken, more = np.unique(starts // BLOCK, return_counts=True)
        first[broken] = -1
        in_runs = broken[more < _MOST_RUNS]
        if len(in_runs):
            first[in_runs] = self._add_runs(source, starts, in_runs)
        blocks = self._add_index(first)
        return of, blocks, self._add_index(source) if always or (first == -1).any() else -1

    def _add_runs(
        self, source: np.ndarray, starts: np.ndarray, in_runs: np.ndarray
    ) -> np.ndarray:
        """List the runs of some blocks; return what stands for their first places."""
        begins = np.concatenate([in_runs * BLOCK, starts[np.isin(starts // BLOCK, in_runs)]])
        begins.sort()
        block_begins = begins - begins % BLOCK
        ends = np.minimum(np.append(begins[1:], len(source)), block_begins + BLOCK)
        runs = np.column_stack([ends, source[begins] - begins + block_begins])
        runs[:, 0] -= block_begins
        place = self._add_index(runs.ravel())
        return -2 - place - 2 * np.flatnonzero(begins == block_begins)

    def _join_entry(self, step: Step, k: int, slot: int) -> None:
        kind, numbers = self.entries.destinations[id(step), k]
        table = self.row_table
        table.entry_slot.append(slot)
        table.entry_kind.append(kind)
        if kind == TO_FACTORS:
            table.entry_table.append(self.entries.factor_places[id(step), k])
            table.entry_sets.append(1)
        else:
            table.entry_table.append(self._add_places(kind, numbers))
            table.entry_sets.append(int((numbers >= 0).all()))

    def _finish(self) -> None:
        table, found = self.row_table, self.entries
        sizes = self.index_size, self.memory_size, found.factor_size, *self.places_size
        if max(sizes) >= 2**31:
            refuse("has tables that are too long for 32-bit numbers")
        none = np.zeros(0, np.intc)
        table.index = np.concatenate([none, *table.index])
        table.places = tuple(np.concatenate([none, *x]) for x in self.places)
        table.sum_end = np.concatenate([none, *table.sum_end])
        table.pieces = np.concatenate([np.zeros(1), *table.pieces])[1:] if any(
            map(len, table.pieces)
        ) else np.zeros(1)
        memory = np.zeros(max(self.memory_size, 1))
        if self.numbers:
            numbers = np.concatenate(self.numbers)
            memory[self.memory_size - len(numbers) : self.memory_size] = numbers
        table.memory = memory
        table.slots = np.array(table.slots if len(table.slots) else [0.0])
        factors = np.zeros(max(found.factor_size, 1))
        for place, values in table.factors:
            factors[place : place + len(values)] = values
        table.factors = factors
        table.based, table.zeros, table.total_zeros = found.based, found.zeros, found.total_zeros
        table.target, table.factor, table.through = found.target, found.factor, found.through
        table.product_ends = found.product_ends


def _inputs_read(plan: Schedule, loads: int) -> tuple[list[int], list[int]]:
    """Return which inputs a program reads, and which of its numbers."""
    code = np.repeat(plan.run_op, np.diff(plan.run_start))
    slots = np.concatenate([plan.a, plan.b[~np.isin(code, _NUMBERED)], plan.c, plan.values])
    inputs = np.unique(slots) - plan.n_constants - 1
    of_numbers = inputs[(inputs >= 2 * loads) & (inputs < plan.base - plan.n_constants - 1)]
    return inputs[(inputs >= 0) & (inputs < loads)].tolist(), (of_numbers - 2 * loads).tolist()


_NUMBERED = (op.POWI, op.SPECIAL, op.TABLE)
