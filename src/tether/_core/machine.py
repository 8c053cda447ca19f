"""The machine: runs a traced program, for values and Jacobian entries, without Python.

A `Schedule` says what to do and is shared; a `Machine` is the memory to do it in, so every state
(every thread) has its own. Slots that follow from the args are filled when these are set, those
that follow from t when t changes, the rest at every call. Entries of the Jacobian at the point of
the last values, as Newton's iteration wants them, start from what is already there.
"""

import cython
import numpy as np

from tether._core.runner import check_fit, check_reach, reach_of, vector

if not cython.compiled:
    from tether._core.arrays import address
    from tether._core.codes import NO_EVENT_VALUE, OK
    from tether._core.libm import *
    from tether._core.opcodes import *
    from tether._core.runner import addresses_of, keep
    from tether._core.special import special
    from tether._core.state import State

NAN = cython.declare(cython.double, float("nan"))


class Machine:
    """Memory of one running program.

    Parameters
    ----------
    schedule : Schedule
        What to do.
    args : sequence of float
        Values of the args.
    fy_positions, fyp_positions : array_like of int
        Positions of the entries in the memory of F_y and of F_y'. The schedule's entries are first
        those of F_y, then those of F_y'.
    """

    def __init__(self, schedule, args=(), fy_positions=(), fyp_positions=()):
        self.schedule = schedule
        self.arrays = []
        self.n = schedule.n
        self.n_args = schedule.n_args
        self.t_slot = schedule.n_constants
        self.base = schedule.base
        self.takes_yp = schedule.takes_yp
        self.n_values = len(schedule.values)
        self.slots = schedule.slots.copy()
        self.w = address(self.slots)
        self.tables = address(schedule.tables)
        self.a = keep(self.arrays, schedule.a)
        self.b = keep(self.arrays, schedule.b)
        self.c = keep(self.arrays, schedule.c)
        self.run_op = keep(self.arrays, schedule.run_op)
        self.run_start = keep(self.arrays, schedule.run_start)
        self.segment_start = keep(self.arrays, schedule.segment_start)
        self.value_slot = keep(self.arrays, schedule.values)
        if len(fy_positions) + len(fyp_positions) != len(schedule.entries):
            raise ValueError(
                f"the program has {len(schedule.entries)} entries, but there are "
                f"{len(fy_positions)} + {len(fyp_positions)} positions"
            )
        split = len(fy_positions)
        static, slots = schedule.static_entries, schedule.entries
        self.n_fy_static = np.sum(static[:split])
        self.fy_slot = keep(self.arrays, slots[:split][sort_static_first(static[:split])])
        self.n_fyp_static = np.sum(static[split:])
        self.fyp_slot = keep(self.arrays, slots[split:][sort_static_first(static[split:])])
        self.n_fy = split
        self.n_fyp = len(fyp_positions)
        self.place(fy_positions, fyp_positions)
        self.set_args(args)

    def place(self, fy_positions, fyp_positions):
        """Write the entries to other positions in the memory of F_y and of F_y'."""
        static = self.schedule.static_entries
        self.arrays = self.arrays.copy()           # a twin shares the list
        order = sort_static_first(static[: self.n_fy])
        self.fy_position = keep(self.arrays, np.asarray(fy_positions, np.intc)[order])
        order = sort_static_first(static[self.n_fy :])
        self.fyp_position = keep(self.arrays, np.asarray(fyp_positions, np.intc)[order])
        self.reach = reach_of(fy_positions, fyp_positions)

    def twin(self, args):
        """Make another memory for the same program."""
        other: Machine = Machine.__new__(Machine)
        other.schedule, other.arrays = self.schedule, self.arrays
        other.n, other.n_args, other.n_values = self.n, self.n_args, self.n_values
        other.t_slot, other.base, other.takes_yp = self.t_slot, self.base, self.takes_yp
        other.a, other.b, other.c = self.a, self.b, self.c
        other.run_op, other.run_start = self.run_op, self.run_start
        other.segment_start, other.value_slot = self.segment_start, self.value_slot
        other.n_fy, other.n_fyp, other.reach = self.n_fy, self.n_fyp, self.reach
        other.n_fy_static, other.n_fyp_static = self.n_fy_static, self.n_fyp_static
        other.fy_slot, other.fy_position = self.fy_slot, self.fy_position
        other.fyp_slot, other.fyp_position = self.fyp_slot, self.fyp_position
        other.slots = self.slots.copy()
        other.w = address(other.slots)
        other.tables = self.tables
        other.set_args(args)
        return other

    def set_args(self, args):
        """Take new values of the args and fill what follows from them."""
        if len(args) != self.n_args:
            raise ValueError(f"the program has {self.n_args} args, got {len(args)}")
        if self.n_args:
            self.slots[self.base - self.n_args:self.base] = args
        follow_args(self)

    @property
    def fyp_is_static(self):
        """Whether F_y' follows from constants and args alone."""
        return self.n_fyp_static == self.n_fyp

    def values(self, t, y, yp):
        """Return the values at a point, for tests and for callers outside the core."""
        y, yp, out = vector(y, self.n), vector(yp, self.n), np.zeros(self.n_values)
        values_at(self, t, address(y), address(yp), address(out))
        return out

    def values_along(self, t, y, yp, out):
        """Write the values at many points, rows of `y` and `yp`, into the rows of `out`."""
        i: cython.Py_ssize_t
        if cython.compiled:
            times: cython.double[::1] = t
            rows: cython.double[:, ::1] = y
            slopes: cython.double[:, ::1] = yp
            values: cython.double[:, ::1] = out
            if rows.shape[1] != self.n or values.shape[1] != self.n_values:
                raise ValueError("the program has a different number of unknowns or values")
            if self.n_values > 0:
                for i in range(times.shape[0]):
                    values_at(self, times[i], cython.address(rows[i, 0]),
                              cython.address(slopes[i, 0]), cython.address(values[i, 0]))
        else:
            for i in range(len(t)):
                values_at(self, t[i], y[i], yp[i], out[i])

    def entries_into(self, t, y, yp, fy, fyp):
        """Write the entries at a point into the memory of F_y and F_y'."""
        y, yp = vector(y, self.n), vector(yp, self.n)
        check_reach(self.reach, fy, fyp)
        write_static(self, address(fy), address(fyp))
        entries_at(self, t, address(y), address(yp), address(fy), address(fyp))

    def constraint_addresses(self):
        """Addresses of the C functions G(t, y), of its Jacobian, and of their user data."""
        return addresses_of(machine_constraint, machine_constraint_jacobian, self)


