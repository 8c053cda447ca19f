"""Keys under which traces are kept: the same function is traced once (`tether.plan.model`).

The key of a function is made of all that its expressions can depend on: its code, its defaults,
the values in its closure and those of the global names it uses, the same for every function it
reaches, and the shapes of its arguments. A changed number, list or array gives another key. What
tracing does not understand counts by identity, since a function that uses it is not traced.

Of a module, and of a class, only those members count whose names are written somewhere in the
code that is reached: a method that nobody calls may depend on anything. The private copy that is
traced (`tether.trace.private`) has nothing but what was read here.
"""

from __future__ import annotations

import collections
import enum
import functools
import hashlib
import math
import operator
import sys
import types
import weakref
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from tether.trace.classes import (
    METADATA,
    attributes_of_member,
    own_members,
    why_unknown_enumeration,
)
from tether.trace.code import facts_of
from tether.trace.known import (
    BY_VALUE,
    CACHED,
    DESCRIPTORS,
    FLOATS,
    METACLASSES,
    NUMPY_NUMBERS,
    RATIONAL,
    content,
    dictionary,
    has_registered,
    home,
    inside_errstate,
    is_enumeration,
    is_followed,
    is_holder,
    is_interpolant,
    is_library,
    is_numpy_polynomial,
    is_record,
    is_sparse,
    jitted_function,
    module_of,
    slots,
    why_unknown,
)
from tether.trace.splines import content as content_of_spline

_MOST_PARTS = 5_000
_LONGEST_BYTES = 4096


class TooLarge(Exception):  # noqa: N818
    """What a function depends on is too much to compare."""


class _Same:
    """An object by identity; the reference keeps the identity from being used again."""

    __slots__ = ("thing",)

    def __init__(self, thing: Any) -> None:
        self.thing = thing

    def __hash__(self) -> int:
        return id(self.thing)

    def __eq__(self, other: object) -> bool:
        return type(other) is _Same and self.thing is other.thing


class _Unknown:
    """An object of a kind that tracing does not know, by identity; it is not kept alive."""

    __slots__ = ("number", "thing")

    def __init__(self, thing: Any) -> None:
        self.number = id(thing)
        try:
            self.thing: Callable[[], Any] = weakref.ref(thing)
        except TypeError:
            self.thing = lambda: thing

    def __hash__(self) -> int:
        return self.number

    def __eq__(self, other: object) -> bool:
        if type(other) is not _Unknown or self.number != other.number:
            return False
        thing = self.thing()
        return thing is not None and thing is other.thing()


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
    if code is not None and id(code) in _hopeless:
        return None
    reader = Reader()
    try:
        return n, fills, reader.read_call(fun, args)
    except (TooLarge, RecursionError):
        # wrappers of our own are the same code for all functions
        if isinstance(fun, types.FunctionType) and not (home(fun) or "").startswith("tether."):
            number = id(fun.__code__)
            _hopeless[number] = weakref.ref(fun.__code__, lambda _: _hopeless.pop(number, None))
        return None


def value_key(args: Sequence[Any]) -> Hashable | None:
    """Key of arguments by their values; None if they cannot be compared."""
    try:
        reader = Reader()
        return reader.read(tuple(args)), reader.read_by_name()
    except (TooLarge, RecursionError):
        return None


