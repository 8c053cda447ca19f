"""Axes of charts: positions of values, and ticks."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

__all__ = ["Axis", "fit_axis"]

MAX_TICKS = 6


@dataclass(frozen=True)
class Axis:
    """Maps values from low..high to positions from begin..end."""

    low: float
    high: float
    begin: float
    end: float
    log: bool = False

    def __call__(self, values: np.ndarray) -> np.ndarray:
        """Return the positions of values."""
        low, high = self._scaled(np.array([self.low, self.high]))
        share = (self._scaled(np.asarray(values, float)) - low) / (high - low)
        return self.begin + share * (self.end - self.begin)

    def _scaled(self, values: np.ndarray) -> np.ndarray:
        return np.log10(values) if self.log else values

    def ticks(self) -> list[tuple[float, str]]:
        """Return positions and labels of a few ticks."""
        found = _decades(self.low, self.high) if self.log else []
        if len(found) < 2:
            found = _even(self.low, self.high)
        return [(float(self(np.array(value))), label) for value, label in found]


def fit_axis(
    values: np.ndarray, begin: float, end: float, *, log: bool = False, pad: float = 0.0
) -> Axis:
    """Return an axis that contains all finite values."""
    known = values[np.isfinite(values) & ((values > 0) | (not log))]
    if not len(known):
        return Axis(1.0, 10.0, begin, end, log) if log else Axis(0.0, 1.0, begin, end)
    low, high = float(known.min()), float(known.max())
    if log:
        room = (high / low) ** pad if high > low else 2.0
        return Axis(low / room, high * room, begin, end, True)
    size = max(abs(low), abs(high))
    # a curve that changes only by round-off is drawn as a straight line
    room = pad * (high - low) if high - low > 1e-12 * size else 0.1 * size or 1.0
    return Axis(low - room, high + room, begin, end)


def _even(low: float, high: float) -> list[tuple[float, str]]:
    step = 10.0 ** math.floor(math.log10((high - low) / 2))
    while (high - low) / step > MAX_TICKS:
        step *= 2.5 if f"{step:e}"[0] == "2" else 2.0
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    values = [k * step for k in range(first, last + 1)]
    largest = max(map(abs, values), default=1.0)
    digits = min(max(math.ceil(math.log10(max(largest / step, 1.0))) + 2, 6), 15)
    return [(value, f"{value:.{digits}g}") for value in values]


def _decades(low: float, high: float) -> list[tuple[float, str]]:
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    stride = max(1, math.ceil((last - first + 1) / MAX_TICKS))
    return [(10.0**k, f"{10.0**k:g}") for k in range(first, last + 1, stride)]