def sort_static_first(static):
    """Order of entries with those that never change first."""
    return np.argsort(~static, kind="stable")


def powi(x, k):
    """Return x ** k by squaring, in the same order as the C back end."""
    left: cython.int = -k if k < 0 else k
    product: cython.double = 1.0
    while left > 0:
        if left & 1:
            product *= x
        x *= x
        left >>= 1
    return 1.0 / product if k < 0 else product


def modulo(x, y):
    """Return x % y with the sign of y, as in Python and NumPy."""
    rest: cython.double = fmod(x, y)
    if rest == 0.0:
        return copysign(0.0, y)
    if (y < 0.0) != (rest < 0.0):
        rest += y
    return rest


def smaller(x, y):
    """Return the smaller number, or NaN if one is NaN, as NumPy does."""
    return x if x <= y or x != x else y


def larger(x, y):
    """Return the larger number, or NaN if one is NaN, as NumPy does."""
    return x if x >= y or x != x else y


def sign(x):
    """Return -1, 0 or 1; NaN stays NaN."""
    return 1.0 if x > 0.0 else -1.0 if x < 0.0 else 0.0 if x == 0.0 else x


def piecewise(table, first, x):
    """Value at x of the piecewise polynomial that begins at `first`."""
    count: cython.int = cython.cast(cython.int, table[first])
    width: cython.int = cython.cast(cython.int, table[first + 1])
    low: cython.int = 0
    high: cython.int = count
    middle: cython.int
    k: cython.int
    distance: cython.double
    total: cython.double = 0.0
    power: cython.double = 1.0
    if x != x:
        return x
    first += 2
    while low < high:                  # number of breakpoints not to the right of x
        middle = (low + high) // 2
        if table[first + middle] <= x:
            low = middle + 1
        else:
            high = middle
    first += count + low * (width + 1)
    distance = x - table[first]
    for k in range(1, width + 1):
        total += table[first + k] * power
        power *= distance
    return total


