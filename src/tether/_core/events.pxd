from tether._core.state cimport State

cdef int try_events(State s) noexcept nogil
cdef bint one_happened(State s) noexcept nogil
cdef bint rests(State s, int i) noexcept nogil
cpdef void look_on(State s) noexcept nogil
cpdef bint crossed(double old, double new, int direction) noexcept nogil
