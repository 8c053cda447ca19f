from tether._core.arrays cimport address
from tether._core.codes cimport OK
from tether._core.machine cimport check_finite
from tether._core.runner cimport addresses_of
from tether._core.state cimport State

ctypedef void (*fill_static_t)(double* w) noexcept nogil
ctypedef void (*fill_time_t)(double* w, double t) noexcept nogil
ctypedef void (*values_t)(double* w, double t, double* y, double* yp, double* out) noexcept nogil
ctypedef void (*static_entries_t)(double* w, double* fy, double* fyp) noexcept nogil
ctypedef void (*entries_t)(double* w, double t, double* y, double* yp, double* fy,
                           double* fyp) noexcept nogil

cdef class Native:
    cdef public object library        # keeps the functions loaded
    cdef object memory
    cdef public int n, n_args, n_values, n_fy, n_fyp
    cdef public long long reach
    cdef object entries, positions, numbers
    cdef double* fy_list              # the entries as computed ...
    cdef double* fyp_list
    cdef int* fy_position             # ... and their positions
    cdef int* fyp_position
    cdef public bint fyp_is_static
    cdef bint has_time
    cdef double* w
    cdef double t                     # t of the values in w; NaN: none yet
    cdef fill_static_t fill_static
    cdef fill_time_t fill_time
    cdef values_t fill_values
    cdef static_entries_t static_entries
    cdef entries_t fill_entries

cdef void native_values(Native m, double t, double* y, double* yp, double* out) noexcept nogil
cdef void native_entries(Native m, double t, double* y, double* yp, double* fy,
                         double* fyp) noexcept nogil
cdef void put_entries(Native m, double* fy, double* fyp) noexcept nogil
cdef void take_native_args(Native m, double* args) noexcept nogil
cdef void take_last_native_args(Native m, double* args, int count) noexcept nogil
cdef void write_native_static(Native m, double* fy, double* fyp) noexcept nogil
cdef void native_rows(Native m, double t, double* y, double* gy) noexcept nogil
cdef int native_residual(State s, double t, double* y, double* yp, double* out) noexcept nogil
cdef int native_jacobian(State s, double t, double* y, double* yp) noexcept nogil
cdef int native_events(State s, double t, double* y, double* yp, double* g) noexcept nogil
cdef void native_constraint(double t, double* y, double* g, void* native) noexcept nogil
cdef void native_constraint_jacobian(double t, double* y, double* gy,
                                     void* native) noexcept nogil