def run_segment(m, segment):
    """Fill the slots of one segment, run by run."""
    w: cython.p_double = m.w
    a: cython.p_int = m.a
    b: cython.p_int = m.b
    c: cython.p_int = m.c
    base: cython.int = m.base
    r: cython.int
    i: cython.int
    code: cython.int
    start: cython.int
    stop: cython.int
    for r in range(m.segment_start[segment], m.segment_start[segment + 1]):
        code = m.run_op[r]
        start = m.run_start[r]
        stop = m.run_start[r + 1]
        if code == ADD:
            for i in range(start, stop):
                w[base + i] = w[a[i]] + w[b[i]]
        elif code == SUB:
            for i in range(start, stop):
                w[base + i] = w[a[i]] - w[b[i]]
        elif code == MUL:
            for i in range(start, stop):
                w[base + i] = w[a[i]] * w[b[i]]
        elif code == MULADD:
            for i in range(start, stop):
                w[base + i] = w[a[i]] * w[b[i]] + w[c[i]]
        elif code == MULSUB:
            for i in range(start, stop):
                w[base + i] = w[a[i]] * w[b[i]] - w[c[i]]
        elif code == SUBMUL:
            for i in range(start, stop):
                w[base + i] = w[c[i]] - w[a[i]] * w[b[i]]
        elif code == DIV:
            for i in range(start, stop):
                w[base + i] = w[a[i]] / w[b[i]]
        elif code == NEG:
            for i in range(start, stop):
                w[base + i] = -w[a[i]]
        elif code == POW:
            for i in range(start, stop):
                w[base + i] = pow(w[a[i]], w[b[i]])
        elif code == POWI:
            for i in range(start, stop):
                w[base + i] = powi(w[a[i]], b[i])
        elif code == SQRT:
            for i in range(start, stop):
                w[base + i] = sqrt(w[a[i]])
        elif code == EXP:
            for i in range(start, stop):
                w[base + i] = exp(w[a[i]])
        elif code == LOG:
            for i in range(start, stop):
                w[base + i] = log(w[a[i]])
        elif code == SIN:
            for i in range(start, stop):
                w[base + i] = sin(w[a[i]])
        elif code == COS:
            for i in range(start, stop):
                w[base + i] = cos(w[a[i]])
        elif code == TAN:
            for i in range(start, stop):
                w[base + i] = tan(w[a[i]])
        elif code == ASIN:
            for i in range(start, stop):
                w[base + i] = asin(w[a[i]])
        elif code == ACOS:
            for i in range(start, stop):
                w[base + i] = acos(w[a[i]])
        elif code == ATAN:
            for i in range(start, stop):
                w[base + i] = atan(w[a[i]])
        elif code == SINH:
            for i in range(start, stop):
                w[base + i] = sinh(w[a[i]])
        elif code == COSH:
            for i in range(start, stop):
                w[base + i] = cosh(w[a[i]])
        elif code == TANH:
            for i in range(start, stop):
                w[base + i] = tanh(w[a[i]])
        elif code == ASINH:
            for i in range(start, stop):
                w[base + i] = asinh(w[a[i]])
        elif code == ACOSH:
            for i in range(start, stop):
                w[base + i] = acosh(w[a[i]])
        elif code == ATANH:
            for i in range(start, stop):
                w[base + i] = atanh(w[a[i]])
        elif code == ATAN2:
            for i in range(start, stop):
                w[base + i] = atan2(w[a[i]], w[b[i]])
        elif code == HYPOT:
            for i in range(start, stop):
                w[base + i] = hypot(w[a[i]], w[b[i]])
        elif code == ABS:
            for i in range(start, stop):
                w[base + i] = fabs(w[a[i]])
        elif code == SIGN:
            for i in range(start, stop):
                w[base + i] = sign(w[a[i]])
        elif code == FLOOR:
            for i in range(start, stop):
                w[base + i] = floor(w[a[i]])
        elif code == CEIL:
            for i in range(start, stop):
                w[base + i] = ceil(w[a[i]])
        elif code == MIN:
            for i in range(start, stop):
                w[base + i] = smaller(w[a[i]], w[b[i]])
        elif code == MAX:
            for i in range(start, stop):
                w[base + i] = larger(w[a[i]], w[b[i]])
        elif code == LOG1P:
            for i in range(start, stop):
                w[base + i] = log1p(w[a[i]])
        elif code == EXPM1:
            for i in range(start, stop):
                w[base + i] = expm1(w[a[i]])
        elif code == ERF:
            for i in range(start, stop):
                w[base + i] = erf(w[a[i]])
        elif code == LT:
            for i in range(start, stop):
                w[base + i] = 1.0 if w[a[i]] < w[b[i]] else 0.0
        elif code == LE:
            for i in range(start, stop):
                w[base + i] = 1.0 if w[a[i]] <= w[b[i]] else 0.0
        elif code == EQ:
            for i in range(start, stop):
                w[base + i] = 1.0 if w[a[i]] == w[b[i]] else 0.0
        elif code == NE:
            for i in range(start, stop):
                w[base + i] = 1.0 if w[a[i]] != w[b[i]] else 0.0
        elif code == AND:
            for i in range(start, stop):
                w[base + i] = 1.0 if w[a[i]] != 0.0 and w[b[i]] != 0.0 else 0.0
        elif code == OR:
            for i in range(start, stop):
                w[base + i] = 1.0 if w[a[i]] != 0.0 or w[b[i]] != 0.0 else 0.0
        elif code == NOT:
            for i in range(start, stop):
                w[base + i] = 0.0 if w[a[i]] != 0.0 else 1.0
        elif code == SELECT:
            for i in range(start, stop):
                w[base + i] = w[b[i]] if w[a[i]] != 0.0 else w[c[i]]
        elif code == MOD:
            for i in range(start, stop):
                w[base + i] = modulo(w[a[i]], w[b[i]])
        elif code == TABLE:
            for i in range(start, stop):
                w[base + i] = piecewise(m.tables, b[i], w[a[i]])
        elif code == SPECIAL:
            for i in range(start, stop):
                w[base + i] = special(b[i], w[a[i]])


