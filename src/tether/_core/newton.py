"""The corrector: modified Newton with a stored factorisation."""

import cython
from cython.cimports.libc.math import fabs, pow

if not cython.compiled:
    from tether._core.adapters import evaluate
    from tether._core.codes import BLOCK, NO_CONVERGENCE, NON_FINITE, OK, UNSCALED, USER_EXCEPTION
    from tether._core.guess import begin_at_guess, compare_guesses, keep_point
    from tether._core.linear import assemble_and_factor, solve_scaled
    from tether._core.norms import measure
    from tether._core.outdated import (
        confirm,
        error_persists,
        is_suspicious,
        keep_most_lost,
        keep_residual,
        note_changes,
        step_shows_outdated,
    )
    from tether._core.predict import start_from_prediction

EPS = cython.declare(cython.double, 2.220446049250313e-16)
MAX_ITERATIONS = cython.declare(cython.int, 4)
# Factors are used while cj stays within this share of theirs. The limit is lower where residuals
# are so expensive, and unknowns so few, that new factors cost less than another residual.
CJ_DRIFT = cython.declare(cython.double, 0.25)
CJ_DRIFT_OF_GUESSES = cython.declare(cython.double, 0.005)
FEW_UNKNOWNS = cython.declare(cython.int, 100)
# A Jacobian older than this many steps is renewed when the matrix is factored again anyway.
OLD_JACOBIAN = cython.declare(cython.int, 50)
# Rates of convergence that are too slow: with an old Jacobian, slow enough to pay for a new one.
TOO_SLOW = cython.declare(cython.double, 0.3)
DIVERGING = cython.declare(cython.double, 0.9)
# Without a measured rate an increment counts as converged only when it is this many times smaller
# than the tolerance of the iteration.
UNKNOWN_RATE = cython.declare(cython.double, 100.0)
# An iteration that stops converging this far below the tolerance has only round-off left.
STAGNATED = cython.declare(cython.double, 10.0)
# A Jacobian with which the iteration converges this fast is not renewed because of its age.
FAST_RATE = cython.declare(cython.double, 0.02)
# In tolerances: a guess must be this close to the solution for one increment to be enough.
CLOSE_GUESS = cython.declare(cython.double, 2.0)
# Once in so many steps a second increment is always made: it shows how good the matrix is.
CHECK_EVERY = cython.declare(cython.longlong, 5)
# Renewals of the matrix within one iteration.
MAX_RENEWALS = cython.declare(cython.int, 2)
# Factor by which a rate seen in an earlier step may have grown since.
SAFETY = cython.declare(cython.double, 3.0)
# Error of an iteration from a guess, as a share of the correction.
ROUGHNESS = cython.declare(cython.double, 0.005)
# At index 2 and 3: the highest rate that the second increment can show.
EARLY_RATE = cython.declare(cython.double, 0.5)
# Once in so many steps guesses from more and fewer points are compared.
COMPARE_EVERY = cython.declare(cython.int, 2)
MOST_MISSES = cython.declare(cython.int, 24)
# Guesses continue while they save residuals, on average over about so many steps; the average
# begins with this expected saving.
AVERAGED_STEPS = cython.declare(cython.double, 10.0)
EXPECTED_SAVING = cython.declare(cython.double, 0.5)
# Otherwise they pause for 16 steps, then 32, 64, ... up to 1024.
PAUSE_UNIT = cython.declare(cython.int, 8)
MOST_PAUSES = cython.declare(cython.int, 7)
# The damped iteration: most iterations, shortest step, and the size of its last increment.
MAX_DAMPED = cython.declare(cython.int, 20)
SHORTEST_DAMPED = cython.declare(cython.double, 1e-3)
DAMPED_ENOUGH = cython.declare(cython.double, 0.1)
NAN = cython.declare(cython.double, float("nan"))


def correct(s):
    """Solve F(t, y, y' predicted + cj (y - y predicted)) = 0, math (7)."""
    status: cython.int
    s.guessed = False
    s.renewals = 0
    status = correct_damped(s) if s.in_vain > 0 else correct_with_factors(s)
    if status == OK and s.guesses:
        keep_point(s)
    return status


def correct_with_factors(s):
    """Iterate with the stored factors, from a guess or from the prediction.

    A failure with an old Jacobian does not fail the step: the iteration is repeated once with a new
    one.
    """
    status: cython.int
    s.guessed = s.guesses and may_guess(s)
    if s.guessed:
        status = correct_guess(s)
    else:
        status = evaluate(s, s.t_new, s.y, s.yp, s.r)
        if status != OK:
            return status
        if needs_factor(s):
            status = set_up(s, not s.jacobian_exists or is_old(s) or s.matrix.has_no_entries)
        elif s.matrix.has_no_entries:
            status = s.jacobian(s, s.t_new, s.y, s.yp)
            s.matrix.assemble(s.cj)
        if status == OK:
            status = iterate(s)
    if status == OK or status == USER_EXCEPTION or s.jacobian_current:
        return status
    return correct_with_new_jacobian(s, status)


