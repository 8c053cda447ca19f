"""Events: their attributes, where they happen, and what they change."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tether._core import adapters
from tether._core import events as core_events
from tether._core.zero import ZeroSearch
from tether.plan.functions import TracedEvents, read_events, traced_events
from tether.problem.signatures import takes_slopes
from tether.run.method import Polynomial
from tether.structure.switch_times import SwitchTimes

if TYPE_CHECKING:
    from tether.run.integration import Integration
    from tether.structure.modes import Modes

EPS = np.finfo(float).eps
MOST_PROGRAMS = 8              # in one run, for events whose inputs keep changing


@dataclass
class Event:
    """One event function with its attributes, as in `scipy.integrate.solve_ivp`."""

    fun: Callable[..., float]
    direction: int
    stops_after: float                         # number of occurrences that ends the run
    apply: Callable[..., Any] | None
    t: list[float] = field(default_factory=list)
    y: list[np.ndarray] = field(default_factory=list)
    yp: list[np.ndarray] = field(default_factory=list)
    counted: int = 0                           # occurrences that count towards `stops_after`
    unknowns: np.ndarray | None = None         # the unknowns it depends on; None: not known
    number: int = 0                            # among the user's events
    name: str = ""                             # in summaries and plots

    def value(self, t: float, y: np.ndarray, yp: np.ndarray, args: tuple) -> float:
        """Call the function."""
        found = self.fun(t, y.copy(), yp.copy(), *args)
        if isinstance(found, (float, int)):
            return found
        return adapters.single_number(self.number, found)

    def value_or_nan(self, t: float, y: np.ndarray, yp: np.ndarray, args: tuple) -> float:
        """Call the function where it may have no value, and return NaN if so."""
        try:
            return self.value(t, y, yp, args)
        except adapters.DOMAIN_ERRORS:
            return np.nan

    @property
    def wants_to_stop(self) -> bool:
        """Whether it has happened often enough to end the run."""
        return self.counted >= self.stops_after

    def restrict_to(self, n: int) -> None:
        """Pass only the first n unknowns to the functions: the others are integrals."""
        fun, apply, number = self.fun, self.apply, self.number
        self.fun = lambda t, y, yp, *args: fun(t, y[:n], yp[:n], *args)

        def change(t: float, y: np.ndarray, yp: np.ndarray, *args: Any) -> np.ndarray:
            changed = np.asarray(apply(t, y[:n], yp[:n], *args))  # type: ignore[misc]
            if changed.shape != (n,):
                raise ValueError(
                    f"events[{number}].apply(t, y, yp) must have {n} values like y0, got an object "
                    f"of shape {changed.shape}"
                )
            return np.concatenate([changed, y[n:]])

        if apply is not None:
            self.apply = change

    def report(self, t: float, y: np.ndarray, yp: np.ndarray) -> None:
        """Note one occurrence."""
        self.t.append(t)
        self.y.append(y)
        self.yp.append(yp)


@dataclass
class Switch(Event):
    """A surface on which the structure of the equations depends, `tether.structure.modes`."""

    surface: int = 0
    side: float = 0.0                          # sign of the function where the current plan holds

    @classmethod
    def of(
        cls, modes: Modes, surface: int, args: np.ndarray, below: bool, band: float
    ) -> Switch:
        """Watch for the point where the solution passes a surface by more than a band.

        A solution that begins on a surface may be held there by the equations, up to errors.
        """
        height, side = modes.height(surface, args), -1.0 if below else 1.0

        def beyond(t: float, y: np.ndarray, yp: np.ndarray, *_: Any) -> float:
            return height(t, y, yp) + side * band

        return cls(
            beyond, 0, np.inf, None, unknowns=modes.unknowns(surface), surface=surface, side=side
        )

    def report(self, t: float, y: np.ndarray, yp: np.ndarray) -> None:
        """Report nothing: this is not a user's event."""


def check_events(events: Any, args: tuple) -> list[Event]:
    """Read the user's events; a single callable is a list of one."""
    if events is None:
        return []
    if callable(events):
        events = [events]
    if not isinstance(events, Sequence):
        raise TypeError(f"events must be a callable or a list of them, got {events!r}")
    checked = [_check_event(number, fun, args) for number, fun in enumerate(events)]
    for event, name in zip(checked, _names_of(events), strict=True):
        event.name = name
    return checked


def _names_of(functions: Sequence[Any]) -> list[str]:
    """Name events after their functions, or number them if these have no unique names."""
    names = [getattr(fun, "__name__", "") for fun in functions]
    return [
        name if name.isidentifier() and names.count(name) == 1 else f"event {number}"
        for number, name in enumerate(names)
    ]


def _check_event(number: int, fun: Any, args: tuple) -> Event:
    name = f"events[{number}]"
    has_slopes = takes_slopes(name, fun, args)
    terminal = getattr(fun, "terminal", False)
    if terminal is None:
        stops_after = np.inf
    elif isinstance(terminal, (int, np.integer, np.bool_)) and terminal >= 0:
        stops_after = float(terminal) or np.inf
    else:
        raise ValueError(f"{name}.terminal must be a bool or a positive integer, got {terminal!r}")
    direction = getattr(fun, "direction", 0)
    try:
        sign = int(np.sign(float(direction)))
    except (TypeError, ValueError):
        raise TypeError(f"{name}.direction must be a number, got {direction!r}") from None
    apply = getattr(fun, "apply", None)
    if apply is not None and not takes_slopes(f"{name}.apply", apply, args):
        apply = _ignoring_slopes(apply)
    return Event(
        fun if has_slopes else _ignoring_slopes(fun), sign, stops_after, apply, number=number
    )