def take_point(m, t, y, yp):
    """Copy a point into the slots."""
    i: cython.int
    n: cython.int = m.n
    first: cython.int = m.t_slot + 1
    m.w[m.t_slot] = t
    for i in range(n):
        m.w[first + i] = y[i]
    if m.takes_yp:
        for i in range(n):
            m.w[first + n + i] = yp[i]


def is_at(m, t, y, yp):
    """Tell whether the values were last computed at exactly this point."""
    i: cython.int
    n: cython.int = m.n
    first: cython.int = m.t_slot + 1
    if not m.filled or m.w[m.t_slot] != t:
        return False
    for i in range(n):
        if m.w[first + i] != y[i]:
            return False
    if m.takes_yp:
        for i in range(n):
            if m.w[first + n + i] != yp[i]:
                return False
    return True


def fill(m, t, y, yp):
    """Compute everything that the values need."""
    take_point(m, t, y, yp)
    if m.t_values != t:
        run_segment(m, TIME)
        m.t_values = t
    run_segment(m, POINT)
    m.filled = True


def follow_args(m):
    """Fill the slots that follow from the args; the others become invalid."""
    run_segment(m, STATIC)
    m.t_values = m.t_entries = NAN
    m.filled = False


def take_args(m, args):
    """Take new values of the args, without Python."""
    i: cython.int
    for i in range(m.n_args):
        m.w[m.base - m.n_args + i] = args[i]
    follow_args(m)


def take_last_args(m, args, count):
    """Take new values of the last args alone, without Python."""
    i: cython.int
    for i in range(count):
        m.w[m.base - count + i] = args[i]
    follow_args(m)


def values_at(m, t, y, yp, out):
    """Values at a point."""
    i: cython.int
    fill(m, t, y, yp)
    for i in range(m.n_values):
        out[i] = m.w[m.value_slot[i]]


