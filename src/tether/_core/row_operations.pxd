from libc.math cimport (
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    ceil,
    copysign,
    cos,
    cosh,
    erf,
    exp,
    expm1,
    fabs,
    floor,
    fmod,
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

cdef void run_instruction(int code, double* d, double* a, double* b, double* c, int number,
                          double* pieces, int count) noexcept nogil
