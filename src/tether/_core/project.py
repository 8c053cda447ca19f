"""Projection onto the constraints G(t, y) = 0 inside the step (HK, "The Projection Algorithm").

The Newton step dy with C dy = G, C = dG/dy, is underdetermined; the solution of least norm is taken
in u = W^-p dy with W_i = rtol |y_i| + atol_i, math (18). The correction of the step moves along,
and with it history and y', so that the next predictor starts from the projected solution.
"""

import cython
from cython.cimports.libc.math import pow, sqrt

if not cython.compiled:
    from tether._core.codes import (
        CONTRADICTION,
        NON_FINITE,
        NOT_ON_CONSTRAINTS,
        OK,
        SINGULAR,
        USER_EXCEPTION,
    )
    from tether._core.constraints import evaluate_constraints, linearise_constraints
    from tether._core.jacobian import largest
    from tether._core.norms import weighted_norm
    from tether._core.state import State

EPS = cython.declare(cython.double, 2.220446049250313e-16)
MAX_ITERATIONS = cython.declare(cython.int, 10)
# Length left of a row, as a share, after the others are removed, at which it depends on them.
DEPENDENT = cython.declare(cython.double, 1e-7)
# Share of the squared length below which a remainder may be mostly round-off.
DOUBTFUL = cython.declare(cython.double, 0.25)
# The Jacobian is renewed within the iteration when the residual is not reduced to less than this
# share.
RENEWAL_RATIO = cython.declare(cython.double, 1e-3)
NO_PROGRESS = cython.declare(cython.double, 0.5)
# In tolerances: a projection up to this is allowed whatever the corrector did, whose change may
# pass through zero where the error does not.
ALWAYS_ALLOWED = cython.declare(cython.double, 1.0)
# A projection of this share of the corrector's change undoes it; so many in a row, where those
# beyond the tolerance count ten times, are no accident.
UNDOING_SHARE = cython.declare(cython.double, 0.75)
NOT_ROUND_OFF = cython.declare(cython.double, 1e-3)
# Not on the constraints: hardly better than before, with steps that are not round-off.
HARDLY_BETTER = cython.declare(cython.double, 1e-3)
FAR_FROM_ROUND_OFF = cython.declare(cython.double, 1e6)
CONTRADICTIONS = cython.declare(cython.int, 50)
GROUPS = cython.declare(cython.int, 62)
FEWEST_MASKED = cython.declare(cython.int, 8)


def project(s):
    """Move the corrected solution onto the constraints, no farther than the corrector moved it."""
    i: cython.int
    status: cython.int
    change: cython.double
    if s.n_constraints == 0:
        return OK
    change = weighted_norm(s, s.correction, s.weight, s.error_norm)
    s.projections += 1
    status = move_onto(s, max(change, ALWAYS_ALLOWED))
    if status != OK:
        return status
    if s.rank < s.rank_floor or s.rank > s.rank_ceiling:
        s.rank_changed = not s.rank_understood
        return NOT_ON_CONSTRAINTS
    for i in range(s.n):
        s.yp[i] = s.yp_predicted[i] + s.cj * s.correction[i]
    if s.projection_size > UNDOING_SHARE * change and s.projection_size > NOT_ROUND_OFF:
        s.contradictions += 10 if s.projection_size > 1.0 else 1
        if s.contradictions > CONTRADICTIONS:
            return -CONTRADICTION
    else:
        s.contradictions = 0
    return OK


