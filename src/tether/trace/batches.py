"""Expressions in batches: one operation on many elements is one entry, not many nodes.

Every element has a number: first those of y, then y', time, arguments, then those of the batches
in the order in which they were made. A batch refers to its operands by the numbers of their
elements, so slices, strides and gathers need no operation of their own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tether.trace import opcodes as op
from tether.trace.piecewise import Piecewise
from tether.trace.refusal import refuse

__all__ = [
    "LINEAR", "Batch", "Batches", "Elements", "as_index", "current", "picked",
    "same",
]

# Code of a batch of linear combinations, in addition to the operations and leaves of a graph.
LINEAR = -6
# A function that makes more batches than this works on single numbers.
MOST_BATCHES = 3000


Elements = np.ndarray | range


def _shortened(elements: Elements) -> Elements:
    """Return consecutive elements as a range."""
    if isinstance(elements, range) or len(elements) < 2:
        return elements
    first = int(elements[0])
    if elements[-1] - first == len(elements) - 1 and bool((np.diff(elements) == 1).all()):
        return range(first, first + len(elements))
    return np.asarray(elements, np.intc)


def same(first: Any, second: Any) -> bool:
    """Tell whether two arrays, ranges or None are equal."""
    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
        return first.tobytes() == second.tobytes()
    return type(first) is type(second) and first == second


def picked(elements: Elements, places: np.ndarray | None = None) -> np.ndarray:
    """Return the elements at some places as an array; all of them by default."""
    if isinstance(elements, range):
        first = elements.start
        if places is None:
            return np.arange(first, elements.stop, dtype=np.intc)
        return places + np.intc(first)
    if len(elements) == 1 and places is not None:
        return np.full(len(places), elements[0], np.intc)
    return elements.astype(np.intc, copy=False) if places is None else elements[places]


def as_index(elements: Elements) -> Any:
    """Return the index that picks these elements out of an array of all elements."""
    if isinstance(elements, range):
        return slice(elements.start, elements.stop)
    return elements


@dataclass(eq=False)
class Batch:
    """One operation on many elements.

    Attributes
    ----------
    code : int
        The operation; CONST for numbers, LINEAR for linear combinations.
    start, size : int
        Number of the first element, and how many there are.
    operands : tuple of ndarray or range
        Numbers of the operands' elements: one for each element, or a single one for all; a range
        if they are consecutive. Those of LINEAR are the terms of all sums, one sum after the
        other.
    number : int
        The exponent of POWI, or the number of the function of TABLE or SPECIAL.
    values : ndarray or None
        The numbers of CONST, or the factors of LINEAR.
    ends : ndarray or None
        Where the terms of each sum of LINEAR end.
    """

    code: int
    start: int
    size: int
    operands: tuple[Elements, ...] = ()
    number: int = -1
    values: np.ndarray | None = None
    ends: np.ndarray | None = None

    @property
    def stop(self) -> int:
        """Number of the last element plus one."""
        return self.start + self.size

    @property
    def key(self) -> tuple:
        """Hashable key; equal batches have equal keys."""
        arrays = (*self.operands, self.values, self.ends)
        parts = (x if isinstance(x, range) or x is None else hash(x.tobytes()) for x in arrays)
        return self.code, self.number, self.size, *parts

    def equals(self, other: Batch) -> bool:
        """Tell whether another batch with the same key is equal."""
        mine, theirs = ((*b.operands, b.values, b.ends) for b in (self, other))
        return len(mine) == len(theirs) and all(map(same, mine, theirs))


class Batches:
    """A growing list of batches over n unknowns, their derivatives, time and p arguments.

    Examples
    --------
    >>> import numpy as np
    >>> from tether.trace import opcodes as op
    >>> from tether.trace.batches import Batches
    >>> batches = Batches(4)
    >>> batches.add(op.MUL, np.arange(4), np.array([batches.time]))
    array([ 9, 10, 11, 12])
    """

    def __init__(self, n: int, p: int = 0) -> None:
        self.n, self.p = n, p
        self.time = 2 * n
        self.first = self.size = 2 * n + 1 + p
        self.batches: list[Batch] = []
        self._numbers: dict[float | str, int] = {}
        self._known: dict[tuple, Batch] = {}
        self.tables: list[Piecewise] = []

    def argument(self, number: int) -> int:
        """Return the element of an argument."""
        return self.time + 1 + number

    def add(self, code: int, *operands: np.ndarray, number: int = -1) -> np.ndarray:
        """Apply an operation to elements, and return those of the result."""
        size = max(map(len, operands))
        return self._append(Batch(code, self.size, size, operands, number))

    def constants(self, values: np.ndarray) -> np.ndarray:
        """Return elements with these values; a value that fills all of them is stored once."""
        if len(values) > 1:
            first = values[0]
            if not np.all(values == first):
                return self.many_constants(values)
            return np.full(len(values), self.constant(first))
        return np.array([self.constant(v) for v in values], np.intp)

    def many_constants(self, values: np.ndarray) -> np.ndarray:
        """Return elements with these values, as one batch."""
        return self._append(Batch(op.CONST, self.size, len(values), values=values.copy()))

    def constant(self, value: float) -> int:
        """Return the element with this value."""
        value = float(value)
        # zeros have signs, and NaN is not equal to itself
        key = str(value) if value != value or value == 0.0 else value
        if key not in self._numbers:
            batch = Batch(op.CONST, self.size, 1, values=np.array([value]))
            self._numbers[key] = int(self._append(batch)[0])
        return self._numbers[key]

    def linear(self, terms: np.ndarray, factors: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """Return linear combinations: `terms` and `factors` of all sums, and where each ends."""
        batch = Batch(LINEAR, self.size, len(ends), (terms,), values=factors, ends=ends)
        return self._append(batch)

    def needed_for(self, outputs: np.ndarray) -> np.ndarray:
        """Mark the elements that some outputs depend on, including the outputs."""
        needed = np.zeros(self.size, bool)
        needed[outputs] = True
        for batch in reversed(self.batches):
            mine = needed[batch.start : batch.stop]
            if batch.code == op.CONST or not mine.any():
                continue
            places = None if batch.code == LINEAR or mine.all() else np.flatnonzero(mine)
            for operand in batch.operands:
                if places is None or len(operand) == 1:
                    needed[as_index(operand)] = True
                else:
                    needed[picked(operand, places)] = True
        return needed

    def _append(self, batch: Batch) -> np.ndarray:
        """Add a batch, unless there is an equal one, and return its elements."""
        batch.operands = tuple(map(_shortened, batch.operands))
        key = batch.key
        known = self._known.setdefault(key, batch)
        if known is not batch and known.equals(batch):
            return np.arange(known.start, known.stop)
        if len(self.batches) >= MOST_BATCHES:
            refuse("works on single numbers rather than on arrays")
        if batch.stop >= 2**31:
            refuse("has too many operations for 32-bit numbers")
        self.batches.append(batch)
        self.size = batch.stop
        return np.arange(batch.start, batch.stop)


class _Current(threading.local):
    """The batches that this thread writes to while it traces whole arrays; None otherwise.

    Attributes
    ----------
    batches : Batches or None
        The operations.
    decide : callable or None
        Decides a branch on an element.
    """

    batches: Batches | None = None
    decide: Callable[[int], bool] | None = None


current = _Current()
