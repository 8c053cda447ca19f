"""A chunk: some consecutive members, and their results."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tether._core.lane import COUNTS
from tether.base.status import Status

__all__ = ["UNFINISHED", "Chunk", "new_chunk"]

UNFINISHED = int(Status.RUNNING)


@dataclass(eq=False)
class Chunk:
    """Members from `first` up to `last`; rows of the arrays belong to members.

    Attributes
    ----------
    y, yp : ndarray, shape (members, nt, n)
        Values at the times that are kept; NaN where a member did not get that far.
    t_end : ndarray
        Where each member ended.
    status : ndarray of int
        How each member ended; UNFINISHED if it was not run.
    counts, drift : ndarray
        Work (`tether._core.lane.COUNTS`), and the largest residual of a constraint.
    moved : ndarray of int8
        Whether y0 was changed by more than its tolerance.
    notes : dict
        `Note` by number in the chunk, for members about which there is more to say.
    seconds : float
        Time that it took.
    in_core : int
        Number of members that ran without Python.
    is_trusted : bool
        False if the program turned out to differ from its function: results of members that ran
        without Python, here and before, are not to be used.
    """

    first: int
    last: int
    y: np.ndarray
    yp: np.ndarray
    t_end: np.ndarray
    status: np.ndarray
    counts: np.ndarray
    drift: np.ndarray
    moved: np.ndarray
    notes: dict[int, Note] = field(default_factory=dict)
    seconds: float = 0.0
    in_core: int = 0
    is_trusted: bool = True

    @property
    def is_complete(self) -> bool:
        """Whether all members were run."""
        return not bool(np.any(self.status == UNFINISHED))


@dataclass(eq=False)
class Note:
    """Messages, events and other results of a member that are not in the arrays."""

    message: str = ""
    warnings: tuple[str, ...] = ()
    t_events: list[np.ndarray] | None = None
    y_events: list[np.ndarray] | None = None
    yp_events: list[np.ndarray] | None = None
    error: BaseException | None = None     # raised instead of a result
    steps: Any = None                      # the whole `DaeResult`, where all steps are kept


def new_chunk(first: int, last: int, nt: int, n: int) -> Chunk:
    """Make a chunk of members that were not run yet."""
    count = last - first
    y, yp = np.full((2, count, nt, n), np.nan)
    return Chunk(
        first, last, y, yp, t_end=np.full(count, np.nan),
        status=np.full(count, UNFINISHED, np.int8),
        counts=np.zeros((count, len(COUNTS)), np.int64), drift=np.zeros(count),
        moved=np.zeros(count, np.int8),
    )
