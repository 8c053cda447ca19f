"""Iteration matrices that are out of date for some equation, though the iteration converges.

Two residuals and the increment between them show what has become of the entries of an equation that
change, math (7c). No norm of increments does: with a conductance that is too large they are tiny,
and so is the remaining residual, which may correspond to any voltage.
"""

import cython
from cython.cimports.libc.math import fabs, pow, sqrt

if not cython.compiled:
    from tether._core.codes import MOST_EFFECTS, OF_Y
    from tether._core.linear import solve_scaled
    from tether._core.norms import measure

EPS = cython.declare(cython.double, 2.220446049250313e-16)
# The remainder of an equation's change, relative to what the matrix predicts, must lie between
# these for the equation to be a suspect.
LEAST_SHARE = cython.declare(cython.double, 0.5)
MOST_SHARE = cython.declare(cython.double, 1.1)
# An iteration that reduces its increments by less than this is stuck.
STUCK_RATE = cython.declare(cython.double, 0.5)
# Closer to one than this, the sum of all further increments is unknown.
NEAR_ONE = cython.declare(cython.double, 0.9)
# Number of increments that are predicted: large ones may hide the remainder at first.
INCREMENTS_AHEAD = cython.declare(cython.int, 8)
# Attempts to bound what increments keep of those before, and the smallest entry of the vectors that
# are tried, as a share of the largest.
BOUNDS = cython.declare(cython.int, 4)
SMALLEST_ENTRY = cython.declare(cython.double, 1e-3)
# The effect of a step on the changing terms of an equation counts if it is this share of their
# sizes.
VISIBLE_EFFECT = cython.declare(cython.double, 0.1)
# The terms of an equation have changed much if their sizes have changed by this factor.
MUCH_CHANGED = cython.declare(cython.double, 2.0)
# After k false alarms from the steps of an equation its alarms are ignored for 2^k steps; k is at
# most this, or the second number until it is known which entries change.
LARGEST_EXPONENT = cython.declare(cython.int, 3)
LARGEST_EXPONENT_BEFORE = cython.declare(cython.int, 6)
# Terms below this share of their equation cannot be differenced.
TOO_SMALL = cython.declare(cython.double, 1e-6)
# Round-off of an equation, in units of its terms times EPS.
NOISE_UNITS = cython.declare(cython.double, 100.0)


def note_changes(s):
    """Mark the entries of F_y that have changed since the last Jacobian.

    Differences are inaccurate where an iteration went too far, into the exponential of a junction:
    entries that never change then seem to change. `s.r` is the residual.
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
            s.scratch[i] = TOO_SMALL * max(size, s.sizes[i])
            if s.compared > 0 and not is_between(
                size, s.sizes[i] / MUCH_CHANGED, s.sizes[i] * MUCH_CHANGED
            ):
                s.changed_much[i] = 1.0
            s.sizes[i] = size
    if s.compared > 0:
        s.matrix.note_changes(s.compared == 1, s.increment, s.scratch)


def keep_residual(s):
    """Keep the residual from which the next increment is computed."""
    i: cython.int
    for i in range(s.n):
        s.before[i] = s.r[i]


def is_suspicious(s, damping):
    """Tell whether the entries that change have become less than half in some equation.

    `s.before` is the residual before the increment in `s.increment`, `s.r` the one after it.
    """
    i: cython.int
    # the remainder of the equation that the matrix did not predict
    for i in range(s.n):
        s.before[i] = s.r[i] - (1.0 - damping) * s.before[i]
    return find_suspects(s, s.cj - s.cj_factored)


def step_shows_outdated(s):
    """Tell whether the step itself is a reason to check the matrix, by a second residual.

    The equations held before the step and hold after it, math (7f). If the matrix predicts that
    they do not, because of entries that change, these entries may be tiny by now. `s.before` is the
    residual from which the increment in `s.r` was computed; both are left unchanged.
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
    found = find_suspects(s, 0.0) and keep_uncancelled(s) and error_persists(s)
    if found:
        ignore_for_longer(s)
    for i in range(s.n):
        s.before[i] = s.beside_y[i]
        s.r[i] = s.beside_yp[i]
    return found


