from tether._core.codes cimport OK
from tether._core.state cimport State

cdef int look_for_events(State s) noexcept nogil
cpdef bint crossed(double old, double new, int direction) noexcept nogil
