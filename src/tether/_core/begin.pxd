from tether._core.codes cimport COLUMNS
from tether._core.norms cimport set_weights, weighted_norm
from tether._core.state cimport State

cpdef int begin(State s, double t, double[::1] y, double[::1] yp, double first_step)
cdef double first_step_size(State s) noexcept nogil
