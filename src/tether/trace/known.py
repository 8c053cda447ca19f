"""What tracing understands outside the user's own code: types, builtins, library members.

Anything that is not listed here is refused when a traced function uses it. All comparisons are by
identity, since a subclass may do anything.
"""

from __future__ import annotations

import abc
import builtins
import collections
import collections.abc
import decimal
import enum
import fractions
import functools
import inspect
import operator
import os
import sys
import types
import typing
import weakref
from _abc import _get_dump  # type: ignore[attr-defined]
from typing import Any

import numpy as np

# --- values -------------------------------------------------------------------------------------

NUMPY_NUMBERS = frozenset(
    kind for kind in np.sctypeDict.values() if np.dtype(kind).kind in "biufc"
)
_PLAIN_TYPES = (
    int, bool, float, complex, str, np.str_, bytes, range, type(None), type(...),
    type(NotImplemented),
)
BY_VALUE = frozenset(_PLAIN_TYPES) - {float}
FLOATS = frozenset((float, np.float64))
RATIONAL = frozenset((fractions.Fraction, decimal.Decimal))
IMMUTABLE = frozenset(_PLAIN_TYPES) | NUMPY_NUMBERS | RATIONAL
DESCRIPTORS: frozenset[type] = frozenset((
    types.MemberDescriptorType, types.GetSetDescriptorType, types.WrapperDescriptorType,
    types.MethodDescriptorType, types.ClassMethodDescriptorType,
    type(vars(collections.namedtuple("_", "x"))["x"]),
))
NUMPY_FUNCTION = type(np.concatenate)      # functions that dispatch on their arguments

# --- modules ------------------------------------------------------------------------------------

_LIBRARIES = frozenset(("numpy", "scipy", "numba", "pandas", "builtins"))
_STANDARD_LIBRARY = os.path.dirname(os.__file__)
_WHOLE_MODULES = frozenset(
    ("operator", "itertools", "bisect", "heapq", "cmath", "statistics", "numbers")
)
_MEMBERS_TEXT = {
    "functools": "reduce partial cmp_to_key wraps update_wrapper",
    "collections": "deque OrderedDict defaultdict Counter ChainMap UserDict UserList namedtuple",
    "copy": "copy deepcopy",
    "dataclasses": "dataclass field fields replace asdict astuple is_dataclass",
    "types": "SimpleNamespace",
    "typing": "cast NamedTuple",
    "fractions": "Fraction",
    "decimal": "Decimal",
    "contextlib": "nullcontext",
    "abc": "ABC abstractmethod",
    "argparse": "Namespace",
}
_MEMBERS = {module: frozenset(text.split()) for module, text in _MEMBERS_TEXT.items()}
# Functions that the standard library puts into classes: methods of named tuples, and comparisons.
_KNOWN_CODES = frozenset((
    *(id(part) for part in collections.namedtuple.__code__.co_consts
      if isinstance(part, types.CodeType)),
    *(id(function.__code__) for pairs in getattr(functools, "_convert", {}).values()
      for _, function in pairs),
))
# The functions of these modules have no effects, so they may be called with untraced numbers.
_PURE_SCIPY = tuple(
    f"scipy.{name}" for name in ("special", "linalg", "constants", "interpolate", "signal", "fft")
)


@functools.lru_cache(4096)
def is_library(module: object) -> bool:
    """Tell whether a module belongs to NumPy, SciPy or Python rather than to the user.

    The `__module__` of a class that was compiled may be something other than a name.
    """
    top = module.partition(".")[0] if isinstance(module, str) else ""
    if top in _LIBRARIES:
        return True
    if top not in sys.stdlib_module_names or top == "__main__":
        return False
    # the user may have a module of the same name
    file = getattr(sys.modules.get(top), "__file__", None)
    return file is None or file.startswith(_STANDARD_LIBRARY)


def module_of(cls: type) -> str | None:
    """Name of the module of a class, found without running a metaclass of the user's."""
    try:
        name = type.__getattribute__(cls, "__module__")
    except AttributeError:
        return None
    return name if type(name) is str else None


