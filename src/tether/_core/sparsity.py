"""Determine the rows of each column with far fewer residuals than there are columns.

The columns are divided into parts in three ways, and each part is moved as a whole. A column can
only have a row that has changed whenever the column was moved. The parts are formed by the
remainders of the column's number, so that no two columns are moved together twice. The result may
have more rows than the true pattern, never fewer, and is sparse enough to difference in groups.
"""

import cython
from cython.cimports.libc.math import sqrt

if not cython.compiled:
    from tether._core.adapters import evaluate
    from tether._core.codes import CANDIDATES, NO_CONVERGENCE, OF_Y, OF_YP, OK
    from tether._core.colours import (
        changed_rows,
        draw,
        group_columns,
        is_empty,
        move_group,
        try_groups,
    )

DIVISIONS = cython.declare(cython.int, 3)
ENLARGEMENT = cython.declare(cython.double, 1e6)
MAX_ENLARGEMENTS = cython.declare(cython.int, 3)
# With fewer columns there is nothing to gain.
FEWEST_COLUMNS = cython.declare(cython.int, 40)


def difference_sparse(s, t, y, yp, slopes):
    """Difference with respect to y' for `slopes`, else y, without knowing the pattern.

    A positive status means that this does not work; it will not be tried again.
    """
    status: cython.int = NO_CONVERGENCE
    if s.n < FEWEST_COLUMNS or s.pattern_given:    # which is wrong in few places: go by columns
        return status
    if slopes:
        if s.fyp_sparse:
            status = find_and_difference(s, t, y, yp, yp, OF_YP, s.fyp_colour)
            if status == OK:
                status = look_for_absent(s, t, y, yp)
            s.fyp_sparse = status == OK
            if status == OK:
                s.fyp_colours = group_columns(s, OF_YP, s.fyp_colour)
    elif s.fy_sparse:
        status = find_and_difference(s, t, y, yp, y, OF_Y, s.fy_colour)
        s.fy_sparse = status == OK
        if status == OK:
            s.fy_colours = group_columns(s, OF_Y, s.fy_colour)
    return status


def find_and_difference(s, t, y, yp, v, which, colour):
    """Difference in groups of the candidates that remain, and mark the rows that are found."""
    j: cython.int
    count: cython.int
    status: cython.int = find_rows(s, t, y, yp, v, colour)
    colours: cython.int
    if status == OK:
        colours = group_columns(s, CANDIDATES, colour)
        status = try_groups(s, t, y, yp, v, which, CANDIDATES, colour, colours)
    if status == OK:
        for j in range(s.n):
            count = s.matrix.column(which, j, s.column_rows, s.column_values)
            s.matrix.mark_rows(which, j, s.column_rows, count)
    return status


def find_rows(s, t, y, yp, v, colour):
    """Mark as candidates the rows that the columns may have.

    The increments are multiplied by random numbers, since equal ones would cancel in the difference
    of two unknowns.
    """
    n: cython.int = s.n
    j: cython.int
    division: cython.int
    groups: cython.int = 0
    status: cython.int = OK
    parts: cython.int = cython.cast(cython.int, sqrt(n)) | 1
    if parts * (parts + 1) < n:
        parts += 2         # three consecutive numbers, the first odd, have no common divisors
    for j in range(n):
        s.expected[j] = s.delta[j]
        s.delta[j] *= draw(s)
    for division in range(DIVISIONS):
        for j in range(n):
            colour[j] = j % parts
        status = rule_out(s, t, y, yp, v, colour, parts, division == 0)
        if status != OK:
            break
        parts += 1
        if division > 0:
            groups = group_columns(s, CANDIDATES, colour)
            if 0 < groups <= parts:        # another division would cost as much as it could save
                break
    for j in range(n):
        s.delta[j] = s.expected[j]
    return NO_CONVERGENCE if status == OK and groups == 0 else status


def rule_out(s, t, y, yp, v, colour, parts, first):
    """Remove the candidates that a division rules out; give up if a row is too full.

    In the first division everything that changes is a candidate.
    """
    n: cython.int = s.n
    i: cython.int
    j: cython.int
    part: cython.int
    changed: cython.int = 0
    status: cython.int
    for i in range(n):
        s.expected_size[i] = 0.0           # number of parts in which a row has changed
    for part in range(parts):
        status = move_group(s, t, y, yp, v, colour, part)
        if status != OK:
            return status
        for i in range(n):
            if s.scratch[i] != s.r[i]:
                s.expected_size[i] += 1.0
                if 2.0 * s.expected_size[i] > parts:
                    return NO_CONVERGENCE
        if first:
            changed = changed_rows(s)
        for j in range(n):
            if colour[j] == part:
                if not first:
                    changed = changed_among(s, j)
                s.matrix.set_rows(CANDIDATES, j, s.column_rows, changed)
    return OK


def changed_among(s, j):
    """List in `s.column_rows` the candidates of a column that have changed; return how many."""
    k: cython.int
    i: cython.int
    left: cython.int = 0
    for k in range(s.matrix.rows_of(CANDIDATES, j, s.column_rows)):
        i = s.column_rows[k]
        if s.scratch[i] != s.r[i]:
            s.column_rows[left] = i
            left += 1
    return left


def look_for_absent(s, t, y, yp):
    """Return NO_CONVERGENCE if a slope occurs that none of the residuals has shown so far.

    All of them are moved far at the same time: near a steady state small increments show nothing.
    """
    i: cython.int
    j: cython.int
    trial: cython.int
    status: cython.int
    farther: cython.double = 1.0
    for trial in range(MAX_ENLARGEMENTS):
        farther *= ENLARGEMENT
        for j in range(s.n):
            s.unmoved[j] = yp[j]
            if is_empty(s, OF_YP, j):
                yp[j] += farther * draw(s) * s.delta[j]
        status = evaluate(s, t, y, yp, s.scratch)
        for j in range(s.n):
            yp[j] = s.unmoved[j]
        if status != OK:
            return status
        for i in range(s.n):
            if s.scratch[i] != s.r[i]:
                return NO_CONVERGENCE
    return OK
