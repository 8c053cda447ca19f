"""Accuracy between the steps of unknowns that are exact at the steps.

The equations determine the multipliers of a reduced system exactly at every step, and they carry no
error on, so the error test can leave them out (PL2 section 5). Between the steps they are only as
good as the polynomial through the steps. Where one is wanted there, its interpolation error takes
part in the error test and in the choice of order and step, math (32); and since values at the steps
cannot show what happens between them, a point inside the step is checked as well.
"""

import cython
from cython.cimports.libc.math import fabs

if not cython.compiled:
    from tether._core.adapters import evaluate
    from tether._core.codes import COLUMNS, ERROR_TEST, OF_Y, OK
    from tether._core.linear import solve_scaled

# Between the last two points a polynomial of degree k is off by a quarter of alpha_(k+1) times
# the difference of order k + 1 at most.
QUARTER = cython.declare(cython.double, 0.25)
# Factor by which differences of high order amplify the round-off of a value.
ROUND_OFF_GAIN = cython.declare(cython.double, 100.0)
# Perturbations that reveal round-off, relative to a value and to its tolerance.
LAST_DIGIT = cython.declare(cython.double, 2.0 * 2.220446049250313e-16)
FAR_BELOW_TOLERANCE = cython.declare(cython.double, 1e-3)
SAMPLES = cython.declare(cython.int, 3)
# Round-off below this share of the tolerance does not matter.
NEGLIGIBLE = cython.declare(cython.double, 1e-3)
# Steps between measurements, and after which round-off that mattered is measured again.
MEASURE_EVERY = cython.declare(cython.longlong, 20)
MEASURE_AGAIN_AFTER = cython.declare(cython.longlong, 50)
# Largest difference accepted at a point inside the step, in tolerances: for unknowns that are exact
# at the steps, for those that follow from slopes, and for those in the error test anyway.
LIMIT_AT_STEPS = cython.declare(cython.double, 2.0)
LIMIT_BY_SLOPES = cython.declare(cython.double, 100.0)
LIMIT_OF_TESTED = cython.declare(cython.double, 10.0)
# Points inside the step are placed by the golden section, which shares no period with anything, in
# this middle part of it.
GOLDEN = cython.declare(cython.double, 0.6180339887498949)
MIDDLE_PART = cython.declare(cython.double, 0.7)
# Steps no longer than those checked before are checked only this often.
CHECK_EVERY = cython.declare(cython.longlong, 4)
# There is a jump if a difference keeps more than this share of itself when the step gets shorter,
# and that so many times in a row.
REMAINING_SHARE = cython.declare(cython.double, 0.15)
REDUCTIONS_AT_JUMP = cython.declare(cython.int, 10)
# In tolerances: unknowns have followed a projection when their last change is below this; and the
# most iterations for that.
FOLLOW_TOLERANCE = cython.declare(cython.double, 0.1)
MAX_TURNS = cython.declare(cython.int, 4)


def allowed_between(s, i):
    """Tolerance of unknown i between the steps."""
    return s.tolerance[i] + max(s.round_off[i], ROUND_OFF_GAIN * s.own_noise[i])


def weight_between(s, i):
    """Weight in the error test of an unknown that is exact at the steps, math (32)."""
    return QUARTER / allowed_between(s, i) if s.wanted[i] else 0.0


def only_between(s):
    """Tell whether a failed test is due only to unknowns that are exact at the steps."""
    i: cython.int
    error: cython.double = 0.0
    for i in range(s.n):
        if s.kind[i] < 2:
            error = max(error, fabs(s.correction[i]) * s.error_weight[i])
    return s.error_constant[s.k] * error <= 1.0


