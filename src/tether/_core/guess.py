"""Where Newton's iteration begins if residuals are expensive: the solution of a linear model.

The model is F_y y + F_y' y' + g(t) with the stored Jacobian. At the last points g is known, since
the equations held there; for the new point it is extrapolated.
"""

import cython

if not cython.compiled:
    from tether._core.linear import solve_scaled
    from tether._core.norms import all_finite, weighted_norm
    from tether._core.state import open_block, take

POINTS = cython.declare(cython.int, 10)    # one of them is being written
# Iterations for the model's solution where the factors belong to another cj.
SWEEPS = cython.declare(cython.int, 3)


def use_guesses(s):
    """Allocate the memory for the points from which guesses are made."""
    open_block(s, (2 * s.n + 1) * POINTS + 8 * s.n)
    s.past_t = take(s, "past_t", POINTS)
    s.past_y = take(s, "past_y", POINTS * s.n)
    s.past_yp = take(s, "past_yp", POINTS * s.n)
    s.guess = take(s, "guess", s.n)
    s.gap = take(s, "gap", s.n)
    s.beside_y = take(s, "beside_y", s.n)
    s.beside_yp = take(s, "beside_yp", s.n)
    s.sizes = take(s, "sizes", s.n)
    s.changed_much = take(s, "changed_much", s.n)
    s.alarms = take(s, "alarms", s.n)
    s.ignored_until = take(s, "ignored_until", s.n)
    s.past = 0
    s.extra = s.trial = 1
    s.guesses = True
    return 0


def keep_point(s):
    """Note the point at which the equations of this step hold, over the oldest one."""
    n: cython.int = s.n
    row: cython.int = s.past % POINTS
    i: cython.int
    s.past_t[row] = s.t_new
    for i in range(n):
        s.past_y[row * n + i] = s.y[i]
        s.past_yp[row * n + i] = s.yp[i]


def begin_at_guess(s):
    """Move from the prediction to the solution of the model, math (7a)."""
    i: cython.int
    find_guess(s, s.extra)
    if not all_finite(s.guess, s.n):
        return
    for i in range(s.n):
        s.correction[i] = s.guess[i]
        s.y[i] = s.y_predicted[i] + s.correction[i]
        s.yp[i] = s.yp_predicted[i] + s.cj * s.correction[i]


def compare_guesses(s):
    """See whether one point fewer, or next time one more, would have guessed better."""
    here: cython.double = miss(s)
    other: cython.int = s.extra + s.trial
    if 0 < s.k + other <= min(s.past, POINTS - 1):
        find_guess(s, other)
        if miss(s) < here:
            s.extra = other
    s.trial = -s.trial


def miss(s):
    """Distance of the guess from the correction that was found."""
    i: cython.int
    for i in range(s.n):
        s.gap[i] = s.guess[i] - s.correction[i]
    return weighted_norm(s, s.gap, s.newton_weight, s.newton_norm)


def find_guess(s, extra):
    """Find the correction of the prediction that the model gives with k + `extra` points."""
    n: cython.int = s.n
    i: cython.int
    sweep: cython.int
    damping: cython.double = 2.0 / (1.0 + s.cj / s.cj_factored)
    extrapolate(s, max(1, min(s.k + extra, min(s.past, POINTS - 1))))
    for i in range(n):
        s.guess[i] = 0.0
    for sweep in range(1 if s.cj == s.cj_factored else SWEEPS):
        for i in range(n):
            s.gap[i] = 0.0
        s.matrix.add_linear(s.beside_y, s.beside_yp, s.gap)    # residual of the model
        for i in range(n):
            s.gap[i] *= -damping
        solve_scaled(s, s.gap)
        for i in range(n):
            s.guess[i] += s.gap[i]
            s.beside_y[i] += s.gap[i]
            s.beside_yp[i] += s.cj * s.gap[i]


def extrapolate(s, m):
    """Extrapolate y and y' from the last m points; note the prediction's distance from that."""
    n: cython.int = s.n
    i: cython.int
    j: cython.int
    row: cython.int
    share: cython.double
    for i in range(n):
        s.beside_y[i] = s.y_predicted[i]
        s.beside_yp[i] = s.yp_predicted[i]
    for j in range(m):
        row = (s.past - 1 - j) % POINTS
        share = share_of(s, j, m)
        for i in range(n):
            s.beside_y[i] -= share * s.past_y[row * n + i]
            s.beside_yp[i] -= share * s.past_yp[row * n + i]


def share_of(s, j, m):
    """Weight of the j-th of the last m points in the extrapolation to t_new."""
    i: cython.int
    here: cython.double = s.past_t[(s.past - 1 - j) % POINTS]
    there: cython.double
    above: cython.double = 1.0
    below: cython.double = 1.0
    per_step: cython.double = 1.0 / s.h     # products of times could overflow
    for i in range(m):
        if i != j:
            there = s.past_t[(s.past - 1 - i) % POINTS]
            above *= (s.t_new - there) * per_step
            below *= (here - there) * per_step
    return above / below
