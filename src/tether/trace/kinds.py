"""What type a traced number has in the function itself: float or int or bool, Python's or NumPy's.

NumPy's numbers do not always compute as Python's do. The sum of two of its bools is a bool, that
of two of Python's an integer; and a function may ask for the type. So every traced number has a
kind: its class, and where it comes from.
"""

from __future__ import annotations

import enum
import functools
from typing import Any

import numpy as np

# Classes, in the order in which they are promoted; MIXED is an int or a float, nobody knows which.
BOOL, INT, MIXED, FLOAT = 0, 8, 16, 24
# Origins: a number of Python, one of NumPy, an array without dimensions; unknown; and one of the
# first two, nobody knows which.
PYTHON, NUMPY, BOXED, UNSURE, EITHER = 0, 1, 2, 3, 4
UNCERTAIN = (UNSURE, EITHER)
_ORIGINS = 7
KINDS = range(32)

PY_BOOL, NP_BOOL = BOOL + PYTHON, BOOL + NUMPY
PY_INT, NP_INT = INT + PYTHON, INT + NUMPY
PY_FLOAT, NP_FLOAT, ANY_FLOAT = FLOAT + PYTHON, FLOAT + NUMPY, FLOAT + UNSURE

OF_TYPE: dict[type, int] = {
    float: PY_FLOAT, int: PY_INT, bool: PY_BOOL,
    np.float64: NP_FLOAT, np.int64: NP_INT, np.bool_: NP_BOOL,
}  # fmt: skip
_OPERATORS = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "divmod")
_COMPARISONS = ("lt", "le", "eq", "ne", "gt", "ge")


def class_of(kind: int) -> int:
    """Class of a kind."""
    return kind & ~_ORIGINS


def origin_of(kind: int) -> int:
    """Origin of a kind."""
    return kind & _ORIGINS


def origin_of_result(x: int, y: int) -> int:
    """Where the result of an operation comes from: NumPy as soon as one operand does."""
    if x == y == PYTHON:
        return PYTHON
    if x in (NUMPY, BOXED) or y in (NUMPY, BOXED):
        return NUMPY
    return UNSURE if UNSURE in (x, y) else EITHER


# Origin of a result and class by promotion, for every pair of kinds.
PROMOTED = [
    [max(class_of(x), class_of(y)) + origin_of_result(origin_of(x), origin_of(y))
     for y in KINDS]
    for x in KINDS
]  # fmt: skip


@functools.lru_cache(256)
def _kind_of_subclass(cls: type) -> int | None:
    """Kind of the instances of other number types, None where they may compute otherwise."""
    if issubclass(cls, np.integer):
        return NP_INT
    base = int if issubclass(cls, int) else float if issubclass(cls, float) else None
    if base is None or issubclass(cls, np.generic):
        return None
    if issubclass(cls, enum.Enum) and not issubclass(cls, enum.IntEnum):
        return None
    names = [f"__{part}{name}__" for name in _OPERATORS for part in ("", "r")]
    names += [f"__{name}__" for name in (*_COMPARISONS, "float", "bool", "array_ufunc")]
    same = all(getattr(cls, name, None) is getattr(base, name, None) for name in names)
    return OF_TYPE[base] if same else None


def kind_of(value: Any) -> int | None:
    """Kind of an ordinary number; None for what is none, or computes in a way of its own."""
    cls = type(value)
    found = OF_TYPE.get(cls)
    if found is None and isinstance(value, (float, int, np.integer)):
        return _kind_of_subclass(cls)  # type: ignore[arg-type]
    return found


def dtype_of(kind: int) -> np.dtype:
    """Type of an array with elements of that kind."""
    return _DTYPES[class_of(kind)]


_DTYPES = {BOOL: np.dtype(bool), INT: np.dtype(np.int64), FLOAT: np.dtype(float)}
