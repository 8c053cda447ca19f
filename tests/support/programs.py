"""Programs for the machine, and what NumPy makes of them."""

import math
from dataclasses import replace

import numpy as np
import pytest

from tether.trace import opcodes as op
from tether.trace.backend import prepare
from tether.trace.compile_c import find_compiler
from tether.trace.emit import Program
from tether.trace.interpret import evaluate

needs_compiler = pytest.mark.skipif(find_compiler() is None, reason="no C compiler")

UNARY = [op.NEG, op.SQRT, op.EXP, op.LOG, op.SIN, op.COS, op.TAN, op.ASIN, op.ACOS, op.ATAN,
         op.SINH, op.COSH, op.TANH, op.ASINH, op.ACOSH, op.ATANH, op.ABS, op.SIGN, op.FLOOR,
         op.CEIL, op.LOG1P, op.EXPM1, op.ERF, op.NOT]
BINARY = [op.ADD, op.SUB, op.MUL, op.DIV, op.POW, op.ATAN2, op.HYPOT, op.MIN, op.MAX, op.LT, op.LE,
          op.EQ, op.NE, op.AND, op.OR, op.MOD]


def c_power(x, y):
    """pow of the C library, as `math` has it; NumPy takes the square root for y = 0.5."""
    try:
        return math.pow(x, y)
    except (OverflowError, ValueError):
        return np.power(x, y)


NUMPY = {
    op.ADD: np.add, op.SUB: np.subtract, op.MUL: np.multiply, op.DIV: np.divide,
    op.NEG: np.negative, op.POW: c_power, op.SQRT: np.sqrt, op.EXP: np.exp, op.LOG: np.log,
    op.SIN: np.sin, op.COS: np.cos, op.TAN: np.tan, op.ASIN: np.arcsin, op.ACOS: np.arccos,
    op.ATAN: np.arctan, op.SINH: np.sinh, op.COSH: np.cosh, op.TANH: np.tanh,
    op.ASINH: np.arcsinh, op.ACOSH: np.arccosh, op.ATANH: np.arctanh, op.ATAN2: np.arctan2,
    op.HYPOT: np.hypot,
    op.ABS: np.abs, op.SIGN: np.sign, op.FLOOR: np.floor, op.CEIL: np.ceil,
    # the first of two zeros, which NumPy leaves to the processor
    op.MIN: lambda x, y: x if x == y else np.minimum(x, y),
    op.MAX: lambda x, y: x if x == y else np.maximum(x, y),
    op.LOG1P: np.log1p, op.EXPM1: np.expm1, op.ERF: math.erf,
    op.LT: np.less, op.LE: np.less_equal, op.EQ: np.equal, op.NE: np.not_equal,
    op.AND: lambda x, y: x != 0 and y != 0, op.OR: lambda x, y: x != 0 or y != 0,
    op.NOT: lambda x: x == 0, op.SELECT: lambda x, y, z: y if x != 0 else z, op.MOD: np.mod,
}
# What IEEE arithmetic fixes to the last digit.
EXACT = [op.ADD, op.SUB, op.MUL, op.DIV, op.NEG, op.SQRT, op.ABS, op.SIGN, op.FLOOR, op.CEIL,
         op.MIN, op.MAX, op.LT, op.LE, op.EQ, op.NE, op.AND, op.OR, op.NOT, op.SELECT, op.MOD]
EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.5, 3.0, 700.0, -800.0, 1e-300, 1e300, -1e300,
         math.inf, -math.inf, math.nan]


def assemble(n, p, constants, instructions, outputs):
    """Program of instructions (op, a, b, c), which may be shorter; their slots are as they are."""
    rows = [tuple(row) + (-1,) * (4 - len(row)) for row in instructions]
    columns = np.array(rows, np.int32).reshape(-1, 4).T.copy()
    return Program(n=n, p=p, op=columns[0], a=columns[1], b=columns[2], c=columns[3],
                   outputs=np.array(outputs, np.int32), constants=np.array(constants, float),
                   n_static=0, n_time=0)


def power(x, k):
    """x ** k by squaring."""
    product, left = 1.0, abs(k)
    while left:
        if left & 1:
            product = product * x
        x, left = x * x, left >> 1
    return np.float64(1.0) / product if k < 0 else product


