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

# Compiled twice where the compiler can: processors with vectors of four numbers divide twice as
# many in the same time. A declaration before Cython's own says so. Sums and products are not
# contracted in either, so the digits are the same.
cdef extern from *:
    """
    #if defined(__PYX_HAVE__tether___core__row_operations) && defined(__GNUC__) \\
        && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__)
    __attribute__((target_clones("avx2", "default")))
    static void tether_run_instruction(
        int, double *, double *, double *, double *, int, double *, int);
    #endif
    """

cdef void run_instruction "tether_run_instruction"(
    int code, double* d, double* a, double* b, double* c, int number, double* pieces, int count
) noexcept nogil
