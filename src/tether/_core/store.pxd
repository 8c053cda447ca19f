from tether._core.arrays cimport address, doubles_of
from tether._core.codes cimport OK
from tether._core.interpolate cimport interpolate
from tether._core.project cimport move_onto
from tether._core.state cimport State

cdef void store(State s) noexcept nogil
cdef void store_outputs(State s, double t) noexcept nogil
cdef void project_output(State s, long long base) noexcept nogil
cpdef void store_point(State s, double t, y, yp, int k)
cdef void store_row(State s, int k) noexcept nogil
