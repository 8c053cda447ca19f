"""Start or restart: a point, its slope and a first step."""

import cython
import numpy as np
from cython.cimports.libc.math import fabs

if not cython.compiled:
    from tether._core.arrays import address, doubles_of
    from tether._core.codes import COLUMNS
    from tether._core.interpolate import difference_table
    from tether._core.norms import set_weights, weighted_norm
    from tether._core.outdated import forget_alarms


def begin(s, t, y, yp, first_step):
    """Forget the past and begin at (t, y, yp); if `first_step` is zero the core chooses it.

    The history is taken from the tangent, as if earlier points were on it at distances of h. A
    Jacobian from the search for consistent values is kept.
    """
    y, yp = doubles_of(y, s.n), doubles_of(yp, s.n)
    return begin_at(s, t, address(y), address(yp), first_step)


def begin_at(s, t, y, yp, first_step):
    """Begin as `begin` does, without Python objects."""
    i: cython.int
    j: cython.int
    status: cython.int
    s.t = t
    for i in range(s.n):
        s.y[i] = y[i]
        s.yp[i] = yp[i]
        s.yp_n[i] = yp[i]
        s.phi[i] = y[i]
    for j in range(2, COLUMNS):
        for i in range(s.n):
            s.phi[j * s.n + i] = 0.0
    status = set_weights(s)
    s.h = s.direction * first_step if first_step > 0.0 else first_step_size(s)
    for j in range(COLUMNS + 1):
        s.psi[j] = j * s.h
    for i in range(s.n):
        s.phi[s.n + i] = s.h * yp[i]
    s.k = 1
    s.last_k = 1
    s.last_h = s.h
    s.steps_at_order = 0
    s.untestable = 0
    s.t_began = t
    s.starting = True
    s.jumped = False
    s.jump_step = 0.0
    s.last_control = 0.0
    s.cj_factored = 0.0
    s.past = 0
    s.extra = 1
    s.seen_step = -1
    s.compared = 0
    forget_alarms(s)
    s.matrix.forget_changes()
    return status


def bend(s, ypp):
    """After `begin`: replace the tangent by the parabola with y'' = `ypp`, and go on at order 2.

    Systems of index 3 as written begin like this. At order 1 the velocities of the first step would
    be wrong by half of their change in it, and the multipliers by their own size, however short the
    step.
    """
    i: cython.int
    for i in range(s.n):
        s.increment[i] = ypp[i]
    follow_parabola(s)
    s.starting = False


def follow_parabola(s):
    """Go on at order 2, with a history from the parabola with y, y' and y'' = `s.increment`."""
    n: cython.int = s.n
    i: cython.int
    j: cython.int
    for i in range(n):
        s.phi[2 * n + i] = s.h * s.h * s.increment[i]
        s.phi[n + i] = s.h * s.yp_n[i] - 0.5 * s.phi[2 * n + i]
        for j in range(3, COLUMNS):
            s.phi[j * n + i] = 0.0
    for j in range(COLUMNS + 1):
        s.psi[j] = j * s.h
    s.k = s.last_k = 2
    s.last_h = s.h
    s.steps_at_order = 0


def find_curvature(s, k):
    """Find y'' at the last point of the polynomial through the last k + 1, in `s.increment`."""
    n: cython.int = s.n
    i: cython.int
    j: cython.int
    c: cython.double = 1.0          # product of psi_(i-1) / psi_i, and so on, math (14)
    slope: cython.double = 0.0
    curvature: cython.double = 0.0
    for i in range(n):
        s.increment[i] = 0.0
    for j in range(1, k + 1):
        curvature = (curvature * s.psi[j - 1] + 2.0 * slope) / s.psi[j]
        slope = (slope * s.psi[j - 1] + c) / s.psi[j]
        c = c * s.psi[j - 1] / s.psi[j]
        for i in range(n):
            s.increment[i] += curvature * s.phi[j * n + i]


def add_history(s, t, y):
    """After `begin`: replace the tangent by earlier points, rows of `y`, oldest first.

    With m points the integration goes on at order m, without a start-up phase.
    """
    m: cython.int = t.shape[0]
    j: cython.int
    order: cython.int = m if m < s.max_order else s.max_order
    times = np.append(np.asarray(t)[m - order:], s.t)
    values = np.vstack([np.asarray(y)[m - order:], s.array("phi")[: s.n]])
    if cython.compiled:
        t_view: cython.double[::1] = times
        y_view: cython.double[:, ::1] = values
        difference_table(cython.address(t_view[0]), cython.address(y_view[0, 0]), order, s.n, order,
                         s.psi, s.phi)
    else:
        difference_table(times, values.ravel(), order, s.n, order, s.psi, s.phi)
    for j in range(order + 1, COLUMNS + 1):
        s.psi[j] = s.psi[j - 1] + s.psi[1]
    s.k = order
    s.last_k = order
    s.last_h = s.psi[1]
    s.starting = False


def first_step_size(s):
    """Return a thousandth of the interval, or less if y' moves y beyond half a tolerance."""
    h: cython.double = 1e-3 * fabs(s.t_end - s.t)
    slope: cython.double = weighted_norm(s, s.yp, s.weight, s.error_norm)
    if not h < 1e300:
        h = 0.5 / slope if slope > 0.0 else 1.0
    if slope * h > 0.5:
        h = 0.5 / slope
    if h > s.max_step:
        h = s.max_step
    return s.direction * h
