"""When arithmetic with Python's numbers raises an exception, as conditions on traced numbers.

Each possible exception of an operation is a triple: its type, the node of the condition under which
it is raised, and a function that raises it.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from tether.trace import opcodes as op
from tether.trace import special
from tether.trace.graph import Graph
from tether.trace.guards import guards
from tether.trace.kinds import PY_FLOAT, PYTHON, UNCERTAIN, origin_of
from tether.trace.refusal import refuse

__all__ = ["check", "check_math", "never_raises", "of_division", "of_power", "of_remainder"]

Errors = Iterator[tuple[type[Exception], int, Callable[[], Any]]]

_LARGEST = sys.float_info.max


class _Decides(Protocol):
    graph: Graph

    def decide(self, condition: int) -> bool:
        """Decide a branch in this run."""


def check(recorder: _Decides, kind: int, errors: Errors) -> None:
    """Raise the exception that an operation raises on this path, if a handler may catch it.

    Parameters
    ----------
    recorder : BranchRecorder
        Decides the conditions.
    kind : int
        Kind of the result: NumPy numbers raise nothing.
    errors : iterator
        Exceptions of the operation, in the order in which it checks for them.
    """
    origin = origin_of(kind)
    if origin != PYTHON and origin not in UNCERTAIN:
        return
    for error, condition, sample in errors:
        if not guards.catch(error) or _is_false(recorder.graph, condition):
            continue
        if origin in UNCERTAIN:
            refuse(f"may raise {error.__name__} or not: the number may be Python's or NumPy's")
        if recorder.decide(condition):
            guards.raised_by(sample)


def _is_false(graph: Graph, condition: int) -> bool:
    return graph.is_constant(condition) and graph.value(condition) == 0.0


# --- conditions -----------------------------------------------------------------------------------


def _less(graph: Graph, a: int, b: int) -> int:
    return graph.binary(op.LT, a, b)


def _size(graph: Graph, x: int) -> int:
    return graph.unary(op.ABS, x)


def _is_finite(graph: Graph, *nodes: int) -> int:
    """Node of the condition that expressions are finite: infinite operands do not overflow."""
    limit = graph.constant(_LARGEST)
    found = [graph.binary(op.LE, _size(graph, x), limit) for x in nodes if not graph.is_total(x)]
    return functools.reduce(graph.logical_and, found, graph.constant(1.0))


def _is_infinite(graph: Graph, x: int) -> int:
    if graph.is_total(x):
        return graph.zero
    return _less(graph, graph.constant(_LARGEST), _size(graph, x))


def _is_whole(graph: Graph, x: int) -> int:
    return graph.binary(op.EQ, graph.unary(op.FLOOR, x), x)


def _overflows(graph: Graph, result: int, *operands: int) -> int:
    large = _less(graph, graph.constant(_LARGEST), _size(graph, result))
    return graph.logical_and(large, _is_finite(graph, *operands))


def _last_without_error(fails: Callable[[float], bool], good: float, bad: float) -> float:
    """Find by bisection the last float, going from `good` to `bad`, that does not fail."""
    while True:
        middle = good + (bad - good) / 2
        if middle in (good, bad):
            return good
        if fails(middle):
            bad = middle
        else:
            good = middle


def _raises(function: Callable[..., Any], *args: Any) -> bool:
    try:
        function(*args)
    except ArithmeticError:
        return True
    return False


# --- operators ------------------------------------------------------------------------------------


def of_division(graph: Graph, a: int, b: int) -> Errors:
    """List the exceptions of a / b."""
    yield ZeroDivisionError, graph.binary(op.EQ, b, graph.zero), lambda: 1.0 / 0.0


def of_remainder(graph: Graph, a: int, b: int) -> Errors:
    """List the exceptions of a % b and a // b."""
    yield ZeroDivisionError, graph.binary(op.EQ, b, graph.zero), lambda: 1.0 % 0.0


def of_power(graph: Graph, a: int, b: int) -> Errors:
    """List the exceptions of a ** b."""
    is_zero, is_negative = graph.binary(op.EQ, a, graph.zero), _less(graph, b, graph.zero)
    yield ZeroDivisionError, graph.logical_and(is_zero, is_negative), lambda: 0.0**-1.0
    yield OverflowError, _power_overflows(graph, a, b), lambda: 10.0**400.0


