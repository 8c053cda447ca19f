"""Run a program instruction by instruction at a few points, without preparation.

`machine.py` is faster at many points, once a schedule has been made. Here a program runs once: to
compare it with its function, to see which of its results vanish, or to bound its rounding errors.
"""

import cython
import numpy as np

if not cython.compiled:
    from tether._core.libm import *
    from tether._core.machine import larger, modulo, piecewise, powi, sign, smaller
    from tether._core.opcodes import *
    from tether._core.special import special

OPAQUE = -5                            # a call of Python; see `trace/opcodes.py`
ULP = 2.0**-52
INFINITE = float("inf")
FUNCTION_ULPS = 4                      # mathematical libraries differ by a few


def operate(code, x, y, number, tables):
    """Apply an operation of one or two operands."""
    if code == ADD:
        return x + y
    if code == SUB:
        return x - y
    if code == MUL:
        return x * y
    if code == DIV:
        return x / y
    if code == NEG:
        return -x
    if code == POW:
        return pow(x, y)
    if code == POWI:
        return powi(x, number)
    if code == SQRT:
        return sqrt(x)
    if code == EXP:
        return exp(x)
    if code == LOG:
        return log(x)
    if code == SIN:
        return sin(x)
    if code == COS:
        return cos(x)
    if code == TAN:
        return tan(x)
    if code == ASIN:
        return asin(x)
    if code == ACOS:
        return acos(x)
    if code == ATAN:
        return atan(x)
    if code == SINH:
        return sinh(x)
    if code == COSH:
        return cosh(x)
    if code == TANH:
        return tanh(x)
    if code == ASINH:
        return asinh(x)
    if code == ACOSH:
        return acosh(x)
    if code == ATANH:
        return atanh(x)
    if code == ATAN2:
        return atan2(x, y)
    if code == HYPOT:
        return hypot(x, y)
    if code == ABS:
        return fabs(x)
    if code == SIGN:
        return sign(x)
    if code == FLOOR:
        return floor(x)
    if code == CEIL:
        return ceil(x)
    if code == MIN:
        return smaller(x, y)
    if code == MAX:
        return larger(x, y)
    if code == LOG1P:
        return log1p(x)
    if code == EXPM1:
        return expm1(x)
    if code == ERF:
        return erf(x)
    if code == LT:
        return 1.0 if x < y else 0.0
    if code == LE:
        return 1.0 if x <= y else 0.0
    if code == EQ:
        return 1.0 if x == y else 0.0
    if code == NE:
        return 1.0 if x != y else 0.0
    if code == AND:
        return 1.0 if x != 0.0 and y != 0.0 else 0.0
    if code == OR:
        return 1.0 if x != 0.0 or y != 0.0 else 0.0
    if code == NOT:
        return 0.0 if x != 0.0 else 1.0
    if code == MOD:
        return modulo(x, y)
    if code == SPECIAL:
        return special(number, x)
    return piecewise(tables, number, x)


