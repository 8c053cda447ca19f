from tether._core.state cimport State

cdef int try_events(State s) noexcept nogil
cdef bint one_happened(State s) noexcept nogil
cpdef bint crossed(double old, double new, int direction) noexcept nogil
