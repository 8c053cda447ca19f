"""Residual and Jacobian at a point of one's choice, through the state's own seams."""

import cython
import numpy as np

if not cython.compiled:
    from tether._core.adapters import evaluate
    from tether._core.codes import OK
    from tether._core.norms import set_weights
    from tether._core.state import State


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
    s.array("y")[:] = y
    s.array("yp")[:] = yp
    status = evaluate(s, t, s.y, s.yp, s.r)
    return status, s.array("r").copy()


def jacobian_at(s: State, t, y, yp, r=None):
    """Return a status, F_y and F_y' (weights must have been set by `move_to`).

    `r` is the residual at the point, evaluated here when left out.
    """
    status: cython.int = OK
    n: cython.int = s.n
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
    return (
        status,
        np.array(s.array("fy").reshape(n, n).T),
        np.array(s.array("fyp").reshape(n, n).T),
    )


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
