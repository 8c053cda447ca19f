"""Keys under which traces are kept: the same function is traced once (`tether.model`).

The key of a function is made of all that its expressions can depend on: its code, its defaults,
the values in its closure and those of the global names it uses, the same for every function it
reaches, and the shapes of its arguments. A changed number, list or array gives another key.
"""

from __future__ import annotations

import array
import decimal
import enum
import fractions
import functools
import hashlib
import types
import weakref
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from tether.trace.private import (
    attributes,
    globals_used,
    is_library,
    names_used,
    plain_function,
)
from tether.trace.splines import content

_MOST_PARTS = 5_000
_LONGEST_BYTES = 4096


class _TooLarge(Exception):  # noqa: N818
    """What a function depends on is too much to compare."""


class _Same:
    """An object by identity; the reference keeps the identity from being used again."""

    __slots__ = ("thing",)

    def __init__(self, thing: Any) -> None:
        self.thing = thing

    def __hash__(self) -> int:
        return id(self.thing)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.thing is other.thing


def cache_key(
    fun: Callable[..., Any], n: int, args: Sequence[Any] = (), fills: bool = False
) -> Hashable | None:
    """Key under which the trace of a function can be kept; None if it cannot.

    Examples
    --------
    >>> from tether.trace import cache_key
    >>> def make(k):
    ...     return lambda t, y, yp: [yp[0] + k * y[0]]
    >>> cache_key(make(2.0), 1) == cache_key(make(2.0), 1)
    True
    >>> cache_key(make(2.0), 1) == cache_key(make(3.0), 1)
    False
    """
    code = getattr(fun, "__code__", None)
    if code in _hopeless:
        return None
    reader = _Reader()
    try:
        return n, fills, reader.read(fun), tuple(reader.read_argument(x) for x in args)
    except (_TooLarge, RecursionError):
        if code is not None:
            _hopeless[code] = True
        return None


def value_key(args: Sequence[Any]) -> Hashable | None:
    """Key of arguments by their values; None if they cannot be compared."""
    try:
        return _Reader().read(tuple(args))
    except (_TooLarge, RecursionError):
        return None


