"""Steps: the stored points of a run, and where its parts begin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

__all__ = ["Steps", "joined"]


@dataclass(frozen=True, eq=False)
class Steps:
    """One row for the end of every step, and one for the beginning of every part.

    A part begins where the integration starts, restarts, or continues smoothly with other
    equations. Its first row does not end a step.
    """

    t: np.ndarray
    y: np.ndarray                      # one row per time
    yp: np.ndarray
    order: np.ndarray  # of the step that ends there; where a part begins, of the next one
    begins: list[int]                  # rows where parts begin, in order ...
    smooth: list[bool]                 # ... and whether the solution continues smoothly there

    def restricted(self, n: int, first: int = 0) -> Steps:
        """Return the steps of the unknowns from `first` to before the n-th."""
        return replace(self, y=self.y[:, first:n], yp=self.yp[:, first:n])

    @property
    def ends(self) -> np.ndarray:
        """Rows that end a step."""
        inside = np.ones(len(self.t), bool)
        inside[self.begins] = False
        return np.flatnonzero(inside)

    def history(self) -> dict[str, np.ndarray]:
        """Return end, size and order of every step."""
        if self.begins == [0]:
            t = self.t[1:]
            return {"t": t.copy(), "h": t - self.t[:-1], "order": self.order[1:].copy()}
        ends = self.ends
        return {"t": self.t[ends], "h": self.t[ends] - self.t[ends - 1], "order": self.order[ends]}


def joined(parts: Sequence[Steps]) -> Steps:
    """Join steps into one run."""
    begins: list[int] = []
    rows = 0
    for part in parts:
        begins += [rows + row for row in part.begins]
        rows += len(part.t)
    return Steps(
        np.concatenate([part.t for part in parts]), np.concatenate([part.y for part in parts]),
        np.concatenate([part.yp for part in parts]),
        np.concatenate([part.order for part in parts]),
        begins, [smooth for part in parts for smooth in part.smooth],
    )
