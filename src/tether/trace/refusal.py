"""Giving up on a function that cannot be traced."""

from __future__ import annotations

import threading
from types import CodeType
from typing import NoReturn


class Untraceable(BaseException):
    """The function did something that an expression cannot express.

    Not an `Exception`, lest a handler of the user's swallows it.

    Attributes
    ----------
    place : tuple or None
        Code object and line that are to blame, where the traceback does not tell.
    """

    place: tuple[CodeType, int] | None = None


class _Refusals(threading.local):
    last: str | None = None


# The reason for which tracing was given up in this thread, should a handler swallow the exception.
refusals = _Refusals()


def refuse(reason: str) -> NoReturn:
    """Give up tracing; the line it happened at is added later."""
    refusals.last = reason
    raise Untraceable(reason)
