"""Sweep: go through a taped run with derivatives, forwards or backwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tether._core import replay
from tether.run.record import Record
from tether.run.watch import Event
from tether.sensitivity.checks import is_same
from tether.sensitivity.functions import UserFunction
from tether.sensitivity.parameters import Parameters
from tether.sensitivity.passage import Change, Link, Passage, Start, passage
from tether.sensitivity.route import PAST, Path, path_of
from tether.sensitivity.slopes import Linearised, Slopes, linearised
from tether.sensitivity.starts import start_map
from tether.sensitivity.tape import Begin, Tape

__all__ = ["Output", "Seed", "Sweep"]

# Numbers in the slopes of the steps that are looked at together.
CHUNK = 1_000_000


@dataclass(frozen=True, eq=False)
class Output:
    """A value of the solution as a combination of points of a leg."""

    leg: int
    row: int                                   # the latest of the points
    shares: np.ndarray                         # of it and of those before


@dataclass(frozen=True, eq=False)
class Seed:
    """What scalars depend on: a combination of points of a leg, and its weights in them."""

    leg: int
    row: int
    shares: np.ndarray
    weights: np.ndarray                        # (scalars, as many unknowns as have a say)


class Sweep:
    """A taped run that can be gone through with derivatives.

    Parameters
    ----------
    tape : Tape
        What the run did.
    record : Record
        Its steps.
    parameters : Parameters
        By what it is differentiated.
    events : sequence of Event
        The user's events.
    """

    def __init__(
        self, tape: Tape, record: Record, parameters: Parameters, events: Sequence[Event]
    ) -> None:
        self.parameters, self.events, self.record = parameters, events, record
        self._known: dict[Any, Linearised] = {}
        self._functions: dict[Any, UserFunction] = {}
        legs = tape.finish()
        self.paths = [path_of(leg, record, self._linear(leg.begin, leg.state)) for leg in legs]
        assert tape.run is not None
        self.n = tape.run.n

    def _linear(self, begin: Begin, state: Any) -> Linearised:
        return linearised(self._known, begin.model, begin.values, self.parameters, state)

    # --- starts and passages ------------------------------------------------------------------

    @cached_property
    def starts(self) -> list[list[Start]]:
        """How every begin of every leg depends on what it was made from."""
        return [
            [
                start_map(
                    begin, self._linear(begin, path.leg.state), self.parameters,
                    depends=number + place > 0 or bool(np.any(self.parameters.starts >= 0)),
                )
                for place, begin in enumerate(path.leg.begins)
            ]
            for number, path in enumerate(self.paths)
        ]

    @cached_property
    def passages(self) -> list[Passage]:
        """How the begin of every leg but the first depends on the one before."""
        found = []
        for number in range(1, len(self.paths)):
            leg, before = self.paths[number].leg, self.paths[number - 1]
            links = [
                self._link(begin, start)
                for begin, start in zip(leg.begins, self.starts[number], strict=True)
            ]
            found.append(passage(
                before, leg.happening, links, leg.begins[0], leg.past, self
            ))
        return found

    def _link(self, begin: Begin, start: Start) -> Link:
        """Differentiate what events make of the state, and take the start along."""
        slope, size, why = begin.start.yp[: self.n], len(begin.start.y), begin.happening
        if why is None or not why.acting:
            return Link(start, slope, size)
        acting = [k for k in why.acting if self.events[k].apply is not None]
        y, change = why.y, None
        for k in acting:
            found = self.function(self.events[k].apply, self.n).at(why.t, y, why.yp)
            y = found.value
            change = Change.of(found) if change is None else change.then(found)
        if not is_same(y, begin.given):
            raise ValueError(
                f"sensitivity: apply of event {self.events[acting[0]].name} gave other values at "
                f"t = {why.t:.6g} than it does now: it depends on more than t, y, yp and args"
            )
        return Link(start, slope, size, change)

    def function(self, fun: Any, size: int) -> UserFunction:
        """Return a function of the user's with its derivatives; it is traced once."""
        if fun not in self._functions:
            self._functions[fun] = UserFunction(fun, self.n, size, self.parameters)
        return self._functions[fun]

    @cached_property
    def seeds(self) -> np.ndarray:
        """Derivatives of the values given at the start, one line per parameter."""
        w = np.zeros((len(self.parameters), self.n))
        given = np.flatnonzero(self.parameters.starts >= 0)
        w[given, self.parameters.starts[given]] = 1.0
        return w

    # --- steps ----------------------------------------------------------------------------------

    def _chunks(self, path: Path) -> list[tuple[int, int]]:
        linear = path.linear
        size = linear.n * (linear.width + len(self.parameters))
        count = max(1, CHUNK // max(size, 1))
        return [(k, min(k + count, path.steps)) for k in range(0, path.steps, count)]

    @staticmethod
    def _engine(path: Path) -> Any:
        """Return what takes steps: the core, or sparse matrices for many unknowns."""
        if not path.linear.is_large:
            return replay
        from tether.sensitivity import large  # late, to save time

        return large

    def _slopes(self, path: Path, first: int, last: int) -> Slopes:
        """Slopes at the ends of some steps."""
        rows = slice(first + 1, last + 1)
        times = path.t[PAST + 1 + first : PAST + 1 + last]
        return path.linear.at(times, path.y[rows], path.yp[rows], path.y[first:last])

    def _reference_rows(self, path: Path) -> tuple[np.ndarray, np.ndarray]:
        """Slopes of the invariants at the begin of a leg."""
        begin, count = path.leg.begin, path.linear.n_invariants
        slopes = path.linear.at(np.array([begin.t]), path.y[:1], path.yp[:1])
        *_, gy, gp = slopes.matrices()
        return gy[-count:], gp[:, -count:]

    def _takes_new_references(self, number: int) -> bool:
        """Whether a leg lets the invariants keep the values at its begin."""
        path = self.paths[number]
        if not path.linear.n_invariants:
            return False
        if number == 0 or not self.paths[number - 1].linear.n_invariants:
            return True
        count = path.linear.n_invariants
        kept, before = (self.paths[k].leg.begin.kept[-count:] for k in (number, number - 1))
        return not np.array_equal(kept, before)

    # --- forwards -------------------------------------------------------------------------------

    @cached_property
    def tangents(self) -> list[np.ndarray]:
        """Tangents at the points of every leg: rows for the points, lines for the parameters."""
        found: list[np.ndarray] = []
        self.between: list[list[np.ndarray]] = [[]]    # behind links before the last
        references = np.zeros((len(self.parameters), 0))
        for number, path in enumerate(self.paths):
            whole = np.zeros((PAST + 1 + path.steps, path.linear.n, len(self.parameters)))
            s = whole.transpose(0, 2, 1)
            if number == 0:
                w = self.seeds
                for start in self.starts[0]:
                    s[PAST] = start.values(w, np.zeros(len(w)))
                    w = s[PAST, :, : self.n]
                slopes = start.slopes(s[PAST])
            else:
                through = self.passages[number - 1]
                points = self._last_points(found[-1], through)
                behind, slopes = through.forwards(points)
                s[PAST] = behind[-1]
                self.between.append([line[:, : self.n] for line in behind])
            distance = path.t[:PAST] - path.t[PAST]
            s[:PAST] = s[PAST] + distance[:, None, None] * slopes
            if path.leg.past is not None:
                shares = self.passages[number - 1].past
                for k, share in enumerate(shares[:PAST]):
                    row = np.tensordot(share, points, 1)
                    s[PAST - 1 - k, :, : row.shape[1]] = row[:, : s.shape[2]]
            if self._takes_new_references(number):
                gy, gp = self._reference_rows(path)
                references = s[PAST] @ gy.T + gp
            for first, last in self._chunks(path):
                part = self._slopes(path, first, last)
                if path.linear.n_invariants:
                    _keep(part, references)
                self._engine(path).forwards(part, path.c[first:last], whole, PAST + 1 + first)
            found.append(s)
        return found

    @staticmethod
    def _last_points(tangents: np.ndarray, through: Passage) -> np.ndarray:
        """Tangents of the points of the last step of a leg, latest first."""
        last = PAST + through.row
        return tangents[last - len(through.value_shares) + 1 : last + 1][::-1]

    def forwards(self, outputs: Sequence[Output]) -> np.ndarray:
        """Return the tangents of outputs: (parameters, n, outputs)."""
        found = np.empty((len(outputs), len(self.parameters), self.n))
        for k, output in enumerate(outputs):
            last, count = PAST + output.row, len(output.shares)
            points = self.tangents[output.leg][last - count + 1 : last + 1, :, : self.n][::-1]
            found[k] = np.tensordot(output.shares, points, 1)
        return np.ascontiguousarray(found.transpose(1, 2, 0))

    # --- backwards ------------------------------------------------------------------------------

    def backwards(self, seeds: Sequence[Seed], gradient: np.ndarray) -> np.ndarray:
        """Add to a gradient what scalars depend on parameters by way of the solution.

        Parameters
        ----------
        seeds : sequence of Seed
            What the scalars depend on.
        gradient : ndarray, shape (scalars, parameters)
            What they depend on parameters otherwise.
        """
        n_lines = len(gradient)
        bars = [
            np.zeros((PAST + 1 + path.steps, n_lines, path.linear.n)) for path in self.paths
        ]
        for seed in seeds:
            for j, share in enumerate(seed.shares):
                row = bars[seed.leg][PAST + seed.row - j]
                row[:, : seed.weights.shape[1]] += share * seed.weights
        of_references = np.zeros((n_lines, 0))
        for number in range(len(self.paths) - 1, -1, -1):
            path, bar = self.paths[number], bars[number]
            count = path.linear.n_invariants
            if of_references.shape[1] != count:
                of_references = np.zeros((n_lines, count))
            for first, last in reversed(self._chunks(path)):
                part = self._slopes(path, first, last)
                pull = np.zeros((last - first, n_lines, path.linear.m))
                self._engine(path).backwards(
                    part, path.c[first:last], bar, PAST + 1 + first, gradient, pull
                )
                if count:
                    of_references += pull[:, :, -count:].sum(axis=0)
            if self._takes_new_references(number):
                gy, gp = self._reference_rows(path)
                bar[PAST] += of_references @ gy
                gradient += of_references @ gp.T
                of_references = np.zeros((n_lines, 0))
            self._leave(number, path, bar, bars, gradient)
        return gradient

    def _leave(
        self, number: int, path: Path, bar: np.ndarray, bars: list[np.ndarray],
        gradient: np.ndarray,
    ) -> None:
        """Take what depends on the begin of a leg back to the one before, or to the start."""
        past = bar[:PAST].copy()
        if path.leg.past is not None:
            shares = self.passages[number - 1].past
            through = self.passages[number - 1]
            target = bars[number - 1]
            n = min(bar.shape[2], target.shape[2])
            for k, share in enumerate(shares[:PAST]):
                for j, part in enumerate(share):
                    target[PAST + through.row - j, :, :n] += part * past[PAST - 1 - k, :, :n]
                past[PAST - 1 - k] = 0.0
        distance = path.t[:PAST] - path.t[PAST]
        of_values = bar[PAST] + past.sum(axis=0)
        of_slopes = np.tensordot(distance, past, 1)
        if number == 0:
            of_start = of_values + self.starts[0][-1].take_slopes_back(of_slopes, gradient)
            for start in reversed(self.starts[0]):
                of_given, _ = start.take_back(of_start, gradient)
                of_start = np.zeros_like(of_values)
                of_start[:, : self.n] = of_given
            gradient += of_given @ self.seeds.T
            return
        through = self.passages[number - 1]
        points = through.backwards(of_values, of_slopes, gradient)
        for j, row in enumerate(points):
            bars[number - 1][PAST + through.row - j, :, : row.shape[1]] += row


def _keep(slopes: Slopes, references: np.ndarray) -> None:
    """Let invariants be compared with values that depend on parameters themselves."""
    m, count = slopes.m, references.shape[1]
    rows, columns = divmod(slopes.places[4], max(m, 1))
    inside = columns >= m - count
    at = slopes.values.shape[1] - len(rows) + np.flatnonzero(inside)
    slopes.values[:, at] -= references[rows[inside], columns[inside] - (m - count)]
