"""F_y' and F_y where the equations are only known by their values, for the law of a jump.

Steps of the size of the unknowns are exact but for round-off where an equation is linear, as most
are in derivatives, reactions and currents; then what the law keeps is kept to as many digits.
"""

from __future__ import annotations

import numpy as np

from tether._core import probe
from tether._core.adapters import raise_users
from tether._core.state import State
from tether.start.consistent import residual_at
from tether.structure.jump import Matrices

__all__ = ["law_of_values"]

# Of the size of an unknown: for a difference that is right if not exact.
SMALL = 2.0**-17
# Of the sizes of the terms: a column that differs by no more is the same.
SAME = 1e-6


def law_of_values(
    state: State, t: float, yp: np.ndarray, size: np.ndarray, slope: np.ndarray
) -> Matrices:
    """Return F_y' and F_y as a function of y; not finite where F is not.

    Parameters
    ----------
    state : State
        Whose equations it is about.
    t, yp : float, ndarray
        Where.
    size, slope : ndarray
        Sizes of y and y'.
    """

    def called(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        status, fy, fyp = probe.jacobian_at(state, t, y, yp)
        state.jacobian_exists = False          # it may be that of another point
        raise_users(state)
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
    """Differentiate by one unknown: over a large step if that is as good as over a small one."""
    small = _difference(state, t, y, yp, SMALL * step, j, of_slope)
    large = _difference(state, t, y, yp, step, j, of_slope)
    near = np.abs(large - small) <= SAME * np.maximum(np.abs(large), np.abs(small))
    return np.where(near, large, small)


def _difference(
    state: State, t: float, y: np.ndarray, yp: np.ndarray, step: float, j: int, of_slope: bool
) -> np.ndarray:
    values = []
    for way in (1.0, -1.0):
        moved, slopes = y.copy(), yp.copy()
        (slopes if of_slope else moved)[j] += way * step
        with np.errstate(all="ignore"):
            r = residual_at(state, t, moved, slopes)
        values.append(np.full(len(y), np.nan) if r is None else r)
    return (values[0] - values[1]) / (2.0 * step)
