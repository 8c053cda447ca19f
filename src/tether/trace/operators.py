"""Operators: what they compute, and the kinds of their results."""

from __future__ import annotations

from collections.abc import Callable

from tether.trace.graph import Graph
from tether.trace.kinds import (
    BOOL,
    FLOAT,
    INT,
    KINDS,
    PROMOTED,
    PYTHON,
    UNCERTAIN,
    class_of,
    origin_of,
)
from tether.trace.raising import Errors

# What stands in a table of kinds in place of a result.
REFUSED, EITHER_ONE, BOTH, WITH_CARE = -1, -2, -3, -4


class Operation:
    """An operator: what it computes, and the kind of its result for all kinds of operands.

    Attributes
    ----------
    name, method, kinds
        How it is written, what makes its node, and the table of kinds.
    errors : callable or None
        Exceptions of Python's numbers, see `tether.trace.raising`.
    """

    __slots__ = ("errors", "kinds", "method", "name")

    def __init__(
        self, name: str, method: Callable[[Graph, int, int], int], kinds: list[list[int]],
        errors: Callable[[Graph, int, int], Errors] | None = None,
    ) -> None:
        self.name, self.method, self.kinds, self.errors = name, method, kinds, errors


def table(rule: Callable[[int, int, int], int]) -> list[list[int]]:
    """Kinds of the results of an operation."""
    return [[rule(x, y, PROMOTED[x][y]) for y in KINDS] for x in KINDS]


def of_sums(of_bools: int) -> Callable[[int, int, int], int]:
    """Kinds of + - *, where two bools of NumPy give something of their own."""

    def rule(x: int, y: int, promoted: int) -> int:
        if class_of(promoted) != BOOL:
            return promoted
        origin = origin_of(promoted)
        if origin == PYTHON:
            return INT + PYTHON
        unsure = origin_of(x) in UNCERTAIN or origin_of(y) in UNCERTAIN
        return REFUSED if unsure else of_bools

    return rule


def of_quotients(x: int, y: int, promoted: int) -> int:
    """Kind of the result of a function that always gives floats."""
    return FLOAT + origin_of(promoted)


def of_remainders(x: int, y: int, promoted: int) -> int:
    """Kind of a remainder or a power."""
    if class_of(promoted) == FLOAT:
        return promoted
    return REFUSED if BOOL in (class_of(x), class_of(y)) else WITH_CARE


def of_comparisons(x: int, y: int, promoted: int) -> int:
    """Kind of a condition."""
    return BOOL + origin_of(promoted)


def of_bits(x: int, y: int, promoted: int) -> int:
    """Kind of the result of & and its like, for bools only."""
    return promoted if class_of(promoted) == BOOL else REFUSED
