from tether._core.codes cimport NON_FINITE, OK, SINGULAR
from tether._core.state cimport State

cdef int assemble_and_factor(State s) noexcept nogil
cdef int small_factor(State s) noexcept nogil
cdef void small_solve(State s, double* b) noexcept nogil
cpdef void use_small_factor(State s)
