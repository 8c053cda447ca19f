from tether._core.adapters cimport pass_or_refuse
from tether._core.arrays cimport address
from tether._core.codes cimport NON_FINITE, OK
from tether._core.jacobian cimport largest_in_units
from tether._core.state cimport State

ctypedef void (*c_piece_t)(double, double*, double*) noexcept nogil
ctypedef void (*c_piece_data_t)(double, double*, double*, void*) noexcept nogil

cdef class PythonPiece:
    cdef public object fun, jac, slopes
    cdef public object args
    cdef object y
    cdef double* y_data
    cdef int n
    cdef public int size
    cdef int call(self, State s, int start, double t, double* y) except -1
    cdef int call_jacobian(self, State s, int piece, double t, double* y) except -1
    cdef int call_entries(self, State s, int piece, double t) except -1

cdef int evaluate_constraints(State s, double t, double* y) noexcept nogil
cdef void call_c(State s, long long function, int piece, double t, double* y,
                 double* out) noexcept nogil
cdef int linearise_constraints(State s, double t, double* y) noexcept nogil
cdef int difference_constraints(State s, double t, double* y) noexcept nogil
