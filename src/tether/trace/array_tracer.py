"""Trace a residual that works on whole arrays without taking these apart into numbers.

Branches on time and arguments alone are followed, and joined where their results differ. A
function that branches on unknowns, or that works on single numbers, is refused, and `tracer.py`
traces it number by number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from tether.trace import opcodes as op
from tether.trace.arguments import ArgumentLayout, HiddenInputs, parameter_names
from tether.trace.batches import Batches, current
from tether.trace.branches import BranchRecorder, Path, joined_paths
from tether.trace.cache import Reader
from tether.trace.effects import effects
from tether.trace.guards import guards, numpy_raises, raised_on_purpose
from tether.trace.handlers import CAUGHT, GUARD
from tether.trace.private import PrivateCopy
from tether.trace.refusal import Untraceable, refusals, refuse
from tether.trace.row_table import RowTable
from tether.trace.templates import fold
from tether.trace.timed_elements import OF_TIME, TimedElements, levels
from tether.trace.tracer import Trace, Write, failure_of, read_call
from tether.trace.watch import Watch
from tether.trace.whole_arrays import boxed, elements_of, whole
from tether.trace.whole_functions import run_function, run_ufunc  # noqa: F401  (registers them)

__all__ = ["ArrayTrace", "trace_arrays"]

# Paths through branches on time and arguments that are followed.
MOST_PATHS = 16


class ArrayTrace:
    """A residual as row templates.

    Attributes
    ----------
    table : RowTable
        The templates.
    n : int
        Number of unknowns.
    args : ArgumentLayout
        Which arguments are inputs.
    left_out : tuple of str
        Calls of the function that are made for their effects alone, such as `print`.
    turns : bool
        Whether it may have kinks or jumps at places that do not depend on time alone.
    timed : Trace or None
        The switches that depend on time alone, as expressions of single numbers.
    operations : int
        Number of operations on single numbers.
    source : (Batches, ndarray) or None
        The elements that the templates were made from; set it to None when they are not needed.
    """

    def __init__(
        self, table: RowTable, n: int, args: ArgumentLayout, left_out: tuple[str, ...],
        turns: bool, timed: Trace | None, source: tuple[Batches, np.ndarray],
    ) -> None:
        self.table, self.n, self.args = table, n, args
        self.left_out, self.turns, self.timed = left_out, turns, timed
        self.operations = source[0].size - source[0].first
        self.source: tuple[Batches, np.ndarray] | None = source

    def signs_by_time(self) -> Trace | None:
        """Return the signs of the values that depend on time alone; None if there are none."""
        assert self.source is not None
        batches, outputs = self.source
        timed, level = TimedElements(batches), levels(batches)
        graph = timed.graph
        signs = [
            graph.binary(op.LT, timed.node(element), graph.zero)
            for element in outputs[level[outputs] == OF_TIME].tolist()
        ]
        return Trace(graph, signs, self.n, None, self.args) if signs else None


def trace_arrays(
    fun: Callable[..., Any],
    n: int,
    args: Sequence[Any] = (),
    fills: bool = False,
    hidden: HiddenInputs | None = None,
    size: int | None = None,
) -> ArrayTrace:
    """Trace a residual that works on whole arrays; see `tether.trace.tracer.trace`.

    `size` is the number of values where it differs from the number of unknowns.

    Raises
    ------
    TraceFailure
        With the line and the construct that cannot be traced.

    Examples
    --------
    >>> import numpy as np
    >>> from tether.trace.array_tracer import trace_arrays
    >>> def heat(t, y, yp):
    ...     u = np.concatenate([[0.0], y, [0.0]])
    ...     return yp - (u[2:] - 2 * u[1:-1] + u[:-2])
    >>> table = trace_arrays(heat, 1000).table
    >>> table.templates, len(table.fy[0])
    (3, 2998)
    """
    reader = Reader()
    called = parameter_names(fun, 4 if fills else 3, len(args)) if args else ()
    layout = ArgumentLayout(args, False, () if hidden is None else hidden.names, called)
    batches = Batches(n, layout.size)

    def symbol(number: int, kind: int) -> Any:
        return boxed(np.array(batches.argument(layout.own + number)))

    marks = {GUARD: guards.guard, CAUGHT: guards.check_caught}
    private = PrivateCopy(reader, None, marks, hidden, None if hidden is None else symbol)
    effects.begin()
    guards.begin(private.builtins, numpy_raises())
    refusals.last = None
    try:
        with np.errstate(all="ignore"), _writing_to(batches):
            read_call(reader, fun, args)
            copy = private.copy(fun)
            constants = tuple(map(private.copy, args))
            private.refuse_memory_attributes()
            inputs = layout.replace(
                constants, lambda i: boxed(np.array(batches.argument(i))),
                lambda numbers: boxed(numbers + batches.argument(0)),
            )
            timed = TimedElements(batches)
            recorder = BranchRecorder(timed.graph, guards.has_raised)
            current.decide = lambda element: recorder.decide(timed.node(element))
            found = recorder.follow(
                lambda: _run(copy, batches, inputs, fills, private.watch, size or n), MOST_PATHS
            )
            if recorder.raising:
                refuse("raises exceptions on some of its paths")
            outputs = _merged(batches, timed, found)
            if refusals.last:
                raise Untraceable(f"the function swallows an exception: {refusals.last}")
            turning, turns = timed.turning(outputs)
            table = fold(batches, outputs)
    except BaseException as problem:
        if not isinstance(problem, (Exception, Untraceable)) and not raised_on_purpose(problem):
            raise
        raise failure_of(problem, private.codes) from None
    finally:
        guards.end()
    by_time = Trace(timed.graph, turning, n, None, layout) if turning else None
    return ArrayTrace(
        table, n, layout, tuple(effects.left_out), turns, by_time, (batches, outputs)
    )


@contextmanager
def _writing_to(batches: Batches) -> Iterator[None]:
    before = current.batches, current.decide
    current.batches = batches
    try:
        yield
    finally:
        current.batches, current.decide = before


def _merged(
    batches: Batches, timed: TimedElements, found: list[tuple[Path, np.ndarray]]
) -> np.ndarray:
    """Join the outputs of all paths where they are different elements."""

    def choose(condition: int, yes: np.ndarray, no: np.ndarray) -> np.ndarray:
        differ = np.flatnonzero(yes != no)
        merged = yes.copy()
        if len(differ):
            chosen = np.array([timed.elements[condition]])
            merged[differ] = batches.add(op.SELECT, chosen, yes[differ], no[differ])
        return merged

    return joined_paths(found, choose)


def _run(
    copy: Callable[..., Any], batches: Batches, inputs: tuple, fills: bool, outside: Watch,
    size: int,
) -> np.ndarray:
    """Run the private copy on symbols, and return the elements of its result."""
    n = batches.n
    t = boxed(np.array(batches.time))
    y, yp = boxed(np.arange(n)), boxed(np.arange(n, 2 * n))
    given = Watch()
    given.array(y, "y or yp")
    given.array(yp, "y or yp")
    for value in inputs:
        if isinstance(value, np.ndarray):
            given.array(value, "its arguments")
        elif isinstance(value, (list, dict)):
            refuse("takes lists or dictionaries as arguments")
    if fills:
        result = whole(np.full(n, np.nan))
        copy(t, y, yp, result, *inputs)
    else:
        result = copy(t, y, yp, *inputs)
    if what := given.changed() or outside.changed():
        raise Write(f"the function writes to {what}", None)
    if effects.has_text:
        refuse("makes text of a traced number")
    return _outputs(result, size)


def _outputs(result: Any, size: int) -> np.ndarray:
    if isinstance(result, (list, tuple)):
        result = np.array([float(x) if not isinstance(x, np.ndarray) else np.ndarray.item(x)
                           for x in result])  # fmt: skip
    if not isinstance(result, np.ndarray) or result.shape != (size,):
        refuse(f"returns something other than an array of {size} numbers")
    return elements_of(np.asarray(result, float))