def fill_entries(m, t, y, yp):
    """Compute everything that the entries need."""
    if not is_at(m, t, y, yp):
        fill(m, t, y, yp)
    if m.t_entries != t:
        run_segment(m, ENTRIES_TIME)
        m.t_entries = t
    run_segment(m, ENTRIES_POINT)


def write_static(m, fy, fyp):
    """Write the entries that follow from constants and args, which nothing overwrites."""
    i: cython.int
    for i in range(m.n_fy_static):
        fy[m.fy_position[i]] = m.w[m.fy_slot[i]]
    for i in range(m.n_fyp_static):
        fyp[m.fyp_position[i]] = m.w[m.fyp_slot[i]]


def entries_at(m, t, y, yp, fy, fyp):
    """Write the entries that change at a point into F_y and F_y'."""
    i: cython.int
    if m.n_fy_static == m.n_fy and m.n_fyp_static == m.n_fyp:
        return
    fill_entries(m, t, y, yp)
    for i in range(m.n_fy_static, m.n_fy):
        fy[m.fy_position[i]] = m.w[m.fy_slot[i]]
    for i in range(m.n_fyp_static, m.n_fyp):
        fyp[m.fyp_position[i]] = m.w[m.fyp_slot[i]]


# --- functions that a state calls ---------------------------------------------------------


def machine_residual(s, t, y, yp, out):
    """Residual by the machine in `s.residual_adapter`."""
    values_at(cython.cast(Machine, s.residual_adapter), t, y, yp, out)
    return OK


def machine_jacobian(s, t, y, yp):
    """F_y and F_y' by the machine in `s.jacobian_adapter`; the factorisation notices NaN."""
    entries_at(cython.cast(Machine, s.jacobian_adapter), t, y, yp, s.matrix.fy, s.matrix.fyp)
    return OK


def machine_events(s, t, y, yp, g):
    """Event functions by the machine in `s.events_adapter`."""
    values_at(cython.cast(Machine, s.events_adapter), t, y, yp, g)
    return check_finite(g, s.n_events)


def check_finite(values, n):
    """Return OK, or NO_EVENT_VALUE if a value is NaN or infinite: its function may raise there."""
    i: cython.int
    probe: cython.double = 0.0
    for i in range(n):
        probe += 0.0 * values[i]
    return OK if probe == 0.0 else NO_EVENT_VALUE


def machine_constraint(t, y, g, machine):
    """C function for a constraint, which does not depend on y'."""
    values_at(cython.cast(Machine, machine), t, y, y, g)


def machine_constraint_jacobian(t, y, gy, machine):
    """C function for a constraint's Jacobian, stored by rows."""
    rows_at(cython.cast(Machine, machine), t, y, gy)


def rows_at(m, t, y, gy):
    """Write the whole Jacobian with respect to y, including zeros."""
    i: cython.longlong
    if m.reach > m.n_fy:                   # else the entries fill the memory
        for i in range(cython.cast(cython.longlong, m.n_values) * m.n):
            gy[i] = 0.0
    write_static(m, gy, gy)
    entries_at(m, t, y, y, gy, gy)


def use_machine(s: State, machine: Machine):
    """Let the state compute its residual by a machine, and its Jacobian where that has entries."""
    check_fit(s, machine, s.n)
    s.residual_adapter = machine
    s.residual = machine_residual
    s.python_residual = not cython.compiled
    if machine.n_fy + machine.n_fyp > 0:
        use_machine_jacobian(s, machine)


def use_machine_jacobian(s: State, machine: Machine):
    """Let the state compute its Jacobian by a machine."""
    check_fit(s, machine, machine.n_values)
    s.jacobian_adapter = machine
    s.jacobian = machine_jacobian
    s.matrix.clear()
    write_static(machine, s.matrix.fy, s.matrix.fyp)
    s.fyp_known = s.fyp_exists = s.fyp_constant = machine.fyp_is_static


def use_machine_events(s: State, machine: Machine):
    """Let the state compute its event functions by a machine."""
    check_fit(s, machine, s.n_events)
    s.events_adapter = machine
    s.events = machine_events


if not cython.compiled:
    # NumPy's scalars would warn where the compiled machine is silent.
    run_segment = np.errstate(all="ignore")(run_segment)
