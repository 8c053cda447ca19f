from libc.math cimport fabs

from tether._core.arrays cimport address
from tether._core.by_rows cimport ByRows
from tether._core.codes cimport ITERATION, OF_Y, OF_YP, ROWS, SINGULAR
from tether._core.factors cimport Factors
from tether._core.matrix cimport Matrix, has_changed
from tether._core.sparse_lu cimport SparseLU

cdef class Sparse(Matrix):
    cdef public object pattern
    cdef public Factors lu
    cdef public object way            # of factoring: makes a Factors of a pattern
    cdef public object memory         # F_y, F_y' and the iteration matrix
    cdef bint outdated                # lu belongs to a pattern before this one, or to none
    cdef list integers                # own the memory of the pattern
    cdef object marks
    cdef int* start                   # the entries of column j begin here ...
    cdef int* row                     # ... and stand in these rows
    cdef object rest
    cdef double* left                 # of the equations by a solution
    cdef double* weight               # of the unknowns
    cdef signed char* stands
    cdef Sparse split                 # stores B where a basis mixes columns ...
    cdef bint mixed                   # ... which was assembled last
    cdef bint iterates                # lu solves by iteration
    cdef bint exactly                 # ... but not what was assembled last
    cdef SparseLU exact
    cdef ByRows by_rows
    cdef void pass_on(self) noexcept nogil

cdef double* entries_of(Sparse m, int which) noexcept nogil
cdef int* starts_of(Sparse m, int which) noexcept nogil
cdef int* places_of(Sparse m, int which) noexcept nogil
cdef int factor_exactly(Sparse m) noexcept nogil
cdef int find(Sparse m, int j, int row) noexcept nogil
cdef int grow(Sparse m, int j, int* rows, int count) noexcept nogil
