from tether._core.arrays cimport address, doubles_of
from tether._core.codes cimport COLUMNS
from tether._core.interpolate cimport difference_table
from tether._core.norms cimport set_weights, weighted_norm
from tether._core.outdated cimport forget_alarms
from tether._core.state cimport State

cpdef int begin(State s, double t, y, yp, double first_step)
cdef int begin_at(State s, double t, double* y, double* yp, double first_step) noexcept nogil
cpdef void bend(State s, double[::1] ypp)
cdef void follow_parabola(State s) noexcept nogil
cdef void find_curvature(State s, int k) noexcept nogil
cpdef void add_history(State s, double[::1] t, double[:, ::1] y)
cdef double first_step_size(State s) noexcept nogil