class Reader:
    """Turns values into something that compares and hashes by content.

    Attributes
    ----------
    names : dict
        Names written in the code that was reached, in order.
    asks : bool
        That code may ask for members whose names are not written in it.
    """

    def __init__(self) -> None:
        self.names: dict[str, None] = {}
        self.asks = False
        self._makes = False                    # objects of the classes of others
        self._open: dict[int, int] = {}
        self._given: dict[int, int] = {}       # arguments that hold floats
        self._kept: list[Any] = []
        self._count = 0
        self._spaces: list[_Namespace] = []    # whose members count if they are asked for
        self._classes: dict[int, _Namespace] = {}

    def read_call(self, fun: Callable[..., Any], args: Sequence[Any]) -> Hashable:
        """Token of a function with its further arguments, floats among them by their place."""
        own = self.read(fun), tuple([self.read_argument(x) for x in args])
        return own, self.read_by_name()

    def has_read(self, value: Any) -> bool:
        """Tell whether a value that is more than a number or a text is part of the key."""
        return id(value) in self._open

    def members_read(self, cls: type) -> set[str] | None:
        """Names of the members of a class that are part of the key; None for unknown classes."""
        space = self._classes.get(id(cls))
        return None if space is None else space.read

    def read(self, value: Any) -> Hashable:
        """Token of a value, without what the code may ask it for by name."""
        kind = type(value)
        if kind is float:
            return (float, value) if value and value == value else (float, repr(value))
        if kind in BY_VALUE:
            return kind, value
        self._count += 1
        if self._count > _MOST_PARTS:
            raise TooLarge
        number = id(value)
        if number in self._open:
            return "again", self._open[number]
        self._open[number] = len(self._open)
        self._kept.append(value)  # a new object must not get the identity of one seen before
        read = _READERS.get(kind)
        return self._other(value) if read is None else read(self, value)

    def read_by_name(self) -> Hashable:
        """Token of what the code asks modules, classes and functions for; it may show more code."""
        if not self._spaces:
            return ()
        tokens = []
        while found := [
            (number, space, name)
            for number, space in enumerate(self._spaces)
            for name in space.wanted(self.names, self.asks, self._makes)
        ]:
            for number, space, name in found:
                space.read.add(name)
                tokens.append((number, name, self.read(space.members[name])))
        return tuple(tokens)

    def read_argument(self, value: Any) -> Hashable:
        """Token of an argument: floats count by their place only."""
        kind: Any = type(value)
        if kind in FLOATS:
            return kind
        is_array = kind is np.ndarray and value.dtype == np.float64
        if not (is_array or kind is list or kind is tuple or kind is dict or is_record(kind)):
            return self.read(value)
        number = id(value)
        if number in self._given:
            return "again", self._given[number]
        self._given[number] = len(self._given)
        self._open.setdefault(number, len(self._open))
        self._kept.append(value)
        if is_array:
            return float, value.shape
        if kind is dict:
            return dict, tuple([(self.read(k), self.read_argument(v)) for k, v in value.items()])
        token = kind if kind is list or kind is tuple else self._class_of_objects(kind)
        return token, tuple(map(self.read_argument, value))

    # --- functions and modules ------------------------------------------------------------

    def _function(self, function: types.FunctionType) -> Hashable:
        code, variables = function.__code__, function.__globals__
        if is_library(home(function)):
            inner = inside_errstate(function)
            return _Same(function) if inner is None else ("in errstate", self.read(inner))
        facts = facts_of(code)
        self.names.update(facts.names)
        self.asks = self.asks or facts.asks
        self._makes = self._makes or facts.makes
        used = [self.read(variables[k]) for k in facts.globals_read if k in variables]
        if facts.imports:
            used += [self.read(sys.modules[k]) for k in facts.imports if k in sys.modules]
        cells = function.__closure__
        around = tuple(map(self._cell, code.co_freevars, cells)) if cells else ()
        if function.__dict__:
            self._spaces.append(_Namespace(function.__dict__))
        extra = self.read(function.__defaults__), self.read(function.__kwdefaults__)
        return (_Same(code), tuple(used), around, *extra)

    def _cell(self, name: str, cell: types.CellType) -> Hashable:
        try:
            value = cell.cell_contents
        except ValueError:
            return "empty"
        if name == "__class__" and type(value) in METACLASSES:
            return self._class_of_objects(value)
        return self.read(value)

    def _method(self, method: types.MethodType) -> Hashable:
        return "method", self.read(method.__func__), self.read(method.__self__)

    def _partial(self, value: functools.partial) -> Hashable:
        parts = (value.func, value.args, value.keywords, value.__dict__)
        return ("partial", *(self.read(part) for part in parts))

    def _builtin(self, function: types.BuiltinFunctionType) -> Hashable:
        owner = function.__self__
        if owner is None or issubclass(type(owner), types.ModuleType):
            self.asks = self.asks or id(function) in _ASKING
            return _Same(function)
        return "method", function.__name__, self.read(owner)

    def _cached(self, function: Any) -> Hashable:
        return "cached", self.read(function.__wrapped__)

    def _module(self, module: types.ModuleType) -> Hashable:
        top = module.__name__.partition(".")[0]
        if module is not math and top not in ("numpy", "numba"):
            self._spaces.append(_Namespace(vars(module), by_written_name=True))
        return _Same(module)

    # --- containers and numbers -----------------------------------------------------------

    def _sequence(self, value: Any) -> Hashable:
        return type(value), tuple([self.read(part) for part in value])

    def _mapping(self, value: Any) -> Hashable:
        return type(value), tuple([(self.read(k), self.read(v)) for k, v in value.items()])

    def _holder(self, value: Any) -> Hashable:
        return type(value), tuple([self.read(part) for part in content(value)])

    def _namespace(self, value: Any) -> Hashable:
        return type(value), self.read(dictionary(value))

    def _slice(self, value: slice) -> Hashable:
        return slice, self.read(value.start), self.read(value.stop), self.read(value.step)

    def _array(self, values: np.ndarray) -> Hashable:
        if values.dtype.hasobject:
            return str(values.dtype), values.shape, tuple(self.read(x) for x in values.flat)
        found = values.tobytes()
        if len(found) > _LONGEST_BYTES:
            found = hashlib.blake2b(found, digest_size=16).digest()
        return values.dtype.str, values.shape, found

    # --- classes and objects --------------------------------------------------------------

    def _property(self, value: property) -> Hashable:
        return ("property", *(self.read(part) for part in (value.fget, value.fset, value.fdel)))

    def _wrapper(self, value: Any) -> Hashable:
        return type(value), self.read(value.__func__)

    def _cached_property(self, value: functools.cached_property) -> Hashable:
        return type(value), self.read(value.func)

    def _class(self, cls: type, complete: bool = True) -> Hashable:
        if is_library(cls.__module__) or why_unknown(cls):
            self.asks = self.asks or id(cls) in _ASKING
            self._makes = self._makes or cls is type
            return _Same(cls)
        if type(cls) is not type and has_registered(cls):
            return _Unknown(cls)
        for base in cls.__mro__:
            if is_followed(base):
                space = self._classes.get(id(base))
                if space is None:
                    space = _Members(vars(base))
                    self._classes[id(base)] = space
                    self._spaces.append(space)
                    self._kept.append(base)
                space.complete |= complete
        return cls.__mro__

    def _class_of_objects(self, cls: type) -> Hashable:
        """Token of a class of which there is an object: how it was made is over."""
        return self._class(cls, complete=False)

    def _enumeration(self, cls: Any) -> Hashable:
        if is_library(cls.__module__) or why_unknown_enumeration(cls):
            return _Same(cls)
        space = _Members(own_members(cls), complete=True)
        self._classes[id(cls)] = space
        self._spaces.append(space)
        bases = [self.read(base) for base in cls.__bases__ if not is_library(base.__module__)]
        members = [
            (name, self.read(member._value_), self.read(attributes_of_member(member)))
            for name, member in cls._member_map_.items()
        ]
        return _Same(cls), tuple(bases), tuple(members)

    def _enumerated(self, member: enum.Enum) -> Hashable:
        token = self.read(type(member))
        return token, member._name_, self.read(member._value_)

    def _other(self, value: Any) -> Hashable:
        """Token of what is not of a listed type; by identity where tracing does not know it."""
        kind = type(value)
        if is_library(module_of(kind)):
            return self._of_library(value)
        if is_enumeration(kind):
            return self._enumerated(value)
        if why_unknown(kind):
            return _Unknown(value)
        parts = [slots(value), dictionary(value)]
        own = tuple([self.read(part) for part in content(value)])
        return "object", self._class_of_objects(kind), tuple(map(self._attributes, parts)), own

    def _attributes(self, values: dict[str, Any]) -> Hashable:
        return tuple([(name, self.read(value)) for name, value in values.items()])

    def _of_library(self, value: Any) -> Hashable:
        kind = type(value)
        if kind in NUMPY_NUMBERS:
            return kind, value.tobytes()
        if kind in RATIONAL:
            return kind, value
        if (function := jitted_function(value)) is not None:
            return "jitted", self.read(function)
        if is_interpolant(value):
            numbers = content_of_spline(value)
            if numbers is not None:
                return tuple([self.read(part) for part in numbers])
            return kind, self._attributes(dictionary(value))
        if is_sparse(value) or is_numpy_polynomial(value) or is_holder(value):
            return kind, self._attributes(dictionary(value))
        if kind is np.vectorize:
            parts = value.pyfunc, value.otypes, value.excluded, value.signature, value.cache
            return (kind, *(self.read(part) for part in parts))
        if kind is types.MethodWrapperType:
            return "method", value.__name__, self.read(value.__self__)
        return _Unknown(value)


