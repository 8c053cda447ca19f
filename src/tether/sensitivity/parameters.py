"""Parameters: what a solution is differentiated with respect to."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tether.problem.naming import code_of, guess_names
from tether.problem.problem import Problem, plain_parameters
from tether.trace.arguments import ArgumentLayout, parameter_names
from tether.trace.reading import read_function, want_inputs

__all__ = ["Parameters", "find_parameters"]

WORDS = ("args", "y0", "all")
# A name followed by an index, of y0 or of an array.
INDEXED = re.compile(r"^(.*)\[(.+)\]$")
BRACKET = re.compile(r"\[")
# For so many arguments a message says why they are not parameters.
MAX_REASONS = 3


@dataclass(frozen=True, eq=False)
class Parameters:
    """What a solution is differentiated with respect to.

    Attributes
    ----------
    problem : Problem
        The problem whose arguments are meant.
    layout : ArgumentLayout
        How the floats in its arguments are numbered.
    names : tuple of str
        Names of the parameters.
    inputs : ndarray of int
        For every parameter, its number among the inputs of the programs; -1 if it is none.
    starts : ndarray of int
        For every parameter, its component of y0; -1 if it is none.
    hidden : tuple of str
        Names of the parameters that are floats outside of the arguments.
    """

    problem: Problem
    layout: ArgumentLayout
    names: tuple[str, ...]
    inputs: np.ndarray
    starts: np.ndarray
    hidden: tuple[str, ...] = ()

    def __len__(self) -> int:
        """Return the number of parameters."""
        return len(self.names)

    @cached_property
    def key(self) -> bytes:
        """Key of the programs of derivatives with respect to these parameters."""
        return self.inputs.tobytes()

    @cached_property
    def of_inputs(self) -> np.ndarray:
        """Numbers of the parameters that are inputs of the equations' programs."""
        return np.flatnonzero(self.inputs >= 0)

    @cached_property
    def of_args(self) -> np.ndarray:
        """Numbers of the parameters that are floats in the arguments, which all functions get."""
        return np.flatnonzero((self.inputs >= 0) & (self.inputs < self.layout.own))

    @property
    def values(self) -> np.ndarray:
        """Current values of the floats in the arguments."""
        return self.layout.flatten(self.problem.args)

    @cached_property
    def sizes(self) -> np.ndarray:
        """Sizes of the parameters, relative to which a change is small."""
        found, values = np.ones(len(self)), np.abs(self.values)
        own = self.of_args
        found[own] = values[self.inputs[own]]
        return np.where(found > 0.0, found, 1.0)

    def size(self, p: int) -> float:
        """Return the size of one parameter."""
        return float(self.sizes[p])

    def args_with(self, p: int, change: float) -> tuple:
        """Return the arguments with one parameter changed."""
        values = self.values
        values[self.inputs[p]] += change
        return self.args_of(values)

    def args_of(self, values: np.ndarray) -> tuple:
        """Return the arguments with other values of their floats."""
        return self.layout.replace(self.problem.args, lambda i: float(values[i]))


