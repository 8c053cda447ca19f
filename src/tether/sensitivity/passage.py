"""Passage: how the begin of a leg depends on the end of the one before.

Where an event, a surface or a break decides when the leg begins, its time τ depends on the
parameters: g(τ, y, y', p) = 0 gives dτ = -(g_y s + g_y' s' + g_p) / g', and what happens at τ is
differentiated along with it, math (35).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from tether.run.happening import Happening
from tether.run.watch import Event
from tether.sensitivity.differences import central, gradient_of
from tether.sensitivity.functions import FunctionSlopes, UserFunction
from tether.sensitivity.parameters import Parameters
from tether.sensitivity.route import PAST, Path
from tether.sensitivity.starts import consistent_slopes
from tether.sensitivity.tape import Begin

__all__ = [
    "Change", "Crossing", "Link", "Moment", "Passage", "Start", "crossing_of_event", "passage",
]

# Relative change of an argument with which times of breaks are compared.
SMALL_CHANGE = 1e-6
# Of a leg: so far before a break its equations are looked at.
JUST_BEFORE = 1e-13
EPS = float(np.finfo(float).eps)


@dataclass(frozen=True, eq=False)
class Crossing:
    """When something happens: the derivative of the time.

    Attributes
    ----------
    by_values, by_slopes : ndarray, shape (k,)
        Of the time by the tangents of y and y' there, of the first k unknowns.
    by_parameters : ndarray, shape (parameters,)
        ... and by the parameters themselves.
    """

    by_values: np.ndarray
    by_slopes: np.ndarray
    by_parameters: np.ndarray

    def shift(self, s: np.ndarray, sp: np.ndarray) -> np.ndarray:
        """Return the derivative of the time for tangents of y and y', line by line."""
        n = len(self.by_values)
        return s[:, :n] @ self.by_values + sp[:, :n] @ self.by_slopes + self.by_parameters


@dataclass(frozen=True, eq=False)
class Change:
    """What events make of the state: derivatives of the new values.

    By the values and slopes before, by the time, and by the parameters.
    """

    by_values: np.ndarray
    by_slopes: np.ndarray
    by_time: np.ndarray
    by_parameters: np.ndarray

    @classmethod
    def of(cls, slopes: FunctionSlopes) -> Change:
        """Take what one event does."""
        return cls(slopes.by_values, slopes.by_slopes, slopes.by_time, slopes.by_parameters)

    def then(self, slopes: FunctionSlopes) -> Change:
        """Let another event change what this one has left."""
        return Change(
            slopes.by_values @ self.by_values,
            slopes.by_values @ self.by_slopes + slopes.by_slopes,
            slopes.by_values @ self.by_time + slopes.by_time,
            slopes.by_values @ self.by_parameters + slopes.by_parameters,
        )


