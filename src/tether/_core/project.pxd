from tether._core.codes cimport CONTRADICTION, NON_FINITE, NOT_ON_CONSTRAINTS, OK, SINGULAR, \
    USER_EXCEPTION
from tether._core.constraints cimport evaluate_constraints, linearise_constraints
from tether._core.jacobian cimport largest
from tether._core.norms cimport weighted_norm
from tether._core.state cimport State

cdef int project(State s) noexcept nogil
cdef int move_onto(State s, double limit) noexcept nogil
cdef int linearise(State s) noexcept nogil
cdef void set_scaling(State s) noexcept nogil
cdef int factor_orthogonal(State s) noexcept nogil
cdef void clean(State s, int row, int k) noexcept nogil
cdef void solve_orthogonal(State s) noexcept nogil
cdef int factor_cholesky(State s) noexcept nogil
cdef void solve_cholesky(State s) noexcept nogil
cdef int scaled_rows(State s) noexcept nogil
cdef void find_masks(State s) noexcept nogil
