from tether._core.arrays cimport address
from tether._core.codes cimport OK
from tether._core.machine cimport check_finite
from tether._core.rows cimport Rows, row_changing, row_constants, row_entries, row_values
from tether._core.state cimport State

cdef void write_jacobian(Rows m, State s, double t, double* y, double* yp) noexcept nogil
cdef int rows_residual(State s, double t, double* y, double* yp, double* out) noexcept nogil
cdef int rows_jacobian(State s, double t, double* y, double* yp) noexcept nogil
cdef int rows_events(State s, double t, double* y, double* yp, double* g) noexcept nogil