def _power_overflows(graph: Graph, a: int, b: int) -> int:
    """Node of the condition that a ** b overflows: a bound on one operand if the other is fixed."""
    if graph.is_constant(b):
        return _base_overflows(graph, a, float(graph.value(b)))
    if graph.is_constant(a) and graph.value(a) > 0.0:
        base = float(graph.value(a))
        if base == 1.0:
            return graph.zero
        sign = 1.0 if base > 1.0 else -1.0
        limit = _limit_of_exponent(base, sign)
        large = _less(graph, graph.constant(limit), b if sign > 0.0 else graph.neg(b))
        return graph.logical_and(large, _is_finite(graph, b))
    return graph.logical_and(
        _overflows(graph, graph.pow(a, b), a, b), graph.binary(op.NE, a, graph.zero)
    )


def _base_overflows(graph: Graph, a: int, exponent: float) -> int:
    if 0.0 <= exponent <= 1.0 or not math.isfinite(exponent):
        return graph.zero
    limit, size = graph.constant(_limit_of_base(exponent)), _size(graph, a)
    if exponent > 0.0:
        return graph.logical_and(_less(graph, limit, size), _is_finite(graph, a))
    return graph.logical_and(_less(graph, size, limit), graph.binary(op.NE, a, graph.zero))


@functools.lru_cache(256)
def _limit_of_base(exponent: float) -> float:
    smallest = math.ulp(0.0)
    if exponent > 0.0:
        return _last_without_error(lambda a: _raises(pow, a, exponent), 1.0, _LARGEST)
    if not _raises(pow, smallest, exponent):
        return 0.0
    return _last_without_error(lambda a: _raises(pow, a, exponent), 1.0, smallest)


@functools.lru_cache(256)
def _limit_of_exponent(base: float, sign: float) -> float:
    if not _raises(pow, base, sign * 1e300):
        return _LARGEST
    return _last_without_error(lambda b: _raises(pow, base, sign * b), 0.0, 1e300)


# --- functions of math ----------------------------------------------------------------------------

_NEVER_RAISING_TEXT = """
    fabs asinh atan atan2 tanh erf erfc cbrt copysign degrees radians hypot dist prod
    isnan isinf isfinite
"""
_NEVER_RAISING = frozenset(_NEVER_RAISING_TEXT.split())
# Functions that overflow, and whether they do so for negative arguments too.
_OVERFLOWING = {"exp": False, "expm1": False, "exp2": False, "sinh": True, "cosh": True}


def never_raises(name: str) -> bool:
    """Tell whether a function of `math` returns a result for all numbers."""
    return name in _NEVER_RAISING


def check_math(name: str, args: list[Any]) -> None:
    """Raise the exception that a function of `math` raises on this path, if a handler may catch it.

    At least one of the arguments is traced.
    """
    recorder = next(x.recorder for x in args if hasattr(x, "recorder"))
    graph = recorder.graph
    nodes = [x.node if hasattr(x, "recorder") else graph.constant(float(x)) for x in args]
    if name in _OVERFLOWING:
        check(recorder, PY_FLOAT, _of_overflowing(graph, name, *nodes))
    elif name in _OF_MATH:
        check(recorder, PY_FLOAT, _OF_MATH[name](graph, *nodes))
    else:
        refuse(f"math.{name} in a try is not known to tracing")


def _of_overflowing(graph: Graph, name: str, x: int) -> Errors:
    function = getattr(math, name)
    limit = _limit_of(name)
    large = _less(graph, graph.constant(limit), _size(graph, x) if _OVERFLOWING[name] else x)
    yield OverflowError, graph.logical_and(large, _is_finite(graph, x)), lambda: function(2000.0)


@functools.lru_cache(16)
def _limit_of(name: str, good: float = 0.0, bad: float = 2000.0) -> float:
    return _last_without_error(functools.partial(_raises, getattr(math, name)), good, bad)


def _outside(
    function: Callable[[float], float], sample: float, low: float, is_open: bool = False,
    high: float | None = None,
) -> Callable[[Graph, int], Errors]:
    """Exceptions of a function that is defined above `low`, or between `low` and `high`."""

    def errors(graph: Graph, x: int) -> Errors:
        code = op.LE if is_open else op.LT
        condition = graph.binary(code, x, graph.constant(low))
        if high is not None:
            above = graph.binary(code, graph.constant(high), x)
            condition = graph.logical_or(condition, above)
        yield ValueError, condition, lambda: function(sample)

    return errors


