"""The parameters to be fitted: their names, first guesses, bounds and scales."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tether.base.checks import as_numbers
from tether.problem.problem import Problem
from tether.sensitivity.parameters import Parameters, find_parameters
from tether.trace.arguments import parameter_names

__all__ = ["Sought", "args_by_name", "as_mapping", "places", "read_sought"]


@dataclass(frozen=True, eq=False)
class Sought:
    """The parameters of a fit. The search works on x, which is p, or 1 + log(p / start).

    The first step of the search is at most as long as x, so it changes p by a factor of at most e.

    Attributes
    ----------
    names : tuple of str
        Their names.
    start, low, high : ndarray
        First guesses and bounds.
    log : ndarray of bool
        Parameters whose logarithms are fitted.
    """

    names: tuple[str, ...]
    start: np.ndarray
    low: np.ndarray
    high: np.ndarray
    log: np.ndarray

    def x_of(self, p: np.ndarray) -> np.ndarray:
        """Return x for parameters p."""
        with np.errstate(divide="ignore"):
            return np.where(self.log, 1.0 + np.log(np.where(self.log, p / self._unit, 1.0)), p)

    def p_of(self, x: np.ndarray) -> np.ndarray:
        """Return the parameters for x."""
        return np.where(self.log, self._unit * np.exp(np.where(self.log, x - 1.0, 0.0)), x)

    @property
    def _unit(self) -> np.ndarray:
        return np.where(self.log, self.start, 1.0)

    def slopes(self, p: np.ndarray) -> np.ndarray:
        """Return dp/dx."""
        return np.where(self.log, p, 1.0)

    def x_bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the bounds of x."""
        return self.x_of(np.where(self.log, np.maximum(self.low, 0.0), self.low)), self.x_of(
            self.high
        )


def as_mapping(fun: Any, p0: Any, args: Any) -> tuple[dict[str, Any], Any]:
    """Return p0 by name, and args; if p0 is a sequence, it has values for all of args."""
    if isinstance(p0, Mapping):
        for name in p0:
            if not isinstance(name, str):
                raise TypeError(f"p0 must have names as its keys, got {name!r}")
        if not p0:
            raise ValueError("p0 is empty: name at least one parameter")
        return {name: _floats(name, value) for name, value in p0.items()}, args
    if isinstance(p0, (str, bytes)) or not isinstance(p0, (Sequence, np.ndarray)):
        raise TypeError(
            f"p0 must be a dict of names and starting values, or a sequence for args, got {p0!r}"
        )
    if len(args) or isinstance(fun, Problem):
        raise ValueError("p0 must be a dict of names and starting values if args are given as well")
    if not len(p0):
        raise ValueError("p0 is empty: give at least one parameter")
    values = tuple(_floats(f"p0[{k}]", value) for k, value in enumerate(p0))
    problem = Problem(fun, args=values)
    called = parameter_names(problem.fun, 4 if problem.fills else 3, len(values))
    names = [*called, *(f"args[{k}]" for k in range(len(called), len(values)))]
    return dict(zip(names, values, strict=True)), values


def _floats(name: str, value: Any) -> float | np.ndarray:
    numbers = as_numbers(f"p0: {name}", value)
    if numbers.dtype.kind not in "fiu":
        raise TypeError(f"p0: {name} must be a number or an array of numbers, got {value!r}")
    if not numbers.size or not np.all(np.isfinite(numbers)):
        raise ValueError(f"p0: {name} must be finite, got {value!r}")
    return float(numbers) if numbers.ndim == 0 else numbers.astype(float)


def args_by_name(fun: Any, args: Any, p0: Mapping[str, Any]) -> tuple:
    """Return all arguments of a function: from `args`, in order or by name, and from `p0`.

    Examples
    --------
    >>> from tether.fitting.sought import args_by_name
    >>> args_by_name(lambda t, y, yp, k, volume: [], {"volume": 2.0}, {"k": 0.5})
    (0.5, 2.0)
    """
    if isinstance(args, Mapping) or not len(args):
        return _from_names(fun, dict(args), p0)
    values = list(args)
    problem = Problem(fun, args=tuple(values))
    called = parameter_names(problem.fun, 4 if problem.fills else 3, len(values))
    for k, name in enumerate(called):
        if name in p0:
            values[k] = _in_place_of(values[k], p0[name], name)
    return tuple(values)


def _from_names(fun: Any, given: dict[str, Any], p0: Mapping[str, Any]) -> tuple:
    try:
        parameters = list(inspect.signature(fun).parameters.values())[3:]
    except (TypeError, ValueError):
        return ()
    if parameters and parameters[0].name == "out":
        parameters = parameters[1:]
    plain = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    found = []
    unknown = sorted(set(given) - {p.name for p in plain})
    if unknown:
        raise ValueError(f"args: {unknown[0]!r} is not an argument of fun{_known(plain)}")
    for p in plain:
        if p.name in p0:
            found.append(_in_place_of(given.get(p.name), p0[p.name], p.name))
        elif p.name in given:
            found.append(given[p.name])
        elif p.default is not p.empty:
            found.append(p.default)
        else:
            raise ValueError(f"args: fun needs a value of {p.name!r}, in args or in p0")
    return tuple(found)


