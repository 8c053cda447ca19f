"""Modules of libraries as a traced function finds them.

A function of a library is called as it is where nothing traced is passed to it. With traced
numbers only those are that use them as any number is used: by operators, comparisons and calls of
functions that are passed along.
"""

from __future__ import annotations

import bisect
import copy
import functools
import heapq
import itertools
import operator
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from tether.trace.arrays import TracedArray, demoted, has_traced
from tether.trace.scalar import Scalar, refuse

# All of these modules, apart from what asks for the identity of an object.
_KNOWN_MODULES = frozenset((
    "operator", "_operator", "itertools", "functools", "_functools", "collections", "_collections",
    "collections.abc", "dataclasses", "contextlib", "enum", "typing", "abc", "types", "heapq",
    "_heapq", "bisect", "_bisect",
))  # fmt: skip
_ASK_FOR_IDENTITY = (operator.is_, operator.is_not)
_KNOWN = frozenset(
    value
    for module in (operator, itertools, functools, heapq, bisect)
    for value in vars(module).values()
    if isinstance(value, (types.BuiltinFunctionType, types.FunctionType))
) - frozenset(_ASK_FOR_IDENTITY)


def holds_traced(value: Any) -> bool:
    """Tell whether a value, or a container of Python, holds anything traced."""
    if isinstance(value, dict):
        return any(map(holds_traced, value.values()))
    if isinstance(value, (list, tuple, set, frozenset)):
        return any(map(holds_traced, value))
    return has_traced(value)


def library_function(function: Any) -> Any:
    """Give what stands for a function of a library."""
    if function in _KNOWN:
        return function
    if function is copy.copy or function is copy.deepcopy:
        return functools.partial(_copied, function)
    return functools.partial(_call, function)


def _call(function: Callable[..., Any], /, *args: Any, **options: Any) -> Any:
    if any(map(holds_traced, args)) or any(map(holds_traced, options.values())):
        refuse(f"{function.__name__} is not known to tracing")
    return function(*map(demoted, args), **{k: demoted(v) for k, v in options.items()})


def _copied(function: Callable[..., Any], value: Any) -> Any:
    if type(value) is TracedArray:
        return value.copy()
    if type(value) is Scalar:
        return Scalar(value.recorder, value.node, value.kind)
    return _call(function, value)


class LibraryShim:
    """Stands for a module of a library."""

    def __init__(self, module: types.ModuleType, copier: Callable[[Any], Any]) -> None:
        self._module, self._copy = module, copier

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._module, name)
        if isinstance(value, (types.ModuleType, types.FunctionType, types.BuiltinFunctionType)):
            return self._copy(value)
        return self._copy(value) if isinstance(value, np.ufunc) else value


def library_module(module: types.ModuleType, copier: Callable[[Any], Any]) -> Any:
    """Give what stands for a module of a library."""
    if module is operator or module is sys.modules.get("_operator"):
        return LibraryShim(module, copier)
    return module if module.__name__ in _KNOWN_MODULES else LibraryShim(module, copier)
