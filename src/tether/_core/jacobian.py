"""F_y and F_y' by forward differences, or backward ones where F ends.

The two are kept apart, unlike in DASSL and IDA, which difference F_y + cj F_y' in one
sweep: a change of the step then costs a factorisation but no residual, and F_y', which in
most models never changes, is differenced twice and then left alone.
"""

import cython
from cython.cimports.libc.math import fabs

if not cython.compiled:
    from tether._core.adapters import evaluate
    from tether._core.codes import NON_FINITE, OK

ROOT_EPS = cython.declare(cython.double, 1.4901161193847656e-08)  # u^(1/2)
FLOOR_EPS = cython.declare(cython.double, 1.8189894035458565e-12)  # u^(3/4)
CUBE_ROOT_EPS = cython.declare(cython.double, 6.055454452393343e-06)  # u^(1/3)
EPS = cython.declare(cython.double, 2.220446049250313e-16)
CLEAR = cython.declare(cython.double, 1e5)
LARGER = cython.declare(cython.double, 1e6)
ENLARGEMENTS = cython.declare(cython.int, 3)
USUAL = cython.declare(cython.double, 1e3)
TOO_FAR = cython.declare(cython.double, 1e3)
SEEN = cython.declare(cython.double, 1e4)
UNCHANGED = cython.declare(cython.double, 1e-4)


def use_differences(s):
    """Install differences as the state's Jacobian."""
    s.jacobian = difference_jacobian
    s.slopes = difference_fyp


def difference_jacobian(s, t, y, yp):
    """Difference the residual around (t, y, yp), whose residual is already in `s.r`."""
    y_size: cython.double = largest_in_units(s, y)
    status: cython.int = difference_fy(s, t, y, yp, y_size)
    if status == OK:
        status = refine_fy(s, t, y, yp, y_size)
    if status == OK and not s.fyp_known and not (s.fyp_constant and s.newton_failures == 0):
        estimate_noise(s, y)
        status = s.slopes(s, t, y, yp)
    return status


def difference_fy(s, t, y, yp, y_size):
    """Difference with respect to y, math (12).

    The increment has a floor relative to the largest unknown, each in its own unit: a component
    that is zero with a tiny tolerance would otherwise be moved by less than the round-off of the
    equations it stands in.
    """
    n: cython.int = s.n
    i: cython.int
    j: cython.int
    status: cython.int
    saved: cython.double
    increment: cython.double
    size: cython.double
    beside: cython.double
    for j in range(n):
        saved = y[j]
        beside = y_size * s.unit[j]
        size = max(fabs(saved), fabs(s.h * yp[j]))
        size = max(size, min(1.0 / s.weight[j], beside))
        increment = max(ROOT_EPS * size, FLOOR_EPS * beside)
        if s.y_norm <= 1.0 or increment == 0.0:    # all are as good as zero and tell nothing
            increment = max(increment, ROOT_EPS * usual_size(s, j))
        if s.h * yp[j] < 0.0:
            increment = -increment
        y[j] = saved + increment
        increment = y[j] - saved
        status = evaluate(s, t, y, yp, s.scratch)
        if status == NON_FINITE:           # the other side may be within the domain
            y[j] = saved - increment
            increment = y[j] - saved
            status = evaluate(s, t, y, yp, s.scratch)
        y[j] = saved
        if status != OK:
            return status
        for i in range(n):
            s.fy[j * n + i] = (s.scratch[i] - s.r[i]) / increment
    return OK


def usual_size(s, j):
    """Size of an unknown by its tolerances alone: 1 for those by default."""
    if s.atol[j] == 0.0:
        return 1.0
    return USUAL * s.atol[j] / s.rtol[j] if s.rtol[j] > 0.0 else USUAL * USUAL * USUAL * s.atol[j]


