"""Opcodes, shared by graphs and programs; `operations.py` says what the operations do.

The opcodes of operations are non-negative, those of the core, and may occur in a program. Those of
the leaves of a graph and of opaque calls are negative and never occur in a program of the core.
"""

from tether._core.opcodes import (  # noqa: F401
    ABS,
    ACOS,
    ACOSH,
    ADD,
    AND,
    ASIN,
    ASINH,
    ATAN,
    ATAN2,
    ATANH,
    CEIL,
    COS,
    COSH,
    DIV,
    EQ,
    ERF,
    EXP,
    EXPM1,
    FLOOR,
    HYPOT,
    LE,
    LOG,
    LOG1P,
    LT,
    MAX,
    MIN,
    MOD,
    MUL,
    NE,
    NEG,
    NOT,
    OR,
    POW,
    POWI,
    SELECT,
    SIGN,
    SIN,
    SINH,
    SPECIAL,
    SQRT,
    SUB,
    TABLE,
    TAN,
    TANH,
)

# Leaves of a graph: constant (a: value), time, y (a: component, b: order of the derivative),
# argument (a: number). An opaque call has its operand in a and the callable's number in b.
CONST, TIME, Y, ARG, OPAQUE = -1, -2, -3, -4, -5

COMPARISONS = frozenset((LT, LE, EQ, NE))
CONDITIONS = COMPARISONS | {AND, OR, NOT}
LEAVES = frozenset((CONST, TIME, Y, ARG))
