from libc.math cimport fabs, sqrt

from tether._core.adapters cimport address
from tether._core.codes cimport OK, SINGULAR
from tether._core.factors cimport Factors

cdef class Krylov(Factors):
    cdef public long long solutions, iterations, failures
    cdef public bint complete         # every column has a row of its own
    cdef object pattern
    cdef public object user           # stands in for the incomplete factors ...
    cdef bint by_user                 # ... if there is one
    cdef object guard                 # of that object
    cdef object token                 # tells factors of it that are ours from those of others
    cdef long long size
    cdef int replaced                 # pivots that were too small
    cdef int directions               # before the iteration begins anew
    cdef list numbers, integers       # own the memory behind the pointers
    cdef double* values               # the matrix, column by column
    cdef int* start
    cdef int* row
    cdef double* factors              # incomplete, row by row
    cdef int* first                   # the entries of row i begin here ...
    cdef int* column                  # ... stand in these columns ...
    cdef int* source                  # ... and are those of the matrix
    cdef int* diagonal                # where the pivots stand
    cdef int* matched                 # row of each column
    cdef int* place                   # of the columns in the row at hand
    cdef double* weight               # of the unknowns; NULL: all alike
    cdef double* space                # the directions
    cdef double* small                # coordinates
    cdef double* x
    cdef double* r
    cdef double* b
    cdef double* row_size             # largest term of each equation
    cdef int call_factor(self) except -200
    cdef int call_solve(self, double* v, double* out) except -200

cdef void measure_rows(Krylov f) noexcept nogil
cdef int eliminate_within(Krylov f) noexcept nogil
cdef void precondition(Krylov f, double* v, double* out) noexcept nogil
cdef void precondition_transposed(Krylov f, double* v, double* out) noexcept nogil
cdef void multiply(Krylov f, double* x, double* out, bint transposed) noexcept nogil
cdef void iterate(Krylov f, double* b, bint transposed) noexcept nogil
cdef double weight_of(Krylov f, int i, bint transposed) noexcept nogil
cdef double by_rows(Krylov f, bint transposed) noexcept nogil
cdef int extend_space(Krylov f, double left, double target, bint transposed,
                      int most) noexcept nogil
cdef void combine(Krylov f, int count, bint transposed) noexcept nogil
cdef void condition(Krylov f, double* out, bint transposed) noexcept nogil
cdef double dot(double* a, double* b, int n) noexcept nogil
cdef double* direction(Krylov f, int k) noexcept nogil
cdef double* part(double* array, long long start) noexcept nogil
cdef int* integers(object array) except? NULL
