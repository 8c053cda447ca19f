"""Scalar: the symbol that stands for a number while a function is traced."""

from __future__ import annotations

import dis
import functools
import math
import operator
import sys
import types
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from tether.trace import numpy_protocol
from tether.trace import opcodes as op
from tether.trace.effects import text_of_traced
from tether.trace.graph import Graph
from tether.trace.guards import guards
from tether.trace.kinds import (
    ANY_FLOAT,
    BOOL,
    BOXED,
    FLOAT,
    INT,
    NUMPY,
    OF_TYPE,
    PROMOTED,
    PYTHON,
    UNCERTAIN,
    UNSURE,
    class_of,
    dtype_of,
    kind_of,
    origin_of,
)
from tether.trace.operators import (
    IF_SAFE,
    LOGICAL_AND,
    LOGICAL_OR,
    REFUSED,
    Operation,
    of_bits,
    of_comparisons,
    of_quotients,
    of_remainders,
    of_sums,
    table,
)
from tether.trace.raising import check, of_division, of_power, of_remainder
from tether.trace.refusal import refuse


class Recorder(Protocol):
    """The graph to which scalars add nodes, and the decisions of a run."""

    graph: Graph

    def decide(self, condition: int) -> bool:
        """Decide a branch in this run."""


NUMBERS = (float, int, np.floating, np.integer, np.bool_)
_LOOKING_UP = frozenset(dis.opmap[x] for x in ("LOAD_ATTR", "LOAD_METHOD", "MATCH_CLASS")
                        if x in dis.opmap)  # fmt: skip


@functools.lru_cache(256)
def _is_inside(module: str | None) -> bool:
    """Tell whether a module is part of the tracer or of NumPy."""
    name = module or ""
    return name.partition(".")[0] == "numpy" or name.startswith("tether.trace.")


def asked_from_inside() -> bool:
    """Tell whether the caller's caller is the tracer or NumPy, rather than a traced function."""
    return _is_inside(sys._getframe(2).f_globals.get("__name__"))


def _asks_by_name(frame: types.FrameType) -> bool:
    """Tell whether a traced function itself asks for an attribute, rather than NumPy's C code."""
    name = frame.f_globals.get("__name__") or ""
    if _is_inside(name) or name == "dataclasses":      # it only asks whether it is a container
        return False
    if name.partition(".")[0] in sys.stdlib_module_names and name != "__main__":
        return True
    return frame.f_code.co_code[frame.f_lasti] in _LOOKING_UP


