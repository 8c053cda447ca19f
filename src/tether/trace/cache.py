"""Read everything a function depends on, so that it is traced only once.

That is everything its expressions can depend on: its code, its defaults, the values in its closure
and of the global names it uses, the same for every function it reaches, and the shapes of its
arguments. Objects that tracing does not understand are compared by identity, since a function that
uses one is not traced. `tether.trace.reading` makes a key from the result.

Of modules, classes and objects only those members count whose names are written somewhere in the
code that is reached: a method that is never called may depend on anything, and an attribute may be
the log of a controller. The private copy that is traced (`tether.trace.private`) contains only what
was read here.
"""

from __future__ import annotations

import collections
import copy
import dataclasses
import enum
import functools
import hashlib
import inspect
import math
import operator
import sys
import types
import weakref
from array import array
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from tether.trace.classes import (
    attributes_of_member,
    own_members,
    why_unknown_enumeration,
)
from tether.trace.code import facts_of, line_of_name
from tether.trace.frames import is_frame, labels_and_values
from tether.trace.guards import numpy_raises
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
    layout,
    module_of,
    slots,
    why_unknown,
)
from tether.trace.members import Attributes, Members, Namespace
from tether.trace.splines import content as content_of_spline

# Most parts that are read, and functions among them. A user has some dozens of functions; objects
# of large packages lead to thousands, whose code would be read in every call of the solver.
_MOST_PARTS = 100_000
_MOST_FUNCTIONS = 1000
_LONGEST_BYTES = 4096
_HOLDING_NUMBERS = frozenset((list, tuple, dict, np.ndarray))


class TooLarge(Exception):  # noqa: N818
    """A function depends on more than can be compared.

    Attributes
    ----------
    name : str
        Name of the variable or attribute that holds too much; empty if it is more than one.
    value : object
        The value of that variable or attribute.
    """

    name = ""
    value: object = None


def _same(thing: Any) -> Hashable:
    """Token of an object by identity; it holds a reference, so that the id is not used again.

    Bound methods compare and hash this way, and faster than a class written in Python would.
    """
    return types.MethodType(id, thing)


class _Unknown:
    """Token, by identity, of an object of unknown type, which is not kept alive."""

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


