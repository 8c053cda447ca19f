"""Derivatives of called functions of the user's, by differences of fourth order."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tether.sensitivity.parameters import Parameters

__all__ = ["NotSmooth", "by_arguments", "central", "gradient_of", "one_sided"]

# Step of a difference, relative to the size of the argument: round-off is then about 1e-11, and a
# function that oscillates a hundred times over that size is still differentiated to 1e-8.
STEP = 3e-5
# Points at which the function is evaluated, in steps.
POINTS = (1.0, -1.0, 2.0, -2.0)
# Two differences of a smooth function agree within this share, and the round-off of its values.
DISAGREEMENT, ROUND_OFF = 0.02, 1e-11


class NotSmooth(ValueError):  # noqa: N818  (it names a property of the function)
    """A function has a kink or a jump where it is differentiated."""

    def __init__(self) -> None:
        super().__init__(
            "sensitivity: a function that is called has a kink or a jump where its derivative is "
            "wanted, or it does not return the same in every call; write it so that it can be "
            "traced (sol.how says what prevents it)"
        )


def central(
    fun: Callable[[float], np.ndarray | float], size: float, terms: np.ndarray | float = 0.0
) -> np.ndarray:
    """Differentiate a function of one number at zero; `size` is the scale of its argument.

    Raises `NotSmooth` where differences of two step sizes disagree by more than round-off, which is
    relative to the values, or to `terms`, the size of the terms that add up to them and may cancel.

    Examples
    --------
    >>> import numpy as np
    >>> from tether.sensitivity.differences import central
    >>> round(float(central(lambda x: np.exp(x), 1.0)), 9)
    1.0
    """
    h = STEP * size
    values = [np.asarray(fun(place * h), float) for place in POINTS]
    near, far = (values[0] - values[1]) / (2.0 * h), (values[2] - values[3]) / (4.0 * h)
    _require_smooth(near, far, values, h, terms)
    return (4.0 * near - far) / 3.0


def one_sided(
    fun: Callable[[float], np.ndarray | float], size: float, way: float,
    terms: np.ndarray | float = 0.0,
) -> np.ndarray:
    """Differentiate at zero using arguments above it only, or below it if `way` is -1.

    Examples
    --------
    >>> from tether.sensitivity.differences import one_sided
    >>> round(float(one_sided(lambda x: x * x + x if x >= 0 else 7.0, 1.0, 1.0)), 9)
    1.0
    """
    h = STEP * size * way
    values = [np.asarray(fun(place * h), float) for place in range(5)]
    near = (4.0 * values[1] - 3.0 * values[0] - values[2]) / (2.0 * h)
    far = (4.0 * values[2] - 3.0 * values[0] - values[4]) / (4.0 * h)
    _require_smooth(near, far, values, h, terms)
    weights = (-25.0, 48.0, -36.0, 16.0, -3.0)
    total = sum(weight * value for weight, value in zip(weights, values, strict=True))
    return np.asarray(total) / (12.0 * h)


def _require_smooth(
    near: np.ndarray, far: np.ndarray, values: list[np.ndarray], h: float,
    terms: np.ndarray | float,
) -> None:
    """Raise `NotSmooth` where two differences disagree by more than round-off."""
    largest = np.maximum.reduce([np.abs(value) for value in values])
    noise = ROUND_OFF / abs(h) * np.maximum(largest, terms)
    if np.any(np.abs(near - far) > DISAGREEMENT * (np.abs(near) + np.abs(far)) + noise):
        raise NotSmooth


def by_arguments(
    fun: Callable[[tuple], np.ndarray], parameters: Parameters, p: int,
    terms: np.ndarray | float = 0.0,
) -> np.ndarray:
    """Differentiate a function of the arguments with respect to one of the parameters."""
    size = parameters.size(p)
    return central(lambda change: fun(parameters.args_with(p, change)), size, terms)


def gradient_of(
    fun: Callable[[np.ndarray], np.ndarray | float], x: np.ndarray, size: np.ndarray,
    terms: np.ndarray | float = 0.0,
) -> np.ndarray:
    """Differentiate a function of a vector; the last axis of the result is that of the vector."""
    columns = []
    for j in range(len(x)):
        def along(change: float, j: int = j) -> np.ndarray | float:
            moved = x.copy()
            moved[j] += change
            return fun(moved)

        columns.append(central(along, float(size[j]), terms))
    return np.stack(columns, axis=-1) if columns else np.zeros((0,))
