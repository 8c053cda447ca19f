"""Sign changes of the event functions over a step; `tether.events` locates them."""

import cython

if not cython.compiled:
    from tether._core.codes import OK
    from tether._core.state import State


def crossed(old, new, direction):
    """Tell whether an event function passed zero in the wanted direction."""
    if direction > 0:
        return old <= 0.0 <= new and old != new
    if direction < 0:
        return old >= 0.0 >= new and old != new
    return (old <= 0.0 <= new or old >= 0.0 >= new) and old != new


def look_for_events(s):
    """Evaluate the events at the new point; positive when one of them crossed zero."""
    i: cython.int
    status: cython.int = s.events(s, s.t, s.y, s.yp, s.g_new)
    if status != OK:
        return status
    for i in range(s.n_events):
        if crossed(s.g_old[i], s.g_new[i], s.g_direction[i]):
            return 1
    for i in range(s.n_events):
        s.g_old[i] = s.g_new[i]
    return OK


def evaluate_events(s: State):
    """Evaluate the events at the current point into g_old (used at starts and restarts)."""
    return s.events(s, s.t, s.y, s.yp, s.g_old)
