"""Functions of two numbers, traced or not: minimum, maximum, arctan2 and hypot."""

from __future__ import annotations

from typing import Any

import numpy as np

from tether.trace import opcodes as op
from tether.trace.kinds import BOOL, PROMOTED, UNSURE, class_of
from tether.trace.operators import Operation, of_quotients, table
from tether.trace.refusal import refuse
from tether.trace.scalar import (
    binary,
    combine,
    is_traced,
    kind_of_number,
    of_kind,
    select,
)

_MINIMUM = Operation("minimum", binary(op.MIN), PROMOTED)
_MAXIMUM = Operation("maximum", binary(op.MAX), PROMOTED)
_ANGLE = Operation("arctan2", binary(op.ATAN2), table(of_quotients))
_LENGTH = Operation("hypot", binary(op.HYPOT), table(of_quotients))


def minimum(x: Any, y: Any) -> Any:
    """Smaller of two numbers; NaN if either is, as in NumPy."""
    return combine(_MINIMUM, x, y) if is_traced(x, y) else np.minimum(x, y)


def maximum(x: Any, y: Any) -> Any:
    """Larger of two numbers; NaN if either is, as in NumPy."""
    return combine(_MAXIMUM, x, y) if is_traced(x, y) else np.maximum(x, y)


def fmin(x: Any, y: Any) -> Any:
    """Smaller of two numbers; if one is NaN, the other."""
    if not is_traced(x, y):
        return np.fmin(x, y)
    return select(x <= y, x, _unless_nan(y, x))


def fmax(x: Any, y: Any) -> Any:
    """Larger of two numbers; if one is NaN, the other."""
    if not is_traced(x, y):
        return np.fmax(x, y)
    return select(x >= y, x, _unless_nan(y, x))


def _unless_nan(x: Any, other: Any) -> Any:
    return select(x == x, x, other) if is_traced(x) else other if x != x else x


def first_unless_less(x: Any, y: Any) -> Any:
    """Smaller of two numbers as Python's `min` has it: the first unless the second is less."""
    if not is_traced(y) and y == y:  # then only x can be NaN, which both versions return
        return of_kind(_common(x, y), minimum(x, y))
    return of_kind(_common(x, y), select(y < x, y, x))


def first_unless_greater(x: Any, y: Any) -> Any:
    """Larger of two numbers as Python's `max` has it: the first unless the second is greater."""
    if not is_traced(y) and y == y:
        return of_kind(_common(x, y), maximum(x, y))
    return of_kind(_common(x, y), select(x < y, y, x))


def _common(x: Any, y: Any) -> int:
    """Kind of a number that may be either of two."""
    first, second = kind_of_number(x), kind_of_number(y)
    if first == second:
        return first
    if class_of(first) != class_of(second) and BOOL in (class_of(first), class_of(second)):
        refuse("chooses between a bool and a number")
    return max(class_of(first), class_of(second)) + UNSURE


def arctan2(y: Any, x: Any) -> Any:
    """Angle of a point in the plane."""
    return combine(_ANGLE, y, x) if is_traced(x, y) else np.arctan2(y, x)


def hypot(x: Any, y: Any) -> Any:
    """Length of the hypotenuse."""
    return combine(_LENGTH, x, y) if is_traced(x, y) else np.hypot(x, y)