def refine_fy(s, t, y, yp, y_size):
    """Difference again where the floor was far above a component's own size.

    It is too much where the tolerances do not tell the units. Entries are taken whose change stands
    out from the round-off of their equation, now that its terms are known.
    """
    n: cython.int = s.n
    i: cython.int
    j: cython.int
    status: cython.int
    saved: cython.double
    increment: cython.double
    change: cython.double
    known: cython.bint = False
    for j in range(n):
        saved = y[j]
        increment = ROOT_EPS * max(fabs(saved), fabs(s.h * yp[j]))
        if increment == 0.0 or FLOOR_EPS * y_size * s.unit[j] < TOO_FAR * increment:
            continue
        if not known:
            estimate_noise(s, y)
            known = True
        if s.h * yp[j] < 0.0:
            increment = -increment
        y[j] = saved + increment
        increment = y[j] - saved
        status = evaluate(s, t, y, yp, s.scratch)
        y[j] = saved
        if status == NON_FINITE:
            continue
        if status != OK:
            return status
        for i in range(n):
            change = s.scratch[i] - s.r[i]
            if fabs(change) > SEEN * s.noise[i]:
                s.fy[j * n + i] = change / increment
    return OK


def estimate_noise(s, y):
    """Round-off of each residual, from its value and the terms that F_y shows in it."""
    n: cython.int = s.n
    i: cython.int
    j: cython.int
    for i in range(n):
        s.noise[i] = EPS * fabs(s.r[i])
    for j in range(n):
        for i in range(n):
            s.noise[i] += EPS * fabs(s.fy[j * n + i] * y[j])


def difference_fyp(s, t, y, yp):
    """Difference with respect to y', math (13), and notice when F_y' does not change.

    Near a steady state y' says nothing about the size of the terms it stands with, and an
    increment in proportion to it would drown in their round-off. Such a column is differenced
    again with larger increments: residuals are almost always linear in y'.
    """
    n: cython.int = s.n
    j: cython.int
    trial: cython.int
    status: cython.int
    increment: cython.double
    size: cython.double
    yp_size: cython.double = largest_in_units(s, yp)
    s.fyp_constant = s.fyp_exists
    for j in range(n):
        size = 1.0 / fabs(s.weight[j] * s.h)
        if yp_size > 0.0:
            size = min(size, yp_size * s.unit[j])
        increment = CUBE_ROOT_EPS * max(fabs(yp[j]), size)
        status = move_derivative(s, t, y, yp, j, increment)
        if status == NON_FINITE:
            increment = -increment
            status = move_derivative(s, t, y, yp, j, increment)
        for trial in range(ENLARGEMENTS):
            if status != OK or not drowned(s):
                break
            status = move_derivative(s, t, y, yp, j, LARGER * increment)
            if status == OK:
                increment = LARGER * increment
            elif status == NON_FINITE:     # too far: back to what there was
                status = move_derivative(s, t, y, yp, j, increment)
                break
        if status != OK:
            return status
        take_column(s, j, increment)
    s.fyp_exists = True
    return OK


def move_derivative(s, t, y, yp, j, increment):
    """Evaluate the residual with one component of y' moved."""
    saved: cython.double = yp[j]
    status: cython.int
    yp[j] = saved + increment
    status = evaluate(s, t, y, yp, s.scratch)
    yp[j] = saved
    return status


def drowned(s):
    """Tell whether there is no row in which the change stands out from the round-off."""
    i: cython.int
    for i in range(s.n):
        if fabs(s.scratch[i] - s.r[i]) > CLEAR * s.noise[i]:
            return False
    return True


def take_column(s, j, increment):
    """Turn the moved residual into a column of F_y' and compare it with the old one."""
    n: cython.int = s.n
    i: cython.int
    entry: cython.double
    change: cython.double = 0.0
    size: cython.double = 0.0
    for i in range(n):
        entry = (s.scratch[i] - s.r[i]) / increment
        change = max(change, fabs(entry - s.fyp[j * n + i]))
        size = max(size, fabs(entry))
        s.fyp[j * n + i] = entry
    if change > UNCHANGED * size:
        s.fyp_constant = False


def largest_in_units(s, v):
    """Largest absolute value of a change of the unknowns, each in its own unit."""
    i: cython.int
    size: cython.double = 0.0
    for i in range(s.n):
        size = max(size, fabs(v[i]) / s.unit[i])
    return size


def largest(v, n):
    """Largest absolute value."""
    i: cython.int
    size: cython.double = 0.0
    for i in range(n):
        size = max(size, fabs(v[i]))
    return size
