"""Outputs: values of a solution as combinations of the points of its legs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from tether.sensitivity.route import PAST
from tether.sensitivity.sweep import Sweep

__all__ = ["ONE", "Outputs", "RowOutputs", "outputs_at"]

ONE = np.ones(1)


@dataclass(frozen=True, eq=False)
class Outputs:
    """Values of a solution, each a combination of points of a leg.

    Attributes
    ----------
    leg, row : ndarray of int, shape (outputs,)
        Number of the leg, and row of the latest of the points. A row of -k is what the first k
        changes of the state have made of it where the leg begins after several.
    shares : ndarray, shape (outputs, PAST)
        Shares of it and of those before.
    """

    leg: np.ndarray
    row: np.ndarray
    shares: np.ndarray

    @classmethod
    def at_points(cls, leg: np.ndarray, row: np.ndarray) -> Outputs:
        """Return the values at points of legs."""
        shares = np.zeros((len(leg), PAST))
        shares[:, 0] = 1.0
        return cls(leg.astype(np.intc), row.astype(np.intc), shares)

    @classmethod
    def one(cls, leg: int, row: int, shares: np.ndarray) -> Outputs:
        """Return a single one; points that are not mentioned have no share."""
        whole = np.zeros((1, PAST))
        whole[0, : len(shares)] = shares
        return cls(np.array([leg], np.intc), np.array([row], np.intc), whole)

    @classmethod
    def joined(cls, parts: Sequence[Outputs]) -> Outputs:
        """Return one after the other."""
        if len(parts) == 1:
            return parts[0]
        nothing = cls(np.zeros(0, np.intc), np.zeros(0, np.intc), np.zeros((0, PAST)))
        every = [nothing, *parts]
        return cls(
            np.concatenate([part.leg for part in every]),
            np.concatenate([part.row for part in every]),
            np.concatenate([part.shares for part in every]),
        )

    def __len__(self) -> int:
        """Return their number."""
        return len(self.leg)

    def __getitem__(self, which: Any) -> Outputs:
        """Return some of them."""
        return Outputs(self.leg[which], self.row[which], self.shares[which])

    def by_legs(self) -> Iterator[tuple[int, np.ndarray]]:
        """Return every leg that has some, with their numbers in the order of their rows."""
        order = np.lexsort((self.row, self.leg)).astype(np.intc)
        legs = self.leg[order]
        cuts = (legs[1:] != legs[:-1]).nonzero()[0] + 1
        for first, last in pairwise([0, *cuts.tolist(), len(order)] if len(order) else []):
            yield int(legs[first]), order[first:last]


def outputs_at(sweep: Sweep, times: np.ndarray) -> Outputs:
    """Say how the values at output times depend on the points of the legs."""
    paths = sweep.paths
    if len(paths) == 1:
        return Outputs(np.zeros(len(times), np.intc), *paths[0].locate(times))
    ends = np.array([path.leg.begin.t for path in paths[1:]])
    direction = 1.0 if paths[-1].t[-1] >= paths[0].t[PAST] else -1.0
    leg = np.searchsorted(direction * ends, direction * times, side="left")
    found = Outputs.at_points(leg, np.zeros(len(times)))
    for number, every in found.by_legs():
        found.row[every], found.shares[every] = paths[number].locate(times[every])
    return found


class RowOutputs:
    """How the rows of a record depend on the points of the legs, made when they are asked for.

    Attributes
    ----------
    others : dict
        Rows that are no points: at which steps were cut, and between changes of the state.
    places : list of ndarray
        For the points of every leg, beginning with its begin, their rows; -1 for none.
    """

    def __init__(self, sweep: Sweep) -> None:
        record = sweep.record
        counts = [len(record.times_of(k)) for k in range(record.part_number + 1)]
        before = np.concatenate([[0], np.cumsum(counts)])
        self._leg, self._row = np.zeros((2, before[-1]), np.intc)
        self.others: dict[int, Outputs] = {}
        self.places = [np.full(path.steps + 1, -1) for path in sweep.paths]
        taken: set[int] = set()                # rows that are begins of legs before
        for number, path in enumerate(sweep.paths):
            leg = path.leg
            if leg.first < 0:
                continue
            first, last = before[leg.part] + leg.first, before[leg.part] + leg.last
            self._leg[first:last], self._row[first:last] = number, np.arange(1, path.kept + 1)
            self.places[number][1 : path.kept + 1] = np.arange(first, last)
            whole = record.whole_steps(leg.part)
            begins, row = set(whole.begins), leg.first - 1
            if row in begins:
                self.places[number][0] = before[leg.part] + row
            while row in begins and before[leg.part] + row not in taken:
                place = int(before[leg.part]) + row
                self._leg[place] = number
                if self.places[number][0] != place:
                    changes = leg.changes_before(whole.y[row])
                    known = ONE if changes else np.full(1, np.nan)
                    self.others[place] = Outputs.one(number, -changes, known)
                taken.add(place)
                row -= 1
            if leg.overshoot is not None and leg.last < counts[leg.part]:
                t = float(record.times_of(leg.part)[leg.last])
                shares = path.shares(t, path.steps, path.degree(path.steps))
                self.others[int(last)] = Outputs.one(number, path.steps, shares)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self._leg)

    def __getitem__(self, rows: np.ndarray) -> Outputs:
        """Return how some rows depend on points."""
        found = Outputs.at_points(self._leg[rows], self._row[rows])
        for place in np.flatnonzero(np.isin(rows, list(self.others))):
            found.shares[place] = self.others[int(rows[place])].shares[0]
            found.row[place] = self.others[int(rows[place])].row[0]
            found.leg[place] = self.others[int(rows[place])].leg[0]
        return found
