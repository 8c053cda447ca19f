"""Further arguments of a residual: which of them are inputs of its program.

Floats and arrays of floats are inputs, also inside lists, tuples and dictionaries: a sweep over
them needs one trace. Everything else is part of the function, also objects of classes derived
from these types, but for named tuples. Integers are too, because they
serve as sizes and indices: a traced integer could not.

Floats that a function reaches in other ways can be inputs as well (`tether.trace.reading`); these
are called hidden.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tether.trace.arrays import TracedArray
from tether.trace.kinds import NP_FLOAT, OF_TYPE
from tether.trace.known import FLOATS, is_record
from tether.trace.scalar import of_kind

NOTHING = np.zeros(0)


class ArgumentLayout:
    """How the floats in the arguments are numbered.

    Parameters
    ----------
    args : sequence
        Arguments of the residual.
    fixed : bool
        Take all of them as constants.
    hidden : sequence of str
        Names of the inputs that are not floats of the arguments; these come last.
    called : sequence of str
        What the function calls its arguments, as far as that is known; see `parameter_names`.

    Attributes
    ----------
    own, size : int
        Number of inputs among the arguments, and of all.
    names : list of str
        ``mass``, ``lengths[2]``, ``args[2]['k']``, ...

    Examples
    --------
    >>> from tether.trace.arguments import ArgumentLayout
    >>> layout = ArgumentLayout((2.5, {"k": 4.0, "cells": 10}), called=["mass"])
    >>> layout.names, layout.flatten((3.0, {"k": 5.0, "cells": 10}))
    (['mass', "args[1]['k']"], array([3., 5.]))
    """

    def __init__(
        self,
        args: Sequence[Any] = (),
        fixed: bool = False,
        hidden: Sequence[str] = (),
        called: Sequence[str] = (),
    ) -> None:
        self.fixed = fixed
        own = [*called, *(f"args[{k}]" for k in range(len(called), len(args)))]
        self._shapes = [] if fixed else [
            (name, value.shape)
            for arg, text in zip(args, own, strict=True) for name, value in _floats(arg, text)
        ]
        self._hidden = tuple(hidden)
        self.own = sum(math.prod(shape) for _, shape in self._shapes)
        self.size = self.own + len(self._hidden)
        self.shifts = 0

    @cached_property
    def names(self) -> list[str]:
        """Names of the inputs."""
        found = [
            f"{name}[{', '.join(map(str, index))}]" if shape else name
            for name, shape in self._shapes for index in np.ndindex(shape)
        ]
        return [*found, *self._hidden, *(f"shift {k}" for k in range(self.shifts))]

    def with_shifts(self, count: int) -> ArgumentLayout:
        """Add inputs that are zero unless a run wants them otherwise."""
        other = copy(self)
        other.__dict__.pop("names", None)
        other.shifts = self.shifts + count
        other.size = self.size + count
        return other

    def flatten(self, args: Sequence[Any], hidden: Sequence[float] | np.ndarray = ()) -> np.ndarray:
        """Values of the inputs, in order."""
        if not self.size:
            return NOTHING
        own = [value.ravel() for _, value in _floats(tuple(args), "args")] if self.own else []
        return np.concatenate([*own, np.asarray(hidden, float), np.zeros(self.shifts)])

    def replace(
        self, args: Sequence[Any], make: Callable[[int], Any],
        make_array: Callable[[np.ndarray], Any] | None = None,
    ) -> tuple:
        """Arguments with each input replaced by what `make` gives for its number.

        Arrays of inputs are replaced by what `make_array` gives for their numbers.
        """
        if self.fixed:
            return tuple(args)
        numbers = iter(range(self.own))
        return _Replacement(lambda: next(numbers), make, make_array).of(tuple(args))


def parameter_names(fun: Callable[..., Any], first: int, count: int) -> list[str]:
    """Return what a function calls the arguments from number `first` on; fewer if it does not say.

    Examples
    --------
    >>> from tether.trace.arguments import parameter_names
    >>> parameter_names(lambda t, y, yp, mass, *lengths: [], 3, 3)
    ['mass', 'lengths[0]', 'lengths[1]']
    """
    try:
        parameters = list(inspect.signature(fun).parameters.values())
    except (TypeError, ValueError):
        return []
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    rest = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), None)
    found = names[first : first + count]
    if rest is not None:
        skipped = max(first - len(names), 0)
        found += [f"{rest}[{k + skipped}]" for k in range(count - len(found))]
    return found


Place = tuple[int, int | str]          # identity of what holds a float, and where it holds it


@dataclass(frozen=True)
class HiddenInputs:
    """Where the inputs of a program lie that are not floats of `args`.

    Attributes
    ----------
    numbers : dict
        By place. A place within a container is that in its `content`.
    arrays : dict
        By identity: the number of every element that is an input.
    names : list of str
        What a reader of a formula would call them.
    """

    numbers: dict[Place, int]
    arrays: dict[int, dict[int, int]]
    names: list[str]


def _is_float_array(value: Any) -> bool:
    return type(value) is np.ndarray and value.dtype == np.float64


def _floats(value: Any, name: str) -> Iterator[tuple[str, np.ndarray]]:
    """Give floats and arrays of floats inside a value, as arrays, by their names."""
    if type(value) in FLOATS:
        yield name, np.array(float(value))
    elif _is_float_array(value):
        yield name, value
    elif type(value) is dict:
        for key, part in value.items():
            yield from _floats(part, f"{name}[{key!r}]")
    elif type(value) in (list, tuple) or is_record(type(value)):
        for i, part in enumerate(value):
            yield from _floats(part, f"{name}[{i}]")


class _Replacement:
    """Puts something else in the place of every float; what was one object stays one."""

    def __init__(
        self, number: Callable[[], int], make: Callable[[int], Any],
        make_array: Callable[[np.ndarray], Any] | None,
    ) -> None:
        self._number, self._make, self._make_array = number, make, make_array
        self._known: dict[int, Any] = {}

    def of(self, value: Any) -> Any:
        """Give what stands for a value."""
        if type(value) in FLOATS:
            return _like(value, self._make(self._number()))
        if not (_is_float_array(value) or type(value) in (list, tuple, dict)
                or is_record(type(value))):
            return value
        result = self._container(value)
        return self._known.setdefault(id(value), result)

    def _container(self, value: Any) -> Any:
        if _is_float_array(value):
            return self._array(value)
        if type(value) is dict:
            return {key: self.of(part) for key, part in value.items()}
        parts = [self.of(part) for part in value]
        return parts if type(value) is list else tuple.__new__(type(value), parts)

    def _array(self, value: np.ndarray) -> np.ndarray:
        numbers = [self._number() for _ in range(value.size)]
        if self._make_array is not None:
            return self._make_array(np.array(numbers, np.intp).reshape(value.shape))
        elements = [of_kind(NP_FLOAT, self._make(number)) for number in numbers]
        if all(type(x) is float for x in elements):
            return np.array(elements).reshape(value.shape)
        result = np.empty(value.size, dtype=object)
        result[:] = elements
        return result.reshape(value.shape).view(TracedArray)


def _like(value: Any, made: Any) -> Any:
    """Give what stands for a float as one of the same type, Python's or NumPy's."""
    made = of_kind(OF_TYPE[type(value)], made)
    return np.float64(made) if type(value) is np.float64 and type(made) is float else made
