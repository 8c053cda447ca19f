"""Derivatives of functions of the user's that are called: by differences of fourth order."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tether.sensitivity.parameters import Parameters

__all__ = ["by_arguments", "central", "gradient_of"]

# Of the size of what is changed: with it the formula's error and round-off are about 1e-12.
CHANGE = 1e-3
# Places in units of the change, and their shares in the derivative.
PLACES, SHARES = (1.0, -1.0, 2.0, -2.0), (8 / 12, -8 / 12, -1 / 12, 1 / 12)


def central(fun: Callable[[float], np.ndarray | float], size: float) -> np.ndarray:
    """Differentiate a function of one number at zero; `size` is what changes are compared with.

    Examples
    --------
    >>> import numpy as np
    >>> from tether.sensitivity.differences import central
    >>> round(float(central(lambda x: np.exp(x), 1.0)), 11)
    1.0
    """
    h = CHANGE * size
    total: np.ndarray = np.zeros(())
    for place, share in zip(PLACES, SHARES, strict=True):
        total = total + share / h * np.asarray(fun(place * h), float)
    return total


def by_arguments(
    fun: Callable[[tuple], np.ndarray], parameters: Parameters, p: int
) -> np.ndarray:
    """Differentiate a function of the arguments by one of the parameters."""
    return central(lambda change: fun(parameters.args_with(p, change)), parameters.size(p))


def gradient_of(
    fun: Callable[[np.ndarray], np.ndarray | float], x: np.ndarray, size: np.ndarray
) -> np.ndarray:
    """Differentiate a function of a vector; the last axis is that of the vector's components."""
    columns = []
    for j in range(len(x)):
        def along(change: float, j: int = j) -> np.ndarray | float:
            moved = x.copy()
            moved[j] += change
            return fun(moved)

        columns.append(central(along, float(size[j])))
    return np.stack(columns, axis=-1) if columns else np.zeros((0,))
