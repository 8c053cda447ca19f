"""Arrays that may be too large for memory: in temporary files that are deleted with them."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["empty_array"]


def empty_array(shape: tuple[int, ...], dtype: Any, on_disk: bool) -> np.ndarray:
    """Make an array in memory, or in a temporary file.

    Examples
    --------
    >>> from tether.base.spill import empty_array
    >>> rows = empty_array((2, 3), float, on_disk=True)
    >>> rows[:] = 1.0
    >>> float(rows.sum())
    6.0
    """
    if not on_disk or 0 in shape:
        return np.empty(shape, dtype)
    import tempfile  # late, to save time

    with tempfile.TemporaryFile(prefix="tether-") as file:  # the mapping outlives the file's name
        return np.memmap(file, dtype, "w+", shape=shape)