def keep_uncancelled(s):
    """Keep suspects whose changing terms do not cancel in the step, or have changed much before.

    If they cancel, the matrix is right for terms that have kept their sizes. They also cancel if
    all have fallen alike, as those of two diodes in series.
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
        size -= s.matrix.size_of_row(i, s.increment, s.gap, 1.0)     # size of the other terms
        if (
            s.changed_much[i] or s.compared <= 1
            or fabs(s.matrix.changing_in_row(i, s.increment)) > VISIBLE_EFFECT * size
        ):
            s.column_rows[found] = i
            found += 1
    s.suspects = found
    return any_alarm_counts(s)


def any_alarm_counts(s):
    """Tell whether the alarm of some suspect is not to be ignored at this step."""
    k: cython.int
    for k in range(s.suspects):
        if s.ignored_until[s.column_rows[k]] <= s.steps:
            return True
    return False


def ignore_for_longer(s):
    """Ignore the alarms of the suspects for longer, until a residual has confirmed them.

    A force that depends on time, in an equation with entries that change, looks like an entry that
    has fallen.
    """
    i: cython.int
    k: cython.int
    most: cython.int = LARGEST_EXPONENT if s.compared > 1 else LARGEST_EXPONENT_BEFORE
    for k in range(s.suspects):
        i = s.column_rows[k]
        if s.ignored_until[i] <= s.steps:
            s.alarms[i] = min(s.alarms[i] + 1.0, most)
            s.ignored_until[i] = s.steps + pow(2.0, s.alarms[i])


def confirm(s):
    """Ignore no more alarms of the suspects, which two residuals have confirmed."""
    k: cython.int
    for k in range(s.suspects):
        s.alarms[s.column_rows[k]] = s.ignored_until[s.column_rows[k]] = 0.0


def forget_alarms(s):
    """Ignore no alarms of any equation."""
    i: cython.int
    if s.guesses:
        for i in range(s.n):
            s.alarms[i] = s.ignored_until[i] = s.changed_much[i] = 0.0


def find_suspects(s, cj_change):
    """Find suspects: equations in which a share of what a change of y should do is missing.

    The change of y is in `s.increment`. The remainders that were not predicted, in `s.before`, with
    the part that is due to another cj, are turned into these shares.
    """
    i: cython.int
    k: cython.int
    found: cython.int = 0
    middle: cython.double = -0.5 * (LEAST_SHARE + MOST_SHARE)
    reach: cython.double = 0.5 * (MOST_SHARE - LEAST_SHARE)
    s.matrix.set_changes(s.increment, cj_change, s.before, s.scratch)
    for i in range(s.n):        # without a branch, which could not be predicted
        s.column_rows[found] = i
        found += fabs(s.before[i] - middle * s.scratch[i]) < reach * fabs(s.scratch[i])
    for k in range(found):
        i = s.column_rows[k]
        s.before[i] /= -s.scratch[i]
    s.suspects = found
    return keep_significant(s)


def is_between(x, low, high):
    """Tell whether x lies between two numbers of the same sign."""
    return low < x < high if low > 0.0 else high < x < low


def keep_significant(s):
    """Keep suspects, in `s.column_rows`, in which the missing share is more than round-off.

    The round-off of an equation is that of its terms, and changing terms are not as large as they
    were. It is left in `s.scratch`.
    """
    i: cython.int
    k: cython.int
    found: cython.int = 0
    noise: cython.double
    for k in range(s.suspects):
        i = s.column_rows[k]
        noise = NOISE_UNITS * EPS * s.matrix.size_of_row(i, s.y, s.yp, s.before[i])
        if fabs(s.scratch[i]) > noise:
            s.column_rows[found] = i
            found += 1
        s.scratch[i] = noise
    s.suspects = found
    return found > 0


def error_persists(s):
    """Tell whether increments after the one in `s.r` would continue for long, and matter.

    The remainders of the suspects follow from the missing shares, without another residual. They
    vanish if other equations determine the unknowns in question.
    """
    k: cython.int
    size: cython.double
    last: cython.double
    total: cython.double = 0.0
    kept: cython.double = 0.0
    if s.suspects <= 2:
        return persists_in_two(s)
    if (s.n <= MOST_EFFECTS and share_is_small(s)) or not set_remainders(s):
        return False
    size = next_increment(s)
    for k in range(INCREMENTS_AHEAD):
        total += size
        last = size
        if not set_remainders(s):
            return False
        size = next_increment(s)
        kept = size / last
    return matters(s, total + size, kept)


def keep_most_lost(s, size):
    """If the increment is small keep only suspects in which nearly all is missing, math (7e).

    That saves looking ahead where further iterations would make up for it anyway.
    """
    k: cython.int
    found: cython.int = 0
    if size > (1.0 - NEAR_ONE) * s.newton_tolerance:
        return True
    for k in range(s.suspects):
        if s.before[s.column_rows[k]] > NEAR_ONE:
            s.column_rows[found] = s.column_rows[k]
            found += 1
    s.suspects = found
    return found > 0


def matters(s, size, kept):
    """Tell whether increments that begin so large and keep this share matter, math (7e).

    Their sum is size / (1 - kept), as in Newton's own test. Close to one it is unknown.
    """
    return kept > NEAR_ONE or (kept > STUCK_RATE and size > (1.0 - kept) * s.newton_tolerance)


def persists_in_two(s):
    """Tell whether the remainders of one or two equations would persist for long, and matter.

    The increment before them is in `s.r`. What follows is described by a matrix of that size,
    Q V M^-1 of math (7d) in these rows: its largest eigenvalue is the share that an increment
    eventually keeps of the one before.
    """
    i: cython.int = s.column_rows[0]
    j: cython.int = s.column_rows[s.suspects - 1]
    left: cython.double = s.before[i] * s.matrix.changing_in_row(i, s.r)
    other: cython.double = s.before[j] * s.matrix.changing_in_row(j, s.r) if j != i else 0.0
    ii: cython.double
    ij: cython.double
    ji: cython.double
    jj: cython.double
    half: cython.double
    root: cython.double
    kept: cython.double
    size: cython.double
    if not (fabs(left) > s.scratch[i] or fabs(other) > s.scratch[j]):
        return False                   # nothing is left but round-off
    if not (s.pair_first == i and s.pair_last == j and s.pair_nlu == s.nlu):
        find_pair(s, i, j)
    ii = s.before[i] * s.pair_effects[0]
    ij = s.before[i] * s.pair_effects[1]
    ji = s.before[j] * s.pair_effects[2]
    jj = s.before[j] * s.pair_effects[3]
    if not (
        fabs(ii * left + ij * other) > s.scratch[i] or fabs(ji * left + jj * other) > s.scratch[j]
    ):
        return False
    half = 0.5 * (ii + jj)
    root = half * half - (ii * jj - ij * ji)
    # a complex pair below zero
    kept = fabs(half) + sqrt(root) if root >= 0.0 else sqrt(ii * jj - ij * ji)
    if not STUCK_RATE < kept <= NEAR_ONE:
        return matters(s, 0.0, kept)
    size = fabs(left) * set_response(s, i)
    if j != i:
        size += fabs(other) * set_response(s, j)
    return matters(s, size, kept)


def find_pair(s, i, j):
    """Find V M^-1 in the rows and columns of two equations; it is kept as long as the factors are.

    With i = j it is a single number.
    """
    s.pair_first, s.pair_last, s.pair_nlu = i, j, s.nlu
    set_response(s, i)
    s.pair_effects[0] = s.matrix.changing_in_row(i, s.r)
    s.pair_effects[1] = s.pair_effects[2] = s.pair_effects[3] = 0.0
    if j != i:
        s.pair_effects[2] = s.matrix.changing_in_row(j, s.r)
        set_response(s, j)
        s.pair_effects[1] = s.matrix.changing_in_row(i, s.r)
        s.pair_effects[3] = s.matrix.changing_in_row(j, s.r)


def share_is_small(s):
    """Tell whether increments cannot keep much of those before, by effects found with the factors.

    No eigenvalue of Q V M^-1, math (7d), in the rows of the suspects is larger than the largest
    quotient of |Q V M^-1| x and x, for any x > 0. The increment in `s.r` is left unchanged.
    """
    i: cython.int
    k: cython.int
    p: cython.int
    share: cython.double
    largest: cython.double
    for i in range(s.n):
        s.increment[i] = s.r[i]
    for k in range(s.suspects):
        if s.effects_nlu[s.column_rows[k]] != s.nlu:
            find_effects(s, s.column_rows[k])
        s.shares[k] = 1.0
    for i in range(s.n):
        s.r[i] = s.increment[i]
    for _ in range(BOUNDS):
        share = largest = 0.0
        for k in range(s.suspects):
            i = s.column_rows[k]
            s.increment[k] = 0.0
            for p in range(s.suspects):
                s.increment[k] += fabs(s.effects[s.column_rows[p] * s.n + i]) * s.shares[p]
            s.increment[k] *= fabs(s.before[i])
            share = max(share, s.increment[k] / s.shares[k])
            largest = max(largest, s.increment[k])
        if share <= STUCK_RATE:
            return True
        for k in range(s.suspects):
            s.shares[k] = max(s.increment[k], SMALLEST_ENTRY * largest)
    return False


def find_effects(s, j):
    """Find what a residual of one in equation j does to the terms that change: column j of V M^-1.

    It is kept as long as the factors are.
    """
    i: cython.int
    s.effects_nlu[j] = s.nlu
    set_response(s, j)
    for i in range(s.n):
        s.effects[j * s.n + i] = s.matrix.changing_in_row(i, s.r)


def set_response(s, i):
    """Set `s.r` to the increment for a residual of one in equation i; return its size."""
    k: cython.int
    for k in range(s.n):
        s.r[k] = 0.0
    s.r[i] = 1.0
    return next_increment(s)


def set_remainders(s):
    """Turn the increment in `s.r` into remainders of the suspects; tell if one is significant."""
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
    """Turn the remainders in `s.r` into the next increment; return its size."""
    solve_scaled(s, s.r)
    return measure(s, s.r)
