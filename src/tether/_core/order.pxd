from tether._core.state cimport State

cdef int lower_order(State s) noexcept nogil
cdef int next_order(State s) noexcept nogil
