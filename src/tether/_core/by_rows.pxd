cdef class ByRows:
    cdef object pattern
    cdef tuple integers               # own the memory behind the pointers
    cdef int* start                   # first entry of each row
    cdef int* place                   # index of each entry in the storage by columns
    cdef int* column                  # column of each entry
    cdef double changing(self, int i, double* fy, signed char* changes, double* x) noexcept nogil
    cdef double size(self, int i, double* fy, double* fyp, signed char* changes, double* y,
                     double* yp, double missing) noexcept nogil

cdef void make_ready(ByRows rows) noexcept nogil
