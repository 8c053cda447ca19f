"""The corrector: modified Newton with a stored factorisation."""

import cython
from cython.cimports.libc.math import fabs, pow

if not cython.compiled:
    from tether._core.adapters import evaluate
    from tether._core.codes import NO_CONVERGENCE, NON_FINITE, OK, UNSCALED, USER_EXCEPTION
    from tether._core.linear import assemble_and_factor, solve_scaled
    from tether._core.norms import weighted_norm
    from tether._core.predict import start_from_prediction

EPS = cython.declare(cython.double, 2.220446049250313e-16)
MAX_ITERATIONS = cython.declare(cython.int, 4)
# The factors serve while cj stays within this share of the cj they were made for.
CJ_DRIFT = cython.declare(cython.double, 0.1)
# A Jacobian older than this many steps is renewed when the matrix is factored again anyway.
OLD = cython.declare(cython.int, 50)
# Rates of convergence that are too slow: with an old Jacobian a new one is worth its price.
TOO_SLOW = cython.declare(cython.double, 0.3)
DIVERGING = cython.declare(cython.double, 0.9)
# Without a measured rate an increment counts as converged only when it is this many times
# smaller than the tolerance of the iteration.
UNKNOWN_RATE = cython.declare(cython.double, 100.0)
# An iteration that has come to a stand this far below the tolerance is left with round-off.
STAGNATED = cython.declare(cython.double, 10.0)
# At index 2 and 3: what the second increment may say about the rate.
EARLY_RATE = cython.declare(cython.double, 0.5)
# The damped iteration: how long, how short its steps, and how small its last increment.
MAX_DAMPED = cython.declare(cython.int, 20)
SHORTEST = cython.declare(cython.double, 1e-3)
DAMPED_ENOUGH = cython.declare(cython.double, 0.1)


def correct(s):
    """Solve F(t, y, y' predicted + cj (y - y predicted)) = 0 from the prediction, math (7).

    A failure with an old Jacobian is not held against the step: the iteration is repeated
    once with a new one.
    """
    status: cython.int
    if s.in_vain > 0:
        return correct_damped(s)
    status = evaluate(s, s.t_new, s.y, s.yp, s.r)
    if status != OK:
        return status
    if needs_factor(s):
        status = set_up(s, not s.jacobian_exists or s.steps - s.jacobian_step > OLD)
        if status == OK:
            status = iterate(s)
    else:
        status = iterate(s)
    if status == OK or status == USER_EXCEPTION or s.jacobian_current:
        return status
    start_from_prediction(s)
    status = evaluate(s, s.t_new, s.y, s.yp, s.r)
    if status == OK:
        status = set_up(s, True)
    if status == OK:
        status = iterate(s)
    return status


def needs_factor(s):
    """Tell whether the stored factors are too far from this step's matrix."""
    return s.cj_factored == 0.0 or fabs(s.cj / s.cj_factored - 1.0) > CJ_DRIFT


def set_up(s, fresh):
    """Factor the iteration matrix, with a new Jacobian at the predicted point if `fresh`."""
    status: cython.int
    if fresh:
        s.njev += 1
        s.cj_factored = 0.0
        s.correcting = True
        status = s.jacobian(s, s.t_new, s.y, s.yp)
        s.correcting = False
        if status != OK:
            s.jacobian_exists = False
            return status
        s.jacobian_exists = True
        s.jacobian_current = True
        s.jacobian_step = s.steps
    return assemble_and_factor(s)


def iterate(s):
    """Iterate from the residual in `s.r` until the error left is below the tolerance.

    The rate of convergence is measured anew in every step: a rate carried over from earlier
    steps, as in DASSL and IDA, lets errors of the iteration into the differences, and accepts
    points at which the residual was never seen.
    """
    m: cython.int
    status: cython.int
    size: cython.double
    first: cython.double = 1.0
    last: cython.double = 1.0
    rate: cython.double = 0.0
    # The factors belong to another cj: on average this brings the increment to size.
    damping: cython.double = 2.0 / (1.0 + s.cj / s.cj_factored)
    for m in range(MAX_ITERATIONS):
        s.iterations += 1
        size = find_increment(s, damping)
        if not size < 1e300:
            return NON_FINITE
        take_increment(s, 1.0)
        if m == 0:
            first = size
            s.first_increment = size
            s.rate = 0.0
            if UNKNOWN_RATE * size <= s.newton_tolerance:
                return OK
        else:
            rate = size / last if m == 1 or s.highest_kind > 1 else pow(size / first, 1.0 / m)
            s.rate = rate
            if m == 1 and s.highest_kind > 1:
                # A first correction of the positions turns up in the velocities, divided by h,
                # only with the second increment: too early for a verdict.
                rate = min(rate, EARLY_RATE)
            elif rate > (DIVERGING if s.jacobian_current else TOO_SLOW):
                return OK if stagnated(s, size) else NO_CONVERGENCE
            if size * rate / (1.0 - rate) <= s.newton_tolerance:
                return OK
        if size <= 100.0 * EPS * s.y_norm:      # nothing left but round-off
            return OK
        last = size
        if m + 1 < MAX_ITERATIONS:
            status = evaluate(s, s.t_new, s.y, s.yp, s.r)
            if status != OK:
                return status
    return NO_CONVERGENCE


def find_increment(s, damping):
    """Turn the residual in `s.r` into Newton's increment; return its size, P82 eq. 5.9 or 5.10."""
    i: cython.int
    size: cython.double
    for i in range(s.n):
        s.r[i] = -s.r[i] * damping
    if s.scaling_mode == UNSCALED:
        s.solve(s, s.r)
    else:
        solve_scaled(s, s.r)
    size = weighted_norm(s, s.r, s.newton_weight, s.newton_norm)
    return size / fabs(s.h) if s.newton_by_step else size


def take_increment(s, length):
    """Move along the increment in `s.r`."""
    i: cython.int
    for i in range(s.n):
        s.correction[i] += length * s.r[i]
        s.y[i] = s.y_predicted[i] + s.correction[i]
        s.yp[i] = s.yp_predicted[i] + s.cj * s.correction[i]


def stagnated(s, size):
    """Tell an iteration that stands still in round-off from one that diverges."""
    return s.highest_kind > 1 and s.jacobian_current and STAGNATED * size <= s.newton_tolerance


def correct_damped(s):
    """Newton with a new Jacobian in every iteration and steps that must pay (P82 section 5).

    Of the lengths 1, 1/2, 1/4, ... the first is taken after which the next increment, with the
    same factors, is smaller (the natural monotonicity test).
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
            return NON_FINITE
        if m == 0:
            s.first_increment = size
        if size <= DAMPED_ENOUGH * s.newton_tolerance:
            take_increment(s, 1.0)
            return OK
        length = paying_length(s, size)
        if length == 0.0:
            return OK if stagnated(s, size) else NO_CONVERGENCE
    return NO_CONVERGENCE


def paying_length(s, size):
    """Go along the increment in `s.r` as far as it pays; return the length, zero for none."""
    i: cython.int
    status: cython.int
    length: cython.double = 1.0
    next_size: cython.double
    for i in range(s.n):
        s.increment[i] = s.r[i]
    while length > SHORTEST:
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