def find_parameters(
    sensitivity: Any, problem: Problem, n: int, variables: Sequence[str] | None = None
) -> Parameters:
    """Find the parameters that a user wants derivatives with respect to.

    Parameters
    ----------
    sensitivity : str or sequence of str
        "args", "y0", "all", or names.
    problem : Problem
        The problem whose arguments are meant.
    n : int
        Number of unknowns.
    variables : sequence of str, optional
        Names of the unknowns.

    Examples
    --------
    >>> from tether import Problem
    >>> from tether.sensitivity.parameters import find_parameters
    >>> problem = Problem(lambda t, y, yp, k: [yp[0] + k[0] * y[0] - k[1]], args=([2.0, 3.0],))
    >>> find_parameters(["k", "y0[0]"], problem, 1).names
    ('k[0]', 'k[1]', 'y0[0]')
    """
    if problem.capsule is not None:
        raise ValueError(
            "sensitivity: fun is a C function, whose parameters are not known; write the equations "
            "as a Python function with args"
        )
    called = _called(problem)
    layout = ArgumentLayout(problem.args, called=called)
    wanted = _as_list(sensitivity)
    finder = _Finder(problem, layout, n, variables)
    found = [place for name in wanted for place in finder.find(name)]
    names = [name for name, _, _ in found]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"sensitivity names {twice!r} twice")
    if not found:
        called += [f"args[{k}]" for k in range(len(called), len(problem.args))]
        why = [_why_not(name, arg) for name, arg in zip(called, problem.args, strict=False)]
        raise ValueError(
            "sensitivity='args', but there is no float in args to differentiate by; pass the "
            "parameters as floats or arrays of floats in args, or ask for 'y0'"
            + "".join(f"; {text}" for text in why[:MAX_REASONS])
        )
    _refuse_shared(problem.args, called)
    return Parameters(
        problem, layout, tuple(names), np.array([i for _, i, _ in found]),
        np.array([j for _, _, j in found]), tuple(finder.hidden),
    )


def _refuse_shared(args: tuple, called: Sequence[str]) -> None:
    """Refuse arguments that are the same object: a number in it has two names."""
    known: dict[int, str] = {}
    for k, arg in enumerate(args):
        name = called[k] if k < len(called) else f"args[{k}]"
        if not isinstance(arg, (np.ndarray, list, dict)):
            continue
        if id(arg) in known:
            raise ValueError(
                f"sensitivity: {known[id(arg)]} and {name} are the same object, so there is no "
                "derivative by one of them alone; pass a copy for the other"
            )
        known[id(arg)] = name


def _called(problem: Problem) -> list[str]:
    if not problem.args:
        return []
    problem = problem.written
    first, count = 4 if problem.fills else 3, len(problem.args)
    if problem.unpacks is not problem.fun:     # M y' = f(t, y, *args), and the like
        inside = plain_parameters(problem.unpacks)
        if inside is not None and len(inside) >= 2 + count:
            return list(inside[len(inside) - count :])
    plain = plain_parameters(problem.fun)
    if plain is not None and len(plain) == first + count:
        return list(plain[first:])
    return parameter_names(problem.fun, first, count)


def _as_list(sensitivity: Any) -> list[str]:
    if isinstance(sensitivity, str):
        return ["args", "y0"] if sensitivity == "all" else [sensitivity]
    if not isinstance(sensitivity, Iterable):
        raise TypeError(
            "sensitivity must be 'args', 'y0', 'all' or a list of names, got "
            f"{type(sensitivity).__name__}"
        )
    names = list(sensitivity)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"sensitivity must be a list of names, but it contains {name!r}")
    if not names:
        raise ValueError("sensitivity is an empty list: name the parameters, or leave it out")
    return names


Found = tuple[str, int, int]                   # name, number of the input, component of y0


