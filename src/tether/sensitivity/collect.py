"""What a run with derivatives returns: tangents at its points, between them, and at events."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from tether.run.interpolant import Interpolant
from tether.run.record import Record
from tether.run.steps import Steps, joined
from tether.run.watch import Event
from tether.sensitivity.parameters import Parameters
from tether.sensitivity.passage import Moment, crossing_of_event
from tether.sensitivity.route import PAST
from tether.sensitivity.sweep import Output, Sweep
from tether.sensitivity.tape import Tape

__all__ = ["Sensitivities", "collect", "outputs_at"]


@dataclass(frozen=True, eq=False)
class Sensitivities:
    """Derivatives of a solution by parameters.

    Attributes
    ----------
    names : tuple of str
        The parameters.
    values : ndarray, shape (parameters, n, nt)
        dy/dp at the times of the solution, at fixed times.
    t_events : list of ndarray or None
        Of every event, derivatives of its times: one row per occurrence, one column per parameter.
    y_events : list of ndarray or None
        ... and of the values there, which includes that the time changes: (occurrences, parameters,
        n).
    between : Interpolant or None
        dy/dp between the points.
    """

    names: tuple[str, ...]
    values: np.ndarray
    t_events: list[np.ndarray] | None
    y_events: list[np.ndarray] | None
    between: Interpolant | None

    def at(self, t: ArrayLike) -> np.ndarray:
        """Return dy/dp at a time, (parameters, n), or at times, (parameters, n, times)."""
        if self.between is None:
            raise ValueError("there is no dense output: solve with dense_output=True")
        found = self.between(t)[0]
        shape = (*self.values.shape[:2], *found.shape[1:])
        return found.reshape(shape)


def collect(
    tape: Tape, record: Record, parameters: Parameters, events: list[Event], dense_output: bool
) -> Sensitivities:
    """Go through a taped run forwards and return the derivatives."""
    sweep = Sweep(tape, record, parameters, events)
    finder = _Rows(sweep, record)
    if record.t_eval is not None:
        values = sweep.forwards(outputs_at(sweep, record.outputs()[0]))
    else:
        values = finder.values()
    happened = _Happened(sweep, events) if events else None
    return Sensitivities(
        parameters.names, values,
        None if happened is None else happened.t, None if happened is None else happened.y,
        finder.interpolant() if dense_output else None,
    )


def outputs_at(sweep: Sweep, times: np.ndarray) -> list[Output]:
    """Say how the values at output times depend on the points of the legs."""
    paths = sweep.paths
    ends = np.array([path.leg.begin.t for path in paths[1:]])
    direction = 1.0 if paths[-1].t[-1] >= paths[0].t[PAST] else -1.0
    found = []
    for t in times:
        number = int(np.searchsorted(direction * ends, direction * t, side="left"))
        path = paths[number]
        if not path.steps or direction * t <= direction * path.t[PAST]:
            found.append(Output(number, 0, np.ones(1)))
            continue
        row = path.step_at(t)
        if t == path.t[PAST + row]:
            found.append(Output(number, row, np.ones(1)))
        else:
            found.append(Output(number, row, path.shares(t, row, path.degree(row))))
    return found


class _Rows:
    """Finds the tangents that belong to the rows of a record."""

    def __init__(self, sweep: Sweep, record: Record) -> None:
        self.sweep, self.record = sweep, record

    @cached_property
    def parts(self) -> list[np.ndarray]:
        """Tangents of the user's unknowns for the rows of every state: (rows, parameters, n)."""
        sweep, n = self.sweep, self.sweep.n
        parts = [
            np.zeros((len(self.record.times_of(k)), len(sweep.parameters), n))
            for k in range(self.record.part_number + 1)
        ]
        tangents = sweep.tangents
        for number, (path, s) in enumerate(zip(sweep.paths, tangents, strict=True)):
            leg, rows = path.leg, parts[path.leg.part]
            if leg.first < 0:
                continue
            rows[leg.first : leg.last] = s[PAST + 1 : PAST + 1 + path.kept, :, :n]
            self._begins(rows, number, s[PAST, :, :n])
            if path.leg.overshoot is not None and leg.last < len(rows):
                t = float(self.record.times_of(leg.part)[leg.last])
                shares = path.shares(t, path.steps, path.degree(path.steps))
                last = PAST + path.steps
                points = s[last - len(shares) + 1 : last + 1, :, :n][::-1]
                rows[leg.last] = np.tensordot(shares, points, 1)
        return parts

    def _begins(self, rows: np.ndarray, number: int, first: np.ndarray) -> None:
        """Fill in the rows where a leg begins, once for every time the state was changed there."""
        leg = self.sweep.paths[number].leg
        begins = set(self.record.whole_steps(leg.part).begins)
        behind = [first] if number == 0 else self.sweep.between[number]
        row, left = leg.first - 1, list(behind)
        while row >= 0 and row in begins:
            rows[row] = left.pop() if left else first
            row -= 1

    def values(self) -> np.ndarray:
        """Return tangents at the rows of the whole run: (parameters, n, rows)."""
        return np.ascontiguousarray(np.concatenate(self.parts).transpose(1, 2, 0))

    def interpolant(self) -> Interpolant | None:
        """Return tangents between the rows; None where no step was taken."""
        found = []
        for k, rows in enumerate(self.parts):
            steps = self.record.whole_steps(k)
            flat = rows.reshape(len(rows), -1)
            found.append(
                Steps(steps.t, flat, np.zeros_like(flat), steps.order, steps.begins, steps.smooth)
            )
        whole = joined(found)
        return Interpolant(whole) if len(whole.t) > 1 else None


class _Happened:
    """Derivatives of the times of events, and of the values there."""

    def __init__(self, sweep: Sweep, events: list[Event]) -> None:
        self.sweep = sweep
        found = [self._of(event) for event in events]
        self.t = [t for t, _ in found]
        self.y = [y for _, y in found]

    def _of(self, event: Event) -> tuple[np.ndarray, np.ndarray]:
        sweep, count, n = self.sweep, len(self.sweep.parameters), self.sweep.n
        t, y = np.zeros((len(event.t), count)), np.zeros((len(event.t), count, n))
        for k, (time, output) in enumerate(
            zip(event.t, outputs_at(sweep, np.array(event.t)), strict=True)
        ):
            path = sweep.paths[output.leg]
            y[k] = sweep.forwards([output])[:, :, 0]
            if not path.steps or time == sweep.paths[0].t[PAST]:
                continue                       # it was zero from the outset
            moment = Moment(path, time, path.step_at(time))
            crossing = crossing_of_event(event.fun, moment, n, sweep.parameters)
            if crossing is None:
                t[k] = np.nan
                continue
            last, tangents = PAST + moment.row, sweep.tangents[output.leg]
            points = tangents[last - moment.degree : last + 1][::-1]
            slopes = np.tensordot(moment.slope_shares, points, 1)
            t[k] = crossing.shift(y[k], slopes[:, :n])
            y[k] += np.outer(t[k], moment.yp[:n])
        return t, y
