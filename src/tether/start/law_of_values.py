"""F_y' and F_y where the equations are known only by their values, for the law of a jump.

Differences over the size of the unknowns are exact up to round-off where an equation is linear, as
most are in derivatives, reactions and currents. Then the jump conserves charge or momentum to as
many digits.
"""

from __future__ import annotations

import numpy as np

from tether._core import probe
from tether._core.adapters import raise_user_error
from tether._core.state import State
from tether.start.consistent import residual_at
from tether.structure.jump import Matrices

__all__ = ["law_of_values"]

# Step of an approximate difference, relative to the size of the unknown.
SMALL_STEP = 2.0**-17
# Relative difference below which columns are the same.
SAME = 1e-6


def law_of_values(
    state: State, t: float, yp: np.ndarray, size: np.ndarray, slope: np.ndarray
) -> Matrices:
    """Return F_y' and F_y as a function of y; not finite where F is not.

    Parameters
    ----------
    state : State
        The state with the equations.
    t, yp : float, ndarray
        Time and derivatives at which they are taken.
    size, slope : ndarray
        Sizes of y and y'.
    """

    def called(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        status, fy, fyp = probe.jacobian_at(state, t, y, yp)
        state.jacobian_exists = False          # it may be that of another point
        raise_user_error(state)
        return (fyp, fy) if status == 0 else (np.full_like(fyp, np.nan), fy)

    def by_differences(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        E, A = np.empty((2, len(y), len(y)))
        for j in range(len(y)):
            E[:, j] = _column(state, t, y, yp, np.maximum(np.abs(yp), slope)[j], j, of_slope=True)
            A[:, j] = _column(state, t, y, yp, np.maximum(np.abs(y), size)[j], j, of_slope=False)
        return E, A

    return by_differences if state.jacobian_adapter is None else called


def _column(
    state: State, t: float, y: np.ndarray, yp: np.ndarray, step: float, j: int, of_slope: bool
) -> np.ndarray:
    """Differentiate by one unknown: over a large step if that gives the same as a small one."""
    small = _difference(state, t, y, yp, SMALL_STEP * step, j, of_slope)
    large = _difference(state, t, y, yp, step, j, of_slope)
    near = np.abs(large - small) <= SAME * np.maximum(np.abs(large), np.abs(small))
    return np.where(near, large, small)


def _difference(
    state: State, t: float, y: np.ndarray, yp: np.ndarray, step: float, j: int, of_slope: bool
) -> np.ndarray:
    values = []
    for side in (1.0, -1.0):
        moved, slopes = y.copy(), yp.copy()
        (slopes if of_slope else moved)[j] += side * step
        with np.errstate(all="ignore"):
            r = residual_at(state, t, moved, slopes)
        values.append(np.full(len(y), np.nan) if r is None else r)
    return (values[0] - values[1]) / (2.0 * step)
