"""What differs from member to member: arguments and starting values, checked."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tether.problem.problem import Problem

__all__ = ["Members", "Shared", "read_members", "shared"]

NUMBERS = (int, float, np.integer, np.floating)


@dataclass(frozen=True, eq=False)
class Shared:
    """An argument that is the same for all members, whatever its shape."""

    value: Any


def shared(value: Any) -> Shared:
    """Mark an argument of `tether.solve_ensemble` that is the same for all members.

    Only needed for arrays, whose first axis would otherwise count the members, and for lists of
    numbers that are as long as there are members.

    Parameters
    ----------
    value : object
        The argument.

    Examples
    --------
    Two members with different rates, and a vector of weights for both:

    >>> import numpy as np
    >>> from tether import solve_ensemble
    >>> from tether.ensemble import shared
    >>> def decay(t, y, yp, rate, weights):
    ...     return [yp[0] + rate * weights[0] * y[0] + weights[1]]
    >>> rates, weights = np.array([1.0, 2.0]), np.array([1.0, 0.0, 0.0])
    >>> result = solve_ensemble(decay, (0, 1), [1.0], args=(rates, shared(weights)))
    >>> result.y[:, 0, -1].round(4).tolist()
    [0.3679, 0.1353]
    """
    return Shared(value)


@dataclass(frozen=True, eq=False)
class Members:
    """The members of an ensemble, or some consecutive ones of them.

    Attributes
    ----------
    count : int
        Number of members.
    args : tuple
        Arguments: an array with a row for every member, or a `Shared` value.
    names : tuple of str
        Names of the arguments.
    y0, yp0 : ndarray
        Starting values: a row for every member, or one row for all; no row if y' is not given.
    """

    count: int
    args: tuple[Any, ...]
    names: tuple[str, ...]
    y0: np.ndarray
    yp0: np.ndarray

    def args_of(self, i: int) -> tuple[Any, ...]:
        """Arguments of one member, as they would be passed to `solve_dae`."""
        return tuple([_entry(value, i) for value in self.args])

    def y0_of(self, i: int) -> np.ndarray:
        """Return the starting values of one member."""
        return self.y0[i if len(self.y0) > 1 else 0].copy()

    def yp0_of(self, i: int) -> np.ndarray | None:
        """Return the starting slopes of one member; None if they are not given."""
        if not len(self.yp0):
            return None
        return self.yp0[i if len(self.yp0) > 1 else 0].copy()

    def _finite(self) -> np.ndarray:
        """Tell which members are without infinities and NaN."""
        fine = np.ones(self.count, bool)
        for value in self.args:
            if not isinstance(value, Shared) and value.dtype.kind == "f":
                rows = value.reshape(self.count, math.prod(value.shape[1:]))
                fine &= np.isfinite(rows).all(axis=1)
        for rows in (self.y0, self.yp0):
            if len(rows) > 1:
                fine &= np.isfinite(rows).all(axis=1)
        return fine

    def first_finite(self) -> int:
        """Return the number of the first member without infinities and NaN; 0 if there is none."""
        return int(np.argmax(self._finite())) if self.count else 0

    def is_finite(self, i: int) -> bool:
        """Tell whether a member is without infinities and NaN."""
        return bool(self.part(i, i + 1)._finite()[0])

    def spread(self, most: int) -> tuple[int, ...]:
        """Numbers of some members, evenly spaced from the first to the last."""
        fine = np.flatnonzero(self._finite())
        if not len(fine):
            return ()
        chosen = np.linspace(0, len(fine) - 1, min(most, len(fine))).round().astype(int)
        return tuple(np.unique(fine[chosen]).tolist())

    def pick(self, numbers: Sequence[int]) -> Members:
        """Members with the given numbers."""
        rows = list(numbers)
        args = tuple([value if isinstance(value, Shared) else value[rows] for value in self.args])
        y0 = self.y0[rows] if len(self.y0) > 1 else self.y0
        yp0 = self.yp0[rows] if len(self.yp0) > 1 else self.yp0
        return replace(self, count=len(rows), args=args, y0=y0, yp0=yp0)

    def part(self, first: int, last: int) -> Members:
        """Members from `first` up to `last`."""
        args = tuple([
            value if isinstance(value, Shared) else value[first:last] for value in self.args
        ])
        y0 = self.y0[first:last] if len(self.y0) > 1 else self.y0
        yp0 = self.yp0[first:last] if len(self.yp0) > 1 else self.yp0
        return replace(self, count=last - first, args=args, y0=y0, yp0=yp0)

    @property
    def varying(self) -> dict[str, np.ndarray]:
        """Arguments that vary, by name."""
        return {
            name: value for name, value in zip(self.names, self.args, strict=True)
            if not isinstance(value, Shared)
        }


def _entry(value: Any, i: int) -> Any:
    if isinstance(value, Shared):
        return value.value
    if value.ndim > 1:
        return np.array(value[i])
    found = value[i]
    return found.item() if isinstance(found, np.generic) else found


def read_members(fun: Any, args: Any, y0: Any, yp0: Any) -> Members:
    """Find out how many members there are and what differs between them.

    Raises
    ------
    ValueError, TypeError
        An argument is wrong or ambiguous; the message names it.
    """
    start = _values("y0", y0)
    slopes = np.zeros((0, start.shape[1])) if yp0 is None else _values("yp0", yp0)
    if slopes.shape[1] != start.shape[1]:
        raise ValueError(
            f"yp0 must have as many unknowns as y0 ({start.shape[1]}), got {slopes.shape[1]}"
        )
    named = _named(fun, args)
    if isinstance(fun, Problem) and named:
        raise ValueError(
            "args belong to the Problem; to vary them pass its function as fun, with args"
        )
    given = [(name, _as_given(name, value)) for name, value in named]
    lengths = {name: len(value) for name, value in given if isinstance(value, np.ndarray)}
    if np.ndim(y0) == 2:
        lengths["y0"] = len(start)
    if yp0 is not None and np.ndim(yp0) == 2:
        lengths["yp0"] = len(slopes)
    count = _count(lengths)
    return Members(
        count, tuple([_shared_or_array(name, value, count) for name, value in given]),
        tuple([name for name, _ in given]), start, slopes,
    )


def _values(name: str, values: Any) -> np.ndarray:
    """Return starting values as rows."""
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "fiub":
            raise TypeError
        array = np.array(array, float, order="C")
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be real numbers, got {values!r}") from None
    if array.ndim not in (1, 2) or array.shape[-1] == 0:
        raise ValueError(
            f"{name} must have shape (n,), or (members, n) where it varies, got {array.shape}"
        )
    return array.reshape(-1, array.shape[-1])


def _named(fun: Any, args: Any) -> list[tuple[str, Any]]:
    """Return the arguments in order, with their names."""
    if hasattr(args, "columns") and hasattr(args, "to_numpy"):     # a DataFrame of pandas
        args = {str(name): args[name].to_numpy() for name in args.columns}
    if isinstance(args, Mapping):
        return _by_name(fun, args)
    if isinstance(args, (str, bytes)) or not isinstance(args, Sequence):
        raise TypeError(
            "args must be a sequence with one entry per parameter of fun, a mapping or a "
            f"DataFrame by their names, got {type(args).__name__}"
        )
    known = _parameters(fun)
    names = known[: len(args)] if known is not None and len(known) >= len(args) else []
    names = names or [f"args[{k}]" for k in range(len(args))]
    return list(zip(names, args, strict=True))


def _by_name(fun: Any, args: Mapping[str, Any]) -> list[tuple[str, Any]]:
    known = _parameters(fun)
    if known is None:
        raise TypeError("args by name need a fun whose parameters have names: pass a sequence")
    unknown = [name for name in args if name not in known]
    if unknown:
        raise TypeError(f"args has {unknown[0]!r}, which is not a parameter of fun: {known}")
    missing = [name for name in known if name not in args]
    if missing:
        raise TypeError(f"args lacks {missing[0]!r}, a parameter of fun")
    return [(name, args[name]) for name in known]


def _parameters(fun: Any) -> list[str] | None:
    """Names of the parameters of fun after t, y and yp; None if they are not known."""
    function: Callable[..., Any] = fun.fun if isinstance(fun, Problem) else fun
    try:
        found = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None
    if any(p.kind not in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in found):
        return None
    names = [p.name for p in found][3:]
    return names[1:] if names[:1] == ["out"] else names


def _as_given(name: str, value: Any) -> Any:
    """Return an array if the argument may vary, otherwise the value as it is."""
    if isinstance(value, Shared):
        return value
    if inspect.isgenerator(value) or isinstance(value, (range, map, filter, zip)):
        raise TypeError(
            f"{name} is a {type(value).__name__}: pass np.array(list(...)) if it varies, or "
            "shared(list(...)) if it is one argument for all members"
        )
    if hasattr(value, "to_numpy") and not isinstance(value, np.ndarray):       # a Series
        value = value.to_numpy()
    if not isinstance(value, np.ndarray) or value.ndim == 0:
        return value
    if value.dtype.kind == "c":
        raise TypeError(f"{name} must be real, got complex numbers")
    return np.ascontiguousarray(value, float) if value.dtype.kind == "f" else value


def _count(lengths: dict[str, int]) -> int:
    if not lengths:
        raise ValueError(
            "nothing varies from member to member: pass arrays in args, whose first axis counts "
            "the members, or y0 of shape (members, n); for one run there is solve_dae"
        )
    if len(set(lengths.values())) > 1:
        words = ", ".join(f"{name}: {length}" for name, length in lengths.items())
        raise ValueError(
            f"all arguments that vary must have first axes of the same length, got {words}. Pass "
            "an array that is the same for all members as shared(array), from tether.ensemble; for "
            "all combinations of several arguments use tether.ensemble.product"
        )
    return next(iter(lengths.values()))


def _shared_or_array(name: str, value: Any, count: int) -> Any:
    if isinstance(value, Shared) or (isinstance(value, np.ndarray) and value.ndim):
        return value
    is_list = isinstance(value, (list, tuple)) and len(value) > 0
    if is_list and len(value) == count and all(isinstance(x, NUMBERS) for x in value):
        raise ValueError(
            f"{name} is a {type(value).__name__} of {count} numbers, and there are {count} "
            "members: pass np.array(...) if it varies, or shared(...), from tether.ensemble, if "
            "it is one argument for all of them"
        )
    return Shared(value)
