"""What NumPy calls when one of its functions meets a symbol.

Symbols (`scalar.py`, `arrays.py`) have to name what answers for them, and the answers
(`arrays.py`, `array_functions.py`) are made of symbols. So the answers are put here when they are
loaded, and the symbols look here when they are asked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["answers", "by"]

# "ufunc": (ufunc, method, inputs, options); "function": (function, args, options); and those of
# whole arrays (`whole_functions.py`): "whole ufunc", "whole function". While these are traced also
# "new array": (shape, value, dtype); "array": (nested lists, copy); "promote": (array,);
# "math": (name, args); "product": (sparse matrix, array).
answers: dict[str, Callable[..., Any]] = {}


def by(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Answer NumPy's protocol of this name by the function that follows."""

    def put(answer: Callable[..., Any]) -> Callable[..., Any]:
        answers[name] = answer
        return answer

    return put
