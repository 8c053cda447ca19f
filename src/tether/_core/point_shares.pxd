from tether._core.codes cimport WIDTH

cdef double share_of(double[::1] times, Py_ssize_t last, int j, int points,
                     double at) noexcept nogil