class Reader:
    """Turns values into tokens that compare and hash by content.

    Floats that the private copy can replace by symbols are left out of the tokens.

    Attributes
    ----------
    names : dict
        Names written in the code that was reached, in order.
    asks : bool
        Whether that code may ask for members whose names are not written in it.
    floats : array of float
        The floats left out, in the order in which they were read.
    groups : list of int
        Where in `floats` those of another object begin.
    """

    asks = False
    _by_value = False                          # whether floats count by value at present
    _makes = False                             # whether the code may make objects by `type(x)`
    _count = 0                                 # number of parts read
    _functions = 0                             # ... and of functions of the user among them
    _holder_of_last: Any = None                # holder of the last float that was a variable

    def __init__(self) -> None:
        self.names: dict[str, None] = {}
        self.floats = array("d")
        self.groups: list[int] = []
        self._variables: dict[tuple[int, str], int] = {}   # floats that several functions may share
        self._arguments: set[int] = set()      # containers of arguments, whose floats are inputs
        self._open: dict[int, int] = {}
        self._given: dict[int, int] = {}       # arguments that hold floats
        self._kept: list[Any] = []
        self._spaces: list[Namespace] = []     # their members count if the code names them
        self._classes: dict[int, Namespace] = {}
        self._objects: dict[int, Namespace] = {}

    def read_call(self, fun: Callable[..., Any], args: Sequence[Any]) -> Hashable:
        """Token of a function and its arguments, in which floats count by their place only."""
        for value in args:
            self._note_argument(value)
        own = self.read(fun), tuple(map(self.read_argument, args))
        return own, self.read_by_name()

    def _note_argument(self, value: Any) -> None:
        kind = type(value)
        if kind in FLOATS or kind in BY_VALUE or id(value) in self._arguments:
            return
        if kind in (list, tuple, dict, np.ndarray) or is_record(kind):
            self._arguments.add(id(value))
            if kind is not np.ndarray:
                for part in value.values() if kind is dict else value:
                    self._note_argument(part)

    def has_read(self, value: Any) -> bool:
        """Tell whether a value other than a number or a text is part of the key."""
        return id(value) in self._open

    def place_of_name(self, name: str) -> tuple[types.CodeType, int] | None:
        """Code and line that first mention a name, in the functions that were read."""
        functions = (x for x in self._kept if type(x) is types.FunctionType)
        codes = [x.__code__ for x in functions if not is_library(home(x))]
        places = ((code, line_of_name(code, name)) for code in codes)
        return next(((code, line) for code, line in places if line), None)

    def shares_with(self, other: Any) -> bool:
        """Tell whether something mutable that was read here can be reached from another object."""
        reader = Reader()
        reader.asks = True
        try:
            reader.read_call(other, ())
        except (TooLarge, RecursionError):
            return True
        return any(
            type(value) not in _NOT_WRITTEN and id(value) in self._open for value in reader._kept
        )

    def members_read(self, cls: type) -> set[str] | None:
        """Names of the members of a class that are part of the key; None for unknown classes."""
        space = self._classes.get(id(cls))
        return None if space is None else space.read

    def attributes_read(self, value: Any) -> set[str]:
        """Names of the attributes of an object that are part of the key."""
        space = self._objects.get(id(value))
        return set() if space is None else space.read

    def read(self, value: Any) -> Hashable:
        """Token of a value, without the members that the code may ask for by name."""
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
            if not (self._by_value and kind in _HOLDING_NUMBERS):
                return "again", self._open[number]
        else:
            self._open[number] = len(self._open)
            self._kept.append(value)  # so that no new object gets its id
        read = _READERS.get(kind)
        return self._other(value) if read is None else read(self, value)

    def part(self, holder: Any, place: int | str, value: Any) -> Hashable:
        """Token of a value in a place of its holder that the private copy copies."""
        kind: Any = type(value)
        if kind not in FLOATS or self._by_value or id(holder) in self._arguments:
            return self.read(value)
        self.floats.append(value)
        return kind

    def _variable(self, space: Any, name: str, value: Any) -> Hashable:
        """Token of a variable, which may be shared by several functions."""
        if type(value) in FLOATS:
            place = id(space), name
            found = self._variables.get(place)
            if found is not None:
                return "again", found
            self._variables[place] = len(self.floats)
            if space is not self._holder_of_last:
                self.groups.append(len(self.floats))
                self._holder_of_last = space
        try:
            return self.part(space, name, value)
        except TooLarge as problem:
            problem.name, problem.value = name, value
            raise

    def _values(self, values: Any) -> list[Hashable]:
        """Tokens of values that a library computes with, so that floats count by value."""
        before, self._by_value = self._by_value, True
        try:
            return [self.read(value) for value in values]
        finally:
            self._by_value = before

    def read_by_name(self) -> Hashable:
        """Token of the members that the code asks for by name; reading them may reach more code."""
        if not self._spaces:
            return ()
        spaces, tokens = self._spaces, list[Hashable]()
        looked, known = 0, (0, False, False)
        while True:
            asked = len(self.names), self.asks, self._makes
            first = looked if asked == known else 0
            looked, known = len(spaces), asked
            found = [
                (number, spaces[number], name) for number in range(first, looked)
                for name in spaces[number].wanted(self.names, self.asks, self._makes)
            ]
            if not found:
                return tuple(tokens)
            for number, space, name in found:
                space.read.add(name)
                value = space.members[name]
                if space.holder is None:
                    tokens.append((number, name, self.read(value)))
                else:
                    tokens.append((number, name, self._variable(space.holder, name, value)))

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
            held = list(value.items())         # reading may compute what an object then keeps
            return dict, tuple([(self.read(k), self.read_argument(v)) for k, v in held])
        token = kind if kind is list or kind is tuple else self._class_of_objects(kind)
        return token, tuple(map(self.read_argument, value))

    # --- functions and modules ------------------------------------------------------------

    def _function(self, function: types.FunctionType) -> Hashable:
        code, variables = function.__code__, function.__globals__
        if is_library(home(function)):
            self.asks = self.asks or id(function) in _ASKING
            inner = inside_errstate(function)
            return _same(function) if inner is None else ("in errstate", self.read(inner))
        self._functions += 1
        if self._functions > _MOST_FUNCTIONS:
            raise TooLarge
        facts = facts_of(code)
        self.names.update(facts.names)
        self.asks = self.asks or facts.asks
        self._makes = self._makes or facts.makes
        used = []
        for name in facts.globals_read:
            if name in variables:
                used.append(self._variable(variables, name, variables[name]))
        if facts.handles:          # decides which exceptions may be handled
            used.append(numpy_raises())
        if facts.imports:
            used += [self.read(sys.modules[k]) for k in facts.imports if k in sys.modules]
        cells = function.__closure__
        around = tuple(map(self._cell, code.co_freevars, cells)) if cells else ()
        if function.__dict__:
            self._spaces.append(Namespace(function.__dict__, function))
        given, named = function.__defaults__, function.__kwdefaults__
        if given is None and named is None:
            return _same(code), tuple(used), around
        return _same(code), tuple(used), around, self.read(given), self.read(named)

    def _cell(self, name: str, cell: types.CellType) -> Hashable:
        try:
            value = cell.cell_contents
        except ValueError:
            return "empty"
        if name == "__class__" and type(value) in METACLASSES:
            return self._class_of_objects(value)
        return self._variable(cell, name, value)

    def _method(self, method: types.MethodType) -> Hashable:
        return "method", self.read(method.__func__), self.read(method.__self__)

    def _partial(self, value: functools.partial) -> Hashable:
        parts = (value.func, value.args, value.keywords, value.__dict__)
        return ("partial", *(self.read(part) for part in parts))

    def _builtin(self, function: types.BuiltinFunctionType) -> Hashable:
        owner = function.__self__
        if owner is None or issubclass(type(owner), types.ModuleType):
            self.asks = self.asks or id(function) in _ASKING
            return _same(function)
        return "method", function.__name__, self.read(owner)

    def _cached(self, function: Any) -> Hashable:
        return "cached", self.read(function.__wrapped__)

    def _module(self, module: types.ModuleType) -> Hashable:
        top = module.__name__.partition(".")[0]
        if module is not math and top not in ("numpy", "numba"):
            space = None if is_library(module.__name__) else vars(module)
            self._spaces.append(Namespace(vars(module), space, by_written_name=True))
        return _same(module)

    # --- containers and numbers -----------------------------------------------------------

    def _sequence(self, value: Any) -> Hashable:
        self.groups.append(len(self.floats))
        part = self.part
        return type(value), tuple([part(value, i, held) for i, held in enumerate(value)])

    def _set(self, value: Any) -> Hashable:
        return type(value), tuple([self.read(part) for part in value])

    def _mapping(self, value: Any) -> Hashable:
        self.groups.append(len(self.floats))
        return type(value), tuple(
            [(self.read(k), self.part(value, 2 * i + 1, v))
             for i, (k, v) in enumerate(list(value.items()))]
        )

    def _holder(self, value: Any) -> Hashable:
        return type(value), self._content(value)

    def _content(self, value: Any) -> Hashable:
        """Tokens of an object's content as one of a builtin type; keys and elements by value."""
        kind, held = layout(type(value)), content(value)
        if issubclass(kind, dict):
            values = range(len(held) % 2 + 1, len(held), 2)
        else:
            values = range(len(held) if kind in (list, tuple, collections.deque) else 0)
        self.groups.append(len(self.floats))
        return tuple(
            [self.part(value, i, part) if i in values else self.read(part)
             for i, part in enumerate(held)]
        )

    def _namespace(self, value: Any) -> Hashable:
        self._add_attributes(value)
        return "namespace"

    def _slice(self, value: slice) -> Hashable:
        return slice, self.read(value.start), self.read(value.stop), self.read(value.step)

    def _array(self, values: np.ndarray) -> Hashable:
        if values.dtype.hasobject:
            return str(values.dtype), values.shape, tuple(self.read(x) for x in values.flat)
        found = values.tobytes()
        if (
            values.dtype == np.float64 and values.dtype.isnative and values.ndim
            and not self._by_value and values.size <= _MOST_PARTS
            and id(values) not in self._arguments
        ):
            self.groups.append(len(self.floats))
            self.floats.frombytes(found)
            return values.dtype.str, values.shape
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
            return _same(cls)
        if type(cls) is not type and has_registered(cls):
            return _Unknown(cls)
        for base in cls.__mro__:
            if is_followed(base):
                space = self._classes.get(id(base))
                if space is None:
                    space = Members(vars(base), base)
                    self._classes[id(base)] = space
                    self._spaces.append(space)
                    self._kept.append(base)
                space.complete |= complete
        return cls.__mro__

    def _class_of_objects(self, cls: type) -> Hashable:
        """Token of the class of an existing object, without what only matters for making one."""
        return self._class(cls, complete=False)

    def _enumeration(self, cls: Any) -> Hashable:
        if is_library(cls.__module__) or why_unknown_enumeration(cls):
            return _same(cls)
        space = Members(own_members(cls), complete=True)       # its floats count by value
        self._classes[id(cls)] = space
        self._spaces.append(space)
        bases = [self.read(base) for base in cls.__bases__ if not is_library(base.__module__)]
        members = [
            (name, *self._values((member._value_, attributes_of_member(member))))
            for name, member in cls._member_map_.items()
        ]
        return _same(cls), tuple(bases), tuple(members)

    def _enumerated(self, member: enum.Enum) -> Hashable:
        token = self.read(type(member))
        return token, member._name_, *self._values([member._value_])

    def _other(self, value: Any) -> Hashable:
        """Token of a value of no listed type; by identity if tracing does not know its type."""
        kind = type(value)
        if is_library(module_of(kind)):
            return self._of_library(value)
        if is_enumeration(kind):
            return self._enumerated(value)
        if why_unknown(kind):
            return _Unknown(value)
        self._add_attributes(value)
        token = self._class_of_objects(kind)
        own = () if layout(kind) is object else self._content(value)
        return "object", token, own

    def _add_attributes(self, value: Any) -> None:
        """Let the attributes of an object count that the code asks for."""
        held = dictionary(value)
        if others := slots(value):
            held = {**others, **held}
        self._objects[id(value)] = space = Attributes(held, value)
        self._spaces.append(space)

    def _attributes(self, holder: Any, values: dict[str, Any]) -> Hashable:
        self.groups.append(len(self.floats))
        part = self.part
        held = list(values.items())            # reading may compute what an object then keeps
        return tuple([(name, part(holder, name, value)) for name, value in held])

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
                return tuple(self._values(numbers))
            return self._by_attributes(value)
        if is_sparse(value) or is_numpy_polynomial(value):
            return self._by_attributes(value)
        if is_holder(value):
            return kind, self._attributes(value, dictionary(value))
        if kind is np.vectorize:
            parts = value.pyfunc, value.otypes, value.excluded, value.signature, value.cache
            return (kind, *(self.read(part) for part in parts))
        if kind is types.MethodWrapperType:
            return "method", value.__name__, self.read(value.__self__)
        if is_frame(value) and (held := labels_and_values(value)) is not None:
            self.groups.append(len(self.floats))
            return kind, held[0], tuple([self.part(value, i, x) for i, x in enumerate(held[1])])
        return _Unknown(value)

    def _by_attributes(self, value: Any) -> Hashable:
        held = dict(dictionary(value))
        return type(value), tuple(zip(held, self._values(held.values()), strict=True))


