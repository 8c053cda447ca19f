"""One step of the integration, told by its verbs; each verb is in the file of its name."""

import cython

if not cython.compiled:
    from tether._core.between import (
        begin_after_jump,
        check_between,
        follow_projection,
        note_corrections,
    )
    from tether._core.branches import on_new_branch
    from tether._core.codes import (
        BLOCK,
        COMPARISON_DUE,
        EVENT_FOUND,
        NO_EVENT_VALUE,
        OK,
        PAUSED,
        REACHED_END,
        STORE_FULL,
        TOO_ACCURATE,
        USER_EXCEPTION,
    )
    from tether._core.coefficients import set_coefficients
    from tether._core.controller import fit_to_end, next_step, recover
    from tether._core.error import test_error
    from tether._core.estimates import (
        is_lost_in_round_off,
        is_untestable,
        note_reactions,
        note_untested,
        set_test_weights,
    )
    from tether._core.events import one_happened, try_events
    from tether._core.newton import correct
    from tether._core.norms import set_weights
    from tether._core.order import lower_order, next_order
    from tether._core.predict import predict
    from tether._core.project import project
    from tether._core.ring import remember
    from tether._core.state import State
    from tether._core.store import store
    from tether._core.surfaces import passed_surface

# Beyond this the tolerance asks for more digits than double precision has.
ROUND_OFF_LIMIT = cython.declare(cython.double, 1.0 / (100.0 * 2.220446049250313e-16))


def step(s):
    """Advance from t_n to t_n+1, with as many attempts as that takes."""
    status: cython.int
    s.error_failures = 0
    s.newton_failures = 0
    s.in_vain = 0
    if s.jumped:
        begin_after_jump(s)
    s.jacobian_current = False
    status = set_weights(s)
    if status != OK:
        return status
    if s.y_norm > ROUND_OFF_LIMIT:
        return TOO_ACCURATE
    while True:
        s.jumped = False
        fit_to_end(s)
        if s.highest_kind > 1:
            set_test_weights(s)
        set_coefficients(s)
        predict(s)
        status = correct(s)
        if status == OK and s.project_before_test:
            status = project_all(s)
        if status == OK:
            status = test_error(s)
        if status == OK and not s.project_before_test:
            status = project_all(s)
        if status == OK and s.interpolated:
            status = check_between(s)
        if status == OK and s.n_events > 0:
            status = try_events(s)
            if status == NO_EVENT_VALUE:
                s.jumped = False
                return status
        if s.matrix.failed:
            status = USER_EXCEPTION
        remember(s, status)
        if status == OK:
            break
        if status < 0:
            return status
        status = recover(s, status)
        if status != OK:
            return status
    complete(s)
    return OK


def project_all(s):
    """Project onto the constraints, and let unknowns that are wanted between the steps follow."""
    status: cython.int
    if s.n_constraints == 0 or not (s.interpolated and s.exact_at_steps):
        return project(s)
    note_corrections(s)
    status = project(s)
    if status == OK:
        follow_projection(s)
    return status


def complete(s):
    """Accept the step: choose order and size of the next one, and update the history."""
    k: cython.int = s.k
    j: cython.int
    first: cython.int = 0
    last: cython.int
    h_next: cython.double
    s.steps += 1
    s.past += 1
    if s.drift > s.worst_drift:
        s.worst_drift = s.drift
    if s.rank > s.highest_rank:
        s.highest_rank = s.rank
    if s.rank < s.lowest_rank:
        s.lowest_rank = s.rank
        s.t_lowest_rank = s.t_new
    if s.highest_kind > 2:
        if k == 1 or is_untestable(s):
            note_untested(s)
        else:
            note_reactions(s)
    s.steps_at_order += 1
    if k == s.max_order or lower_order(s) < k or (s.starting and is_lost_in_round_off(s)):
        s.starting = False
    if s.starting:
        s.new_order = k + 1
        h_next = 2.0 * s.h
    else:
        s.new_order = max(next_order(s), s.lowest_order)
        h_next = next_step(s)

    while first < s.n:
        last = min(first + BLOCK, s.n)
        move_on(s, first, last)
        first = last
    for j in range(1, k + 3):
        s.psi[j] = s.psi_new[j]

    s.t = s.t_new
    s.last_h = s.h
    s.last_k = k
    if s.new_order != k:
        s.k = s.new_order
        s.steps_at_order = 0
    s.h = h_next


def move_on(s, first, last):
    """Update the differences of the unknowns `first` to `last` to the new point, math (4)."""
    i: cython.longlong
    j: cython.int = s.k
    column: cython.longlong = s.k + 1
    lower: cython.longlong
    beta: cython.double
    lower_beta: cython.double
    difference: cython.double
    column *= s.n
    for i in range(first, last):
        s.phi[column + i] = s.correction[i]
    while j > 1:           # two orders at once: sums are read and written half as often
        column -= s.n
        lower = column - s.n
        beta, lower_beta = s.beta[j], s.beta[j - 1]
        for i in range(first, last):
            difference = s.correction[i] + beta * s.phi[column + i]
            s.phi[column + i] = difference
            difference += lower_beta * s.phi[lower + i]
            s.phi[lower + i] = difference
            s.correction[i] = difference
        column = lower
        j -= 2
    if j == 1:
        column -= s.n
        beta = s.beta[1]
        for i in range(first, last):
            s.correction[i] += beta * s.phi[column + i]
            s.phi[column + i] = s.correction[i]
    for i in range(first, last):
        s.phi[i] = s.y[i]
        s.yp_n[i] = s.yp[i]


def run(s, count):
    """Take up to `count` steps; return early when the caller has something to do."""
    status: cython.int
    while count > 0:
        status = step(s)
        if status != OK:
            return status
        if (s.n_conditions > 0 and on_new_branch(s)) or s.steps == s.compare_at:
            s.to_compare = True
        if s.n_surfaces > 0 and passed_surface(s):
            return EVENT_FOUND
        if s.n_events > 0 and one_happened(s):
            return EVENT_FOUND
        store(s)
        if s.t == s.t_end:
            return REACHED_END
        if s.keep_steps and s.stored == s.capacity:
            return STORE_FULL
        if s.to_compare:
            return COMPARISON_DUE
        count -= 1
    return PAUSED


def advance(s: State, count):
    """Take up to `count` steps, without the GIL if the residual is compiled; see `run`."""
    status: cython.int
    steps: cython.longlong = count
    if s.python_residual:
        return run(s, steps)
    with cython.nogil:
        status = run(s, steps)
    return status
