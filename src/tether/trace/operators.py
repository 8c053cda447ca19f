"""Python's operators on traced numbers: the nodes they make, and the kinds of their results."""

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

# Entries of a table of kinds that are not kinds.
REFUSED, LOGICAL_OR, LOGICAL_AND, IF_SAFE = -1, -2, -3, -4


class Operation:
    """An operator.

    Attributes
    ----------
    name : str
        Its symbol or name, for messages.
    method : callable
        Makes its node.
    kinds : list of list of int
        The kind of its result for all kinds of operands.
    errors : callable or None
        The exceptions that it raises for Python numbers, see `tether.trace.raising`.
    """

    __slots__ = ("errors", "kinds", "method", "name")

    def __init__(
        self, name: str, method: Callable[[Graph, int, int], int], kinds: list[list[int]],
        errors: Callable[[Graph, int, int], Errors] | None = None,
    ) -> None:
        self.name, self.method, self.kinds, self.errors = name, method, kinds, errors


def table(rule: Callable[[int, int, int], int]) -> list[list[int]]:
    """Make the table of kinds of an operation from a rule for two kinds."""
    return [[rule(x, y, PROMOTED[x][y]) for y in KINDS] for x in KINDS]


def of_sums(of_bools: int) -> Callable[[int, int, int], int]:
    """Return the rule for + - *, where the result for two NumPy bools is `of_bools`."""

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
    return REFUSED if BOOL in (class_of(x), class_of(y)) else IF_SAFE


def of_comparisons(x: int, y: int, promoted: int) -> int:
    """Kind of a condition."""
    return BOOL + origin_of(promoted)


def of_bits(x: int, y: int, promoted: int) -> int:
    """Kind of the result of & | ^, which are for bools only."""
    return promoted if class_of(promoted) == BOOL else REFUSED