def _of_periodic(function: Callable[[float], float]) -> Callable[[Graph, int], Errors]:
    def errors(graph: Graph, x: int) -> Errors:
        yield ValueError, _is_infinite(graph, x), lambda: function(math.inf)

    return errors


def _of_rounding(function: Callable[[float], int]) -> Callable[[Graph, int], Errors]:
    def errors(graph: Graph, x: int) -> Errors:
        if not graph.is_total(x):
            yield ValueError, graph.binary(op.NE, x, x), lambda: function(math.nan)
            yield OverflowError, _is_infinite(graph, x), lambda: function(math.inf)

    return errors


def _of_log(graph: Graph, x: int, base: int | None = None) -> Errors:
    yield ValueError, graph.binary(op.LE, x, graph.zero), lambda: math.log(-1.0)
    if base is not None:
        yield ValueError, graph.binary(op.LE, base, graph.zero), lambda: math.log(-1.0)
        one = graph.binary(op.EQ, base, graph.constant(1.0))
        yield ZeroDivisionError, one, lambda: math.log(2.0, 1.0)


def _of_fmod(graph: Graph, x: int, y: int) -> Errors:
    by_zero = graph.binary(op.EQ, y, graph.zero)
    yield ValueError, graph.logical_or(by_zero, _is_infinite(graph, x)), lambda: math.fmod(1.0, 0.0)


def _of_math_pow(graph: Graph, a: int, b: int) -> Errors:
    by_zero = graph.logical_and(graph.binary(op.EQ, a, graph.zero), _less(graph, b, graph.zero))
    yield ValueError, by_zero, lambda: math.pow(0.0, -1.0)
    root = graph.logical_and(_less(graph, a, graph.zero), graph.logical_not(_is_whole(graph, b)))
    yield ValueError, graph.logical_and(root, _is_finite(graph, a, b)), lambda: math.pow(-1.0, 0.5)
    yield OverflowError, _power_overflows(graph, a, b), lambda: math.pow(10.0, 400.0)


def _of_poles(graph: Graph, x: int, function: Callable[[float], float]) -> Errors:
    pole = graph.logical_and(graph.binary(op.LE, x, graph.zero), _is_whole(graph, x))
    yield ValueError, pole, lambda: function(0.0)


def _of_gamma(graph: Graph, x: int) -> Errors:
    yield from _of_poles(graph, x, math.gamma)
    result = graph.special(x, special.number_of("gamma", 0.0))
    yield OverflowError, _overflows(graph, result, x), lambda: math.gamma(1e3)


def _of_lgamma(graph: Graph, x: int) -> Errors:
    yield from _of_poles(graph, x, math.lgamma)
    limit = graph.constant(_limit_of("lgamma", 1.0, _LARGEST))
    large = graph.logical_and(_less(graph, limit, x), _is_finite(graph, x))
    yield OverflowError, large, lambda: math.lgamma(_LARGEST)


_OF_MATH: dict[str, Callable[..., Errors]] = {
    "sqrt": _outside(math.sqrt, -1.0, 0.0),
    "log": _of_log,
    "log2": _outside(math.log2, -1.0, 0.0, is_open=True),
    "log10": _outside(math.log10, -1.0, 0.0, is_open=True),
    "log1p": _outside(math.log1p, -2.0, -1.0, is_open=True),
    "asin": _outside(math.asin, 2.0, -1.0, high=1.0),
    "acos": _outside(math.acos, 2.0, -1.0, high=1.0),
    "acosh": _outside(math.acosh, 0.0, 1.0),
    "atanh": _outside(math.atanh, 2.0, -1.0, is_open=True, high=1.0),
    **{name: _of_periodic(getattr(math, name)) for name in ("sin", "cos", "tan")},
    **{name: _of_rounding(getattr(math, name)) for name in ("floor", "ceil", "trunc")},
    "fmod": _of_fmod,
    "gamma": _of_gamma,
    "lgamma": _of_lgamma,
    "pow": _of_math_pow,
}