class _Finder:
    """Finds parameters by name."""

    def __init__(
        self, problem: Problem, layout: ArgumentLayout, n: int, variables: Sequence[str] | None
    ) -> None:
        self.problem, self.layout, self.n = problem, layout, n
        self._given = variables
        self.hidden: list[str] = []
        self._outside: list[str] | None = None

    @cached_property
    def _variables(self) -> dict[str, int]:
        """Numbers of the unknowns by name."""
        names = self._given or guess_names(code_of(self.problem.unpacks), self.n)
        return {name.split(" [")[0]: j for j, name in enumerate(names)}       # without units

    @cached_property
    def _named(self) -> dict[str, list[int]]:
        """Numbers of the floats in the arguments by their names and those of what holds them."""
        found: dict[str, list[int]] = {}
        by_place = ArgumentLayout(self.problem.args).names
        for texts in (self.layout.names, by_place):
            inside: dict[str, list[int]] = {}
            for i, text in enumerate(texts):
                found.setdefault(text, [i])
                for place in BRACKET.finditer(text):
                    inside.setdefault(text[: place.start()], []).append(i)
            for name, numbers in inside.items():
                found.setdefault(name, numbers)
        return found

    def find(self, name: str) -> list[Found]:
        """Return all parameters that a name stands for."""
        if name == "args":
            return [(text, i, -1) for i, text in enumerate(self.layout.names)]
        if name == "y0":
            return [(f"y0[{j}]", -1, j) for j in range(self.n)]
        if name in WORDS:
            raise ValueError(f"sensitivity: {name!r} must be passed alone, not in a list")
        found = INDEXED.match(name)
        if found and found[1] == "y0":
            return [(name, -1, self._component(name, found[2]))]
        own = self._own(name)
        if own:
            return own
        return self._outside_args(name)

    def _component(self, name: str, text: str) -> int:
        """Component of y0, given by its number or by the name of the unknown."""
        try:
            j = int(text)
        except ValueError:
            if text in self._variables:
                return self._variables[text]
            raise ValueError(
                f"sensitivity: {name!r} names no unknown; the unknowns are "
                f"{', '.join(self._variables)}"
            ) from None
        if not -self.n <= j < self.n:
            raise ValueError(f"sensitivity: {name!r}, but there are {self.n} unknowns")
        return j % self.n

    def _own(self, name: str) -> list[Found]:
        """Floats in the arguments that have this name, or that are in a container of this name."""
        if name in self._named:
            names = self.layout.names
            return [(names[i], i, -1) for i in self._named[name]]
        called = [*_called(self.problem), *(f"args[{k}]" for k in range(len(self.problem.args)))]
        if name in called:
            value = [*self.problem.args[: len(_called(self.problem))], *self.problem.args][
                called.index(name)
            ]
            raise ValueError(f"sensitivity: {_why_not(name, value)}")
        return []

    def _outside_args(self, name: str) -> list[Found]:
        """Floats that the function reads from closures, attributes, containers and arrays."""
        if self._outside is None:
            self._outside = self._read_outside()
        names = self._outside
        found = [i for i, text in enumerate(names) if text == name or text.startswith(f"{name}[")]
        if not found:
            raise ValueError(self._unknown(name))
        if len(found) > len({names[i] for i in found}):
            raise ValueError(
                f"sensitivity: the function reads several floats that are called {name!r}, so it "
                "is not clear which one is meant; pass it in args"
            )
        self.hidden += [names[i] for i in found]
        return [(names[i], self.layout.own + i, -1) for i in found]

    def _read_outside(self) -> list[str]:
        problem = self.problem
        n = self.n + problem.n_quadratures
        want_inputs(problem.fun, n, problem.args, problem.fills)
        reading = read_function(problem.fun, n, problem.args, problem.fills)
        places = None if reading is None else reading.places()
        return [] if places is None else places.names

    def _unknown(self, name: str) -> str:
        known = [*self.layout.names, *(self._outside or ()), *(f"y0[{j}]" for j in range(self.n))]
        close = difflib.get_close_matches(name, known, 1, 0.5)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        shown = ", ".join(known[:8]) + (", ..." if len(known) > 8 else "")
        return f"sensitivity: there is no parameter {name!r}{hint} There are {shown}" if hint else (
            f"sensitivity: there is no parameter {name!r}; there are {shown}"
        )


def _why_not(name: str, value: Any) -> str:
    """Say why an argument is not a parameter."""
    if isinstance(value, (bool, int, np.integer, np.bool_)):
        return (
            f"{name} is {value!r}, an integer, and integers are taken for sizes and indices; pass "
            f"{float(value)!r} to differentiate by it"
        )
    if isinstance(value, np.ndarray) and value.dtype.kind in "iub":
        return f"{name} is an array of integers; pass it as an array of floats"
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return f"{name} is an array of {value.dtype}; pass it as an array of float64"
    if isinstance(value, float) and not math.isfinite(value):
        return f"{name} is {value!r}"
    return f"{name} is a {type(value).__name__}, in which there are no floats to differentiate by"
