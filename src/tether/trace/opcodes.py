"""Numbers of the operations, shared by graphs and programs.

Operations are non-negative and may stand in a program; the leaves of a graph and opaque calls
are negative and never do.
"""

ADD, SUB, MUL, DIV, NEG = 0, 1, 2, 3, 4
POW = 5
POWI = 6  # the integer exponent itself stands in b
SQRT, EXP, LOG = 7, 8, 9
SIN, COS, TAN, ASIN, ACOS, ATAN = 10, 11, 12, 13, 14, 15
SINH, COSH, TANH, ASINH, ACOSH, ATANH = 16, 17, 18, 19, 20, 21
ATAN2 = 22
ABS, SIGN, FLOOR, CEIL = 23, 24, 25, 26
MIN, MAX = 27, 28
LOG1P, EXPM1, ERF = 29, 30, 31
LT, LE, EQ, NE = 32, 33, 34, 35  # 1.0 or 0.0
AND, OR, NOT = 36, 37, 38  # of values that are 1.0 or 0.0
SELECT = 39  # b where a is not zero, else c
MOD = 40  # sign of the divisor, as in Python and NumPy
TABLE = 41  # piecewise polynomial of a; its number, or its place in the tables, stands in b
HYPOT = 42

# Leaves of a graph: constant (a: value), time, y (a: component, b: order of the derivative),
# argument (a: number). An opaque call has its operand in a and the callable's number in b.
CONST, TIME, Y, ARG, OPAQUE = -1, -2, -3, -4, -5

NAMES = {
    number: name
    for name, number in list(globals().items())
    if name.isupper() and isinstance(number, int)
}

COMPARISONS = frozenset((LT, LE, EQ, NE))
CONDITIONS = COMPARISONS | {AND, OR, NOT}
LEAVES = frozenset((CONST, TIME, Y, ARG))

_BINARY = (ADD, SUB, MUL, DIV, POW, ATAN2, HYPOT, MIN, MAX, LT, LE, EQ, NE, AND, OR, MOD)

# How many of a, b, c are operands.
ARITY = dict.fromkeys(NAMES, 1)
ARITY |= dict.fromkeys(_BINARY, 2) | {SELECT: 3} | dict.fromkeys(LEAVES, 0)
