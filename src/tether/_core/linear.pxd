from tether._core.codes cimport KINDS, OK, ROWS, SINGULAR, UNSCALED
from tether._core.state cimport State

cdef int assemble_and_factor(State s) noexcept nogil
cdef double pivot_ratio(State s) noexcept nogil
cdef void scale_matrix(State s) noexcept nogil
cdef void solve_scaled(State s, double* b) noexcept nogil
cdef int small_factor(State s) noexcept nogil
cdef void small_solve(State s, double* b) noexcept nogil
cpdef void use_small_factor(State s)
