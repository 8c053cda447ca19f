"""Series and data frames of pandas in which a function looks up numbers.

They are read like other containers: labels and numbers by value, and floats may become inputs. In a
traced function a stand-in returns numbers, arrays and parts of the frame, and refuses everything
else. pandas itself does the look-up: in a copy of the frame, and in a frame with the same labels
that holds the places of the numbers.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tether.trace.arrays import TracedArray, promoted
from tether.trace.kinds import OF_TYPE
from tether.trace.refusal import refuse
from tether.trace.scalar import Scalar, of_kind
from tether.trace.standins import OPERATIONS

__all__ = ["Frame", "is_frame", "labels_and_values"]

_MOST_VALUES = 5_000
_LABELS = frozenset((str, int, float, bool, type(None), np.str_))
_VALUES = _LABELS | {np.float64, np.int64, np.bool_}
_KEYS = _LABELS | {np.int64}
_SIZES = frozenset(("shape", "size", "ndim", "empty"))
_INDEXERS = frozenset(("loc", "iloc", "at", "iat"))


def is_frame(value: Any) -> bool:
    """Tell whether a value is a pandas Series or DataFrame, and not of a derived class.

    This does not load pandas.
    """
    pandas = sys.modules.get("pandas")
    known = getattr(pandas, "Series", None), getattr(pandas, "DataFrame", None)
    return pandas is not None and type(value) in known


def labels_and_values(value: Any) -> tuple[tuple, list[Any]] | None:
    """Return the labels of a frame and its values by columns: all that a function can find there.

    None if there are too many, or if some are not plain numbers or texts.
    """
    if math.prod(value.shape) > _MOST_VALUES:
        return None
    axes = [
        (type(axis).__name__, str(axis.dtype), tuple(axis.names), tuple(axis.tolist()))
        for axis in value.axes
    ]
    columns = [value] if value.ndim == 1 else [value.iloc[:, j] for j in range(value.shape[1])]
    values: list[Any] = []
    for column in columns:
        is_float = column.dtype == np.float64
        values.extend(column.to_numpy() if is_float else column.tolist())
    if not all(map(_is_label, (label for axis in axes for label in (*axis[2], *axis[3])))):
        return None
    if not _VALUES.issuperset(map(type, values)):
        return None
    return (*axes, *(str(column.dtype) for column in columns)), values


def _is_label(label: Any) -> bool:
    return type(label) in _LABELS or (type(label) is tuple and all(map(_is_label, label)))


class Frame:
    """Stands for a Series or a DataFrame.

    Parameters
    ----------
    thing, places : Series or DataFrame
        A copy of the frame, and a frame with the same labels that holds the places of its values.
    values : list
        The values by columns; traced numbers where these are inputs.
    """

    __slots__ = ("_places", "_thing", "_values")
    __hash__ = None  # type: ignore[assignment]

    _thing: Any
    _places: Any
    _values: list[Any]

    def __init__(self, thing: Any, places: Any, values: list[Any]) -> None:
        for name, value in (("_thing", thing), ("_places", places), ("_values", values)):
            object.__setattr__(self, name, value)

    @classmethod
    def of(cls, thing: Any, values: list[Any]) -> Frame:
        """Make the stand-in for a frame, with these values in place of its own."""
        places = np.arange(len(values)).reshape(thing.shape[::-1]).T
        options = {"columns": thing.columns} if thing.ndim == 2 else {}
        return cls(thing.copy(), type(thing)(places, index=thing.index, **options), values)

    def __getitem__(self, key: Any) -> Any:
        _check_key(key)
        return self._ask(lambda frame: frame[key])

    def __getattr__(self, name: str) -> Any:
        thing = self._thing
        if name in _SIZES:
            return getattr(thing, name)
        if name in _INDEXERS:
            return _Indexer(self, name)
        if name == "values":
            return self._ask(lambda frame: frame.values)
        if name in ("to_numpy", "to_dict"):
            return lambda: self._ask(lambda frame: getattr(frame, name)())
        if name == "get":
            return self._get
        if name == "items" and thing.ndim == 1:
            return lambda: zip(thing.index.tolist(), self, strict=True)
        if name in thing.axes[-1] and not hasattr(type(thing), name):
            return self._ask(lambda frame: getattr(frame, name))
        refuse(f"asks a {type(thing).__name__} for {name}, which is not known to tracing")

    def __len__(self) -> int:
        return len(self._thing)

    def __contains__(self, key: Any) -> bool:
        _check_key(key)
        return key in self._thing

    def __iter__(self) -> Iterator[Any]:
        if self._thing.ndim > 1:
            return iter(self._thing)
        return map(self._given, list(self._thing), list(self._places))

    def _get(self, key: Any, default: Any = None) -> Any:
        return self[key] if self.__contains__(key) else default

    def _ask(self, question: Callable[[Any], Any]) -> Any:
        return self._given(question(self._thing), question(self._places))

    def _given(self, found: Any, places: Any) -> Any:
        """Return the stand-in for a result of a look-up, given the same look-up of the places."""
        if is_frame(found):
            return Frame(found, places, self._values)
        if isinstance(found, np.ndarray):
            return self._array(found, places)
        if type(found) is dict:
            return {key: self._given(value, places[key]) for key, value in found.items()}
        value = self._values[int(places)]
        if type(value) is not Scalar:
            return found
        if type(found) not in (float, np.float64):
            refuse(f"makes a {type(found).__name__} of a traced number")
        return of_kind(OF_TYPE[type(found)], value)

    def _array(self, found: np.ndarray, places: np.ndarray) -> np.ndarray:
        values = [self._values[int(place)] for place in places.ravel()]
        if not any(type(value) is Scalar for value in values):
            result = np.array(found)
        elif found.dtype != np.float64:
            refuse(f"makes an array of {found.dtype} of traced numbers")
        else:
            result = np.empty(len(values), object)
            result[:] = [value if type(value) is Scalar else float(value) for value in values]
            result = result.reshape(found.shape).view(TracedArray)
        result = promoted(result)
        result.flags.writeable = False
        return result


class _Indexer:
    """Stands for `loc`, `iloc`, `at` and `iat`."""

    __slots__ = ("_frame", "_name")

    def __init__(self, frame: Frame, name: str) -> None:
        self._frame, self._name = frame, name

    def __getitem__(self, key: Any) -> Any:
        _check_key(key)
        return self._frame._ask(lambda frame: getattr(frame, self._name)[key])

    def __setitem__(self, key: Any, value: Any) -> None:
        refuse(f"writes to a {type(self._frame._thing).__name__}")


def _check_key(key: Any) -> None:
    if type(key) is slice:
        parts = [key.start, key.stop, key.step]
    else:
        parts = list(key) if type(key) in (tuple, list) else [key]
    for part in parts:
        if type(part) in (slice, list):
            _check_key(part)
        elif type(part) not in _KEYS:
            refuse(f"looks something up in a frame by a {type(part).__name__}")


def _refuse(self: Frame, *args: Any, **options: Any) -> Any:
    refuse(f"does more with a {type(self._thing).__name__} than look numbers up")


for _name in (*OPERATIONS, "setattr", "delattr"):
    if f"__{_name}__" not in (*vars(Frame), "__getattribute__"):
        setattr(Frame, f"__{_name}__", _refuse)
