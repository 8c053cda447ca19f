"""Programs compiled to C (`tether.trace.compile_c`) behind the core's seams.

The counterpart of `machine.py`, with a library of five functions in place of a schedule, and the
same division of labour. The memory `w` holds the args, the tables, and what follows from the args
and from t.
"""

import cython
import numpy as np

from tether._core.runner import check_fit, check_reach, reach_of, vector

if not cython.compiled:
    from tether._core.arrays import address
    from tether._core.codes import OK
    from tether._core.machine import check_finite
    from tether._core.runner import addresses_of
    from tether._core.state import State

NAN = cython.declare(cython.double, float("nan"))
AVAILABLE = cython.compiled            # the interpreted core cannot follow an address


class Native:
    """Memory of one running compiled program.

    Parameters
    ----------
    library : CompiledProgram
        The addresses of the functions, and what they expect.
    args : sequence of float
        Values of the args.
    fy_positions, fyp_positions : array_like of int
        Positions of the entries in the memory of F_y and of F_y'; they are first computed in a
        separate list.
    """

    def __init__(self, library, args=(), fy_positions=(), fyp_positions=()):
        self.library = library
        self.n = library.n
        self.n_args = library.n_args
        self.n_values = library.n_values
        self.n_fy = library.n_fy
        self.n_fyp = library.n_fyp
        self.fyp_is_static = library.fyp_is_static
        self.has_time = library.has_time
        self.memory = np.zeros(max(library.n_slots, 1))
        self.memory[self.n_args:self.n_args + len(library.tables)] = library.tables
        self.w = address(self.memory)
        if cython.compiled:
            functions: cython.longlong[::1] = np.array(library.addresses, np.int64)
            self.fill_static = cython.cast(fill_static_t, cython.cast(cython.p_void, functions[0]))
            self.fill_time = cython.cast(fill_time_t, cython.cast(cython.p_void, functions[1]))
            self.fill_values = cython.cast(values_t, cython.cast(cython.p_void, functions[2]))
            self.static_entries = cython.cast(
                static_entries_t, cython.cast(cython.p_void, functions[3])
            )
            self.fill_entries = cython.cast(entries_t, cython.cast(cython.p_void, functions[4]))
        self.entries = np.zeros(self.n_fy + self.n_fyp + 1)
        self.fy_list = address(self.entries)
        self.fyp_list = address(self.entries[self.n_fy:])
        self.place(fy_positions, fyp_positions)
        self.set_args(args)

    def twin(self, args):
        """Make another memory for the same program."""
        return Native(self.library, args, *self.positions)

    def place(self, fy_positions, fyp_positions):
        """Write the entries to other positions in the memory of F_y and of F_y'."""
        if (len(fy_positions), len(fyp_positions)) != (self.n_fy, self.n_fyp):
            raise ValueError(
                f"the program has {self.n_fy} + {self.n_fyp} entries, but there are "
                f"{len(fy_positions)} + {len(fyp_positions)} positions"
            )
        self.reach = reach_of(fy_positions, fyp_positions)
        self.positions = fy_positions, fyp_positions
        self.numbers = np.concatenate([fy_positions, fyp_positions, [0]]).astype(np.intc)
        if cython.compiled:
            view: cython.int[::1] = self.numbers
            self.fy_position = cython.address(view[0])
            self.fyp_position = cython.address(view[self.n_fy])

    def set_args(self, args):
        """Take new values of the args and fill what follows from them."""
        values = np.asarray(args, float).reshape(-1)
        if len(values) != self.n_args:
            raise ValueError(f"the program has {self.n_args} args, got {len(values)}")
        self.memory[: self.n_args] = values
        self.fill_static(self.w)
        self.t = np.nan

    def values(self, t, y, yp):
        """Return the values at a point."""
        y, yp, out = vector(y, self.n), vector(yp, self.n), np.zeros(self.n_values)
        native_values(self, t, address(y), address(yp), address(out))
        return out

    def entries_into(self, t, y, yp, fy, fyp):
        """Write the entries at a point into the memory of F_y and F_y'."""
        y, yp = vector(y, self.n), vector(yp, self.n)
        check_reach(self.reach, fy, fyp)
        self.static_entries(self.w, self.fy_list, self.fyp_list)
        native_entries(self, t, address(y), address(yp), address(fy), address(fyp))

    def constraint_addresses(self):
        """Addresses of the C functions G(t, y), of its Jacobian, and of their user data."""
        return addresses_of(native_constraint, native_constraint_jacobian, self)


