"""Iteration matrices that are out of date for some equation, though the iteration converges.

Two residuals and the increment between them show what the entries of an equation that change have
come to, math (7c). No norm of increments does: with a conductance that is too large they are next
to nothing, and so is what is left of the residual, which stands for a voltage of any size.
"""

import cython
from cython.cimports.libc.math import fabs, pow, sqrt

if not cython.compiled:
    from tether._core.codes import OF_Y, OF_YP
    from tether._core.linear import solve_scaled
    from tether._core.norms import measure

EPS = cython.declare(cython.double, 2.220446049250313e-16)
# What is left of the change of an equation, as the matrix has it, may not be less than this.
LEAST = cython.declare(cython.double, 0.5)
MOST = cython.declare(cython.double, 1.1)
# An iteration whose increments become no less than by this is stuck.
STUCK = cython.declare(cython.double, 0.5)
# Next to one the sum of all further increments is not known.
SURE = cython.declare(cython.double, 0.9)
# So many increments are foreseen: others may hide what is left, until they have become less.
FORESEEN = cython.declare(cython.int, 8)
# What a step does to the changing terms of an equation counts if it is this share of their sizes.
PLAIN = cython.declare(cython.double, 0.1)
# The terms of an equation have changed much if their sizes have, by this factor.
WILD = cython.declare(cython.double, 2.0)
# After k steps that make an equation look out of date when it is not, 2^k are not listened to; k is
# at most this, and more before it is known which entries change.
MOST_ALARMS = cython.declare(cython.int, 3)
MOST_BEFORE = cython.declare(cython.int, 6)
# Terms below this share of their equation cannot be differenced.
DROWNED = cython.declare(cython.double, 1e-6)
# Round-off of an equation, in terms of its own.
NOISE = cython.declare(cython.double, 100.0)


def note_changes(s):
    """Note which entries of F_y are not what they were in the last Jacobian.

    Differences drown where an iteration went too far, into the exponential of a junction: there
    entries that never change are not what they are elsewhere. `s.r` is the residual.
    """
    i: cython.int
    size: cython.double
    if s.matrix.room == 0:
        return
    for i in range(s.n):
        s.increment[i] = max(fabs(s.y[i]), s.tolerance[i])
        s.scratch[i] = 0.0
    if s.guesses:
        s.matrix.add_sizes(OF_Y, s.increment, s.scratch)
        for i in range(s.n):
            size = s.scratch[i] + fabs(s.r[i])
            s.scratch[i] = DROWNED * max(size, s.sizes[i])
            if s.compared > 0 and not is_between(size, s.sizes[i] / WILD, s.sizes[i] * WILD):
                s.wild[i] = 1.0
            s.sizes[i] = size
    if s.compared > 0:
        s.matrix.note_changes(s.compared == 1, s.increment, s.scratch)


def keep_residual(s):
    """Keep the residual that the next increment is found from."""
    i: cython.int
    for i in range(s.n):
        s.before[i] = s.r[i]


def is_suspicious(s, damping):
    """Tell whether the entries that change have become less than half in some equation.

    `s.before` is the residual of before the increment in `s.increment`, `s.r` that of after it.
    """
    i: cython.int
    for i in range(s.n):
        s.scratch[i] = 0.0
    if s.cj != s.cj_factored:
        s.matrix.add_product(OF_YP, s.increment, s.scratch)
    for i in range(s.n):        # what is left of the equation beyond what the matrix has foreseen
        s.before[i] = s.r[i] - (1.0 - damping) * s.before[i]
        s.before[i] -= (s.cj - s.cj_factored) * s.scratch[i]
    return something_is_missing(s, s.increment)


