"""Find out whether a traced function has written to something."""

from __future__ import annotations

import collections
import operator
import types
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tether.trace.known import (
    IMMUTABLE,
    content,
    dictionary,
    is_library,
    layout,
    module_of,
    slots,
    why_unknown,
)
from tether.trace.scalar import Scalar

_SEQUENCES = (list, set, collections.deque)
_MAPPINGS = (dict, collections.OrderedDict, collections.defaultdict, collections.Counter)


class Watch:
    """Objects that must not change, and their descriptions for messages."""

    def __init__(self) -> None:
        self._items: list[tuple[Callable[[], list[Any]], list[Any], str]] = []

    def add(self, read: Callable[[], list[Any]], what: str) -> None:
        """Watch the objects that `read` returns, by their identity."""
        self._items.append((read, read(), what))

    def changed(self) -> str | None:
        """Describe the first object that has changed; None if there is none."""
        for read, before, what in self._items:
            if not _same(read(), before):
                return what
        return None

    def mapping(self, values: dict, what: str) -> None:
        """Watch a dictionary, including the order of its items."""
        self.add(lambda: flat(values), what)

    def elements(self, values: Iterable[Any], what: str) -> None:
        """Watch a sequence or a set."""
        self.add(lambda: list(values), what)

    def array(self, values: np.ndarray, what: str) -> None:
        """Watch an array."""
        objects = np.ndarray.view(values, np.ndarray)
        if objects.dtype == object:
            self.add(lambda: [*objects.ravel().tolist(), repr(values.shape).encode()], what)
        else:
            self.add(lambda: [objects.tobytes(), repr(values.shape).encode()], what)

    def deep(self, value: Any, what: str) -> bool:
        """Watch a value and everything it holds; tell whether all of it is of known types."""
        kind = type(value)
        if kind in IMMUTABLE or kind is Scalar:
            return True
        if issubclass(kind, np.ndarray):
            self.array(value, what)
            return value.dtype != object or all(
                self.deep(x, what) for x in value.view(np.ndarray).flat
            )
        if kind in (tuple, frozenset):
            return all(self.deep(x, what) for x in value)
        if kind in _SEQUENCES:
            self.elements(value, what)
            return all(self.deep(x, what) for x in value)
        if kind in _MAPPINGS:
            self.mapping(value, what)
            return all(self.deep(x, what) for x in flat(value))
        if kind is types.FunctionType:
            self.function(value, what)
            return all(self.deep(x, what) for x in _held(value))
        if issubclass(kind, type) or is_library(module_of(kind)) or why_unknown(kind):
            return False
        self.add(lambda: held_by(value), what)
        return all(self.deep(x, what) for x in held_by(value)[1:])

    def function(self, function: types.FunctionType, what: str) -> None:
        """Watch a function: its attributes, defaults and closure."""
        self.add(lambda: [function.__code__, *_held(function)], what)


def held_by(value: Any) -> list[Any]:
    """Class of an object and everything the object holds."""
    own = content(value) if layout(type(value)) not in (float, int) else []
    return [type(value), *flat(slots(value)), *flat(dictionary(value)), *own]


def parts_of(value: Any) -> list[Any]:
    """List what an object of a known type holds."""
    kind = type(value)
    if kind in (tuple, list, set):
        return list(value)
    if kind is dict:
        return flat(value)
    if kind is types.MethodType:
        return [value.__func__, value.__self__]
    return _held(value) if kind is types.FunctionType else held_by(value)[1:]


def _held(function: types.FunctionType) -> list[Any]:
    """Everything a function holds, without its code."""
    parts = [function.__defaults__, function.__kwdefaults__]
    for cell in function.__closure__ or ():
        try:
            parts.append(cell.cell_contents)
        except ValueError:
            parts.append(None)
    return [*parts, *flat(vars(function))]


def flat(values: dict) -> list[Any]:
    """Keys and values of a dictionary in one list."""
    return [x for pair in dict.items(values) for x in pair]


def _same(now: list[Any], before: list[Any]) -> bool:
    """Compare by identity, but bytes (the content of arrays) by value."""
    if len(now) == len(before) and all(map(operator.is_, now, before)):
        return True
    return len(now) == len(before) and all(
        x is y or (type(x) is bytes and type(y) is bytes and x == y)
        for x, y in zip(now, before, strict=True)
    )