_READERS: dict[type, Callable[[Reader, Any], Hashable]] = {
    types.FunctionType: Reader._function,
    types.MethodType: Reader._method,
    functools.partial: Reader._partial,
    types.BuiltinFunctionType: Reader._builtin,
    CACHED: Reader._cached,
    types.ModuleType: Reader._module,
    list: Reader._sequence,
    tuple: Reader._sequence,
    set: Reader._sequence,                 # equal sets may have another order
    frozenset: Reader._sequence,
    dict: Reader._mapping,
    collections.OrderedDict: Reader._mapping,
    collections.Counter: Reader._mapping,
    collections.defaultdict: Reader._holder,
    collections.deque: Reader._holder,
    types.SimpleNamespace: Reader._namespace,
    slice: Reader._slice,
    np.ndarray: Reader._array,
    property: Reader._property,
    classmethod: Reader._wrapper,
    staticmethod: Reader._wrapper,
    functools.cached_property: Reader._cached_property,
    enum.EnumType: Reader._enumeration,
    np.ufunc: lambda reader, value: _Same(value),
    **dict.fromkeys(METACLASSES, Reader._class),
    **dict.fromkeys(DESCRIPTORS, lambda reader, value: _Same(value)),
}


class _Namespace:
    """Members of which only those count that somebody asks for."""

    __slots__ = ("by_written_name", "complete", "members", "read")

    def __init__(self, members: Mapping[str, Any], by_written_name: bool = False) -> None:
        self.members, self.by_written_name = members, by_written_name
        self.read: set[str] = set()
        self.complete = True

    def wanted(self, names: Mapping[str, None], asks: bool, makes: bool) -> list[str]:
        """Members to read next; all, if the code can ask for them without writing their names."""
        members, read = self.members, self.read
        if asks and not self.by_written_name:
            return [name for name in members if name not in read]
        return [name for name in names if name in members and name not in read]


