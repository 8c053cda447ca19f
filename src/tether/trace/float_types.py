"""The types `float` and `numpy.float64` as a traced function sees them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tether.trace.arrays import TracedArray, converted, demoted, has_traced, lifted, plain, promoted
from tether.trace.kinds import BOOL, BOXED, FLOAT, INT, NUMPY, PYTHON, UNCERTAIN, origin_of
from tether.trace.refusal import refuse
from tether.trace.scalar import Scalar, of_kind


class FloatMeta(type):
    """Lets traced numbers pass as floats in ``isinstance``."""

    stands_for: type

    def __instancecheck__(cls, instance: Any) -> bool:
        if type(instance) is Scalar:
            return issubclass(type_of(instance), cls.stands_for)
        return isinstance(instance, cls.stands_for)

    def __subclasscheck__(cls, other: Any) -> bool:
        return issubclass(getattr(other, "stands_for", other), cls.stands_for)

    def __eq__(cls, other: Any) -> bool:
        return other is cls or other is cls.stands_for

    def __hash__(cls) -> int:
        return hash(cls.stands_for)

    __mro__ = property(lambda cls: cls.stands_for.__mro__)  # type: ignore[assignment]
    __bases__ = property(lambda cls: cls.stands_for.__bases__)  # type: ignore[assignment]


class TracedFloat(float, metaclass=FloatMeta):
    """Stands for ``float`` in traced functions."""

    stands_for = float
    dtype = np.dtype(float)

    def __new__(cls, value: Any = 0.0) -> Any:
        """Convert a value; a traced number stays traced."""
        if isinstance(value, TracedArray) and value.size == 1:
            value = value.reshape(-1)[0]
        return of_kind(FLOAT + PYTHON, value) if type(value) is Scalar else float(value)


class TracedFloat64(float, metaclass=FloatMeta):
    """Stands for ``numpy.float64`` in traced functions."""

    stands_for = np.float64
    dtype = np.dtype(float)

    def __new__(cls, value: Any = 0.0) -> Any:
        """Convert a value; a traced number stays traced."""
        if isinstance(value, np.ndarray) and value.ndim == 0:
            value = plain(value)[()]
        if isinstance(value, (TracedArray, list, tuple)) and has_traced(value):
            return converted(lifted(value), FLOAT)
        if type(value) is Scalar:
            return of_kind(FLOAT + NUMPY, value)
        return promoted(np.float64(demoted(value)))


for _shim, _real in ((TracedFloat, float), (TracedFloat64, np.float64)):
    _shim.__name__ = _shim.__qualname__ = _real.__name__
    _shim.__module__ = _real.__module__

TYPE_SHIMS: dict[type, type] = {float: TracedFloat, np.float64: TracedFloat64}
_TYPES = {
    BOOL + PYTHON: bool, INT + PYTHON: int, FLOAT + PYTHON: float,
    BOOL + NUMPY: np.bool_, INT + NUMPY: np.int64, FLOAT + NUMPY: np.float64,
    BOOL + BOXED: np.ndarray, INT + BOXED: np.ndarray, FLOAT + BOXED: np.ndarray,
}  # fmt: skip


def type_of(value: Any) -> type:
    """Type that a value has in the function itself."""
    if type(value) is TracedArray:
        return np.ndarray
    if type(value) is not Scalar:
        return type(value)
    if origin_of(value.kind) in UNCERTAIN:
        refuse("asks for the type of a number that may be of several types")
    return _TYPES[value.kind]
