cimport cython


@cython.final
cdef class ZeroSearch:
    cdef readonly double t
    cdef double a, b, c, ga, gb, gc, close, side
    cdef int stage, points

    cpdef void begin(self, double t_old, double t_new, double old) noexcept nogil
    cdef void stay_at(self, double t) noexcept nogil
    cpdef void narrow_down(self, double a, double b, double ga, double gb,
                           double close) noexcept nogil
    cpdef bint take(self, double value) noexcept nogil
    cdef bint bracket(self) noexcept nogil
    cdef bint narrow(self, double value) noexcept nogil
