"""Find the line of a function that writes to something."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Collection
from typing import Any

_MOST_LINES = 2_000


class LineOfWrite:
    """Checks after every line of the user's code whether something has changed.

    It uses `sys.settrace`, which suspends a debugger, so it is only used once a write is known to
    happen.

    Parameters
    ----------
    changed : callable
        Tells whether something has changed.
    codes : collection of code objects
        The user's functions.

    Attributes
    ----------
    place : tuple or None
        Code object and line that made the first change.
    """

    def __init__(
        self, changed: Callable[[], object], codes: Collection[types.CodeType]
    ) -> None:
        self.place: tuple[types.CodeType, int] | None = None
        self._changed, self._codes = changed, codes
        self._last: tuple[types.CodeType, int] | None = None
        self._left = _MOST_LINES

    def __enter__(self) -> LineOfWrite:
        self._before = sys.gettrace()
        sys.settrace(self._look)
        return self

    def __exit__(self, *problem: object) -> None:
        sys.settrace(self._before)
        self._check()

    def _look(self, frame: types.FrameType, event: str, _: Any) -> Any:
        self._left -= 1
        if self.place is not None or self._left < 0:
            return None
        self._check()
        if frame.f_code.co_filename not in {code.co_filename for code in self._codes}:
            return None
        self._last = frame.f_code, frame.f_lineno
        return self._look

    def _check(self) -> None:
        if self.place is None and self._left >= 0 and self._last is not None and self._changed():
            self.place = self._last
