"""Collect the derivatives of a run: at its points, between them, and at events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tether._core.state import State
from tether.problem.options import Options
from tether.problem.problem import Problem
from tether.run.interpolant import Interpolant
from tether.run.steps import Steps, joined
from tether.run.watch import Event
from tether.sensitivity.checks import check_model, check_not_changed, check_outside, reading_of
from tether.sensitivity.forward import RowTarget, forwards
from tether.sensitivity.later import Later
from tether.sensitivity.outputs import ONE, Outputs, RowOutputs, outputs_at
from tether.sensitivity.parameters import Parameters, find_parameters
from tether.sensitivity.passage import SIMULTANEOUS, Crossing, Moment, crossing_of_event
from tether.sensitivity.resolution import Resolution, is_at_rest, stands_still
from tether.sensitivity.route import PAST
from tether.sensitivity.sweep import Along, Sweep
from tether.sensitivity.tape import Tape
from tether.structure.start import Start
from tether.trace.reading import Reading

__all__ = [
    "Derivatives", "Occurrence", "Sensitivities", "collect", "occurrences", "taped",
]

# How often a run is repeated with shorter steps at most.
MAX_REPEATS = 4
# A run is only repeated again if the last repetition reduced the largest error to this share of it.
WORTHWHILE_REDUCTION = 0.7


@dataclass(frozen=True, eq=False)
class Sensitivities:
    """Derivatives of a solution with respect to parameters.

    Attributes
    ----------
    names : tuple of str
        The parameters.
    values : ndarray, shape (parameters, n, nt)
        dy/dp at the times of the solution, with the times held fixed.
    t_events : list of ndarray or None
        For every event, derivatives of its times: one row per occurrence, one column per parameter.
    y_events : list of ndarray or None
        For every event, total derivatives of the values there, which include the change of the
        time: (occurrences, parameters, n).
    between : Interpolant or None
        dy/dp between the points.
    quadratures : ndarray, shape (parameters, m, nt), or None
        Derivatives of ``sol.quadratures``.
    """

    names: tuple[str, ...]
    values: np.ndarray
    t_events: list[np.ndarray] | None
    y_events: list[np.ndarray] | None
    between: Interpolant | None
    quadratures: np.ndarray | None = None

    def at(self, t: ArrayLike) -> np.ndarray:
        """Return dy/dp at a time, (parameters, n), or at times, (parameters, n, times)."""
        if self.between is None:
            raise ValueError("there is no dense output: solve with dense_output=True")
        found = self.between(t)[0]
        shape = (*self.values.shape[:2], *found.shape[1:])
        return found.reshape(shape)


class Derivatives(Tape):
    """The tape of a run, and the parameters of the derivatives taken when it is over."""

    def __init__(
        self, parameters: Parameters, later: Later | None, others: bool, n: int, settings: Options
    ) -> None:
        super().__init__()
        self.parameters, self.later = parameters, later
        self._resolution = Resolution(
            *settings.tolerances(n), parameters.sizes, tested=settings.sensitivity_test
        )
        self._repeats, self._worst = 0, np.inf  # repetitions so far, largest error before the last
        self._others = others                  # whether other code of the user's runs on the way
        self._reading: Reading | None = None

    def begun(self, state: State, start: Start) -> None:
        """Note where a leg begins, and refuse what cannot be differentiated."""
        if not self.legs and (self._others or self.run.model.plan is None):
            self._reading = reading_of(self.parameters, self.run.n)
        if start.success:
            check_model(self.run.model, start, self.parameters, state.lowest_order)
        super().begun(state, start)

    def differentiate(self, events: list[Event], dense_output: bool) -> Sensitivities | None:
        """Sweep the run forwards and return the derivatives, unless that is done later."""
        assert self.record is not None
        if not self.legs or not self.legs[0].begin.start.success:
            return self._nothing()
        if self._reading is not None:
            check_not_changed(self._reading, reading_of(self.parameters, self.run.n))
        sweep = Sweep(self, self.record, self.parameters, events)
        look = self._resolution
        look.begin()
        if look.limited or is_at_rest(sweep.paths, look.rtol, look.atol):
            if stands_still(sweep.paths):
                look.limited = look.tested = True
            self._check_along(sweep)            # before both forward and backward sweeps
        if self.later is None:
            return collect(sweep, dense_output, look if look.tested else None)
        self.later.sweep = sweep
        if look.tested:
            self._check_along(sweep, tested=True)
        return None

    def _nothing(self) -> Sensitivities | None:
        """Return the derivatives of a run that never began: none, or NaN."""
        assert self.record is not None
        if self.later is not None:
            return None
        record = self.record
        t = record.steps().t if record.t_eval is None else record.outputs()[0]
        shape = len(self.parameters), self.run.n, len(t)
        return Sensitivities(self.parameters.names, np.full(shape, np.nan), None, None, None)

    def _check_along(self, sweep: Sweep, tested: bool = False) -> None:
        """Check the steps for one tangent, along a direction to which all parameters contribute."""
        count = len(self.parameters)
        direction = self._resolution.sizes * np.where(np.arange(count) % 2, -1.0, 1.0)
        direction *= 1.0 + 0.5 * np.sin(np.arange(count))
        look = replace(self._resolution, sizes=np.ones(1), tested=tested)
        forwards(Along(sweep, direction), Outputs.joined([]), resolution=look)
        self._resolution.take(look)

    def tightened(self, settings: Options) -> Options | None:
        """Return the settings for another run, if its steps must be shorter; else None."""
        look, step = self._resolution, self._resolution.wanted_step
        if self._repeats == MAX_REPEATS or (step is None and not look.worst > 1.0):
            return None
        self._repeats += 1
        if step is not None:                   # tolerances do not matter to a solution at rest
            look.limited = look.tested = True
            step = min(step, settings.max_step)
            first = step / 2.0**settings.max_order     # doubles with every order up to the highest
            return replace(settings, max_step=step, first_step=first)
        if not look.worst < WORTHWHILE_REDUCTION * self._worst:
            return None                        # shorter steps do not help, as with round-off
        self._worst, self.ceilings = look.worst, look.ceilings(self.ceilings)
        return settings

    @property
    def doubts(self) -> tuple[str, ...]:
        """Doubts about the derivatives, in words."""
        look = self._resolution
        if look.wanted_step is not None:
            return (
                "the steps are too long for the derivatives, which change faster than the "
                f"solution: pass max_step={look.wanted_step:.2g}",
            )
        if look.worst > 1.0:
            return (
                f"the errors of sol.sens are up to {look.worst:.3g} tolerances in a step, and the "
                "run could not be repeated with shorter steps: pass a smaller rtol",
            )
        return ()


def taped(
    sensitivity: Any, problem: Problem, n: int, variables: Sequence[str] | None,
    events: Sequence[Event], called_back: bool, settings: Options,
) -> Derivatives:
    """Make the tape of a run whose derivatives are wanted; refuse what has none at once."""
    later = sensitivity if isinstance(sensitivity, Later) else None
    wanted = sensitivity if later is None else later.wanted
    if isinstance(wanted, Parameters):         # found before, for other values of the arguments
        parameters = replace(wanted, problem=problem)
    else:
        parameters = find_parameters(wanted, problem, n, variables)
    applies = [(event.name, event.apply) for event in events if event.apply is not None]
    check_outside(parameters, n, [
        *((f"event {event.name}", event.fun, True) for event in events),
        *((f"apply of event {name}", apply, True) for name, apply in applies),
        *(("a constraint or an invariant", item.fun, False)
          for item in (*problem.constraints, *problem.invariants)),
    ])
    others = called_back or bool(applies)      # these may change what the equations read
    return Derivatives(parameters, later, others, n + problem.n_quadratures, settings)


def collect(
    sweep: Sweep, dense_output: bool, resolution: Resolution | None = None
) -> Sensitivities:
    """Sweep a taped run forwards and return the derivatives."""
    record, n = sweep.record, sweep.n
    parts = [] if record.t_eval is None else [outputs_at(sweep, record.outputs()[0])]
    count = 0 if record.t_eval is None else len(parts[0])
    happened = [occurrences(sweep, event) for event in sweep.events]
    for occurrence in (found for event in happened for found in event):
        parts += occurrence.outputs
    target, rows = None, None
    if record.t_eval is None or dense_output:
        if len(sweep.paths) == 1 and sweep.paths[0].leg.overshoot is None:
            places = [np.arange(sweep.paths[0].steps + 1)]     # every point is a row
        else:
            rows = RowOutputs(sweep)
            parts += rows.others.values()
            places = rows.places
        height = len(places[0]) if rows is None else len(rows)
        target = RowTarget(np.zeros((height, n, len(sweep.parameters))), places)
    found = forwards(sweep, Outputs.joined(parts), target, resolution)
    if target is not None and rows is not None and rows.others:
        target.values[list(rows.others)] = found[len(found) - len(rows.others) :, :n]
    if record.t_eval is not None or target is None:
        values = found[:count, :n].transpose(2, 1, 0)
    else:
        values = target.values.transpose(2, 1, 0)
    t_events, y_events = _of_events(happened, found[count:], sweep)
    own = n - sweep.parameters.problem.n_quadratures       # integrals come last
    between = None
    if dense_output and target is not None:
        between = _interpolant(sweep, target.values[:, :own].transpose(0, 2, 1))
    return Sensitivities(
        sweep.parameters.names, np.ascontiguousarray(values[:, :own]),
        t_events if sweep.events else None,
        [y[:, :, :own] for y in y_events] if sweep.events else None,
        between, np.ascontiguousarray(values[:, own:]) if own < n else None,
    )


def _of_events(
    happened: list[list[Occurrence]], found: np.ndarray, sweep: Sweep
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return derivatives of the times of events and of the values there, from the outputs'."""
    times, values, first = [], [], 0
    for event in happened:
        t = np.zeros((len(event), len(sweep.parameters)))
        y = np.zeros((len(event), len(sweep.parameters), sweep.n))
        for k, occurrence in enumerate(event):
            own = found[first : first + len(occurrence.outputs)]
            first += len(own)
            y[k] = own[0, : sweep.n].T
            if occurrence.moment is not None:
                t[k] = np.nan
            if occurrence.crossing is not None:
                t[k] = occurrence.crossing.shift(own[1].T)
                y[k] += np.outer(t[k], occurrence.slope)
        times.append(t)
        values.append(y)
    return times, values


