from tether._core.between cimport (largest_difference, measure_round_off, only_between,
                                   passes_jump)
from tether._core.codes cimport ERROR_TEST, MAX_NORM, OK
from tether._core.estimates cimport apply_estimate
from tether._core.state cimport State
from tether._core.terms cimport set_terms

cdef int test_error(State s) noexcept nogil
cdef void judge_orders(State s) noexcept nogil
cdef void measure_differences(State s) noexcept nogil
cdef double accumulate(double total, double x, int norm) noexcept nogil