class Scalar:
    """A node of a graph that behaves like a number of the given kind.

    Arithmetic makes new nodes. Asking for the truth of a comparison makes the recorder decide,
    and asking for the value itself ends the tracing.
    """

    __slots__ = ("kind", "node", "recorder")
    __hash__ = None  # type: ignore[assignment]

    shape: tuple[()] = ()
    ndim = 0
    size = 1

    def __init__(self, recorder: Recorder, node: int, kind: int = ANY_FLOAT) -> None:
        self.recorder = recorder
        self.node = node
        self.kind = kind

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """Type, for libraries that ask for it in this way; refused to traced functions."""
        if _asks_by_name(sys._getframe(1)):
            refuse("asks for the type of a traced number")
        return Scalar

    def __repr__(self) -> str:
        return text_of_traced("a traced number")

    def __str__(self) -> str:
        return text_of_traced("a traced number")

    def __format__(self, spec: str) -> str:
        return text_of_traced("a traced number")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or asked_from_inside():
            raise AttributeError(name)
        refuse(f"asks for {name} of a number, which is not known to tracing")

    # --- arithmetic -----------------------------------------------------------------------

    def __neg__(self) -> Scalar:
        kind = _signed(self, "changes the sign of")
        return Scalar(self.recorder, self.recorder.graph.neg(self.node), kind)

    def __pos__(self) -> Scalar:
        return Scalar(self.recorder, self.node, _signed(self, "puts a plus sign before"))

    def __abs__(self) -> Scalar:
        kind = self.kind
        if class_of(kind) == BOOL:
            kind = _signed(self, "takes the absolute value of")
        return Scalar(self.recorder, self.recorder.graph.unary(op.ABS, self.node), unboxed(kind))

    def __pow__(self, other: Any, modulus: None = None) -> Any:
        if modulus is not None:
            refuse("takes a power modulo something")
        return _operate(_POWER, self, other)

    def __rpow__(self, other: Any, modulus: None = None) -> Any:
        return _operate(_POWER, other, self)

    def __floordiv__(self, other: Any) -> Any:
        return floor_divide(self, other) if _is_number(other) else NotImplemented

    def __rfloordiv__(self, other: Any) -> Any:
        return floor_divide(other, self) if _is_number(other) else NotImplemented

    def __divmod__(self, other: Any) -> Any:
        return (self // other, self % other) if _is_number(other) else NotImplemented

    def __rdivmod__(self, other: Any) -> Any:
        return (other // self, other % self) if _is_number(other) else NotImplemented

    # --- logic ----------------------------------------------------------------------------

    def __bool__(self) -> bool:
        graph = self.recorder.graph
        return self.recorder.decide(truth(graph, self.node))

    def __invert__(self) -> Any:
        if class_of(self.kind) != BOOL or origin_of(self.kind) in UNCERTAIN:
            refuse("applies ~ to something other than a NumPy bool")
        if origin_of(self.kind) == PYTHON:  # an integer: -1 or -2
            return _operate(_ARITHMETIC["sub"], -1, self)
        return logical_not(self)

    # --- conversions that need a number ---------------------------------------------------

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
        refuse("makes a complex number of a traced number")

    def __round__(self, digits: int | None = None) -> float:
        refuse("rounds a traced number to decimals")

    def __trunc__(self) -> Scalar:
        refuse("makes an integer of a traced number")

    # --- members of NumPy numbers ---------------------------------------------------------

    @property
    def dtype(self) -> np.dtype:
        """Type of a NumPy number, hidden from NumPy itself."""
        if origin_of(self.kind) in (NUMPY, BOXED) and not asked_from_inside():
            return dtype_of(self.kind)
        raise AttributeError("dtype")

    def conjugate(self) -> Scalar:
        """Return the number itself."""
        if class_of(self.kind) != FLOAT:
            refuse("takes the real part of something other than a float")
        return Scalar(self.recorder, self.node, self.kind)

    real = property(conjugate)

    conj = copy = conjugate

    def item(self, *args: Any) -> Scalar:
        """Return the number as a Python number."""
        if origin_of(self.kind) in UNCERTAIN or args:
            refuse("calls item() of a number that may not have it")
        return Scalar(self.recorder, self.node, class_of(self.kind) + PYTHON)

    tolist = item

    def __copy__(self) -> Scalar:
        return self

    def __deepcopy__(self, memo: Any) -> Scalar:
        return self

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if method == "__call__" and not options and len(inputs) == 2:
            operation = _OF_UFUNC.get(ufunc.__name__)
            if operation is not None and all(map(_is_number, inputs)):
                return _operate(operation, *inputs)
        return numpy_protocol.answers["ufunc"](ufunc, method, inputs, options)

    def __array_function__(self, function: Any, types: Any, args: tuple, options: dict) -> Any:
        return numpy_protocol.answers["function"](function, args, options)


def unboxed(kind: int) -> int:
    """Kind of the result of an operation on a number of this kind."""
    return class_of(kind) + NUMPY if origin_of(kind) == BOXED else kind


def _signed(x: Scalar, what: str) -> int:
    """Kind of a number after an operation on its sign."""
    if class_of(x.kind) == BOOL:
        if origin_of(x.kind) != PYTHON:
            refuse(f"{what} a NumPy bool")
        return INT + PYTHON
    return unboxed(x.kind)


def _is_number(x: Any) -> bool:
    return type(x) is Scalar or kind_of(x) is not None


# --- operations ---------------------------------------------------------------------------

def _operate(operation: Operation, x: Any, y: Any) -> Any:
    """Combine two numbers, at least one of them traced; leave other operands to their operators."""
    if type(x) is Scalar:
        recorder, a, first = x.recorder, x.node, x.kind
        if type(y) is Scalar:
            b, second = y.node, y.kind
        else:
            kind = kind_of(y)
            if kind is None:
                return _operate_on_other(operation, x, y)
            b, second = recorder.graph.constant(float(y)), kind
    else:
        kind = kind_of(x)
        if kind is None:
            return _operate_on_other(operation, y, x, reflected=True)
        recorder, b, second = y.recorder, y.node, y.kind
        a, first = recorder.graph.constant(float(x)), kind
    kind = operation.kinds[first][second]
    graph = recorder.graph
    if operation.errors is not None and guards:
        check(recorder, PROMOTED[first][second], operation.errors(graph, a, b))
    if kind >= 0:
        return Scalar(recorder, operation.method(graph, a, b), kind)
    if kind == LOGICAL_OR:
        return Scalar(recorder, graph.logical_or(truth(graph, a), truth(graph, b)), BOOL + NUMPY)
    if kind == LOGICAL_AND:
        return Scalar(recorder, graph.logical_and(truth(graph, a), truth(graph, b)), BOOL + NUMPY)
    promoted = PROMOTED[first][second]
    if kind == IF_SAFE and _is_safe(operation, graph, b, promoted):
        return Scalar(recorder, operation.method(graph, a, b), promoted)
    refuse(f"{operation.name} of bools or integers is not known to tracing")


def _is_safe(operation: Operation, graph: Graph, b: int, promoted: int) -> bool:
    """Tell whether an operation on integers gives the same number as on floats."""
    if not graph.is_constant(b):
        return False
    value = graph.value(b)
    return value >= 0.0 if operation is _POWER else value != 0.0


def _operate_on_other(operation: Operation, x: Scalar, other: Any, reflected: bool = False) -> Any:
    """Combine a traced number with something that is not an ordinary number."""
    if isinstance(other, (np.float32, np.float16)):
        if class_of(x.kind) == FLOAT and origin_of(x.kind) in (NUMPY, BOXED):
            pair = (np.float64(other), x) if reflected else (x, np.float64(other))
            return _operate(operation, *pair)
        refuse(f"computes with a {type(other).__name__}")
    if isinstance(other, (np.generic, complex)):
        refuse(f"computes with a {type(other).__name__}")
    if operation.name in ("==", "!=") and isinstance(other, (list, tuple, int, float)):
        refuse(f"compares a traced number with a {type(other).__name__}")
    return NotImplemented


def binary(code: int) -> Callable[[Graph, int, int], int]:
    """Return the function that makes a node of an operation."""
    return lambda graph, a, b: graph.binary(code, a, b)


def truth(graph: Graph, node: int) -> int:
    """Node of a condition: the node itself, or the comparison of a number with zero."""
    if graph.nodes[node][0] in op.CONDITIONS or graph.is_constant(node):
        return node
    return graph.binary(op.NE, node, graph.zero)


def _logic(method: Callable[[Graph, int, int], int]) -> Callable[[Graph, int, int], int]:
    def operate(graph: Graph, a: int, b: int) -> int:
        return method(graph, _truth_value(graph, a), _truth_value(graph, b))

    return operate


def _truth_value(graph: Graph, node: int) -> int:
    """Node of a condition that is 0 or 1, even if it is a constant."""
    if graph.is_constant(node):
        return graph.constant(float(graph.value(node) != 0.0))
    return truth(graph, node)


_ARITHMETIC = {
    "add": Operation("+", Graph.add, table(of_sums(LOGICAL_OR))),
    "sub": Operation("-", Graph.minus, table(of_sums(REFUSED))),
    "mul": Operation("*", Graph.times, table(of_sums(LOGICAL_AND))),
    "truediv": Operation("/", Graph.over, table(of_quotients), of_division),
    "mod": Operation("%", binary(op.MOD), table(of_remainders), of_remainder),
}
_POWER = Operation("**", Graph.pow, table(of_remainders), of_power)
_COMPARISON = {
    name: Operation(sign, method, table(of_comparisons))
    for name, sign, method in (
        ("lt", "<", binary(op.LT)),
        ("le", "<=", binary(op.LE)),
        ("eq", "==", binary(op.EQ)),
        ("ne", "!=", binary(op.NE)),
        ("gt", ">", lambda graph, a, b: graph.binary(op.LT, b, a)),
        ("ge", ">=", lambda graph, a, b: graph.binary(op.LE, b, a)),
    )
}
_NODES_OF_LOGIC: dict[str, Callable[[Graph, int, int], int]] = {
    "and": _logic(Graph.logical_and),
    "or": _logic(Graph.logical_or),
    "xor": _logic(lambda graph, a, b: graph.binary(op.NE, a, b)),
}
_BITWISE = {
    name: Operation(sign, _NODES_OF_LOGIC[name], table(of_bits))
    for name, sign in (("and", "&"), ("or", "|"), ("xor", "^"))
}
# The same for all kinds of operands: np.logical_and, logical_or and logical_xor.
_LOGICAL = {
    name: Operation(f"logical_{name}", method, table(of_comparisons))
    for name, method in _NODES_OF_LOGIC.items()
}
# Operators under the names of the universal functions.
_OF_UFUNC = {
    "add": _ARITHMETIC["add"], "subtract": _ARITHMETIC["sub"], "multiply": _ARITHMETIC["mul"],
    "divide": _ARITHMETIC["truediv"], "remainder": _ARITHMETIC["mod"], "power": _POWER,
    "less": _COMPARISON["lt"],
    "less_equal": _COMPARISON["le"], "equal": _COMPARISON["eq"], "not_equal": _COMPARISON["ne"],
    "greater": _COMPARISON["gt"], "greater_equal": _COMPARISON["ge"],
}  # fmt: skip


def _add_operators() -> None:
    # A short way for ordinary numbers with an ordinary result; `_operate` handles all others.

    def forward(operation: Operation) -> Callable[[Any, Any], Any]:
        kinds, method, errors = operation.kinds, operation.method, operation.errors

        def operate(self: Scalar, other: Any) -> Any:
            if errors is not None and guards:
                return _operate(operation, self, other)
            recorder, cls = self.recorder, type(other)
            if cls is Scalar:
                kind = kinds[self.kind][other.kind]
                if kind >= 0:
                    return Scalar(recorder, method(recorder.graph, self.node, other.node), kind)
            elif cls in OF_TYPE:
                kind = kinds[self.kind][OF_TYPE[cls]]
                if kind >= 0:
                    graph = recorder.graph
                    return Scalar(recorder, method(graph, self.node, graph.constant(other)), kind)
            return _operate(operation, self, other)

        return operate

    def reflected(operation: Operation) -> Callable[[Any, Any], Any]:
        kinds, method, errors = operation.kinds, operation.method, operation.errors

        def operate(self: Scalar, other: Any) -> Any:
            if errors is not None and guards:
                return _operate(operation, other, self)
            cls = type(other)
            if cls in OF_TYPE:
                kind = kinds[OF_TYPE[cls]][self.kind]
                if kind >= 0:
                    recorder = self.recorder
                    graph = recorder.graph
                    return Scalar(recorder, method(graph, graph.constant(other), self.node), kind)
            return _operate(operation, other, self)

        return operate

    def in_place(operation: Operation) -> Callable[[Any, Any], Any]:
        def operate(self: Scalar, other: Any) -> Any:
            if origin_of(self.kind) in (BOXED, UNSURE):
                refuse("changes in place a value that may be an array with other names")
            return NotImplemented

        return operate

    for name, operation in (_ARITHMETIC | _COMPARISON | _BITWISE).items():
        setattr(Scalar, f"__{name}__", forward(operation))
    for name, operation in (_ARITHMETIC | _BITWISE).items():
        setattr(Scalar, f"__r{name}__", reflected(operation))
        setattr(Scalar, f"__i{name}__", in_place(operation))
    for name in ("pow", "floordiv"):
        setattr(Scalar, f"__i{name}__", in_place(_POWER))


_add_operators()


# --- functions of numbers, traced or not ----------------------------------------------------


def apply(code: int, x: Scalar) -> Scalar:
    """Apply a mathematical function of one operand."""
    node = x.recorder.graph.unary(code, x.node)
    return Scalar(x.recorder, node, FLOAT + origin_of(unboxed(x.kind)))


def combine(operation: Operation, x: Any, y: Any) -> Any:
    """Combine two numbers of which at least one is traced."""
    result = _operate(operation, x, y)
    if result is NotImplemented:
        raise TypeError(f"unsupported operands: {type(x).__name__} and {type(y).__name__}")
    return result


def of_kind(kind: int, x: Any) -> Any:
    """Give a traced number another kind; leave anything else."""
    return Scalar(x.recorder, x.node, kind) if type(x) is Scalar else x


def with_origin(origin: int, x: Any) -> Any:
    """Give a traced number another origin; leave anything else."""
    if type(x) is not Scalar or origin_of(x.kind) == origin:
        return x
    return Scalar(x.recorder, x.node, class_of(x.kind) + origin)


def is_traced(*values: Any) -> bool:
    """Tell whether any of the numbers is traced."""
    return Scalar in map(type, values)


def logical_not(x: Any) -> Any:
    """Negate a condition."""
    if not is_traced(x):
        return not x
    graph = x.recorder.graph
    node = graph.logical_not(truth(graph, x.node))
    return Scalar(x.recorder, node, BOOL + origin_of(unboxed(x.kind)))


def logical_and(x: Any, y: Any) -> Any:
    """Conjunction without short circuit."""
    return combine(_LOGICAL["and"], x, y) if is_traced(x, y) else bool(x) and bool(y)


def logical_or(x: Any, y: Any) -> Any:
    """Disjunction without short circuit."""
    return combine(_LOGICAL["or"], x, y) if is_traced(x, y) else bool(x) or bool(y)


def logical_xor(x: Any, y: Any) -> Any:
    """Tell whether exactly one of two conditions holds."""
    return combine(_LOGICAL["xor"], x, y) if is_traced(x, y) else bool(x) != bool(y)


def select(condition: Any, x: Any, y: Any) -> Any:
    """``x if condition else y``, as a node if the condition is traced."""
    if not is_traced(condition):
        return x if condition else y
    graph = condition.recorder.graph
    nodes = [v.node if is_traced(v) else graph.constant(v) for v in (x, y)]
    node = graph.select(truth(graph, condition.node), *nodes)
    return Scalar(condition.recorder, node, PROMOTED[kind_of_number(x)][kind_of_number(y)])


def kind_of_number(x: Any) -> int:
    """Kind of a number, traced or not."""
    kind = x.kind if type(x) is Scalar else kind_of(x)
    if kind is None:
        refuse(f"chooses a {type(x).__name__} by a traced condition")
    return kind


def floor(x: Any) -> Any:
    """Largest whole number not above x."""
    return apply(op.FLOOR, x) if is_traced(x) else np.floor(x)


def truncate(x: Any) -> Any:
    """Round towards zero."""
    if not is_traced(x):
        return np.trunc(x)
    return select(x < 0.0, apply(op.CEIL, x), apply(op.FLOOR, x))


def fmod(x: Any, y: Any) -> Any:
    """Remainder with the sign of x."""
    if not is_traced(x, y):
        return np.fmod(x, y)
    size = abs(x) % abs(y)
    return select(x < 0.0, -size, size)


def floor_divide(x: Any, y: Any) -> Any:
    """Quotient rounded down, from the exact remainder as Python and NumPy compute it."""
    if not is_traced(x, y):
        return operator.floordiv(x, y)
    remainder = combine(_ARITHMETIC["mod"], x, y)  # of the same kind as the quotient
    result = floor((x - remainder) / y + 0.5)
    if not is_traced(y) and y == 0:
        result = x / y
    elif is_traced(y) or math.isinf(y):
        result = select(abs(remainder) == math.inf, -1.0, result)  # y is infinite
        result = select(y == 0.0, x / y, result)
    return of_kind(remainder.kind, result)


def compare(name: str) -> Callable[[Any, Any], Any]:
    """Return the comparison with this name in `operator`."""
    plain, operation = getattr(operator, name), _COMPARISON[name]
    return lambda x, y: combine(operation, x, y) if is_traced(x, y) else plain(x, y)