def _interpolant(sweep: Sweep, rows: np.ndarray) -> Interpolant | None:
    """Return tangents between the rows; None where no step was taken."""
    parts = [sweep.record.whole_steps(k) for k in range(sweep.record.part_number + 1)]
    flat = np.ascontiguousarray(rows).reshape(len(rows), -1)
    found, first = [], 0
    for steps in parts:
        part = flat[first : first + len(steps.t)]
        found.append(Steps(steps.t, part, part, steps.order, steps.begins, steps.smooth))
        first += len(steps.t)
    whole = joined(found)
    return Interpolant(whole) if len(whole.t) > 1 else None


@dataclass(frozen=True, eq=False)
class Occurrence:
    """One time at which an event happened.

    Attributes
    ----------
    output : Outputs
        The values there: before the event, or after another event that set it off.
    slope : ndarray
        y' there.
    leg, moment : int, Moment or None
        The end of the leg whose solution determines the time; None if the event was at the start.
    crossing : Crossing or None
        How the time depends on it; None where the time has no derivative.
    """

    output: Outputs
    slope: np.ndarray
    leg: int = 0
    moment: Moment | None = None
    crossing: Crossing | None = None

    @property
    def outputs(self) -> list[Outputs]:
        """The outputs needed: the values, and those on which the time depends."""
        if self.moment is None or self.crossing is None:
            return [self.output]
        return [self.output, Outputs.one(self.leg, self.moment.row, self.moment.shares)]