def move_onto(s, limit):
    """Iterate by Newton's method from `s.y` onto the constraints, moving at most `limit`.

    Stops when the next step would be round-off, or when the residual no longer shrinks.
    """
    i: cython.int
    iteration: cython.int
    status: cython.int
    size: cython.double
    last: cython.double
    first: cython.double
    step: cython.double = 0.0
    share: cython.double = 1.0
    s.projection_size = 0.0
    status = evaluate_constraints(s, s.t_new, s.y)
    if status != OK:
        return status
    size = first = largest(s.g, s.n_constraints)
    status = linearise(s)
    if status != OK:
        return status
    for iteration in range(MAX_ITERATIONS):
        if size == 0.0:
            break
        s.solve_projection(s)
        step = weighted_norm(s, s.shift, s.weight, s.error_norm)
        if not step < 1e300:
            return NON_FINITE
        if s.projection_size + step > limit:
            share = (limit - s.projection_size) / step
        s.projection_size += share * step
        for i in range(s.n):
            s.correction[i] -= share * s.shift[i]
            s.y[i] -= share * s.shift[i]
        last = size
        status = evaluate_constraints(s, s.t_new, s.y)
        if status != OK:
            return status
        size = largest(s.g, s.n_constraints)
        # the next step will be shorter than this one in the same ratio as the residuals
        if share < 1.0 or step * min(size, last) <= EPS * s.y_norm * last:
            break
        if size > NO_PROGRESS * last:
            break
        if size > RENEWAL_RATIO * last:
            status = linearise(s)
            if status != OK:
                return status
    if share < 1.0 and s.must_hold:
        return NOT_ON_CONSTRAINTS
    if share == 1.0 and size > HARDLY_BETTER * first and step > FAR_FROM_ROUND_OFF * EPS * s.y_norm:
        return NOT_ON_CONSTRAINTS
    s.drift = size
    return OK


def linearise(s):
    """Renew Jacobian, scaling and factors at the current point."""
    status: cython.int = linearise_constraints(s, s.t_new, s.y)
    if status != OK:
        return status
    set_scaling(s)
    status = s.factor_projection(s)
    return -NOT_ON_CONSTRAINTS if status == SINGULAR else status


def set_scaling(s):
    """Set the scaling W^p, with square roots for the usual powers."""
    i: cython.int
    p: cython.double = s.projection_power
    for i in range(s.n):
        if p == 1.0:
            s.scaling[i] = s.tolerance[i]
        elif p == 0.5:
            s.scaling[i] = sqrt(s.tolerance[i])
        elif p == 0.0:
            s.scaling[i] = 1.0
        elif p == -0.5:
            s.scaling[i] = sqrt(s.weight[i])
        else:
            s.scaling[i] = pow(s.tolerance[i], p)


def scaled_rows(s):
    """Form A = C W^p in `s.basis`, and the squared lengths of its rows."""
    n: cython.int = s.n
    i: cython.int
    j: cython.int
    value: cython.double
    total: cython.double
    for i in range(s.n_constraints):
        total = 0.0
        for j in range(n):
            value = s.gy[i * n + j] * s.scaling[j]
            s.basis[i * n + j] = value
            total += value * value
        if not total < 1e300:
            return NON_FINITE
        s.row_left[i] = total
        s.row_whole[i] = total
    return OK