def reference(program, t, y, yp, args=()):
    """Outputs by NumPy."""
    slots = [np.float64(x) for x in (*program.constants, t, *y, *yp, *args)]
    with np.errstate(all="ignore"):
        for code, a, b, c in zip(program.op, program.a, program.b, program.c, strict=True):
            if code == op.POWI:
                slots.append(power(slots[a], int(b)))
            elif code == op.TABLE:
                slots.append(np.float64(stored_table(program.tables, int(b), slots[a])))
            else:
                operands = [slots[k] for k in (a, b, c) if k >= 0]
                slots.append(np.float64(NUMPY[int(code)](*operands)))
    return np.array([slots[k] for k in program.outputs])


def stored_table(tables, first, x):
    """Piecewise polynomial by a search from the left and plain sums."""
    count, width = int(tables[first]), int(tables[first + 1])
    starts = tables[first + 2 : first + 2 + count]
    piece = sum(1 for start in starts if start <= x)
    base, *row = tables[first + 2 + count + piece * (width + 1) :][: width + 1]
    total, factor = 0.0, 1.0
    for c in row:
        total, factor = total + c * factor, factor * (x - base)
    return x if x != x else total


def random_tables(rng):
    """Two tables, one behind the other, and their places."""
    parts = []
    for count, width in ((0, 3), (5, 4)):
        parts.append([count, width, *np.sort(rng.standard_normal(count)),
                      *rng.standard_normal((count + 1) * (width + 1))])
    return np.concatenate(parts), [0, len(parts[0])]


def backends(program, *arguments, **options):
    """The machine and, where there is a compiler, C."""
    made = [prepare(program, *arguments, backend="machine", **options)]
    if find_compiler() is not None:
        made.append(prepare(program, *arguments, backend="c", **options))
        assert made[1].name == "c", made[1].reason
    return made


def every_operation():
    """All operations of y[0], y[1], y[2] in one program, and what they are."""
    codes = [(code, 1) for code in UNARY] + [(code, 1, 2) for code in BINARY]
    codes += [(op.SELECT, 1, 2, 3)]
    return assemble(3, 0, [], codes, range(7, 7 + len(codes))), [row[0] for row in codes]


def random_program(rng, size, codes, n=3, p=2):
    """Program with all kinds of operands, entries and unused instructions."""
    constants = rng.standard_normal(4)
    tables, places = random_tables(rng)
    base = len(constants) + 1 + 2 * n + p
    rows = []
    for i in range(size):
        code = int(rng.choice(codes))
        arity = 3 if code == op.SELECT else 2 if code in BINARY else 1
        recent = rng.integers(max(0, base + i - 6), base + i, 3)
        slots = np.where(rng.random(3) < 0.5, recent, rng.integers(0, base + i, 3)).tolist()
        second = int(rng.integers(-4, 9)) if code == op.POWI else slots[1] if arity > 1 else -1
        second = int(rng.choice(places)) if code == op.TABLE else second
        rows.append((code, slots[0], second, slots[2] if arity > 2 else -1))
    outputs = rng.integers(0, base + size, 2 * n)
    return replace(assemble(n, p, constants, rows, outputs), tables=tables)


# slots: 0 constant 2, 1 t, 2 y, 3 yp, 4 arg, then arg * 2, sin(t), y * (arg * 2), ... + sin(t)
SPLIT = assemble(
    1, 1, [2.0],
    [(op.MUL, 4, 0), (op.SIN, 1), (op.MUL, 2, 5), (op.MUL, 7, 7), (op.DIV, 8, 6)], [9],
)
STATIC_SLOT, TIME_SLOT, POINT_SLOT = 5, 6, 7


def split_value(t, y, arg):
    return (2.0 * arg * y) ** 2 / math.sin(t)


def jacobians(traced, t, y, yp):
    """F_y and F_y' of a trace at a point."""
    parts = []
    for matrix in (traced.f_y, traced.f_yp):
        dense = np.zeros(matrix.shape)
        dense[matrix.rows, matrix.cols] = evaluate(traced.program(matrix.nodes), t, y, yp)
        parts.append(dense)
    return parts
