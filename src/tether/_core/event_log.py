"""Events of the members in a lane: found, located and recorded without Python.

For events that are programs and change no state, this does the same as `tether.run.drive`, in the
same order. Members with other events run by themselves.
"""

import cython
import numpy as np
from cython.cimports.libc.math import fabs, isnan

EPS = cython.declare(cython.double, 2.0**-52)
NAN = cython.declare(cython.double, float("nan"))
FIRST_ROWS = 256


class EventLog:
    """The events of some members, one row each: member, number of the event, t, y and y'.

    Parameters
    ----------
    s : State
        The memory of the lane; it watches the events.
    t0 : float
        Where members begin.
    How many times each event happens before it ends a run; infinite for those that never do.
    """

    def __init__(self, s, t0, stops_after):
        n: cython.int = s.n
        count: cython.int = s.n_events
        self.t0, self.width = t0, 3 + 2 * n
        self.in_c = isinstance(s.events_adapter, Native)
        self.search = ZeroSearch()
        self.own = np.zeros(2 * n + 5 * count)
        self.own[2 * n : 2 * n + count] = stops_after
        self.y = address(self.own)
        self.yp = self.y + n
        self.stops_after = self.yp + n
        self.counted = self.stops_after + count
        self.times = self.counted + count
        self.reported = self.times + count
        self.values = self.reported + count
        self.used = self.kept = 0
        self.array = np.zeros((0, self.width))
        self.make_room()

    def make_room(self):
        """Double the room."""
        larger = np.zeros((max(FIRST_ROWS, 2 * len(self.array)), self.width))
        larger[: len(self.array)] = self.array
        self.array, self.n_rows = larger, len(larger)
        self.rows = address(larger.reshape(-1))

    def take_all(self):
        """Return the recorded events, and empty the log."""
        found = self.array[: self.used].copy()
        self.used = self.kept = 0
        return found


def begin_log(log, s, inputs):
    """Give the events the inputs of a member; return how many there are."""
    i: cython.int
    log.kept = log.used
    for i in range(s.n_events):
        log.counted[i] = 0.0
    if log.in_c:
        take_native_args(cython.cast(Native, s.events_adapter), inputs)
        return cython.cast(Native, s.events_adapter).n_args
    take_args(cython.cast(Machine, s.events_adapter), inputs)
    return cython.cast(Machine, s.events_adapter).n_args


def forget_member(log):
    """Drop the events of a member that will run by itself."""
    log.used = log.kept


def arm_events(s):
    """Evaluate the events at the start, to see changes of sign; False if one has no value."""
    return s.events(s, s.t, s.y, s.yp, s.g_old) == OK


def serve_events(log, s, member):
    """Record the events of the last step, in the order in which they happen.

    An event that ends the run cuts the step; the run then ends at `t_cut`, with y and y' there.
    """
    i: cython.int
    t: cython.double
    t_old: cython.double = log.t0 if s.steps == 1 else s.t - s.psi[1]
    same_time: cython.double = 4.0 * EPS * max(fabs(s.t), fabs(t_old))
    stops: cython.bint = False
    if not find_times(log, s, t_old):
        return IS_UNCLEAR
    while True:
        i = next_event(log, s)
        if i < 0:
            break
        t = log.times[i]
        if stops and fabs(t - log.t_cut) > same_time:
            break
        log.times[i] = NAN
        log.reported[i] = 1.0
        if log.used == log.n_rows:
            return HAS_NO_ROOM
        write_down(log, s, member, i, t)
        if t != log.t0:                        # an event that is zero at the start does not count
            log.counted[i] += 1.0
            if log.counted[i] >= log.stops_after[i] and not stops:
                stops = True
                log.t_cut = t
    if not stops:
        go_on(log, s)
        return GOES_ON
    if log.t_cut == t_old:                     # nothing is left of the step
        return IS_UNCLEAR
    cut_step(log, s)
    return STOPS


def find_times(log, s, t_old):
    """Find out which events have happened in the last step, and when; False if that is unclear."""
    i: cython.int
    for i in range(s.n_events):
        log.reported[i] = 0.0
        log.times[i] = NAN
        if crossed(s.g_old[i], s.g_new[i], s.g_direction[i]):
            if not find_time(s, log.search, i, t_old, log.y, log.yp, log.values):
                return False
            log.times[i] = log.search.t
    return True


def next_event(log, s):
    """Return the earliest event of the step that is still to be served; -1 if there is none."""
    i: cython.int
    first: cython.int = -1
    for i in range(s.n_events):
        if not isnan(log.times[i]):
            if first < 0 or s.direction * log.times[i] < s.direction * log.times[first]:
                first = i
    return first


def write_down(log, s, member, i, t):
    """Add a row for an event."""
    row: cython.p_double = log.rows + log.used * log.width
    row[0] = member
    row[1] = i
    row[2] = t
    interpolate(s, t, row + 3, row + 3 + s.n)
    log.used += 1


def go_on(log, s):
    """Keep the step, and watch the events from its end on."""
    i: cython.int
    store(s)
    keep_event_values(s)
    for i in range(s.n_events):
        if log.reported[i] != 0.0 and s.g_new[i] == 0.0:
            s.g_old[i] = NAN


def cut_step(log, s):
    """Find the point where an event ends the run; move it onto the constraints."""
    i: cython.int
    interpolate(s, log.t_cut, log.y, log.yp)
    store_outputs(s, log.t_cut)
    if s.n_constraints == 0:
        return
    for i in range(s.n):
        s.y[i] = log.y[i]
        s.correction[i] = 0.0
    s.t_new = log.t_cut
    s.contradictions = 0
    if move_onto(s, 1e300) == OK:
        for i in range(s.n):
            log.y[i] = s.y[i]
