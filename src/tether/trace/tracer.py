"""Trace a residual: run its private copy on symbols and read off the expressions."""

from __future__ import annotations

import functools
import linecache
import os
import traceback
import types
import weakref
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from tether.problem.naming import code_of, guess_names
from tether.trace import opcodes as op
from tether.trace.arguments import ArgumentLayout, HiddenInputs, parameter_names
from tether.trace.arrays import TracedArray
from tether.trace.blame import LineOfWrite
from tether.trace.blocks import JOIN, Blocks
from tether.trace.branches import BranchRecorder, TooManyPaths, merge
from tether.trace.cache import Reader, TooLarge, too_large_variable
from tether.trace.derive import SparseJacobian, jacobian, switches
from tether.trace.effects import effects
from tether.trace.emit import Program, emit
from tether.trace.graph import TIMED, Graph
from tether.trace.guards import guards, numpy_raises, raised_on_purpose
from tether.trace.handlers import CAUGHT, GUARD
from tether.trace.joins import Joins
from tether.trace.kinds import NP_FLOAT, PY_FLOAT
from tether.trace.private import PrivateCopy
from tether.trace.refusal import Untraceable, refusals, refuse
from tether.trace.scalar import NUMBERS, Scalar
from tether.trace.watch import Watch

# Number of paths that are followed from beginning to end before blocks are joined.
FEW_PATHS = 8
# Number of attempts to join blocks, each without the blocks for which it failed before.
MOST_ATTEMPTS = 12


class TraceFailure(Exception):  # noqa: N818  (nothing is wrong with the function)
    """A function cannot be traced; it is called as it is instead.

    Attributes
    ----------
    file : str or None
        File of the construct that cannot be traced.
    line : int or None
        Line of that construct.
    cause : BaseException or None
        What ended the tracing.
    """

    cause: BaseException | None = None

    def __init__(self, message: str, file: str | None = None, line: int | None = None) -> None:
        super().__init__(message)
        self.file, self.line = file, line


class Trace:
    """A residual as expressions.

    Attributes
    ----------
    graph : Graph
        The graph of the expressions.
    n : int
        Number of unknowns.
    outputs : list of int
        One expression per equation.
    args : ArgumentLayout
        Which arguments are inputs.
    notes : list of str
        Remarks for the report.
    left_out : tuple of str
        Calls of the function that are made for their effects alone, such as `print`.
    raises : bool
        Whether the function itself raises exceptions; the expressions are NaN there.
    """

    left_out: tuple[str, ...] = ()
    raises = False

    def __init__(
        self,
        graph: Graph,
        outputs: list[int],
        n: int,
        code: types.CodeType | None,
        args: ArgumentLayout,
    ) -> None:
        self.graph, self.outputs, self.n = graph, outputs, n
        self.args = args
        self.notes: list[str] = []
        self._code = code              # not the function, whose data may be large

    @functools.cached_property
    def names(self) -> list[str]:
        """Names of the unknowns as the function unpacks them, or ``y[0]``, ``y[1]``, ..."""
        return guess_names(self._code, self.n)

    def depends_on(self, nodes: Iterable[int], n: int) -> np.ndarray:
        """Mark those of the first n unknowns whose value or derivative occurs in expressions."""
        leaves = (self.graph.nodes[leaf] for leaf in self.graph.inputs(nodes))
        found = {j for code, j, _, _ in leaves if code == op.Y}
        return np.array([j in found for j in range(n)], bool)

    def with_outputs(self, outputs: list[int]) -> Trace:
        """Return the same function with other expressions."""
        other = Trace(self.graph, outputs, self.n, self._code, self.args)
        other.notes, other.left_out, other.raises = self.notes, self.left_out, self.raises
        return other

    def with_shifts(self, outputs: list[int], count: int) -> Trace:
        """Return the same function with other expressions, which have `count` further inputs.

        These inputs are zero unless a run sets them.
        """
        other = self.with_outputs(outputs)
        other.args = self.args.with_shifts(count)
        return other

    def with_unknowns(self, outputs: list[int], count: int) -> Trace:
        """Return the same function with other expressions, which have `count` further unknowns."""
        other = self.with_outputs(outputs)
        other.n += count
        return other

    def unknowns(self, order: int = 0) -> list[int]:
        """Nodes of y (order 0), y' (order 1) or higher derivatives."""
        return [self.graph.y(j, order) for j in range(self.n)]

    @functools.cached_property
    def switches(self) -> list[int]:
        """Nodes at which the residual may have a kink or a jump."""
        return switches(self.graph, self.outputs)

    @functools.cached_property
    def is_switched_by_time(self) -> bool:
        """Whether a switch depends on both time and unknowns."""
        mixed = [node for node in self.switches if self.graph.level[node] > TIMED]
        leaves = self.graph.inputs(mixed)
        return any(self.graph.nodes[leaf][0] == op.TIME for leaf in leaves)

    @functools.cached_property
    def f_y(self) -> SparseJacobian:
        """Derivative with respect to y."""
        return self._jacobians[0]

    @functools.cached_property
    def f_yp(self) -> SparseJacobian:
        """Derivative with respect to y'."""
        return self._jacobians[1]

    @functools.cached_property
    def f_t(self) -> SparseJacobian:
        """Derivative with respect to t, one column."""
        return jacobian(self.graph, self.outputs, [self.graph.time()])

    @functools.cached_property
    def f_args(self) -> SparseJacobian:
        """Derivative with respect to the arguments."""
        arguments = [self.graph.arg(i) for i in range(self.args.size)]
        return jacobian(self.graph, self.outputs, arguments)

    @functools.cached_property
    def _jacobians(self) -> tuple[SparseJacobian, SparseJacobian]:
        both = jacobian(self.graph, self.outputs, self.unknowns() + self.unknowns(1))
        parts = []
        for first in (0, self.n):
            inside = [k for k, j in enumerate(both.cols) if first <= j < first + self.n]
            parts.append(
                SparseJacobian(
                    (len(self.outputs), self.n),
                    [both.rows[k] for k in inside],
                    [both.cols[k] - first for k in inside],
                    [both.nodes[k] for k in inside],
                )
            )
        return parts[0], parts[1]

    @functools.cached_property
    def reference(self) -> Program:
        """The residual as a program for the reference interpreter, which can run all of it."""
        return self.program(opaque=True)

    def program(self, outputs: Sequence[int] | None = None, opaque: bool = False) -> Program:
        """Flatten expressions, by default the residual; see `emit`.

        Raises
        ------
        NoProgram
            If the expressions call a function that only Python can run.
        """
        chosen = self.outputs if outputs is None else outputs
        return emit(self.graph, chosen, self.n, self.args.size, opaque)


