"""Waveforms of sources: constant, sine, pulses, straight lines between points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Dc", "Pulse", "Pwl", "Sin", "Waveform"]


@dataclass(frozen=True)
class Dc:
    """A constant value."""

    value: float

    def __call__(self, t: Any) -> Any:
        """Return the value at a time."""
        return self.value


@dataclass(frozen=True)
class Sin:
    """A sine that begins after a delay, as in SPICE; before that, its value is `offset`.

    Examples
    --------
    >>> from tether.models import Sin
    >>> wave = Sin(offset=1.0, amplitude=2.0, frequency=50.0)
    >>> round(float(wave(0.005)), 12)
    3.0
    """

    offset: float
    amplitude: float
    frequency: float
    delay: float = 0.0
    damping: float = 0.0                       # 1/s

    def __call__(self, t: Any) -> Any:
        """Return the value at a time."""
        since = t - self.delay
        wave = self.amplitude * np.sin(2 * np.pi * self.frequency * since)
        if self.damping:
            wave = wave * np.exp(-self.damping * since)
        if self.delay:
            wave = np.where(since > 0.0, wave, 0.0)
        return self.offset + wave


@dataclass(frozen=True)
class Pulse:
    """Trapezoids from `low` to `high` and back, once or with a period.

    Examples
    --------
    >>> from tether.models import Pulse
    >>> wave = Pulse(0.0, 5.0, delay=1.0, rise=0.1, fall=0.1, width=1.0, period=3.0)
    >>> [round(float(wave(t)), 6) for t in (0.5, 1.05, 1.5, 2.15, 2.5, 4.05)]
    [0.0, 2.5, 5.0, 2.5, 0.0, 2.5]
    """

    low: float
    high: float
    delay: float = 0.0
    rise: float = 0.0
    fall: float = 0.0
    width: float = np.inf
    period: float = np.inf

    def __call__(self, t: Any) -> Any:
        """Return the value at a time."""
        since = t - self.delay
        phase = since % self.period if np.isfinite(self.period) else since
        end = self.rise + self.width
        share = np.minimum(phase / self.rise, 1.0) if self.rise > 0.0 else 1.0
        if np.isfinite(end):
            if self.fall > 0.0:
                share = np.minimum(share, np.maximum((end + self.fall - phase) / self.fall, 0.0))
            else:
                share = np.where(phase < end, share, 0.0)
        return self.low + (self.high - self.low) * np.where(since >= 0.0, share, 0.0)


@dataclass(frozen=True)
class Pwl:
    """Straight lines between points; constant before the first and after the last.

    Examples
    --------
    >>> from tether.models import Pwl
    >>> wave = Pwl([0.0, 1.0, 3.0], [0.0, 2.0, 0.0])
    >>> [float(wave(t)) for t in (-1.0, 0.5, 2.0, 4.0)]
    [0.0, 1.0, 1.0, 0.0]
    """

    times: Sequence[float]
    values: Sequence[float]

    def __post_init__(self) -> None:
        """Refuse points that do not define a function of time."""
        if len(self.times) != len(self.values) or len(self.times) == 0:
            raise ValueError("Pwl needs as many values as times, and at least one")
        if any(b <= a for a, b in zip(self.times, self.times[1:], strict=False)):
            raise ValueError(f"the times of Pwl must increase, got {list(self.times)}")

    def __call__(self, t: Any) -> Any:
        """Return the value at a time."""
        found: Any = self.values[-1]
        for k in range(len(self.times) - 1, 0, -1):
            t0, t1, v0, v1 = *self.times[k - 1 : k + 1], *self.values[k - 1 : k + 1]
            found = np.where(t < t1, v0 + (v1 - v0) * (t - t0) / (t1 - t0), found)
        return 0.0 + np.where(t < self.times[0], self.values[0], found)


Waveform = Dc | Sin | Pulse | Pwl