class _Reader:
    """Turns values into something that compares and hashes by content."""

    def __init__(self) -> None:
        self._open: dict[int, int] = {}
        self._kept: list[Any] = []
        self._count = 0

    def read(self, value: Any, names: Sequence[str] = ()) -> Hashable:
        """Token of a value; `names` are the attributes that may be asked of a module."""
        kind = type(value)
        if kind is float:
            return (float, value) if value and value == value else (float, repr(value))
        if kind in _BY_VALUE:
            return kind, value
        self._count += 1
        if self._count > _MOST_PARTS:
            raise _TooLarge
        if id(value) in self._open:
            return "again", self._open[id(value)]
        self._open[id(value)] = len(self._open)
        self._kept.append(value)  # a new object must not get the identity of one seen before
        return self._read(value, names)

    def read_argument(self, value: Any) -> Hashable:
        """Token of an argument: floats count by their place only."""
        if isinstance(value, (float, np.floating)):
            return float
        if isinstance(value, np.ndarray) and value.dtype == np.float64:
            return float, value.shape
        if isinstance(value, (list, tuple)):
            return type(value), tuple(map(self.read_argument, value))
        if type(value) is dict:
            return dict, tuple((self.read(k), self.read_argument(v)) for k, v in value.items())
        return self.read(value)

    def _read(self, value: Any, names: Sequence[str]) -> Hashable:
        if isinstance(value, types.FunctionType):
            return self._function(value)
        if isinstance(value, types.MethodType):
            return "method", self.read(value.__func__), self.read(value.__self__)
        if isinstance(value, functools.partial):
            parts = (value.func, value.args, value.keywords)
            return ("partial", *(self.read(part) for part in parts))
        if isinstance(value, types.ModuleType):
            return self._module(value, names)
        if isinstance(value, np.ndarray):
            return self._array(value)
        if isinstance(value, (np.generic, array.array)):
            return type(value), value.tobytes()
        if isinstance(value, bytearray):
            return bytearray, bytes(value)
        if isinstance(value, (list, tuple, deque)):
            own = self.read(attributes(value)) if type(value) not in (list, tuple, deque) else None
            return type(value), tuple(self.read(part) for part in value), own
        if isinstance(value, (set, frozenset)):
            return type(value), frozenset(self.read(part) for part in value)
        if isinstance(value, dict):
            return type(value), tuple((self.read(k), self.read(v)) for k, v in value.items())
        if isinstance(value, type):
            return self._class(value)
        if isinstance(value, types.BuiltinFunctionType):
            owner = value.__self__
            if owner is None or isinstance(owner, types.ModuleType):
                return _Same(value)
            return "method", value.__name__, self.read(owner)
        if isinstance(value, (np.ufunc, np.dtype, enum.Enum, *_DESCRIPTORS)):
            return _Same(value)
        if isinstance(value, (fractions.Fraction, decimal.Decimal)):
            return type(value), value
        if (numbers := content(value)) is not None:
            return tuple(self.read(part) for part in numbers)
        inner = plain_function(value)
        if callable(inner):
            return self.read(inner)
        state = attributes(value)
        if not state and not _is_plain(type(value)):
            raise _TooLarge            # it may have a state that nothing shows
        return "object", self.read(type(value)), self.read(state)

    def _function(self, function: types.FunctionType) -> Hashable:
        code = function.__code__
        if is_library(function.__module__):
            return _Same(function)
        names = _names_of(code)
        variables = function.__globals__
        used = tuple(
            self.read(variables[k], names) for k in globals_used(code) if k in variables
        )
        cells = tuple(map(self._cell, function.__closure__ or ()))
        extra = (function.__defaults__, function.__kwdefaults__, function.__dict__ or None)
        return (_Same(code), used, cells, *(self.read(x) for x in extra))

    def _cell(self, cell: types.CellType) -> Hashable:
        try:
            return self.read(cell.cell_contents)
        except ValueError:
            return "empty"

    def _module(self, module: types.ModuleType, names: Sequence[str]) -> Hashable:
        if is_library(module.__name__):
            return _Same(module)
        members = vars(module)
        return _Same(module), tuple(self.read(members[k], names) for k in names if k in members)

    def _class(self, cls: type) -> Hashable:
        if is_library(cls.__module__):
            return _Same(cls)
        members = [
            self.read(getattr(member, "__func__", None) or getattr(member, "fget", None) or member)
            for base in cls.__mro__
            if not is_library(base.__module__)
            for name, member in vars(base).items()
            if not (name.startswith("__") and not isinstance(member, types.FunctionType))
        ]
        return _Same(cls), tuple(members)

    def _array(self, values: np.ndarray) -> Hashable:
        if values.dtype == object:
            return values.shape, tuple(self.read(x) for x in values.flat)
        content = values.tobytes()
        if len(content) > _LONGEST_BYTES:
            content = hashlib.blake2b(content, digest_size=16).digest()
        return values.dtype.str, values.shape, content


# Code of functions that depend on too much, or on what cannot be seen.
_hopeless: weakref.WeakKeyDictionary[types.CodeType, bool] = weakref.WeakKeyDictionary()
_HEAP_TYPE = 1 << 9                # a class made by a class statement
_DESCRIPTORS = (
    types.MemberDescriptorType, types.GetSetDescriptorType, types.WrapperDescriptorType,
    types.MethodDescriptorType, types.ClassMethodDescriptorType, types.MethodWrapperType,
)
_BY_VALUE = frozenset((int, bool, str, bytes, complex, type(None), type(...), range))
_code_names: dict[types.CodeType, tuple[str, ...]] = {}


def _names_of(code: types.CodeType) -> tuple[str, ...]:
    names = _code_names.get(code)
    if names is None:
        names = _code_names[code] = tuple(dict.fromkeys(names_used(code)))
    return names


def _is_plain(cls: type) -> bool:
    """Tell whether all that a class and its bases can hold shows in attributes."""
    return all(
        base is object or (not is_library(base.__module__) and base.__flags__ & _HEAP_TYPE)
        for base in cls.__mro__
    )


__all__ = ["cache_key", "value_key"]
