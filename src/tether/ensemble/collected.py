"""The results of all chunks, put together."""

from __future__ import annotations

from typing import Any

import numpy as np

from tether._core.lane import COUNTS
from tether.base.capacity import fits, free_memory, in_words
from tether.base.status import Status
from tether.ensemble.bands import Bands
from tether.ensemble.chunk import UNFINISHED, Chunk, Note

__all__ = ["Collected"]


class Collected:
    """The results so far; rows belong to members.

    Attributes
    ----------
    y, yp : ndarray, shape (members, nt, n)
        Values at the times that are kept.
    status, t_end, counts, drift, moved : ndarray
        As in `Chunk`.
    notes : dict
        `Note` by number of the member.
    bands : Bands or None
        For quantiles at all times, where only the last values are kept.
    """

    def __init__(
        self, count: int, nt: int, n: int, bands: Bands | None = None, room: Any = None
    ) -> None:
        self.last_only = bands is not None
        nt = min(nt, 1) if self.last_only else nt
        self.y, self.yp = _values(count, nt, n, room)
        self.status = np.full(count, UNFINISHED, np.int8)
        self.t_end = np.full(count, np.nan)
        self.counts = np.zeros((count, len(COUNTS)), np.int64)
        self.drift = np.zeros(count)
        self.moved = np.zeros(count, np.int8)
        self.notes: dict[int, Note] = {}
        self.bands = bands
        self.in_core = 0

    def take(self, chunk: Chunk) -> None:
        """Put a chunk in its place."""
        rows = slice(chunk.first, chunk.last)
        if self.bands is not None:
            self.bands.take_chunk(chunk)
            self.y[rows, 0], self.yp[rows, 0] = _last_values(chunk)
        else:
            self.y[rows], self.yp[rows] = chunk.y, chunk.yp
        self.status[rows], self.t_end[rows] = chunk.status, chunk.t_end
        self.counts[rows], self.drift[rows] = chunk.counts, chunk.drift
        self.moved[rows] = chunk.moved
        self.in_core += chunk.in_core
        for i, note in chunk.notes.items():
            self.notes[chunk.first + i] = note

    @property
    def done(self) -> np.ndarray:
        """Which members are finished."""
        return self.status != UNFINISHED


def _values(count: int, nt: int, n: int, room: Any) -> tuple[np.ndarray, np.ndarray]:
    """Make room for y and y': in memory, or on disk where they do not fit."""
    needed = 2 * 8 * count * nt * n
    if fits(needed):
        y, yp = np.empty((2, count, nt, n))
    elif room is not None:
        y, yp = (room.new_array(name, (count, nt, n)) for name in ("y", "yp"))
    else:
        raise MemoryError(
            f"y and y' of {count} members at {nt} times take {in_words(needed)}, but "
            f"{in_words(free_memory())} are free: pass store=, which keeps them on disk, fewer "
            "times in t_eval, or keep='final' with quantiles="
        )
    for start in range(0, count, max(1, 2**20 // max(1, nt * n))):     # a file is filled in parts
        part = slice(start, start + max(1, 2**20 // max(1, nt * n)))
        y[part], yp[part] = np.nan, np.nan
    return y, yp


def _last_values(chunk: Chunk) -> tuple[np.ndarray, np.ndarray]:
    """Values where the members ended: at the last time, or at the event that ended them."""
    y, yp = chunk.y[:, -1].copy(), chunk.yp[:, -1].copy()
    for i in np.flatnonzero(chunk.status != Status.REACHED_END).tolist():
        note = chunk.notes.get(i)
        reached = np.flatnonzero(~np.isnan(chunk.y[i]).any(axis=1))
        if chunk.status[i] == Status.EVENT and note is not None and note.t_events is not None:
            _, k = max((abs(t[-1] - chunk.t_end[i]) * -1.0, k)
                       for k, t in enumerate(note.t_events) if len(t))
            assert note.y_events is not None
            assert note.yp_events is not None
            y[i], yp[i] = note.y_events[k][-1], note.yp_events[k][-1]
        elif len(reached):
            y[i], yp[i] = chunk.y[i, reached[-1]], chunk.yp[i, reached[-1]]
    return y, yp
