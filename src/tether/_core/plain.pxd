from libc.math cimport (
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    ceil,
    cos,
    cosh,
    erf,
    exp,
    expm1,
    fabs,
    floor,
    hypot,
    log,
    log1p,
    pow,
    sin,
    sinh,
    sqrt,
    tan,
    tanh,
)

from tether._core.machine cimport larger, modulo, piecewise, powi, sign, smaller
from tether._core.opcodes cimport *
from tether._core.special cimport special

cdef int OPAQUE
cdef double ULP
cdef double INFINITE
cdef int FUNCTION_ULPS

cdef class Plain:
    cdef object program
    cdef object slots                 # w as an array
    cdef object tables                # table as an array
    cdef int n, points, count, base, n_constants
    cdef int[::1] op, a, b, c, outputs
    cdef double[:, ::1] w
    cdef double[::1] e                # error bounds for the numbers in w
    cdef double[::1] table

    cdef double call(self, int number, double x) except? -1.0
    cdef run(self)
    cdef follow_errors(self)
    cdef bint is_infinite(self, int i)
    cdef double change(self, int i, double value, double x, double y) except? -1.0
    cdef double own_rounding(self, int i, double value, double x) except? -1.0
    cdef double rounding_of_table(self, int first, double x) except? -1.0
    cdef double* first_table(self) except NULL

cdef double operate(int code, double x, double y, int number, double* tables) noexcept nogil