_READERS: dict[type, Callable[[Reader, Any], Hashable]] = {
    types.FunctionType: Reader._function,
    types.MethodType: Reader._method,
    functools.partial: Reader._partial,
    types.BuiltinFunctionType: Reader._builtin,
    CACHED: Reader._cached,
    types.ModuleType: Reader._module,
    list: Reader._sequence,
    tuple: Reader._sequence,
    set: Reader._set,                      # in their order: equal sets may have different ones
    frozenset: Reader._set,
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
    np.ufunc: lambda reader, value: _same(value),
    **dict.fromkeys(METACLASSES, Reader._class),
    **dict.fromkeys(DESCRIPTORS, lambda reader, value: _same(value)),
}


_NOT_WRITTEN = frozenset((
    types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.ModuleType, tuple,
    frozenset, *METACLASSES, *DESCRIPTORS,
))


# Under whatever name they are called, these may ask for any member.
_ASKING = frozenset(
    map(id, (getattr, hasattr, vars, dir, operator.attrgetter, operator.methodcaller,
             dataclasses.asdict, dataclasses.astuple, copy.deepcopy))
)


def too_large_variable(function: types.FunctionType) -> tuple[str, Any] | None:
    """Name and value of a variable of a function that alone is too large to be compared."""
    try:
        found = inspect.getclosurevars(function)
    except ValueError:                         # a variable has no value yet
        return None
    names = facts_of(function.__code__).names
    values = {**found.nonlocals, **found.globals}
    return next((item for item in values.items() if _is_too_large(item[1], names)), None)


def _is_too_large(value: Any, names: dict[str, None]) -> bool:
    """Tell whether a value is, of which a function asks for members of some names."""
    reader = Reader()
    reader.names.update(names)
    try:
        reader.read(value)
        reader.read_by_name()
    except (TooLarge, RecursionError):
        return True
    return False


__all__ = ["Reader", "TooLarge", "too_large_variable"]
