from libc.math cimport fabs

from tether._core.arrays cimport address
from tether._core.codes cimport OK, SINGULAR
from tether._core.factors cimport Factors, range_of
from tether._core.lapack cimport address_in

ctypedef void (*dgbtrf_t)(int*, int*, int*, int*, double*, int*, int*, int*) noexcept nogil
ctypedef void (*dgbtrs_t)(char*, int*, int*, int*, int*, double*, int*, int*, double*, int*,
                          int*) noexcept nogil

cdef dgbtrf_t dgbtrf
cdef dgbtrs_t dgbtrs

cdef class BandLU(Factors):
    cdef public int kl, ku
    cdef bint narrow                  # eliminated by the loops here rather than by LAPACK
    cdef int height                   # of a stored column: the band and kl rows for fill-in
    cdef int width                    # diagonals of U above the main one
    cdef long long size
    cdef list owned                   # owns the memory behind the pointers
    cdef double* ab                   # the band, column by column
    cdef double* inverse              # reciprocals of the pivots
    cdef double* x
    cdef long long* where             # position of each entry in the band
    cdef int* row                     # rows and columns in the order of the band
    cdef int* column
    cdef int* pivot                   # rows below the diagonal; from LAPACK: the row's index

cdef int eliminate(BandLU f) noexcept nogil
cdef void substitute(BandLU f) noexcept nogil
cdef void substitute_transposed(BandLU f) noexcept nogil
cdef int eliminate_by_lapack(BandLU f) noexcept nogil
cdef void solve_by_lapack(BandLU f, char* how) noexcept nogil
