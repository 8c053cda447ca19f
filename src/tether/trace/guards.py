"""Exceptions that a traced function handles.

Arithmetic on traced numbers that is run in a `try` decides whether it raises, like an `if` whose
condition is that of the exception (`tether.trace.raising`), and raises it: the way through the
handler is then one of the ways through the function. A handler may not catch anything else but what
the function itself would have met there.
"""

from __future__ import annotations

import dis
import sys
import threading
import types
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tether.trace.refusal import Untraceable, refuse

__all__ = ["guards", "numpy_raises", "raised_on_purpose"]

# What Python raises for values that are no traced numbers, in a line of the function itself.
_OF_CONSTANTS = (ArithmeticError, KeyError, StopIteration)
_RAISING = ("raise", "call")


class _Guards(threading.local):
    """What the handlers around the present line of a traced function catch, in this thread."""

    def __init__(self) -> None:
        self.begin({}, False)

    def begin(self, own: dict[str, Any], numpy_raises: bool) -> None:
        """Begin with a function whose copy has these builtins."""
        self._caught: list[tuple[type, ...]] = []
        self._certain: list[BaseException] = []
        self._own, self._numpy_raises = own, numpy_raises

    def guard(self, ask: Callable[[], tuple] | None = None) -> _Guard:
        """Stand around the body of a `try` that catches what `ask` says, by default everything."""
        return _Guard(self._caught, _types_of(ask))

    def enter(self, caught: tuple[type, ...]) -> None:
        """Take notice of what will be caught from now on."""
        if _catch((caught,), FloatingPointError) or _catch((caught,), RuntimeWarning):
            if self._numpy_raises:
                refuse("handles what NumPy has been told to raise")
            self._refuse_if_numpy_raises()
        self._caught.append(caught)

    def _refuse_if_numpy_raises(self) -> None:
        if any(mode in _RAISING for mode in np.geterr().values()):
            refuse("handles what np.errstate makes NumPy raise")

    def enter_errstate(self) -> None:
        """Take notice that NumPy has been told what to do about errors."""
        if self.catch(FloatingPointError) or self.catch(RuntimeWarning):
            self._refuse_if_numpy_raises()

    def end(self) -> None:
        """Forget the function and all that belongs to it."""
        self.begin({}, False)

    @contextmanager
    def lifted(self) -> Iterator[None]:
        """Raise nothing meanwhile."""
        before, self._caught = self._caught, []
        try:
            yield
        finally:
            self._caught = before

    def __bool__(self) -> bool:
        return bool(self._caught)

    def catch(self, error: type) -> bool:
        """Tell whether an exception would be caught."""
        return _catch(self._caught, error)

    def refuse_if_caught(self, error: type) -> None:
        """Give up where something might raise a handled exception, nobody knows when."""
        if self.catch(error):
            refuse(f"may raise {error.__name__} in a try, which is not known to tracing")

    def raised_by(self, run: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Run what raises the same exceptions as the function itself would."""
        try:
            return run(*args, **options)
        except Exception as problem:
            self._certain.append(problem)
            raise

    def has_raised(self, problem: BaseException) -> bool:
        """Tell whether traced arithmetic has raised an exception, or an index beyond the end."""
        return _is_beyond(problem) or any(problem is known for known in self._certain)

    def is_certain(self, problem: BaseException) -> bool:
        """Tell whether the function itself would raise this exception, with the same numbers."""
        if self.has_raised(problem):
            return True
        frame = _last_frame(problem)
        if frame is None or frame.f_globals.get("__builtins__") is not self._own:
            return False
        if isinstance(problem, AttributeError):
            return _is_plain(getattr(problem, "obj", None))
        known = isinstance(problem, _OF_CONSTANTS) or _is_beyond(problem)
        return known or raised_on_purpose(problem)

    def check_caught(self) -> None:
        """Look at the exception that a handler has caught."""
        problem = sys.exception()
        if isinstance(problem, Untraceable):
            raise problem
        if problem is not None and not self.is_certain(problem):
            refuse(f"handles {type(problem).__name__}, which may come from tracing alone")


guards = _Guards()


class _Guard:
    """Stands around the body of a `try`."""

    def __init__(self, stack: list[tuple[type, ...]], caught: tuple[type, ...]) -> None:
        self._stack, self._caught = stack, caught

    def __enter__(self) -> None:
        guards.enter(self._caught)

    def __exit__(self, *problem: object) -> None:
        self._stack.pop()


def _catch(stack: Iterable[tuple[type, ...]], error: type) -> bool:
    return any(issubclass(error, kind) for caught in stack for kind in caught)


def _types_of(ask: Callable[[], tuple] | None) -> tuple[type, ...]:
    """Find out what is caught; everything, where that cannot be found out."""
    try:
        found = (BaseException,) if ask is None else tuple(_flat(ask()))
    except Exception:
        return (BaseException,)
    known = all(isinstance(kind, type) and issubclass(kind, BaseException) for kind in found)
    return found if known else (BaseException,)


def _flat(kinds: tuple) -> Iterator[Any]:
    for kind in kinds:
        if type(kind) is tuple:
            yield from _flat(kind)
        else:
            yield kind


def _is_beyond(problem: BaseException) -> bool:
    """Tell whether an index was beyond the end; indices are never traced."""
    words = str(problem) if isinstance(problem, IndexError) else ""
    return "out of range" in words or "is out of bounds" in words


def _is_plain(value: Any) -> bool:
    """Tell whether a value is itself in a traced function, or has the same attributes."""
    return not (type(value).__module__ or "").startswith("tether.")


def _last_frame(problem: BaseException) -> types.FrameType | None:
    place = problem.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    return None if place is None else place.tb_frame


def raised_on_purpose(problem: BaseException) -> bool:
    """Tell a `raise` that is written in the function from a real Ctrl-C."""
    place = problem.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    if place is None:
        return False
    code = place.tb_frame.f_code.co_code
    return dis.opname[code[place.tb_lasti]] == "RAISE_VARARGS"


def numpy_raises() -> bool:
    """Tell whether NumPy raises an exception instead of giving NaN or infinity."""
    modes = set(np.geterr().values())
    if modes.intersection(_RAISING):
        return True
    errors = (kind for action, _, kind, *_ in warnings.filters if action == "error")
    return "warn" in modes and any(issubclass(RuntimeWarning, kind) for kind in errors)
