"""Exceptions that a traced function handles.

Arithmetic on traced numbers inside a `try` decides whether it raises, like an `if` whose condition
is that of the exception (`tether.trace.raising`), and raises it: the path through the handler is
then one of the paths through the function. A handler must catch only exceptions that the function
itself would raise there.
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

# Exceptions of operations on values that are not traced, in a line of the function itself.
_OF_UNTRACED = (ArithmeticError, KeyError, StopIteration)
_RAISING = ("raise", "call")


class _Guards(threading.local):
    """The exceptions that handlers around the current line of a traced function catch.

    There is one object per thread.
    """

    def __init__(self) -> None:
        self.begin({}, False)

    def begin(self, own: dict[str, Any], numpy_raises: bool) -> None:
        """Begin with a function whose private copy has these builtins."""
        self._caught: list[tuple[type, ...]] = []
        self._certain: list[BaseException] = []
        self._own, self._numpy_raises = own, numpy_raises

    def guard(self, ask: Callable[[], tuple] | None = None) -> _Guard:
        """Return the context for the body of a `try` that catches what `ask` returns, or all."""
        return _Guard(self._caught, _types_of(ask))

    def enter(self, caught: tuple[type, ...]) -> None:
        """Note what is caught from now on."""
        if _catch((caught,), FloatingPointError) or _catch((caught,), RuntimeWarning):
            if self._numpy_raises:
                refuse("handles what NumPy has been told to raise")
            self._refuse_if_numpy_raises()
        self._caught.append(caught)

    def _refuse_if_numpy_raises(self) -> None:
        if any(mode in _RAISING for mode in np.geterr().values()):
            refuse("handles what np.errstate makes NumPy raise")

    def enter_errstate(self) -> None:
        """Check the error modes of NumPy that `np.errstate` has just set."""
        if self.catch(FloatingPointError) or self.catch(RuntimeWarning):
            self._refuse_if_numpy_raises()

    def end(self) -> None:
        """Forget the function."""
        self.begin({}, False)

    @contextmanager
    def lifted(self) -> Iterator[None]:
        """Let no arithmetic raise inside this context."""
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
        """Refuse an operation that may raise a handled exception on an unknown condition."""
        if self.catch(error):
            refuse(f"may raise {error.__name__} in a try, which is not known to tracing")

    def raised_by(self, run: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Run something that raises exactly the exceptions that the function itself would."""
        try:
            return run(*args, **options)
        except Exception as problem:
            self._certain.append(problem)
            raise

    def has_raised(self, problem: BaseException) -> bool:
        """Tell whether an exception comes from traced arithmetic or an index out of range."""
        return _is_out_of_range(problem) or any(problem is known for known in self._certain)

    def is_certain(self, problem: BaseException) -> bool:
        """Tell whether the function itself would raise this exception for the same values."""
        if self.has_raised(problem):
            return True
        frame = _last_frame(problem)
        if frame is None or frame.f_globals.get("__builtins__") is not self._own:
            return False
        if isinstance(problem, AttributeError):
            return _is_plain(getattr(problem, "obj", None))
        known = isinstance(problem, _OF_UNTRACED) or _is_out_of_range(problem)
        return known or raised_on_purpose(problem)

    def check_caught(self) -> None:
        """Check the exception that a handler has caught, and refuse one that is not certain."""
        problem = sys.exception()
        if isinstance(problem, Untraceable):
            raise problem
        if problem is not None and not self.is_certain(problem):
            refuse(f"handles {type(problem).__name__}, which may come from tracing alone")


guards = _Guards()


class _Guard:
    """Context for the body of a `try`."""

    def __init__(self, stack: list[tuple[type, ...]], caught: tuple[type, ...]) -> None:
        self._stack, self._caught = stack, caught

    def __enter__(self) -> None:
        guards.enter(self._caught)

    def __exit__(self, *problem: object) -> None:
        self._stack.pop()


def _catch(stack: Iterable[tuple[type, ...]], error: type) -> bool:
    return any(issubclass(error, kind) for caught in stack for kind in caught)


def _types_of(ask: Callable[[], tuple] | None) -> tuple[type, ...]:
    """Types that are caught; everything if that cannot be found out."""
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


def _is_out_of_range(problem: BaseException) -> bool:
    """Tell whether an index was out of range; indices are never traced."""
    words = str(problem) if isinstance(problem, IndexError) else ""
    return "out of range" in words or "is out of bounds" in words


def _is_plain(value: Any) -> bool:
    """Tell whether a value is not a stand-in, so that it has the attributes of the original."""
    return not (type(value).__module__ or "").startswith("tether.")


def _last_frame(problem: BaseException) -> types.FrameType | None:
    place = problem.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    return None if place is None else place.tb_frame


def raised_on_purpose(problem: BaseException) -> bool:
    """Tell whether a `raise` statement raised an exception, rather than an operation or Ctrl-C."""
    place = problem.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    if place is None:
        return False
    code = place.tb_frame.f_code.co_code
    return dis.opname[code[place.tb_lasti]] == "RAISE_VARARGS"


def numpy_raises() -> bool:
    """Tell whether NumPy is set to raise exceptions instead of returning NaN or infinity."""
    modes = set(np.geterr().values())
    if modes.intersection(_RAISING):
        return True
    errors = (kind for action, _, kind, *_ in warnings.filters if action == "error")
    return "warn" in modes and any(issubclass(RuntimeWarning, kind) for kind in errors)
