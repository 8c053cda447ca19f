cimport numpy as cnp

from tether._core.arrays cimport address
from tether._core.codes cimport NON_FINITE, OF_Y, OF_YP, OK, USER_EXCEPTION
from tether._core.guess cimport use_guesses
from tether._core.norms cimport all_finite
from tether._core.state cimport State

ctypedef void (*c_residual_t)(double, double*, double*, double*) noexcept nogil
ctypedef int (*c_status_t)(double, double*, double*, double*) noexcept nogil
ctypedef void (*c_residual_data_t)(double, double*, double*, double*, void*) noexcept nogil
ctypedef int (*c_status_data_t)(double, double*, double*, double*, void*) noexcept nogil

cdef class PythonResidual:
    cdef object fun, y, yp, out, args
    cdef double* y_data
    cdef double* yp_data
    cdef double* out_data
    cdef bint fills
    cdef int n
    cdef int call(self, double t, double* y, double* yp, double* out) except -1

cdef class PythonJacobian:
    cdef object fun, y, yp, args
    cdef double* y_data
    cdef double* yp_data
    cdef int n
    cdef int call(self, State s, double t, double* y, double* yp) except -1

cdef class PythonTerms:
    cdef object fun, y, yp, column, args
    cdef double* y_data
    cdef double* column_data
    cdef int n
    cdef int call(self, State s, double t, double* y) except -1

cdef class PythonEvents:
    cdef list events
    cdef object y, yp, args
    cdef double* y_data
    cdef double* yp_data
    cdef int n
    cdef int call(self, double t, double* y, double* yp, double* g) except -1

cdef int pass_or_refuse(State s, object error, double t, double* y, double* yp) except -200
cdef bint is_given(State s, double t, double* y, double* yp) except -1
cdef int read_values(object result, double* out, int n) except -1
cdef int is_plain(object result, int n)

cdef int evaluate(State s, double t, double* y, double* yp, double* out) noexcept nogil
cdef int c_residual(State s, double t, double* y, double* yp, double* out) noexcept nogil
cdef int c_residual_data(State s, double t, double* y, double* yp, double* out) noexcept nogil
cdef int c_status(State s, double t, double* y, double* yp, double* out) noexcept nogil
cdef int c_status_data(State s, double t, double* y, double* yp, double* out) noexcept nogil
