"""Sign changes of the event functions over a step; `tether.run.watch` locates them.

They are evaluated before the step is accepted: where one of them has no value, a smaller step may
stay within its domain.
"""

import cython
from cython.cimports.libc.math import fabs

if not cython.compiled:
    from tether._core.state import State


def crossed(old, new, direction):
    """Tell whether an event function passed zero in the wanted direction."""
    if direction > 0:
        return old <= 0.0 <= new and old != new
    if direction < 0:
        return old >= 0.0 >= new and old != new
    return (old <= 0.0 <= new or old >= 0.0 >= new) and old != new


def try_events(s):
    """Evaluate the events where the step being tried leads."""
    return s.events(s, s.t_new, s.y, s.yp, s.g_new)


def one_happened(s):
    """Tell whether an event crossed zero in the step; if not, look on from the new values.

    A function that was left at zero has no side there: nothing happens before it has left.
    """
    i: cython.int
    for i in range(s.n_events):
        if not rests(s, i) and crossed(s.g_old[i], s.g_new[i], s.g_direction[i]):
            return True
    look_on(s)
    return False


def rests(s, i):
    """Tell whether an event function that was left at zero is still there."""
    return fabs(s.g_new[i]) <= s.g_rest[i]


def look_on(s: State):
    """Take the new values as those to change sign, but for functions that rest at zero."""
    i: cython.int
    for i in range(s.n_events):
        if not rests(s, i):
            s.g_old[i] = s.g_new[i]
            s.g_rest[i] = -1.0


def evaluate_events(s: State):
    """Evaluate the events at the current point into g_old (used at starts and restarts)."""
    return s.events(s, s.t, s.y, s.yp, s.g_old)
