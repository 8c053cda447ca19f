"""What a truncation error does to the solution, and which part of it the error test looks at.

With T = (F_y + c F_y')^-1 c F_y' a truncation error d leaves the error T d in the solution, math
(20) (P82 eq. 4.5, PL2 eq. 5.1). In an unknown of var_index v it is larger than d by a factor
h^(1-v).
"""

import cython
from cython.cimports.libc.math import fabs

if not cython.compiled:
    from tether._core.between import weight_between
    from tether._core.codes import OF_Y, OF_YP
    from tether._core.linear import solve_scaled
    from tether._core.norms import weighted_norm

# The estimates, by their places in the table of `problem/options.py`. Place 1, "exclude", does what
# they all do and is tested for nowhere.
CLASSICAL = cython.declare(cython.int, 0)
SCALED = cython.declare(cython.int, 2)
LOCAL = cython.declare(cython.int, 3)
MECHANICAL = cython.declare(cython.int, 4)

EPS = cython.declare(cython.double, 2.220446049250313e-16)
# Multiples of the round-off of a velocity or reaction: what differences of order k amplify it to in
# the error test, and the level an iteration cannot get below.
NOISE_OF_ERROR = cython.declare(cython.double, 100.0)
NOISE_OF_ITERATION = cython.declare(cython.double, 10.0)
# In tolerances: round-off above this is more than the test may be loosened by.
MAX_ROUND_OFF = cython.declare(cython.double, 1e4)
# Lower bound of h / time scale: no unknown is ever left out of the convergence test (PL2 section
# 4).
LEAST_CHANGE = cython.declare(cython.double, 1e-2)
# Steps after a start or a jump in which unknowns that follow from slopes cannot be tested.
UNTESTABLE_STEPS = cython.declare(cython.int, 2)
# After so many failures a step contains a jump, and shorter steps do not reduce the error.
FAILURES_AT_JUMP = cython.declare(cython.int, 6)


def filters(s):
    """Tell whether the estimate looks at T d instead of d."""
    return s.estimate == LOCAL or s.estimate == MECHANICAL


def apply_estimate(s):
    """Turn the plain errors at all orders into those that the estimate looks at."""
    if filters(s):
        replace_error(s)
    elif s.interpolated and not s.exact_at_steps and s.estimate != CLASSICAL:
        raise_error(s, interpolation_error(s))


def raise_error(s, error):
    """Raise the error to at least this, and those at the other orders in proportion."""
    q: cython.int
    before: cython.double = s.order_error[s.k]
    if error <= before:
        return
    for q in range(max(s.k - 2, 1), s.k + 2):
        s.order_error[q] = s.order_error[q] * error / before if before > 0.0 else error
    s.order_error[s.k] = error


def replace_error(s):
    """Replace the plain error by the filtered one, at the other orders in proportion.

    The terms that choose the order remain those of the plain differences, math (9).
    """
    k: cython.int = s.k
    q: cython.int
    i: cython.int
    error: cython.double
    plain: cython.double = s.order_error[k]
    for i in range(s.n):
        s.filtered[i] = s.correction[i]
    filter_error(s)
    error = s.error_constant[k] * weighted_norm(s, s.filtered, s.filtered_weight, s.error_norm)
    if s.interpolated:
        error = max(error, interpolation_error(s))
    if s.starting:                     # too early to know what the filter may remove
        error = max(error, plain)
    for q in range(max(k - 2, 1), k + 2):
        s.order_error[q] = s.order_error[q] * error / plain if plain > 0.0 else error
    s.order_error[k] = error


def set_test_weights(s):
    """Weights of the error and the convergence test for this step, by kind, math (22)-(24)."""
    i: cython.int
    v: cython.int
    power: cython.double            # h^(v-1)
    share: cython.double            # (h / time scale)^(v-1), times the share of the tolerance
    change: cython.double
    h: cython.double = fabs(s.h)
    iteration: cython.double = NOISE_OF_ITERATION / s.newton_tolerance
    untestable: cython.bint
    if s.newton_by_step:            # the iteration is held to y'
        iteration /= h
    find_noise(s)
    if s.exact_at_steps:
        set_weights_of_determined(s, iteration)
        return
    change = change_of_step(s)
    if s.highest_kind > 2 and s.untestable == 0 and round_off_dominates(s):
        s.untestable = 1
    untestable = is_untestable(s)
    for i in range(s.n):
        s.error_weight[i] = s.filtered_weight[i] = s.newton_weight[i] = s.weight[i]
        if s.kind[i] < 2:
            if s.newton_by_step:
                s.newton_weight[i] = 1.0 / (s.tolerance[i] + iteration * s.scratch[i])
            continue
        power = 1.0
        share = 1.0
        for v in range(1, s.kind[i]):
            power *= h
            share *= change
        s.newton_weight[i] = 1.0 / (s.tolerance[i] + iteration * s.scratch[i] + s.round_off[i])
        s.filtered_weight[i] = 1.0 / (s.tolerance[i] + NOISE_OF_ERROR * s.scratch[i])
        if s.estimate != CLASSICAL and s.estimate != LOCAL and s.reaction[i]:
            s.filtered_weight[i] *= share * s.share
            if s.estimate == MECHANICAL:
                s.newton_weight[i] *= share
        if s.estimate == SCALED:
            s.error_weight[i] *= power
        elif s.estimate != CLASSICAL:
            s.error_weight[i] = 0.0
        if untestable:
            s.filtered_weight[i] = 0.0


