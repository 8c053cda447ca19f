"""Differences of many columns at once, where the matrix has few entries in every row.

Columns that share no row are moved together (Curtis, Powell and Reid 1974). Earlier differences
have shown the rows of a column: a residual that does not depend on an unknown does not change by a
single bit. As it may depend on it later, every matrix found in groups must predict one more
residual, with all unknowns moved; if it does not, the rows are determined again.
"""

import cython
import numpy as np
from cython.cimports.libc.math import fabs

if not cython.compiled:
    from tether._core.adapters import evaluate
    from tether._core.codes import NO_CONVERGENCE, OF_Y, OF_YP, OK
    from tether._core.state import State, integers, open_block, take

# A change must exceed the round-off by these factors: to be trusted in a column, and to count as
# unexpected.
TRUSTED_CHANGE = cython.declare(cython.double, 1e5)
UNEXPECTED_CHANGE = cython.declare(cython.double, 1e2)
# Relative error that the prediction of a change may have.
PREDICTION_RTOL = cython.declare(cython.double, 1e-5)
ENLARGEMENT = cython.declare(cython.double, 1e6)
MAX_ENLARGEMENTS = cython.declare(cython.int, 3)
UNCHANGED = cython.declare(cython.double, 1e-4)
EPS = cython.declare(cython.double, 2.220446049250313e-16)


def use_colours(s):
    """Allocate the memory for groups of columns of F_y and F_y'; no groups are known yet."""
    n = s.n
    s.matrix.open_patterns()
    s.fy_colour = integers(s, "fy_colour", np.zeros(n, np.intc))
    s.fyp_colour = integers(s, "fyp_colour", np.zeros(n, np.intc))
    open_block(s, 4 * n)
    s.delta = take(s, "delta", n)
    s.unmoved = take(s, "unmoved", n)
    s.expected = take(s, "expected", n)
    s.expected_size = take(s, "expected_size", n)
    s.fy_colours = s.fyp_colours = 0
    s.fy_sparse = s.fyp_sparse = True
    s.calls_saved = 0
    s.random_state = 1
    s.pattern_given = False
    return 0


def use_patterns(s: State, fy, fyp):
    """Use the patterns of F_y and F_y' that the user gave."""
    for which, pattern in ((OF_Y, fy), (OF_YP, fyp)):
        if pattern is getattr(s.matrix, "pattern", None):
            s.matrix.fill_pattern(which)
        else:
            mark_columns(s, which, pattern.start, pattern.row)
    s.fy_colours = groups_of(s, OF_Y, fy, s.fy_colour, s.array("fy_colour"))
    s.fyp_colours = groups_of(s, OF_YP, fyp, s.fyp_colour, s.array("fyp_colour"))
    s.pattern_given = True


def mark_columns(s: State, which, starts, rows):
    """Copy the rows of each column from a pattern."""
    j: cython.int
    k: cython.int
    count: cython.int
    start: cython.int[::1] = starts
    row: cython.int[::1] = rows
    for j in range(s.n):
        count = start[j + 1] - start[j]
        for k in range(count):
            s.column_rows[k] = row[start[j] + k]
        s.matrix.set_rows(which, j, s.column_rows, count)


def groups_of(s, which, pattern, colour, groups):
    """Group the columns of a pattern, or take its earlier groups; return how many there are."""
    if pattern.groups is None:
        count = group_columns(s, which, colour)
        pattern.groups = count, groups.copy()
    groups[:] = pattern.groups[1]
    return pattern.groups[0]


def grouping_pays(s, colours):
    """Tell whether to difference in groups: for an iteration, if the columns form few groups.

    After a failed iteration patterns are not trusted. In total, attempts with groups that had to be
    given up may cost one matrix more than groups have saved. A pattern that the user gave holds
    until it is found to be wrong.
    """
    if s.pattern_given:
        return colours > 0
    return s.correcting and colours > 0 and s.newton_failures == 0 and s.calls_saved >= -s.n


def note_rows(s, pattern, j):
    """Mark the rows in which the moved residual of column `j` differs from the one in `s.r`."""
    s.matrix.mark_rows(pattern, j, s.column_rows, changed_rows(s))


def changed_rows(s):
    """List in `s.column_rows` where the moved residual differs from the one in `s.r`."""
    i: cython.int
    count: cython.int = 0
    for i in range(s.n):
        if s.scratch[i] != s.r[i]:
            s.column_rows[count] = i
            count += 1
    return count


