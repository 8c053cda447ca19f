"""The operations of templates, each on many rows at once.

There is a loop for each operation, over adjacent numbers; `rows.py` calls them.
"""

import cython

if not cython.compiled:
    from tether._core.libm import *
    from tether._core.machine import larger, modulo, piecewise, powi, sign, smaller
    from tether._core.opcodes import *
    from tether._core.special import special


def run_instruction(code, d, a, b, c, number, pieces, count):
    """Do one operation on the rows of a block."""
    i: cython.int
    if code == ADD:
        for i in range(count):
            d[i] = a[i] + b[i]
    elif code == SUB:
        for i in range(count):
            d[i] = a[i] - b[i]
    elif code == MUL:
        for i in range(count):
            d[i] = a[i] * b[i]
    elif code == MULADD:
        for i in range(count):
            d[i] = a[i] * b[i] + c[i]
    elif code == MULSUB:
        for i in range(count):
            d[i] = a[i] * b[i] - c[i]
    elif code == SUBMUL:
        for i in range(count):
            d[i] = c[i] - a[i] * b[i]
    elif code == DIV:
        for i in range(count):
            d[i] = a[i] / b[i]
    elif code == NEG:
        for i in range(count):
            d[i] = -a[i]
    elif code == SQRT:
        for i in range(count):
            d[i] = sqrt(a[i])
    elif code == EXP:
        for i in range(count):
            d[i] = exp(a[i])
    elif code == LOG:
        for i in range(count):
            d[i] = log(a[i])
    elif code == SIN:
        for i in range(count):
            d[i] = sin(a[i])
    elif code == COS:
        for i in range(count):
            d[i] = cos(a[i])
    elif code == TAN:
        for i in range(count):
            d[i] = tan(a[i])
    elif code == ASIN:
        for i in range(count):
            d[i] = asin(a[i])
    elif code == ACOS:
        for i in range(count):
            d[i] = acos(a[i])
    elif code == ATAN:
        for i in range(count):
            d[i] = atan(a[i])
    elif code == SINH:
        for i in range(count):
            d[i] = sinh(a[i])
    elif code == COSH:
        for i in range(count):
            d[i] = cosh(a[i])
    elif code == TANH:
        for i in range(count):
            d[i] = tanh(a[i])
    elif code == ASINH:
        for i in range(count):
            d[i] = asinh(a[i])
    elif code == ACOSH:
        for i in range(count):
            d[i] = acosh(a[i])
    elif code == ATANH:
        for i in range(count):
            d[i] = atanh(a[i])
    elif code == ABS:
        for i in range(count):
            d[i] = fabs(a[i])
    elif code == SIGN:
        for i in range(count):
            d[i] = sign(a[i])
    elif code == FLOOR:
        for i in range(count):
            d[i] = floor(a[i])
    elif code == CEIL:
        for i in range(count):
            d[i] = ceil(a[i])
    elif code == LOG1P:
        for i in range(count):
            d[i] = log1p(a[i])
    elif code == EXPM1:
        for i in range(count):
            d[i] = expm1(a[i])
    elif code == ERF:
        for i in range(count):
            d[i] = erf(a[i])
    elif code == NOT:
        for i in range(count):
            d[i] = 0.0 if a[i] != 0.0 else 1.0
    elif code == POW:
        for i in range(count):
            d[i] = pow(a[i], b[i])
    elif code == POWI:
        for i in range(count):
            d[i] = powi(a[i], number)
    elif code == ATAN2:
        for i in range(count):
            d[i] = atan2(a[i], b[i])
    elif code == HYPOT:
        for i in range(count):
            d[i] = hypot(a[i], b[i])
    elif code == MIN:
        for i in range(count):
            d[i] = smaller(a[i], b[i])
    elif code == MAX:
        for i in range(count):
            d[i] = larger(a[i], b[i])
    elif code == LT:
        for i in range(count):
            d[i] = 1.0 if a[i] < b[i] else 0.0
    elif code == LE:
        for i in range(count):
            d[i] = 1.0 if a[i] <= b[i] else 0.0
    elif code == EQ:
        for i in range(count):
            d[i] = 1.0 if a[i] == b[i] else 0.0
    elif code == NE:
        for i in range(count):
            d[i] = 1.0 if a[i] != b[i] else 0.0
    elif code == AND:
        for i in range(count):
            d[i] = 1.0 if a[i] != 0.0 and b[i] != 0.0 else 0.0
    elif code == OR:
        for i in range(count):
            d[i] = 1.0 if a[i] != 0.0 or b[i] != 0.0 else 0.0
    elif code == SELECT:
        for i in range(count):
            d[i] = b[i] if a[i] != 0.0 else c[i]
    elif code == MOD:
        for i in range(count):
            d[i] = modulo(a[i], b[i])
    elif code == TABLE:
        for i in range(count):
            d[i] = piecewise(pieces, number, a[i])
    elif code == SPECIAL:
        for i in range(count):
            d[i] = special(number, a[i])