def home(function: types.FunctionType) -> str | None:
    """Name of the module in which a function is written; decorators may change `__module__`."""
    name = function.__globals__.get("__name__")
    return name if type(name) is str else None


def is_known_member(value: Any) -> bool:
    """Tell whether tracing understands a function or a class of the standard library."""
    module, name = str(value.__module__).lstrip("_"), value.__name__
    if value in (operator.is_, operator.is_not):       # a traced number is another object
        return False
    if type(value) is types.FunctionType and id(value.__code__) in _KNOWN_CODES:
        return True
    if module not in _WHOLE_MODULES and name not in _MEMBERS.get(module, ()):
        return module in ("collections.abc", "numbers") and isinstance(value, abc.ABCMeta)
    return getattr(sys.modules.get(module), name, None) is value


def is_pure_scipy(function: Any) -> bool:
    """Tell whether a function of SciPy has no effects."""
    return str(function.__module__).startswith(_PURE_SCIPY)


# --- builtins -----------------------------------------------------------------------------------

_BUILTINS_TEXT = """
    abs all any ascii bin bool bytes callable chr classmethod complex dict divmod enumerate filter
    float format frozenset getattr hasattr hash hex int isinstance issubclass iter len list map
    max min next object oct ord pow property range repr reversed round set slice sorted
    staticmethod str sum super tuple type zip bytearray
    None True False Ellipsis NotImplemented __debug__ __build_class__ __import__ __name__
"""
_BUILTINS = frozenset(_BUILTINS_TEXT.split())


def is_known_builtin(name: str) -> bool:
    """Tell whether a builtin does nothing but compute."""
    value = getattr(builtins, name)
    return name in _BUILTINS or (isinstance(value, type) and issubclass(value, BaseException))


# --- wrappers and SciPy's objects ---------------------------------------------------------------

CACHED = functools._lru_cache_wrapper
_WRAPPER_OF_ERRSTATE = next(
    part for part in np.errstate.__call__.__code__.co_consts if isinstance(part, types.CodeType)
)


def inside_errstate(function: types.FunctionType) -> Any:
    """Return the function that `numpy.errstate` has decorated; None for any other function."""
    if function.__code__ is not _WRAPPER_OF_ERRSTATE:
        return None
    return inspect.getclosurevars(function).nonlocals.get("func")


def in_same_errstate(function: types.FunctionType, inner: Any) -> Any:
    """Decorate `inner` as `function` is decorated if that makes NumPy raise exceptions.

    Other error modes do not matter to a program, which reports no errors.
    """
    state = inspect.getclosurevars(function).nonlocals.get("self")
    if type(inner) is not types.FunctionType or not isinstance(state, np.errstate):
        return inner
    modes = state(np.geterr)()
    return state(inner) if {"raise", "call"}.intersection(modes.values()) else inner


def jitted_function(value: Any) -> types.FunctionType | None:
    """Return the plain function that Numba has compiled, None for anything else."""
    module = sys.modules.get("numba.core.registry")
    if module is None or type(value) is not module.CPUDispatcher:
        return None
    return value.py_func if isinstance(value.py_func, types.FunctionType) else None


def is_interpolant(value: Any) -> bool:
    """Tell whether a value is an object of a class of scipy.interpolate itself."""
    kind = type(value)
    if not kind.__module__.startswith("scipy.interpolate"):
        return False
    return getattr(sys.modules.get("scipy.interpolate"), kind.__name__, None) is kind


def is_sparse(value: Any) -> bool:
    """Tell whether a value is a sparse matrix or array of SciPy."""
    kind = type(value)
    if not kind.__module__.startswith("scipy.sparse"):
        return False
    module = sys.modules["scipy.sparse"]
    return module.issparse(value) and getattr(module, kind.__name__, None) is kind


def is_numpy_polynomial(value: Any) -> bool:
    """Tell whether a value is a NumPy polynomial, which computes with whatever it is given."""
    kind = type(value)
    if kind is np.poly1d:
        return True
    return (
        kind.__module__.startswith("numpy.polynomial")
        and getattr(np.polynomial, kind.__name__, None) is kind
    )