def trace(
    fun: Callable[..., Any],
    n: int,
    args: Sequence[Any] = (),
    fills: bool = False,
    max_paths: int = 64,
    size: int | None = None,
    hidden: HiddenInputs | None = None,
) -> Trace:
    """Trace a residual, or another function of the same arguments.

    Parameters
    ----------
    fun : callable
        ``fun(t, y, yp, *args)`` returns the residual, or ``fun(t, y, yp, out, *args)`` fills it.
    n : int
        Number of unknowns.
    args : sequence
        Further arguments. Floats and arrays of floats, also inside lists, tuples and
        dictionaries, become inputs of the program; everything else is constant.
    fills : bool
        The function fills its fourth argument.
    max_paths : int
        How many paths through branches on traced values are followed: through the whole function,
        or through each block if blocks can be joined.
    size : int, optional
        Number of values it returns, `n` by default.
    hidden : HiddenInputs, optional
        Floats outside `args` that become inputs too.

    Raises
    ------
    TraceFailure
        With the line and the construct that cannot be traced.

    Examples
    --------
    >>> from tether.trace import trace
    >>> pendulum = trace(lambda t, y, yp: [yp[0] - y[1], yp[1] + 9.8 * y[0]], 2)
    >>> pendulum.f_y.rows, pendulum.f_y.cols
    ([0, 1], [1, 0])
    """
    try:
        return _trace(fun, n, args, fills, max_paths, size or n, False, hidden)
    except TraceFailure as failure:
        layout = ArgumentLayout(args)
        if not layout.size:
            raise
        # an argument may be needed as a number, say for the size of an array
        try:
            result = _trace(fun, n, args, fills, max_paths, size or n, True, hidden)
        except TraceFailure:
            raise failure from None
        result.notes.append(f"traced for these arguments only: {failure}")
        return result
    finally:
        guards.end()


def _trace(
    fun: Callable[..., Any],
    n: int,
    args: Sequence[Any],
    fills: bool,
    max_paths: int,
    size: int,
    fixed: bool,
    hidden: HiddenInputs | None,
) -> Trace:
    """Follow a few paths from beginning to end; if there are more, join blocks."""
    if max_paths <= FEW_PATHS:
        return _follow(fun, n, args, fills, max_paths, size, fixed, hidden)
    try:
        return _follow(fun, n, args, fills, FEW_PATHS, size, fixed, hidden)
    except TraceFailure as failure:
        if not isinstance(failure.cause, TooManyPaths):
            raise
    blocks = Blocks()
    attempts = 0
    while attempts < MOST_ATTEMPTS:
        ordinary, branching = len(blocks.ordinary), len(blocks.branching)
        try:
            return _follow(fun, n, args, fills, max_paths, size, fixed, hidden, blocks)
        except TraceFailure:
            if (len(blocks.ordinary), len(blocks.branching)) == (ordinary, branching):
                break
            attempts += len(blocks.ordinary) > ordinary
    return _follow(fun, n, args, fills, max_paths, size, fixed, hidden)


