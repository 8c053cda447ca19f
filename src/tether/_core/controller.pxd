from tether._core.begin cimport find_curvature, follow_parabola
from tether._core.codes cimport (ERROR_TEST, H211B, NO_CONVERGENCE, OK, SMALLER_IS_WORSE,
                                 STRUCTURE_IN_DOUBT)
from tether._core.order cimport is_quiet, lower_order, possible_growth
from tether._core.state cimport State

cdef double next_step(State s) noexcept nogil
cdef double h211b_ratio(State s, double control) noexcept nogil
cdef double dassl_ratio(double control) noexcept nogil
cdef int recover(State s, int status) noexcept nogil
cdef bint smaller_is_worse(State s) noexcept nogil
cdef void forget_jacobian(State s) noexcept nogil
cdef double smallest_step(State s) noexcept nogil
cdef double below_ceilings(State s, double h) noexcept nogil
cdef void fit_to_end(State s) noexcept nogil
