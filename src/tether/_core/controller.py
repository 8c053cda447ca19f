"""Step size: after a success, after a failure, and at the end of the interval."""

import cython
from cython.cimports.libc.math import fabs, sqrt

if not cython.compiled:
    from tether._core.begin import find_curvature, follow_parabola
    from tether._core.codes import (
        ERROR_TEST,
        H211B,
        NO_CONVERGENCE,
        OK,
        SMALLER_IS_WORSE,
        STRUCTURE_IN_DOUBT,
    )
    from tether._core.order import is_quiet, lower_order, possible_growth

EPS = cython.declare(cython.double, 2.220446049250313e-16)
MAX_GROWTH = cython.declare(cython.double, 2.0)
MIN_RATIO = cython.declare(cython.double, 0.5)
# Growth with which a solution at rest keeps the order that its derivatives need.
QUIET_GROWTH = cython.declare(cython.double, 1.05)
# Dead band: within these ratios the step, and with it the stored factors, stays the same.
BAND_LOW = cython.declare(cython.double, 0.9)
BAND_HIGH = cython.declare(cython.double, 1.2)
MAX_ERROR_FAILURES = cython.declare(cython.int, 20)
MAX_NEWTON_FAILURES = cython.declare(cython.int, 20)
# A quarter of the step should reduce the first increment to less than this share ...
INCREMENT_RATIO = cython.declare(cython.double, 0.5)
# ... and the error, to which at high order the longer earlier steps contribute, to this.
ERROR_RATIO = cython.declare(cython.double, 0.8)
# Before giving up, try about the smallest possible step, if it is below this share of the last.
LAST_CHANCE = cython.declare(cython.double, 0.75)
MAX_IN_VAIN = cython.declare(cython.int, 4)


def next_step(s):
    """Size of the next step after a success at the order chosen in `s.new_order`."""
    ratio: cython.double
    control: cython.double = possible_growth(s, s.new_order)
    if s.controller == H211B:
        ratio = h211b_ratio(s, control)
    else:
        ratio = dassl_ratio(control)
    # No growth right after a failed attempt: its cause is just behind or ahead. Nor at a lower
    # order, whose term may be small because it is passing through zero.
    if ratio > 1.0 and (s.error_failures + s.newton_failures > 0 or s.new_order < s.k):
        ratio = 1.0
    if ratio > QUIET_GROWTH and is_quiet(s):
        ratio = QUIET_GROWTH
    s.last_control = control
    return s.h * ratio


def h211b_ratio(s, control):
    """Söderlind's filter H211b with b = 4 (HK reference 7), math (11), with a dead band."""
    ratio: cython.double
    if s.last_control == 0.0:          # no control to look back on, after a start or a failure
        ratio = sqrt(control)
    else:
        ratio = sqrt(sqrt(control * s.last_control * s.last_h / s.h))
    if BAND_LOW <= ratio <= BAND_HIGH:
        return 1.0
    if ratio > MAX_GROWTH:
        return MAX_GROWTH
    return MIN_RATIO if ratio < MIN_RATIO else ratio


def dassl_ratio(control):
    """DASSL's rule: keep, halve or double."""
    if control >= 2.0:
        return 2.0
    if control > 1.0:
        return 1.0
    if control > 0.9:
        return 0.9
    return 0.5 if control < 0.5 else control


