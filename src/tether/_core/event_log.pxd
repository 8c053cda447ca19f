from tether._core.arrays cimport address
from tether._core.codes cimport OK
from tether._core.events cimport crossed, find_time, keep_event_values
from tether._core.interpolate cimport interpolate
from tether._core.machine cimport Machine, take_args
from tether._core.native cimport Native, take_native_args
from tether._core.project cimport move_onto
from tether._core.state cimport State
from tether._core.store cimport store, store_outputs
from tether._core.zero cimport ZeroSearch

# What happens to a member after an event in its step.
cdef enum:
    GOES_ON = 0
    STOPS = 1
    HAS_NO_ROOM = 2
    IS_UNCLEAR = 3

cdef class EventLog:
    cdef ZeroSearch search
    cdef bint in_c
    cdef double t0
    cdef double t_cut                 # where an event has ended the run ...
    cdef double* y                    # ... and the values there
    cdef double* yp
    cdef double* stops_after
    cdef double* counted              # how many times each has happened
    cdef double* times                # of the events in the last step; NaN for the others
    cdef double* reported             # nonzero: reported in the last step
    cdef double* values
    cdef object own, array
    cdef double* rows
    cdef long long width, n_rows
    cdef long long used, kept         # number of rows, and of those of earlier members

cdef int begin_log(EventLog log, State s, double* inputs) noexcept nogil
cdef void forget_member(EventLog log) noexcept nogil
cdef bint arm_events(State s) noexcept nogil
cdef int serve_events(EventLog log, State s, long long member) noexcept nogil
cdef bint find_times(EventLog log, State s, double t_old) noexcept nogil
cdef int next_event(EventLog log, State s) noexcept nogil
cdef void write_down(EventLog log, State s, long long member, int i, double t) noexcept nogil
cdef void go_on(EventLog log, State s) noexcept nogil
cdef void cut_step(EventLog log, State s) noexcept nogil
