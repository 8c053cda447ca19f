from tether._core.codes cimport MAX_NORM, OK, ZERO_WEIGHT
from tether._core.state cimport State

cdef int set_weights(State s) noexcept nogil
cdef double weighted_norm(State s, double* v, double* weight, int norm) noexcept nogil
cdef double measure(State s, double* v) noexcept nogil
cdef double largest_product(double* v, double* weight, int n) noexcept nogil
cdef bint all_finite(double* v, long long n) noexcept nogil
cdef double larger(double size, double x) noexcept nogil
