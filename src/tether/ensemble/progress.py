"""Progress of an ensemble: a line on standard error, or calls of a function of the user's."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, TextIO

__all__ = ["Progress", "read_progress"]

BAR_WIDTH = 30
SECONDS_BETWEEN_UPDATES = 0.1


class Progress:
    """A bar with the number of members and an estimate of the time left."""

    def __init__(self, total: int, stream: TextIO | None = None) -> None:
        self.total, self.stream = total, stream or sys.stderr
        self._next = 0.0

    def update(self, done: int, failed: int, seconds_left: float | None) -> None:
        """Redraw, but not more often than ten times a second."""
        now = time.monotonic()
        if now >= self._next or done >= self.total:
            self._next = now + SECONDS_BETWEEN_UPDATES
            self._draw(done, failed, seconds_left)

    def _draw(self, done: int, failed: int, seconds_left: float | None) -> None:
        share = done / self.total if self.total else 1.0
        bar = ("#" * round(share * BAR_WIDTH)).ljust(BAR_WIDTH)
        left = "" if seconds_left is None else f"  {in_words(seconds_left)} left"
        bad = f"  {failed} failed" if failed else ""
        line = f"[{bar}] {share:6.1%}  {done}/{self.total} members{bad}{left}"
        self.stream.write(f"\r{line:<79}")
        self.stream.flush()

    def close(self) -> None:
        """End the line."""
        self.stream.write("\n")
        self.stream.flush()


class _Called:
    """Passes the numbers on to a function of the user's."""

    def __init__(self, function: Callable[..., Any], total: int) -> None:
        self._function, self.total = function, total

    def update(self, done: int, failed: int, seconds_left: float | None) -> None:
        """Call the function."""
        self._function(done, self.total, seconds_left)

    def close(self) -> None:
        """Do nothing."""


def read_progress(progress: Any, total: int) -> Progress | _Called | None:
    """Return an object that shows progress, or None."""
    if isinstance(progress, bool):
        return Progress(total) if progress else None
    if callable(progress):
        return _Called(progress, total)
    raise TypeError(
        f"progress must be a bool or a function of (done, total, seconds_left), got {progress!r}"
    )


def in_words(seconds: float) -> str:
    """Write a time for a reader.

    Examples
    --------
    >>> from tether.ensemble.progress import in_words
    >>> in_words(3.2), in_words(200), in_words(8000)
    ('3 s', '3 min 20 s', '2 h 13 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
