"""Check numbers and vectors that a user passes: errors name the argument."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

__all__ = ["WrongResult", "as_numbers", "as_vector", "check_time", "check_vector"]

LOOP_UP_TO = 32  # up to this length a loop over numbers is faster than array operations


class WrongResult(ValueError):  # noqa: N818  (nothing has failed yet)
    """A function returned something unusable, which no smaller step will change."""


def as_numbers(name: str, value: Any) -> np.ndarray:
    """Return the value as an array of any kind; lists of unequal lengths raise an error."""
    try:
        return np.asarray(value)
    except ValueError:
        raise ValueError(f"{name} must not be a list of unequal lists, got {value!r}") from None


def check_time(name: str, value: Any, finite: bool = True) -> float:
    """Return a real time as a float, or raise with the argument's name."""
    if type(value) is float and math.isfinite(value):
        return value                   # the usual case
    if type(value) is not float:
        number = as_numbers(name, value)
        if number.ndim != 0 or number.dtype.kind not in "fiu":
            raise TypeError(f"{name} must be a real number, got {value!r}")
    time = float(value)
    if math.isnan(time) or (finite and math.isinf(time)):
        raise ValueError(f"{name} must be finite, got {value!r}")
    return time


def _all_finite(array: np.ndarray) -> bool:
    if len(array) <= LOOP_UP_TO:
        return all(map(math.isfinite, array.tolist()))
    return bool(np.isfinite(array).all())


def check_vector(name: str, value: Any, n: int | None = None) -> np.ndarray:
    """Return a vector of finite floats, or raise with the argument's name."""
    array = as_numbers(name, value)
    kind = array.dtype.kind
    if kind == "c":
        raise TypeError(f"{name} must be real, got complex values; split them into two parts")
    if kind not in "fiub":
        raise TypeError(f"{name} must be a vector of numbers, got {value!r}")
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got shape {array.shape}")
    if n is not None and len(array) != n:
        raise ValueError(f"{name} must have {n} values like y0, got {len(array)}")
    if len(array) == 0:
        raise ValueError(f"{name} is empty; at least one unknown is needed")
    array = array.astype(float)
    if not _all_finite(array):
        bad = int(np.flatnonzero(~np.isfinite(array))[0])
        raise ValueError(f"{name} must be finite, but {name}[{bad}] is {array[bad]}")
    return array


def as_vector(name: str, result: Any, n: int) -> np.ndarray:
    """Return the n values that a function returned; a single one need not be in a list."""
    try:
        values = np.asarray(result)
    except ValueError:
        raise WrongResult(
            f"{name} must return a vector of {n} values, but returned a list of parts of unequal "
            "size: join them with np.concatenate"
        ) from None
    if values.shape == () and n == 1:
        return values.reshape(1)
    if values.shape != (n,):
        hint = ": join its parts with np.concatenate" if values.ndim > 1 else ""
        raise WrongResult(
            f"{name} must return {n} values, one per unknown in y0, but returned an object of "
            f"shape {values.shape}{hint}"
        )
    return values
