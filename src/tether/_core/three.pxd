from libc.math cimport fabs

from tether._core.arrays cimport address
from tether._core.band cimport BandLU
from tether._core.codes cimport OK, SINGULAR
from tether._core.factors cimport Factors, range_of

cdef class ThreeLU(Factors):
    cdef long long size
    cdef object pattern
    cdef BandLU with_exchanges        # used where a pivot was too small ...
    cdef bint exchanged               # ... as it was the last time
    cdef bint in_pairs                # unknowns are computed two at a time
    cdef bint in_order                # rows and columns are already in the order of the band
    cdef object numbers, integers     # own the memory behind the pointers
    cdef double* above                # the matrix: entries (k, k + 1), ...
    cdef double* diagonal
    cdef double* below                # ... and (k + 1, k)
    cdef double* lower                # the factors
    cdef double* upper
    cdef double* inverse              # reciprocals of the pivots
    cdef double* x
    cdef int* place                   # position of each entry, from `above` on
    cdef int* row                     # rows and columns in the order of the band
    cdef int* column

cdef int eliminate_three(ThreeLU f) noexcept nogil
cdef bint is_pivot(double pivot, double other) noexcept nogil
cdef void solve_permuted(ThreeLU f, double* b, int* rows, int* columns, double* lower,
                         double* upper) noexcept nogil
cdef void solve_three(ThreeLU f, double* x, double* lower, double* upper) noexcept nogil
