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

from tether._core.arrays cimport address
from tether._core.codes cimport OK, NO_EVENT_VALUE
from tether._core.opcodes cimport *
from tether._core.runner cimport addresses_of, keep
from tether._core.special cimport special
from tether._core.state cimport State

cdef class Machine:
    cdef public object schedule
    cdef public object slots          # w as an array
    cdef list arrays                  # owns the memory behind the pointers
    cdef public int n, n_args, n_values
    cdef int t_slot, base             # slots of t and of the first result
    cdef bint takes_yp
    cdef double* w
    cdef double* tables
    cdef int* a
    cdef int* b
    cdef int* c
    cdef int* run_op
    cdef int* run_start
    cdef int* segment_start
    cdef int* value_slot
    # --- entries of F_y and F_y', those that follow from the args first
    cdef public int n_fy, n_fyp
    cdef public int n_fy_static, n_fyp_static
    cdef public long long reach       # one more than the largest position
    cdef int* fy_slot
    cdef int* fy_position
    cdef int* fyp_slot
    cdef int* fyp_position
    # --- what the slots hold
    cdef double t_values              # t of the slots that follow from t; NaN: none yet
    cdef double t_entries
    cdef bint filled                  # the slots for the values belong to the point in the slots

cdef double powi(double x, int k) noexcept nogil
cdef double modulo(double x, double y) noexcept nogil
cdef double smaller(double x, double y) noexcept nogil
cdef double larger(double x, double y) noexcept nogil
cdef double sign(double x) noexcept nogil
cdef double piecewise(double* table, int first, double x) noexcept nogil
cdef void run_segment(Machine m, int segment) noexcept nogil
cdef void take_point(Machine m, double t, double* y, double* yp) noexcept nogil
cdef bint is_at(Machine m, double t, double* y, double* yp) noexcept nogil
cdef void fill(Machine m, double t, double* y, double* yp) noexcept nogil
cdef void fill_entries(Machine m, double t, double* y, double* yp) noexcept nogil
cdef void follow_args(Machine m) noexcept nogil
cdef void take_args(Machine m, double* args) noexcept nogil
cdef void take_last_args(Machine m, double* args, int count) noexcept nogil
cdef void values_at(Machine m, double t, double* y, double* yp, double* out) noexcept nogil
cdef void write_static(Machine m, double* fy, double* fyp) noexcept nogil
cdef void entries_at(Machine m, double t, double* y, double* yp, double* fy,
                     double* fyp) noexcept nogil
cdef void rows_at(Machine m, double t, double* y, double* gy) noexcept nogil
cdef int machine_residual(State s, double t, double* y, double* yp, double* out) noexcept nogil
cdef int machine_jacobian(State s, double t, double* y, double* yp) noexcept nogil
cdef int check_finite(double* values, int n) noexcept nogil
cdef int machine_events(State s, double t, double* y, double* yp, double* g) noexcept nogil
cdef void machine_constraint(double t, double* y, double* g, void* machine) noexcept nogil
cdef void machine_constraint_jacobian(double t, double* y, double* gy,
                                      void* machine) noexcept nogil
