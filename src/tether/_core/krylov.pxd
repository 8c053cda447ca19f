from libc.math cimport fabs

from tether._core.arrays cimport address
from tether._core.codes cimport OK, SINGULAR
from tether._core.gmres cimport Gmres, ask_user, weight_of

cdef class Krylov(Gmres):
    cdef public bint complete         # every column has its own row
    cdef bint to_arrange              # the next matrix tells which rows belong to which columns
    cdef object pattern
    cdef long long size
    cdef int replaced                 # pivots that were too small
    cdef list numbers, integers       # own the memory behind the pointers
    cdef double* values               # the matrix, column by column
    cdef int* start
    cdef int* row
    cdef double* factors              # incomplete, row by row
    cdef int* first                   # first entry of each row
    cdef int* column                  # column of each entry
    cdef int* source                  # index of each entry in the matrix
    cdef int* diagonal                # indices of the pivots
    cdef int* matched                 # row of each column
    cdef int* place                   # index of each column's entry in the current row

cdef void measure_rows(Krylov f) noexcept nogil
cdef int eliminate_within(Krylov f) noexcept nogil
cdef int* integers(object array) except? NULL
