from tether._core.adapters cimport evaluate
from tether._core.codes cimport CANDIDATES, NO_CONVERGENCE, OF_Y, OF_YP, OK
from tether._core.colours cimport (
    changed_rows, draw, group_columns, is_empty, move_group, try_groups,
)
from tether._core.state cimport State

cdef int difference_sparse(State s, double t, double* y, double* yp, bint slopes) noexcept nogil
cdef int find_and_difference(State s, double t, double* y, double* yp, double* v, int which,
                             int* colour) noexcept nogil
cdef int find_rows(State s, double t, double* y, double* yp, double* v, int* colour) noexcept nogil
cdef int rule_out(State s, double t, double* y, double* yp, double* v, int* colour,
                  int parts, bint first) noexcept nogil
cdef int changed_among(State s, int j) noexcept nogil
cdef int look_for_absent(State s, double t, double* y, double* yp) noexcept nogil
