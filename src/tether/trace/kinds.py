"""Kinds: the type that a traced number has in the function itself.

It is a float, an int or a bool, of Python or of NumPy, and these do not always compute alike: the
sum of two NumPy bools is a bool, that of two Python bools an integer. A function may also ask for
the type. So every traced number has a kind, which is its class plus its origin.
"""

from __future__ import annotations

import enum
import functools
from typing import Any

import numpy as np

# Classes, in the order in which they are promoted; MIXED may be an int or a float.
BOOL, INT, MIXED, FLOAT = 0, 8, 16, 24
# Origins: a Python number, a NumPy number, an array without dimensions; UNSURE may be any of these,
# EITHER one of the first two.
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
    """Origin of the result of an operation: NumPy if one operand is."""
    if x == y == PYTHON:
        return PYTHON
    if x in (NUMPY, BOXED) or y in (NUMPY, BOXED):
        return NUMPY
    return UNSURE if UNSURE in (x, y) else EITHER


# Kind of a result whose class is that of the promoted operands, for every pair of kinds.
PROMOTED = [
    [max(class_of(x), class_of(y)) + origin_of_result(origin_of(x), origin_of(y))
     for y in KINDS]
    for x in KINDS
]  # fmt: skip


@functools.lru_cache(256)
def _kind_of_subclass(cls: type) -> int | None:
    """Kind of the instances of a subclass of a number type; None if it may compute differently."""
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
    """Kind of an ordinary number; None for anything else, or a type with its own arithmetic."""
    cls = type(value)
    found = OF_TYPE.get(cls)
    if found is None and isinstance(value, (float, int, np.integer)):
        return _kind_of_subclass(cls)  # type: ignore[arg-type]
    return found


def dtype_of(kind: int) -> np.dtype:
    """Type of an array with elements of that kind."""
    return _DTYPES[class_of(kind)]


_DTYPES = {BOOL: np.dtype(bool), INT: np.dtype(np.int64), FLOAT: np.dtype(float)}
