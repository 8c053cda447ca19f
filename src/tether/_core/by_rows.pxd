cdef class ByRows:
    cdef object pattern
    cdef tuple integers               # own the memory behind the pointers
    cdef int* start                   # the entries of row i begin here ...
    cdef int* place                   # ... stand there among those of all columns ...
    cdef int* column                  # ... and in these columns
    cdef double changing(self, int i, double* fy, signed char* changes, double* x) noexcept nogil
    cdef double size(self, int i, double* fy, double* fyp, signed char* changes, double* y,
                     double* yp, double missing) noexcept nogil

cdef void make_ready(ByRows rows) noexcept nogil
