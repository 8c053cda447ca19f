"""Private classes for tracing, one for each class of the user's.

A private class has private bases and private copies of the members that are read, so that nothing
reaches the user's class: neither `super()` nor an assignment to a class attribute.
"""

from __future__ import annotations

import abc
import dataclasses
import enum
import functools
import types
from collections.abc import Callable
from typing import Any, NoReturn

from tether.trace.known import (
    DESCRIPTORS,
    LEFT_OUT,
    dictionary,
    has_registered,
    is_followed,
    is_library,
    why_unknown,
)
from tether.trace.refusal import refuse
from tether.trace.standins import Forbidden, Unread
from tether.trace.watch import Watch

# Members that private classes share with the user's: never changed, or read by Python only.
METADATA_TEXT = """
    __doc__ __module__ __qualname__ __dataclass_fields__ __dataclass_params__
    _fields
"""
_KEPT = frozenset(METADATA_TEXT.split())
# Members that are not copied: part of the layout, made again, or of no use to an expression.
_SKIPPED_TEXT = """
    __dict__ __weakref__ __slots__ __del__ __init_subclass__ _abc_impl __abstractmethods__
    __orig_bases__ __parameters__ __firstlineno__ __static_attributes__ __type_params__
    __abc_tpflags__ _is_protocol _is_runtime_protocol __non_callable_proto_members__
    __protocol_attrs__ __annotate__ __annotate_func__ __annotations_cache__ __classdictcell__
"""
_SKIPPED = frozenset(_SKIPPED_TEXT.split())
METADATA = _KEPT | _SKIPPED
# Members that every enumeration has; the others are the user's.
_OF_ENUM = frozenset(vars(enum.Enum("_", "")))


class PrivateABCMeta(abc.ABCMeta):
    """Metaclass of private abstract classes, with which no classes can be registered."""

    def register(cls, subclass: type) -> NoReturn:
        """Refuse."""
        refuse(f"registers a class with {cls.__name__}")


class PrivateClasses:
    """Makes private classes.

    Parameters
    ----------
    copier, part : callable
        Return the private copy of a value, and of a value that an object holds in some place.
    wanted : callable
        Returns the names of the members of a class that are read; None for an unknown class.
    remember : callable
        Is told the private class of a class before its members are copied.
    watch : Watch
        Notices writes.
    """

    def __init__(
        self,
        copier: Callable[[Any], Any],
        part: Callable[[Any, str, Any], Any],
        wanted: Callable[[type], set[str] | None],
        remember: Callable[[Any, Any], Any],
        watch: Watch,
    ) -> None:
        self._copy, self._part = copier, part
        self._wanted, self._remember, self._watch = wanted, remember, watch
        self._building = 0

    def make(self, cls: type) -> Any:
        """Make the private class of a class of the user's, or a stand-in that refuses its use."""
        if reason := why_unknown(cls):
            return Forbidden(reason)
        wanted = self._wanted(cls)
        if wanted is None:
            why = "has classes registered with it" if has_registered(cls) else "is not in the key"
            return Forbidden(f"the class {cls.__name__} {why}")
        bases = tuple(self._base(base) for base in cls.__bases__ if base not in LEFT_OUT)
        for base in bases:
            if type(base) is Forbidden:
                return base
        meta = type if type(cls) is type else PrivateABCMeta
        self._building += 1
        try:
            result = meta.__new__(meta, cls.__name__, bases or (object,), self._frame(cls))
        finally:
            self._building -= 1
        if (result.__basicsize__, result.__itemsize__) != (cls.__basicsize__, cls.__itemsize__):
            return Forbidden(f"the class {cls.__name__} is not written in Python")
        self._remember(cls, result)
        for name, member in list(vars(cls).items()):
            if name not in _SKIPPED and not _is_slot(member):
                type.__setattr__(result, name, self._member(cls, name, member, name in wanted))
        if "__init_subclass__" in vars(cls):
            type.__setattr__(result, "__init_subclass__", classmethod(self._refuse_subclass))
        if meta is PrivateABCMeta:
            abstract: Any = getattr(cls, "__abstractmethods__", frozenset())
            result.__abstractmethods__ = abstract  # type: ignore[attr-defined]
        self._watch_class(result)
        return result

    def _base(self, base: type) -> Any:
        return self._copy(base) if is_followed(base) else base

    def _frame(self, cls: type) -> dict[str, Any]:
        """Namespace of the private class, which gives it the same memory layout."""
        frame = {"__module__": cls.__module__, "__qualname__": cls.__qualname__}
        own = [name for name, member in vars(cls).items() if _is_slot(member) and name not in _KEPT]
        if not own and "__dict__" in vars(cls):
            return frame
        own += [name for name in ("__dict__", "__weakref__") if name in vars(cls)]
        return frame | {"__slots__": tuple(own)}

    def _member(self, cls: type, name: str, member: Any, wanted: bool) -> Any:
        if name in _KEPT:
            return _without_defaults(member) if name == "__dataclass_fields__" else member
        if not wanted:
            return Unread(f"{cls.__name__}.{name}")
        if name in ("__enter__", "__aenter__"):
            return Forbidden(
                f"enters a {cls.__name__}, which may swallow exceptions, and a program raises none"
            )
        return member if type(member) in DESCRIPTORS else self._part(cls, name, member)

    def _refuse_subclass(self, cls: type, **options: Any) -> None:
        if not self._building:
            refuse("makes a subclass of a class with an __init_subclass__")

    def _watch_class(self, result: type) -> None:
        what = f"the class {result.__name__}"
        self._watch.add(lambda: members_of(result), what)

    # --- enumerations ---------------------------------------------------------------------

    def enumeration(self, cls: Any) -> Any:
        """Make the private class of an enumeration, with private members."""
        if reason := why_unknown_enumeration(cls):
            return Forbidden(reason)
        if self._wanted(cls) is None:
            return Forbidden(f"reaches the class {cls.__name__} by a name that is not in the code")
        bases = tuple(b if is_library(b.__module__) else self._copy(b) for b in cls.__bases__)
        for base in bases:
            if type(base) is Forbidden:
                return base
        names = enum.EnumType.__prepare__(cls.__name__, bases)
        names["__module__"], names["__qualname__"] = cls.__module__, cls.__qualname__
        for name, member in cls.__members__.items():
            names[name] = self._copy(member._value_)
        options = {"boundary": cls._boundary_} if issubclass(cls, enum.Flag) else {}
        result: Any = enum.EnumType.__new__(enum.EnumType, cls.__name__, bases, names, **options)
        self._remember(cls, result)
        wanted = self._wanted(cls) or set()
        for name, member in own_members(cls).items():
            if name not in _SKIPPED:
                value = self._member(cls, name, member, name in wanted)
                type.__setattr__(result, name, value)
        self._watch_class(result)
        for name, member in cls._member_map_.items():
            self._enumerated(result._member_map_[name], member)
        return result

    def _enumerated(self, result: Any, member: Any) -> None:
        for name, value in attributes_of_member(member).items():
            result.__dict__[name] = self._copy(value)
        what = f"an attribute of {type(member).__name__}.{member._name_}"
        self._watch.mapping(result.__dict__, what)


