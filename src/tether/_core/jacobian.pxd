from tether._core.adapters cimport evaluate
from tether._core.codes cimport NON_FINITE, OK
from tether._core.state cimport State

cpdef void use_differences(State s)
cdef int difference_jacobian(State s, double t, double* y, double* yp) noexcept nogil
cdef int difference_fy(State s, double t, double* y, double* yp, double y_size) noexcept nogil
cdef double usual_size(State s, int j) noexcept nogil
cdef int refine_fy(State s, double t, double* y, double* yp, double y_size) noexcept nogil
cdef int difference_fyp(State s, double t, double* y, double* yp) noexcept nogil
cdef void estimate_noise(State s, double* y) noexcept nogil
cdef int move_derivative(State s, double t, double* y, double* yp, int j,
                         double increment) noexcept nogil
cdef bint drowned(State s) noexcept nogil
cdef void take_column(State s, int j, double increment) noexcept nogil
cdef double largest_in_units(State s, double* v) noexcept nogil
cdef double largest(double* v, int n) noexcept nogil
