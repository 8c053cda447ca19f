"""A progress bar over t, on standard error."""

from __future__ import annotations

import sys
import time
from typing import TextIO

WIDTH = 30
SECONDS_BETWEEN = 0.1


class ProgressBar:
    """Show how far the integration has come, with steps, order and step size."""

    def __init__(self, t0: float, t_end: float, stream: TextIO | None = None) -> None:
        self.t0, self.t_end = t0, t_end
        self.stream = stream or sys.stderr
        self.next_time = 0.0

    def announce(self, text: str) -> None:
        """Write a line before the first step."""
        self.stream.write(f"\r{text} ...".ljust(WIDTH + 50))
        self.stream.flush()

    def update(self, t: float, steps: int, order: int, h: float) -> None:
        """Redraw, but not more often than ten times a second."""
        now = time.monotonic()
        if now >= self.next_time:
            self.next_time = now + SECONDS_BETWEEN
            self._draw(t, steps, order, h)

    def close(self, t: float, steps: int, order: int, h: float) -> None:
        """Draw the final state and end the line."""
        self._draw(t, steps, order, h)
        self.stream.write("\n")
        self.stream.flush()

    def _draw(self, t: float, steps: int, order: int, h: float) -> None:
        share = min(max((t - self.t0) / (self.t_end - self.t0), 0.0), 1.0)
        bar = ("#" * round(share * WIDTH)).ljust(WIDTH)
        self.stream.write(
            f"\r[{bar}] {share:6.1%}  t={t:<10.4g} steps={steps:<8d} order={order} h={h:<9.2g}"
        )
        self.stream.flush()
