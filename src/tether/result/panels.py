"""Which unknowns share a panel of a plot: those of one unit, or without units those of one size."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

__all__ = ["MOST_PANELS", "in_panels"]

MOST_PANELS = 4
# Lines smaller than this share of the largest one in a panel would look flat there.
READABLE = 0.1


def in_panels(units: Sequence[str], values: Sequence[np.ndarray]) -> list[list[int]]:
    """Group lines into panels, in the order in which they were asked for.

    Examples
    --------
    >>> import numpy as np
    >>> from tether.result.panels import in_panels
    >>> in_panels(["", "", "V", ""], [np.array([size]) for size in (1.0, 1e3, 5.0, 2.0)])
    [[0, 3], [1], [2]]
    """
    groups: dict[str, list[int]] = {}
    for line, unit in enumerate(units):
        groups.setdefault(unit, []).append(line)
    panels = [
        part
        for unit, lines in groups.items()
        for part in ([lines] if unit else _by_size(lines, [_size(values[i]) for i in lines]))
    ]
    panels.sort()
    while len(panels) > MOST_PANELS:
        panels[-2:] = [sorted(panels[-2] + panels[-1])]
    return panels


def _size(values: np.ndarray) -> float:
    return float(np.max(np.abs(values), initial=0.0, where=np.isfinite(values)))


def _by_size(lines: list[int], sizes: list[float]) -> list[list[int]]:
    """Split lines so that all can be read in their panels; lines of zeros fit anywhere."""
    panels: list[list[int]] = []
    limit = np.inf
    for size, line in sorted(zip(sizes, lines, strict=True), key=lambda pair: -pair[0]):
        if not panels or 0.0 < size < limit:
            panels.append([])
            limit = READABLE * size
        panels[-1].append(line)
    return [sorted(panel) for panel in panels]
