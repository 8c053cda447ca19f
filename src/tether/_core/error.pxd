from tether._core.codes cimport ERROR_TEST, MAX_NORM, OK
from tether._core.state cimport State

cdef int test_error(State s) noexcept nogil
cdef void judge_orders(State s) noexcept nogil
cdef double accumulate(double total, double x, int norm) noexcept nogil
