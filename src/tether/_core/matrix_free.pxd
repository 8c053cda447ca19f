from libc.math cimport fabs, sqrt

from tether._core.adapters cimport evaluate
from tether._core.arrays cimport address
from tether._core.codes cimport OF_Y, OF_YP, OK, SINGULAR, USER_EXCEPTION
from tether._core.colours cimport draw
from tether._core.gmres cimport Gmres, ask_user, weight_of
from tether._core.matrix cimport Matrix
from tether._core.state cimport State

cdef class Directional(Gmres):
    cdef State state                  # its residual is used
    cdef bint interrupted             # by an exception of the residual
    cdef object points                # owns the memory behind the pointers
    cdef double t, c
    cdef double* y                    # the point ...
    cdef double* yp
    cdef double* unmoved              # ... and its residual
    cdef double* y_moved
    cdef double* yp_moved

cdef class MatrixFree(Matrix):
    cdef public Directional lu
    cdef void take_error(self) noexcept nogil

cdef void difference(Directional f, double* x, double of_y, double of_yp,
                     double* out) noexcept nogil
cdef int try_move(Directional f, double* x, double by_y, double by_yp, double* out) noexcept nogil
cdef int measure_equations(Directional f) noexcept nogil
cdef int note_point(State s, double t, double* y, double* yp) noexcept nogil
cdef void set_point(Directional f, double t, double* y, double* yp, double* r) noexcept nogil
