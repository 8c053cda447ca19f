"""What is integrated for a problem: its equations as a program of the core, reduced to index 1.

A function is traced, checked, analysed and prepared once; what was found out is kept under a key
of all that the function depends on, so that a fit that calls `solve_dae` thousands of times with
other arguments pays for it once.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np

from tether._core import adapters
from tether._core.state import State
from tether.ledger import Ledger
from tether.problem import Problem
from tether.start.consistent import Start
from tether.structure.analyze import Analysis, analyze_trace
from tether.structure.equations import regularity
from tether.structure.hidden import Reduced
from tether.structure.modes import Modes, Sides, find_modes
from tether.structure.scaling import Units
from tether.structure.start import MoreRows, Search, reduced_start
from tether.trace import opcodes as op
from tether.trace.backend import Backend, prepare
from tether.trace.cache import cache_key, value_key
from tether.trace.compile_c import worth_compiling
from tether.trace.derive import SparseJacobian
from tether.trace.emit import NoProgram, Program, emit
from tether.trace.graph import STATIC
from tether.trace.tracer import Trace, TraceFailure, trace
from tether.trace.verify import Pair, verify

__all__ = [
    "ReducedProblem", "TracedEvents", "TracedProblem", "TracedValues", "events_key", "find_model",
    "refuse", "traced_events", "traced_values",
]

# Plans are kept up to this number and, together, about this size in bytes ...
MOST_PLANS = 256
MOST_BYTES = 2**28
# ... reckoned by the nodes of their expressions, with all that is made of a node.
BYTES_A_NODE = 400
# Functions that are not to be traced again.
MOST_REFUSED = 1024
# Beyond this a function that works on whole arrays is faster than a program of single numbers.
MOST_NODES = 100_000
# Rows of a derivative array are chosen anew when their regularity has fallen by this factor.
WORN = 0.1
# A derivative from the array may be less accurate by this factor for each order.
SLACK = 10.0


@dataclass(eq=False)
class Plan:
    """What is known about a function, and the programs that come of it."""

    traced: Trace | None = None
    analysis: Analysis | None = None
    reduced: Reduced | None = None   # None: the equations as they are written
    modes: Modes | None = None       # what the structure depends on ...
    sides: Sides | None = None       # ... and the sides it was made for; None: yet to be chosen
    make_system: Callable[[str, Backend | None], Backend] | None = None
    system: Backend | None = None
    constraints: Backend | None = None
    note: str = ""                   # why there is no program
    evaluations: int = 0             # in the runs so far
    looked: bool = False             # for a library from an earlier time
    ledger: Ledger = field(default_factory=Ledger)

    @property
    def only_here(self) -> bool:
        """Whether it was made with the values at hand, not with the structure alone."""
        if self.traced is not None and self.traced.args.fixed:
            return True
        found = self.analysis
        if found is None or self.reduced is None:
            return False
        changed = found.repaired is None or found.repaired.system is not found.given
        return changed or found.ranks is not None or found.redundant

    @property
    def original(self) -> Trace:
        """The function as it was traced, with all of its branches."""
        found = self.traced if self.modes is None else self.modes.traced
        assert found is not None
        return found

    @cached_property
    def _original_alone(self) -> Backend | None:
        try:
            return prepare(self.original.program())
        except NoProgram:                      # of a branch that this mode is without
            return None

    @cached_property
    def conditions(self) -> Backend | None:
        """Program of the conditions on which the function branches; None if there are none."""
        graph = self.original.graph
        nodes = [
            node for node in graph.cone(self.original.outputs)
            if graph.nodes[node][0] in op.COMPARISONS and graph.level[node] not in (0, STATIC)
        ]
        try:
            return prepare(self.original.program(nodes)) if nodes else None
        except NoProgram:
            return None

    def pair(self, fun: Callable[..., Any], args: Sequence[Any], fills: bool = False) -> Pair:
        """Set the program beside the function that it was made of."""
        if self.reduced is None and self.modes is None:
            backend = self.system or self.constraints
        else:                                  # made ready where it will be needed often
            backend = self._original_alone if self.ledger.runs > 1 else None
        runner = None if backend is None else backend.new(self.args(args))
        return Pair(self.original, runner, fun, args, fills)

    def args(self, args: Sequence[Any]) -> np.ndarray:
        """Values of the programs' inputs."""
        assert self.traced is not None
        return self.traced.args.flatten(args)

    def backend(self, wanted: str) -> Backend:
        """Program of the system; compiled to C when the runs so far say that it pays.

        That somebody has compiled it before says so too.
        """
        assert self.system is not None
        assert self.make_system is not None
        if wanted == "auto" and self.system.name == "machine" and not self.system.reason:
            if worth_compiling(self.system.program, self.evaluations):
                self.system = self.make_system("c", self.system)
            elif not self.looked:
                self.system, self.looked = self.make_system("auto", self.system), True
        elif wanted != "auto" and wanted != self.system.name and not self.system.reason:
            self.system = self.make_system(wanted, self.system if wanted == "c" else None)
        return self.system