def recover(s, status):
    """Reduce step and order after a failed attempt; return the failure if that cannot help.

    STRUCTURE_IN_DOUBT asks for the equations to be examined before the next attempt: an error that
    does not shrink with the step is a sign that the index is too high (P82 section 5).

    After the first failure of the error test the estimate is trusted; after the second it is in
    doubt; after the third so is the history, and the order is built up again as at a start: from 1,
    or for index 3 as written from a parabola.
    """
    ratio: cython.double
    attempted: cython.int = s.k
    in_doubt: cython.bint = False
    s.starting = False
    s.last_control = 0.0
    if status == ERROR_TEST:
        s.error_failures += 1
        s.error_test_failures += 1
        if s.error_failures == 1:
            s.k = max(lower_order(s), s.lowest_order)
            ratio = 0.9 * possible_growth(s, s.k)
            ratio = 0.9 if ratio > 0.9 else (0.25 if ratio < 0.25 else ratio)
        else:
            s.k = max(lower_order(s) if s.error_failures == 2 else 1, s.lowest_order)
            s.starting = s.error_failures >= 3 and s.lowest_order == 1
            if s.error_failures >= 3:
                s.past = 0
            ratio = 0.25
            in_doubt = (
                s.error_failures >= 3
                and s.order_error[attempted] > ERROR_RATIO * s.failed_error
                and s.steps >= s.review_after
                and not s.exact_at_steps   # its index is 1
            )
        s.failed_error = s.order_error[attempted] if s.k == attempted else 1e300
        if not s.jacobian_current:         # the iteration may have seemed to converge
            forget_jacobian(s)
    else:
        s.newton_failures += 1
        s.convergence_failures += 1
        forget_jacobian(s)                 # from a bad prediction: useless at a better one
        ratio = 0.25
        in_doubt = s.rank_changed
        if status == NO_CONVERGENCE and smaller_is_worse(s):
            return -SMALLER_IS_WORSE
    s.steps_at_order = 0
    if fabs(s.h) * ratio < smallest_step(s) < LAST_CHANCE * fabs(s.h):
        ratio = smallest_step(s) / fabs(s.h)
    s.h *= ratio
    if s.error_failures >= 3 and s.lowest_order > 1:
        find_curvature(s, attempted)
        follow_parabola(s)
        in_doubt = in_doubt or s.t != s.t_began
    if (
        fabs(s.h) >= smallest_step(s)
        and s.error_failures < MAX_ERROR_FAILURES
        and s.newton_failures < MAX_NEWTON_FAILURES
    ):
        return STRUCTURE_IN_DOUBT if in_doubt else OK
    return -status


def smaller_is_worse(s):
    """Count failures after which a smaller step began no closer to the solution.

    From the first such failure on the iteration is damped; several in a row, each beginning farther
    away than the last, mean that the matrix is too ill-conditioned (P82 section 5).
    """
    farther: cython.bint = s.first_increment > s.failed_increment
    no_closer: cython.bint = s.first_increment > INCREMENT_RATIO * s.failed_increment
    if s.newton_failures == 1:
        s.in_vain = 0
    elif s.in_vain > 0:
        s.in_vain = s.in_vain + 1 if farther else 1
    elif no_closer:
        s.in_vain = 1
    s.failed_increment = s.first_increment
    return s.in_vain > MAX_IN_VAIN


def forget_jacobian(s):
    """Let the next attempt begin with a new Jacobian."""
    s.jacobian_exists = False
    s.cj_factored = 0.0


def fit_to_end(s):
    """Land on t_end exactly, with two equal steps rather than a long and a tiny one.

    The step becomes the difference of the rounded times; at large t the change can be noticeable.
    """
    left: cython.double = s.t_end - s.t
    if fabs(s.h) > s.max_step:
        s.h = s.direction * s.max_step
    if s.n_ceilings > 0:
        s.h = s.direction * below_ceilings(s, fabs(s.h))
    if fabs(s.h) < smallest_step(s):
        s.h = s.direction * smallest_step(s)
    if fabs(s.h) >= fabs(left) * (1.0 - 100.0 * EPS):
        s.t_new = s.t_end
    elif 2.0 * fabs(s.h) > fabs(left):
        s.t_new = s.t + 0.5 * left
    else:
        s.t_new = s.t + s.h
    s.h = s.t_new - s.t


def below_ceilings(s, h):
    """Shorten a step to the limit where it begins, or to end where a lower limit begins."""
    k: cython.int = s.ceiling
    ahead: cython.double
    while k > 0 and s.direction * (s.ceiling_t[k] - s.t) > 0.0:      # a step was cut
        k -= 1
    while k + 1 < s.n_ceilings and s.direction * (s.ceiling_t[k + 1] - s.t) <= 0.0:
        k += 1
    s.ceiling = k
    if h > s.ceiling_h[k]:
        h = s.ceiling_h[k]
    for k in range(k + 1, s.n_ceilings):
        ahead = s.direction * (s.ceiling_t[k] - s.t)
        if ahead >= h:
            break
        if h > s.ceiling_h[k]:
            h = max(ahead, s.ceiling_h[k])
    return h


def smallest_step(s):
    """Step below which times can no longer be told apart."""
    return 4.0 * EPS * fabs(s.t)
