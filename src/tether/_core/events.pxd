from tether._core.arrays cimport address
from tether._core.codes cimport OK
from tether._core.interpolate cimport interpolate
from tether._core.state cimport State
from tether._core.zero cimport ZeroSearch

cdef int try_events(State s) noexcept nogil
cdef bint one_happened(State s) noexcept nogil
cdef bint rests(State s, int i) noexcept nogil
cpdef void keep_event_values(State s) noexcept nogil
cpdef bint crossed(double old, double new, int direction) noexcept nogil
cdef bint find_time(State s, ZeroSearch search, int i, double t_old, double* y, double* yp,
                    double* g) noexcept nogil