def find_masks(s):
    """Note which columns of A's rows are zero, if there are enough rows for that to pay.

    A mask has a bit for each of `GROUPS` groups of columns, set if the row is nonzero there: rows
    without a common bit are orthogonal, and most rows of a large system are. All rows are zero
    beyond the column `reach`: multipliers usually come last, and occur in no constraint.
    """
    n: cython.int = s.n
    i: cython.int
    j: cython.int
    group: cython.int
    width: cython.int = (n + GROUPS - 1) // GROUPS
    mask: cython.longlong
    bit: cython.longlong
    if s.n_constraints < FEWEST_MASKED:
        s.reach = n
        for i in range(s.n_constraints):
            s.row_mask[i] = 1
        return
    s.reach = 0
    for i in range(s.n_constraints):
        mask = 0
        bit = 1
        for group in range((n + width - 1) // width):
            for j in range(group * width, min((group + 1) * width, n)):
                if s.basis[i * n + j] != 0.0:
                    mask |= bit
                    s.reach = max(s.reach, j + 1)
            bit <<= 1
        s.row_mask[i] = mask


# --- orthogonal, with row pivoting: any rank -------------------------------------------------


def use_orthogonal(s: State):
    """Install the orthogonal solver."""
    s.factor_projection = factor_orthogonal
    s.solve_projection = solve_orthogonal


def factor_orthogonal(s):
    """Factor P A = L Q with orthogonal rows Q, the longest remainder first (HK, PAQ = [L 0]).

    Gram-Schmidt: each new row of Q is removed from all remaining rows. `row_left` tracks the
    squares of their lengths; where cancellation has made it doubtful the row is cleaned once more
    and measured, and twice is enough for orthogonality to round-off. The rows of Q keep their
    length, so that no roots are needed; L has ones on its diagonal, whose storage is used for one
    over the squared length.
    """
    n: cython.int = s.n
    m: cython.int = s.n_constraints
    status: cython.int = scaled_rows(s)
    i: cython.int
    j: cython.int
    k: cython.int = 0
    row: cython.int
    other: cython.int
    best: cython.int
    product: cython.double
    share: cython.double
    inverse: cython.double
    if status != OK:
        return status
    find_masks(s)
    for i in range(m):
        s.row_order[i] = i
    while k < m and k < n:
        best = k
        for i in range(k + 1, m):
            # the larger remainder, each relative to its own row
            if (s.row_left[s.row_order[i]] * s.row_whole[s.row_order[best]]
                    > s.row_left[s.row_order[best]] * s.row_whole[s.row_order[i]]):
                best = i
        row = s.row_order[best]
        if s.row_left[row] <= 0.0:
            break
        s.row_order[best] = s.row_order[k]
        s.row_order[k] = row
        if s.row_left[row] < DOUBTFUL * s.row_whole[row]:
            clean(s, row, k)
            if s.row_left[row] <= DEPENDENT * DEPENDENT * s.row_whole[row]:
                s.row_left[row] = 0.0
                continue
        inverse = 1.0 / s.row_left[row]
        s.triangle[row * m + k] = inverse
        for i in range(k + 1, m):
            other = s.row_order[i]
            if s.row_mask[row] & s.row_mask[other] == 0:
                s.triangle[other * m + k] = 0.0
                continue
            s.row_mask[other] |= s.row_mask[row]
            product = 0.0
            for j in range(s.reach):
                product += s.basis[row * n + j] * s.basis[other * n + j]
            share = product * inverse
            s.triangle[other * m + k] = share
            s.row_left[other] -= product * share
            for j in range(s.reach):
                s.basis[other * n + j] -= share * s.basis[row * n + j]
        k += 1
    s.rank = k
    return OK


def clean(s, row, k):
    """Remove the first k rows of Q from a row once more, and measure what is left."""
    n: cython.int = s.n
    i: cython.int
    j: cython.int
    other: cython.int
    product: cython.double
    for i in range(k):
        other = s.row_order[i]
        if s.row_mask[row] & s.row_mask[other] == 0:
            continue
        product = 0.0
        for j in range(s.reach):
            product += s.basis[row * n + j] * s.basis[other * n + j]
        product *= s.triangle[other * s.n_constraints + i]
        s.triangle[row * s.n_constraints + i] += product
        for j in range(s.reach):
            s.basis[row * n + j] -= product * s.basis[other * n + j]
    product = 0.0
    for j in range(s.reach):
        product += s.basis[row * n + j] * s.basis[row * n + j]
    s.row_left[row] = product


def solve_orthogonal(s):
    """Least-norm solution of A u = g on the independent rows: L w = P g, u = Q^T D^-1 w."""
    n: cython.int = s.n
    m: cython.int = s.n_constraints
    j: cython.int
    k: cython.int
    i: cython.int
    row: cython.int
    value: cython.double
    for j in range(n):
        s.shift[j] = 0.0
    for k in range(s.rank):
        row = s.row_order[k]
        value = s.g[row]
        for i in range(k):
            value -= s.triangle[row * m + i] * s.multiplier[i]
        s.multiplier[k] = value
        value *= s.triangle[row * m + k]
        for j in range(s.reach):
            s.shift[j] += value * s.basis[row * n + j]
    for j in range(n):
        s.shift[j] *= s.scaling[j]


# --- normal equations by Cholesky: full rank -------------------------------------------------


def use_cholesky(s: State):
    """Install the normal equations."""
    s.factor_projection = factor_cholesky
    s.solve_projection = solve_cholesky


def factor_cholesky(s):
    """Factor A A^T = L L^T."""
    n: cython.int = s.n
    m: cython.int = s.n_constraints
    i: cython.int
    j: cython.int
    k: cython.int
    total: cython.double
    status: cython.int = scaled_rows(s)
    if status != OK:
        return status
    for i in range(m):
        for k in range(i + 1):
            total = 0.0
            for j in range(n):
                total += s.basis[i * n + j] * s.basis[k * n + j]
            for j in range(k):
                total -= s.triangle[i * m + j] * s.triangle[k * m + j]
            if i > k:
                s.triangle[i * m + k] = total / s.triangle[k * m + k]
            elif total > DEPENDENT * DEPENDENT * s.row_whole[i]:
                s.triangle[i * m + i] = sqrt(total)
            else:
                return SINGULAR
    s.rank = m
    return OK


def solve_cholesky(s):
    """Solve A A^T v = g and u = A^T v."""
    n: cython.int = s.n
    m: cython.int = s.n_constraints
    i: cython.int
    j: cython.int
    value: cython.double
    for i in range(m):
        value = s.g[i]
        for j in range(i):
            value -= s.triangle[i * m + j] * s.multiplier[j]
        s.multiplier[i] = value / s.triangle[i * m + i]
    for i in range(m - 1, -1, -1):
        value = s.multiplier[i]
        for j in range(i + 1, m):
            value -= s.triangle[j * m + i] * s.multiplier[j]
        s.multiplier[i] = value / s.triangle[i * m + i]
    for j in range(n):
        value = 0.0
        for i in range(m):
            value += s.basis[i * n + j] * s.multiplier[i]
        s.shift[j] = s.scaling[j] * value


# --- sparse, in Python: the call costs little beside the work --------------------------------


@cython.cfunc
@cython.with_gil
@cython.exceptval(check=False)
def factor_sparse(s: State) -> cython.int:
    """Give A to the sparse solver; if its rows are dependent the orthogonal one may take over."""
    try:
        if s.projection_adapter.factor(s):
            return OK
        if not s.projection_adapter.may_give_up:
            return SINGULAR
        use_orthogonal(s)
        return factor_orthogonal(s)
    except BaseException as error:
        s.error = error
        return USER_EXCEPTION


@cython.cfunc
@cython.with_gil
@cython.exceptval(check=False)
def solve_sparse(s: State) -> cython.void:
    """Let the sparse solver fill `s.shift`."""
    s.projection_adapter.solve(s)


def use_sparse(s: State, adapter):
    """Install a sparse solver with methods ``factor(state)`` and ``solve(state)``."""
    s.projection_adapter = adapter
    s.factor_projection = factor_sparse
    s.solve_projection = solve_sparse


# --- outside a step ---------------------------------------------------------------------------


# Arrays that a projection outside a step must restore: those of the step tried last.
STEP_ARRAYS = ("y", "correction", "g")


def projected(s: State, t, y):
    """Return a status and the point on the constraints closest to (t, y), however far away.

    What the projection finds out about the constraints stays in the state: their derivatives, with
    factors, and their rank.
    """
    status: cython.int
    t_new: cython.double = s.t_new
    kept = [s.array(name).copy() for name in STEP_ARRAYS]
    s.array("y")[:] = y
    s.array("correction")[:] = 0.0
    s.t_new = t
    s.contradictions = 0
    status = move_onto(s, 1e300)
    found = s.array("y").copy()
    for name, values in zip(STEP_ARRAYS, kept):
        s.array(name)[:] = values
    s.t_new = t_new
    return status, found
