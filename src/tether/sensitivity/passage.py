"""Passage: how the beginning of a leg depends on the end of the leg before.

Where an event, a surface or a break determines when a leg begins, this time τ depends on the
parameters: g(τ, y, y', p) = 0 gives dτ = -(g_y s + g_y' s' + g_p) / g', and what happens at τ is
differentiated along with it, math (35).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from tether._core import interpolate
from tether._core.plain import Plain
from tether.run.happening import Happening
from tether.run.watch import Event
from tether.sensitivity.functions import FunctionSlopes, UserFunction
from tether.sensitivity.parameters import Parameters
from tether.sensitivity.route import PAST, Path
from tether.sensitivity.starts import Motion, motion_at
from tether.trace import Trace, jacobian

__all__ = [
    "Crossing", "Link", "Moment", "Passage", "Start", "crossing_of_event", "link_of", "passage",
]

# Relative changes of an argument for differences of the times of breaks; the first that works.
ARGUMENT_CHANGES = np.array([1e-6, 1e-8, 1e-10])
# Times are the same up to this relative difference.
SAME_TIME = 64 * float(np.finfo(float).eps)
# Slopes are the same up to this relative difference; others make tangents jump where the time
# depends on parameters.
SAME_SLOPE = 1e-6
# Largest value of an event function where its event happens, as a share of its change in the step.
EVENT_RESIDUAL = 1e-3
# The equations before a break are evaluated this share of the leg before it.
BEFORE_BREAK = 1e-13
EPS = float(np.finfo(float).eps)
# What is left where terms cancel, relative to the terms.
ROUND_OFF = 1e-6
# Largest relative distance of simultaneous times: twice that by which the driver judges events.
SIMULTANEOUS = 8 * EPS
# A function is at rest if it changes by less than this share of its tolerance in a step.
AT_REST = 1e-3
# Smaller relative effects of the time of an event are neglected.
NEGLIGIBLE = 1e-8


@dataclass(frozen=True, eq=False)
class Crossing:
    """The derivative of the time at which something happens.

    Attributes
    ----------
    by_values : ndarray, shape (k,)
        With respect to the values of the first k unknowns there; y' is eliminated by the equations.
    by_parameters : ndarray, shape (parameters,)
        With respect to the parameters, at fixed values.
    """

    by_values: np.ndarray
    by_parameters: np.ndarray

    def shift(self, s: np.ndarray) -> np.ndarray:
        """Return the derivative of the time, from tangents of y, one row per parameter."""
        return s[:, : len(self.by_values)] @ self.by_values + self.by_parameters

    def along(self, direction: np.ndarray) -> Crossing:
        """Return the derivatives along one combination of the parameters."""
        return Crossing(self.by_values, np.array([self.by_parameters @ direction]))


class Start(Protocol):
    """How consistent values depend on the values given (`starts.StartMap`)."""

    def values(self, w: np.ndarray, shift: np.ndarray) -> np.ndarray:
        """Return the tangents of the values, from those of the values given and of the time."""

    def slopes(self, s: np.ndarray) -> np.ndarray:
        """Return the tangents of the slopes, from those of the values."""

    def take_back(
        self, of_values: np.ndarray, gradient: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return adjoints of the values given and of the time, from those of the values found."""

    def take_slopes_back(self, of_slopes: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """Return adjoints of the values found, from those of their slopes."""

    def along(self, direction: np.ndarray) -> Start:
        """Return the derivatives along one combination of the parameters."""


@dataclass(frozen=True, eq=False)
class Link:
    """A change of the state by events, followed by a start from the changed values.

    Attributes
    ----------
    start : Start
        How the values found depend on the changed values.
    size : int
        Number of unknowns before the change.
    by_state : ndarray or None
        Derivative of the changed values with respect to those before; None if nothing changes.
    by_shift : ndarray
        Their derivative with respect to the time.
    by_parameters : ndarray or None
        Their derivative with respect to the parameters.
    """

    start: Start
    size: int
    by_state: np.ndarray | None
    by_shift: np.ndarray
    by_parameters: np.ndarray | None

    def forwards(self, s: np.ndarray, shift: np.ndarray) -> np.ndarray:
        """Return the tangents after the link, from those before it and that of the time."""
        w = s[:, : len(self.by_shift)] if self.by_state is None else s @ self.by_state.T
        w = w + np.outer(shift, self.by_shift)
        if self.by_parameters is not None:
            w = w + self.by_parameters.T
        return self.start.values(w, shift)

    def backwards(
        self, of_values: np.ndarray, gradient: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return adjoints of the values before the link and of the time, from those after it."""
        w, of_time = self.start.take_back(of_values, gradient)
        if self.by_parameters is not None:
            gradient += w @ self.by_parameters
        if self.by_state is not None:
            return w @ self.by_state, of_time + w @ self.by_shift
        of_state = np.zeros((len(w), self.size))
        of_state[:, : w.shape[1]] = w
        return of_state, of_time + w @ self.by_shift

    def along(self, direction: np.ndarray) -> Link:
        """Return the derivatives along one combination of the parameters."""
        own = None if self.by_parameters is None else (self.by_parameters @ direction)[:, None]
        return replace(self, start=self.start.along(direction), by_parameters=own)


@dataclass(frozen=True, eq=False)
class Passage:
    """From the end of a leg to the beginning of the next.

    Attributes
    ----------
    row, shares : int, ndarray
        The last step of the leg before, and the weights of its points in y at the time.
    crossing : Crossing or None
        How the time depends on the solution and the parameters.
    links : list of Link
        What happens, one after the other.
    past : list of ndarray
        Weights of the same points in the points that are the past of the next leg. Empty if the leg
        has no past, or if tangents jump: its past is then extrapolated along their slopes.
    at_once : bool
        Whether it happens at the same time as the passage before, with the same derivative of the
        time: its own event function may be at rest there.
    """

    row: int
    shares: np.ndarray
    crossing: Crossing | None
    links: list[Link]
    past: list[np.ndarray]
    at_once: bool = False

    @property
    def time_varies(self) -> bool:
        """Whether its time depends on anything."""
        crossing = self.crossing
        if crossing is None:
            return self.at_once
        return bool(crossing.by_values.any() or crossing.by_parameters.any())

    def forwards(
        self, tangents: np.ndarray, before: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the tangents of values and slopes after the last link, and that of the time.

        `tangents` are those of the points of the last step, latest first, of all unknowns; `before`
        is the tangent of the time of the passage before.
        """
        s, shift = self.after_links(len(self.links), tangents, before)
        return s, self.links[-1].start.slopes(s), shift

    def after_links(
        self, count: int, tangents: np.ndarray, before: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the tangents of the values after the first `count` links, and that of the time."""
        s = np.tensordot(self.shares, tangents, 1)
        shift = np.zeros(len(s)) if self.crossing is None else self.crossing.shift(s)
        if self.at_once:
            shift = before
        for link in self.links[:count]:
            s = link.forwards(s, shift)
        return s, shift

    def backwards(
        self, of_values: np.ndarray, of_slopes: np.ndarray, of_time: np.ndarray,
        gradient: np.ndarray, between: Sequence[tuple[int, np.ndarray]] = (),
    ) -> tuple[np.ndarray, np.ndarray]:
        """Take adjoints from the beginning of a leg back to the values just before.

        `of_values` and `of_slopes` are the adjoints after the last link, `of_time` is that of
        passages at the same time later on. `between` has adjoints of the user's unknowns after the
        first so many links. The adjoint of the time of the passage before is returned as well; the
        parameters' part is added to `gradient`.
        """
        of_state = of_values + self.links[-1].start.take_slopes_back(of_slopes, gradient)
        of_time = of_time.copy()
        for place in range(len(self.links), 0, -1):
            for count, weights in between:
                if count == place:
                    of_state[:, : weights.shape[1]] += weights
            of_state, more = self.links[place - 1].backwards(of_state, gradient)
            of_time += more
        if self.at_once:
            return of_state, of_time
        if self.crossing is not None:
            gradient += np.outer(of_time, self.crossing.by_parameters)
            k = len(self.crossing.by_values)
            of_state[:, :k] += np.outer(of_time, self.crossing.by_values)
        return of_state, np.zeros_like(of_time)

    def along(self, direction: np.ndarray) -> Passage:
        """Return the derivatives along one combination of the parameters."""
        crossing = None if self.crossing is None else self.crossing.along(direction)
        return replace(
            self, crossing=crossing, links=[link.along(direction) for link in self.links]
        )


@dataclass(frozen=True, eq=False)
class Moment:
    """The solution just before something happens, from the last step of a leg."""

    path: Path
    t: float
    row: int
    at_break: bool = False

    @property
    def is_at_begin(self) -> bool:
        """Whether no time has passed since the leg began."""
        return abs(self.t - self.path.leg.begin.t) <= SIMULTANEOUS * abs(self.t)

    @property
    def degree(self) -> int:
        """Degree of the polynomial over the step."""
        return self.path.degree(self.row) if self.path.steps else 0

    @cached_property
    def shares(self) -> np.ndarray:
        """Weights of the points in the values."""
        return self.path.shares(self.t, self.row, self.degree)

    def _slope(self) -> np.ndarray:
        """Slope of the polynomial."""
        last, k = PAST + self.row, self.degree
        nodes = np.ascontiguousarray(self.path.t[last - k : last + 1])
        psi, phi = interpolate.polynomial_through(
            nodes, np.ascontiguousarray(self.points[::-1]), k, k
        )
        y, yp = np.empty((2, 1, self.path.linear.n))
        interpolate.evaluate_at(np.array([self.t]), nodes[-1], k, psi, phi, y, yp)
        return yp[0]

    @cached_property
    def points(self) -> np.ndarray:
        """Values of all unknowns at the points of the polynomial, latest first."""
        leg, first = self.path.leg, self.path.leg.begin

        def value(row: int) -> np.ndarray:
            if row >= 0:
                return self.path.y[row]
            if leg.past_values is not None and -row <= len(leg.past_values):
                return leg.past_values[-row - 1]
            return first.start.y + (self.path.t[PAST + row] - first.t) * first.start.yp

        return np.array([value(self.row - k) for k in range(self.degree + 1)])

    @cached_property
    def y(self) -> np.ndarray:
        """Values of all unknowns."""
        return self.shares @ self.points

    @property
    def tolerances(self) -> np.ndarray:
        """Allowed errors of the values."""
        state = self.path.leg.state
        return state.array("rtol") * np.abs(self.y) + state.array("atol")

    @cached_property
    def motion(self) -> Motion:
        """Derivatives of the solution there, from its equations."""
        begin, t = self.path.leg.begin, self.t
        if self.at_break:                      # at the break itself those after it may hold already
            t -= BEFORE_BREAK * (t - begin.t) + 8 * EPS * abs(t) * np.sign(t - begin.t)
        return motion_at(self.path.linear, begin.values, t, self.y, self._slope())


def crossing_of_event(function: UserFunction, moment: Moment, n: int) -> Crossing | None:
    """Differentiate the time at which an event function is zero."""
    y, yp, ypp = moment.y[:n], moment.motion.yp[:n], moment.motion.ypp[:n]
    found = function.at(moment.t, y, yp)
    step = moment.path.t[PAST + moment.row] - moment.path.t[PAST + moment.row - 1]
    rate = found.by_time[0] + found.by_values[0] @ yp + found.by_slopes[0] @ ypp
    tolerance = np.abs(found.by_values[0]) @ moment.tolerances[:n]
    round_off = ROUND_OFF * abs(found.by_values[0] @ y)
    allowed = EVENT_RESIDUAL * abs(step * rate) + round_off + tolerance
    # events are located with slopes of the interpolant, which differ from those of the equations
    left = abs(found.value[0])
    is_zero = left <= allowed or found.by_slopes.any()
    if not is_zero and left > EVENT_RESIDUAL * _span(function, moment, n):
        raise ValueError(
            f"sensitivity: the event function {function.name} is {found.value[0]:.3g} at t = "
            f"{moment.t:.6g}, where its event has happened: it depends on more than t, y, yp and "
            "args, which has changed since"
        )
    if abs(step * rate) < AT_REST * tolerance:         # it has crossed zero by round-off
        return None
    return _crossing(
        found.by_values[0], found.by_slopes[0], float(found.by_time[0]), found.by_parameters[0],
        moment.motion,
    )


def _span(function: UserFunction, moment: Moment, n: int) -> float:
    """Largest value of an event function at the ends of a step."""
    path = moment.path
    return max(
        abs(float(function.at(path.t[PAST + row], path.y[row, :n], path.yp[row, :n]).value[0]))
        for row in (moment.row - 1, moment.row)
    )


def _crossing(
    by_values: np.ndarray, by_slopes: np.ndarray, by_time: float, by_parameters: np.ndarray,
    motion: Motion,
) -> Crossing | None:
    """Differentiate the time at which a function with known derivatives is zero."""
    n = len(by_values)
    rate = by_time + by_values @ motion.yp[:n] + by_slopes @ motion.ypp[:n]
    if rate == 0.0 or not np.isfinite(rate):
        return None
    of_state, of_parameters = _by_state(by_values[None], by_slopes[None], motion, by_parameters)
    return Crossing(-of_state[0] / rate, -of_parameters[0] / rate)


def _by_state(
    by_values: np.ndarray, by_slopes: np.ndarray, motion: Motion, by_parameters: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Turn derivatives with respect to y and y' into total ones with respect to all of y."""
    total = np.array(by_parameters, float).reshape(len(by_values), -1)
    if not by_slopes.any():
        return by_values, total
    size = len(motion.yp)
    more = np.zeros((len(by_values), size - by_values.shape[1]))
    values, slopes = np.hstack([by_values, more]), np.hstack([by_slopes, more])
    return values + motion.tangents.take_slopes_back(slopes, total), total


def link_of(
    start: Start, motion: Motion, n: int, found: FunctionSlopes | None
) -> Link:
    """Differentiate a start from a moving state; `found` is how events change the state."""
    size, yp = len(motion.yp), motion.yp[:n]
    if found is None:
        return Link(start, size, None, yp, None)
    by_shift = found.by_values @ yp + found.by_slopes @ motion.ypp[:n] + found.by_time
    by_state, by_parameters = _by_state(
        found.by_values, found.by_slopes, motion, found.by_parameters
    )
    if by_state.shape[1] < size:
        by_state = np.hstack([by_state, np.zeros((n, size - by_state.shape[1]))])
    return Link(start, size, by_state, by_shift, by_parameters)


def _has_kink(moment: Moment, after: np.ndarray) -> bool:
    """Whether slopes differ, even by little compared with the current steps.

    Each difference is compared with the largest slope that its unknown has had in the leg.
    """
    n = len(after)
    size = np.abs(moment.path.yp[:, :n]).max(axis=0, initial=0.0)
    size = np.maximum(size, np.abs(after))
    return bool(np.any(np.abs(after - moment.motion.yp[:n]) > SAME_SLOPE * size))


class Functions(Protocol):
    """The user's functions with their derivatives (implemented by `sweep.Sweep`)."""

    parameters: Parameters
    events: Sequence[Event]

    def function(self, fun: Any, size: int) -> UserFunction:
        """Return a function with its derivatives."""


def passage(
    moment: Moment, happening: Happening | None, links: list[Link], slope: np.ndarray, past: Any,
    functions: Functions, is_first: bool = True,
) -> Passage:
    """Differentiate what happens between two legs; `slope` is y' after it."""
    n, crossing = moment.path.linear.model.n, None
    at_once = (
        happening is not None and happening.decides and not happening.is_break and not is_first
        and moment.is_at_begin
    )
    if happening is not None and not at_once:
        crossing = _crossing_of(happening, moment, functions, n)
        if happening.acting and happening.decides and crossing is None:
            _refuse_if_it_matters(links, moment, functions.events[happening.acting[0]])
    shares = []
    if past is not None and (crossing is None or not _has_kink(moment, slope)):
        shares = [moment.path.shares(x, moment.row, moment.degree) for x in past]
    return Passage(moment.row, moment.shares, crossing, links, shares, at_once)


def _refuse_if_it_matters(links: list[Link], moment: Moment, event: Event) -> None:
    """Refuse an event whose time has no derivative, unless nothing depends on its time."""
    s, unit = np.zeros((1, len(moment.motion.yp))), np.ones(1)
    nothing = s
    for link in links:
        s, nothing = link.forwards(s, unit), link.forwards(nothing, np.zeros(1))
    size = np.abs(moment.motion.yp).max(initial=0.0)
    if np.abs(s - nothing).max(initial=0.0) > NEGLIGIBLE * size:
        raise ValueError(
            f"sensitivity: event {event.name} changes the state at t = {moment.t:.6g}, where its "
            "function rests at zero or only touches it: its time has no derivative"
        )


def _crossing_of(
    happening: Happening, moment: Moment, functions: Functions, n: int
) -> Crossing | None:
    """Differentiate the time at which a leg begins."""
    parameters = functions.parameters
    if happening.is_break:
        return _crossing_of_break(moment, parameters, n)
    if not happening.decides:
        return None
    if happening.acting:
        fun = functions.events[happening.acting[0]].fun
        return crossing_of_event(functions.function(fun, 1), moment, n)
    begin = moment.path.leg.begin
    model = begin.model
    if happening.turned:
        assert model.modes is not None
        node = model.modes.surfaces[happening.turned[0]].function
        with model.modes.lock:
            return _crossing_of_height(model.modes.traced, node, moment, parameters)
    if happening.passing and model.frozen is None:
        return None                            # a kink of whole arrays, where no slope jumps
    if happening.passing:
        assert model.frozen is not None
        node = model.frozen.surfaces[happening.passing[0]].function
        with model.modes.lock if model.modes is not None else nullcontext():
            return _crossing_of_height(model.frozen.traced, node, moment, parameters)
    return None


def _crossing_of_height(
    traced: Trace, node: int, moment: Moment, parameters: Parameters
) -> Crossing | None:
    """Differentiate the time at which the function of a surface is zero.

    It may depend on the shares of a sliding solution, which come after the user's unknowns.
    """
    graph, n = traced.graph, traced.n
    numbers = parameters.of_inputs
    leaves = [
        *traced.unknowns(), *traced.unknowns(1), graph.time(),
        *(graph.arg(int(i)) for i in parameters.inputs[numbers]),
    ]
    slopes = jacobian(graph, [node], leaves)
    program = traced.program(slopes.nodes, opaque=True)
    found = np.zeros(len(leaves))
    inputs = moment.path.leg.begin.values[: traced.args.size]
    found[slopes.cols] = Plain(program, inputs).values(
        moment.t, moment.y[:n], moment.motion.yp[:n]
    )
    by_parameters = np.zeros(len(parameters))
    by_parameters[numbers] = found[2 * n + 1 :]
    return _crossing(
        found[:n], found[n : 2 * n], float(found[2 * n]), by_parameters, moment.motion
    )


def _crossing_of_break(moment: Moment, parameters: Parameters, n: int) -> Crossing | None:
    """Differentiate the time at which a condition on time alone switches the equations."""
    begin = moment.path.leg.begin
    what = begin.model.switch_times
    if what is None or not len(parameters.of_inputs):
        return None
    inputs = begin.values[: len(begin.model.inputs)].copy()
    span = abs(moment.path.t[-1] - moment.path.t[PAST]) or 1.0
    direction = 1.0 if moment.path.t[-1] >= moment.path.t[PAST] else -1.0

    def time_with(number: int, change: float) -> float | None:
        changed = inputs.copy()
        changed[number] += change
        back = moment.t - direction * 0.5 * span
        return what.timetable(changed, back, moment.t + direction * 0.5 * span).next(back)

    now = time_with(0, 0.0)
    if now is None or abs(now - moment.t) > SAME_TIME * max(abs(moment.t), span):
        return None                            # a break of the user's, at a fixed time
    by_parameters = np.zeros(len(parameters))
    for p in parameters.of_inputs:
        number = int(parameters.inputs[p])
        for change in ARGUMENT_CHANGES * (abs(inputs[number]) or 1.0):
            times = [time_with(number, way * change) for way in (1.0, -1.0)]
            if times[0] is not None and times[1] is not None:
                by_parameters[p] = (times[0] - times[1]) / (2.0 * change)
                break
        else:
            raise ValueError(
                f"sensitivity: how the switch at t = {moment.t:.10g} depends on "
                f"{parameters.names[p]} cannot be determined, because something else happens "
                f"{span:.2g} before it"
            )
    return Crossing(np.zeros(n), by_parameters) if by_parameters.any() else None
