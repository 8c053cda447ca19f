"""G(t, y) and its Jacobian, from Python and C functions."""

import cython
import numpy as np
from cython.cimports.libc.math import fabs

from tether._core.adapters import WrongResult

if not cython.compiled:
    from tether._core.adapters import pass_or_refuse
    from tether._core.arrays import address
    from tether._core.codes import NON_FINITE, OK
    from tether._core.jacobian import largest_in_units
    from tether._core.state import State

ROOT_EPS = cython.declare(cython.double, 1.4901161193847656e-08)
FLOOR_EPS = cython.declare(cython.double, 1.8189894035458565e-12)
REAL = "fiub"


class PythonPiece:
    """One Python constraint function: ``fun(t, y) -> size values``, with or without Jacobian.

    `slopes`, if given, has the entries of its Jacobian that may be nonzero: their `rows` and
    `columns`, and their ``values(t, y)``, which is None where the Jacobian has no values.
    """

    def __init__(self, fun, jac, n, size, args, slopes=None):
        self.fun = fun
        self.jac = jac
        self.n = n
        self.size = size
        self.args = args
        self.slopes = slopes
        self.y = np.zeros(n)
        self.y_data = address(self.y)

    def call(self, s, start, t, y):
        """Evaluate into the rows of `s.g` from `start` on."""
        i: cython.int
        for i in range(self.n):
            self.y_data[i] = y[i]
        result = self.fun(t, self.y, *self.args) if self.args else self.fun(t, self.y)
        if self.size == 1 and isinstance(result, (float, int)):
            s.g[start] = result
            return 0
        if isinstance(result, list) and len(result) == self.size:
            for i in range(self.size):
                if not isinstance(result[i], (float, int)):
                    break
                s.g[start + i] = result[i]
            else:
                return 0
        values = np.asarray(result)
        if values.size != self.size or values.ndim > 1 or values.dtype.kind not in REAL:
            raise WrongResult(
                f"a constraint or invariant returned {self.size} real values before, but now "
                f"returned {result!r}"
            )
        values = values.reshape(-1)
        for i in range(self.size):
            s.g[start + i] = values[i]
        return 0

    def call_jacobian(self, s, piece, t, y):
        """Evaluate into this piece's part of `s.gy`."""
        i: cython.int
        entries: cython.p_double
        for i in range(self.n):
            self.y_data[i] = y[i]
        if s.gy_sparse:
            return self.call_entries(s, piece, t)
        result = self.jac(t, self.y, *self.args)
        dense = result.toarray() if hasattr(result, "toarray") else np.asarray(result)
        if dense.size != self.size * self.n or dense.dtype.kind not in REAL:
            raise WrongResult(
                f"jac of a constraint must return a real matrix of shape {(self.size, self.n)}, "
                f"got shape {dense.shape}"
            )
        dense = np.ascontiguousarray(dense, float).reshape(-1)
        entries = address(dense)
        for i in range(self.size * self.n):
            s.gy[s.slope_start[piece] + i] = entries[i]
        return OK

    def call_entries(self, s, piece, t):
        """Evaluate the stored entries; if there are more than before, their memory grows."""
        i: cython.int
        entries: cython.p_double
        found = self.slopes.values(t, self.y)
        if found is None:
            return NON_FINITE
        count: cython.longlong = len(found)
        if count != s.slope_start[piece + 1] - s.slope_start[piece]:
            s.make_room_for_slopes(piece, self.slopes.rows, self.slopes.columns)
        entries = address(found)
        for i in range(count):
            s.gy[s.slope_start[piece] + i] = entries[i]
        return OK


@cython.cfunc
@cython.with_gil
@cython.exceptval(check=False)
def python_piece(s: State, piece: cython.int, t: cython.double, y: cython.p_double) -> cython.int:
    """Call a `PythonPiece`."""
    try:
        cython.cast(PythonPiece, s.pieces[piece]).call(s, s.piece_start[piece], t, y)
    except BaseException as error:
        return pass_or_refuse(s, error, t, y, y)
    return OK


@cython.cfunc
@cython.with_gil
@cython.exceptval(check=False)
def python_piece_jacobian(
    s: State, piece: cython.int, t: cython.double, y: cython.p_double
) -> cython.int:
    """Call the Jacobian of a `PythonPiece`."""
    try:
        return cython.cast(PythonPiece, s.pieces[piece]).call_jacobian(s, piece, t, y)
    except BaseException as error:
        return pass_or_refuse(s, error, t, y, y)


def use_python_pieces(s: State):
    """Let the state call the Python pieces of its constraints."""
    s.call_piece = python_piece
    s.call_piece_jacobian = python_piece_jacobian