class _Members(_Namespace):
    """Members of a class; those that Python itself calls count always."""

    __slots__ = ()

    def __init__(self, members: Mapping[str, Any], complete: bool = False) -> None:
        super().__init__(members)
        self.complete = complete

    def wanted(self, names: Mapping[str, None], asks: bool, makes: bool) -> list[str]:
        """Members to read next."""
        read, complete = self.read, self.complete or makes
        return [
            name for name in self.members
            if name not in read and (
                name in names or asks
                or (name[:2] == "__" and (complete or name not in _UNUSED_BY_OBJECTS))
                or name in _OF_NAMED_TUPLES
            ) and name not in METADATA
        ]  # fmt: skip


# By whatever name they are known, these may ask for any member.
_ASKING = frozenset(
    map(id, (getattr, hasattr, vars, dir, operator.attrgetter, operator.methodcaller))
)
# What no expression with an object calls unless it is written; `type` makes objects as well.
_UNUSED_TEXT = """
    __init__ __new__ __post_init__ __init_subclass__ __setattr__ __delattr__ __del__ __repr__
    __str__ __format__ __reduce__ __reduce_ex__ __getstate__ __setstate__ __replace__ __dir__
    __set_name__ __class_getitem__ __annotations__ __getnewargs__ __copy__ __deepcopy__ __sizeof__
"""
_UNUSED_BY_OBJECTS = frozenset(_UNUSED_TEXT.split())
_OF_NAMED_TUPLES = frozenset(("_make", "_replace", "_asdict"))      # which call one another
# Code of functions that depend on too much; an entry lives as long as the code.
_hopeless: dict[int, weakref.ref[types.CodeType]] = {}

__all__ = ["Reader", "TooLarge", "cache_key", "value_key"]