def set_weights_of_determined(s, iteration):
    """Set the weights in a reduced system, where kind 2 means determined by the equations."""
    i: cython.int
    for i in range(s.n):
        s.error_weight[i] = s.newton_weight[i] = s.weight[i]
        if s.kind[i] == 2:
            s.newton_weight[i] = 1.0 / (s.tolerance[i] + iteration * s.scratch[i] + s.round_off[i])
            s.error_weight[i] = weight_between(s, i)
        elif s.newton_by_step:
            s.newton_weight[i] = 1.0 / (s.tolerance[i] + iteration * s.scratch[i])


def is_untestable(s):
    """Tell whether errors of velocities and reactions of index 3 do not shrink with this step.

    They do not at order 1 just after a change of the step (P82 eq. 3.12), nor after a jump.
    """
    if s.highest_kind < 3:
        return False
    if s.starting or s.untestable > 0 or s.error_failures >= FAILURES_AT_JUMP:
        return True
    return s.k == 1 and s.steps_at_order <= UNTESTABLE_STEPS


def round_off_dominates(s):
    """Tell whether the step is so short that velocities or reactions are only round-off.

    Their sizes are those of the largest of the same kind, or of the change of velocities in the
    step: a mechanism may begin at rest and without reactions.
    """
    i: cython.int
    kind: cython.int
    size: cython.double
    for i in range(s.n):
        if s.kind[i] == 2 and fabs(s.h * s.yp_n[i]) > NOISE_OF_ITERATION * s.scratch[i]:
            return False
    for kind in range(2, s.highest_kind + 1):
        size = 0.0
        for i in range(s.n):
            if s.kind[i] == kind:
                size = max(size, fabs(s.phi[i]) / s.unit[i])
        for i in range(s.n):
            if s.kind[i] == kind and NOISE_OF_ITERATION * s.scratch[i] > max(
                MAX_ROUND_OFF * s.tolerance[i], size * s.unit[i]
            ):
                return True
    return False


def is_lost_in_round_off(s):
    """Tell whether slopes would lose more by round-off at the next order than gain, math (11a).

    Behind steps that double, a slope at order 6 multiplies the round-off of its points by 80,000,
    and with it that of unknowns which follow from slopes.
    """
    i: cython.int
    j: cython.int
    order: cython.int = s.k + 1
    weight: cython.double
    total: cython.double = 0.0      # of the sizes of the weights of the points in h y'
    if s.k == 1 or s.highest_kind < 2 or s.exact_at_steps:
        return False
    if fabs(s.t_new - s.t_began) > 2.0 * fabs(s.h):         # not only steps that have doubled
        return False
    for j in range(1, order + 1):
        weight = s.alpha[j]
        for i in range(1, order + 1):
            if i != j:
                weight *= s.psi_new[i] / (s.psi_new[i] - s.psi_new[j])
        total += s.alpha[j] + fabs(weight)
    return s.alpha[order] * s.difference_norm[s.k] < EPS * s.y_norm * total


def note_reactions(s):
    """Note how large reactions of index 3 get, and their largest error in an accepted step.

    The test is looser for short steps and for their round-off, math (22), (23); after a jump it may
    accept an error that is a good part of the value.
    """
    i: cython.int
    error: cython.double = 0.0
    if not filters(s):
        return
    for i in range(s.n):
        if s.kind[i] > 2 and s.reaction[i]:
            s.largest_reaction = max(s.largest_reaction, fabs(s.y[i]) / s.unit[i])
            error = max(error, fabs(s.filtered[i]) / s.unit[i])
    error *= s.error_constant[s.k]
    if error > s.reaction_error:
        s.reaction_error = error
        s.t_reaction_error = s.t_new


def note_untested(s):
    """Note an accepted step in which unknowns that follow from slopes could not be tested."""
    if s.untestable > 0:
        s.untestable -= 1
    elif s.error_failures >= FAILURES_AT_JUMP:
        s.untestable = UNTESTABLE_STEPS
    if s.untested == 0:
        s.t_untested = s.t_new
    s.untested += 1
    s.t_last_untested = s.t_new


