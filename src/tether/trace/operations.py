"""The table of operations: everything that is known about each of them, in one place.

A new operation is one entry here, its number in `tether._core.opcodes` (and in the `.pxd` files
there and here), and its lines in `machine`, `plain` and `row_operations` of `tether._core`.
Everything else reads this table: graphs fold constants by `value`, `derive.py` differentiates by
`slopes`, `interpret.py` runs by `array`, `compile_c.py` writes `c`, and `formula.py` writes `infix`
or the name.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tether.trace import opcodes as op
from tether.trace import special

__all__ = ["ARITY", "NAMES", "OPERATIONS", "Operation"]

# Precedence of the operations in a formula, as in Python.
OR, AND, NOT, COMPARE, SUM, PRODUCT, SIGN, POWER, ATOM = range(9)

Slopes = tuple[int, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Operation:
    """What is known about one operation.

    Attributes
    ----------
    code : int
        Its opcode.
    arity : int
        How many of a, b, c are operands.
    value : callable or None
        Its value for numbers, to fold constants; it may raise. None: it is not folded.
    array : callable or None
        Its value for arrays, which may be complex with a tiny imaginary part that carries a
        derivative. None: the interpreter has a line of its own for it.
    c : str
        Its expression in C, with the operands in braces.
    slopes : callable or None
        ``(graph, node, a, b)``: derivatives of a node by its operands. None: they are zero wherever
        they exist, or it chooses one of its operands (`derive.choice`).
    total : bool
        Whether results are finite for all finite operands, apart from overflow.
    parity : int
        1 for even functions, -1 for odd ones.
    turns : bool
        Whether it may have a kink or a jump.
    infix, binds : str, int
        The symbol between its operands in a formula, empty for a function call, and its precedence.
    numpy : str
        Its name in NumPy, if it is a function of one number.
    """

    code: int
    arity: int = 1
    value: Callable[..., float] | None = None
    array: Callable[..., Any] | None = None
    c: str = ""
    slopes: Callable[..., Slopes] | None = None
    total: bool = False
    parity: int = 0
    turns: bool = False
    infix: str = ""
    binds: int = ATOM
    numpy: str = ""


# --- derivatives: rules for a node v with operands a and b, in a graph g ------------------------


def _square(g: Any, a: int) -> int:
    return g.mul(a, a)


def _one_over_root(g: Any, radicand: int) -> int:
    return g.div(g.one, g.unary(op.SQRT, radicand))


def _of_quotient(g: Any, v: int, a: int, b: int) -> Slopes:
    inverse = g.div(g.one, b)
    return inverse, g.neg(g.mul(v, inverse))


def _of_power(g: Any, v: int, a: int, b: int) -> Slopes:
    slope = g.mul(b, g.pow(a, g.sub(b, g.one)))
    return slope, g.mul(v, g.unary(op.LOG, a)) if g.level[b] else g.zero


def _of_integer_power(g: Any, v: int, a: int, k: int) -> Slopes:
    return (g.mul(g.constant(float(k)), g.powi(a, k - 1)),)


def _of_angle(g: Any, v: int, a: int, b: int) -> Slopes:
    square = g.add(_square(g, a), _square(g, b))
    return g.div(b, square), g.neg(g.div(a, square))


def _of_remainder(g: Any, v: int, a: int, b: int) -> Slopes:
    return g.one, g.neg(g.unary(op.FLOOR, g.div(a, b)))


def _of_error_function(g: Any, v: int, a: int) -> Slopes:
    factor = g.constant(2 / math.sqrt(math.pi))
    return (g.mul(factor, g.unary(op.EXP, g.neg(_square(g, a)))),)


def _of_opaque(g: Any, v: int, a: int, number: int) -> Slopes:
    return (g.opaque(g.opaques[number].derivative(), a),)


def _of_table(g: Any, v: int, a: int, number: int) -> Slopes:
    return (g.table(g.tables[number].derivative(), a),)


# --- values -------------------------------------------------------------------------------------


def _sign(x: float) -> float:
    return x if x != x or x == 0 else math.copysign(1.0, x)


def _compared(compare: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda x, y: compare(np.real(x), np.real(y)) * 1.0


def _chosen(compare: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def choose(x: Any, y: Any) -> Any:
        return np.where(compare(np.real(x), np.real(y)) | np.isnan(x), x, y)[()]

    return choose


def _angle(y: Any, x: Any) -> Any:
    angle = np.arctan2(np.real(y), np.real(x))
    if not (np.iscomplexobj(x) or np.iscomplexobj(y)):
        return angle
    slope = np.real(x) * np.imag(y) - np.real(y) * np.imag(x)
    return angle + 1j * slope / (np.real(x) ** 2 + np.real(y) ** 2)


def _length(x: Any, y: Any) -> Any:
    length = np.hypot(np.real(x), np.real(y))
    if not (np.iscomplexobj(x) or np.iscomplexobj(y)):
        return length
    return length + 1j * (np.real(x) * np.imag(x) + np.real(y) * np.imag(y)) / length


def _remainder(x: Any, y: Any) -> Any:
    if not np.iscomplexobj(x):
        return np.mod(x, y)
    return np.mod(np.real(x), np.real(y)) + 1j * np.imag(x)


def _size(x: Any) -> Any:
    return x * np.sign(np.real(x)) if np.iscomplexobj(x) else np.abs(x)


def _error_function(x: Any) -> Any:
    from scipy.special import erf  # late, to save time: it costs more than the rest

    return erf(x)


# --- the table ----------------------------------------------------------------------------------


def _comparison(
    code: int, symbol: str, value: Callable[..., float], compare: Callable[..., Any]
) -> Operation:
    return Operation(
        code=code, arity=2, value=value, array=_compared(compare), c=f"{{a}} {symbol} {{b}}",
        total=True, turns=True, infix=f" {symbol} ", binds=COMPARE,
    )


def _function(code: int, numpy: str, slopes: Callable[..., Slopes], **more: Any) -> Operation:
    """Make the entry of a function of one number that Python, NumPy and C all have."""
    name = NAMES[code].lower()
    return Operation(
        code=code, value=getattr(math, name), array=getattr(np, numpy), c=name + "({a})",
        slopes=slopes, numpy=numpy, **more,
    )


NAMES = {
    number: name
    for name, number in list(vars(op).items())
    if name.isupper() and isinstance(number, int)
}

_TABLE = (
    Operation(
        code=op.ADD, arity=2, value=lambda x, y: x + y, array=lambda x, y: x + y, c="{a} + {b}",
        slopes=lambda g, v, a, b: (g.one, g.one), total=True, infix=" + ", binds=SUM,
    ),
    Operation(
        code=op.SUB, arity=2, value=lambda x, y: x - y, array=lambda x, y: x - y, c="{a} - {b}",
        slopes=lambda g, v, a, b: (g.one, g.constant(-1.0)), total=True,
        infix=" - ", binds=SUM,
    ),
    Operation(
        code=op.MUL, arity=2, value=lambda x, y: x * y, array=lambda x, y: x * y, c="{a} * {b}",
        slopes=lambda g, v, a, b: (b, a), total=True, infix="*", binds=PRODUCT,
    ),
    Operation(
        code=op.DIV, arity=2, value=lambda x, y: x / y, array=np.divide, c="{a} / {b}",
        slopes=_of_quotient, total=True, infix="/", binds=PRODUCT,
    ),
    Operation(
        code=op.NEG, array=lambda x: -x, c="-{a}", slopes=lambda g, v, a: (g.constant(-1.0),),
        total=True,
    ),
    Operation(
        code=op.POW, arity=2, value=math.pow, array=np.power, c="pow({a}, {b})",
        slopes=_of_power,
    ),
    # b is the integer exponent; the C text depends on it
    Operation(code=op.POWI, value=lambda x, k: x**k, slopes=_of_integer_power, total=True),
    _function(op.SQRT, "sqrt", lambda g, v, a: (g.div(g.constant(0.5), v),)),
    _function(op.EXP, "exp", lambda g, v, a: (v,)),
    _function(op.LOG, "log", lambda g, v, a: (g.div(g.one, a),)),
    _function(op.SIN, "sin", lambda g, v, a: (g.unary(op.COS, a),), total=True, parity=-1),
    _function(op.COS, "cos", lambda g, v, a: (g.neg(g.unary(op.SIN, a)),), total=True, parity=1),
    _function(
        op.TAN, "tan", lambda g, v, a: (g.add(_square(g, v), g.one),), total=True, parity=-1
    ),
    _function(
        op.ASIN, "arcsin", lambda g, v, a: (_one_over_root(g, g.sub(g.one, _square(g, a))),),
        parity=-1,
    ),
    _function(
        op.ACOS, "arccos",
        lambda g, v, a: (g.neg(_one_over_root(g, g.sub(g.one, _square(g, a)))),),
    ),
    _function(
        op.ATAN, "arctan", lambda g, v, a: (g.div(g.one, g.add(_square(g, a), g.one)),),
        total=True, parity=-1,
    ),
    _function(op.SINH, "sinh", lambda g, v, a: (g.unary(op.COSH, a),), parity=-1),
    _function(op.COSH, "cosh", lambda g, v, a: (g.unary(op.SINH, a),), parity=1),
    _function(
        op.TANH, "tanh", lambda g, v, a: (g.sub(g.one, _square(g, v)),), total=True, parity=-1
    ),
    _function(
        op.ASINH, "arcsinh", lambda g, v, a: (_one_over_root(g, g.add(_square(g, a), g.one)),),
        total=True, parity=-1,
    ),
    _function(
        op.ACOSH, "arccosh", lambda g, v, a: (_one_over_root(g, g.sub(_square(g, a), g.one)),)
    ),
    _function(
        op.ATANH, "arctanh", lambda g, v, a: (g.div(g.one, g.sub(g.one, _square(g, a))),),
        parity=-1,
    ),
    Operation(
        code=op.ATAN2, arity=2, value=math.atan2, array=_angle, c="atan2({a}, {b})",
        slopes=_of_angle, total=True,
    ),
    Operation(
        code=op.HYPOT, arity=2, value=math.hypot, array=_length, c="hypot({a}, {b})",
        slopes=lambda g, v, a, b: (g.div(a, v), g.div(b, v)), total=True,
    ),
    Operation(
        code=op.ABS, value=abs, array=_size, c="fabs({a})",
        slopes=lambda g, v, a: (g.unary(op.SIGN, a),), total=True, parity=1, turns=True,
        numpy="absolute",
    ),
    Operation(
        code=op.SIGN, value=_sign, array=lambda x: np.sign(np.real(x)), c="sign({a})",
        total=True, parity=-1, turns=True, numpy="sign",
    ),
    Operation(
        code=op.FLOOR, value=lambda x: float(math.floor(x)), array=lambda x: np.floor(np.real(x)),
        c="floor({a})", total=True, turns=True, numpy="floor",
    ),
    Operation(
        code=op.CEIL, value=lambda x: float(math.ceil(x)), array=lambda x: np.ceil(np.real(x)),
        c="ceil({a})", total=True, turns=True, numpy="ceil",
    ),
    # if the first operand is NaN it is the result, as in NumPy
    Operation(
        code=op.MIN, arity=2, value=lambda x, y: x if x <= y or x != x else y,
        array=_chosen(np.less_equal), c="smaller({a}, {b})", total=True, turns=True,
    ),
    Operation(
        code=op.MAX, arity=2, value=lambda x, y: x if x >= y or x != x else y,
        array=_chosen(np.greater_equal), c="larger({a}, {b})", total=True, turns=True,
    ),
    _function(op.LOG1P, "log1p", lambda g, v, a: (g.div(g.one, g.add(a, g.one)),)),
    _function(op.EXPM1, "expm1", lambda g, v, a: (g.add(v, g.one),)),
    Operation(
        code=op.ERF, value=math.erf, array=_error_function, c="erf({a})",
        slopes=_of_error_function, total=True, parity=-1,
    ),
    _comparison(op.LT, "<", lambda x, y: float(x < y), np.less),
    _comparison(op.LE, "<=", lambda x, y: float(x <= y), np.less_equal),
    _comparison(op.EQ, "==", lambda x, y: float(x == y), np.equal),
    _comparison(op.NE, "!=", lambda x, y: float(x != y), np.not_equal),
    Operation(
        code=op.AND, arity=2, array=lambda x, y: np.logical_and(x, y) * 1.0,
        c="{a} != 0.0 && {b} != 0.0", total=True, infix=" and ", binds=AND,
    ),
    Operation(
        code=op.OR, arity=2, array=lambda x, y: np.logical_or(x, y) * 1.0,
        c="{a} != 0.0 || {b} != 0.0", total=True, infix=" or ", binds=OR,
    ),
    Operation(
        code=op.NOT, array=lambda x: np.logical_not(x) * 1.0, c="{a} == 0.0", total=True
    ),
    Operation(code=op.SELECT, arity=3, c="{a} != 0.0 ? {b} : {c}", total=True),
    # the result has the sign of the divisor, as in Python
    Operation(
        code=op.MOD, arity=2, value=lambda x, y: x % y, array=_remainder, c="modulo({a}, {b})",
        slopes=_of_remainder, total=True, turns=True, infix=" % ", binds=PRODUCT,
    ),
    # b is the number of the piecewise polynomial, in a program its place in the tables
    Operation(code=op.TABLE, c="piecewise(w + {b}, {a})", slopes=_of_table, total=True),
    # b is the number of the special function; it has no C expression
    Operation(
        code=op.SPECIAL, value=lambda x, number: float(special.value_of(number, x)),
        slopes=special.slopes_of,
    ),
    # a call of a Python function; never in a program of the core
    Operation(code=op.OPAQUE, slopes=_of_opaque),
)

OPERATIONS = {operation.code: operation for operation in _TABLE}
ARITY = dict.fromkeys(op.LEAVES, 0) | {code: o.arity for code, o in OPERATIONS.items()}
