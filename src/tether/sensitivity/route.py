"""Route: the legs of a taped run as arrays, ready for sweeps with derivatives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tether._core import point_shares
from tether.run.record import Record
from tether.sensitivity.slopes import Linearised
from tether.sensitivity.tape import Leg

__all__ = ["PAST", "Path", "path_of"]

PAST = 7                                       # number of earlier points a step may depend on


@dataclass(eq=False)
class Path:
    """One leg: its points, as rows, and how every step depends on the points before.

    Attributes
    ----------
    leg : Leg
        The leg on the tape.
    linear : Linearised
        Computes the derivatives of its equations and constraints.
    t : ndarray, shape (PAST + 1 + steps,)
        Times of the past, of the beginning and of the ends of the steps; only the last step may
        have been cut.
    ends : ndarray, shape (steps,)
        Times at which the equations held at the ends of the steps: at a break, just before it.
    y, yp : ndarray, shape (1 + steps, n)
        Values at the beginning and at the ends of the steps.
    order : ndarray of int, shape (steps,)
        Orders of the steps.
    c : ndarray, shape (steps, 7)
        Coefficients of the steps, math (33).
    predictor : ndarray, shape (steps, 7)
        Weights of the points before in the predictions of the steps.
    kept : int
        Number of steps that were not cut.
    """

    leg: Leg
    linear: Linearised
    t: np.ndarray
    ends: np.ndarray
    y: np.ndarray
    yp: np.ndarray
    order: np.ndarray
    c: np.ndarray
    predictor: np.ndarray
    kept: int

    @property
    def steps(self) -> int:
        """Number of steps."""
        return len(self.order)

    def shares(self, t: float, row: int, degree: int) -> np.ndarray:
        """Weights of the points, from a row on backwards, in the value at a time."""
        found = np.empty(degree + 1)
        point_shares.shares_at(self.t, PAST + row, degree, t, found)
        return found

    def locate(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows of the points that values depend on, and shares of these and those before."""
        row, share = np.empty(len(t), np.intc), np.empty((len(t), PAST))
        point_shares.locate(self.t, PAST, self.order, np.ascontiguousarray(t, float), row, share)
        return row, share

    def step_at(self, t: float) -> int:
        """Row of the end of the step in which a time lies."""
        direction = 1.0 if self.t[-1] >= self.t[PAST] else -1.0
        row = int(np.searchsorted(direction * self.t[PAST:], direction * t, side="left"))
        return min(max(row, 1), self.steps)

    def degree(self, row: int) -> int:
        """Degree of the polynomial over the step that ends at a row."""
        return int(self.order[row - 1])


def path_of(leg: Leg, record: Record, linear: Linearised) -> Path:
    """Collect the points of a leg."""
    begin, cut = leg.begin, leg.overshoot
    whole = record.whole_steps(leg.part)
    rows = slice(leg.first, leg.last)
    t, order = whole.t[rows], whole.order[rows]
    y, yp = [begin.start.y[None], whole.y[rows]], [begin.start.yp[None], whole.yp[rows]]
    if cut is not None:
        t, order = np.append(t, cut.t), np.append(order, cut.order)
        y.append(cut.y[None])
        yp.append(cut.yp[None])
    # its values are those of a break itself, after which the core began by round-off
    why = begin.happening
    start = why.t if why is not None and why.is_break else begin.t
    past = start - begin.h * np.arange(PAST, 0.0, -1.0)
    if leg.past is not None:
        count = min(len(leg.past), PAST)
        past[PAST - count :] = leg.past[:count][::-1]
        spacing = leg.past[0] - start
        past[: PAST - count] = past[PAST - count] + spacing * np.arange(PAST - count, 0.0, -1.0)
    times = np.concatenate([past, [start], t])
    ends = t.copy()
    if cut is None and len(ends):
        ends[-1] = leg.t_end
    order = np.ascontiguousarray(order, np.intc)
    c, predictor = np.empty((2, len(order), PAST + 1))
    if len(order):
        point_shares.coefficients(times, order, PAST + 1, c, predictor)
    kept = len(order) - (cut is not None)
    values, slopes = np.concatenate(y), np.concatenate(yp)
    return Path(leg, linear, times, ends, values, slopes, order, c, predictor, kept)
