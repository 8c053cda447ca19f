"""Choose the model to integrate: the function is traced, checked, analysed and prepared here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from tether.plan.model import EVEN_SHARE, AsWritten, Model, ReducedModel, TracedModel
from tether.plan.plan import ARRAYS_FROM, Plan, with_rows
from tether.plan.shelf import InputsRefused, shelf
from tether.plan.whole_arrays import works_on_arrays
from tether.problem.problem import Problem
from tether.structure.analysis import analyze_trace
from tether.structure.blocking import find_pairs, with_leaks_beside
from tether.structure.frozen import freeze
from tether.structure.hidden import Reduced
from tether.structure.leaks import Leak, with_leaks
from tether.structure.modes import Sides, find_modes
from tether.structure.row_structure import has_regular_structure
from tether.structure.scaling import Units
from tether.structure.signs import with_signs
from tether.structure.sliding import Pins, sliding
from tether.trace import opcodes as op
from tether.trace.array_tracer import trace_arrays
from tether.trace.backend import Backend, prepare, prepare_rows
from tether.trace.emit import NoProgram, check_runs_alone, emit
from tether.trace.reading import Reading, value_key
from tether.trace.tracer import Trace, TraceFailure, trace, why_not_compared
from tether.trace.verify import verify, verify_arrays

__all__ = ["find_model"]

# From so many unknowns on, a function that works on whole arrays is faster than a program of
# single numbers; with more operations than this, tracing would take minutes.
NUMPY_FASTER_FROM, MAX_NODES = 20_000, 2_000_000
# With so many unknowns and jumps, a function is tried on arrays for the sake of those that slide.
SLIDING_ARRAYS_FROM, MANY_JUMPS = 60, 60


def find_model(
    problem: Problem,
    t: float,
    y: np.ndarray,
    yp: np.ndarray | None,
    form: Any,
    backend: str,
    units: Units,
    sides: Sides | None = None,
    ranks_here: bool = False,
    slides: tuple[int, ...] = (),
    leaks: tuple[Leak, ...] = (),
    beside: tuple[Leak, ...] = (),
    by_pairs: bool = False,
    pins: Pins = (),
    taped: bool = False,
) -> tuple[Model, str]:
    """Return the model to integrate for a problem and, if it is not a program, the reason.

    `units` are those of the unknowns. `sides` says on which sides of the surfaces between modes
    the solution is, where the point itself does not decide; with `ranks_here` ranks are determined
    at this point. `slides` are surfaces of the plan on which the solution slides, `pins` are others
    on which it stays; `leaks` are terms added to the equations, `beside` are those beside ideal
    diodes. With `by_pairs` all of these diodes are surfaces between modes. A run that is `taped` is
    differentiated, which is not possible where arrays slide.
    """
    n = len(y)
    if problem.capsule is not None:
        return AsWritten(problem, n, (t, y, yp)), "it is a C function"
    if problem.var_index is not None:
        form = "given"
    taped = taped and n >= SLIDING_ARRAYS_FROM
    make = _once(_make_plan, problem, n, t, y, yp, form, units, taped)
    plan, reading = shelf.find_for(
        (form, "taped") if taped else form, make, problem.fun, n, problem.args, problem.fills
    )
    if plan is None or reading is None:
        return AsWritten(problem, n, (t, y, yp)), why_not_compared(problem.fun, problem.args)
    if by_pairs and plan.traced is not None:
        make = _once(_make_plan_beside, plan, beside, problem, t, y, yp, form, units)
        plan = shelf.find((reading.key, form, "beside", beside), make, reading)
    if plan.modes is not None:
        if sides is None:
            slopes = np.zeros(n) if yp is None else yp
            sides = plan.modes.sides(t, y, slopes, plan.args(problem.args, reading.hidden))
        make = _once(_make_plan_of_mode, plan, sides, problem, t, y, yp, form, units)
        plan = shelf.find((reading.key, form, sides, beside), make, reading)
    if leaks and plan.traced is not None:
        make = _once(_make_plan_with_leaks, plan, leaks, problem, t, y, yp, form, units)
        key = reading.key, form, sides, "leaks", leaks, beside
        plan = shelf.find(key, make, reading)
    if slides and plan.frozen is not None:
        make = _once(_make_plan_of_sliding, plan, slides, pins, problem, t, y, yp, form, units)
        held = reading.key, form, sides, slides, pins, leaks, beside
        plan = shelf.find(held, make, reading)
    if plan.depends_on_inputs and not (plan.only_here or ranks_here or slides):
        values = plan.with_shifts(plan.args(problem.args, reading.hidden))
        ranks_here = not plan.serves(values, t, y, np.zeros(n) if yp is None else yp)
    if plan.only_here or ranks_here:
        here = (
            t, y.tobytes(), None if yp is None else yp.tobytes(), value_key(problem.args),
            reading.hidden.tobytes(), units.y.tobytes(), units.t,
        )
        try:
            made_here = reading.key, form, sides, slides, pins, leaks, beside, here
            plan = shelf.find(made_here, make, reading)
        except InputsRefused as failure:       # where the function raises an exception
            return AsWritten(problem, n, (t, y, yp)), str(failure)
    if plan.arrays is not None:
        from tether.plan.on_arrays import OnArrays, ReducedOnArrays  # late, to save time

        on_arrays = OnArrays if plan.row_reduction is None else ReducedOnArrays
        return on_arrays(problem, n, plan, reading, (t, y, yp)), ""
    if plan.system is None:
        return AsWritten(problem, n, (t, y, yp), plan), plan.note
    if plan.reduced is None:
        return TracedModel(problem, n, plan, reading, backend), ""
    return ReducedModel(problem, n, plan, reading, backend, units), ""


def _once(make: Callable[..., Plan], *given: Any) -> Callable[[Reading], Plan]:
    """Make a plan, of what is given, at the first call only, and return it at later ones."""
    made: list[Plan] = []

    def plan(reading: Reading) -> Plan:
        if not made:
            made.append(make(*given, reading))
        return made[0]

    return plan


def _make_plan(
    problem: Problem, n: int, t: float, y: np.ndarray, yp: np.ndarray | None, form: Any,
    units: Units, taped: bool, reading: Reading,
) -> Plan:
    is_high, may_be_arrays = False, form in ("auto", "given") and problem.jac is None
    on_arrays = problem, n, t, y, yp, form, units, taped, reading
    if may_be_arrays and n >= ARRAYS_FROM:
        plan, is_high = _plan_on_arrays(*on_arrays)
        if plan is not None:
            return plan
    try:
        traced = _trace(problem, n, t, y, yp, reading, is_high)
    except TraceFailure as failure:
        if len(reading.hidden):
            raise InputsRefused(str(failure)) from failure
        return Plan(note=str(failure))
    if may_be_arrays and SLIDING_ARRAYS_FROM <= n < ARRAYS_FROM and _jumps_often(traced):
        plan, _ = _plan_on_arrays(*on_arrays)
        if plan is not None and plan.frozen_rows is not None:
            return plan
    plan = Plan(traced)
    if form != "given":
        plan.modes = find_modes(traced, 1 if form == "auto" else form)
    if plan.modes is not None:
        return plan
    return _prepare(plan, problem, t, y, yp, form, units, reading)


def _plan_on_arrays(
    problem: Problem, n: int, t: float, y: np.ndarray, yp: np.ndarray | None, form: Any,
    units: Units, taped: bool, reading: Reading,
) -> tuple[Plan | None, bool]:
    """Make a plan of a function of whole arrays; None if it is better traced number by number.

    A trace of single numbers can do more: solutions slide on any surfaces, any index is reduced.
    With too many numbers that takes too long. Tell also whether the index is high.
    """
    # late, to save time
    from tether.structure.frozen_rows import (
        freeze_rows,
        is_smooth_on_all_sides,
        keeps_structure,
    )
    from tether.structure.row_reduction import reduce_rows

    fun, args, fills = problem.fun, problem.args, problem.fills
    slopes = np.zeros(n) if yp is None else yp
    try:
        found = trace_arrays(fun, n, args, fills, reading.places())
        is_high = form == "auto" and not has_regular_structure(found.table)
        inputs = found.args.flatten(args, reading.hidden)
        frozen = freeze_rows(found, not taped) if found.turns and not is_high else None
        if frozen and not keeps_structure(found, frozen, t, y, slopes, inputs):
            frozen = freeze_rows(found, slides=False)
        if found.turns and n < NUMPY_FASTER_FROM and not (
            frozen and is_smooth_on_all_sides(found, frozen, t, y, slopes, inputs)
        ):
            return None, is_high
        reduction = None
        if is_high:
            reduction = reduce_rows(found, t, y, slopes, inputs, units)
            if reduction is None and found.operations < MAX_NODES:
                return None, is_high
        found.source = None
        verify_arrays(found, fun, t, y, slopes, args, fills, reading.hidden)
    except TraceFailure:
        return None, False
    plan = Plan(arrays=found, row_reduction=reduction, frozen_rows=frozen)
    if reduction is None:
        plan.system = prepare_rows(found.table if frozen is None else frozen.table)
    else:
        plan.system = prepare_rows(reduction.system)
        plan.constraints = prepare_rows(reduction.constraints)
    return plan, is_high


def _jumps_often(traced: Trace) -> bool:
    """Tell whether so many conditions may hold a solution that a plan for each takes too long."""
    codes = [traced.graph.nodes[node][0] for node in traced.switches]
    return sum(code in (*op.COMPARISONS, op.SIGN) for code in codes) >= MANY_JUMPS


def _trace(
    problem: Problem, n: int, t: float, y: np.ndarray, yp: np.ndarray | None, reading: Reading,
    is_high: bool,
) -> Trace:
    """Trace a residual number by number and compare it with the function.

    A function of many unknowns that works on whole arrays is refused, unless its index is high.
    """
    fun, args, fills = problem.fun, problem.args, problem.fills
    slopes = np.zeros(n) if yp is None else yp
    if n >= NUMPY_FASTER_FROM and not is_high and works_on_arrays(problem, t, y, slopes):
        raise TraceFailure(f"it works on arrays of the {n} unknowns: these are faster")
    traced = trace(fun, n, args, fills, hidden=reading.places())
    if len(traced.graph.nodes) > MAX_NODES:
        raise TraceFailure(f"it has {len(traced.graph.nodes)} operations, more than {MAX_NODES}")
    verify(traced, fun, t, y, slopes, args, fills, reading.hidden)
    return traced


def _make_plan_of_mode(
    whole: Plan, sides: Sides, problem: Problem, t: float, y: np.ndarray, yp: np.ndarray | None,
    form: Any, units: Units, reading: Reading,
) -> Plan:
    assert whole.modes is not None
    with whole.modes.lock:                     # the modes share a graph, which grows
        plan = Plan(
            whole.modes.equations(sides), modes=whole.modes, sides=sides, source=whole.source
        )
        return _prepare(plan, problem, t, y, yp, form, units, reading)


def _make_plan_of_sliding(
    whole: Plan, slides: tuple[int, ...], pins: Pins, problem: Problem, t: float, y: np.ndarray,
    yp: np.ndarray | None, form: Any, units: Units, reading: Reading,
) -> Plan:
    assert whole.frozen is not None
    assert whole.traced is not None
    surfaces = whole.frozen.surfaces
    lock = nullcontext() if whole.modes is None else whole.modes.lock
    with lock:
        traced = sliding(
            whole.traced, [surfaces[k] for k in slides], [(surfaces[k], x) for k, x in pins]
        )
        plan = Plan(
            traced, modes=whole.modes, sides=whole.sides, slides=slides, pins=pins,
            source=whole.original,
        )
        count, pinned = len(slides), [surfaces[k].function for k, _ in pins]
        y = np.append(y, np.full(count, EVEN_SHARE))
        yp = None if yp is None else np.append(yp, np.zeros(count))
        units = units.with_more(count)
        return _prepare(plan, problem, t, y, yp, form, units, reading, pinned)


def _make_plan_beside(
    whole: Plan, beside: tuple[Leak, ...], problem: Problem, t: float, y: np.ndarray,
    yp: np.ndarray | None, form: Any, units: Units, reading: Reading,
) -> Plan:
    with nullcontext() if whole.modes is None else whole.modes.lock:
        plan = Plan(with_leaks_beside(whole.original, beside), source=whole.original)
        assert plan.traced is not None
        if form != "given":
            rows = [pair.equation for pair in find_pairs(whole.original)]
            plan.modes = find_modes(plan.traced, 1 if form == "auto" else form, rows)
        if plan.modes is not None:
            return plan
        return _prepare(plan, problem, t, y, yp, form, units, reading)


def _make_plan_with_leaks(
    whole: Plan, leaks: tuple[Leak, ...], problem: Problem, t: float, y: np.ndarray,
    yp: np.ndarray | None, form: Any, units: Units, reading: Reading,
) -> Plan:
    assert whole.traced is not None
    lock = nullcontext() if whole.modes is None else whole.modes.lock
    with lock:
        traced = with_leaks(whole.traced, leaks)
        plan = Plan(traced, modes=whole.modes, sides=whole.sides, source=whole.original)
        return _prepare(plan, problem, t, y, yp, form, units, reading)


def _prepare(
    plan: Plan, problem: Problem, t: float, y: np.ndarray, yp: np.ndarray | None, form: Any,
    units: Units, reading: Reading, pinned: Sequence[int] = (),
) -> Plan:
    """Analyse traced equations and make the programs that will be run."""
    assert plan.traced is not None
    if problem.jac is None:
        plain = with_signs(plan.traced)
        if plain is not plan.traced:
            plan.source, plan.traced = plan.original, plain
        plan.frozen = freeze(plan.traced, len(plan.slides), pinned)
    traced = plan.traced if plan.frozen is None else plan.frozen.traced
    try:
        if form != "given":
            plan.analysis = analyze_trace(
                traced, t, y, yp, problem.args, form=1 if form == "auto" else form,
                units=units, hidden=reading.hidden,
            )
            found = plan.analysis.reduced
            if found is not None and not found.as_given:
                return _reduce(plan, found)

        f_y, f_yp = traced.f_y, traced.f_yp
        program = traced.program(traced.outputs + f_y.nodes + f_yp.nodes)
        count, places = len(traced.outputs), ((f_y.rows, f_y.cols), (f_yp.rows, f_yp.cols))

        def as_written(wanted: str, otherwise: Backend | None = None) -> Backend:
            return prepare(
                program, count, *places, backend=wanted, otherwise=otherwise, folds=True
            )

        plan.make_system, plan.system = as_written, as_written("machine")
    except NoProgram as failure:
        plan.note = str(failure)
    return plan


def _reduce(plan: Plan, found: Reduced) -> Plan:
    """Prepare the programs of a reduced system and of its constraints."""
    graph, n, p, programs = found.graph, found.n, len(found.args), found.programs
    f_y, f_yp, g_y, program = programs.f_y, programs.f_yp, programs.g_y, programs.system
    check_runs_alone(program)

    def reduced(wanted: str, otherwise: Backend | None = None) -> Backend:
        places = (f_y.rows, f_y.cols), (f_yp.rows, f_yp.cols)
        return prepare(program, n, *places, backend=wanted, otherwise=otherwise, folds=True)

    plan.reduced, plan.make_system, plan.system = found, reduced, reduced("machine")
    if found.constraints:
        plan.constraints = with_rows(emit(graph, [*found.constraints, *g_y.nodes], n, p), g_y)
    return plan