def measure_round_off(s):
    """Measure the round-off of these unknowns, which adds to their tolerance; tell if it is new.

    It is their change when all unknowns change in their last digit, and what remains of a change
    far below the tolerance and its opposite.
    """
    i: cython.int
    sample: cython.int
    far: cython.double
    if s.round_off_step == 0 or s.steps - s.round_off_step >= MEASURE_EVERY:
        for i in range(s.n):
            s.round_off[i] = 0.0
    elif s.shorter_at_jump % 3 != 1:           # a few more samples if shorter steps do not help
        return False
    s.round_off_step = s.steps + 1
    if evaluate(s, s.t_new, s.y, s.yp, s.increment) != OK:
        return False
    if evaluate_beside(s, LAST_DIGIT, 0.0) != OK:
        return False
    for i in range(s.n):
        s.r[i] -= s.increment[i]
    note_round_off(s)
    for sample in range(SAMPLES):
        far = FAR_BELOW_TOLERANCE * (1.0 + next_fraction(s))
        if evaluate_beside(s, 0.0, far) != OK:
            return False
        for i in range(s.n):
            s.scratch[i] = s.r[i] - 2.0 * s.increment[i]
        if evaluate_beside(s, 0.0, -far) != OK:
            return False
        for i in range(s.n):
            s.r[i] += s.scratch[i]
        note_round_off(s)
    for i in range(s.n):
        if s.kind[i] == 2:
            s.error_weight[i] = weight_between(s, i)
    return True


def measure_again(s):
    """Measure round-off again if it mattered and the last measurement is old."""
    i: cython.int
    if s.round_off_step == 0 or s.steps - s.round_off_step < MEASURE_AGAIN_AFTER:
        return
    for i in range(s.n):
        if s.kind[i] == 2 and s.round_off[i] > NEGLIGIBLE * s.tolerance[i]:
            measure_round_off(s)
            return


def evaluate_beside(s, relative, of_tolerance):
    """Evaluate the residual at a point beside that of the step, in `s.r`."""
    i: cython.int
    for i in range(s.n):
        s.y_predicted[i] = s.y[i] * (1.0 + (relative if i % 2 == 0 else -relative))
        s.y_predicted[i] += (of_tolerance if i % 2 == 0 else -of_tolerance) * s.tolerance[i]
    return evaluate(s, s.t_new, s.y_predicted, s.yp, s.r)


def note_round_off(s):
    """Turn the round-off of the equations, in `s.r`, into that of the unknowns they determine."""
    i: cython.int
    solve_scaled(s, s.r)
    for i in range(s.n):
        if s.kind[i] == 2:
            s.round_off[i] = max(s.round_off[i], ROUND_OFF_GAIN * fabs(s.r[i]))


def largest_difference(s):
    """Largest weighted difference of predictor and corrector among these unknowns."""
    i: cython.int
    size: cython.double = 0.0
    for i in range(s.n):
        if s.kind[i] == 2:
            size = max(size, fabs(s.correction[i]) * s.error_weight[i])
    return size


def passes_jump(s, size):
    """Accept a short step that fails only because of a jump of these unknowns.

    Shorter steps do not reduce its `size`, and the values at both ends of a step that is short
    enough describe the jump.
    """
    if fabs(s.h) < s.jump_step and size > REMAINING_SHARE * s.jump_size:
        s.shorter_at_jump += 1
    else:
        s.shorter_at_jump = 0
    s.jump_step = fabs(s.h)
    s.jump_size = size
    s.jumped = s.shorter_at_jump >= REDUCTIONS_AT_JUMP
    if s.jumped:
        s.jump_step = 0.0
    return s.jumped


def note_corrections(s):
    """Keep the corrections from before the projection."""
    i: cython.int
    for i in range(s.n):
        s.filtered[i] = s.correction[i]


def follow_projection(s):
    """Let the unknowns that the equations determine follow the others onto the constraints.

    The first iteration uses the derivatives; further ones evaluate the equations, if the move was
    large.
    """
    i: cython.int
    turn: cython.int
    size: cython.double
    for turn in range(MAX_TURNS):
        if turn == 0:
            for i in range(s.n):
                s.filtered[i] -= s.correction[i]
                s.increment[i] = 0.0
        elif evaluate(s, s.t_new, s.y, s.yp, s.increment) == OK:
            for i in range(s.n):
                s.filtered[i] = 0.0
        else:
            return
        determine(s)
        size = 0.0
        for i in range(s.n):
            if s.kind[i] == 2:
                s.correction[i] += s.r[i]
                s.y[i] += s.r[i]
                s.yp[i] += s.cj * s.r[i]
                size = max(size, fabs(s.r[i]) / allowed_between(s, i))
        if not size > FOLLOW_TOLERANCE:
            return