class Plain:
    """A program and its memory: one row of slots for each point.

    Parameters
    ----------
    program : Program
        What to compute.
    args : array_like, shape (p,) or (p, k)
        Values of the arguments.
    points : int
        Number of points, k.
    """

    def __init__(self, program, args=(), points=1):
        self.program = program
        self.op = np.ascontiguousarray(program.op, np.intc)
        self.a = np.ascontiguousarray(program.a, np.intc)
        self.b = np.ascontiguousarray(program.b, np.intc)
        self.c = np.ascontiguousarray(program.c, np.intc)
        self.outputs = np.ascontiguousarray(program.outputs, np.intc)
        self.points, self.count, self.n = points, len(program.op), program.n
        self.base, self.n_constants = program.base, len(program.constants)
        self.tables = np.append(program.tables, 0.0)      # never empty
        self.table = self.tables
        self.slots = np.zeros((points, self.base + self.count))
        self.w = self.slots
        self.slots[:, : self.n_constants] = program.constants
        self.slots[:, self.base - program.p : self.base] = np.asarray(args, float).T

    def values(self, t, y, yp):
        """Run the program at one point."""
        i: cython.int
        first: cython.int = self.n_constants
        if len(y) != self.n or len(yp) != self.n:
            raise ValueError(f"the program has {self.n} unknowns, got {len(y)} and {len(yp)}")
        self.w[0, first] = t
        self.slots[0, first + 1 : first + 1 + self.n] = y
        self.slots[0, first + 1 + self.n : first + 1 + 2 * self.n] = yp
        self.run()
        found = np.empty(len(self.outputs))
        found_view: cython.double[::1] = found
        for i in range(self.outputs.shape[0]):
            found_view[i] = self.w[0, self.outputs[i]]
        return found

    def values_with_errors(self, t, y, yp):
        """Run the program at one point, and bound its rounding errors."""
        found = self.values(t, y, yp)
        slot_errors = np.zeros(self.base + self.count)
        self.e = slot_errors
        self.follow_errors()
        return found, slot_errors[np.asarray(self.outputs)]

    def values_at_points(self, t, y, yp):
        """Run the program at all points; return one column of values for each."""
        first = self.n_constants
        self.slots[:, first] = t
        self.slots[:, first + 1 : first + 1 + self.n] = np.asarray(y, float).T
        self.slots[:, first + 1 + self.n : first + 1 + 2 * self.n] = np.asarray(yp, float).T
        self.run()
        return self.slots[:, np.asarray(self.outputs)].T

    def call(self, number, x):
        """Call a function that only Python can call."""
        return float(self.program.opaques[number](x))

    def run(self):
        """Fill the slots of all points."""
        i: cython.int
        k: cython.int
        code: cython.int
        y: cython.double
        for k in range(self.points):
            for i in range(self.count):
                code = self.op[i]
                if code == SELECT:
                    self.w[k, self.base + i] = (
                        self.w[k, self.b[i]] if self.w[k, self.a[i]] != 0.0
                        else self.w[k, self.c[i]]
                    )
                elif code == OPAQUE:
                    self.w[k, self.base + i] = self.call(self.b[i], self.w[k, self.a[i]])
                else:
                    y = 0.0
                    if self.b[i] >= 0 and code not in (POWI, TABLE, SPECIAL):
                        y = self.w[k, self.b[i]]
                    self.w[k, self.base + i] = operate(
                        code, self.w[k, self.a[i]], y, self.b[i], self.first_table()
                    )

    def follow_errors(self):
        """Bound the rounding errors in the slots of the first point.

        Errors are propagated by evaluating every operation at the ends of its operands' intervals:
        a jump then shows as a large error if it is within reach, and not otherwise. Infinite inputs
        are exact: a comparison with one is certain.
        """
        i: cython.int
        code: cython.int
        chosen: cython.int
        other: cython.int
        value: cython.double
        error: cython.double
        x: cython.double
        y: cython.double
        dx: cython.double
        dy: cython.double
        for i in range(self.n_constants):
            error = ULP * fabs(self.w[0, i])
            self.e[i] = error if error < INFINITE else 0.0
        for i in range(self.count):
            code = self.op[i]
            value = self.w[0, self.base + i]
            x = self.w[0, self.a[i]]
            dx = self.e[self.a[i]]
            if code == SELECT:
                chosen, other = self.b[i], self.c[i]
                if x == 0.0:
                    chosen, other = other, chosen
                error = self.e[chosen]
                if dx != 0.0:
                    error += fabs(self.w[0, chosen] - self.w[0, other]) + self.e[other]
            elif code == ADD or code == SUB:
                error = dx + self.e[self.b[i]]
                if not (error < INFINITE and self.is_infinite(i)):
                    error += ULP * fabs(value)
            elif code == MUL:
                y, dy = self.w[0, self.b[i]], self.e[self.b[i]]
                error = fabs(x) * dy + fabs(y) * dx + dx * dy + ULP * fabs(value)
            else:
                y = dy = 0.0
                if self.b[i] >= 0 and code not in (POWI, TABLE, SPECIAL, OPAQUE):
                    y, dy = self.w[0, self.b[i]], self.e[self.b[i]]
                error = self.change(i, value, x - dx, y - dy)
                if dx != 0.0:
                    error = max(error, self.change(i, value, x + dx, y - dy))
                if dy != 0.0:
                    error = max(error, self.change(i, value, x - dx, y + dy))
                if dx != 0.0 and dy != 0.0:
                    error = max(error, self.change(i, value, x + dx, y + dy))
                error += ULP * self.own_rounding(i, value, x)
            self.e[self.base + i] = error

    def is_infinite(self, i):
        """Tell whether an operand of an instruction is infinite, such as a shift that freezes."""
        return fabs(self.w[0, self.a[i]]) == INFINITE or fabs(self.w[0, self.b[i]]) == INFINITE

    def change(self, i, value, x, y):
        """Return how much the result of an instruction changes; zero if it becomes NaN."""
        found: cython.double
        if self.op[i] == OPAQUE:
            found = self.call(self.b[i], x)
        else:
            found = operate(self.op[i], x, y, self.b[i], self.first_table())
        found = fabs(found - value)
        return found if found == found else 0.0

    def own_rounding(self, i, value, x):
        """Return the rounding error of an operation itself, in units of one ulp."""
        code: cython.int = self.op[i]
        if code == TABLE:
            return self.rounding_of_table(self.b[i], x)
        if LT <= code <= NOT or code in (NEG, ABS, SIGN, FLOOR, CEIL, MIN, MAX):
            return 0.0
        if code == DIV or code == SQRT:
            return fabs(value)
        if code == POWI:
            return (abs(self.b[i]) + 1) * fabs(value)
        if code == SPECIAL:                    # less accurate where they pass through zero
            return 4.0 * FUNCTION_ULPS * fabs(value) + min(fabs(x), 1.0)
        return FUNCTION_ULPS * fabs(value)

    def rounding_of_table(self, first, x):
        """Return the rounding error of a table's value, in ulps of 1.

        SciPy evaluates some splines in another basis, with the accuracy of their largest value.
        """
        count: cython.int = int(self.tables[first])
        width: cython.int = int(self.tables[first + 1])
        pieces = self.tables[first + 2 + count :][: (count + 1) * (width + 1)]
        pieces = pieces.reshape(count + 1, width + 1)
        starts = self.tables[first + 2 : first + 2 + count]
        row = pieces[np.searchsorted(starts, x, side="right")]
        terms = np.abs(row[1:] * (x - row[0]) ** np.arange(width))
        return 8.0 * width * float(terms.sum() + np.abs(pieces[:, 1]).max())

    def first_table(self):
        """Return the address of the tables."""
        return cython.address(self.table[0]) if cython.compiled else self.tables


if not cython.compiled:
    # NumPy's scalars would warn where the compiled class is silent.
    Plain.run = np.errstate(all="ignore")(Plain.run)
    Plain.follow_errors = np.errstate(all="ignore")(Plain.follow_errors)