def _ignoring_slopes(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Give a function of (t, y, *args) the arguments of an event."""
    return lambda t, y, yp, *args: fun(t, y, *args)


def restricted(fun: Callable[..., Any], n_user: int, n: int) -> Callable[..., Any]:
    """Pass only the user's unknowns to a user's function."""
    if n_user == n:
        return fun
    return lambda t, y, yp, *args: fun(t, y[:n_user], yp[:n_user], *args)


class EventFunctions:
    """The event functions of a state: as a program if they can be traced.

    A program contains the values that the functions read when it was made. These are compared again
    whenever the user's code may have changed them. A user's function that is called in every step,
    such as a residual that cannot be traced, could change them at any time; the events are then
    called as well.
    """

    def __init__(self, run: Integration, events: Sequence[Event]) -> None:
        self.run, self.state, self.args = run, run.state, run.problem.args
        self.events, self.functions = events, [event.fun for event in events]
        self.program: TracedEvents | None = None
        self.keys: set[Hashable] = set()       # of the programs so far
        self._switch_times: SwitchTimes | None = None
        self._switch_times_of: TracedEvents | None = None
        self.state.watch_events([event.direction for event in events])
        self._attach()

    def _attach(self) -> None:
        found = self._trace(self.functions)
        self.program = None if self.run.trust.refuses_events(found) else found
        self._put()

    def _trace(self, functions: Sequence[Callable[..., float]]) -> TracedEvents | None:
        """Make a program of some functions; None if that is impossible or not allowed."""
        s = self.state
        if self.run.options.trace == "never" or self.run.model.calls_back:
            return None
        y, yp = s.y_now.copy(), s.yp_now.copy()
        return traced_events(functions, self.run.n, s.t, y, yp, self.args)

    def _unknowns(self, program: TracedEvents | None) -> np.ndarray:
        """Mark the user's variables that must be accurate between the steps for the events."""
        n = self.run.n
        if program is not None:
            return program.unknowns(n)
        known = [event.unknowns for event in self.events if event.unknowns is not None]
        others = [event.fun for event in self.events if event.unknowns is None]
        if len(others) == len(self.events):
            return np.ones(n, bool)
        if others:
            program = self._trace(others)
            known.append(np.ones(n, bool) if program is None else program.unknowns(n))
        return np.any(known, axis=0)

    def _put(self) -> None:
        s = self.state
        if self.program is None:
            called = [restricted(fun, self.run.n, s.n) for fun in self.functions]
            adapters.use_python_events(s, called, self.args)
        else:
            self.keys.add(self.program.reading.key)
            self.program.attach(s, self.run.options.backend)
        self.run.want_between(self._unknowns(self.program))

    def refresh(self) -> None:
        """Check whether the user's code has changed what the functions read."""
        if self.program is None:
            return
        now = read_events(self.functions, self.run.n, self.state.n, self.args)
        key = None if now is None else now.key
        if self.run.model.calls_back or (key not in self.keys and len(self.keys) == MOST_PROGRAMS):
            self.run.trust.forget_events()
            self.program = None
            self._put()
        elif not self.program.is_current(now, self.args):
            self._attach()

    @property
    def switch_times(self) -> tuple[SwitchTimes | None, np.ndarray]:
        """Times of events that depend on time alone, and the inputs for which they hold."""
        if self.program is None:
            return None, np.zeros(0)
        if self._switch_times_of is not self.program:
            self._switch_times_of, self._switch_times = self.program, self.program.times_of_signs()
        return self._switch_times, self.program.values

    @property
    def may_be_clocks(self) -> bool:
        """Whether some of the events may depend on time alone."""
        return self.program is None or self.switch_times[0] is not None

    def evaluate(self) -> None:
        """Compare signs with the values at the current point from now on."""
        if core_events.evaluate_events(self.state) > 0:
            self._call("g_old")
        adapters.raise_user_error(self.state)

    def call_functions(self) -> None:
        """Call the functions from now on, since their program returns NaN."""
        self.run.trust.forget_events()
        self.program = None
        self._put()

    def time_of(
        self, number: int, interpolant: Polynomial, old: float, new: float
    ) -> float:
        """Return the time within the step at which one of the functions is zero."""
        if self.program is not None:
            t = core_events.time_of(self.state, number, interpolant.t_old)
            if t == t:
                return t
        return locate(self.events[number], interpolant, self.args, old, new)

    def _call(self, target: str) -> None:
        s, n = self.state, self.run.n
        values = s.array(target)
        for number, event in enumerate(self.events):
            values[number] = event.value(s.t, s.y_tried[:n], s.yp_tried[:n], self.args)


def locate(
    event: Event, interpolant: Polynomial, args: tuple, old: float, new: float
) -> float:
    """Return the time within the step at which a called function is zero on the interpolant."""
    if old == 0.0:
        return interpolant.t_old
    if new == 0.0:
        return interpolant.t
    search = ZeroSearch()
    search.begin(interpolant.t_old, interpolant.t, old)
    while not search.take(event.value(search.t, *interpolant(search.t), args)):
        pass
    return search.t


def find_zero(
    g: Callable[[float], float], a: float, b: float, ga: float, gb: float, close: float
) -> float:
    """Return a zero of a function between a and b, where its values have different signs.

    Examples
    --------
    >>> from tether.run.watch import find_zero
    >>> round(find_zero(lambda t: t * t - 2.0, 0.0, 2.0, -2.0, 2.0, 1e-15), 12)
    1.414213562373
    """
    search = ZeroSearch()
    search.narrow_down(a, b, ga, gb, close)
    while not search.take(g(search.t)):
        pass
    return search.t