def may_guess(s):
    """Tell whether there are points to guess from, and a Jacobian that has not failed."""
    return (
        s.past > 0
        and s.steps >= s.guess_from
        and s.jacobian_exists
        and s.newton_failures == 0
        and not (needs_factor(s) and is_old(s))
    )


def correct_guess(s):
    """Iterate from a guess, with the stored Jacobian."""
    status: cython.int = OK
    before: cython.longlong = s.iterations
    if needs_factor(s):
        status = assemble_and_factor(s)
    if status == OK:
        begin_at_guess(s)
        status = evaluate(s, s.t_new, s.y, s.yp, s.r)
    if status == OK:
        status = iterate(s)
    note_success(s, status)
    if status == OK and s.renewals == 0 and s.n > FEW_UNKNOWNS:
        note_saving(s, s.iterations - before)
    if status == OK and s.steps % COMPARE_EVERY == 0:
        compare_guesses(s)
    return status


def note_success(s, status):
    """Pause guesses for a while if they keep failing, as with a noisy function."""
    if status == OK:
        s.misses = max(0, s.misses - 1)
        return
    s.misses = min(s.misses + 2, MOST_MISSES)
    if s.misses > 2:
        s.guess_from = s.steps + (1 << (s.misses // 2))


def note_saving(s, taken):
    """Pause guesses for a while if they save no residuals, math (7g).

    With many unknowns a guess can cost as much as a residual.
    """
    s.saving += (saved_by_guess(s, taken) - s.saving) / AVERAGED_STEPS
    if s.saving > EXPECTED_SAVING:
        s.pauses = 0
    if s.saving < 0.0:
        s.pauses = min(s.pauses + 1, MOST_PAUSES)
        s.guess_from = max(s.guess_from, s.steps + PAUSE_UNIT * (1 << s.pauses))
        s.saving = EXPECTED_SAVING


def saved_by_guess(s, taken):
    """How many more iterations this step would have taken from the prediction, at the rate seen."""
    m: cython.int = 2
    size: cython.double = measure(s, s.correction)
    rate: cython.double = s.rate if s.rate > 0.0 else min(seen_rate(s), TOO_SLOW)
    if UNKNOWN_RATE * size <= s.newton_tolerance:
        return 0
    rate = max(rate, fabs((s.cj - s.cj_factored) / (s.cj + s.cj_factored)))
    size *= rate / (1.0 - rate)
    while m < MAX_ITERATIONS and size * rate > s.newton_tolerance:
        size *= rate
        m += 1
    return m - taken


def correct_with_new_jacobian(s, status):
    """Iterate with a new Jacobian, from where a guess has led or from the prediction."""
    if status != NO_CONVERGENCE or s.rate > DIVERGING:
        s.guessed = False
    if not s.guessed:
        start_from_prediction(s, 0, s.n)
    status = evaluate(s, s.t_new, s.y, s.yp, s.r)
    if status == OK:
        status = set_up(s, True)
    if status == OK:
        status = iterate(s)
    return status


def is_old(s):
    """Tell whether to renew the Jacobian when the matrix is factored anyway.

    If it costs residuals, an old one is kept as long as the iteration converges fast.
    """
    return s.steps - s.jacobian_step > OLD_JACOBIAN and not (s.guesses and seen_rate(s) < FAST_RATE)


def needs_factor(s):
    """Tell whether the stored factors are too far from this step's matrix."""
    drift: cython.double = CJ_DRIFT_OF_GUESSES if s.guesses and s.n <= FEW_UNKNOWNS else CJ_DRIFT
    return s.cj_factored == 0.0 or fabs(s.cj / s.cj_factored - 1.0) > drift


def set_up(s, fresh):
    """Factor the iteration matrix, with a new Jacobian at the predicted point if `fresh`."""
    status: cython.int
    if fresh:
        s.njev += 1
        s.cj_factored = 0.0
        s.correcting = True
        if s.compared > 0:
            s.matrix.keep_jacobian()
        status = s.jacobian(s, s.t_new, s.y, s.yp)
        s.correcting = False
        if status != OK:
            s.jacobian_exists = False
            return status
        note_changes(s)
        s.compared += 1
        s.jacobian_exists = True
        s.jacobian_current = True
        s.jacobian_step = s.steps
        s.seen_step = -1
    return assemble_and_factor(s)


def iterate(s):
    """Iterate from the residual in `s.r` until the error left is below the tolerance.

    From the prediction the rate of convergence is measured afresh in every step: a rate carried
    over from earlier steps, as in DASSL and IDA, lets errors of the iteration into the differences,
    and accepts points far from any at which the residual was seen.
    """
    m: cython.int
    status: cython.int
    size: cython.double
    first: cython.double = 1.0
    last: cython.double = 1.0
    rate: cython.double = 0.0
    # The factors belong to another cj: this makes the increment right on average.
    damping: cython.double = 1.0 if s.matrix.has_no_entries else 2.0 / (1.0 + s.cj / s.cj_factored)
    checks: cython.bint = checks_matrix(s)
    judges: cython.bint = s.renewals < MAX_RENEWALS and judges_matrix(s)
    suspicious: cython.bint = False
    outdated: cython.bint = False
    for m in range(MAX_ITERATIONS):
        s.iterations += 1
        if m == 0 and judges:
            keep_residual(s)
        size = find_increment(s, damping)
        if not size < 1e300:
            return failure_of_solution(s)
        take_increment(s, 1.0)
        if m == 1 and suspicious:
            outdated = (s.guesses or keep_most_lost(s, size)) and error_persists(s)
        if m == 0:
            first = size
            s.first_increment = measure(s, s.correction) if s.guessed else size
            s.rate = 0.0
            if s.guesses and judges:
                judges = checks = step_shows_outdated(s)
            if is_close(s, size) and not (s.guesses and changes_sign(s)) and not checks:
                return OK
        else:
            if size == 0.0:
                rate = 0.0
            elif m == 1 or s.highest_kind > 1:
                rate = size / last
            else:
                rate = pow(size / first, 1.0 / m)
            s.rate = rate
            if UNKNOWN_RATE * first > s.newton_tolerance:
                s.seen_rate = rate
                s.seen_step = s.steps
            elif s.guesses and not outdated:    # both were tiny, so their ratio says nothing
                return OK
            if is_spent(s, size) and not outdated:
                return OK
            if m == 1 and s.highest_kind > 1:
                # A first correction of the positions appears in the velocities, divided by h, only
                # with the second increment: too early to judge.
                rate = min(rate, EARLY_RATE)
            elif rate > (DIVERGING if s.jacobian_current or s.guessed else TOO_SLOW):
                return OK if stagnated(s, size) else NO_CONVERGENCE
            if is_enough(s, size * rate / (1.0 - rate)) and not outdated:
                return OK
            if s.guessed and not s.jacobian_current and s.rate > TOO_SLOW:
                return NO_CONVERGENCE
        if m == 0 and is_spent(s, size) and not checks:
            return OK
        last = size
        if m == 0 and judges:
            keep_increment(s)
        if m + 1 < MAX_ITERATIONS:
            status = evaluate(s, s.t_new, s.y, s.yp, s.r)
            if status != OK:
                return status
        if m == 0 and judges:
            suspicious = is_suspicious(s, damping)
            if s.guesses:
                confirm(s)
        if outdated:
            s.renewals += 1
            status = set_up(s, True)
            return iterate(s) if status == OK else status
    return NO_CONVERGENCE


def is_spent(s, size):
    """Tell whether only round-off is left."""
    return size <= 100.0 * EPS * s.y_norm


def is_enough(s, error):
    """Tell whether the remaining error is small enough.

    That of an iteration from the prediction is smooth, like the prediction. From a guess it is not,
    and must be small compared with the differences that it enters.
    """
    if error > s.newton_tolerance:
        return False
    return not s.guessed or error <= ROUGHNESS * measure(s, s.correction)


def is_close(s, size):
    """Tell whether one increment is enough: after a guess, by the rate seen before."""
    rate: cython.double
    if UNKNOWN_RATE * size <= s.newton_tolerance:
        return True
    if not s.guessed or size > CLOSE_GUESS * s.newton_tolerance:
        return False
    rate = SAFETY * seen_rate(s) + fabs((s.cj - s.cj_factored) / (s.cj + s.cj_factored))
    return rate < DIVERGING and is_enough(s, size * rate / (1.0 - rate))


def checks_matrix(s):
    """Tell whether to make a second increment, however small the first: the matrix may be outdated.

    The conductance of a junction can fall by powers of ten in a few steps. With its value from some
    steps ago, increments are tiny, and so would be all further ones.
    """
    age: cython.longlong = s.steps - s.jacobian_step
    if s.guesses:               # residuals are expensive: the step itself tells whether to look
        return False
    return age == 1 or (age > 1 and age % CHECK_EVERY == 0)


def judges_matrix(s):
    """Tell whether matrices are judged: where residuals are expensive, only at index 1.

    Without entries that change none can be out of date.
    """
    return s.matrix.room > 0 and s.matrix.changes and not (s.guesses and s.highest_kind > 1)


def keep_increment(s):
    """Keep the increment in `s.r`, to compare the next one with it."""
    i: cython.int
    for i in range(s.n):
        s.increment[i] = s.r[i]


def seen_rate(s):
    """Rate of convergence with this Jacobian, as last seen, extrapolated to its present age."""
    if s.seen_step < s.jacobian_step:
        return 1.0
    return s.seen_rate * (1.0 + s.steps - s.jacobian_step) / (1.0 + s.seen_step - s.jacobian_step)


def changes_sign(s):
    """Tell whether the increment in `s.r` has led to signs at which the residual was not evaluated.

    Many functions are undefined where an unknown becomes negative.
    """
    i: cython.int
    for i in range(s.n):
        if s.y[i] * (s.y[i] - s.r[i]) < 0.0:
            return True
    return False


def find_increment(s, damping):
    """Turn the residual in `s.r` into Newton's increment; return its size, NaN if there is none.

    Iterations that find no solution leave NaN everywhere, which norms do not see.
    """
    i: cython.int
    for i in range(s.n):
        s.r[i] = -s.r[i] * damping
    if s.scaling_mode == UNSCALED:
        s.matrix.solve(s.r)
    else:
        solve_scaled(s, s.r)
    return measure(s, s.r) if s.r[0] == s.r[0] else NAN


def take_increment(s, length):
    """Move along the increment in `s.r`."""
    first: cython.int = 0
    last: cython.int
    while first < s.n:
        last = min(first + BLOCK, s.n)
        move_some(s, length, first, last)
        first = last


def move_some(s, length, first, last):
    """Move the unknowns `first` to `last`.

    In loops of few vectors each, which compilers turn into operations on several numbers at once.
    """
    i: cython.int
    cj: cython.double = s.cj
    for i in range(first, last):
        s.correction[i] += length * s.r[i]
    for i in range(first, last):
        s.y[i] = s.y_predicted[i] + s.correction[i]
    for i in range(first, last):
        s.yp[i] = s.yp_predicted[i] + cj * s.correction[i]


def stagnated(s, size):
    """Tell whether an iteration has stalled in round-off, rather than diverged."""
    return s.highest_kind > 1 and s.jacobian_current and STAGNATED * size <= s.newton_tolerance


def failure_of_solution(s):
    """Code for an increment that is not finite, although the residual is: GMRES may give none."""
    return NON_FINITE if s.linear_error == 0.0 else NO_CONVERGENCE


def correct_damped(s):
    """Newton with a new Jacobian in every iteration and steps that reduce the error.

    The natural monotonicity test (P82 section 5): of the lengths 1, 1/2, 1/4, ... the first is
    taken after which the next increment, with the same factors, is smaller.
    """
    m: cython.int
    status: cython.int = OK
    size: cython.double
    length: cython.double
    s.damped_steps += 1
    for m in range(MAX_DAMPED):
        status = evaluate(s, s.t_new, s.y, s.yp, s.r)
        if status == OK:
            status = set_up(s, True)
        if status != OK:
            return status
        s.iterations += 1
        size = find_increment(s, 1.0)
        if not size < 1e300:
            return failure_of_solution(s)
        if m == 0:
            s.first_increment = size
        if size <= DAMPED_ENOUGH * s.newton_tolerance:
            take_increment(s, 1.0)
            return OK
        length = damped_length(s, size)
        if length == 0.0:
            return OK if stagnated(s, size) else NO_CONVERGENCE
    return NO_CONVERGENCE


def damped_length(s, size):
    """Damp the increment in `s.r` until the next one is smaller; return the length, or zero."""
    i: cython.int
    status: cython.int
    length: cython.double = 1.0
    next_size: cython.double
    for i in range(s.n):
        s.increment[i] = s.r[i]
    while length > SHORTEST_DAMPED:
        for i in range(s.n):
            s.r[i] = s.increment[i]
        take_increment(s, length)
        status = evaluate(s, s.t_new, s.y, s.yp, s.r)
        if status == OK:
            next_size = find_increment(s, 1.0)
            if next_size <= (1.0 - length / 4.0) * size:
                return length
        for i in range(s.n):
            s.r[i] = s.increment[i]
        take_increment(s, -length)
        length /= 2.0
    return 0.0
