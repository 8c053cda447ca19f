"""Scalar: what stands in for a number while a function is traced."""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable
from types import CodeType
from typing import Any, NoReturn, Protocol

import numpy as np

from tether.trace import opcodes as op
from tether.trace.graph import Graph


class Untraceable(BaseException):
    """The function did something that an expression cannot express.

    Not an `Exception`, lest a handler of the user's swallows it.

    Attributes
    ----------
    place : tuple or None
        Code object and line that are to blame, where the traceback does not tell.
    """

    place: tuple[CodeType, int] | None = None


class Recorder(Protocol):
    """What scalars write to."""

    graph: Graph

    def decide(self, condition: int) -> bool:
        """Say which way a branch goes on this run."""


class _Refusals(threading.local):
    last: str | None = None


# The reason for which tracing was given up in this thread, should a handler swallow the exception.
refusals = _Refusals()


def refuse(reason: str) -> NoReturn:
    """Give up tracing; the line it happened at is added later."""
    refusals.last = reason
    raise Untraceable(reason)


NUMBERS = (float, int, np.floating, np.integer, np.bool_)


class Scalar:
    """A node of a graph that behaves like a float.

    Arithmetic makes new nodes. Asking for the truth of a comparison makes the recorder decide,
    and asking for the value itself ends the tracing.
    """

    __slots__ = ("node", "recorder")
    __hash__ = None  # type: ignore[assignment]

    shape: tuple[()] = ()
    ndim = 0
    size = 1
    imag = 0.0

    def __init__(self, recorder: Recorder, node: int) -> None:
        self.recorder = recorder
        self.node = node

    def __repr__(self) -> str:
        return "<traced number>"

    # --- arithmetic -----------------------------------------------------------------------

    def __neg__(self) -> Scalar:
        return Scalar(self.recorder, self.recorder.graph.neg(self.node))

    def __pos__(self) -> Scalar:
        return self

    def __abs__(self) -> Scalar:
        return apply(op.ABS, self)

    def __pow__(self, other: Any, modulus: None = None) -> Any:
        return _operate(Graph.pow, self, other)

    def __rpow__(self, other: Any) -> Any:
        return _operate(Graph.pow, other, self)

    def __floordiv__(self, other: Any) -> Any:
        return floor_divide(self, other) if _is_number(other) else NotImplemented

    def __rfloordiv__(self, other: Any) -> Any:
        return floor_divide(other, self) if _is_number(other) else NotImplemented

    def __divmod__(self, other: Any) -> Any:
        return (self // other, self % other) if _is_number(other) else NotImplemented

    def __rdivmod__(self, other: Any) -> Any:
        return (other // self, other % self) if _is_number(other) else NotImplemented

    def __floor__(self) -> Scalar:
        return apply(op.FLOOR, self)

    def __ceil__(self) -> Scalar:
        return apply(op.CEIL, self)

    def __trunc__(self) -> Scalar:
        return truncate(self)

    # --- logic ----------------------------------------------------------------------------

    def __bool__(self) -> bool:
        graph = self.recorder.graph
        return self.recorder.decide(truth(graph, self.node))

    def __invert__(self) -> Any:
        if self.recorder.graph.nodes[self.node][0] not in op.CONDITIONS:
            return NotImplemented
        return logical_not(self)

    # --- what needs a number --------------------------------------------------------------

    def _number(self) -> float:
        graph = self.recorder.graph
        if graph.is_constant(self.node):
            return graph.value(self.node)
        refuse("needs a number")

    def __float__(self) -> float:
        return self._number()

    def __int__(self) -> int:
        return int(self._number())

    def __index__(self) -> int:
        refuse("needs an integer")

    def __complex__(self) -> complex:
        return complex(self._number())

    def __round__(self, digits: int | None = None) -> float:
        return round(self._number(), digits)

    def __format__(self, spec: str) -> str:
        return format(self._number(), spec)

    # --- as NumPy's numbers ---------------------------------------------------------------

    @property
    def real(self) -> Scalar:
        """The number itself."""
        return self

    def conjugate(self) -> Scalar:
        """Give the number itself."""
        return self

    def item(self) -> Scalar:
        """Give the number itself."""
        return self

    copy = item

    def __copy__(self) -> Scalar:
        return self

    def __deepcopy__(self, memo: Any) -> Scalar:
        return self

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        from tether.trace.arrays import apply_ufunc

        return apply_ufunc(ufunc, method, inputs, options)

    def __array_function__(self, function: Any, types: Any, args: tuple, options: dict) -> Any:
        from tether.trace.arrays import apply_function

        return apply_function(function, args, options)


def _is_number(x: Any) -> bool:
    return isinstance(x, (Scalar, *NUMBERS))


def _operate(method: Callable[[Graph, int, int], int], x: Any, y: Any) -> Any:
    """Combine two numbers, at least one of them traced; leave the rest to their own operators."""
    if type(x) is Scalar:
        recorder = x.recorder
        if type(y) is Scalar:
            return Scalar(recorder, method(recorder.graph, x.node, y.node))
        if isinstance(y, NUMBERS):
            constant = recorder.graph.constant(float(y))
            return Scalar(recorder, method(recorder.graph, x.node, constant))
    elif isinstance(x, NUMBERS):
        recorder = y.recorder
        return Scalar(recorder, method(recorder.graph, recorder.graph.constant(float(x)), y.node))
    return NotImplemented


def _binary(code: int) -> Callable[[Graph, int, int], int]:
    return lambda graph, a, b: graph.binary(code, a, b)


def truth(graph: Graph, node: int) -> int:
    """Node of a condition: the node itself, or that it is not zero."""
    if graph.nodes[node][0] in op.CONDITIONS or graph.is_constant(node):
        return node
    return graph.binary(op.NE, node, graph.zero)


def _logic(method: Callable[[Graph, int, int], int]) -> Callable[[Graph, int, int], int]:
    return lambda graph, a, b: method(graph, truth(graph, a), truth(graph, b))


def _bitwise(method: Callable[[Graph, int, int], int]) -> Callable[[Scalar, Any], Any]:
    """Operator & or | of conditions; of numbers it is an error, as it is for floats."""

    def operate(self: Scalar, other: Any) -> Any:
        nodes = self.recorder.graph.nodes
        for x in (self, other):
            if isinstance(x, Scalar):
                code, value, _, _ = nodes[x.node]
                if code not in op.CONDITIONS and not (code == op.CONST and value in (0.0, 1.0)):
                    return NotImplemented
            elif not isinstance(x, (bool, np.bool_)):
                return NotImplemented
        return _operate(method, self, other)

    return operate


_ARITHMETIC = {
    "add": Graph.add,
    "sub": Graph.sub,
    "mul": Graph.mul,
    "truediv": Graph.div,
    "mod": _binary(op.MOD),
}
_COMPARISON = {
    "lt": _binary(op.LT),
    "le": _binary(op.LE),
    "eq": _binary(op.EQ),
    "ne": _binary(op.NE),
    "gt": lambda graph, a, b: graph.binary(op.LT, b, a),
    "ge": lambda graph, a, b: graph.binary(op.LE, b, a),
}
_BITWISE = {
    "and": _logic(Graph.logical_and),
    "or": _logic(Graph.logical_or),
    "xor": _logic(lambda graph, a, b: graph.binary(op.NE, a, b)),
}


def _add_operators() -> None:
    def forward(method: Callable[[Graph, int, int], int]) -> Callable[[Any, Any], Any]:
        return lambda self, other: _operate(method, self, other)

    def reflected(method: Callable[[Graph, int, int], int]) -> Callable[[Any, Any], Any]:
        return lambda self, other: _operate(method, other, self)

    for name, method in (_ARITHMETIC | _COMPARISON).items():
        setattr(Scalar, f"__{name}__", forward(method))
    for name, method in _ARITHMETIC.items():
        setattr(Scalar, f"__r{name}__", reflected(method))
    for name, method in _BITWISE.items():
        setattr(Scalar, f"__{name}__", _bitwise(method))
        setattr(Scalar, f"__r{name}__", _bitwise(method))


_add_operators()


# --- functions of numbers, traced or not ----------------------------------------------------


def apply(code: int, x: Scalar) -> Scalar:
    """Apply an operation of one operand."""
    return Scalar(x.recorder, x.recorder.graph.unary(code, x.node))


def combine(method: Callable[[Graph, int, int], int], x: Any, y: Any) -> Any:
    """Combine two numbers of which at least one is traced."""
    result = _operate(method, x, y)
    if result is NotImplemented:
        raise TypeError(f"unsupported operands: {type(x).__name__} and {type(y).__name__}")
    return result


def is_traced(*values: Any) -> bool:
    """Tell whether any of the numbers is traced."""
    return any(type(x) is Scalar for x in values)


def logical_not(x: Any) -> Any:
    """Negate a condition."""
    if not is_traced(x):
        return not x
    graph = x.recorder.graph
    return Scalar(x.recorder, graph.logical_not(truth(graph, x.node)))


def logical_and(x: Any, y: Any) -> Any:
    """Conjunction without short cut."""
    return combine(_BITWISE["and"], x, y) if is_traced(x, y) else bool(x) and bool(y)


def logical_or(x: Any, y: Any) -> Any:
    """Disjunction without short cut."""
    return combine(_BITWISE["or"], x, y) if is_traced(x, y) else bool(x) or bool(y)


def logical_xor(x: Any, y: Any) -> Any:
    """Say whether exactly one of two conditions holds."""
    return combine(_BITWISE["xor"], x, y) if is_traced(x, y) else bool(x) != bool(y)


def select(condition: Any, x: Any, y: Any) -> Any:
    """``x if condition else y`` as a node where the condition is traced."""
    if not is_traced(condition):
        return x if condition else y
    graph = condition.recorder.graph
    nodes = [v.node if is_traced(v) else graph.constant(v) for v in (x, y)]
    return Scalar(condition.recorder, graph.select(truth(graph, condition.node), *nodes))


def minimum(x: Any, y: Any) -> Any:
    """Smaller of two numbers."""
    return combine(_binary(op.MIN), x, y) if is_traced(x, y) else np.minimum(x, y)


def maximum(x: Any, y: Any) -> Any:
    """Larger of two numbers."""
    return combine(_binary(op.MAX), x, y) if is_traced(x, y) else np.maximum(x, y)


def arctan2(y: Any, x: Any) -> Any:
    """Angle of a point in the plane."""
    return combine(_binary(op.ATAN2), y, x) if is_traced(x, y) else np.arctan2(y, x)


def floor(x: Any) -> Any:
    """Largest whole number not above x."""
    return apply(op.FLOOR, x) if is_traced(x) else np.floor(x)


def truncate(x: Any) -> Any:
    """Round towards zero."""
    if not is_traced(x):
        return np.trunc(x)
    return select(x < 0.0, apply(op.CEIL, x), apply(op.FLOOR, x))


def floor_divide(x: Any, y: Any) -> Any:
    """Quotient rounded down, from the exact remainder as Python computes it."""
    if not is_traced(x, y):
        return operator.floordiv(x, y)
    return floor((x - x % y) / y + 0.5)


def compare(name: str) -> Callable[[Any, Any], Any]:
    """Comparison by the name of its operator."""
    plain, method = getattr(operator, name), _COMPARISON[name]
    return lambda x, y: combine(method, x, y) if is_traced(x, y) else plain(x, y)