class Shelf:
    """The plans used last; safe to use from several threads."""

    def __init__(self) -> None:
        self._plans: OrderedDict[tuple, Plan] = OrderedDict()
        self._refused: OrderedDict[Hashable, Plan] = OrderedDict()
        self._lock = threading.Lock()

    def refuse(self, key: Hashable, note: str) -> None:
        """Drop all plans of a function, and remember why it is not to be traced again."""
        with self._lock:
            for place in [place for place in self._plans if place[0] == key]:
                del self._plans[place]
            self._refused[key] = Plan(note=note)
            while len(self._refused) > MOST_REFUSED:
                self._refused.popitem(last=False)

    def find(self, key: tuple, make: Callable[[], Plan]) -> Plan:
        """Return the plan of this key, which begins with that of the function.

        It is made at the first time.
        """
        with self._lock:
            if self._refused and key[0] in self._refused:
                return self._refused[key[0]]
            plan = self._plans.get(key)
            if plan is not None:
                self._plans.move_to_end(key)
                return plan
        plan = make()
        with self._lock:
            self._plans[key] = plan
            self._make_room()
        return plan

    def _make_room(self) -> None:
        """Give up the plans that were used longest ago; the last one stays, however large."""
        while len(self._plans) > 1 and (
            len(self._plans) > MOST_PLANS or _size(self._plans.values()) > MOST_BYTES
        ):
            self._plans.popitem(last=False)


def _size(plans: Iterable[Plan]) -> int:
    """Memory of plans in bytes, about; those of one function share their expressions."""
    graphs = {id(p.traced.graph): p.traced.graph for p in plans if p.traced is not None}
    return sum(BYTES_A_NODE * len(graph.nodes) for graph in graphs.values())


_shelf = Shelf()


def refuse(key: Hashable, note: str) -> None:
    """Never again trace the function with this key; `note` says why."""
    _shelf.refuse(key, note)


Point = tuple[float, np.ndarray, np.ndarray]
Tolerance = tuple[np.ndarray, np.ndarray]      # of y and of y'


class TracedProblem(Problem):
    """A problem whose residual and Jacobian run as a program in the core."""

    def __init__(self, problem: Problem, plan: Plan, key: Hashable, backend: str) -> None:
        self.__dict__.update(problem.__dict__)
        self.plan, self.key, self.wanted = plan, key, backend
        self.values = plan.args(self.args)
        self.backend: Backend | None = None    # what runs it, once it is attached
        self.modes, self.sides = plan.modes, plan.sides or ()

    @property
    def run_by(self) -> str:
        """What runs the program, in words."""
        if self.backend is not None and self.backend.name == "c":
            return "run in C"
        reason = self.backend.reason if self.backend is not None and self.wanted == "c" else ""
        return "run by the machine" + (f", not in C: {reason}" if reason else "")

    def _attach_program(self, state: State) -> None:
        self.backend = self.plan.backend(self.wanted)
        self.backend.attach(state, self.values)

    def prepare(self, t: float, y: np.ndarray) -> Problem:
        """Return itself: the problem was prepared before it was traced."""
        return self

    def sides_at(self, t: float, y: np.ndarray, yp: np.ndarray) -> Sides:
        """On which sides of the surfaces that matter a point lies."""
        return () if self.modes is None else self.modes.sides(t, y, yp, self.values)

    def sides_after(
        self, old: tuple[float, np.ndarray, np.ndarray | None], new: Point, tolerance: Tolerance
    ) -> Sides:
        """On which sides a point lies after a move that has carried it well over some surfaces."""
        if self.modes is None:
            return ()
        t, y, yp = old
        before = self.modes.heights(t, y, np.zeros_like(y) if yp is None else yp, self.values)
        after = self.modes.heights(*new, self.values)
        return tuple(
            side if before[k] == after[k] or self.band(k, new, tolerance) else bool(after[k] < 0.0)
            for k, side in enumerate(self.sides)
        )

    def band(self, surface: int, point: Point, tolerance: Tolerance) -> float:
        """Width of the band around a surface in which a point lies, up to a tolerance; or zero."""
        assert self.modes is not None
        height = self.modes.heights(*point, self.values)[surface]
        width = self.modes.band(surface, *point, self.values, tolerance)
        return width if abs(height) <= width else 0.0

    def has_structure_of(self, other: Problem, n: int) -> bool:
        """Whether its unknowns and constraints are those of another."""
        mine, theirs = self.plan.reduced, getattr(other, "plan", Plan()).reduced
        if mine is None or theirs is None:
            return mine is theirs
        return (
            mine.unknowns == theirs.unknowns and mine.stages == theirs.stages
            and len(mine.levels) == len(theirs.levels)
        )

    def is_current(self, n: int) -> bool:
        """Whether what the residual reads is still what it was when it was traced."""
        key = cache_key(self.fun, n, self.args, self.fills)
        return key == self.key and np.array_equal(self.values, self.plan.args(self.args))

    def attach(self, state: State) -> None:
        """Put the program behind the core's seams; a Jacobian of the user's stays in place."""
        self._attach_program(state)
        if self.jac is not None:
            adapters.use_python_jacobian(state, self.jac, self.args)

    def pair(self) -> Pair:
        """Set the program of the user's equations beside the function they come from."""
        return self.plan.pair(self.fun, self.args, self.fills)

    def count(self, state: State) -> None:
        """Take notice of the work of a run."""
        self.plan.evaluations += state.nfev


