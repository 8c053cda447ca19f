"""F_y and F_y' by forward differences, or backward ones where F is undefined ahead.

They are kept apart, unlike in DASSL and IDA, which difference F_y + cj F_y' in one sweep: a change
of the step then costs a factorisation but no residual, and F_y', which in most models never
changes, is differenced twice and then left alone.
"""

import cython
from cython.cimports.libc.math import fabs

if not cython.compiled:
    from tether._core.adapters import evaluate
    from tether._core.codes import NO_CONVERGENCE, NON_FINITE, OF_Y, OF_YP, OK
    from tether._core.colours import (
        difference_groups,
        estimate_noise,
        group_columns,
        grouping_pays,
        is_empty,
        is_lost_in_noise,
        move_group,
        note_rows,
        take_column,
        use_colours,
    )
    from tether._core.sparsity import difference_sparse, look_for_absent

ROOT_EPS = cython.declare(cython.double, 1.4901161193847656e-08)  # u^(1/2)
FLOOR_EPS = cython.declare(cython.double, 1.8189894035458565e-12)  # u^(3/4)
CUBE_ROOT_EPS = cython.declare(cython.double, 6.055454452393343e-06)  # u^(1/3)
# Factor by which increments are enlarged, and how many times.
ENLARGEMENT = cython.declare(cython.double, 1e6)
MAX_ENLARGEMENTS = cython.declare(cython.int, 3)
# The ratio rtol / atol by default.
DEFAULT_RATIO = cython.declare(cython.double, 1e3)
# A floor is too high if it is this many times an unknown's own increment; a change is significant
# if it is this many times the round-off of its equation.
FLOOR_TOO_HIGH = cython.declare(cython.double, 1e3)
SIGNIFICANT = cython.declare(cython.double, 1e4)


def use_differences(s):
    """Install differences as the state's Jacobian."""
    s.jacobian = difference_jacobian
    s.slopes = difference_fyp
    use_colours(s)


def difference_jacobian(s, t, y, yp):
    """Difference the residual around (t, y, yp), whose residual is already in `s.r`."""
    y_size: cython.double = largest_in_units(s, y)
    status: cython.int
    choose_increments(s, y, yp, y_size)
    status = difference_fy(s, t, y, yp)
    if status == OK:
        status = refine_fy(s, t, y, yp, y_size)
    if status == OK and not s.fyp_known and not (s.fyp_constant and s.newton_failures == 0):
        estimate_noise(s, y)
        status = s.slopes(s, t, y, yp)
    return status


def choose_increments(s, y, yp, y_size):
    """Set the increments of y, math (12).

    They have a floor relative to the largest unknown, each in its own unit: a component that is
    zero with a tiny tolerance would otherwise be moved by less than the round-off of its equations.
    """
    j: cython.int
    increment: cython.double
    size: cython.double
    beside: cython.double
    for j in range(s.n):
        beside = y_size * s.unit[j]
        size = max(fabs(y[j]), fabs(s.h * yp[j]))
        size = max(size, min(1.0 / s.weight[j], beside))
        increment = max(ROOT_EPS * size, FLOOR_EPS * beside)
        if s.y_norm <= 1.0 or increment == 0.0:    # all are practically zero and give no scale
            increment = max(increment, ROOT_EPS * usual_size(s, j))
        s.delta[j] = (y[j] - increment if s.h * yp[j] < 0.0 else y[j] + increment) - y[j]


def difference_fy(s, t, y, yp):
    """Difference with respect to y, by groups of columns if there are any, else one by one."""
    j: cython.int
    status: cython.int
    if grouping_pays(s, s.fy_colours):
        status = difference_groups(s, t, y, yp, False)
        if status <= OK:
            return status
    status = difference_sparse(s, t, y, yp, False)
    if status <= OK:
        return status
    for j in range(s.n):
        status = move(s, t, y, yp, y, j)
        if status == NON_FINITE:           # the other side may be in the domain
            s.delta[j] = (y[j] - s.delta[j]) - y[j]
            status = move(s, t, y, yp, y, j)
        if status != OK:
            return status
        note_rows(s, OF_Y, j)
        take_column(s, OF_Y, OF_Y, j)
    s.fy_colours = group_columns(s, OF_Y, s.fy_colour)
    return OK


def move(s, t, y, yp, v, j):
    """Evaluate the residual with component j of `v`, which is `y` or `yp`, moved."""
    saved: cython.double = v[j]
    status: cython.int
    v[j] = saved + s.delta[j]
    status = evaluate(s, t, y, yp, s.scratch)
    v[j] = saved
    return status


def usual_size(s, j):
    """Size of an unknown according to its tolerances alone: 1 with the default ones."""
    if s.atol[j] == 0.0:
        return 1.0
    return (
        DEFAULT_RATIO * s.atol[j] / s.rtol[j] if s.rtol[j] > 0.0
        else DEFAULT_RATIO * DEFAULT_RATIO * DEFAULT_RATIO * s.atol[j]
    )


def refine_fy(s, t, y, yp, y_size):
    """Repeat a difference where the floor was far above a component's own size.

    The floor is too high where the tolerances do not reflect the units. Now that the terms of the
    equations are known, entries are accepted whose change exceeds the round-off of their equation.
    """
    n: cython.int = s.n
    i: cython.int
    j: cython.int
    count: cython.int
    status: cython.int
    saved: cython.double
    increment: cython.double
    change: cython.double
    known: cython.bint = False
    grown: cython.bint = False
    if s.pattern_given and s.fy_colours > 0:
        return refine_groups(s, t, y, yp, y_size)
    for j in range(n):
        saved = y[j]
        increment = ROOT_EPS * max(fabs(saved), fabs(s.h * yp[j]))
        if increment == 0.0 or FLOOR_EPS * y_size * s.unit[j] < FLOOR_TOO_HIGH * increment:
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
        count = 0
        for i in range(n):
            change = s.scratch[i] - s.r[i]
            if fabs(change) > SIGNIFICANT * s.noise[i]:
                s.column_rows[count] = i
                s.column_values[count] = change / increment
                count += 1
        s.matrix.put_entries(OF_Y, j, s.column_rows, s.column_values, count)
        if s.matrix.mark_rows(OF_Y, j, s.column_rows, count):
            grown = True
    if grown:
        s.fy_colours = group_columns(s, OF_Y, s.fy_colour)
    return OK


