from libc.math cimport fabs

from tether._core.arrays cimport address
from tether._core.codes cimport OK, SINGULAR

cdef class Factors:
    cdef public int n
    cdef public bint factored
    cdef public bint failed
    cdef public object error
    cdef void weigh(self, double* weight) noexcept nogil
    cdef int factor(self, double* values) noexcept nogil
    cdef void solve(self, double* b) noexcept nogil
    cdef void solve_transposed(self, double* b) noexcept nogil
    cdef double pivot_ratio(self) noexcept nogil

cdef double range_of(double* v, int n) noexcept nogil
