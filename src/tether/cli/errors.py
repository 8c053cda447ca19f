"""Exit codes of the command, and errors in one line."""

from __future__ import annotations

import traceback
from enum import IntEnum
from pathlib import Path

__all__ = ["ExitCode", "UsageError", "one_line"]


class ExitCode(IntEnum):
    """How a command ended."""

    SUCCESS = 0
    FAILED = 1                         # the run failed, or the equations are singular
    BAD_USE = 2                        # the command, the file or a value is wrong
    INTERRUPTED = 130                  # Ctrl-C, as in shells


class UsageError(Exception):
    """The command was used wrongly; the message says how to use it."""


# Exceptions whose messages are clear without the name of their type.
CLEAR_MESSAGES = (UsageError, ValueError, TypeError, OSError, ImportError)


def one_line(error: BaseException, file: Path | None = None) -> str:
    """Describe an exception in one line.

    Parameters
    ----------
    error : exception
        The exception.
    file : Path, optional
        The user's file; its last line that was being run, or that cannot be read, is named.

    Examples
    --------
    >>> from tether.cli.errors import one_line
    >>> one_line(ZeroDivisionError("division by zero"))
    'ZeroDivisionError: division by zero'
    """
    text = " ".join(str(error).split())
    if isinstance(error, SyntaxError) and error.filename:
        where = f"{error.filename}:{error.lineno}"
        return f"{where}: {type(error).__name__}: {error.msg}"
    place = None if file is None else _place(error, file)
    if place is None and isinstance(error, CLEAR_MESSAGES):
        return text or type(error).__name__
    name = type(error).__name__ + (f": {text}" if text else "")
    return name if place is None else f"{place}: {name}"


def _place(error: BaseException, file: Path) -> str | None:
    """Return the line of the file in which an exception was raised, or from which it came."""
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).resolve() == file.resolve()
    ]
    return f"{file}:{frames[-1].lineno}: in {frames[-1].name}" if frames else None
