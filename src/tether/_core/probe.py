"""Residual and Jacobian at a point of one's choice, through the state's own seams.

`residual_at`, `change_left` and `weighted_size` are queries: they count what they evaluate and
leave all else of the state alone. `move_to` and `jacobian_at` write into it. They are for a state
that is about to begin, and for one that the caller has made for the purpose.
"""

import cython
import numpy as np

if not cython.compiled:
    from tether._core.adapters import evaluate
    from tether._core.arrays import address
    from tether._core.codes import MAX_NORM, NO_CONVERGENCE, OF_Y, OF_YP, OK
    from tether._core.linear import assemble_and_factor, solve_scaled
    from tether._core.norms import set_weights, weighted_norm
    from tether._core.state import State

# Of more unknowns a decomposition of full matrices takes minutes: this stands for them.
MOST_FULL = 1500
UNKNOWN = np.full((1, 1), np.nan)


def move_to(s: State, t, y, yp):
    """Make (t, y, yp) the state's point, with weights to match."""
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

    Differences need weights (`move_to`). `r` is the residual at the point, evaluated here when left
    out. Sparse matrices of very many unknowns are not made full: the status is NO_CONVERGENCE.
    """
    status = matrices_at(s, t, y, yp, r)
    if s.matrix.follows:
        return NO_CONVERGENCE, UNKNOWN, UNKNOWN
    fy, fyp = s.matrix.get(OF_Y), s.matrix.get(OF_YP)
    if status == OK and hasattr(fy, "toarray") and s.n > MOST_FULL:
        return NO_CONVERGENCE, UNKNOWN, UNKNOWN
    return status, full(fy), full(fyp)


def forget_slopes(s: State):
    """Let the next F_y' be found anew, even if those before were all the same.

    Steps that fail show that it is no longer so; a query has none. What is known for certain stays.
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
    """Copy a matrix, however it is stored, to an array of two dimensions."""
    return matrix.toarray() if hasattr(matrix, "toarray") else np.array(matrix)


def change_left(s: State):
    """Return a status and Newton's next change of y where the run stands, with its last factors."""
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
    vector: cython.double[::1] = np.ascontiguousarray(v)
    if cython.compiled:
        return weighted_norm(s, cython.address(vector[0]), s.weight, MAX_NORM)
    return weighted_norm(s, vector, s.weight, MAX_NORM)


def damped_size(s: State, v, h):
    """Largest component, in tolerances, of what a step of implicit Euler leaves of a change.

    That is F_y' / h times the vector, divided by the iteration matrix: stiff parts are damped by
    it. NaN if there are no factors. The state's own factors are gone afterwards.
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
    """Evaluate many times over in one go, as benchmarks do; y[0] differs from call to call."""
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
