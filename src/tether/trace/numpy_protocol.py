"""The functions that run when NumPy is called with a symbol.

Symbols (`scalar.py`, `arrays.py`) have to call these functions, and the functions (`arrays.py`,
`array_functions.py`) are themselves written with symbols. To avoid a circular import the functions
are registered here when their modules are loaded, and the symbols look them up when NumPy calls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["answers", "register"]

# Name and arguments of each: "ufunc": (ufunc, method, inputs, options); "function": (function,
# args, options); the same for whole arrays (`whole_functions.py`): "whole ufunc", "whole function".
# Only used while whole arrays are traced: "new array": (shape, value, dtype); "array": (nested
# lists, copy); "promote": (array,); "math": (name, args); "product": (sparse matrix, array).
answers: dict[str, Callable[..., Any]] = {}


def register(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate a function to register it under this name."""

    def put(answer: Callable[..., Any]) -> Callable[..., Any]:
        answers[name] = answer
        return answer

    return put
