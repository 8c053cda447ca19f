"""What is kept of a run: every step, the solution at given times, or both."""

import cython

if not cython.compiled:
    from tether._core.interpolate import interpolate
    from tether._core.state import State


def store(s):
    """Keep the accepted step."""
    if s.next_eval < s.n_eval:
        store_outputs(s, s.t)
    if s.keep_steps:
        store_row(s, s.last_k)


def store_outputs(s, t):
    """Interpolate to all output times up to and including `t`."""
    while s.next_eval < s.n_eval and s.direction * (s.eval_t[s.next_eval] - t) <= 0.0:
        if cython.compiled:
            interpolate(s, s.eval_t[s.next_eval], s.eval_y + s.next_eval * s.n,
                        s.eval_yp + s.next_eval * s.n)
        else:
            row = slice(s.next_eval * s.n, (s.next_eval + 1) * s.n)
            interpolate(s, s.eval_t[s.next_eval], s.eval_y[row], s.eval_yp[row])
        s.next_eval += 1


def store_row(s, k):
    """Append y and y' to the stored steps; `k` is the degree of the polynomial that ends here."""
    i: cython.int
    base: cython.longlong = s.stored * s.n
    s.store_t[s.stored] = s.t
    s.store_k[s.stored] = k
    for i in range(s.n):
        s.store_y[base + i] = s.y[i]
        s.store_yp[base + i] = s.yp[i]
    s.stored += 1


def store_start(s: State):
    """Keep the current point as one where no polynomial ends."""
    if s.keep_steps:
        store_row(s, 0)


def store_step(s: State):
    """Keep the accepted step (for the caller that looked at its events first)."""
    store(s)


def store_outputs_until(s: State, t):
    """Keep the output times up to `t` of a step that will be cut there."""
    store_outputs(s, t)
