"""Sweep: a taped run, ready to be differentiated forwards or backwards.

`forward.py` and `backward.py` do that, some steps at a time, so that little memory is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from tether._core import replay
from tether.run.record import Record
from tether.run.watch import Event
from tether.sensitivity.checks import is_same
from tether.sensitivity.free_jumps import free_jump
from tether.sensitivity.functions import FunctionSlopes, UserFunction, then
from tether.sensitivity.parameters import Parameters
from tether.sensitivity.passage import Moment, Passage, Start, link_of, passage
from tether.sensitivity.route import Path, path_of
from tether.sensitivity.slopes import Linearised, Slopes, linearised
from tether.sensitivity.starts import is_undecided, motion_at, start_map
from tether.sensitivity.tape import Begin, Tape

__all__ = ["Along", "Sweep"]

# Steps are processed together up to so many numbers in their derivatives.
CHUNK = 1_000_000


class Sweep:
    """A taped run that can be differentiated.

    Parameters
    ----------
    tape : Tape
        What the run did.
    record : Record
        Its steps.
    parameters : Parameters
        The parameters of the derivatives.
    events : sequence of Event
        The user's events.
    """

    def __init__(
        self, tape: Tape, record: Record, parameters: Parameters, events: Sequence[Event]
    ) -> None:
        self.parameters, self.events, self.record = parameters, events, record
        self._known: dict[Any, Linearised] = {}
        self._functions: dict[int, UserFunction] = {}
        self._slopes: dict[tuple[Path, int], Slopes] = {}
        self._kept = 0                         # how many numbers are in them
        legs = tape.finish()
        self.paths = [path_of(leg, record, self._linear(leg.begin, leg.state)) for leg in legs]
        self.n = tape.run.n
        for path in self.paths:
            if (t := free_jump(path)) is not None:
                _ = self.passages              # may know more about it, and say so
                raise ValueError(
                    f"sensitivity: the equations jump at t = {t:.6g} where a rounding of unknowns "
                    "(floor, ceil, // or %), an angle, or a comparison inside of a root, a divisor "
                    "or the like changes its answer. Such jumps are not located, and how their "
                    "times depend on parameters is not known: write a comparison that stands by "
                    "itself, or an unknown that an event's apply changes"
                )

    def _linear(self, begin: Begin, state: Any) -> Linearised:
        return linearised(self._known, begin.model, begin.values, self.parameters, state)

    # --- starts and passages ------------------------------------------------------------------

    @cached_property
    def starts(self) -> list[list[Start]]:
        """How every start of every leg depends on the values given for it."""
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
        """How the beginning of every leg but the first depends on the leg before."""
        return [self._passage(number) for number in range(1, len(self.paths))]

    def _passage(self, number: int) -> Passage:
        leg, before = self.paths[number].leg, self.paths[number - 1]
        why = leg.happening
        t = leg.begins[0].t if why is None else why.t
        moment = Moment(before, t, before.steps, why is not None and why.is_break)
        motion, links = moment.motion, []
        for begin, start in zip(leg.begins, self.starts[number], strict=True):
            links.append(link_of(start, motion, self.n, self._changed(begin)))
            if begin is not leg.begin:
                linear = self._linear(begin, leg.state)
                motion = motion_at(
                    linear, begin.values, begin.t, begin.start.y, begin.start.yp
                )
        found = passage(
            moment, why, links, leg.begin.start.yp[: self.n], leg.past, self, number == 1
        )
        if found.time_varies and is_undecided(leg.begin, self._linear(leg.begin, leg.state)):
            raise ValueError(
                f"sensitivity: at t = {t:.6g} the run starts again exactly where a condition "
                "switches, and nothing determines to which side the solution goes: there is no "
                "derivative. Let no event change the state there"
            )
        return found

    def _changed(self, begin: Begin) -> FunctionSlopes | None:
        """Differentiate the changes of the state by events before a start; None if none."""
        why = begin.happening
        acting = [] if why is None else [
            k for k in why.acting if self.events[k].apply is not None
        ]
        if why is None or not acting:
            return None
        found: FunctionSlopes | None = None
        for k in acting:
            y = why.y if found is None else found.value
            slopes = self.function(self.events[k].apply, self.n).at(why.t, y, why.yp)
            found = slopes if found is None else then(found, slopes)
        assert found is not None
        if not is_same(found.value, begin.given):
            raise ValueError(
                f"sensitivity: apply of event {self.events[acting[0]].name} gave other values at "
                f"t = {why.t:.6g} than now: it depends on more than t, y, yp and args"
            )
        return found

    def function(self, fun: Any, size: int) -> UserFunction:
        """Return a function of the user's with its derivatives; it is traced once."""
        if id(fun) not in self._functions:     # the value keeps fun alive, so that its id is unique
            self._functions[id(fun)] = UserFunction(fun, self.n, size, self.parameters)
        return self._functions[id(fun)]

    @cached_property
    def seeds(self) -> np.ndarray:
        """Derivatives of the values given at the start, one row per parameter."""
        w = np.zeros((len(self.parameters), self.n))
        given = np.flatnonzero(self.parameters.starts >= 0)
        w[given, self.parameters.starts[given]] = 1.0
        return w

    # --- steps ----------------------------------------------------------------------------------

    def chunks(self, path: Path) -> list[tuple[int, int]]:
        """Divide the steps of a leg into chunks that are processed together."""
        linear = path.linear
        size = linear.n * (linear.width + len(self.parameters.of_inputs))
        count = max(1, CHUNK // max(size, 1))
        return [(k, min(k + count, path.steps)) for k in range(0, path.steps, count)]

    @staticmethod
    def engine(path: Path) -> Any:
        """Return the module that takes steps: the core's, or the sparse one for many unknowns."""
        if not path.linear.is_large:
            return replay
        from tether.sensitivity import large  # late, to save time

        return large

    def slopes(self, path: Path, first: int, last: int) -> Slopes:
        """Return derivatives at the ends of some steps; recent ones are kept for another sweep."""
        key = path, first
        if key not in self._slopes:
            rows = slice(first + 1, last + 1)
            times, before = path.ends[first:last], path.y[first:last]
            found = path.linear.at(times, path.y[rows], path.yp[rows], before)
            if self._kept + found.values.size > CHUNK:
                self._slopes.clear()
                self._kept = 0
            self._kept += found.values.size
            self._slopes[key] = found
        return self._slopes[key]

    def reference_rows(self, path: Path) -> tuple[np.ndarray, np.ndarray]:
        """Return derivatives of the invariants at the beginning of a leg."""
        begin, count = path.leg.begin, path.linear.n_invariants
        slopes = path.linear.at(np.array([begin.t]), path.y[:1], path.yp[:1])
        *_, gy, gp = slopes.matrices()
        return gy[-count:], gp[:, -count:]

    def takes_new_references(self, number: int) -> bool:
        """Whether the invariants keep the values that they have where the leg begins."""
        path = self.paths[number]
        if not path.linear.n_invariants:
            return False
        if number == 0 or not self.paths[number - 1].linear.n_invariants:
            return True
        count = path.linear.n_invariants
        kept, before = (self.paths[k].leg.begin.kept[-count:] for k in (number, number - 1))
        return not np.array_equal(kept, before)


class Along:
    """A sweep along one combination of the parameters, with what `forwards` needs of it."""

    def __init__(self, sweep: Sweep, direction: np.ndarray) -> None:
        self._sweep, self._direction = sweep, direction
        self.paths, self.n = sweep.paths, sweep.n
        self.parameters = [direction]          # there is one
        self.engine, self.takes_new_references = sweep.engine, sweep.takes_new_references
        self.chunks = sweep.chunks

    @cached_property
    def seeds(self) -> np.ndarray:
        """Derivatives of the values given at the start."""
        return self._direction[None] @ self._sweep.seeds

    @cached_property
    def starts(self) -> list[list[Start]]:
        """How every start of every leg depends on the values given for it."""
        return [[start.along(self._direction) for start in leg] for leg in self._sweep.starts]

    @cached_property
    def passages(self) -> list[Passage]:
        """How the beginning of every leg but the first depends on the leg before."""
        return [passage.along(self._direction) for passage in self._sweep.passages]

    def slopes(self, path: Path, first: int, last: int) -> Slopes:
        """Return derivatives at the ends of some steps."""
        return self._sweep.slopes(path, first, last).along(self._direction)

    def reference_rows(self, path: Path) -> tuple[np.ndarray, np.ndarray]:
        """Return derivatives of the invariants at the beginning of a leg."""
        gy, gp = self._sweep.reference_rows(path)
        return gy, self._direction[None] @ gp
