"""Quantiles over members, collected chunk by chunk."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tether.ensemble.chunk import Chunk

__all__ = ["Bands", "check_quantiles"]

# Quantiles are exact for up to so many members; of more, they are those of a sample of this size.
MAX_EXACT = 16_384
# Golden section: the fractional parts of its multiples fill an interval evenly.
GOLDEN = 0.6180339887498949


def check_quantiles(quantiles: ArrayLike) -> np.ndarray:
    """Return quantiles, numbers between 0 and 1, as a vector."""
    found = np.atleast_1d(np.asarray(quantiles, float))
    if found.ndim != 1 or not np.all((found >= 0.0) & (found <= 1.0)):
        raise ValueError(f"quantiles must be shares between 0 and 1, got {quantiles!r}")
    return found


class Bands:
    """Values of all members, or of a sample of them, at the output times.

    They do not depend on the chunks and their order. Members that failed are left out. If there are
    many members, the sample depends only on their number.

    Examples
    --------
    >>> import numpy as np
    >>> from tether.ensemble.bands import Bands
    >>> bands = Bands(count=3, shape=(1, 1))
    >>> bands.take(0, np.array([[[1.0]], [[2.0]], [[6.0]]]), np.array([True, True, True]))
    >>> bands.quantiles([0.5]).tolist()
    [[[2.0]]]
    """

    def __init__(self, count: int, shape: tuple[int, int]) -> None:
        size = min(count, MAX_EXACT)
        self._place = np.full(count, -1, np.int32)
        drawn = np.arange(count)
        if count > MAX_EXACT:                  # those with the smallest numbers in a fixed sequence
            drawn = np.sort(np.argsort(drawn * GOLDEN % 1.0, kind="stable")[:size])
        self._place[drawn] = np.arange(size)
        self._values = np.full((size, *shape), np.nan)

    def take(self, first: int, y: np.ndarray, success: np.ndarray) -> None:
        """Add members from `first` on; each row of y has shape (times, unknowns)."""
        places = self._place[first : first + len(y)]
        chosen = (places >= 0) & success
        self._values[places[chosen]] = y[chosen]

    def take_chunk(self, chunk: Chunk) -> None:
        """Add a chunk."""
        self.take(chunk.first, chunk.y, chunk.status >= 0)

    def quantiles(self, shares: Any) -> np.ndarray:
        """Quantiles over members: an array of shape (shares, unknowns, times)."""
        return quantiles_of(self._values, check_quantiles(shares))


def quantiles_of(values: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Quantiles over the first axis; at each time, members without a value are left out."""
    if len(values) == 0:
        found = np.full((len(shares), *values.shape[1:]), np.nan)
    else:
        with np.errstate(all="ignore"):
            complete = not np.isnan(values).any()
            if complete:
                found = np.quantile(values, shares, axis=0)
            else:
                found = _without_missing(values, shares)
    return np.swapaxes(found, 1, 2)


def _without_missing(values: np.ndarray, shares: np.ndarray) -> np.ndarray:
    found = np.full((len(shares), *values.shape[1:]), np.nan)
    for k in np.ndindex(values.shape[1:]):
        column = values[(slice(None), *k)]
        column = column[~np.isnan(column)]
        if len(column):
            found[(slice(None), *k)] = np.quantile(column, shares)
    return found
