"""Derivatives of functions of the user's that are called: by differences of fourth order."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tether.sensitivity.parameters import Parameters

__all__ = ["NotSmooth", "by_arguments", "central", "gradient_of", "one_sided"]

# Of the size of what is changed: round-off is about 1e-11 then, and a function that has made a
# hundred oscillations by the change of its argument is still differentiated to 1e-8.
CHANGE = 3e-5
# Places in units of the change.
PLACES = (1.0, -1.0, 2.0, -2.0)
# Relative: two differences of a smooth function agree within this, but for round-off of its values.
NOT_SMOOTH, ROUND_OFF = 0.02, 1e-11


class NotSmooth(ValueError):  # noqa: N818  (it is the function that is not)
    """A function has a kink or a jump where it is differentiated."""

    def __init__(self) -> None:
        super().__init__(
            "sensitivity: a function that is called has a kink or a jump where its derivative is "
            "wanted, or it is not the same in every call; write it so that it can be traced "
            "(sol.how says what stands in the way)"
        )


def central(
    fun: Callable[[float], np.ndarray | float], size: float, terms: np.ndarray | float = 0.0
) -> np.ndarray:
    """Differentiate a function of one number at zero; `size` is what changes are compared with.

    Raises `NotSmooth` where differences of two sizes disagree by more than round-off. That is
    measured by the values, or by `terms`, the size of what is added up to them, where that cancels.

    Examples
    --------
    >>> import numpy as np
    >>> from tether.sensitivity.differences import central
    >>> round(float(central(lambda x: np.exp(x), 1.0)), 9)
    1.0
    """
    h = CHANGE * size
    values = [np.asarray(fun(place * h), float) for place in PLACES]
    near, far = (values[0] - values[1]) / (2.0 * h), (values[2] - values[3]) / (4.0 * h)
    _want_smooth(near, far, values, h, terms)
    return (4.0 * near - far) / 3.0


def one_sided(
    fun: Callable[[float], np.ndarray | float], size: float, way: float,
    terms: np.ndarray | float = 0.0,
) -> np.ndarray:
    """Do the same from zero upwards, or downwards if `way` is -1: the other side may differ.

    Examples
    --------
    >>> from tether.sensitivity.differences import one_sided
    >>> round(float(one_sided(lambda x: x * x + x if x >= 0 else 7.0, 1.0, 1.0)), 9)
    1.0
    """
    h = CHANGE * size * way
    values = [np.asarray(fun(place * h), float) for place in range(5)]
    near = (4.0 * values[1] - 3.0 * values[0] - values[2]) / (2.0 * h)
    far = (4.0 * values[2] - 3.0 * values[0] - values[4]) / (4.0 * h)
    _want_smooth(near, far, values, h, terms)
    weights = (-25.0, 48.0, -36.0, 16.0, -3.0)
    total = sum(weight * value for weight, value in zip(weights, values, strict=True))
    return np.asarray(total) / (12.0 * h)


def _want_smooth(
    near: np.ndarray, far: np.ndarray, values: list[np.ndarray], h: float,
    terms: np.ndarray | float,
) -> None:
    """Raise `NotSmooth` where two differences disagree by more than round-off."""
    largest = np.maximum.reduce([np.abs(value) for value in values])
    noise = ROUND_OFF / abs(h) * np.maximum(largest, terms)
    if np.any(np.abs(near - far) > NOT_SMOOTH * (np.abs(near) + np.abs(far)) + noise):
        raise NotSmooth


def by_arguments(
    fun: Callable[[tuple], np.ndarray], parameters: Parameters, p: int,
    terms: np.ndarray | float = 0.0,
) -> np.ndarray:
    """Differentiate a function of the arguments by one of the parameters."""
    size = parameters.size(p)
    return central(lambda change: fun(parameters.args_with(p, change)), size, terms)


def gradient_of(
    fun: Callable[[np.ndarray], np.ndarray | float], x: np.ndarray, size: np.ndarray,
    terms: np.ndarray | float = 0.0,
) -> np.ndarray:
    """Differentiate a function of a vector; the last axis is that of the vector's components."""
    columns = []
    for j in range(len(x)):
        def along(change: float, j: int = j) -> np.ndarray | float:
            moved = x.copy()
            moved[j] += change
            return fun(moved)

        columns.append(central(along, float(size[j]), terms))
    return np.stack(columns, axis=-1) if columns else np.zeros((0,))