def is_holder(value: Any) -> bool:
    """Tell whether a value is of a standard-library class that only holds attributes."""
    kind = type(value)
    if kind in (collections.UserDict, collections.UserList, collections.ChainMap):
        return True
    return kind is getattr(sys.modules.get("argparse"), "Namespace", None)


# --- classes ------------------------------------------------------------------------------------

_PROTOCOL_META = type(typing.Protocol)
METACLASSES: frozenset[type] = frozenset((type, abc.ABCMeta, _PROTOCOL_META))
LEFT_OUT = (typing.Generic, typing.Protocol)       # not bases of private classes: they do nothing
# Builtin types that hold the values of objects of derived classes.
LAYOUTS = (
    list, collections.OrderedDict, collections.defaultdict, dict, tuple, set, frozenset, float,
    int, collections.deque, BaseException,
)
_EXACT_LAYOUTS = frozenset(LAYOUTS)
_NUMBERS = (float, int)
_BASES = frozenset((
    object, abc.ABC, *LEFT_OUT, *LAYOUTS, types.SimpleNamespace, collections.UserDict,
    collections.UserList, collections.ChainMap, collections.Counter,
))
# Special methods that no arithmetic with a number calls implicitly.
_HARMLESS_TEXT = """
    __init__ __new__ __repr__ __str__ __format__ __reduce__ __reduce_ex__ __getstate__ __setstate__
    __dict__ __weakref__ __module__ __doc__ __qualname__ __slots__ __annotations__ __annotate__
    __firstlineno__ __static_attributes__ __getnewargs__ __annotate_func__ __annotations_cache__
    __init_subclass__ __class_getitem__ __set_name__ __match_args__ __orig_bases__ __parameters__
    __abstractmethods__ __type_params__
"""
_HARMLESS = frozenset(_HARMLESS_TEXT.split())
_C_METHODS = (types.MethodDescriptorType, types.WrapperDescriptorType, types.BuiltinFunctionType)
_followed: dict[type, bool] = {}           # classes of the standard library
_reasons: weakref.WeakKeyDictionary[type, str] = weakref.WeakKeyDictionary()


def why_unknown(cls: type) -> str:
    """Why objects of a class of the user's cannot be followed; empty if they can."""
    found = _reasons.get(cls)
    if found is None:
        found = _reasons[cls] = _why_unknown(cls)
    return found


def _why_unknown(cls: type) -> str:
    if type(cls) not in METACLASSES:
        return f"the class {type.__getattribute__(cls, '__name__')} has a metaclass of its own"
    name = cls.__name__
    for base in cls.__mro__:
        if is_library(base.__module__):
            builtin_error = base.__module__ == "builtins" and issubclass(base, BaseException)
            abstract = base.__module__ in ("collections.abc", "numbers")
            if base not in _BASES and not builtin_error and not abstract and not is_followed(base):
                return f"the class {name} is derived from {base.__module__}.{base.__qualname__}"
            continue
        if type(base) not in METACLASSES:
            return f"the class {base.__name__} has a metaclass of its own"
        for own in ("__dict__", "__weakref__"):
            if type(vars(base).get(own)) not in (type(None), types.GetSetDescriptorType):
                return f"the class {name} has a {own} of its own"
        for own in ("__class__", "__del__"):
            if own in vars(base):
                return f"the class {name} has a {own} of its own"
        if issubclass(cls, _NUMBERS) and (methods := _dunders(base) - _HARMLESS):
            return f"the class {name} is a number with its own {min(methods)}"
    return ""


def is_followed(cls: type) -> bool:
    """Tell whether the members of a class are copied one by one.

    So are those of a standard-library class that is written in Python and keeps its state in
    attributes: the user may derive from `unittest.TestCase`, say, without using any of it.
    """
    if not is_library(cls.__module__):
        return True
    if cls is object or cls in _BASES:
        return False
    found = _followed.get(cls)
    if found is None:
        found = _followed[cls] = _is_plain(cls)
    return found


