# Operations have the numbers of the core; leaves and opaque calls have their own, as in opcodes.py.
from tether._core.opcodes cimport (
    ADD, SUB, MUL, DIV, NEG, POW, POWI, SQRT, EXP, LOG, SIN, COS, TAN, ASIN, ACOS, ATAN,
    SINH, COSH, TANH, ASINH, ACOSH, ATANH, ATAN2, ABS, SIGN, FLOOR, CEIL, MIN, MAX, LOG1P,
    EXPM1, ERF, LT, LE, EQ, NE, AND, OR, NOT, SELECT, MOD, TABLE, HYPOT, SPECIAL,
)

cdef enum:
    CONST = -1
    TIME = -2
    Y = -3
    ARG = -4
    OPAQUE = -5