def native_values(m, t, y, yp, out):
    """Values at a point."""
    if m.has_time and m.t != t:
        m.fill_time(m.w, t)
        m.t = t
    m.fill_values(m.w, t, y, yp, out)


def native_entries(m, t, y, yp, fy, fyp):
    """Write the entries that change at a point into F_y and F_y'."""
    if m.has_time and m.t != t:
        m.fill_time(m.w, t)
        m.t = t
    m.fill_entries(m.w, t, y, yp, m.fy_list, m.fyp_list)
    put_entries(m, fy, fyp)


def put_entries(m, fy, fyp):
    """Copy the entries to their positions."""
    k: cython.int
    for k in range(m.n_fy):
        fy[m.fy_position[k]] = m.fy_list[k]
    for k in range(m.n_fyp):
        fyp[m.fyp_position[k]] = m.fyp_list[k]


def native_rows(m, t, y, gy):
    """Write the whole Jacobian of a constraint, including zeros."""
    i: cython.longlong
    if m.reach > m.n_fy:                   # else the entries fill the memory
        for i in range(cython.cast(cython.longlong, m.n_values) * m.n):
            gy[i] = 0.0
    m.static_entries(m.w, m.fy_list, m.fyp_list)
    native_entries(m, t, y, y, gy, gy)


# --- functions that a state calls ---------------------------------------------------------


def native_residual(s, t, y, yp, out):
    """Residual by the compiled program in `s.residual_adapter`."""
    native_values(cython.cast(Native, s.residual_adapter), t, y, yp, out)
    return OK


def native_jacobian(s, t, y, yp):
    """F_y and F_y' by the compiled program in `s.jacobian_adapter`."""
    native_entries(
        cython.cast(Native, s.jacobian_adapter), t, y, yp, s.matrix.fy, s.matrix.fyp
    )
    return OK


def native_events(s, t, y, yp, g):
    """Event functions by the compiled program in `s.events_adapter`."""
    native_values(cython.cast(Native, s.events_adapter), t, y, yp, g)
    return check_finite(g, s.n_events)


def native_constraint(t, y, g, native):
    """C function for a constraint, which does not depend on y'."""
    native_values(cython.cast(Native, native), t, y, y, g)


def native_constraint_jacobian(t, y, gy, native):
    """C function for a constraint's Jacobian, stored by rows."""
    native_rows(cython.cast(Native, native), t, y, gy)


def take_native_args(m, args):
    """Take new values of the args, without Python."""
    i: cython.int
    for i in range(m.n_args):
        m.w[i] = args[i]
    m.fill_static(m.w)
    m.t = NAN


def take_last_native_args(m, args, count):
    """Take new values of the last args alone, without Python."""
    i: cython.int
    for i in range(count):
        m.w[m.n_args - count + i] = args[i]
    m.fill_static(m.w)
    m.t = NAN


def write_native_static(m, fy, fyp):
    """Write the entries that follow from constants and args."""
    m.static_entries(m.w, m.fy_list, m.fyp_list)
    put_entries(m, fy, fyp)


def use_native(s: State, native: Native):
    """Let the state compute its residual in C, and its Jacobian if the program has one."""
    check_fit(s, native, s.n)
    s.residual_adapter = native
    s.residual = native_residual
    s.python_residual = False
    if native.n_fy + native.n_fyp > 0:
        use_native_jacobian(s, native)


def use_native_jacobian(s: State, native: Native):
    """Let the state compute its Jacobian in C."""
    check_fit(s, native, native.n_values)
    s.jacobian_adapter = native
    s.jacobian = native_jacobian
    s.matrix.clear()
    write_native_static(native, s.matrix.fy, s.matrix.fyp)
    s.fyp_known = s.fyp_exists = s.fyp_constant = native.fyp_is_static


def use_native_events(s: State, native: Native):
    """Let the state compute its event functions in C."""
    check_fit(s, native, s.n_events)
    s.events_adapter = native
    s.events = native_events