def _follow(
    fun: Callable[..., Any],
    n: int,
    args: Sequence[Any],
    fills: bool,
    max_paths: int,
    size: int,
    fixed: bool,
    hidden: HiddenInputs | None,
    blocks: Blocks | None = None,
    blame: bool = False,
) -> Trace:
    """Follow all paths; with `blocks`, those of each block separately.

    Blocks that turn out to have no join are noted in `blocks`, for another attempt.
    """
    graph = Graph()
    recorder = BranchRecorder(graph, lambda problem: _is_raised_by(problem, private.codes))
    effects.begin()
    raising = numpy_raises()
    called = parameter_names(fun, 4 if fills else 3, len(args)) if args else ()
    layout = ArgumentLayout(args, fixed, () if hidden is None else hidden.names, called)
    reader = Reader()

    def symbol(number: int, kind: int) -> Scalar:
        return Scalar(recorder, graph.arg(layout.own + number), kind)

    joins = None if blocks is None else Joins(recorder, blocks)
    marks = {GUARD: guards.guard, CAUGHT: guards.check_caught, JOIN: joins}
    private = PrivateCopy(reader, blocks, marks, hidden, None if hidden is None else symbol)
    if joins is not None:
        joins.changed = private.watch.changed
    guards.begin(private.builtins, raising)

    def run() -> list[int]:
        t = Scalar(recorder, graph.time(), PY_FLOAT)
        y = _vector(recorder, [graph.y(j) for j in range(n)])
        yp = _vector(recorder, [graph.y(j, 1) for j in range(n)])
        inputs = layout.replace(constants, lambda i: Scalar(recorder, graph.arg(i)))
        given = Watch()
        given.deep(inputs, "its arguments")
        given.array(y, "y or yp")
        given.array(yp, "y or yp")

        def changed() -> str | None:
            return given.changed() or private.watch.changed()

        def check() -> None:
            if what := changed():      # now, since another branch may write the old value back
                raise Write(f"the function writes to {what}", line.place)

        line = LineOfWrite(changed, private.codes)
        try:
            with line if blame else nullcontext():
                if fills:
                    result = np.full(n, _UNSET, dtype=object).view(TracedArray)
                    copy(t, y, yp, result, *inputs)
                else:
                    result = copy(t, y, yp, *inputs)
        except Exception:
            check()
            raise
        check()
        if effects.has_text:
            refuse("makes text of a traced number")
        return _nodes(graph, result, size)

    refusals.last = None
    try:
        with np.errstate(all="ignore"):
            read_call(reader, fun, args)
            copy = private.copy(fun)
            constants = tuple(map(private.copy, args))
            private.refuse_memory_attributes()
            found = recorder.follow(run, max_paths)
            if refusals.last:
                raise Untraceable(f"the function swallows an exception: {refusals.last}")
    except BaseException as problem:
        if not isinstance(problem, (Exception, Untraceable)) and not raised_on_purpose(problem):
            raise
        if isinstance(problem, Write) and not blame and blocks is None:
            return _follow(fun, n, args, fills, max_paths, size, fixed, hidden, blame=True)
        if joins is not None and blocks is not None:
            blocks.ordinary.update({id(code): code for code in joins.blocks_behind(problem)})
        raise failure_of(problem, private.codes) from None
    outputs = merge(graph, found)
    if recorder.raising:
        nan = functools.reduce(graph.add, recorder.raising)
        outputs = [graph.add(output, nan) for output in outputs]
    result = Trace(graph, outputs, n, code_of(fun), layout)
    result.left_out, result.raises = tuple(effects.left_out), bool(recorder.raising)
    return result


class Write(Untraceable):
    """The function wrote to something outside."""

    def __init__(self, reason: str, place: tuple[types.CodeType, int] | None) -> None:
        super().__init__(reason)
        self.place = place


def read_call(reader: Reader, fun: Callable[..., Any], args: Sequence[Any]) -> None:
    """Read everything that a function depends on; refuse more than can be compared."""
    try:
        reader.read_call(fun, args)
    except (TooLarge, RecursionError) as problem:
        name, value = getattr(problem, "name", ""), getattr(problem, "value", None)
        if type(fun) is types.FunctionType:
            name, value = too_large_variable(fun) or (name, value)
        kind = type(value).__name__
        what = f"reads {name}, of type {kind}, which is" if name else "depends on data"
        reason = Untraceable(f"{what} too large to be compared from call to call")
        reason.place = reader.place_of_name(name)
        raise reason from None


