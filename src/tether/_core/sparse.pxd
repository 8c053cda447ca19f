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
    cdef public object way            # class of the factors, called with a pattern
    cdef public object memory         # F_y, F_y' and the iteration matrix
    cdef bint outdated                # lu belongs to an earlier pattern, or does not exist
    cdef list integers                # own the memory of the pattern
    cdef object marks
    cdef int* start                   # first entry of each column
    cdef int* row                     # row of each entry
    cdef object changing_places       # owns the memory of:
    cdef int* change_place            # entries of F_y that change, once they have been noted
    cdef int* change_column
    cdef int change_count
    cdef object rest
    cdef double* left                 # residual of a solution
    cdef double* weight               # of the unknowns
    cdef signed char* in_pattern
    cdef Sparse split                 # stores B with a basis ...
    cdef bint mixed                   # ... if that was assembled last
    cdef bint iterates                # lu solves by iteration
    cdef bint exactly                 # ... but the matrix assembled last is factored completely
    cdef SparseLU exact
    cdef ByRows by_rows
    cdef void take_error(self) noexcept nogil

cdef double* entries_of(Sparse m, int which) noexcept nogil
cdef int* starts_of(Sparse m, int which) noexcept nogil
cdef int* places_of(Sparse m, int which) noexcept nogil
cdef int factor_exactly(Sparse m) noexcept nogil
cdef int find(Sparse m, int j, int row) noexcept nogil
cdef int grow(Sparse m, int j, int* rows, int count) noexcept nogil
