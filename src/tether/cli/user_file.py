"""A file of the user's: the function in it, and its start, interval and tolerances."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from tether.cli.errors import UsageError
from tether.cli.source import PASSED_ON, Source
from tether.problem.problem import Problem

__all__ = ["from_file"]

FIRST_PARAMETERS = ("t", "y", "yp")
VALUES = ("t_span", "y0", "yp0", "names", "units", "t_eval", "rtol", "atol")


def from_file(path: Path, function: str, arguments: Mapping[str, Any]) -> Source:
    """Run a file and collect from it what is to be solved."""
    module = _run(path)
    fun, name = _find_function(module, path, function)
    values = {key: getattr(module, key, None) for key in VALUES}
    more = {key: getattr(module, key, None) for key in PASSED_ON}
    return Source(
        name=f"{path.name}:{name}", fun=fun,
        title=_text(getattr(module, "title", None)) or f"{name} of {path.name}",
        description=inspect.getdoc(fun) or inspect.getdoc(module) or "" if inspect.isfunction(fun)
        else inspect.getdoc(module) or "",
        file=path, args=_values_of_parameters(module, path, fun, name, arguments),
        more={key: value for key, value in more.items() if value is not None}, **values,
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _run(path: Path) -> ModuleType:
    if not path.is_file():
        raise UsageError(f"there is no file {path}")
    spec = importlib.util.spec_from_file_location(f"tether_file_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    # as with `python FILE.py`, the file can import modules from its own folder
    sys.path.insert(0, str(path.resolve().parent))
    sys.modules[module.__name__] = module
    spec.loader.exec_module(module)
    return module


def _find_function(module: ModuleType, path: Path, name: str) -> tuple[Any, str]:
    if name:
        if not hasattr(module, name):
            raise UsageError(f"{path.name} has no function {name!r}{_others(module)}")
        return getattr(module, name), name
    if hasattr(module, "fun"):
        return module.fun, "fun"
    found = _residuals(module)
    if len(found) == 1:
        return getattr(module, found[0]), found[0]
    if not found:
        raise UsageError(
            f"{path.name} has no function fun and none with the parameters t, y, yp; "
            f"name the one to solve: {path.name}:function"
        )
    raise UsageError(
        f"{path.name} has several functions of t, y, yp: {', '.join(found)}; "
        f"name the one to solve: {path.name}:{found[0]}"
    )


def _residuals(module: ModuleType) -> list[str]:
    """Names of functions (t, y, yp, ...) of the file that are not events or the like."""
    taken = [getattr(module, key, None) for key in (*PASSED_ON, "jac")]
    others = [f for part in taken for f in (part if isinstance(part, (list, tuple)) else [part])]
    return [
        name for name, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == module.__name__
        and tuple(inspect.signature(value).parameters)[:3] == FIRST_PARAMETERS
        and not any(value is other for other in others)
    ]


def _others(module: ModuleType) -> str:
    found = _residuals(module)
    return f"; it has {', '.join(found)}" if found else ""


def _values_of_parameters(
    module: ModuleType, path: Path, fun: Any, name: str, given: Mapping[str, Any]
) -> tuple[Any, ...]:
    """Return the values of the parameters of a function that follow (t, y, yp) or (..., out)."""
    known = getattr(module, "args", ())
    if isinstance(fun, Problem):
        if given:
            raise UsageError(f"--args: {name} is a Problem, which has its arguments already")
        return ()
    parameters = _further_parameters(fun)
    for word in given:
        if word not in parameters:
            there = ", ".join(parameters) or "none"
            raise UsageError(f"--args: {name} has no parameter {word!r}; it has {there}")
    values = _by_name(known, list(parameters), path) | dict(given)
    if not given and not isinstance(known, Mapping):
        missing = [
            p.name for p in list(parameters.values())[len(known):] if p.default is p.empty
        ]
        if not missing:
            return tuple(known)
    for word, parameter in parameters.items():
        if word not in values and parameter.default is not parameter.empty:
            values[word] = parameter.default
        if word not in values:
            raise UsageError(
                f"the parameter {word!r} of {name} has no value: pass --args {word}=..., or write "
                f"args = {{'{word}': ...}} into {path.name}"
            )
    return tuple(values[word] for word in parameters)


def _further_parameters(fun: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    try:
        parameters = list(inspect.signature(fun).parameters.values())
    except (TypeError, ValueError):
        return {}                      # a C function has no signature
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    first = 4 if len(positional) > 3 and positional[3].name == "out" else 3
    return {p.name: p for p in positional[first:]}


def _by_name(known: Any, parameters: Sequence[str], path: Path) -> dict[str, Any]:
    if isinstance(known, Mapping):
        unknown = [word for word in known if word not in parameters]
        if unknown:
            raise UsageError(f"args in {path.name} has {unknown[0]!r}, which is not a parameter")
        return dict(known)
    if isinstance(known, (str, bytes)) or not isinstance(known, Sequence):
        raise UsageError(f"args in {path.name} must be a tuple, a list or a dictionary")
    return dict(zip(parameters, known, strict=False))
