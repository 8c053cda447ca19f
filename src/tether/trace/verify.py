"""Compare a trace with its function: before it is used, and at single points of a run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tether._core.plain import Plain
from tether._core.rows import Rows
from tether.trace.array_tracer import ArrayTrace
from tether.trace.guards import raised_on_purpose
from tether.trace.tracer import Trace, TraceFailure

_SAFETY = 4.0
# Number of rounding errors that functions of whole arrays may make in each input.
_ROUNDINGS = 64.0
# Relative sizes of the perturbations, each in both directions.
_PERTURBATIONS = (1e-6, 1e-3, 0.1, 0.5, 1.0)


def verify(
    trace: Trace,
    fun: Callable[..., Any],
    t: float,
    y: Any,
    yp: Any,
    args: Sequence[Any] = (),
    fills: bool = False,
    hidden: Sequence[float] | np.ndarray = (),
) -> None:
    """Compare a trace with its function at the start and around it.

    The difference must not exceed the rounding errors that the program itself can make, which are
    estimated along with its values. Points where the function raises are left out, apart from the
    start.

    Parameters
    ----------
    trace : Trace
        The trace of `fun`.
    fun, args, fills
        As passed to `trace`.
    t, y, yp : float, array_like, array_like
        The start.
    hidden : sequence of float
        Values of the inputs that are not floats of `args`. They are not varied, since other values
        would have to be written to the user's objects.

    Raises
    ------
    TraceFailure
        With the equation that differs, or if the function returns different values for equal
        arguments.

    Examples
    --------
    >>> from tether.trace import trace, verify
    >>> def fun(t, y, yp):
    ...     return [yp[0] + y[0]**2]
    >>> verify(trace(fun, 1), fun, 0.0, [1.0], [0.0])
    """
    program = trace.reference
    given, own = trace.args.flatten(args, hidden), trace.args.own
    points = list(_points(t, np.asarray(y, float), np.asarray(yp, float), given, own))
    times, *columns = (np.stack(part, axis=-1) for part in zip(*points, strict=True))
    values = Plain(program, columns.pop(), len(points)).values_at_points(times, *columns).T
    for k, (time, unknowns, slopes, inputs) in enumerate(points):
        passed = trace.args.replace(args, inputs.tolist().__getitem__)
        try:
            expected = _call(fun, len(trace.outputs), time, unknowns, slopes, passed, fills)
        except TraceFailure:
            raise
        except BaseException as problem:
            if not isinstance(problem, Exception) and not raised_on_purpose(problem):
                raise
            if k == 0:
                name = type(problem).__name__
                raise TraceFailure(f"the function raises {name} at the start") from problem
            continue
        if k == 0:
            again = _call(fun, len(trace.outputs), time, unknowns, slopes, passed, fills)
            if not np.array_equal(expected, again, equal_nan=True):
                raise TraceFailure("the function gives different values when called again")
        if not np.array_equal(expected, values[k], equal_nan=True):
            found, errors = Plain(program, inputs).values_with_errors(time, unknowns, slopes)
            row = _first_wrong(expected, found, errors)
            if row is not None:
                raise TraceFailure(
                    f"equation {row} was traced to something else: {found[row]!r} instead of "
                    f"{expected[row]!r}"
                )


def _points(
    t: float, y: np.ndarray, yp: np.ndarray, args: np.ndarray, own: int
) -> Iterator[tuple[float, np.ndarray, np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(20)
    yield t, y, yp, args
    for size in _PERTURBATIONS:
        dy, dyp = (rng.uniform(-size, size, x.shape) * (np.abs(x) + 0.5) for x in (y, yp))
        # arguments are often lengths or masses: keep their sign
        inputs = args.copy()
        inputs[:own] *= rng.uniform(1 - 0.3 * size, 1 + 0.3 * size, own)
        yield t + size * rng.uniform(), y + dy, yp + dyp, inputs
        yield t + size * rng.uniform(), y - dy, yp - dyp, inputs


def _call(
    fun: Callable[..., Any],
    n: int,
    t: float,
    y: np.ndarray,
    yp: np.ndarray,
    args: tuple,
    fills: bool,
) -> np.ndarray:
    with np.errstate(all="ignore"):
        if fills:
            result = np.full(n, np.nan)
            fun(t, y.copy(), yp.copy(), result, *args)
        else:
            result = np.asarray(fun(t, y.copy(), yp.copy(), *args), dtype=float)
    if result.shape == () and n == 1:
        return result.reshape(1)
    if result.shape != (n,):
        raise TraceFailure(f"the function returns an array of shape {result.shape}, not ({n},)")
    return result


def _first_wrong(expected: np.ndarray, values: np.ndarray, errors: np.ndarray) -> int | None:
    """Return the first value that differs by more than rounding errors explain."""
    with np.errstate(invalid="ignore"):
        wrong = np.abs(values - expected) > _SAFETY * errors + 1e-300
    # where the function returns NaN, the simplified program may return a number
    wrong |= np.isnan(values) & np.isfinite(expected)
    wrong |= np.isinf(expected) & (values != expected)
    rows = np.flatnonzero(wrong & ~np.isinf(errors))
    return int(rows[0]) if len(rows) else None


@dataclass(frozen=True)
class Difference:
    """A difference between a program and the function from which it was traced.

    Attributes
    ----------
    row : int
        Number of the value that differs.
    value, expected : float
        The value of the program and that of the function.
    error : Exception or None
        What the function raised instead of returning a value.
    """

    row: int
    value: float
    expected: float = math.nan
    error: Exception | None = None


class ArrayPair:
    """Templates of a run and the function of whole arrays from which they were traced.

    Parameters
    ----------
    runner : Rows
        Runs the templates.
    fun, args, fills
        The function, the user's arguments, and whether it fills its fourth argument.
    """

    def __init__(
        self, runner: Any, fun: Callable[..., Any], args: Sequence[Any] = (), fills: bool = False
    ) -> None:
        self.runner, self.fun, self.args, self.fills = runner, fun, tuple(args), fills

    def difference(self, t: float, y: Any, yp: Any) -> Difference | None:
        """Compare at a point, within the rounding errors that are to be expected."""
        n = self.runner.n
        y, yp = np.array(y[:n], float), np.array(yp[:n], float)
        values = self.runner.values(t, y, yp)
        try:
            expected = _call(self.fun, self.runner.table.n_values, t, y, yp, self.args, self.fills)
        except Exception as error:             # templates can only return NaN there
            finite = np.isfinite(values).all()
            return Difference(0, values[0], error=error) if finite else None
        if (values == expected).all():
            return None
        row = _first_wrong(expected, values, self._rounding(t, y, yp, expected))
        return None if row is None else Difference(row, values[row], expected[row])

    def _rounding(
        self, t: float, y: np.ndarray, yp: np.ndarray, values: np.ndarray
    ) -> np.ndarray:
        """Estimate the rounding errors of the values as those of `_ROUNDINGS` errors in each input.

        Those of a sum grow with the square root of the number of its terms.
        """
        table = self.runner.table
        runner = self.runner.twin(self.runner.args)
        fy, fyp = np.zeros(runner.reach), np.zeros(runner.reach)
        runner.entries_into(t, y, yp, fy, fyp)
        total, count = np.abs(values), np.zeros(len(values))
        for (rows, columns), entries, x in ((table.fy, fy, y), (table.fyp, fyp, yp)):
            terms = np.abs(entries[: len(rows)] * x[columns])
            total += np.bincount(rows, terms, len(values))
            count += np.bincount(rows, minlength=len(values))
        return (_ROUNDINGS + np.sqrt(count)) * np.finfo(float).eps * (total + 1e-290)


def verify_arrays(
    found: ArrayTrace,
    fun: Callable[..., Any],
    t: float,
    y: np.ndarray,
    yp: np.ndarray,
    args: Sequence[Any] = (),
    fills: bool = False,
    hidden: Sequence[float] | np.ndarray = (),
) -> None:
    """Compare templates with their function at the start and around it; see `verify`."""
    given, own = found.args.flatten(args, hidden), found.args.own
    runner = Rows(found.table, given)
    points = _points(t, np.asarray(y, float), np.asarray(yp, float), given, own)
    for k, (time, unknowns, slopes, inputs) in enumerate(points):
        passed = found.args.replace(args, inputs.tolist().__getitem__)
        runner.set_args(inputs)
        pair = ArrayPair(runner, fun, passed, fills)
        difference = pair.difference(time, unknowns, slopes)
        if k == 0:
            first, again = (_call(fun, found.table.n_values, time, unknowns, slopes, passed, fills)
                            for _ in range(2))  # fmt: skip
            if not np.array_equal(first, again, equal_nan=True):
                raise TraceFailure("the function gives different values when called again")
        if difference is not None and (k == 0 or difference.error is None):
            raise TraceFailure(
                f"equation {difference.row} was traced to something else: {difference.value!r} "
                f"instead of {difference.expected!r}"
            )


class Pair:
    """The program of a run and the function from which it was traced, compared at single points.

    Parameters
    ----------
    traced : Trace
        The trace of the function.
    runner : Machine, Native or None
        Runs the program; None: a `Plain` does, instruction by instruction.
    fun : callable
        The function that was traced.
    args : sequence
        The user's arguments.
    fills : bool
        As passed to `trace`.
    hidden : sequence of float
        As passed to `verify`.

    Examples
    --------
    >>> from tether.trace import trace
    >>> from tether.trace.backend import prepare
    >>> from tether.trace.verify import Pair
    >>> factor = [2.0]
    >>> def fun(t, y, yp):
    ...     return [yp[0] + factor[0] * y[0]]
    >>> traced = trace(fun, 1)
    >>> pair = Pair(traced, prepare(traced.program()).new(), fun)
    >>> pair.difference(0.0, [1.0], [0.0]) is None
    True
    >>> factor[0] = 3.0
    >>> pair.difference(0.0, [1.0], [0.0])
    Difference(row=0, value=np.float64(2.0), expected=np.float64(3.0), error=None)
    """

    def __init__(
        self, traced: Trace, runner: Any, fun: Callable[..., Any], args: Sequence[Any] = (),
        fills: bool = False, hidden: Sequence[float] | np.ndarray = (),
    ) -> None:
        self.traced, self.runner = traced, runner
        self.fun, self.args, self.fills, self.hidden = fun, tuple(args), fills, hidden

    def difference(self, t: float, y: Any, yp: Any) -> Difference | None:
        """Compare at a point, within the rounding errors that the program can make.

        The function gets copies; `y` and `yp` may have further unknowns at the end.
        """
        n, size = self.traced.n, len(self.traced.outputs)
        y, yp = np.array(y[:n], float), np.array(yp[:n], float)
        inputs = self.traced.args.flatten(self.args, self.hidden)
        runner = self.runner or Plain(self.traced.reference, inputs)
        values = runner.values(t, y, yp)
        try:
            expected = _call(self.fun, size, t, y, yp, self.args, self.fills)
        except Exception as error:             # a program can only return NaN there
            finite = np.isfinite(values).all()
            return Difference(0, values[0], error=error) if finite else None
        if (values == expected).all():
            return None
        _, errors = Plain(self.traced.reference, inputs).values_with_errors(t, y, yp)
        row = _first_wrong(expected, values, errors)
        return None if row is None else Difference(row, values[row], expected[row])
