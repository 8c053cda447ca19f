"""The arguments passed to a residual as `args`: which of them are inputs of its program.

Floats and arrays of floats are inputs, also inside lists, tuples, named tuples and dictionaries,
so that a sweep over them needs only one trace. Everything else counts as part of the function:
objects of other classes, even of classes derived from these, and integers, because they serve as
sizes and indices, which a traced number cannot do.

Floats that a function reaches in other ways, such as global variables, can be inputs as well
(`tether.trace.reading`); these are called hidden.
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

NO_VALUES = np.zeros(0)


class ArgumentLayout:
    """Assigns a number to each float in the arguments; these floats are inputs of a program.

    Parameters
    ----------
    args : sequence
        Arguments of the residual.
    fixed : bool
        Treat all of them as constants.
    hidden : sequence of str
        Names of the inputs that are not in the arguments; these come last.
    called : sequence of str
        The function's own names for its arguments, as far as known; see `parameter_names`.

    Attributes
    ----------
    own, size : int
        Number of inputs in the arguments, and of all inputs.
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
        found: list[str] = []
        for name, shape in self._shapes:
            found += [
                f"{name}[{', '.join(map(str, index))}]" for index in np.ndindex(shape)
            ] if shape else [name]
        return [*found, *self._hidden, *(f"shift {k}" for k in range(self.shifts))]

    def with_shifts(self, count: int) -> ArgumentLayout:
        """Return a layout with further inputs, which are zero unless a run sets them."""
        other = copy(self)
        other.__dict__.pop("names", None)
        other.shifts = self.shifts + count
        other.size = self.size + count
        return other

    def flatten(self, args: Sequence[Any], hidden: Sequence[float] | np.ndarray = ()) -> np.ndarray:
        """Values of the inputs, in order."""
        if not self.size:
            return NO_VALUES
        own = [value.ravel() for _, value in _floats(tuple(args), "args")] if self.own else []
        return np.concatenate([*own, np.asarray(hidden, float), np.zeros(self.shifts)])

    def replace(
        self, args: Sequence[Any], make: Callable[[int], Any],
        make_array: Callable[[np.ndarray], Any] | None = None,
    ) -> tuple:
        """Return the arguments with each input replaced by `make` of its number.

        Arrays of inputs are replaced by `make_array` of their numbers.
        """
        if self.fixed:
            return tuple(args)
        numbers = iter(range(self.own))
        return _Replacement(lambda: next(numbers), make, make_array).of(tuple(args))


def parameter_names(fun: Callable[..., Any], first: int, count: int) -> list[str]:
    """Return a function's names for its arguments from number `first` on, as far as it has any.

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


Place = tuple[int, int | str]          # id of the object that holds a float, and index or name


@dataclass(frozen=True)
class HiddenInputs:
    """Where to find the inputs of a program that are not floats in `args`.

    Attributes
    ----------
    numbers : dict
        The number of an input by its place. In a container the index counts its `content`.
    arrays : dict
        By the id of an array: the numbers of those elements that are inputs.
    names : list of str
        Their names in formulas.
    """

    numbers: dict[Place, int]
    arrays: dict[int, dict[int, int]]
    names: list[str]


def _is_float_array(value: Any) -> bool:
    return type(value) is np.ndarray and value.dtype == np.float64


def _floats(value: Any, name: str) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the floats and arrays of floats inside a value with their names, all as arrays."""
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
    """Replaces every float; an object that occurs several times is replaced by one object."""

    def __init__(
        self, number: Callable[[], int], make: Callable[[int], Any],
        make_array: Callable[[np.ndarray], Any] | None,
    ) -> None:
        self._number, self._make, self._make_array = number, make, make_array
        self._known: dict[int, Any] = {}

    def of(self, value: Any) -> Any:
        """Return the replacement of a value."""
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
    """Convert the replacement of a float to the type of that float, Python's or NumPy's."""
    made = of_kind(OF_TYPE[type(value)], made)
    return np.float64(made) if type(value) is np.float64 and type(made) is float else made