def _time_of_begin(sweep: Sweep, t: float) -> float:
    """Return the time of the first leg that begins at an event, or the event's own time."""
    begins = (path.leg.begin.t for path in sweep.paths[1:])
    return next((begin for begin in begins if abs(t - begin) <= SIMULTANEOUS * abs(t)), t)


def occurrences(sweep: Sweep, event: Event) -> list[Occurrence]:
    """Differentiate the times at which an event happened."""
    found = []
    times = [_time_of_begin(sweep, t) for t in event.t]
    outputs = outputs_at(sweep, np.array(times))
    for k, (time, y) in enumerate(zip(times, event.y, strict=True)):
        output, leg = outputs[[k]], int(outputs.leg[k])
        path = sweep.paths[leg]
        if not path.steps or time == sweep.paths[0].t[PAST]:
            found.append(Occurrence(output, np.zeros(sweep.n)))
            continue
        moment = Moment(path, time, path.step_at(time))
        following = sweep.paths[leg + 1].leg if leg + 1 < len(sweep.paths) else None
        if following is not None and following.happening and following.happening.t == time:
            moment = Moment(path, time, path.steps)
            crossing = sweep.passages[leg].crossing    # all that happens there does so at once
            changes = following.changes_before(y)
            if changes and not np.array_equal(y, following.happening.y[: sweep.n]):
                behind = Outputs.one(leg + 1, -changes, ONE)       # others have set it off
                slope = following.begins[changes - 1].start.yp[: sweep.n]
                found.append(Occurrence(behind, slope, leg, moment, crossing))
                continue
        else:
            crossing = crossing_of_event(sweep.function(event.fun, 1), moment, sweep.n)
        found.append(Occurrence(output, moment.motion.yp[: sweep.n], leg, moment, crossing))
    return found
