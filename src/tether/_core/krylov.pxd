from libc.math cimport fabs

from tether._core.arrays cimport address
from tether._core.codes cimport OK, SINGULAR
from tether._core.gmres cimport Gmres, ask_user, weight_of

cdef class Krylov(Gmres):
    cdef public bint complete         # every column has a row of its own
    cdef object pattern
    cdef long long size
    cdef int replaced                 # pivots that were too small
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

cdef void measure_rows(Krylov f) noexcept nogil
cdef int eliminate_within(Krylov f) noexcept nogil
cdef int* integers(object array) except? NULL
