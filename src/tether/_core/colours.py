"""Differences of many columns at once, where the matrix has few entries in every row.

Columns that share no row are moved together (Curtis, Powell and Reid 1974). Which rows a column
stands in is what earlier differences have shown: a residual that does not depend on an unknown
does not change by a single bit. Later it may depend on it, so every matrix found in groups has to
foretell one more residual, with all unknowns moved; if it does not, the rows are looked for anew.
"""

import cython
import numpy as np
from cython.cimports.libc.math import fabs

if not cython.compiled:
    from tether._core.adapters import evaluate
    from tether._core.codes import NO_CONVERGENCE, OK
    from tether._core.state import flags, integers, open_block, take

# How many times the round-off a change must be: to be trusted in a column, to count as unforeseen.
CLEAR = cython.declare(cython.double, 1e5)
UNFORESEEN = cython.declare(cython.double, 1e2)
# The share of a foretold change that may be missing.
ROUGH = cython.declare(cython.double, 1e-5)
LARGER = cython.declare(cython.double, 1e6)
ENLARGEMENTS = cython.declare(cython.int, 3)
UNCHANGED = cython.declare(cython.double, 1e-4)
EPS = cython.declare(cython.double, 2.220446049250313e-16)


def use_colours(s):
    """Make the memory for the groups of the columns of F_y and F_y'; nothing is known yet."""
    n = s.n
    s.fy_rows = flags(s, "fy_rows", np.zeros(n * n, np.int8))
    s.fyp_rows = flags(s, "fyp_rows", np.zeros(n * n, np.int8))
    s.candidates = flags(s, "candidates", np.zeros(n * n, np.int8))
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
    s.lot = 1
    return 0


def grouping_pays(s, colours):
    """Tell whether the matrix is wanted for an iteration and its columns come in few groups.

    Where the iteration failed nothing is taken for granted. Groups that had to be given up, all
    together, may cost one matrix more than the others have saved.
    """
    return s.correcting and colours > 0 and s.newton_failures == 0 and s.calls_saved >= -s.n


def note_rows(s, rows, j):
    """Mark the rows in which the residual moved in column `j` differs from the one in `s.r`."""
    n: cython.int = s.n
    i: cython.int
    for i in range(n):
        if s.scratch[i] != s.r[i]:
            rows[j * n + i] = 1


def group_columns(s, rows, colour):
    """Put every column into the first group that has none of its rows; return how many there are.

    Zero if they are too many to pay.
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
            s.scratch[i] = 0.0             # 1 where a column of this group stands
        for j in range(n):
            if colour[j] < 0 and fits(s, rows, j):
                colour[j] = group
                left -= 1
        if left == 0:
            return group + 1
    return 0


def fits(s, rows, j):
    """Take the rows of a column unless one of them is taken already."""
    n: cython.int = s.n
    i: cython.int
    for i in range(n):
        if rows[j * n + i] and s.scratch[i] != 0.0:
            return False
    for i in range(n):
        if rows[j * n + i]:
            s.scratch[i] = 1.0
    return True


def difference_groups(s, t, y, yp, slopes):
    """Difference with respect to y', if asked for `slopes`, or y, in the groups that are known.

    The increments are in `s.delta`. A positive status says: do it in another way.
    """
    status: cython.int
    colours: cython.int = s.fyp_colours if slopes else s.fy_colours
    s.calls_saved -= colours + 1
    if slopes:
        status = try_groups(s, t, y, yp, yp, s.fyp, s.fyp_rows, s.fyp_colour, colours, slopes)
    else:
        status = try_groups(s, t, y, yp, y, s.fy, s.fy_rows, s.fy_colour, colours, slopes)
    if status == OK:
        s.calls_saved += s.n
    return status


def try_groups(s, t, y, yp, v, matrix, rows, colour, colours, slopes):
    """Difference with respect to `v` by groups, and see whether the matrix foretells changes."""
    group: cython.int
    status: cython.int = OK
    for group in range(colours):
        status = move_group(s, t, y, yp, v, colour, group)
        if status == OK and slopes:
            status = move_farther(s, t, y, yp, v, rows, colour, group)
        if status != OK:
            break
        take_group(s, matrix, rows, colour, group, slopes)
    if status == OK:
        if not slopes:
            estimate_noise(s, y)
        status = foretell(s, t, y, yp, v, matrix, rows, slopes)
    if slopes and status != OK:
        s.fyp_constant = False             # there is nothing left to compare the next with
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


def move_farther(s, t, y, yp, v, rows, colour, group):
    """Move again, with larger increments, the columns of a group whose change drowns."""
    j: cython.int
    trial: cython.int
    status: cython.int = OK
    any_drowned: cython.bint
    for trial in range(ENLARGEMENTS):
        any_drowned = False
        for j in range(s.n):
            if colour[j] == group and not is_empty(s, rows, j) and drowned(s, rows, j):
                s.delta[j] *= LARGER
                any_drowned = True
        if not any_drowned:
            break
        status = move_group(s, t, y, yp, v, colour, group)
        if status != OK:
            break
    return status


def is_empty(s, rows, j):
    """Tell whether a column stands in no row."""
    i: cython.int
    for i in range(s.n):
        if rows[j * s.n + i]:
            return False
    return True


def drowned(s, rows, j):
    """Tell whether there is no row in which the change stands out from the round-off."""
    i: cython.int
    for i in range(s.n):
        if rows[j * s.n + i] and fabs(s.scratch[i] - s.r[i]) > CLEAR * s.noise[i]:
            return False
    return True


def take_group(s, matrix, rows, colour, group, slopes):
    """Turn the moved residual into the columns of a group."""
    j: cython.int
    for j in range(s.n):
        if colour[j] == group:
            if take_column(s, matrix, rows, j) and slopes:
                s.fyp_constant = False


def take_column(s, matrix, rows, j):
    """Turn the moved residual into a column; tell whether it is another one than before."""
    n: cython.int = s.n
    i: cython.int
    entry: cython.double
    change: cython.double = 0.0
    size: cython.double = 0.0
    for i in range(n):
        entry = (s.scratch[i] - s.r[i]) / s.delta[j] if rows[j * n + i] else 0.0
        change = max(change, fabs(entry - matrix[j * n + i]))
        size = max(size, fabs(entry))
        matrix[j * n + i] = entry
    return change > UNCHANGED * size


def foretell(s, t, y, yp, v, matrix, rows, slopes):
    """Tell by NO_CONVERGENCE that the matrix does not foretell a move of all unknowns.

    Each is moved by a share of its increment that is drawn by lot: with the increments themselves
    a change that belongs to another column of the group would go unnoticed. Slopes that occur
    nowhere are moved far: near a steady state the increments show nothing.
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
        if slopes and is_empty(s, rows, j):
            move *= LARGER
        s.unmoved[j] = v[j]
        v[j] += move
        move = v[j] - s.unmoved[j]
        for i in range(n):
            change = matrix[j * n + i] * move
            s.expected[i] += change
            s.expected_size[i] += fabs(change)
    status = evaluate(s, t, y, yp, s.scratch)
    for j in range(n):
        v[j] = s.unmoved[j]
    if status != OK:
        return status
    for i in range(n):
        change = fabs(s.scratch[i] - s.r[i] - s.expected[i])
        if change > ROUGH * s.expected_size[i] + UNFORESEEN * s.noise[i]:
            return NO_CONVERGENCE
    return OK


def draw(s):
    """Draw a number between a half and one."""
    s.lot = 16807 * s.lot % 2147483647
    return 0.5 + s.lot / 4294967294.0


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