def refine_groups(s, t, y, yp, y_size):
    """Do the same as `refine_fy` with known groups of columns."""
    i: cython.int
    j: cython.int
    k: cython.int
    group: cython.int
    count: cython.int
    seen: cython.int
    status: cython.int
    increment: cython.double
    change: cython.double
    any_left: cython.bint = False
    for j in range(s.n):
        increment = ROOT_EPS * max(fabs(y[j]), fabs(s.h * yp[j]))
        s.delta[j] = 0.0                       # nothing to refine
        if increment != 0.0 and FLOOR_EPS * y_size * s.unit[j] >= FLOOR_TOO_HIGH * increment:
            s.delta[j] = (y[j] - increment if s.h * yp[j] < 0.0 else y[j] + increment) - y[j]
            any_left = True
    if not any_left:
        return OK
    estimate_noise(s, y)
    for group in range(s.fy_colours):
        status = move_group(s, t, y, yp, y, s.fy_colour, group)
        if status == NON_FINITE:
            continue
        if status != OK:
            return status
        for j in range(s.n):
            if s.fy_colour[j] != group or s.delta[j] == 0.0:
                continue
            seen = 0
            count = s.matrix.rows_of(OF_Y, j, s.column_rows)
            for k in range(count):
                i = s.column_rows[k]
                change = s.scratch[i] - s.r[i]
                if fabs(change) > SIGNIFICANT * s.noise[i]:
                    s.column_rows[seen] = i
                    s.column_values[seen] = change / s.delta[j]
                    seen += 1
            s.matrix.put_entries(OF_Y, j, s.column_rows, s.column_values, seen)
    return OK


def difference_fyp(s, t, y, yp):
    """Difference with respect to y', math (13), and notice when F_y' does not change.

    Near a steady state y' says nothing about the size of the terms in which it occurs, and an
    increment in proportion to it would be lost in their round-off. Such a column is differenced
    again with larger increments: residuals are almost always linear in y'.
    """
    status: cython.int = NO_CONVERGENCE
    s.fyp_constant = s.fyp_exists
    choose_slope_increments(s, yp)
    if grouping_pays(s, s.fyp_colours):
        status = difference_groups(s, t, y, yp, True)
    if status > OK:
        choose_slope_increments(s, yp)
        status = difference_sparse(s, t, y, yp, True)
    if status > OK:
        choose_slope_increments(s, yp)
        status = difference_slopes(s, t, y, yp)
    s.fyp_exists = status == OK
    return status


def difference_slopes(s, t, y, yp):
    """Difference with respect to y' column by column; those in which nothing changes come last."""
    j: cython.int
    absent: cython.int = 0
    status: cython.int
    seen: cython.int
    for j in range(s.n):
        status = move_slope(s, t, y, yp, j)
        if status != OK:
            return status
        if is_empty(s, OF_YP, j):
            absent += 1
            continue
        if is_lost_in_noise(s, OF_YP, j):
            status = move_slope_farther(s, t, y, yp, j)
            if status != OK:
                return status
        take_slope(s, j)
    status = look_for_absent(s, t, y, yp) if absent > 1 else NO_CONVERGENCE
    if status < OK:
        return status
    for j in range(s.n):
        if is_empty(s, OF_YP, j):
            seen = move_slope_farther(s, t, y, yp, j) if status > OK else OK
            if seen != OK:
                return seen
            take_slope(s, j)
    s.fyp_colours = group_columns(s, OF_YP, s.fyp_colour)
    return OK


def move_slope(s, t, y, yp, j):
    """Evaluate the residual with one component of y' moved, and mark the rows that change."""
    status: cython.int = move(s, t, y, yp, yp, j)
    if status == NON_FINITE:
        s.delta[j] = -s.delta[j]
        status = move(s, t, y, yp, yp, j)
    if status == OK:
        note_rows(s, OF_YP, j)
    return status


def move_slope_farther(s, t, y, yp, j):
    """Move one component of y' farther until the change exceeds the round-off."""
    trial: cython.int
    status: cython.int = OK
    near: cython.double
    for trial in range(MAX_ENLARGEMENTS):
        near = s.delta[j]
        s.delta[j] = ENLARGEMENT * near
        status = move(s, t, y, yp, yp, j)
        if status == NON_FINITE:           # too far: go back
            s.delta[j] = near
            return move_slope(s, t, y, yp, j)
        if status != OK:
            break
        note_rows(s, OF_YP, j)
        if not is_lost_in_noise(s, OF_YP, j):
            break
    return status


def take_slope(s, j):
    """Take a column of F_y' from the moved residual, and notice whether it has changed."""
    if take_column(s, OF_YP, OF_YP, j):
        s.fyp_constant = False


def choose_slope_increments(s, yp):
    """Set the increments of y', math (13)."""
    j: cython.int
    size: cython.double
    yp_size: cython.double = largest_in_units(s, yp)
    for j in range(s.n):
        size = 1.0 / fabs(s.weight[j] * s.h)
        if yp_size > 0.0:
            size = min(size, yp_size * s.unit[j])
        s.delta[j] = CUBE_ROOT_EPS * max(fabs(yp[j]), size)


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
