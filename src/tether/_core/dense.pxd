from tether._core.arrays cimport address, byte_address, integer_address
from tether._core.codes cimport OF_Y, OF_YP, OK, ROWS, SINGULAR
from tether._core.matrix cimport Matrix, has_changed

cdef class Dense(Matrix):
    cdef object memory                # F_y, F_y', the iteration matrix, and the inverse pivots
    cdef object pivots
    cdef object changing_places
    cdef object marks
    cdef double* lu
    cdef double* pivot_inverse
    cdef int* pivot
    cdef int* change_start            # entries of F_y that change, column by column
    cdef int* change_row
    cdef void list_changes(self) noexcept nogil
    cdef signed char* in_pattern

cdef double* storage(Dense d, int which) noexcept nogil