class ReducedProblem(TracedProblem):
    """A problem of index 2 or more that is integrated at index 1, on all of its constraints."""

    def __init__(
        self, problem: Problem, plan: Plan, key: Hashable, backend: str, units: Units
    ) -> None:
        super().__init__(problem, plan, key, backend)
        assert plan.reduced is not None
        self.reduced = plan.reduced
        self.var_index = None
        self.best = 0.0              # of the derivatives' matrix so far, 1 at most
        self.units = units
        self.constraints = self.constraints.with_found(
            plan.constraints, self.values, self.reduced.n_user
        )

    def size(self, n: int) -> int:
        """Return the number of unknowns that are integrated, for n of the user's."""
        return self.reduced.n

    def owner(self, n: int) -> np.ndarray:
        """Of every unknown, the user's variable that it is a derivative of."""
        return np.array([j for j, _ in self.reduced.unknowns])

    def slack(self, n: int) -> np.ndarray:
        """Give freedom to the derivatives of a derivative array: they only serve to find slopes."""
        orders = np.array([k for _, k in self.reduced.unknowns], float)
        return SLACK**orders if self.reduced.enters else np.ones(len(orders))

    def determined(self, n: int) -> np.ndarray:
        """Multipliers and whatever else the equations determine: a user can only guess them."""
        return self.reduced.determined[:n].astype(bool)

    def attach(self, state: State) -> None:
        """Put the program behind the core's seams."""
        self._attach_program(state)

    def is_worn(self, t: float, y: np.ndarray, yp: np.ndarray) -> bool:
        """Whether rows chosen of a derivative array determine the derivatives badly by now."""
        sharpness = regularity(Search(self.reduced, t, self.values).leading_matrix(y, yp)[None])[0]
        self.best = max(self.best, sharpness)
        return bool(sharpness < WORN * self.best)

    def lift(
        self, t: float, y: np.ndarray, yp: np.ndarray | None, more: MoreRows | None = None
    ) -> Start:
        """Consistent values of all unknowns near the user's, on further constraints too."""
        found = reduced_start(self.reduced, t, y, yp, self.values, self.units, more)
        return Start(
            found.y, found.yp, found.success, found.message, found.moved, found.residual
        )


