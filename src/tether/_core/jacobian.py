"""F_y and F_y' by forward differences.

The two are kept apart, unlike in DASSL and IDA, which difference F_y + cj F_y' in one
sweep: a change of the step then costs a factorisation but no residual, and F_y', which in
most models never changes, is differenced twice and then left alone.
"""

import cython
from cython.cimports.libc.math import fabs

if not cython.compiled:
    from tether._core.adapters import evaluate
    from tether._core.codes import OK

ROOT_EPS = cython.declare(cython.double, 1.4901161193847656e-08)  # u^(1/2)
FLOOR_EPS = cython.declare(cython.double, 1.8189894035458565e-12)  # u^(3/4)
CUBE_ROOT_EPS = cython.declare(cython.double, 6.055454452393343e-06)  # u^(1/3)
UNCHANGED = cython.declare(cython.double, 1e-4)


def use_differences(s):
    """Install differences as the state's Jacobian."""
    s.jacobian = difference_jacobian


def difference_jacobian(s, t, y, yp):
    """Difference the residual around (t, y, yp), whose residual is already in `s.r`."""
    status: cython.int = OK
    if not s.fyp_known and not (s.fyp_constant and s.newton_failures == 0):
        status = difference_fyp(s, t, y, yp)
    if status == OK:
        status = difference_fy(s, t, y, yp, largest(y, s.n))
    return status


def difference_fy(s, t, y, yp, y_size):
    """Difference with respect to y, math (12).

    The increment has a floor relative to the largest unknown: a component that is zero with
    a tiny tolerance would otherwise be moved by less than the round-off of the equations
    it stands in.
    """
    n: cython.int = s.n
    i: cython.int
    j: cython.int
    status: cython.int
    saved: cython.double
    increment: cython.double
    size: cython.double
    for j in range(n):
        saved = y[j]
        size = max(fabs(saved), fabs(s.h * yp[j]))
        size = max(size, min(1.0 / s.weight[j], y_size))
        increment = max(ROOT_EPS * size, FLOOR_EPS * y_size)
        if increment == 0.0:
            increment = ROOT_EPS
        if s.h * yp[j] < 0.0:
            increment = -increment
        y[j] = saved + increment
        increment = y[j] - saved
        status = evaluate(s, t, y, yp, s.scratch)
        y[j] = saved
        if status != OK:
            return status
        for i in range(n):
            s.fy[j * n + i] = (s.scratch[i] - s.r[i]) / increment
    return OK


def difference_fyp(s, t, y, yp):
    """Difference with respect to y', math (13), and notice when F_y' does not change.

    Residuals are almost always linear in y', so the increment may be large.
    """
    n: cython.int = s.n
    i: cython.int
    j: cython.int
    status: cython.int
    saved: cython.double
    increment: cython.double
    entry: cython.double
    yp_size: cython.double = largest(yp, n)
    change: cython.double = 0.0
    size: cython.double = 0.0
    if yp_size == 0.0:
        yp_size = 1.0
    for j in range(n):
        saved = yp[j]
        increment = CUBE_ROOT_EPS * max(fabs(saved), min(1.0 / fabs(s.weight[j] * s.h), yp_size))
        yp[j] = saved + increment
        increment = yp[j] - saved
        status = evaluate(s, t, y, yp, s.scratch)
        yp[j] = saved
        if status != OK:
            return status
        for i in range(n):
            entry = (s.scratch[i] - s.r[i]) / increment
            change = max(change, fabs(entry - s.fyp[j * n + i]))
            size = max(size, fabs(entry))
            s.fyp[j * n + i] = entry
    s.fyp_constant = s.fyp_exists and change <= UNCHANGED * size
    s.fyp_exists = True
    return OK


def largest(v, n):
    """Largest absolute value."""
    i: cython.int
    size: cython.double = 0.0
    for i in range(n):
        size = max(size, fabs(v[i]))
    return size
