"""Residual and Jacobian at any point, computed by the functions of a state.

`residual_at`, `next_change` and `weighted_size` are queries: they count what they evaluate and
otherwise leave the state unchanged. `move_to` and `jacobian_at` write into it; they are for a state
that is about to begin, or one made for the purpose.
"""

import cython
import numpy as np

if not cython.compiled:
    from tether._core.adapters import evaluate
    from tether._core.arrays import address, doubles_of
    from tether._core.codes import MAX_NORM, NO_CONVERGENCE, OF_Y, OF_YP, OK
    from tether._core.linear import assemble_and_factor, solve_scaled
    from tether._core.norms import set_weights, weighted_norm
    from tether._core.state import State

# Most unknowns for full matrices; beyond, decompositions take minutes, and this stands for the
# matrix.
MOST_FULL = 1500
UNKNOWN = np.full((1, 1), np.nan)


def move_to(s: State, t, y, yp):
    """Make (t, y, yp) the state's point, and set the weights."""
    s.t = t
    s.array("y")[:] = y
    s.array("yp")[:] = yp
    s.array("phi")[: s.n] = y
    return set_weights(s)


def residual_at(s: State, t, y, yp):
    """Return a status and the residual."""
    status: cython.int
    y, yp, r = np.array(y, float), np.array(yp, float), np.zeros(s.n)
    status = evaluate(s, t, address(y), address(yp), address(r))
    return status, r


def jacobian_at(s: State, t, y, yp, r=None):
    """Evaluate the state's matrices; return a status, F_y and F_y'.

    Differences need weights (`move_to`). `r` is the residual at the point, evaluated here if not
    given. Sparse matrices of very many unknowns are not made full: the status is then
    NO_CONVERGENCE.
    """
    status = matrices_at(s, t, y, yp, r)
    if s.matrix.has_no_entries:
        return NO_CONVERGENCE, UNKNOWN, UNKNOWN
    fy, fyp = s.matrix.get(OF_Y), s.matrix.get(OF_YP)
    if status == OK and hasattr(fy, "toarray") and s.n > MOST_FULL:
        return NO_CONVERGENCE, UNKNOWN, UNKNOWN
    return status, full(fy), full(fyp)


def forget_fyp(s: State):
    """Determine the next F_y' from scratch, even if all earlier ones were equal.

    In a run, failed steps show that F_y' has changed; a query has no steps. An F_y' that is known
    to be constant stays.
    """
    if not s.fyp_known:
        s.fyp_exists = s.fyp_constant = False


def matrices_at(s: State, t, y, yp, r=None):
    """Evaluate the state's matrices and leave them there; return a status."""
    status: cython.int = OK
    s.array("y")[:] = y
    s.array("yp")[:] = yp
    if r is None:
        status = evaluate(s, t, s.y, s.yp, s.r)
    else:
        s.array("r")[:] = r
    if status == OK:
        s.njev += 1
        status = s.jacobian(s, t, s.y, s.yp)
        s.jacobian_exists = status == OK
        s.jacobian_step = s.steps
    return status


def full(matrix):
    """Copy a matrix, however it is stored, to a two-dimensional array."""
    return matrix.toarray() if hasattr(matrix, "toarray") else np.array(matrix)


def next_change(s: State):
    """Return a status and Newton's next change of y at the current point, with the last factors."""
    i: cython.int
    n: cython.int = s.n
    status: cython.int
    memory = np.zeros(3 * n)               # y, y' and the change, in one
    if cython.compiled:
        y: cython.p_double = address(memory)
        yp: cython.p_double = y + n
        change: cython.p_double = yp + n
    else:
        y, yp, change = np.split(memory, 3)
    for i in range(n):
        y[i] = s.phi[i]
        yp[i] = s.yp_n[i]
    status = evaluate(s, s.t, y, yp, change)
    if status == OK:
        solve_scaled(s, change)
    return status, memory[2 * n :]


def weighted_size(s: State, v):
    """Largest component of a vector in units of the tolerance."""
    vector = doubles_of(v, s.n)
    return weighted_norm(s, address(vector), s.weight, MAX_NORM)


def damped_size(s: State, v, h):
    """Largest component, in tolerances, that a step of implicit Euler leaves of a change.

    The result is (iteration matrix)^-1 F_y' / h times the vector, in which stiff parts are damped.
    NaN if there are no factors. The state's own factors are lost.
    """
    i: cython.int
    status: cython.int
    vector, left = np.array(v, float), np.zeros(s.n)
    x: cython.p_double = address(left)
    s.cj = s.direction / h
    status = assemble_and_factor(s)
    s.cj_factored = 0.0
    if status != OK:
        return np.nan
    s.matrix.add_product(OF_YP, address(vector), x)
    for i in range(s.n):
        x[i] *= s.cj
    solve_scaled(s, x)
    return weighted_norm(s, x, s.weight, MAX_NORM)


def repeat(s: State, t, y, yp, residuals, jacobians):
    """Evaluate many times in one call, for benchmarks; y[0] differs from call to call."""
    i: cython.longlong
    n_residuals: cython.longlong = residuals
    n_jacobians: cython.longlong = jacobians
    time: cython.double = t
    start: cython.double
    s.array("y")[:] = y
    s.array("yp")[:] = yp
    start = s.y[0]
    for i in range(n_residuals):
        s.y[0] = start * (1.0 + 1e-15 * (i & 7))
        evaluate(s, time, s.y, s.yp, s.r)
    for i in range(n_jacobians):
        s.y[0] = start * (1.0 + 1e-15 * (i & 7))
        s.jacobian(s, time, s.y, s.yp)
