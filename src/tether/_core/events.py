"""Sign changes of the event functions over a step, and when they happen.

They are evaluated before the step is accepted: where one has no value, a smaller step may stay
within its domain.
"""

import cython
import numpy as np
from cython.cimports.libc.math import fabs

if not cython.compiled:
    from tether._core.arrays import address
    from tether._core.codes import OK
    from tether._core.interpolate import interpolate
    from tether._core.state import State
    from tether._core.zero import ZeroSearch


INFINITE = cython.declare(cython.double, np.inf)
# A function left at zero has moved away when it is this many times what counted as zero.
FAR_AWAY = cython.declare(cython.double, 1e6)


def crossed(old, new, direction):
    """Tell whether an event function passed zero in the wanted direction."""
    if direction > 0:
        return old <= 0.0 <= new and old != new
    if direction < 0:
        return old >= 0.0 >= new and old != new
    return (old <= 0.0 <= new or old >= 0.0 >= new) and old != new


def try_events(s):
    """Evaluate the events at the end of the step being tried."""
    return s.events(s, s.t_new, s.y, s.yp, s.g_new)


def one_happened(s):
    """Tell whether an event crossed zero in the step; if not, watch from the new values on.

    A function that was left at zero has no sign there: nothing happens until it moves away.
    """
    i: cython.int
    for i in range(s.n_events):
        if not rests(s, i) and crossed(s.g_old[i], s.g_new[i], s.g_direction[i]):
            return True
    keep_event_values(s)
    return False


def rests(s, i):
    """Tell whether an event function that was left at zero is still there."""
    return fabs(s.g_new[i]) <= s.g_rest[i]


def keep_event_values(s: State):
    """Compare signs with the new values from now on, except for functions that rest at zero.

    What counted as zero for one that has moved away is kept, negated, until it is far away.
    """
    i: cython.int
    rest: cython.double
    for i in range(s.n_events):
        if not rests(s, i):
            s.g_old[i] = s.g_new[i]
            rest = fabs(s.g_rest[i])
            s.g_rest[i] = -rest if fabs(s.g_new[i]) <= FAR_AWAY * rest else -INFINITE


def evaluate_events(s: State):
    """Evaluate the events at the current point into g_old, at a start or restart."""
    return s.events(s, s.t, s.y, s.yp, s.g_old)


def find_time(s, search, i, t_old, y, yp, g):
    """Find when an event function is zero within the last step; False if it has no value.

    `y`, `yp` and `g` are memory for the values at one time.
    """
    if s.g_old[i] == 0.0:
        search.stay_at(t_old)
        return True
    if s.g_new[i] == 0.0:
        search.stay_at(s.t)
        return True
    search.begin(t_old, s.t, s.g_old[i])
    while True:
        interpolate(s, search.t, y, yp)
        if s.events(s, search.t, y, yp, g) != OK:
            return False
        if search.take(g[i]):
            return True


def time_of(s: State, i, t_old):
    """Return when an event function is zero within the last step; NaN if it has no value there.

    For event functions that are programs.
    """
    search = ZeroSearch()
    y, yp, g = np.zeros(s.n), np.zeros(s.n), np.zeros(s.n_events)
    found = find_time(s, search, i, t_old, address(y), address(yp), address(g))
    return search.t if found else np.nan
