from tether._core.adapters cimport evaluate
from tether._core.codes cimport NO_CONVERGENCE, NON_FINITE, OF_Y, OF_YP, OK
from tether._core.colours cimport (
    difference_groups,
    is_lost_in_noise,
    estimate_noise,
    group_columns,
    grouping_pays,
    is_empty,
    move_group,
    note_rows,
    take_column,
    use_colours,
)
from tether._core.sparsity cimport difference_sparse, look_for_absent
from tether._core.state cimport State

cpdef void use_differences(State s)
cdef int difference_jacobian(State s, double t, double* y, double* yp) noexcept nogil
cdef void choose_increments(State s, double* y, double* yp, double y_size) noexcept nogil
cdef int difference_fy(State s, double t, double* y, double* yp) noexcept nogil
cdef int move(State s, double t, double* y, double* yp, double* v, int j) noexcept nogil
cdef double usual_size(State s, int j) noexcept nogil
cdef int refine_fy(State s, double t, double* y, double* yp, double y_size) noexcept nogil
cdef int refine_groups(State s, double t, double* y, double* yp, double y_size) noexcept nogil
cdef int difference_fyp(State s, double t, double* y, double* yp) noexcept nogil
cdef void choose_slope_increments(State s, double* yp) noexcept nogil
cdef int difference_slopes(State s, double t, double* y, double* yp) noexcept nogil
cdef int move_slope(State s, double t, double* y, double* yp, int j) noexcept nogil
cdef int move_slope_farther(State s, double t, double* y, double* yp, int j) noexcept nogil
cdef void take_slope(State s, int j) noexcept nogil
cdef double largest_in_units(State s, double* v) noexcept nogil
cdef double largest(double* v, int n) noexcept nogil
