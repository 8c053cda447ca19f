"""solve_dae: the pipeline on one screen."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from tether.base.checks import as_numbers, check_time
from tether.base.frozen import make_frozen
from tether.base.status import TRACE_DIFFERS, ConsistencyWarning, Status
from tether.explain.doubts import doubts, remarks
from tether.explain.start_words import refuse_off_constraints, start_of_run, start_words
from tether.problem.given import Given
from tether.problem.names import Names
from tether.problem.options import Options, default, merge
from tether.problem.problem import as_problem, check_signature
from tether.result.solution import DaeResult
from tether.run.attempts import read_steps
from tether.run.drive import Driver
from tether.run.integration import Integration
from tether.run.jumps import Jumped
from tether.run.record import Record
from tether.run.statistics import Statistics
from tether.run.watch import Event, check_events

if TYPE_CHECKING:
    from tether.explain.diagnosis import Diagnosis
    from tether.explain.report import IndexReport

__all__ = ["solve_dae"]

# After so many runs in which traces proved wrong, nothing is traced any more.
MAX_TRACED_RUNS = 4


def solve_dae(
    fun: Any,
    t_span: Sequence[float],
    y0: ArrayLike,
    yp0: ArrayLike | None = None,
    *,
    t_eval: ArrayLike | None = None,
    dense_output: bool = False,
    events: Any = None,
    args: Sequence[Any] = (),
    rtol: ArrayLike = default("rtol"),
    atol: ArrayLike = default("atol"),
    jac: Any = None,
    constraints: Any = None,
    invariants: Any = None,
    var_index: ArrayLike | None = None,
    jac_sparsity: Any = None,
    lband: int | None = None,
    uband: int | None = None,
    names: Sequence[str] | None = None,
    units: Sequence[str] | Mapping[str, str] | None = None,
    equation_names: Sequence[str] | None = None,
    t_breaks: ArrayLike | None = None,
    form: str | int = default("form"),
    trace: str = default("trace"),
    start: str = default("start"),
    sensitivity: str | Sequence[str] | None = None,
    quadratures: Any = None,
    first_step: float | None = default("first_step"),
    max_step: float = default("max_step"),
    max_order: int = default("max_order"),
    max_steps: int | None = default("max_steps"),
    max_seconds: float | None = default("max_seconds"),
    progress: bool = False,
    callback: Callable[..., Any] | None = None,
    options: Options | Mapping[str, Any] | None = None,
) -> DaeResult:
    """Solve F(t, y, y') = 0 from t_span[0] to t_span[1].

    A function that can be traced may have any index; any other may have index 0, 1 or 2, or 3 in
    the form of a constrained mechanism.

    Parameters
    ----------
    fun : callable or Problem
        The residual: ``fun(t, y, yp)`` returns it as a list or an array, ``fun(t, y, yp, out)``
        fills it in. C functions (`scipy.LowLevelCallable`, Numba cfunc, ctypes pointer) and
        `Problem` objects are accepted too. The arrays passed in are reused in the next call: copy
        what is to be kept.
    t_span : pair of float
        Start and end; the end may lie before the start.
    y0 : array_like, shape (n,)
        Starting values. Algebraic components may be guesses: they are corrected, with a warning
        if one changes by more than its tolerance.
    yp0 : array_like, shape (n,), optional
        Starting derivative; computed when left out or inconsistent.
    t_eval : array_like, optional
        Times at which the solution is returned; every accepted step when left out.
    dense_output : bool
        Whether to return ``sol``, the solution as a function of time.
    events : callable or list of callables
        ``event(t, y, yp, *args)`` or ``event(t, y, *args)`` returns one value, whose zero crossings
        are located on the interpolant. Attributes as in `scipy.integrate.solve_ivp`: ``terminal``
        (True, or the number of occurrences that ends the run) and ``direction``. With a further
        attribute ``apply(t, y, yp, *args) -> y`` the event changes the state, and the integration
        continues from there; events whose functions this change takes to zero or past it happen
        too, at the same time. An event that is zero at the start is reported once, but neither
        stops the run nor changes the state.
    args : sequence
        Further arguments of `fun`, `jac`, the events, constraints and invariants.
    rtol, atol : float or array_like
        Tolerances: the error of each step is kept below ``rtol * abs(y) + atol``.
    jac : callable or pair of matrices, optional
        ``jac(t, y, yp, *args) -> (F_y, F_yp)``; when left out exact for a traced function, by
        differences for others. Not used where the equations are reduced.
    constraints : callable, Constraint or list of them, optional
        Functions ``(t, y, *args)`` of one or several values that are zero along the exact
        solution. Every accepted step is projected onto them. A start that has to be moved by more
        than the tolerance is refused. Their Jacobian may be given as attribute ``jac`` of the
        function; `Constraint` takes C functions.
    invariants : callable, Constraint or list of them, optional
        As `constraints`, for quantities that keep their starting value, such as an energy.
    var_index : array_like of int, optional
        Kind of every unknown, as in RADAU5: 0 or 1 ordinary; 2 for those that lose an order of
        accuracy (multipliers of velocity constraints, pressures, velocities of an index-3
        mechanism); 3 for those that lose two (multipliers of position constraints). Found from the
        equations when left out. If you pass it, the index is not checked: a system that would
        otherwise be refused is integrated.
    jac_sparsity : sparse matrix, array_like or pair of them, optional
        Nonzero where F_y and F_yp may have entries; one matrix for both, or one for each. Rarely
        needed: a trace shows where the entries are, and for a `fun` that is called they are found
        from its values. ``linear_solver`` in `options` is "auto", "dense", "band", "sparse",
        "krylov", the name of a library, or an object of your own (`Options`).
    lband, uband : int, optional
        The same for banded matrices: numbers of diagonals below and above the main one.
    names, equation_names : sequence of str, optional
        Names of variables and equations, for ``sol["x"]``, messages, tables and pictures; the
        variables' are read off the function when left out, as in ``x, v = y``.
    units : sequence of str or dict, optional
        Units of the variables, in order (``["m", "m/s"]``) or by name (``{"v": "m/s"}``), for
        tables, files and pictures, where variables of the same unit share a panel. They may be
        part of the names as well, as in ``"speed [m/s]"``.
    t_breaks : array_like, optional
        Times at which a forcing jumps or has a kink. The integration stops there exactly and
        starts again, at order 1, with the algebraic part made consistent with the equations after
        the break; the values returned for that time are those before it. Events that happen at
        that very time are reported. With a break at the end of the interval, the equations after
        it do not matter.
    form : {"auto", "given", 2}
        "auto" differentiates the constraints of a traced system of index 2 or more until its index
        is 1, integrates that, and keeps it on all constraints, given and hidden, at every step;
        `y0` may then be approximate. "given" integrates exactly what is written, up to index 3, and
        2 reduces to index 2 only. A system that cannot be traced is integrated as written, and so
        is one with a `var_index`.
    trace : {"auto", "never", "always"}
        "auto" runs `fun` once on symbols and integrates the expressions found, at compiled speed
        and with exact Jacobians; a function that cannot be traced is called as it is. "never"
        always calls it; "always" refuses a function that cannot be traced, and names the line that
        prevents it.
    start : {"auto", "quiet", "assume", "check"}
        "auto" makes the starting values consistent: the differential part of `y0` is kept, the
        algebraic part and y' are found. "quiet" does the same, for guesses: without a warning
        where values of `y0` are changed. "assume" takes `y0` and `yp0` as they are, "check" fails
        if they are inconsistent. ``sol.start`` says what was done.
    sensitivity : {"args", "y0", "all"} or list of str, optional
        Parameters of derivatives of the solution: the floats in `args`, the starting values, both,
        or single ones by name: ``"k"``, an argument of the function; ``"k[2]"``, an array's entry;
        ``"y0[3]"`` or ``"y0[voltage]"``; ``"self.mass"``, a float that the function reads
        elsewhere. The derivatives dy/dp at fixed times are ``sol.sens``.
    quadratures : callable or list of callables, optional
        Functions ``q(t, y, yp, *args)`` or ``q(t, y, *args)`` of one or several values, whose
        integrals from ``t_span[0]`` on are ``sol.quadratures``. They are integrated along with the
        solution and take part in the error test, unless ``quadratures_tested`` in `options` is
        False.
    first_step, max_step : float, optional
        Size of the first step, and largest size of any step. If a traced function has a condition
        on time and unknowns together, no step is longer than a hundredth of the interval.
    max_order : int
        Highest order, 1 to 6.
    max_steps, max_seconds : optional
        Limits on the number of accepted steps and on the time taken, tracing and start included.
    progress : bool
        Show a progress bar on standard error.
    callback : callable, optional
        ``callback(t, y, yp)`` is called after every step; the run stops if it returns true.
    options : Options or mapping, optional
        Further options; an argument above overrides an option of the same name.

    Returns
    -------
    DaeResult
        With SciPy's names: ``t``, ``y``, ``sol``, ``t_events``, ``success``, ``message``, ...
        A numerical failure is returned with ``success=False`` and all that was computed.

    Raises
    ------
    ValueError, TypeError
        An argument is wrong; the message names it.
    KeyboardInterrupt
        Ctrl-C, with the solution so far in its attribute ``result`` (None before the first step).
        Other exceptions that end a run have it as well.

    Examples
    --------
    A capacitor discharging over a resistor, with the current as an algebraic unknown:

    >>> from tether import solve_dae
    >>> def circuit(t, y, yp):
    ...     voltage, current = y
    ...     return [yp[0] + current, voltage - 2.0 * current]
    >>> sol = solve_dae(circuit, (0, 2), [1.0, 0.5])
    >>> print(round(float(sol.y[0, -1]), 4))
    0.3679
    """
    problem = as_problem(
        fun, jac, args, constraints, invariants, var_index, jac_sparsity, lband, uband
    )
    t0, t_end = check_span(t_span)
    settings = merge(
        options, rtol=rtol, atol=atol, start=start, first_step=first_step, max_step=max_step,
        max_order=max_order, max_steps=max_steps, max_seconds=max_seconds, form=form,
        trace=trace,
    )
    times = check_t_eval(t_eval, t0, t_end)
    breaks = check_t_breaks(t_breaks, t0, t_end)
    watched = check_events(events, problem.args)
    if callback is not None:
        check_signature("callback", callback, "(t, y, yp)", 3)
    given = Given(problem, y0, yp0, settings, names, equation_names, units, callback)
    if quadratures is not None:
        from tether.problem.quadratures import with_quadratures  # late, to save time

        given = with_quadratures(given, quadratures, t0)
        settings = given.options

    drivers: list[Driver] = []
    tape = None
    if settings.sensitivity_test and sensitivity is None:
        raise ValueError("options: sensitivity_test needs sensitivity=")
    if sensitivity is not None:
        from tether.sensitivity.collect import taped  # late, to save time

        tape = taped(
            sensitivity, given.problem, np.size(y0), names, watched, callback is not None, settings
        )
    between = dense_output or (
        times is not None and bool(np.any((times != t0) & (times != t_end)))
    )

    def run(settings: Options, watched: list[Event]) -> Status:
        bar = None
        if progress:
            from tether.run.progress import ProgressBar  # late, to save time

            bar = ProgressBar(t0, t_end)
            bar.announce(f"looking at {np.size(y0)} equations")
        integration = Integration(
            given.problem, t0, given.y0, given.yp0, settings, t_bound=t_end, dense_output=between,
            names=given.names, equation_names=given.equation_names, variable_units=given.units,
            tape=tape,
        )
        refuse_off_constraints(integration)
        _warn_if_moved(integration, given.y0)
        keep = times is None or dense_output or tape is not None
        limit = np.inf if tape is None else settings.tape_memory
        record = Record(integration.state, keep, times, limit)
        if tape is not None:
            tape.record = record
        if quadratures is not None:
            for event in watched:
                event.restrict_to(np.size(y0))
        drivers.append(Driver(integration, record, watched, given.callback, bar, breaks))
        return drivers[-1].run()

    def attempt(settings: Options, watched: list[Event]) -> DaeResult:
        try:
            status = run(settings, watched)
            while status == TRACE_DIFFERS and drivers[-1].can_be_repeated:
                status = run(_rerun_settings(settings, drivers), check_events(events, problem.args))
        except (KeyboardInterrupt, Exception) as error:
            found = _result(drivers, Status.INTERRUPTED, dense_output) if drivers else None
            with suppress(Exception):          # a user's exception may not allow attributes
                error.result = found  # type: ignore[union-attr]
            raise
        return _result(drivers, status, dense_output)

    result = attempt(settings, watched)
    if tape is None:
        return result
    found = tape.differentiate(drivers[-1].events, dense_output)
    while drivers[-1].can_be_repeated and (tighter := tape.tightened(settings)) is not None:
        settings, before = tighter, (result, found)
        result = attempt(settings, check_events(events, problem.args))
        if not result.success:
            result, found = before
            break
        found = tape.differentiate(drivers[-1].events, dense_output)
    return replace(result, sensitivities=found, warnings=result.warnings + tape.doubts)


def _rerun_settings(settings: Options, drivers: list[Driver]) -> Options:
    """Return the settings for another run, after one in which a trace proved wrong.

    A function whose trace gave wrong values is known by now, and will be called.
    """
    trust = drivers[-1].integration.trust
    if settings.max_seconds is not None:
        left = settings.max_seconds - drivers[0].seconds       # since the first run began
        settings = replace(settings, max_seconds=max(left, 1e-9))
    if trust.refused and len(drivers) <= MAX_TRACED_RUNS:
        return settings
    return replace(settings, trace="never")


def _result(drivers: list[Driver], status: Status, dense_output: bool) -> DaeResult:
    """Make the result of the last run."""
    driver = drivers[-1]
    differences: tuple[str, ...] = ()
    checks = 0
    for each in drivers:
        trust = each.integration.trust
        differences += tuple(trust.warnings)
        checks += trust.points
    if differences and not driver.integration.note:
        driver.integration.note = differences[-1]
    run, record, events = driver.integration, driver.record, driver.events
    n = run.n - run.problem.n_quadratures
    history: dict[str, np.ndarray] | None = None
    interpolant = integrals_between = None
    if record.keep_steps:
        steps = record.steps()
        t, y, yp, history = steps.t, steps.y, steps.yp, steps.history()
        if dense_output and len(history["t"]):
            interpolant = run.method.interpolant(steps.restricted(n))
            if run.n > n:
                integrals_between = run.method.interpolant(steps.restricted(run.n, first=n))
    if record.t_eval is not None:
        t, y, yp = record.outputs()
    run.model.count(run.state)
    found: tuple[str, ...] = ()
    remarked: tuple[str, ...] = ()
    if not status.failed:
        found, remarked = doubts(driver), remarks(driver)
    elif status == Status.INTERRUPTED:
        run.status = status
    stats = Statistics.of(run.state, driver.seconds, checks, history)
    drift = record.drift()
    doubtful = status.failed or bool(found)
    diagnosis = _diagnosis(driver, status, found) if doubtful else None
    return make_frozen(DaeResult, {
        "t": t, "y": y.T[:n], "yp": yp.T[:n], "sol": interpolant,
        "t_events": _gather(events, "t", n) if events else None,
        "y_events": _gather(events, "y", n) if events else None,
        "yp_events": _gather(events, "yp", n) if events else None,
        "status": status, "message": _message(driver, status, diagnosis),
        "start": start_of_run(run, driver.start).restricted(n),
        "stats": stats, "drift": drift, "how": run.how,
        "analysis": partial(_report, run, driver, n),
        "verdict": diagnosis or partial(_all_is_well, driver),
        "warnings": found + remarked + differences,
        "jumps": _jumps(run, n) if run.jumps else (), "naming": partial(_names, run, n),
        "event_names": tuple([event.name for event in events]) if events else (),
        "quadratures": y.T[n : run.n] if run.n > n else None,
        "integrals_between": integrals_between,
    })


def _jumps(run: Integration, n: int) -> tuple[Jumped, ...]:
    """Return where the user's n unknowns have jumped."""
    return tuple([jump.restricted(n) for jump in run.jumps])


def _names(run: Integration, n: int) -> Names:
    """Return the names of the user's unknowns, given or read off the function."""
    return run.names.restricted(n)


def _report(run: Integration, driver: Driver, n: int) -> IndexReport:
    """Analyse the user's equations where the run began."""
    from tether.analyze import analyze  # late, to save time

    start, names = driver.start.restricted(n), run.names.variables[:n]
    return analyze(run.problem.written, driver.t_start, start.y, start.yp, names=names)


def _diagnosis(driver: Driver, status: Status, warnings: tuple[str, ...]) -> Diagnosis:
    """Find out why a run failed, at once, while its memory is still there."""
    from tether.explain.causes import Cause  # late, to save time: most runs need no diagnosis
    from tether.explain.diagnosis import Where, write
    from tether.explain.examine import diagnose

    if status.failed:
        return diagnose(driver.integration, driver)
    steps = read_steps(driver.state)
    return write(Cause.DOUBTFUL, Where(driver.t_reached), "; ".join(warnings), steps=steps)


def _all_is_well(driver: Driver) -> Diagnosis:
    """Make the diagnosis of a run without trouble, for a user who asks for it."""
    from tether.explain.causes import Cause  # late, to save time
    from tether.explain.diagnosis import Where, write

    return write(Cause.NONE, Where(), steps=read_steps(driver.state))


def _message(driver: Driver, status: Status, diagnosis: Diagnosis | None) -> str:
    if diagnosis is None:
        return status.text
    if not status.failed:
        return f"{status.text} {diagnosis.summary}"
    from tether.explain.causes import Cause  # late, to save time: there is a diagnosis already
    from tether.explain.diagnosis import capitalised

    run = driver.integration
    advice = f" Try: {diagnosis.remedies[0]}." if diagnosis.remedies else ""
    if not run.start.success:
        reason = start_words(run.start.reason, run.names)
        if diagnosis.cause != Cause.START or reason not in diagnosis.evidence:
            return f"{diagnosis.summary}{advice}"
        return f"{diagnosis.summary} {capitalised(reason)}.{advice}"
    where = f"(t = {driver.t_reached:.10g}, step size {run.state.h:.3g})"
    found = diagnosis.summary.removeprefix(diagnosis.untraced).lstrip()
    if diagnosis.cause == Cause.LINEAR_SOLVER:     # what the status says only follows from it
        return f"{diagnosis.untraced} {found} {where}{advice}".lstrip()
    # where no cause was found, the status has all the advice there is
    text = status.text if diagnosis.cause == Cause.UNKNOWN else f"{status.happened}."
    text = f"{text} {where}"
    if diagnosis.cause == Cause.STOPPED:
        return text
    return f"{diagnosis.untraced} {text} {found}{advice}".lstrip()


def _gather(events: list[Event], name: str, n: int) -> list[np.ndarray]:
    """Return times of events, or values of the user's n unknowns there."""
    found = [np.array(getattr(event, name)) for event in events]
    return [values[:, :n] if values.ndim == 2 else values for values in found]


def check_span(t_span: Any) -> tuple[float, float]:
    try:
        t0, t_end = t_span
    except (TypeError, ValueError):
        raise ValueError(f"t_span must be a pair (start, end), got {t_span!r}") from None
    t0, t_end = check_time("t_span[0]", t0), check_time("t_span[1]", t_end)
    if t0 == t_end:
        raise ValueError(f"t_span must have two different times, got {t_span!r}")
    return t0, t_end


def check_t_eval(t_eval: Any, t0: float, t_end: float) -> np.ndarray | None:
    if t_eval is None:
        return None
    times = as_numbers("t_eval", t_eval)
    if times.dtype.kind not in "fiu" or times.ndim != 1:
        raise TypeError(f"t_eval must be a vector of real numbers, got {t_eval!r}")
    times = np.ascontiguousarray(times, float)
    low, high = min(t0, t_end), max(t0, t_end)
    if len(times) and not low <= times.min() <= times.max() <= high:
        raise ValueError(f"t_eval must lie within t_span [{low}, {high}]")
    if len(times) > 1 and ((times[1:] - times[:-1]) * (t_end - t0) <= 0).any():
        raise ValueError("t_eval must go from t_span[0] towards t_span[1] without repeats")
    return times


def check_t_breaks(t_breaks: Any, t0: float, t_end: float) -> list[float]:
    """Return the times within the interval or at its end, in the order they are reached."""
    if t_breaks is None:
        return []
    times = as_numbers("t_breaks", t_breaks)
    if times.ndim != 1 or (len(times) and times.dtype.kind not in "fiu"):
        raise TypeError(f"t_breaks must be a vector of real numbers, got {t_breaks!r}")
    if not np.all(np.isfinite(times.astype(float))):
        raise ValueError(f"t_breaks must be finite, got {t_breaks!r}")
    low, high = min(t0, t_end), max(t0, t_end)
    inside = sorted({float(t) for t in times if low <= t <= high and t != t0})
    return inside if t_end > t0 else inside[::-1]


def _multipliers(run: Integration) -> np.ndarray:
    """Tell which unknowns are multipliers, where the equations are integrated as written.

    They follow from the others, so their starting values are ignored.
    """
    s, pencil = run.state, run.start.pencil
    if pencil is None or s.n != run.n:
        return np.zeros(run.n, bool)
    return (pencil.var_index > 1) & ~s.with_slopes


def _warn_if_moved(run: Integration, y0: ArrayLike) -> None:
    start = run.start
    if not (start.success and start.moved) or run.options.accept_projected_start:
        return
    if run.options.start == "quiet":
        return
    change = np.abs(start.y[: run.n] - np.asarray(y0, float)) * run.state.weights[: run.n]
    change[run.model.determined | _multipliers(run)] = 0.0
    worst = int(np.argmax(change))
    if change[worst] > 1.0:
        name = run.names.variable(worst)
        called = "" if name == f"y[{worst}]" else f" ({name})"
        warnings.warn(                 # without numbers, so that Python shows it only once
            f"y0 does not satisfy the algebraic equations; y0[{worst}]{called} was changed, and "
            "sol.start.moved says by how much; start='quiet' takes guesses without a warning",
            ConsistencyWarning,
            stacklevel=5,
        )
