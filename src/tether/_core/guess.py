"""Where Newton's iteration begins if every residual is dear: at the solution of a linear model.

The model is F_y y + F_y' y' + g(t) with the Jacobian at hand. What g was at the last points is
known, since the equations held there; at the new one it is extrapolated.
"""

import cython

if not cython.compiled:
    from tether._core.linear import solve_scaled
    from tether._core.norms import weighted_norm
    from tether._core.state import open_block, take

POINTS = cython.declare(cython.int, 10)


def use_guesses(s):
    """Make the memory for the points that the guesses are made from."""
    open_block(s, (2 * s.n + 2) * POINTS + 2 * s.n)
    s.past_t = take(s, "past_t", POINTS)
    s.past_share = take(s, "past_share", POINTS)
    s.past_y = take(s, "past_y", POINTS * s.n)
    s.past_yp = take(s, "past_yp", POINTS * s.n)
    s.guess = take(s, "guess", s.n)
    s.gap = take(s, "gap", s.n)
    s.past = 0
    s.extra = 1
    s.guesses = True
    return 0


def keep_point(s):
    """Note the point at which the equations of this step hold; the oldest is overwritten."""
    n: cython.int = s.n
    row: cython.int = s.past % POINTS
    i: cython.int
    s.past_t[row] = s.t_new
    for i in range(n):
        s.past_y[row * n + i] = s.y[i]
        s.past_yp[row * n + i] = s.yp[i]


def begin_at_guess(s):
    """Move from the prediction to where the model holds, math (7a)."""
    i: cython.int
    find_guess(s, s.extra)
    for i in range(s.n):
        s.correction[i] = s.guess[i]
        s.y[i] = s.y_predicted[i] + s.correction[i]
        s.yp[i] = s.yp_predicted[i] + s.cj * s.correction[i]


def compare_guesses(s):
    """See whether one point more or less would have come closer to the solution found."""
    here: cython.double
    here = miss(s, s.extra)
    if here == 0.0:
        return
    if s.extra > 1 - s.k and miss(s, s.extra - 1) < here:
        s.extra -= 1
    elif s.k + s.extra < min(s.past, POINTS - 1) and miss(s, s.extra + 1) < here:
        s.extra += 1


def miss(s, extra):
    """Distance of a guess from the correction found."""
    i: cython.int
    find_guess(s, extra)
    for i in range(s.n):
        s.guess[i] -= s.correction[i]
    return weighted_norm(s, s.guess, s.newton_weight, s.newton_norm)


def find_guess(s, extra):
    """Find the correction of the prediction by the model, from k + `extra` points."""
    n: cython.int = s.n
    i: cython.int
    sweep: cython.int
    sweeps: cython.int = 1 if s.cj == s.cj_factored else 3
    damping: cython.double = 2.0 / (1.0 + s.cj / s.cj_factored)
    m: cython.int = max(1, min(s.k + extra, min(s.past, POINTS - 1)))
    set_shares(s, m)
    for i in range(n):
        s.guess[i] = 0.0
    for sweep in range(sweeps):
        find_gap(s, m)
        for i in range(n):
            s.gap[i] *= -damping
        solve_scaled(s, s.gap)
        for i in range(n):
            s.guess[i] += s.gap[i]


def set_shares(s, m):
    """Find the weights of the last m points in the extrapolation to t_new."""
    i: cython.int
    j: cython.int
    a: cython.int
    b: cython.int
    share: cython.double
    for i in range(m):
        a = (s.past - 1 - i) % POINTS
        share = 1.0
        for j in range(m):
            if j != i:
                b = (s.past - 1 - j) % POINTS
                share *= (s.t_new - s.past_t[b]) / (s.past_t[a] - s.past_t[b])
        s.past_share[i] = share


def find_gap(s, m):
    """Put the residual of the model at the guess into `s.gap`."""
    n: cython.int = s.n
    i: cython.int
    j: cython.int
    a: cython.int
    y: cython.double
    yp: cython.double
    for i in range(n):
        s.gap[i] = 0.0
    for j in range(n):
        y = s.y_predicted[j] + s.guess[j]
        yp = s.yp_predicted[j] + s.cj * s.guess[j]
        for i in range(m):
            a = (s.past - 1 - i) % POINTS
            y -= s.past_share[i] * s.past_y[a * n + j]
            yp -= s.past_share[i] * s.past_yp[a * n + j]
        for i in range(n):
            s.gap[i] += s.fy[j * n + i] * y + s.fyp[j * n + i] * yp