def _in_place_of(given: Any, value: float | np.ndarray, name: str) -> float | np.ndarray:
    """Return the value that replaces an argument: a single one fills a whole array."""
    if not isinstance(given, np.ndarray) or given.ndim == 0:
        return value
    if np.ndim(value) and np.shape(value) != given.shape:
        raise ValueError(f"p0: {name} has shape {np.shape(value)}, but in args {given.shape}")
    return np.broadcast_to(value, given.shape).copy()


def _known(plain: Sequence[inspect.Parameter]) -> str:
    names = ", ".join(p.name for p in plain)
    return f"; it has {names}" if names else ", which has none"


def places(p0: Mapping[str, Any], problem: Problem, n: int, variables: Sequence[str]) -> Parameters:
    """Find the places of the parameters in the arguments and starting values of an experiment."""
    try:
        found = find_parameters(list(p0), problem, n, variables)
    except ValueError as error:
        raise ValueError(str(error).replace("sensitivity", "p0", 1)) from None
    if found.hidden:
        raise ValueError(
            f"p0: {found.hidden[0]!r} is neither an argument of fun nor a starting value; pass it "
            "in args to fit it"
        )
    return found


def read_sought(
    p0: Mapping[str, Any], problem: Problem, variables: Sequence[str], bounds: Any, log: Any
) -> Sought:
    """Read the parameters to be fitted, with their bounds and scales."""
    names: list[str] = []
    values: list[float] = []
    groups: dict[str, slice] = {}
    for name, value in p0.items():
        found = places({name: value}, problem, len(variables), variables).names
        if np.ndim(value) and np.size(value) != len(found):
            raise ValueError(f"p0: {name} has {np.size(value)} values for {len(found)} parameters")
        groups[name] = slice(len(names), len(names) + len(found))
        groups |= {text: slice(len(names) + k, len(names) + k + 1) for k, text in enumerate(found)}
        names += found
        values += np.broadcast_to(np.ravel(value), len(found)).tolist()
    start = np.array(values)
    low, high = _bounds(bounds, names, groups)
    _check_bounds(names, start, low, high)
    return Sought(tuple(names), start, low, high, _logs(log, names, groups, start, high))


def _bounds(bounds: Any, names: list[str], groups: dict[str, slice]) -> tuple:
    low, high = np.full(len(names), -np.inf), np.full(len(names), np.inf)
    if bounds is None:
        return low, high
    if isinstance(bounds, Mapping):
        for name, pair in bounds.items():
            if name not in groups:
                raise ValueError(f"bounds: {name!r} is not in p0, which has {', '.join(names)}")
            low[groups[name]], high[groups[name]] = _pair(f"bounds of {name!r}", pair)
        return low, high
    first, second = _pair("bounds", bounds)
    for side, given in ((low, first), (high, second)):
        if np.ndim(given) and np.shape(given) != side.shape:
            raise ValueError(f"bounds must have {len(names)} values, got {np.size(given)}")
        side[:] = given
    return low, high


def _pair(name: str, pair: Any) -> tuple[Any, Any]:
    try:
        low, high = pair
        low = np.asarray(-np.inf if low is None else low, float)
        high = np.asarray(np.inf if high is None else high, float)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a pair (low, high), got {pair!r}") from None
    return low, high


def _check_bounds(
    names: list[str], start: np.ndarray, low: np.ndarray, high: np.ndarray
) -> None:
    for name, value, a, b in zip(names, start, low, high, strict=True):
        if not a < b:
            raise ValueError(f"bounds of {name!r} must be low < high, got ({a:g}, {b:g})")
        if not a <= value <= b:
            raise ValueError(f"bounds of {name!r} are ({a:g}, {b:g}), but p0 is {value:g}")


def _logs(
    log: Any, names: list[str], groups: dict[str, slice], start: np.ndarray, high: np.ndarray
) -> np.ndarray:
    chosen = np.zeros(len(names), bool)
    if isinstance(log, (bool, np.bool_)):
        chosen[:] = log
    else:
        for name in [log] if isinstance(log, str) else log:
            if name not in groups:
                raise ValueError(f"log: {name!r} is not in p0, which has {', '.join(names)}")
            chosen[groups[name]] = True
    bad = np.flatnonzero(chosen & (start <= 0.0))
    if len(bad):
        raise ValueError(
            f"log: p0 of {names[bad[0]]!r} is {start[bad[0]]:g}, which has no logarithm; leave it "
            "out of log"
        )
    return chosen