def call_c(s, function, piece, t, y, out):
    """Call ``void f(t, y, out)`` or ``void f(t, y, out, user_data)``."""
    if s.piece_data[piece] == -1:
        cython.cast(c_piece_t, function)(t, y, out)
    else:
        cython.cast(c_piece_data_t, function)(
            t, y, out, cython.cast(cython.p_void, s.piece_data[piece])
        )


def evaluate_constraints(s, t, y):
    """Evaluate all pieces into `s.g`, less the reference values of the invariants."""
    piece: cython.int
    i: cython.int
    status: cython.int
    probe: cython.double = 0.0
    for piece in range(s.n_pieces):
        if cython.compiled and s.piece_function[piece] != 0:
            call_c(s, s.piece_function[piece], piece, t, y, s.g + s.piece_start[piece])
        else:
            status = s.call_piece(s, piece, t, y)
            if status != OK:
                return status
    for i in range(s.n_constraints):
        s.g[i] -= s.g_reference[i]
        probe += 0.0 * s.g[i]
    return OK if probe == 0.0 else NON_FINITE


def linearise_constraints(s, t, y):
    """Evaluate the Jacobian of G at (t, y) into `s.gy`; `s.g` must hold the values there."""
    piece: cython.int
    status: cython.int
    if not s.pieces_have_jacobians:
        return difference_constraints(s, t, y)
    for piece in range(s.n_pieces):
        if cython.compiled and s.piece_jacobian[piece] != 0:
            call_c(s, s.piece_jacobian[piece], piece, t, y, s.gy + s.slope_start[piece])
        else:
            status = s.call_piece_jacobian(s, piece, t, y)
            if status != OK:
                return status
    return OK


def difference_constraints(s, t, y):
    """Forward differences of all constraints, with the floor of math (12)."""
    i: cython.int
    j: cython.int
    status: cython.int
    saved: cython.double
    increment: cython.double
    y_size: cython.double = largest_in_units(s, y)
    for i in range(s.n_constraints):
        s.g_saved[i] = s.g[i]
    for j in range(s.n):
        saved = y[j]
        increment = max(ROOT_EPS * fabs(saved), FLOOR_EPS * y_size * s.unit[j])
        if increment == 0.0:
            increment = ROOT_EPS * s.unit[j]
        y[j] = saved + increment
        increment = y[j] - saved
        status = evaluate_constraints(s, t, y)
        if status == NON_FINITE:           # the other side may be in the domain
            y[j] = saved - increment
            increment = y[j] - saved
            status = evaluate_constraints(s, t, y)
        y[j] = saved
        if status != OK:
            return status
        for i in range(s.n_constraints):
            s.gy[i * s.n + j] = (s.g[i] - s.g_saved[i]) / increment
    for i in range(s.n_constraints):
        s.g[i] = s.g_saved[i]
    return OK


# --- queries, which write into their own memory -----------------------------------------------


def constraints_at(s: State, t, y):
    """Return a status and the constraints' residual at (t, y)."""
    status: cython.int
    g: cython.p_double = s.g
    point, values = np.array(y, float), np.zeros(s.n_constraints)
    s.g = address(values)
    status = evaluate_constraints(s, t, address(point))
    s.g = g
    return status, values


def jacobian_of_constraints_at(s: State, t, y):
    """Return a status and the constraints' Jacobian at (t, y), one row per constraint."""
    status: cython.int
    g: cython.p_double = s.g
    g_saved: cython.p_double = s.g_saved
    gy: cython.p_double = s.gy
    point, slopes = np.array(y, float), np.zeros(len(s.array("gy")))
    values, saved = np.zeros(s.n_constraints), np.zeros(s.n_constraints)
    s.g, s.g_saved, s.gy = address(values), address(saved), address(slopes)
    status = evaluate_constraints(s, t, address(point))
    if status == OK:
        status = linearise_constraints(s, t, address(point))
    s.g, s.g_saved = g, g_saved
    if len(slopes) == len(s.array("gy")):
        s.gy = gy
    else:                                  # the state has moved to a larger array
        slopes = s.array("gy").copy()
    return status, s.as_slopes(slopes)


def values_of_c(function: cython.longlong, data: cython.longlong, size, t, y):
    """Call a C function of (t, y) that has `size` values."""
    point, values = np.array(y, float), np.zeros(size)
    if data == -1:
        cython.cast(c_piece_t, function)(t, address(point), address(values))
    else:
        cython.cast(c_piece_data_t, function)(
            t, address(point), address(values), cython.cast(cython.p_void, data)
        )
    return values
