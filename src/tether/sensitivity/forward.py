"""Sweep a taped run forwards: tangents (dy/dp) for all parameters at once."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tether._core import point_shares
from tether.sensitivity.outputs import Outputs
from tether.sensitivity.resolution import Resolution
from tether.sensitivity.route import PAST, Path
from tether.sensitivity.slopes import Slopes
from tether.sensitivity.sweep import Along, Sweep

__all__ = ["RowTarget", "forwards"]


@dataclass(eq=False)
class RowTarget:
    """Rows to be filled with the tangents at the points of a run.

    Attributes
    ----------
    values : ndarray, shape (rows, n, parameters)
        The tangents.
    places : list of ndarray
        For the points of every leg, from its beginning on, their rows; -1 for none.
    """

    values: np.ndarray
    places: list[np.ndarray]


@dataclass(eq=False)
class _Window:
    """Tangents at some consecutive points of a leg, the last of which has the number `last`."""

    s: np.ndarray                              # (rows, n, parameters)
    last: int
    shift: np.ndarray                          # derivatives of the time at which the leg begins

    def points(self, row: int, count: int) -> np.ndarray:
        """Return the tangents from a row on backwards: (count, parameters, n)."""
        place = len(self.s) - 1 - (self.last - row)
        return self.s[place - count + 1 : place + 1][::-1].transpose(0, 2, 1)


@dataclass(eq=False)
class _Wanted:
    """Outputs of one leg, in the order of their rows."""

    numbers: np.ndarray
    rows: np.ndarray
    done: int = 0


def forwards(
    sweep: Sweep | Along, outputs: Outputs, target: RowTarget | None = None,
    resolution: Resolution | None = None,
) -> np.ndarray:
    """Return the tangents of outputs: (outputs, unknowns, parameters), the user's first.

    Parameters
    ----------
    sweep : Sweep
        The run.
    outputs : Outputs
        Combinations of its points.
    target : RowTarget, optional
        Is filled with the tangents at the points themselves.
    resolution : Resolution, optional
        Checks whether the steps are short enough.
    """
    n, n_parameters = sweep.n, len(sweep.parameters)
    wanted = {
        leg: _Wanted(numbers, outputs.row[numbers]) for leg, numbers in outputs.by_legs()
    }
    most = max((sweep.paths[leg].linear.n for leg in wanted), default=n)
    found = np.zeros((len(outputs), most, n_parameters))
    references, window = np.zeros((n_parameters, 0)), None
    for number, path in enumerate(sweep.paths):
        before, window = window, _begin(sweep, number, path, window)
        if sweep.takes_new_references(number):
            gy, gp = sweep.reference_rows(path)
            references = window.s[-1].T @ gy.T + gp
        places = None if target is None else target.places[number]
        if target is not None and places is not None and places[0] >= 0:
            target.values[places[0]] = window.s[-1, :n]
        if before is not None:
            _collect_between(sweep, number, before, wanted.get(number), found)
        _collect(window, outputs, wanted.get(number), found)
        for first, last in sweep.chunks(path):
            part = sweep.slopes(path, first, last)
            if path.linear.n_invariants:
                part = _compared(part, references)
            s = np.zeros((PAST + last - first, path.linear.n, n_parameters))
            s[:PAST] = window.s[-PAST:]
            looked = last - first if resolution is not None else 0
            changes = np.zeros((looked, path.linear.n, n_parameters))
            sweep.engine(path).forwards(
                part, path.c[first:last], s, PAST, path.predictor[first:last], changes
            )
            window = _Window(s, last, window.shift)
            if resolution is not None:
                resolution.look(path, s, changes, first, last)
            if target is not None and places is not None:
                into = places[first + 1 : last + 1]
                kept = int(np.count_nonzero(into >= 0))        # all but the last, if it was cut
                if kept:
                    target.values[into[0] : into[0] + kept] = s[PAST : PAST + kept, :n]
            _collect(window, outputs, wanted.get(number), found)
    return found


def _collect(
    window: _Window, outputs: Outputs, wanted: _Wanted | None, found: np.ndarray
) -> None:
    """Take the outputs of a leg that lie in the window."""
    if wanted is None:
        return
    end = int(np.searchsorted(wanted.rows, window.last, side="right"))
    numbers, rows = wanted.numbers[wanted.done : end], wanted.rows[wanted.done : end]
    wanted.done = end
    places = rows + np.intc(len(window.s) - 1 - window.last)
    point_shares.gather(window.s, places, outputs.shares[numbers], numbers, found)


def _collect_between(
    sweep: Sweep | Along, number: int, before: _Window, wanted: _Wanted | None, found: np.ndarray
) -> None:
    """Take the outputs between changes of the state where a leg begins."""
    through = sweep.passages[number - 1]
    while wanted is not None and wanted.done < len(wanted.rows) and wanted.rows[wanted.done] < 0:
        points = before.points(through.row, len(through.shares))
        s, _ = through.after_links(-int(wanted.rows[wanted.done]), points, before.shift)
        found[wanted.numbers[wanted.done], : sweep.n] = s[:, : sweep.n].T
        wanted.done += 1


def _begin(sweep: Sweep | Along, number: int, path: Path, before: _Window | None) -> _Window:
    """Find the tangents where a leg begins, and those of the points used as its past."""
    n_parameters = len(sweep.parameters)
    s = np.zeros((PAST, path.linear.n, n_parameters))      # PAST - 1 points, then the first
    past: list[np.ndarray] = []
    shift = np.zeros(n_parameters)
    if before is None:
        w = sweep.seeds
        for start in sweep.starts[0]:
            values = start.values(w, shift)
            w = values[:, : sweep.n]
        slopes = start.slopes(values)
    else:
        through = sweep.passages[number - 1]
        points = before.points(through.row, len(through.shares))
        values, slopes, shift = through.forwards(points, before.shift)
        past = [np.tensordot(share, points, 1) for share in through.past[: PAST - 1]]
    distance = path.t[1 : PAST + 1] - path.t[PAST]
    s[:] = values.T + distance[:, None, None] * slopes.T
    for k, row in enumerate(past):
        n = min(row.shape[1], path.linear.n)
        s[PAST - 2 - k, :n] = row[:, :n].T
    return _Window(s, 0, shift)


def _compared(slopes: Slopes, references: np.ndarray) -> Slopes:
    """Account for reference values of invariants that depend on the parameters."""
    m, count = slopes.m, references.shape[1]
    rows, columns = divmod(slopes.places[4], max(m, 1))
    inside = columns >= m - count
    at = slopes.values.shape[1] - len(rows) + np.flatnonzero(inside)
    values = slopes.values.copy()
    values[:, at] -= references[rows[inside], columns[inside] - (m - count)]
    return replace(slopes, values=values)
