"""Keys under which traces are kept: the same function is traced once (`tether.model`).

The key of a function is made of all that its expressions can depend on: its code, its defaults,
the values in its closure and those of the global names it uses, the same for every function it
reaches, and the shapes of its arguments. A changed number, list or array gives another key.

Of a module, and of the methods of a class, only those count whose names are written somewhere in
the code that is reached: a method that nobody calls may depend on anything.
"""

from __future__ import annotations

import array
import decimal
import enum
import fractions
import functools
import hashlib
import sys
import types
import weakref
from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from tether.trace.private import (
    attributes,
    globals_used,
    is_library,
    modules_imported,
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
        own = reader.read(fun), tuple(reader.read_argument(x) for x in args)
        return n, fills, own, reader.read_by_name()
    except (_TooLarge, RecursionError):
        # wrappers of our own are the same code for all functions
        if code is not None and not (fun.__module__ or "").startswith("tether."):
            _hopeless[code] = True
        return None


def value_key(args: Sequence[Any]) -> Hashable | None:
    """Key of arguments by their values; None if they cannot be compared."""
    try:
        reader = _Reader()
        return reader.read(tuple(args)), reader.read_by_name()
    except (_TooLarge, RecursionError):
        return None


class _Reader:
    """Turns values into something that compares and hashes by content."""

    def __init__(self) -> None:
        self._open: dict[int, int] = {}
        self._kept: list[Any] = []
        self._count = 0
        self._names: dict[str, None] = {}      # written in the code so far, in order
        self._spaces: list[_Namespace] = []    # whose members count if they are asked for
        self._kinds: dict[int, Hashable] = {}  # classes by identity, without what makes objects

    def read(self, value: Any) -> Hashable:
        """Token of a value, without what the code may ask it for by name."""
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
        return self._read(value)

    def read_by_name(self) -> Hashable:
        """Token of what the code asks modules, classes and functions for; it may show more code."""
        tokens = []
        while found := [
            (number, space, name)
            for number, space in enumerate(self._spaces)
            for name in space.wanted(self._names)
        ]:
            for number, space, name in found:
                space.read.add(name)
                tokens.append((number, name, self.read(space.members[name])))
        return tuple(tokens)

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

    def _read(self, value: Any) -> Hashable:
        if isinstance(value, types.FunctionType):
            return self._function(value)
        if isinstance(value, types.MethodType):
            return "method", self.read(value.__func__), self.read(value.__self__)
        if isinstance(value, functools.partial):
            parts = (value.func, value.args, value.keywords)
            return ("partial", *(self.read(part) for part in parts))
        if isinstance(value, types.ModuleType):
            return self._module(value)
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
        return "object", self._kind(type(value)), self.read(state)

    def _function(self, function: types.FunctionType) -> Hashable:
        code = function.__code__
        if is_library(function.__module__):
            return _Same(function)
        self._names.update(_names_of(code))
        variables = function.__globals__
        used = [self.read(variables[k]) for k in globals_used(code) if k in variables]
        used += [self.read(sys.modules[k]) for k in modules_imported(code) if k in sys.modules]
        cells = tuple(map(self._cell, function.__closure__ or ()))
        if function.__dict__:
            self._spaces.append(_Namespace(function.__dict__))
        extra = (function.__defaults__, function.__kwdefaults__)
        return (_Same(code), tuple(used), cells, *(self.read(x) for x in extra))

    def _cell(self, cell: types.CellType) -> Hashable:
        try:
            return self.read(cell.cell_contents)
        except ValueError:
            return "empty"

    def _module(self, module: types.ModuleType) -> Hashable:
        if not is_library(module.__name__):
            self._spaces.append(_Namespace(vars(module), by_written_name=True))
        return _Same(module)

    def _kind(self, cls: type) -> Hashable:
        """Token of a class of which there is an object: how it was made is over."""
        if id(cls) not in self._open and id(cls) not in self._kinds:
            self._kinds[id(cls)] = self._class(cls, _UNUSED_BY_OBJECTS)
        return _Same(cls), self._kinds.get(id(cls))

    def _class(self, cls: type, unused: frozenset[str] = frozenset()) -> Hashable:
        if is_library(cls.__module__):
            return _Same(cls)
        members = []
        for base in cls.__mro__:
            if is_library(base.__module__):
                continue
            methods = {}
            for name, member in vars(base).items():
                inner = getattr(member, "__func__", None) or getattr(member, "fget", None) or member
                by_name = not name.startswith("__") or name in unused
                if isinstance(inner, types.FunctionType) and by_name:
                    methods[name] = inner
                elif isinstance(member, types.FunctionType) or not name.startswith("__"):
                    members.append(self.read(inner))
            self._spaces.append(_Namespace(methods))
        return _Same(cls), tuple(members)

    def _array(self, values: np.ndarray) -> Hashable:
        if values.dtype == object:
            return values.shape, tuple(self.read(x) for x in values.flat)
        content = values.tobytes()
        if len(content) > _LONGEST_BYTES:
            content = hashlib.blake2b(content, digest_size=16).digest()
        return values.dtype.str, values.shape, content


class _Namespace:
    """Members of which only those count that somebody asks for."""

    __slots__ = ("by_written_name", "members", "read")

    def __init__(self, members: Mapping[str, Any], by_written_name: bool = False) -> None:
        self.members, self.by_written_name = members, by_written_name
        self.read: set[str] = set()

    def wanted(self, names: Mapping[str, None]) -> list[str]:
        """Members to read next; all, if the code can ask for them without writing their names."""
        members, read = self.members, self.read
        if not self.by_written_name and not _ASKING.isdisjoint(names):
            return [name for name in members if name not in read]
        return [name for name in names if name in members and name not in read]


# Whoever uses one of these may ask for any member; modules are looked after when tracing.
_ASKING_TEXT = """
    getattr hasattr attrgetter methodcaller __getattribute__ __dict__ vars dir getmembers
    getattr_static type __class__
"""
_ASKING = frozenset(_ASKING_TEXT.split())
# What no expression with an object calls unless it is written; `type` makes objects as well.
_UNUSED_TEXT = """
    __init__ __new__ __post_init__ __init_subclass__ __setattr__ __delattr__ __del__ __repr__
    __str__ __format__ __reduce__ __reduce_ex__ __getstate__ __setstate__ __replace__ __dir__
"""
_UNUSED_BY_OBJECTS = frozenset(_UNUSED_TEXT.split())
# Code of functions that depend on too much, or on what cannot be seen.
_hopeless: weakref.WeakKeyDictionary[types.CodeType, bool] = weakref.WeakKeyDictionary()
_HEAP_TYPE = 1 << 9                # a class made by a class statement
_DESCRIPTORS = (
    types.MemberDescriptorType, types.GetSetDescriptorType, types.WrapperDescriptorType,
    types.MethodDescriptorType, types.ClassMethodDescriptorType, types.MethodWrapperType,
)
_BY_VALUE = frozenset((int, bool, str, bytes, complex, type(None), type(...), range))
_code_names: dict[types.CodeType, dict[str, None]] = {}


def _names_of(code: types.CodeType) -> dict[str, None]:
    names = _code_names.get(code)
    if names is None:
        names = _code_names[code] = dict.fromkeys(names_used(code))
    return names


def _is_plain(cls: type) -> bool:
    """Tell whether all that a class and its bases can hold shows in attributes."""
    return all(
        base is object or (not is_library(base.__module__) and base.__flags__ & _HEAP_TYPE)
        for base in cls.__mro__
    )


__all__ = ["cache_key", "value_key"]
