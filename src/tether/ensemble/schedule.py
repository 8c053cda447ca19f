"""Which members are solved together: chunks sized by what members cost."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

import numpy as np

__all__ = ["Schedule", "missing"]

# Weight of the last chunk in the average cost of a member.
LAST_WEIGHT = 0.5
# A chunk is at most so many times as large as the largest one that was measured ...
MAX_GROWTH = 16
# ... and has at most this share of a worker's part of the members left, so that at the end no
# worker waits for one large chunk.
SHARE_OF_THE_REST = 0.5


class Schedule:
    """Hands out members in chunks that each take about a given time.

    Parameters
    ----------
    ranges : iterable of (int, int)
        Members to be solved, from the first up to the last of each range.
    seconds : float
        Time that a chunk should take.
    workers : int
        Number of workers.
    largest : int
        Largest number of members in a chunk.

    Examples
    --------
    >>> from tether.ensemble.schedule import Schedule
    >>> schedule = Schedule([(0, 10)], seconds=1.0, workers=2, largest=100)
    >>> schedule.next()
    (0, 1)
    >>> schedule.measured(1, 0.1)
    >>> schedule.next()
    (1, 4)
    """

    def __init__(
        self, ranges: Iterable[tuple[int, int]], seconds: float, workers: int, largest: int
    ) -> None:
        self._ranges = deque(ranges)
        self.left = sum(last - first for first, last in self._ranges)
        self.seconds, self.workers, self.largest = seconds, workers, largest
        self.cost: float | None = None         # of a member, in seconds
        self._size = 1                         # of the largest chunk that was measured

    def next(self) -> tuple[int, int] | None:
        """Return the next chunk; None if all members were handed out."""
        if not self._ranges:
            return None
        first, last = self._ranges.popleft()
        end = min(last, first + self._next_size())
        if end < last:
            self._ranges.appendleft((end, last))
        self.left -= end - first
        return first, end

    def _next_size(self) -> int:
        if self.cost is None:
            return 1
        wanted = self.seconds / max(self.cost, 1e-9)
        fair = SHARE_OF_THE_REST * self.left / self.workers
        return max(1, min(int(wanted), MAX_GROWTH * self._size, self.largest, int(fair) + 1))

    def measured(self, count: int, seconds: float) -> None:
        """Note how long a chunk took."""
        if count == 0:
            return
        cost = seconds / count
        if self.cost is not None:
            cost = LAST_WEIGHT * cost + (1.0 - LAST_WEIGHT) * self.cost
        self.cost = cost
        self._size = max(self._size, count)

    @property
    def seconds_left(self) -> float:
        """Time that one worker would need for the members not handed out yet."""
        return (self.cost or 0.0) * self.left

    def give_back(self, first: int, last: int) -> None:
        """Take back members that have to be solved again."""
        self._ranges.appendleft((first, last))
        self.left += last - first


def missing(done: np.ndarray) -> list[tuple[int, int]]:
    """Ranges of members that are not done.

    Examples
    --------
    >>> import numpy as np
    >>> from tether.ensemble.schedule import missing
    >>> missing(np.array([True, False, False, True, False]))
    [(1, 3), (4, 5)]
    """
    edges = np.flatnonzero(np.diff(np.concatenate([[True], done, [True]]).astype(int)))
    return [(int(a), int(b)) for a, b in edges.reshape(-1, 2)]
