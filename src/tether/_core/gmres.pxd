from libc.math cimport fabs, sqrt

from tether._core.arrays cimport address
from tether._core.codes cimport OK, SINGULAR
from tether._core.factors cimport Factors

cdef class Gmres(Factors):
    cdef public long long solutions, iterations, failures
    cdef public object user           # replaces M ...
    cdef bint by_user                 # ... if there is one
    cdef object guard                 # of that object
    cdef object token                 # marks factors that belong to this matrix
    cdef int directions               # before a restart
    cdef list memory                  # owns the memory behind the pointers
    cdef double* weight               # of the unknowns; NULL: all alike
    cdef double* space                # the directions
    cdef double* small                # coordinates
    cdef double* x
    cdef double* r
    cdef double* b
    cdef double* row_size             # largest term of each equation
    cdef void multiply(self, double* x, double* out, bint transposed) noexcept nogil
    cdef void precondition(self, double* v, double* out) noexcept nogil
    cdef void precondition_transposed(self, double* v, double* out) noexcept nogil
    cdef int call_factor(self) except -200
    cdef int call_solve(self, double* v, double* out) except -200

cdef void ask_user(Gmres f, double* v, double* out) noexcept nogil
cdef void iterate(Gmres f, double* b, bint transposed) noexcept nogil
cdef double weight_of(Gmres f, int i, bint transposed) noexcept nogil
cdef double residual_size(Gmres f, bint transposed) noexcept nogil
cdef int extend_space(Gmres f, double left, double target, bint transposed,
                      int most) noexcept nogil
cdef void combine(Gmres f, int count, bint transposed) noexcept nogil
cdef void apply_preconditioner(Gmres f, double* out, bint transposed) noexcept nogil
cdef double dot(double* a, double* b, int n) noexcept nogil
cdef double* direction(Gmres f, int k) noexcept nogil
cdef double* part(double* array, long long start) noexcept nogil
