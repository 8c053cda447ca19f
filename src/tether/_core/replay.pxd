from tether._core.arrays cimport address, integer_address
from tether._core.codes cimport WIDTH

cdef class Workspace:
    cdef int n, m, lines
    cdef bint loses_digits            # whether F_y + c F_y' does
    cdef list arrays, integers        # own the memory behind the pointers
    cdef double* fy                   # matrices of the step, stored by rows
    cdef double* fyp
    cdef double* fp
    cdef double* gy
    cdef double* gp
    cdef double* lu
    cdef double* rows                 # of the constraints, in units of the projection, of length 1
    cdef double* triangle             # the Cholesky factor of their products
    cdef double* length
    cdef double* left
    cdef double* past
    cdef double* scale
    cdef int* pivot
    cdef int* place                   # positions of entries: F_y, F_y', F_p, G_y, G_p ...
    cdef int* begin                   # ... begin here
    cdef int* row                     # ... in this row ...
    cdef int* column                  # ... and this column
    cdef int* row_start               # first entry of each constraint

cdef void factor(double* a, int* pivot, int n) noexcept nogil
cdef void solve(double* a, int* pivot, int n, double* b, int lines) noexcept nogil
cdef void solve_transposed(double* a, int* pivot, int n, double* b) noexcept nogil
cdef void fill(Workspace w, double* values, Py_ssize_t first) noexcept nogil
cdef void prepare(Workspace w, double c) noexcept nogil
cdef void solve_projection(Workspace w, int lines) noexcept nogil
cdef void subtract_past(Workspace w, double[:, :, ::1] tangents, Py_ssize_t row,
                        double[:, ::1] shares, Py_ssize_t step) noexcept nogil
cdef void take_step(Workspace w, double* new, double* old, double c) noexcept nogil
cdef void solve_well_transposed(Workspace w, double* b, double c) noexcept nogil
cdef void apply_transposed_projection(Workspace w, double* b) noexcept nogil
