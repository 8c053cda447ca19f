"""Members of modules, classes, functions and objects; only those count that the code asks for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tether.trace.classes import METADATA

__all__ = ["Attributes", "Members", "Namespace"]


class Namespace:
    """Members of something, of which only those count that the code asks for."""

    __slots__ = ("by_written_name", "complete", "holder", "members", "read")

    def __init__(
        self, members: Mapping[str, Any], holder: Any = None, by_written_name: bool = False
    ) -> None:
        self.members, self.by_written_name = members, by_written_name
        self.holder = holder                   # None: floats in it count by value
        self.read: set[str] = set()
        self.complete = True

    def wanted(self, names: Mapping[str, None], asks: bool, makes: bool) -> list[str]:
        """Members to read next; all of them if the code may ask for members by computed names."""
        members, read = self.members, self.read
        if asks and not self.by_written_name:
            return [name for name in members if name not in read]
        return [name for name in names if name in members and name not in read]


class Attributes(Namespace):
    """Attributes of an object, looked up among the names because they are usually fewer."""

    __slots__ = ()

    def wanted(self, names: Mapping[str, None], asks: bool, makes: bool) -> list[str]:
        """Members to read next."""
        read = self.read
        return [name for name in self.members if name not in read and (asks or name in names)]


class Members(Namespace):
    """Members of a class; those that Python itself calls always count."""

    __slots__ = ()

    def __init__(
        self, members: Mapping[str, Any], holder: Any = None, complete: bool = False
    ) -> None:
        super().__init__(members, holder)
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


# Special methods that an expression with an existing object never calls implicitly.
_UNUSED_TEXT = """
    __init__ __new__ __post_init__ __init_subclass__ __setattr__ __delattr__ __del__ __repr__
    __str__ __format__ __reduce__ __reduce_ex__ __getstate__ __setstate__ __replace__ __dir__
    __set_name__ __class_getitem__ __annotations__ __getnewargs__ __copy__ __deepcopy__ __sizeof__
    __match_args__
"""
_UNUSED_BY_OBJECTS = frozenset(_UNUSED_TEXT.split())
_OF_NAMED_TUPLES = frozenset(("_make", "_replace", "_asdict"))      # these call each other
