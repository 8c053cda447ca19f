from tether._core.codes cimport KINDS, OK, UNSCALED
from tether._core.state cimport State

cdef int assemble_and_factor(State s) noexcept nogil
cdef void scale_matrix(State s) noexcept nogil
cdef void solve_scaled(State s, double* b) noexcept nogil