def find_noise(s):
    """Find the round-off of all unknowns, in `s.scratch`.

    That of an ordinary one is u |y|. Velocities and reactions are differences over a step: in the
    equation a y' + b z = 0 the round-off of z is that of y times a / (b h). It thus has the unit of
    z, whatever the units of masses and lengths.
    """
    j: cython.int
    v: cython.int
    size: cython.double = 0.0
    h: cython.double = fabs(s.h)
    for j in range(s.n):
        if s.kind[j] < 2:
            size = max(size, fabs(s.phi[j]) / s.unit[j])
    if s.highest_kind == 2:            # only a / b matters then, until the next Jacobian
        if s.noise_jacobian != s.njev:
            for j in range(s.n):
                s.scratch[j] = s.unit[j]
            find_noise_of_kind(s, 2, 1.0)
            for j in range(s.n):
                s.noise_share[j] = s.scratch[j]
            if s.exact_at_steps:
                find_own_noise(s)
            s.noise_jacobian = s.njev
        for j in range(s.n):
            s.scratch[j] = EPS * size * s.noise_share[j]
            if s.kind[j] > 1:
                s.scratch[j] = s.own_noise[j] if s.own_noise[j] > 0.0 else s.scratch[j] / h
        return
    for j in range(s.n):
        s.scratch[j] = EPS * size * s.unit[j]
        for v in range(1, s.kind[j]):
            s.scratch[j] /= h
    for v in range(2, s.highest_kind + 1):
        find_noise_of_kind(s, v, h)


def find_own_noise(s):
    """Find the round-off of unknowns that equations without slopes determine, in `s.own_noise`.

    The terms of such an equation have round-off of their own size, whatever the step is.
    """
    i: cython.int
    j: cython.int
    noise: cython.double
    for j in range(s.n):
        s.r[j] = 1.0
    s.matrix.largest_in_rows(OF_YP, s.r, s.scratch)
    for j in range(s.n):
        s.r[j] = EPS * (fabs(s.phi[j]) + s.tolerance[j])
    s.matrix.largest_in_rows(OF_Y, s.r, s.increment)
    for i in range(s.n):
        if s.scratch[i] > 0.0:
            s.increment[i] = 0.0           # equations with slopes do not count
    for j in range(s.n):
        if s.kind[j] == 2:
            noise = s.matrix.largest_in_column(OF_Y, j, s.increment)
            s.own_noise[j] = 1.0 / noise if noise > 0.0 else 0.0
    if s.cj_factored == 0.0:
        return
    for i in range(s.n):
        s.r[i] = s.increment[i] if i % 2 == 0 else -s.increment[i]
    solve_scaled(s, s.r)
    for j in range(s.n):
        if s.own_noise[j] > 0.0 and fabs(s.r[j]) < 1e300:
            s.own_noise[j] = max(s.own_noise[j], fabs(s.r[j]))


def find_noise_of_kind(s, v, h):
    """Turn the round-off of the lower kinds, in `s.scratch`, into that of kind v."""
    j: cython.int
    noise: cython.double
    for j in range(s.n):
        s.r[j] = s.scratch[j] if s.kind[j] < v else 0.0
    s.matrix.largest_in_rows(OF_YP, s.r, s.increment)      # terms that are differenced
    for j in range(s.n):
        if s.kind[j] == v:                     # by the equation that shows it best
            noise = s.matrix.largest_in_column(OF_Y, j, s.increment)
            if noise > 0.0:
                s.scratch[j] = 1.0 / (noise * h)


def change_of_step(s):
    """Share of their size by which the step moves the ordinary unknowns: h / time scale."""
    i: cython.int
    slope: cython.double = 0.0
    for i in range(s.n):
        if s.kind[i] < 2:
            slope = max(slope, fabs(s.yp_n[i]) * s.weight[i])
    if s.y_norm == 0.0:
        return 1.0
    return min(max(fabs(s.h) * slope / s.y_norm, LEAST_CHANGE), 1.0)


def filter_error(s):
    """Turn the difference in `s.filtered` into the error that the estimate looks at.

    MECHANICAL takes the velocities in the directions that the constraints leave free, T T d, math
    (21) (PL2 eq. 5.2-5.5).
    """
    i: cython.int
    propagate(s, s.filtered)
    if s.estimate == MECHANICAL:
        for i in range(s.n):
            if s.kind[i] == 1:          # exact at the steps: what counts is between them
                s.filtered[i] = s.correction[i]
    if s.estimate == MECHANICAL and s.highest_kind > 2:
        for i in range(s.n):
            s.scratch[i] = s.filtered[i]
        propagate(s, s.scratch)
        for i in range(s.n):
            if s.kind[i] == 2 and not s.reaction[i]:
                s.filtered[i] = s.scratch[i]


def propagate(s, d):
    """Replace d by T d, with the factors of the iteration matrix, math (20)."""
    n: cython.int = s.n
    i: cython.int
    for i in range(n):
        s.r[i] = 0.0
    s.matrix.add_product(OF_YP, d, s.r)
    for i in range(n):
        s.r[i] *= s.cj_factored
    solve_scaled(s, s.r)
    for i in range(n):
        d[i] = s.r[i]


def interpolation_error(s):
    """Error between the steps of all that the filter has removed, math (8), first term."""
    i: cython.int
    x: cython.double
    error: cython.double = 0.0
    for i in range(s.n):
        if not s.wanted[i]:
            continue
        x = fabs(s.correction[i]) * s.filtered_weight[i]
        if not s.reaction[i]:           # the weights of reactions include it
            x *= s.share
        error = max(error, x)
    return s.alpha[s.k + 1] * error
