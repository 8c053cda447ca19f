"""Operations of a program; `opcodes.pxd` has the same in C, and a test compares the two.

Written with the slots a, b, c of an instruction. Any nonzero number is true, as in Python.
"""

ADD = 0
SUB = 1
MUL = 2
DIV = 3
NEG = 4
POW = 5
POWI = 6               # a ** b where b is an integer, not a slot
SQRT = 7
EXP = 8
LOG = 9
SIN = 10
COS = 11
TAN = 12
ASIN = 13
ACOS = 14
ATAN = 15
SINH = 16
COSH = 17
TANH = 18
ASINH = 19
ACOSH = 20
ATANH = 21
ATAN2 = 22
ABS = 23
SIGN = 24
FLOOR = 25
CEIL = 26
MIN = 27               # NaN if either is, as in NumPy
MAX = 28
LOG1P = 29
EXPM1 = 30
ERF = 31
LT = 32                # comparisons give 1.0 or 0.0
LE = 33
EQ = 34
NE = 35
AND = 36
OR = 37
NOT = 38
SELECT = 39            # b where a is true, else c
MOD = 40               # with the sign of the divisor, as in Python
TABLE = 41             # piecewise polynomial of a; b is its position in the tables
HYPOT = 42
SPECIAL = 43           # special function of a; b says which, and its order

# Only in the machine: a product and a sum in one instruction, with two roundings.
MULADD = 44            # a * b + c
MULSUB = 45            # a * b - c
SUBMUL = 46            # c - a * b
OPERATIONS = 47

# Segments of a program: when a slot changes, and what needs it.
STATIC = 0             # follows from constants and args
TIME = 1               # from t as well; needed by the values
POINT = 2              # from y or y'; needed by the values
ENTRIES_TIME = 3       # like TIME, but only for the entries of the Jacobian
ENTRIES_POINT = 4
SEGMENTS = 5
UNUSED = -1            # needed by nothing
ABSORBED = -2          # done by another instruction
