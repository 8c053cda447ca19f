"""Reference interpreter of programs, in NumPy: slow, plain, and also for complex numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tether.trace import opcodes as op
from tether.trace.emit import Program
from tether.trace.piecewise import evaluate_piecewise


def evaluate(program: Program, t: Any, y: Any, yp: Any, args: Any = ()) -> np.ndarray:
    """Run a program.

    Parameters
    ----------
    program : Program
        What to compute.
    t : float or array, shape (k,)
        Time, or one time per point.
    y, yp : array_like, shape (n,) or (n, k)
        Unknowns and their derivatives, for one point or for k of them. They may be complex:
        functions of an infinitesimal imaginary part then carry a derivative.
    args : array_like, shape (p,) or (p, k)
        Arguments.

    Returns
    -------
    ndarray, shape (outputs,) or (outputs, k)

    Examples
    --------
    >>> from tether.trace import evaluate, trace
    >>> program = trace(lambda t, y, yp: [yp[0] + y[0] ** 2], 1).program()
    >>> evaluate(program, 0.0, [3.0], [1.0])
    array([10.])
    """
    slots = list(program.constants)
    slots += [t, *np.asarray(y), *np.asarray(yp), *np.asarray(args, dtype=float)]
    with np.errstate(all="ignore"):
        for code, a, b, c in instructions(program):
            if code == op.POWI:
                slots.append(slots[a] ** b)
            elif code == op.OPAQUE:
                slots.append(np.vectorize(program.opaques[b], otypes=[float])(slots[a]))
            elif code == op.TABLE:
                slots.append(evaluate_piecewise(program.tables, b, slots[a]))
            elif c >= 0:
                slots.append(np.where(np.real(slots[a]) != 0.0, slots[b], slots[c])[()])
            elif b >= 0:
                slots.append(FUNCTIONS[code](slots[a], slots[b]))
            else:
                slots.append(FUNCTIONS[code](slots[a]))
    points = np.broadcast_shapes(np.shape(t), np.shape(y)[1:])
    results = [np.broadcast_to(slots[i], points) for i in program.outputs]
    return np.stack(results) if results else np.zeros((0, *points))


def instructions(program: Program) -> Iterator[tuple[int, int, int, int]]:
    """Opcode and operands of every instruction, as Python ints."""
    return zip(*(x.tolist() for x in (program.op, program.a, program.b, program.c)), strict=True)


def _comparison(compare: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda x, y: compare(np.real(x), np.real(y)) * 1.0


def _chooser(compare: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
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


def _error_function(x: Any) -> Any:
    from scipy.special import erf  # costs more to import than the rest

    return erf(x)


FUNCTIONS: dict[int, Callable[..., Any]] = {
    op.ADD: lambda x, y: x + y,
    op.SUB: lambda x, y: x - y,
    op.MUL: lambda x, y: x * y,
    op.DIV: np.divide,
    op.NEG: lambda x: -x,
    op.POW: np.power,
    op.SQRT: np.sqrt,
    op.EXP: np.exp,
    op.LOG: np.log,
    op.SIN: np.sin,
    op.COS: np.cos,
    op.TAN: np.tan,
    op.ASIN: np.arcsin,
    op.ACOS: np.arccos,
    op.ATAN: np.arctan,
    op.SINH: np.sinh,
    op.COSH: np.cosh,
    op.TANH: np.tanh,
    op.ASINH: np.arcsinh,
    op.ACOSH: np.arccosh,
    op.ATANH: np.arctanh,
    op.ATAN2: _angle,
    op.HYPOT: _length,
    op.ABS: lambda x: x * np.sign(np.real(x)) if np.iscomplexobj(x) else np.abs(x),
    op.SIGN: lambda x: np.sign(np.real(x)),
    op.FLOOR: lambda x: np.floor(np.real(x)),
    op.CEIL: lambda x: np.ceil(np.real(x)),
    op.MIN: _chooser(np.less_equal),
    op.MAX: _chooser(np.greater_equal),
    op.LOG1P: np.log1p,
    op.EXPM1: np.expm1,
    op.ERF: _error_function,
    op.LT: _comparison(np.less),
    op.LE: _comparison(np.less_equal),
    op.EQ: _comparison(np.equal),
    op.NE: _comparison(np.not_equal),
    op.AND: lambda x, y: np.logical_and(x, y) * 1.0,
    op.OR: lambda x, y: np.logical_or(x, y) * 1.0,
    op.NOT: lambda x: np.logical_not(x) * 1.0,
    op.MOD: lambda x, y: np.mod(np.real(x), np.real(y)) + 1j * np.imag(x)
    if np.iscomplexobj(x)
    else np.mod(x, y),
}
