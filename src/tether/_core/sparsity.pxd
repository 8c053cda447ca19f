from tether._core.adapters cimport evaluate
from tether._core.codes cimport NO_CONVERGENCE, OK
from tether._core.colours cimport draw, group_columns, is_empty, move_group, try_groups
from tether._core.state cimport State

cdef int difference_sparse(State s, double t, double* y, double* yp, bint slopes) noexcept nogil
cdef int find_and_difference(State s, double t, double* y, double* yp, double* v, double* matrix,
                             signed char* rows, int* colour, bint slopes) noexcept nogil
cdef int find_rows(State s, double t, double* y, double* yp, double* v, int* colour) noexcept nogil
cdef int divide(State s, double t, double* y, double* yp, double* v, int* colour,
                int parts) noexcept nogil
cdef int look_for_absent(State s, double t, double* y, double* yp) noexcept nogil
