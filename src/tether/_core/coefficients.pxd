from tether._core.state cimport State

cdef void set_coefficients(State s) noexcept nogil