def find_model(
    problem: Problem,
    t: float,
    y: np.ndarray,
    yp: np.ndarray | None,
    form: Any,
    backend: str,
    units: Units,
    sides: Sides | None = None,
    anew: bool = False,
) -> tuple[Problem, str]:
    """Return the problem as it will be integrated, and why it is not a program if it is not.

    `units` are those of the unknowns; `sides` are those of the surfaces that matter, where the
    point itself does not tell; with `anew` the ranks are judged at this point.
    """
    if problem.capsule is not None:
        return problem, "it is a C function"
    n = len(y)
    if problem.var_index is not None:
        form = "given"
    make = partial(_make_plan, problem, n, t, y, yp, form, units)
    key = cache_key(problem.fun, n, problem.args, problem.fills)
    if key is None:
        return problem, "what it depends on cannot be compared from call to call"
    plan = _shelf.find((key, form), make)
    if plan.modes is not None:
        if sides is None:
            slopes = np.zeros(n) if yp is None else yp
            sides = plan.modes.sides(t, y, slopes, plan.args(problem.args))
        make = partial(_make_plan_of_mode, plan, sides, problem, t, y, yp, form, units)
        plan = _shelf.find((key, form, sides), make)
    if plan.only_here or anew:
        here = (
            t, y.tobytes(), None if yp is None else yp.tobytes(), value_key(problem.args),
            units.y.tobytes(), units.t,
        )
        plan = _shelf.find((key, form, sides, here), make)
    if plan.system is None:
        return problem, plan.note
    if plan.reduced is None:
        return TracedProblem(problem, plan, key, backend), ""
    return ReducedProblem(problem, plan, key, backend, units), ""


def _make_plan(
    problem: Problem, n: int, t: float, y: np.ndarray, yp: np.ndarray | None, form: Any,
    units: Units,
) -> Plan:
    slopes = np.zeros(n) if yp is None else yp
    try:
        traced = trace(problem.fun, n, problem.args, problem.fills)
        if len(traced.graph.nodes) > MOST_NODES:
            return Plan(note=f"it has {len(traced.graph.nodes)} operations: arrays are faster")
        verify(traced, problem.fun, t, y, slopes, problem.args, problem.fills)
    except TraceFailure as failure:
        return Plan(note=str(failure))
    plan = Plan(traced)
    if form != "given":
        plan.modes = find_modes(traced, 1 if form == "auto" else form)
    return plan if plan.modes is not None else _prepare(plan, problem, t, y, yp, form, units)


def _make_plan_of_mode(
    whole: Plan, sides: Sides, problem: Problem, t: float, y: np.ndarray, yp: np.ndarray | None,
    form: Any, units: Units,
) -> Plan:
    assert whole.modes is not None
    with whole.modes.lock:                     # the modes share a graph, which grows
        plan = Plan(whole.modes.equations(sides), modes=whole.modes, sides=sides)
        return _prepare(plan, problem, t, y, yp, form, units)


def _prepare(
    plan: Plan, problem: Problem, t: float, y: np.ndarray, yp: np.ndarray | None, form: Any,
    units: Units,
) -> Plan:
    """Analyse traced equations and make the programs that will be run."""
    traced = plan.traced
    assert traced is not None
    try:
        if form != "given":
            plan.analysis = analyze_trace(
                traced, t, y, yp, problem.args, form=1 if form == "auto" else form, units=units
            )
            found = plan.analysis.reduced
            if found is not None and not found.as_given:
                return _reduce(plan, found)

        f_y, f_yp = traced.f_y, traced.f_yp
        program = traced.program(traced.outputs + f_y.nodes + f_yp.nodes)
        count, places = len(traced.outputs), ((f_y.rows, f_y.cols), (f_yp.rows, f_yp.cols))

        def as_written(wanted: str, otherwise: Backend | None = None) -> Backend:
            return prepare(program, count, *places, backend=wanted, otherwise=otherwise)

        plan.make_system, plan.system = as_written, as_written("machine")
    except NoProgram as failure:
        plan.note = str(failure)
    return plan


def _reduce(plan: Plan, found: Reduced) -> Plan:
    """Prepare the programs of a reduced system and of its constraints."""
    graph, n, p, programs = found.graph, found.n, len(found.args), found.programs
    f_y, f_yp, g_y = programs.f_y, programs.f_yp, programs.g_y
    program = emit(graph, [*found.equations, *f_y.nodes, *f_yp.nodes], n, p)

    def reduced(wanted: str, otherwise: Backend | None = None) -> Backend:
        places = (f_y.rows, f_y.cols), (f_yp.rows, f_yp.cols)
        return prepare(program, n, *places, backend=wanted, otherwise=otherwise)

    plan.reduced, plan.make_system, plan.system = found, reduced, reduced("machine")
    if found.constraints:
        plan.constraints = _with_rows(emit(graph, [*found.constraints, *g_y.nodes], n, p), g_y)
    return plan


def _with_rows(program: Program, g_y: SparseJacobian) -> Backend:
    return prepare(program, g_y.shape[0], (g_y.rows, g_y.cols), layout="rows")