class Start(Protocol):
    """How consistent values depend on what they were made from (`starts.StartMap`)."""

    def values(self, w: np.ndarray, shift: np.ndarray) -> np.ndarray:
        """Return the tangents of the values for those of what was given and of the time."""

    def slopes(self, s: np.ndarray) -> np.ndarray:
        """Return the tangents of the slopes for those of the values."""

    def take_back(
        self, of_values: np.ndarray, gradient: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return what depends on the values given and on the time."""

    def take_slopes_back(self, of_slopes: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """Return what depends on the values found, for what does on their slopes."""


@dataclass(frozen=True, eq=False)
class Link:
    """One begin: what events make of the state, and the start that is found for it."""

    start: Start
    slope: np.ndarray                          # y' of the user's unknowns behind it
    size: int                                  # number of all unknowns behind it
    change: Change | None = None


@dataclass(frozen=True, eq=False)
class Passage:
    """From the end of a leg to the begin of the next.

    Attributes
    ----------
    row, value_shares, slope_shares : int, ndarray, ndarray
        The last step of the leg before, and the shares of its points in y and y' at the time.
    slope, curvature : ndarray
        y' and y'' before.
    crossing : Crossing or None
        What the time depends on.
    links : list of Link
        What happens, one after the other.
    past : list of ndarray
        Shares of the same points in the points that the next leg has for its past.
    """

    row: int
    value_shares: np.ndarray
    slope_shares: np.ndarray
    slope: np.ndarray
    curvature: np.ndarray
    crossing: Crossing | None
    links: list[Link]
    past: list[np.ndarray]

    def forwards(self, tangents: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the tangents of the values and of the slopes behind the last link.

        `tangents` are those of the points of the last step, latest first, of all unknowns.
        """
        n = len(self.slope)
        s = np.tensordot(self.value_shares, tangents, 1)
        sp = np.tensordot(self.slope_shares, tangents, 1)
        shift = np.zeros(len(s)) if self.crossing is None else self.crossing.shift(s, sp)
        w = s[:, :n] + np.outer(shift, self.slope)
        wp = sp[:, :n] + np.outer(shift, self.curvature)
        for link in self.links:
            if link.change is not None:
                w = (
                    w @ link.change.by_values.T + wp @ link.change.by_slopes.T
                    + link.change.by_parameters.T + np.outer(shift, link.change.by_time)
                )
            found = link.start.values(w, shift)
            w = found[:, :n] + np.outer(shift, link.slope)
        return found, self.links[-1].start.slopes(found)

    def backwards(
        self, of_values: np.ndarray, of_slopes: np.ndarray, gradient: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Take what depends on the begin back to the values and slopes just before.

        `of_values` and `of_slopes` belong to the tangents behind the last link; what comes from
        parameters is added to `gradient`. As many unknowns are returned as have a say.
        """
        n, lines = len(self.slope), len(of_values)
        of_start = of_values + self.links[-1].start.take_slopes_back(of_slopes, gradient)
        shift_bar = np.zeros(lines)
        w_bar, wp_bar = np.zeros((lines, n)), np.zeros((lines, n))
        for number, link in reversed(list(enumerate(self.links))):
            w_bar, of_time = link.start.take_back(of_start, gradient)
            shift_bar += of_time
            if link.change is not None:
                gradient += w_bar @ link.change.by_parameters
                shift_bar += w_bar @ link.change.by_time
                wp_bar += w_bar @ link.change.by_slopes
                w_bar = w_bar @ link.change.by_values
            if number > 0:
                shift_bar += w_bar @ self.links[number - 1].slope
                of_start = np.zeros((lines, self.links[number - 1].size))
                of_start[:, :n] = w_bar
        shift_bar += w_bar @ self.slope + wp_bar @ self.curvature
        if self.crossing is not None:
            gradient += np.outer(shift_bar, self.crossing.by_parameters)
            more = np.zeros((lines, len(self.crossing.by_values) - n))
            w_bar = np.hstack([w_bar, more]) + np.outer(shift_bar, self.crossing.by_values)
            wp_bar = np.hstack([wp_bar, more]) + np.outer(shift_bar, self.crossing.by_slopes)
        return w_bar, wp_bar


@dataclass(frozen=True, eq=False)
class Moment:
    """The solution just before something happens, from the last step of a leg."""

    path: Path
    t: float
    row: int
    at_break: bool = False

    @property
    def degree(self) -> int:
        """Degree of the polynomial over the step."""
        return self.path.degree(self.row) if self.path.steps else 0

    @cached_property
    def value_shares(self) -> np.ndarray:
        """Shares of the points in the values."""
        return self.path.shares(self.t, self.row, self.degree)

    @cached_property
    def slope_shares(self) -> np.ndarray:
        """Shares of the points in the slopes."""
        return self._rates(1)

    def _rates(self, order: int) -> np.ndarray:
        """Shares in a derivative of the polynomial: by Lagrange's polynomials."""
        last = PAST + self.row
        nodes = self.path.t[last - self.degree : last + 1][::-1]
        scale = np.max(np.abs(nodes - self.t)) or 1.0
        found = []
        for j in range(len(nodes)):
            others = np.delete(nodes, j)
            basis = np.poly((others - self.t) / scale) / np.prod((nodes[j] - others) / scale)
            found.append(np.polyval(np.polyder(basis, order), 0.0) / scale**order)
        return np.array(found)

    @cached_property
    def points(self) -> np.ndarray:
        """Values of all unknowns at the points of the polynomial, latest first."""
        rows = np.arange(self.row, self.row - self.degree - 1, -1)
        past = self.path.leg.begin
        points = [self.path.y[i] if i >= 0 else past.start.y + (
            self.path.t[PAST + i] - past.t) * past.start.yp for i in rows]
        return np.array(points)

    @cached_property
    def y(self) -> np.ndarray:
        """Values of all unknowns."""
        return self.value_shares @ self.points

    @cached_property
    def yp(self) -> np.ndarray:
        """Slopes, as the equations have them."""
        begin, t = self.path.leg.begin, self.t
        if self.at_break:                      # there the equations may be those behind it already
            t -= JUST_BEFORE * (t - begin.t) + 8 * EPS * abs(t) * np.sign(t - begin.t)
        return consistent_slopes(
            self.path.linear, begin.values, t, self.y, self.slope_shares @ self.points
        )

    @cached_property
    def ypp(self) -> np.ndarray:
        """Second derivatives of the polynomial."""
        return self._rates(2) @ self.points


def crossing_of_event(function: UserFunction, moment: Moment, n: int) -> Crossing | None:
    """Differentiate the time at which an event function is zero."""
    y, yp, ypp = moment.y[:n], moment.yp[:n], moment.ypp[:n]
    found = function.at(moment.t, y, yp)
    return _crossing(
        found.by_values[0], found.by_slopes[0], float(found.by_time[0]), found.by_parameters[0],
        yp, ypp,
    )


def _crossing(
    by_values: np.ndarray, by_slopes: np.ndarray, by_time: float, by_parameters: np.ndarray,
    yp: np.ndarray, ypp: np.ndarray,
) -> Crossing | None:
    rate = by_time + by_values @ yp + by_slopes @ ypp
    if rate == 0.0 or not np.isfinite(rate):
        return None
    return Crossing(-by_values / rate, -by_slopes / rate, -by_parameters / rate)


class Functions(Protocol):
    """The user's functions with their derivatives (`sweep.Sweep` has them)."""

    parameters: Parameters
    events: Sequence[Event]

    def function(self, fun: Any, size: int) -> UserFunction:
        """Return a function with its derivatives."""


def passage(
    before: Path, happening: Happening | None, links: list[Link], begin: Begin, past: Any,
    functions: Functions,
) -> Passage:
    """Differentiate what happens between two legs."""
    n = before.linear.model.n
    t = begin.t if happening is None else happening.t
    row = before.steps
    moment = Moment(before, t, row, happening is not None and happening.is_break)
    crossing = None
    if happening is not None:
        crossing = _crossing_of(happening, moment, functions, n)
    shares = [] if past is None else [before.shares(x, row, moment.degree) for x in past]
    return Passage(
        row, moment.value_shares, moment.slope_shares, moment.yp[:n], moment.ypp[:n], crossing,
        links, shares,
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
    model, values = begin.model, begin.values
    if happening.turned:
        assert model.modes is not None
        surface = happening.turned[0]

        def height(t: float, y: np.ndarray, yp: np.ndarray, values: np.ndarray) -> float:
            inputs = values[: len(model.inputs)]
            return float(model.modes.height(surface, inputs)(t, y, yp))  # type: ignore[union-attr]

        return _crossing_of_height(height, moment, n, n, values, parameters)
    if happening.passing:
        assert model.frozen is not None
        number, size = happening.passing[0], model.frozen.traced.n

        def height(t: float, y: np.ndarray, yp: np.ndarray, values: np.ndarray) -> float:
            runner = model.frozen.heights.new(values)  # type: ignore[union-attr]
            return float(runner.values(t, y, yp)[number])

        return _crossing_of_height(height, moment, size, n, values, parameters)
    return None


def _crossing_of_height(
    height: Callable[[float, np.ndarray, np.ndarray, np.ndarray], float], moment: Moment,
    size: int, n: int, values: np.ndarray, parameters: Parameters,
) -> Crossing | None:
    """Differentiate the time at which a height above a surface is zero.

    It may depend on shares of sliding solutions, which follow the user's n unknowns.
    """
    t, y, yp, ypp = moment.t, moment.y[:size], moment.yp[:size], moment.ypp[:size]
    step = abs(moment.path.t[-1] - moment.path.t[PAST]) or 1.0
    y_size = np.abs(y) + 1e-3 * max(float(np.abs(y).max(initial=0.0)), 1e-3)
    by_values = gradient_of(lambda x: height(t, x, yp, values), y, y_size)
    by_slopes = gradient_of(lambda x: height(t, y, x, values), yp, np.abs(yp) + y_size / step)
    by_time = float(central(lambda dt: height(t + dt, y, yp, values), step))
    by_parameters = np.zeros(len(parameters))
    for p in parameters.of_inputs:
        number = parameters.inputs[p]

        def along(change: float, number: int = number) -> float:
            changed = values.copy()
            changed[number] += change
            return height(t, y, yp, changed)

        at = abs(values[number])
        by_parameters[p] = float(central(along, at if at > 0.0 else 1.0))
    if size > n and by_values[n:].any():
        # algebraic unknowns of the leg have polynomials of their own: their slope counts
        yp = np.append(yp[:n], (moment.slope_shares @ moment.points)[n:size])
    return _crossing(by_values, by_slopes, by_time, by_parameters, yp, ypp)


def _crossing_of_break(moment: Moment, parameters: Parameters, n: int) -> Crossing | None:
    """Differentiate the time at which the equations switch by time alone."""
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

    by_parameters = np.zeros(len(parameters))
    now = time_with(0, 0.0)
    if now is None or abs(now - moment.t) > SMALL_CHANGE * span:
        return None                            # a break of the user's, at a fixed time
    for p in parameters.of_inputs:
        number = int(parameters.inputs[p])
        change = SMALL_CHANGE * (abs(inputs[number]) or 1.0)
        times = [time_with(number, way * change) for way in (1.0, -1.0)]
        if None not in times:
            by_parameters[p] = (times[0] - times[1]) / (2.0 * change)  # type: ignore[operator]
    nothing = np.zeros(n)
    return Crossing(nothing, nothing, by_parameters) if by_parameters.any() else None
