"""What is stored of a run: every step, the solution at given times, or both."""

import cython

if not cython.compiled:
    from tether._core.arrays import address, doubles_of
    from tether._core.codes import OK
    from tether._core.interpolate import interpolate
    from tether._core.project import move_onto
    from tether._core.state import State


def store(s):
    """Store the accepted step (the row first: the outputs may use `s.y` as scratch memory)."""
    if s.keep_steps:
        store_row(s, s.last_k)
    if s.next_eval < s.n_eval:
        store_outputs(s, s.t)


def store_outputs(s, t):
    """Interpolate to all output times up to and including `t`."""
    while s.next_eval < s.n_eval and s.direction * (s.eval_t[s.next_eval] - t) <= 0.0:
        if cython.compiled:
            interpolate(s, s.eval_t[s.next_eval], s.eval_y + s.next_eval * s.n,
                        s.eval_yp + s.next_eval * s.n)
        else:
            row = slice(s.next_eval * s.n, (s.next_eval + 1) * s.n)
            interpolate(s, s.eval_t[s.next_eval], s.eval_y[row], s.eval_yp[row])
        if s.n_constraints > 0:
            project_output(s, s.next_eval * s.n)
        s.next_eval += 1


def project_output(s, base):
    """Move an output between the steps onto the constraints; keep it unchanged if that fails."""
    i: cython.int
    for i in range(s.n):
        s.y[i] = s.eval_y[base + i]
    s.t_new = s.eval_t[s.next_eval]
    if move_onto(s, 1e300) == OK:
        for i in range(s.n):
            s.eval_y[base + i] = s.y[i]


def store_row(s, k):
    """Append y and y' to the stored steps; `k` is the order of the step that ends here."""
    i: cython.int
    base: cython.longlong = s.stored * s.n
    s.store_t[s.stored] = s.t
    s.store_k[s.stored] = k
    for i in range(s.n):
        s.store_y[base + i] = s.y[i]
        s.store_yp[base + i] = s.yp[i]
    for i in range(s.n_constraints):
        s.store_g[s.stored * s.n_constraints + i] = s.g[i]
    s.stored += 1


def store_point(s, t, y, yp, k):
    """Append any point to the stored steps; `k` is the order of the step it belongs to.

    The values of its constraints are left to the caller.
    """
    i: cython.int
    base: cython.longlong = s.stored * s.n
    y, yp = doubles_of(y, s.n), doubles_of(yp, s.n)
    values: cython.p_double = address(y)
    slopes: cython.p_double = address(yp)
    s.store_t[s.stored] = t
    s.store_k[s.stored] = k
    for i in range(s.n):
        s.store_y[base + i] = values[i]
        s.store_yp[base + i] = slopes[i]
    s.stored += 1


def store_step(s: State):
    """Store the accepted step, for a caller that has looked at its events first."""
    store(s)


def store_outputs_until(s: State, t):
    """Store the output times up to `t` of a step that will be cut there."""
    store_outputs(s, t)
