from tether._core.adapters cimport evaluate
from tether._core.codes cimport NO_CONVERGENCE, OF_Y, OF_YP, OK
from tether._core.state cimport State, integers, open_block, take

cdef int use_colours(State s) except -1
cdef int groups_of(State s, int which, object pattern, int* colour, object groups) except -1
cdef bint grouping_pays(State s, int colours) noexcept nogil
cdef void note_rows(State s, int pattern, int j) noexcept nogil
cdef int changed_rows(State s) noexcept nogil
cdef int group_columns(State s, int pattern, int* colour) noexcept nogil
cdef bint fits(State s, int pattern, int j) noexcept nogil
cdef int difference_groups(State s, double t, double* y, double* yp, bint slopes) noexcept nogil
cdef int try_groups(State s, double t, double* y, double* yp, double* v, int which,
                    int pattern, int* colour, int colours) noexcept nogil
cdef int move_group(State s, double t, double* y, double* yp, double* v, int* colour,
                    int group) noexcept nogil
cdef int move_farther(State s, double t, double* y, double* yp, double* v, int pattern,
                      int* colour, int group) noexcept nogil
cdef bint is_empty(State s, int pattern, int j) noexcept nogil
cdef bint is_lost_in_noise(State s, int pattern, int j) noexcept nogil
cdef void take_group(State s, int which, int pattern, int* colour, int group) noexcept nogil
cdef bint take_column(State s, int which, int pattern, int j) noexcept nogil
cdef int verify_matrix(State s, double t, double* y, double* yp, double* v, int which,
                       int pattern) noexcept nogil
cdef double draw(State s) noexcept nogil
cdef void estimate_noise(State s, double* y) noexcept nogil
