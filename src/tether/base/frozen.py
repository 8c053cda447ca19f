"""Make frozen dataclasses quickly: their own `__init__` calls a function for every field."""

from __future__ import annotations

from typing import Any, TypeVar

__all__ = ["make_frozen"]

T = TypeVar("T")


def make_frozen(cls: type[T], **fields: Any) -> T:
    """Make an instance of a frozen dataclass; a field that is left out has its plain default.

    For objects that every run makes: it takes a third of the time. Nothing is checked, and fields
    that ``__post_init__`` or a default factory would make must be passed.

    Examples
    --------
    >>> from tether.base.frozen import make_frozen
    >>> from tether.structure.scaling import Units
    >>> make_frozen(Units, y=[1.0, 2.0])
    Units(y=[1.0, 2.0], t=1.0)
    """
    instance = object.__new__(cls)
    object.__setattr__(instance, "__dict__", fields)
    return instance