def last_step_tells(s):
    """Tell whether the step itself is reason to look at the matrix, by a second residual.

    The equations held before the step and hold after it, math (7f). Where the matrix says that
    they do not, because of entries that change, these may be next to nothing by now. `s.before` is
    the residual that the increment in `s.r` was found from; both stay.
    """
    i: cython.int
    found: cython.bint
    for i in range(s.n):
        s.beside_y[i] = s.before[i]
        s.beside_yp[i] = s.r[i]
        s.increment[i] = s.y[i] - s.phi[i]
        s.gap[i] = s.yp[i] - s.yp_n[i]
        s.before[i] = 0.0
    s.matrix.add_linear(s.increment, s.gap, s.before)
    for i in range(s.n):
        s.before[i] = -s.before[i]
    found = something_is_missing(s, s.increment) and leave_plain(s) and stays_behind(s)
    if found:
        doubt(s)
    for i in range(s.n):
        s.before[i] = s.beside_y[i]
        s.r[i] = s.beside_yp[i]
    return found


def leave_plain(s):
    """Leave suspects whose changing terms do not cancel in the step, or have changed much before.

    Where they cancel, the matrix is right for terms that have kept their sizes. They also cancel
    where all have fallen alike, as those of two diodes in series.
    """
    i: cython.int
    k: cython.int
    found: cython.int = 0
    size: cython.double
    for i in range(s.n):
        s.gap[i] = 0.0
    for k in range(s.suspects):
        i = s.column_rows[k]
        size = s.matrix.size_of_row(i, s.increment, s.gap, 0.0)
        size -= s.matrix.size_of_row(i, s.increment, s.gap, 1.0)     # that of the other terms
        if (
            s.wild[i] or s.compared <= 1
            or fabs(s.matrix.changing_in_row(i, s.increment)) > PLAIN * size
        ):
            s.column_rows[found] = i
            found += 1
    s.suspects = found
    return is_news(s)


def is_news(s):
    """Tell whether the steps of some suspect are listened to now."""
    k: cython.int
    for k in range(s.suspects):
        if s.listen_from[s.column_rows[k]] <= s.steps:
            return True
    return False


def doubt(s):
    """Listen less often to the steps of the suspects, until a residual has confirmed them.

    A force that depends on time, in an equation with entries that change, looks like an entry that
    has fallen.
    """
    i: cython.int
    k: cython.int
    most: cython.int = MOST_ALARMS if s.compared > 1 else MOST_BEFORE
    for k in range(s.suspects):
        i = s.column_rows[k]
        if s.listen_from[i] <= s.steps:
            s.alarms[i] = min(s.alarms[i] + 1.0, most)
            s.listen_from[i] = s.steps + pow(2.0, s.alarms[i])


def confirm(s):
    """Listen to the suspects that two residuals have shown, at every step."""
    k: cython.int
    for k in range(s.suspects):
        s.alarms[s.column_rows[k]] = s.listen_from[s.column_rows[k]] = 0.0


def forget_alarms(s):
    """Listen to the steps of all equations."""
    i: cython.int
    if s.guesses:
        for i in range(s.n):
            s.alarms[i] = s.listen_from[i] = s.wild[i] = 0.0


def something_is_missing(s, change):
    """Turn what was not foreseen, in `s.before`, into shares of what a change of y was to do."""
    i: cython.int
    expected: cython.double
    s.suspects = 0
    for i in range(s.n):
        s.scratch[i] = 0.0
    s.matrix.add_changing(change, s.scratch)
    for i in range(s.n):
        expected = -s.scratch[i]
        if is_between(s.before[i], LEAST * expected, MOST * expected):
            s.before[i] /= expected
            s.column_rows[s.suspects] = i
            s.suspects += 1
    return stands_out(s)


def is_between(x, low, high):
    """Tell whether x lies between two numbers of the same sign."""
    return low < x < high if low > 0.0 else high < x < low


def stands_out(s):
    """Leave suspects, in `s.column_rows`, where the share that is missing is more than round-off.

    The round-off of an equation is that of its terms, and of those that change not as large as
    they were. It is left in `s.scratch`.
    """
    i: cython.int
    k: cython.int
    found: cython.int = 0
    noise: cython.double
    for k in range(s.suspects):
        i = s.column_rows[k]
        noise = NOISE * EPS * s.matrix.size_of_row(i, s.y, s.yp, s.before[i])
        if fabs(s.scratch[i]) > noise:
            s.column_rows[found] = i
            found += 1
        s.scratch[i] = noise
    s.suspects = found
    return found > 0