def why_not_compared(fun: Callable[..., Any], args: Sequence[Any] = ()) -> str:
    """Say what a function depends on that cannot be compared, and where.

    Finding it may take seconds, so it is done once for the code of a function.
    """
    code = getattr(fun, "__code__", None)
    if code is None:
        return _find_why_not_compared(fun, args)
    number = id(code)
    if number not in _not_compared:
        forget = weakref.ref(code, lambda _: _not_compared.pop(number, None))
        _not_compared[number] = forget, _find_why_not_compared(fun, args)
    return _not_compared[number][1]


def _find_why_not_compared(fun: Callable[..., Any], args: Sequence[Any]) -> str:
    try:
        read_call(Reader(), fun, args)
    except Untraceable as problem:
        return str(failure_of(problem, set()))
    return "it depends on data that cannot be compared from call to call"


# Why functions cannot be compared, by their code; an entry lives as long as the code.
_not_compared: dict[int, tuple[weakref.ref[types.CodeType], str]] = {}


def _is_raised_by(problem: Exception, codes: set[types.CodeType]) -> bool:
    """Tell whether one of the user's functions has raised an exception itself."""
    if guards.has_raised(problem):
        return True
    unknown = isinstance(problem, TypeError) and "must derive from BaseException" in str(problem)
    if unknown or not raised_on_purpose(problem):          # a stand-in cannot be raised
        return False
    place = problem.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    files = {code.co_filename for code in codes}
    return place is not None and place.tb_frame.f_code.co_filename in files


class _Unset:
    """Value of the elements of `out` that are not set yet; every operation with it fails."""

    def __repr__(self) -> str:
        return "a value of out that was not set"


_UNSET = _Unset()


def _vector(recorder: BranchRecorder, nodes: list[int]) -> TracedArray:
    numbers = [Scalar(recorder, node, NP_FLOAT) for node in nodes]
    # `np.array` of the list would ask each of them for the members of an array
    return np.fromiter(numbers, object, len(numbers)).view(TracedArray)


def _nodes(graph: Graph, result: Any, size: int) -> list[int]:
    """Nodes of the values that the function returned; a single value need not be in a list."""
    if size == 1 and isinstance(result, (Scalar, *NUMBERS, np.ndarray)) and np.ndim(result) == 0:
        result = [result]
    if not isinstance(result, (list, tuple, np.ndarray)):
        raise Untraceable(f"the function returns a {type(result).__name__}, not a list or an array")
    values = list(result)
    if len(values) != size:
        raise Untraceable(f"the function returns {len(values)} values instead of {size}")
    return [_node(graph, i, value) for i, value in enumerate(values)]


def _node(graph: Graph, i: int, value: Any) -> int:
    if type(value) is Scalar:
        return value.node
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
        if type(value) is Scalar:
            return value.node
    if isinstance(value, NUMBERS):
        return graph.constant(float(value))
    if value is _UNSET:
        raise Untraceable(f"the function does not set equation {i}, out[{i}]")
    raise Untraceable(f"equation {i} is a {type(value).__name__}, not a number")


# --- messages ---------------------------------------------------------------------------------


def failure_of(problem: BaseException, codes: set[types.CodeType]) -> TraceFailure:
    """Say where in the user's code tracing ended, and why."""
    files = {code.co_filename for code in codes}
    told = problem.place if isinstance(problem, Untraceable) else None
    place = None if told is None else _written_at(*told)
    for frame in [] if place else traceback.extract_tb(problem.__traceback__):
        if frame.filename in files:
            place = frame
    reason = str(problem) if isinstance(problem, Untraceable) else _message_of(problem)
    if place is None:
        failure = TraceFailure(reason)
    else:
        construct = _construct(place)
        text = f"{construct} {reason}" if construct else reason
        message = f"{os.path.basename(place.filename)}, line {place.lineno}: {text}"
        failure = TraceFailure(message, place.filename, place.lineno)
    failure.cause = problem
    return failure


def _written_at(code: types.CodeType, line: int) -> traceback.FrameSummary:
    """Place in the text of a function, without the text itself."""
    return traceback.FrameSummary(code.co_filename, line, code.co_name, lookup_line=False, line="")


def _message_of(problem: BaseException) -> str:
    text = str(problem)
    if "read-only" in text:
        return "writes to an array from outside the function"
    if "_Unset" in text:
        return "reads a value of out before it is set"
    if isinstance(problem, IndexError) and "arrays used as indices" in text:
        return "picks elements by a traced condition"
    name = type(problem).__name__
    return f"raises {name}: {text}" if text else f"raises {name}"


def _construct(place: traceback.FrameSummary) -> str:
    """Text of the expression that failed if it is on one line, otherwise of its line."""
    line = place.line or ""
    if place.lineno != place.end_lineno or place.colno is None or place.end_colno is None:
        return line
    # the file may have changed since it was imported
    original = linecache.getline(place.filename, place.lineno or 0).encode(errors="replace")
    return original[place.colno : place.end_colno].decode(errors="replace") or line
