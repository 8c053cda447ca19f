"""The corrector: modified Newton with a stored factorisation."""

import cython
from cython.cimports.libc.math import fabs, pow

if not cython.compiled:
    from tether._core.adapters import evaluate
    from tether._core.codes import NO_CONVERGENCE, NON_FINITE, OK, USER_EXCEPTION
    from tether._core.linear import assemble_and_factor
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


def correct(s):
    """Solve F(t, y, y' predicted + cj (y - y predicted)) = 0 from the prediction, math (7).

    A failure with an old Jacobian is not held against the step: the iteration is repeated
    once with a new one.
    """
    status: cython.int = evaluate(s, s.t_new, s.y, s.yp, s.r)
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
        status = s.jacobian(s, s.t_new, s.y, s.yp)
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
    steps, as in DASSL and IDA, lets iteration errors into the algebraic variables.
    """
    i: cython.int
    m: cython.int
    status: cython.int
    size: cython.double
    first: cython.double = 1.0
    rate: cython.double = 0.0
    # The factors belong to another cj: on average this brings the increment to size.
    damping: cython.double = 2.0 / (1.0 + s.cj / s.cj_factored)
    for m in range(MAX_ITERATIONS):
        s.iterations += 1
        for i in range(s.n):
            s.r[i] = -s.r[i] * damping
        s.solve(s, s.r)
        size = weighted_norm(s, s.r, s.newton_norm)
        if not size < 1e300:
            return NON_FINITE
        for i in range(s.n):
            s.correction[i] += s.r[i]
            s.y[i] = s.y_predicted[i] + s.correction[i]
            s.yp[i] = s.yp_predicted[i] + s.cj * s.correction[i]
        if m == 0:
            first = size
            if UNKNOWN_RATE * size <= s.newton_tolerance:
                return OK
        else:
            rate = pow(size / first, 1.0 / m)
            if rate > (DIVERGING if s.jacobian_current else TOO_SLOW):
                return NO_CONVERGENCE
            if size * rate / (1.0 - rate) <= s.newton_tolerance:
                return OK
        if size <= 100.0 * EPS * s.y_norm:      # nothing left but round-off
            return OK
        if m + 1 < MAX_ITERATIONS:
            status = evaluate(s, s.t_new, s.y, s.yp, s.r)
            if status != OK:
                return status
    return NO_CONVERGENCE