def _is_plain(cls: type) -> bool:
    standard = cls.__module__.partition(".")[0] not in _LIBRARIES
    abstract = cls.__module__ in ("collections.abc", "numbers")
    written = all(type(member) not in _C_METHODS for member in vars(cls).values())
    return standard and not abstract and written and type(cls) in METACLASSES and all(
        base is object or _is_plain(base) or base in (abc.ABC, *LEFT_OUT) for base in cls.__bases__
    )


def _dunders(cls: type) -> set[str]:
    return {name for name in vars(cls) if name.startswith("__")}


def has_registered(cls: type) -> bool:
    """Tell whether other classes are registered with an abstract class of the user's."""
    return any(
        type(base) is abc.ABCMeta and not is_library(base.__module__) and bool(_get_dump(base)[0])
        for base in cls.__mro__
    )


def layout(cls: type) -> type:
    """Builtin type that holds the values of the objects of a class; `object` if none does."""
    if cls in _EXACT_LAYOUTS:
        return cls
    return next((kind for kind in LAYOUTS if issubclass(cls, kind)), object)


def is_record(cls: type) -> bool:
    """Tell whether a class is a named tuple without further attributes."""
    return (
        type(cls) is type and cls.__bases__ == (tuple,) and "_fields" in vars(cls)
        and "__dict__" not in vars(cls) and "__iter__" not in vars(cls) and not why_unknown(cls)
    )


def is_enumeration(cls: Any) -> bool:
    """Tell whether a class is an enumeration with the usual metaclass."""
    return type(cls) is enum.EnumType


# --- what objects hold --------------------------------------------------------------------------


def slots(value: Any) -> dict[str, Any]:
    """Attributes that an object keeps in slots of the user's classes, by name."""
    found = {}
    for base in type(value).__mro__:
        if base is object or "__slots__" not in vars(base) or is_library(base.__module__):
            continue
        for name, member in vars(base).items():
            if type(member) is types.MemberDescriptorType and name not in found:
                try:
                    found[name] = member.__get__(value)
                except AttributeError:       # not set
                    continue
    return found


def set_slot(value: Any, name: str, part: Any) -> None:
    """Set an attribute that an object keeps in a slot."""
    for base in type(value).__mro__:
        member = vars(base).get(name)
        if type(member) is types.MemberDescriptorType:
            member.__set__(value, part)
            return


def dictionary(value: Any) -> dict[str, Any]:
    """Return the dictionary of an object's attributes without running any code of its class."""
    try:
        found = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return {}
    return found if type(found) is dict else {}


def content(value: Any) -> list[Any]:
    """List what an object holds as an instance of the builtin type from which its class derives."""
    kind: Any = layout(type(value))
    if kind in _NUMBERS:
        return [kind.__pos__(value)]
    if issubclass(kind, dict):
        items = [x for pair in kind.items(value) for x in pair]
        return items if kind is not collections.defaultdict else [value.default_factory, *items]
    if kind is BaseException:
        return list(vars(BaseException)["args"].__get__(value))
    if kind is object:
        return []
    items = list(kind.__iter__(value))
    return items if kind is not collections.deque else [kind.maxlen.__get__(value), *items]


def build(cls: type, parts: list[Any]) -> Any:
    """Make an object of a class derived from a builtin type; `fill` then adds mutable parts."""
    kind = layout(cls)
    if kind is BaseException:
        base = next(base for base in cls.__mro__ if base.__module__ == "builtins")
        return base.__new__(cls, *parts)
    if kind in _NUMBERS or kind in (tuple, frozenset):
        return kind.__new__(cls, *(parts if kind in _NUMBERS else [parts]))
    return kind.__new__(cls)  # type: ignore[call-overload]


def fill(value: Any, parts: list[Any]) -> None:
    """Put the parts into an object made by `build` if it is mutable."""
    kind = layout(type(value))
    if kind is list:
        list.extend(value, parts)
    elif kind is set:
        set.update(value, parts)
    elif kind is collections.deque:
        collections.deque.__init__(value, parts[1:], parts[0])
    elif issubclass(kind, dict):
        if kind is collections.defaultdict:
            value.default_factory = parts[0]
            parts = parts[1:]
        for key, part in zip(parts[::2], parts[1::2], strict=True):
            kind.__setitem__(value, key, part)