def determine(s):
    """Find the change z of these unknowns that goes with the others' change, in `s.filtered`.

    c F_y' d + F_z z = F_y dy - r for some change c d of the slopes, with the residual r in
    `s.increment`. The stored factors are those of c F_y' + F_y; a second iteration corrects for
    F_y d.
    """
    i: cython.int
    turn: cython.int
    for i in range(s.n):
        s.r[i] = 0.0
    for turn in range(2):
        for i in range(s.n):
            s.scratch[i] = s.filtered[i] + s.r[i] if s.kind[i] != 2 else 0.0
            s.r[i] = -s.increment[i]
        s.matrix.add_product(OF_Y, s.scratch, s.r)
        solve_scaled(s, s.r)


def begin_after_jump(s):
    """After a step with a jump: begin at order 1, and forget the history of what has jumped."""
    i: cython.int
    j: cython.int
    for i in range(s.n):
        if s.kind[i] == 2:
            for j in range(1, COLUMNS):
                s.phi[j * s.n + i] = 0.0
    s.k = 1
    s.past = 0
    s.steps_at_order = 0
    s.starting = True
    s.last_control = 0.0


def check_between(s):
    """Compare the polynomial with the equations at one point inside the step.

    One Newton iteration from the polynomial and its slope, with the stored factors, gives the
    values that the equations determine there, whatever the errors of the slope. Values at the steps
    alone cannot tell an oscillation from a constant if the steps are multiples of its period.
    """
    i: cython.int
    status: cython.int
    error: cython.double
    delta: cython.double
    if s.jumped or not is_due(s):
        return OK
    if s.exact_at_steps:
        measure_again(s)
    delta = -(0.5 + MIDDLE_PART * (next_fraction(s) - 0.5)) * s.h
    evaluate_new_polynomial(s, delta, s.y_predicted, s.yp_predicted)
    status = evaluate(s, s.t_new + delta, s.y_predicted, s.yp_predicted, s.r)
    if status != OK:
        return status if status < 0 else OK
    solve_scaled(s, s.r)
    for i in range(s.n):
        s.r[i] *= 2.0 / (1.0 + s.cj / s.cj_factored)
    error = relative_difference(s)
    if error <= 1.0:
        s.checked_step = max(s.checked_step, fabs(s.h))
        return OK
    if s.exact_at_steps and passes_jump(s, error):
        return OK
    s.checked_step = 0.0
    for i in range(1, COLUMNS):
        s.order_error[i] = error
    return ERROR_TEST


def next_fraction(s):
    """Go on to the next fraction of the step."""
    s.place += GOLDEN
    if s.place >= 1.0:
        s.place -= 1.0
    return s.place


def is_due(s):
    """Tell whether to check this step: it is longer than those checked, or its turn has come."""
    return s.starting or fabs(s.h) > s.checked_step or s.steps % CHECK_EVERY == 0


def relative_difference(s):
    """Size of the differences in `s.r`, relative to what is accepted."""
    i: cython.int
    x: cython.double
    error: cython.double = 0.0
    for i in range(s.n):
        if not s.wanted[i] or (s.kind[i] < 2 and s.wanted[i] < 2):
            continue
        if s.kind[i] < 2:
            x = 1.0 / (LIMIT_OF_TESTED * s.tolerance[i])
        elif s.exact_at_steps:
            x = 1.0 / (LIMIT_AT_STEPS * allowed_between(s, i))
        else:
            x = s.filtered_weight[i] / LIMIT_BY_SLOPES
            if not s.reaction[i]:      # the weights of reactions include it
                x *= s.share
        error = max(error, fabs(s.r[i]) * x)
    return error


def evaluate_new_polynomial(s, delta, y, yp):
    """Evaluate, at t_new + delta, the polynomial that this step will leave, and its slope."""
    n: cython.int = s.n
    i: cython.int
    j: cython.int
    difference: cython.double
    value: cython.double
    slope: cython.double
    for i in range(n):
        difference = s.correction[i]
        value = slope = 0.0
        for j in range(s.k, -1, -1):
            slope = (value + (delta + s.psi_new[j]) * slope) / s.psi_new[j + 1]
            value = (delta + s.psi_new[j]) / s.psi_new[j + 1] * value
            if j > 0:
                difference += s.beta[j] * s.phi[j * n + i]
                value += difference
        y[i] = s.y[i] + value
        yp[i] = slope
