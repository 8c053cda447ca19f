"""What a program leaves out of a function: printing, logging, warnings and text for them.

None of it changes what the function returns. `sol.how` names what was left out.

A traced number has no text, and a function that makes text of one might compute with it, so it is
refused. Only a statement that prints, logs or raises uses the text for nothing else; there a
placeholder takes its place. Such statements are found in the source text of the function.
"""

from __future__ import annotations

import ast
import functools
import itertools
import linecache
import logging
import os
import sys
import threading
import types
import warnings
from collections.abc import Callable
from typing import Any

from tether.trace.refusal import refuse

__all__ = ["LeftOut", "QuietLogger", "effects", "left_out", "text_of_traced"]

_LOGGING = frozenset(
    ("debug", "info", "warning", "warn", "error", "exception", "critical", "fatal", "log")
)


class _Effects(threading.local):
    """What was left out in this thread since `begin`, and whether text was made for it."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Forget everything."""
        self.left_out: dict[str, None] = {}
        self.has_text = False

    def leave_out(self, name: str, frame: types.FrameType) -> None:
        """Note what is left out, and in which line."""
        file = os.path.basename(frame.f_code.co_filename)
        self.left_out[f"{name} ({file}, line {frame.f_lineno})"] = None
        self.has_text = False


effects = _Effects()


class LeftOut:
    """Stands for a function that is called for its effects alone."""

    __slots__ = ("_name",)

    _name: str

    def __init__(self, name: str) -> None:
        object.__setattr__(self, "_name", name)

    def __call__(self, *args: Any, **options: Any) -> None:
        """Do nothing but note the call."""
        if options.get("file") is not None:
            refuse("prints to a file")
        effects.leave_out(self._name, sys._getframe(1))

    def __setattr__(self, name: str, value: Any) -> None:
        refuse(f"writes to {name} of {self._name}")


class QuietLogger:
    """Stands for a logger."""

    __slots__ = ("_name",)

    def __init__(self, logger: logging.Logger) -> None:
        object.__setattr__(self, "_name", logger.name)

    def __getattr__(self, name: str) -> Any:
        if name in _LOGGING:
            return LeftOut(f"{name} of the logger {self._name!r}")
        refuse(f"uses {name} of a logger, which is not known to tracing")

    def __setattr__(self, name: str, value: Any) -> None:
        refuse(f"writes to {name} of a logger")


def left_out(value: Any, is_known: Callable[[Any], bool]) -> Any:
    """Return the stand-in for a function or an object that only has effects; None for others.

    A logger is not one of them if the traced function can see what one of its handlers writes to.
    """
    if type(value) in (logging.Logger, logging.RootLogger):
        return None if any(map(is_known, _handlers(value))) else QuietLogger(value)
    if type(value) is not types.FunctionType and value is not warnings.warn:
        return None
    if value is warnings.warn:
        raising = any(action == "error" for action, *_ in warnings.filters)
        return None if raising else LeftOut("warnings.warn")
    name = value.__name__
    if name in _LOGGING and getattr(logging, name, None) is value:
        known = any(map(is_known, _handlers(logging.getLogger())))
        return None if known else LeftOut(f"logging.{name}")
    return None


def _handlers(logger: logging.Logger) -> list[Any]:
    found: list[Any] = []
    at: logging.Logger | None = logger
    while at is not None:
        found += [*at.handlers, *at.filters]
        at = at.parent if at.propagate else None
    return found


# --- text ---------------------------------------------------------------------------------------


def text_of_traced(what: str) -> str:
    """Return a placeholder for the text of a traced value in a message; refuse it elsewhere."""
    frame: types.FrameType | None = sys._getframe(2)
    while frame is not None and (frame.f_globals.get("__name__") or "").startswith("tether."):
        frame = frame.f_back
    if frame is None or not _is_in_message(frame):
        refuse(f"makes text of {what}")
    effects.has_text = True
    return "..."


def _is_in_message(frame: types.FrameType) -> bool:
    """Tell whether a frame is inside a message, or a statement that prints or logs one."""
    code = frame.f_code
    line, _, column, _ = next(itertools.islice(code.co_positions(), frame.f_lasti // 2, None))
    if line is None or column is None:
        return False
    text = "".join(linecache.getlines(code.co_filename, frame.f_globals))
    return any(begin <= (line, column) < end for begin, end in _messages(text))


@functools.lru_cache(8)
def _messages(text: str) -> tuple[tuple[tuple[int, int], tuple[int, int]], ...]:
    """Where messages begin and end in a text, each by line and column."""
    try:
        found = [_message(node) for node in ast.walk(ast.parse(text))]
    except (SyntaxError, ValueError, RecursionError):
        return ()
    return tuple(
        ((node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset))
        for node in found if node is not None
    )


def _message(node: ast.AST) -> Any:
    """Part of a statement that makes a message; None if there is none."""
    if isinstance(node, ast.Assert):
        return node.msg
    if isinstance(node, ast.Raise):
        return node
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
        return None
    called = node.value.func
    if isinstance(called, ast.Name):
        return node if called.id in ("print", "warn") else None
    return node if isinstance(called, ast.Attribute) and called.attr in _LOGGING else None