def stays_behind(s):
    """Tell whether increments after the one in `s.r` would go on for long, and matter.

    What these equations will be left with is known from the shares that are missing, without
    another residual. It comes to nothing where other equations hold the unknowns in question.
    """
    k: cython.int
    size: cython.double
    last: cython.double
    total: cython.double = 0.0
    kept: cython.double = 0.0
    if not leaves_something(s):
        return False
    if s.suspects <= 2:
        return stays_in_two(s)
    size = next_increment(s)
    for k in range(FORESEEN):
        total += size
        last = size
        if not leaves_something(s):
            return False
        size = next_increment(s)
        kept = size / last
    return matters(s, total + size, kept)


def leave_lost(s, size):
    """Leave suspects of which nearly all is missing if the increment is small, math (7e).

    That saves looking ahead where the others would make up for so little in any case.
    """
    k: cython.int
    found: cython.int = 0
    if size > (1.0 - SURE) * s.newton_tolerance:
        return True
    for k in range(s.suspects):
        if s.before[s.column_rows[k]] > SURE:
            s.column_rows[found] = s.column_rows[k]
            found += 1
    s.suspects = found
    return found > 0


def matters(s, size, kept):
    """Tell whether increments matter that begin with this size and keep this share, math (7e).

    Their sum is size / (1 - kept), as in Newton's own test. Next to one it is anything.
    """
    return kept > SURE or (kept > STUCK and size > (1.0 - kept) * s.newton_tolerance)


def stays_in_two(s):
    """Tell whether what one or two equations are left with, in `s.r`, would stay for long.

    What comes of it is a matrix of that size, Q V M^-1 of math (7d) in these rows: its largest
    eigenvalue is what every increment keeps of the one before, sooner or later.
    """
    i: cython.int = s.column_rows[0]
    j: cython.int = s.column_rows[s.suspects - 1]
    left: cython.double = s.r[i]
    other: cython.double = s.r[j] if j != i else 0.0
    ii: cython.double
    ij: cython.double = 0.0
    ji: cython.double = 0.0
    jj: cython.double = 0.0
    size: cython.double
    half: cython.double
    root: cython.double
    size = fabs(left) * respond(s, i)
    ii = s.before[i] * s.matrix.changing_in_row(i, s.r)
    if j != i:
        ji = s.before[j] * s.matrix.changing_in_row(j, s.r)
        size += fabs(other) * respond(s, j)
        ij = s.before[i] * s.matrix.changing_in_row(i, s.r)
        jj = s.before[j] * s.matrix.changing_in_row(j, s.r)
    if not (
        fabs(ii * left + ij * other) > s.scratch[i] or fabs(ji * left + jj * other) > s.scratch[j]
    ):
        return False                   # nothing is left but round-off
    half = 0.5 * (ii + jj)
    root = half * half - (ii * jj - ij * ji)
    if root < 0.0:                     # a pair of complex ones
        return matters(s, size, sqrt(ii * jj - ij * ji))
    return matters(s, size, fabs(half) + sqrt(root))


def respond(s, i):
    """Let `s.r` be the increment that a residual of one in equation i leads to; return its size."""
    k: cython.int
    for k in range(s.n):
        s.r[k] = 0.0
    s.r[i] = 1.0
    return next_increment(s)


def leaves_something(s):
    """Turn the increment in `s.r` into what it leaves of the equations; tell if that is seen."""
    i: cython.int
    k: cython.int
    seen: cython.bint = False
    for k in range(s.suspects):
        i = s.column_rows[k]
        s.increment[i] = s.before[i] * s.matrix.changing_in_row(i, s.r)
    for i in range(s.n):
        s.r[i] = 0.0
    for k in range(s.suspects):
        i = s.column_rows[k]
        s.r[i] = s.increment[i]
        if fabs(s.r[i]) > s.scratch[i]:
            seen = True
    return seen


def next_increment(s):
    """Turn what is left of the equations, in `s.r`, into the next increment; return its size."""
    solve_scaled(s, s.r)
    return measure(s, s.r)