def group_columns(s, pattern, colour):
    """Put every column into the first group that has none of its rows; return how many there are.

    Return zero if there are too many to save anything.
    """
    n: cython.int = s.n
    i: cython.int
    j: cython.int
    group: cython.int
    left: cython.int = n
    for j in range(n):
        colour[j] = -1
    for group in range(n // 2 - 1):
        for i in range(n):
            s.scratch[i] = 0.0             # 1 in the rows of this group's columns
        for j in range(n):
            if colour[j] < 0 and fits(s, pattern, j):
                colour[j] = group
                left -= 1
        if left == 0:
            return group + 1
    return 0


def fits(s, pattern, j):
    """Add a column's rows to the group unless one is taken; tell whether they were added."""
    k: cython.int
    if s.matrix.meets(pattern, j, s.scratch):
        return False
    for k in range(s.matrix.rows_of(pattern, j, s.column_rows)):
        s.scratch[s.column_rows[k]] = 1.0
    return True


def difference_groups(s, t, y, yp, slopes):
    """Difference by groups, with respect to y' for `slopes`, else to y.

    The increments are in `s.delta`. A positive status means that another way is needed.
    """
    status: cython.int
    colours: cython.int = s.fyp_colours if slopes else s.fy_colours
    s.calls_saved -= colours + 1
    if slopes:
        status = try_groups(s, t, y, yp, yp, OF_YP, OF_YP, s.fyp_colour, colours)
    else:
        status = try_groups(s, t, y, yp, y, OF_Y, OF_Y, s.fy_colour, colours)
    if status == OK:
        s.calls_saved += s.n
    return status


def try_groups(s, t, y, yp, v, which, pattern, colour, colours):
    """Difference with respect to `v` by groups, and check that the matrix predicts changes."""
    group: cython.int
    slopes: cython.bint = which == OF_YP
    status: cython.int = OK
    for group in range(colours):
        status = move_group(s, t, y, yp, v, colour, group)
        if status == OK and slopes:
            status = move_farther(s, t, y, yp, v, pattern, colour, group)
        if status != OK:
            break
        take_group(s, which, pattern, colour, group)
    if status == OK:
        if not slopes:
            estimate_noise(s, y)
        status = verify_matrix(s, t, y, yp, v, which, pattern)
    if slopes and status != OK:
        s.fyp_constant = False             # there is nothing to compare the next one with
    return status


def move_group(s, t, y, yp, v, colour, group):
    """Evaluate the residual with a group of unknowns moved."""
    j: cython.int
    status: cython.int
    for j in range(s.n):
        s.unmoved[j] = v[j]
        if colour[j] == group:
            v[j] += s.delta[j]
    status = evaluate(s, t, y, yp, s.scratch)
    for j in range(s.n):
        v[j] = s.unmoved[j]
    return status


def move_farther(s, t, y, yp, v, pattern, colour, group):
    """Move the columns of a group again, farther, whose change is lost in round-off."""
    j: cython.int
    trial: cython.int
    status: cython.int = OK
    any_lost: cython.bint
    for trial in range(MAX_ENLARGEMENTS):
        any_lost = False
        for j in range(s.n):
            if (colour[j] == group and not is_empty(s, pattern, j)
                    and is_lost_in_noise(s, pattern, j)):
                s.delta[j] *= ENLARGEMENT
                any_lost = True
        if not any_lost:
            break
        status = move_group(s, t, y, yp, v, colour, group)
        if status != OK:
            break
    return status


def is_empty(s, pattern, j):
    """Tell whether a column has no rows."""
    return s.matrix.rows_of(pattern, j, s.column_rows) == 0


def is_lost_in_noise(s, pattern, j):
    """Tell whether the change of a column exceeds the round-off in none of its rows."""
    i: cython.int
    k: cython.int
    for k in range(s.matrix.rows_of(pattern, j, s.column_rows)):
        i = s.column_rows[k]
        if fabs(s.scratch[i] - s.r[i]) > TRUSTED_CHANGE * s.noise[i]:
            return False
    return True


def take_group(s, which, pattern, colour, group):
    """Turn the moved residual into the columns of a group."""
    j: cython.int
    for j in range(s.n):
        if colour[j] == group:
            if take_column(s, which, pattern, j) and which == OF_YP:
                s.fyp_constant = False


def take_column(s, which, pattern, j):
    """Turn the moved residual into a column; tell whether the column has changed."""
    return s.matrix.take_difference(
        which, pattern, j, s.scratch, s.r, s.delta[j], UNCHANGED, s.column_rows, s.column_values
    )


def verify_matrix(s, t, y, yp, v, which, pattern):
    """Return NO_CONVERGENCE if the matrix does not predict the effect of moving all unknowns.

    Each is moved by a random share of its increment: with the full increments, a change that
    belongs to another column of the group would go unnoticed. Slopes that have not been seen in any
    equation are moved far: near a steady state the increments show nothing.
    """
    n: cython.int = s.n
    i: cython.int
    j: cython.int
    status: cython.int
    move: cython.double
    change: cython.double
    for i in range(n):
        s.expected[i] = 0.0
        s.expected_size[i] = 0.0
    for j in range(n):
        move = s.delta[j] * draw(s)
        if which == OF_YP and is_empty(s, pattern, j):
            move *= ENLARGEMENT
        s.unmoved[j] = v[j]
        v[j] += move
        s.scratch[j] = v[j] - s.unmoved[j]
    s.matrix.add_product(which, s.scratch, s.expected)
    s.matrix.add_sizes(which, s.scratch, s.expected_size)
    status = evaluate(s, t, y, yp, s.scratch)
    for j in range(n):
        v[j] = s.unmoved[j]
    if status != OK:
        return status
    for i in range(n):
        change = fabs(s.scratch[i] - s.r[i] - s.expected[i])
        if change > PREDICTION_RTOL * s.expected_size[i] + UNEXPECTED_CHANGE * s.noise[i]:
            return NO_CONVERGENCE
    return OK


def draw(s):
    """Return a pseudo-random number between 0.5 and 1."""
    s.random_state = 16807 * s.random_state % 2147483647
    return 0.5 + s.random_state / 4294967294.0


def estimate_noise(s, y):
    """Estimate the round-off of each residual from its value and the terms in F_y y."""
    i: cython.int
    for i in range(s.n):
        s.noise[i] = fabs(s.r[i])
    s.matrix.add_sizes(OF_Y, y, s.noise)
    for i in range(s.n):
        s.noise[i] *= EPS
