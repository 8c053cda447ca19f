from scipy.linalg.cython_lapack cimport dgetrf, dgetrs

from tether._core.codes cimport OK, SINGULAR
from tether._core.state cimport State

cdef int lapack_factor(State s) noexcept nogil
cdef void lapack_solve(State s, double* b) noexcept nogil
cpdef void use_lapack(State s)
