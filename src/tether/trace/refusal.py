"""Refusals: how tracing gives up on a function that cannot be traced."""

from __future__ import annotations

import threading
from types import CodeType
from typing import NoReturn


class Untraceable(BaseException):
    """The function did something that cannot be written as an expression.

    Not an `Exception`, so that a handler of the user's does not swallow it.

    Attributes
    ----------
    place : tuple or None
        Code object and line that are to blame, if the traceback does not show them.
    """

    place: tuple[CodeType, int] | None = None


class _Refusals(threading.local):
    last: str | None = None


# The reason of the last refusal in this thread, in case a handler swallows the exception.
refusals = _Refusals()


def refuse(reason: str) -> NoReturn:
    """Give up tracing; the line where it happened is added later."""
    refusals.last = reason
    raise Untraceable(reason)
