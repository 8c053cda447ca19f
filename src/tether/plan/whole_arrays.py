"""Whether a function works on whole arrays: NumPy is then faster than a program of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from tether.problem.problem import Problem

__all__ = ["works_on_arrays"]

# Average number of elements per array operation from which on NumPy is faster.
FASTER_FROM_ELEMENTS = 100


class _Counting(np.ndarray):
    """An array that counts operations on it, and single numbers taken out of it."""

    calls = 0
    elements = 0

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if "out" in options:
            options["out"] = tuple(_plain(each) for each in options["out"])
        result = getattr(ufunc, method)(*(_plain(each) for each in inputs), **options)
        _Counting.calls += 1
        _Counting.elements += np.size(result)
        return result.view(_Counting) if isinstance(result, np.ndarray) else result

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        result = super().__array_function__(function, types, args, options)
        return result.view(_Counting) if type(result) is np.ndarray else result

    def __getitem__(self, key: Any) -> Any:
        result = super().__getitem__(key)
        _Counting.calls += not isinstance(result, np.ndarray)
        return result

    def __iter__(self) -> Any:
        return (self[k] for k in range(len(self)))

    def tolist(self) -> Any:
        """Return single numbers, which are counted."""
        _Counting.calls += self.size
        return super().tolist()


def _plain(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, _Counting) else value


def works_on_arrays(problem: Problem, t: float, y: np.ndarray, yp: np.ndarray) -> bool:
    """Tell whether a residual is computed by operations on whole arrays.

    Examples
    --------
    >>> import numpy as np
    >>> from tether import Problem
    >>> from tether.plan.whole_arrays import works_on_arrays
    >>> y = np.ones(1000)
    >>> works_on_arrays(Problem(lambda t, y, yp: yp + y * y), 0.0, y, y)
    True
    >>> works_on_arrays(Problem(lambda t, y, yp: [a * a for a in y]), 0.0, y, y)
    False
    """
    _Counting.calls = _Counting.elements = 0
    out = [np.zeros(len(y)).view(_Counting)] if problem.fills else []
    vectors = (values.copy().view(_Counting) for values in (y, yp))
    try:
        with np.errstate(all="ignore"):
            problem.fun(t, *vectors, *out, *problem.args)
    except Exception:                  # the run itself will report it
        return False
    return _Counting.elements >= max(len(y), FASTER_FROM_ELEMENTS * _Counting.calls)