def _without_defaults(fields: Any) -> Any:
    """Copy the fields of a data class without their defaults, which its `__init__` has."""
    result = {}
    for name, given in fields.items():
        result[name] = own = object.__new__(dataclasses.Field)
        for part in dataclasses.Field.__slots__:
            setattr(own, part, getattr(given, part))
        for what in ("default", "default_factory"):
            if getattr(given, what) is not dataclasses.MISSING:
                setattr(own, what, Forbidden(f"asks for the {what} of the field {name}"))
    return result


def members_of(cls: type) -> list[Any]:
    """Names and members of a class, without `__slotnames__`, which `copy` may add."""
    return [x for pair in vars(cls).items() if pair[0] != "__slotnames__" for x in pair]


def _is_slot(member: Any) -> bool:
    return type(member) is types.MemberDescriptorType


@functools.lru_cache(1)
def _names_in_members() -> frozenset[str]:
    class Example(enum.Enum):
        ONE = 1

    class Bits(enum.Flag):
        ONE = 1

    return frozenset((*vars(Example.ONE), *vars(Bits.ONE)))


def attributes_of_member(member: Any) -> dict[str, Any]:
    """Attributes that the user has given to a member of an enumeration."""
    known = _names_in_members()
    return {k: v for k, v in dictionary(member).items() if k not in known}


def own_members(cls: Any) -> dict[str, Any]:
    """Return what the user has defined in an enumeration, apart from its members."""
    return {
        name: value for name, value in vars(cls).items()
        if name not in _OF_ENUM and name not in cls._member_map_ and name not in METADATA
        and not (name.startswith("_") and name.endswith("_") and not name.startswith("__"))
        and not _of_library(value)
    }


def _of_library(value: Any) -> bool:
    inner = getattr(value, "__func__", value)
    return type(inner) is types.FunctionType and is_library(inner.__globals__.get("__name__"))


def why_unknown_enumeration(cls: Any) -> str:
    """Why an enumeration cannot be followed; empty if it can."""
    for base in cls.__mro__:
        if is_library(base.__module__):
            if base is not object and base not in (int, str, float) and base.__module__ != "enum":
                return f"the class {cls.__name__} is derived from {base.__name__}"
            continue
        if type(base) is not enum.EnumType:
            return f"the class {cls.__name__} is derived from {base.__name__}"
        for name in ("__new__", "_missing_", "__eq__", "__hash__", "__getattr__", "__setattr__",
                     "__getattribute__", "__class__"):
            value = vars(base).get(name)
            inner = getattr(value, "__func__", value)
            if type(inner) is types.FunctionType and not _of_library(value):
                return f"the class {cls.__name__} has its own {name}"
    return ""
