from tether._core.arrays cimport address, byte_address, integer_address
from tether._core.codes cimport OF_Y, OF_YP, OK, ROWS, SINGULAR
from tether._core.matrix cimport Matrix, has_changed

cdef class Dense(Matrix):
    cdef object memory                # F_y, F_y', the iteration matrix, and what follows from them
    cdef object pivots
    cdef object marks
    cdef double* lu
    cdef double* pivot_inverse
    cdef int* pivot
    cdef object factor_lists
    cdef int* order                   # of the rows, in the factors
    cdef int* lower_end               # where lists of a row end: entries left of the diagonal,
    cdef int* upper_end               # and right of it
    cdef int* entry_column
    cdef double* entry
    cdef double* permuted             # right-hand side in that order, solved with the lower factor
    cdef void open_factors(self)
    cdef void list_factors(self) noexcept nogil
    cdef double* moving               # entries of F_y that change, and zeros
    cdef signed char* in_pattern

cdef int list_entries(Dense d, int k, int first, int last, int count) noexcept nogil
cdef double* storage(Dense d, int which) noexcept nogil
