"""The solution at given times."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from tether.base.checks import as_numbers
from tether.problem.names import Names

if TYPE_CHECKING:
    from tether.result.solution import DaeResult

__all__ = ["finer", "y_at"]

# Times closer than this, relative to the largest one, are the same.
ROUND_OFF = 8 * np.finfo(float).eps


def y_at(result: DaeResult, t: ArrayLike) -> np.ndarray:
    """Return y at a time, or at times as columns."""
    times = as_numbers("t", t)
    if times.dtype.kind not in "fiu" and times.size:
        raise TypeError(f"t must be a real number or a vector of them, got {t!r}")
    if times.ndim > 1:
        raise ValueError(f"t must be a number or a vector, got shape {times.shape}")
    times = times.astype(float)
    if result.sol is not None:
        return result.sol(times)[0]
    rows = np.array([_row(result.t, float(time)) for time in times.ravel()], int)
    return result.y[:, rows[0]] if times.ndim == 0 else result.y[:, rows]


def finer(result: DaeResult, points: int) -> DaeResult:
    """Return the result with further times between the stored ones, if there is dense output.

    Stored points are kept, including both values at a jump.
    """
    gaps = np.flatnonzero(np.diff(result.t))
    if result.sol is None or not len(gaps):
        return result
    inside = np.arange(1, points + 1) / (points + 1)
    more = (result.t[gaps, None] + np.diff(result.t)[gaps, None] * inside).ravel()
    rows = np.repeat(gaps + 1, points)
    y, yp = result.sol(more)
    return replace(
        result, t=np.insert(result.t, rows, more), y=np.insert(result.y, rows, y, axis=1),
        yp=np.insert(result.yp, rows, yp, axis=1), naming=Names(result.names, units=result.units),
    )


def _row(kept: np.ndarray, time: float) -> int:
    """Return the first row of a stored time."""
    if not len(kept):
        raise ValueError("there is no solution at any time: the run did not begin")
    low, high = min(kept[0], kept[-1]), max(kept[0], kept[-1])
    slack = ROUND_OFF * max(abs(low), abs(high))
    if not low - slack <= time <= high + slack:
        raise ValueError(f"t must lie within [{low}, {high}], got {time!r}")
    distance = np.abs(kept - time)
    row = int(np.argmin(distance))
    if distance[row] > slack:
        raise ValueError(
            f"t = {time!r} is not one of the stored times: solve with dense_output=True for "
            "values between them, or with t_eval for values at chosen times"
        )
    return row