# --- constraints --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class TracedValues:
    """A function of (t, y, *args) as a program, with its derivative."""

    plan: Plan
    key: Hashable
    fun: Callable[..., Any]
    args: Sequence[Any]

    @property
    def backend(self) -> Backend:
        """The program."""
        assert self.plan.constraints is not None
        return self.plan.constraints

    @property
    def inputs(self) -> np.ndarray:
        """Values of its inputs."""
        return self.plan.args(self.args)

    def pair(self) -> Pair:
        """Set it beside the function."""
        fun = self.fun

        def values(t: float, y: np.ndarray, yp: np.ndarray, *args: Any) -> np.ndarray:
            return np.atleast_1d(fun(t, y, *args))

        return self.plan.pair(values, self.args)


def traced_values(
    fun: Callable[..., Any], t: float, y: np.ndarray, size: int, args: Sequence[Any]
) -> TracedValues | None:
    """Make a program of a function of (t, y, *args) and its derivative.

    None where it cannot be traced.
    """
    n = len(y)

    def make() -> Plan:
        residual = _as_residual(fun, np.ndim(fun(t, y.copy(), *args)) == 0)
        try:
            traced = trace(residual, n, args, size=size)
            verify(traced, residual, t, y, np.zeros(n), args)
            program = traced.program(traced.outputs + traced.f_y.nodes)
        except (TraceFailure, NoProgram) as failure:
            return Plan(note=str(failure))
        return Plan(traced, constraints=_with_rows(program, traced.f_y))

    key = cache_key(fun, n, args)
    if key is None:
        return None
    plan = _shelf.find((key, size), make)
    if plan.constraints is None or plan.traced is None or plan.traced.args.fixed:
        return None
    return TracedValues(plan, key, fun, args)


@dataclass(frozen=True, eq=False)
class TracedEvents:
    """Event functions as one program."""

    plan: Plan
    key: Hashable
    values: np.ndarray
    functions: Sequence[Callable[..., Any]]
    together: Callable[..., Any]               # all of them in one

    def pair(self, args: Sequence[Any]) -> Pair:
        """Set the program beside the functions."""
        return self.plan.pair(self.together, args)

    def unknowns(self, n: int) -> np.ndarray:
        """Mark the first n unknowns on which some of the functions depend."""
        assert self.plan.traced is not None
        return self.plan.traced.depends_on(self.plan.traced.outputs, n)

    def is_current(self, key: Hashable, args: Sequence[Any]) -> bool:
        """Whether what the functions read is still what it was when they were traced."""
        return key == self.key and np.array_equal(self.values, self.plan.args(args))

    def attach(self, state: State, backend: str) -> None:
        """Put the program behind the core's seam."""
        wanted = "c" if backend == "c" else "machine"          # too little work to pay for more
        self.plan.backend(wanted).attach_events(state, self.values)


def traced_events(
    functions: Sequence[Callable[..., Any]], n_user: int, t: float, y: np.ndarray,
    yp: np.ndarray, args: Sequence[Any],
) -> TracedEvents | None:
    """Make a program of event functions (t, y, yp, *args) of the first n_user unknowns.

    None where one of them cannot be traced.
    """
    n = len(y)

    def together(t: float, y: Any, yp: Any, *args: Any) -> list[Any]:
        return [fun(t, y[:n_user], yp[:n_user], *args) for fun in functions]

    def make() -> Plan:
        try:
            traced = trace(together, n, args, size=len(functions))
            verify(traced, together, t, y, yp, args)
            program = traced.program()
        except (TraceFailure, NoProgram) as failure:
            return Plan(note=str(failure))

        def values(wanted: str, otherwise: Backend | None = None) -> Backend:
            return prepare(program, backend=wanted, otherwise=otherwise)

        return Plan(traced, make_system=values, system=values("machine"))

    key = events_key(functions, n, args)
    if key is None:
        return None
    plan = _shelf.find((key, n_user, "events"), make)
    if plan.system is None or plan.only_here:
        return None
    return TracedEvents(plan, key, plan.args(args), functions, together)


def events_key(
    functions: Sequence[Callable[..., Any]], n: int, args: Sequence[Any]
) -> Hashable | None:
    """Key of all that event functions depend on; None if that cannot be compared."""
    keys = tuple(cache_key(fun, n, args) for fun in functions)
    return None if None in keys else keys


def _as_residual(fun: Callable[..., Any], single: bool) -> Callable[..., Any]:
    """Give a function the arguments of a residual and a list as its result."""

    def residual(t: float, y: Any, yp: Any, *args: Any) -> Any:
        return [fun(t, y, *args)] if single else fun(t, y, *args)

    return residual
