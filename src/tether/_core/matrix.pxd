from libc.math cimport fabs

from tether._core.codes cimport SINGULAR

cdef class Matrix:
    cdef public int n
    cdef public long long room
    cdef public dict arrays
    cdef public bint has_no_entries   # products are those at the point noted last
    cdef public bint failed
    cdef public object error
    cdef double* fy
    cdef double* fyp
    cdef double* made                 # the iteration matrix before it is factored
    cdef signed char* changing        # 1: an entry of F_y that changes
    cdef object changing_owner
    cdef public bint changes          # whether there is such an entry
    cdef bint all_change              # whether all do, as far as is known
    cdef double put_column(self, int which, int j, int* rows, double* values,
                           int count) noexcept nogil
    cdef void put_entries(self, int which, int j, int* rows, double* values,
                          int count) noexcept nogil
    cdef int column(self, int which, int j, int* rows, double* values) noexcept nogil
    cdef void add_product(self, int which, double* x, double* out) noexcept nogil
    cdef void add_linear(self, double* y, double* yp, double* out) noexcept nogil
    cdef void add_sizes(self, int which, double* x, double* out) noexcept nogil
    cdef void largest_in_rows(self, int which, double* x, double* out) noexcept nogil
    cdef double largest_in_column(self, int which, int j, double* rows) noexcept nogil
    cdef void forget_changes(self) noexcept nogil
    cdef void keep_jacobian(self) noexcept nogil
    cdef void note_changes(self, bint first, double* size, double* noise) noexcept nogil
    cdef void set_changes(self, double* x, double share, double* remainder,
                          double* product) noexcept nogil
    cdef double changing_in_row(self, int i, double* x) noexcept nogil
    cdef double size_of_row(self, int i, double* y, double* yp, double missing) noexcept nogil
    cdef int rows_of(self, int pattern, int j, int* rows) noexcept nogil
    cdef void set_rows(self, int pattern, int j, int* rows, int count) noexcept nogil
    cdef bint mark_rows(self, int pattern, int j, int* rows, int count) noexcept nogil
    cdef bint meets(self, int pattern, int j, double* marks) noexcept nogil
    cdef bint take_difference(self, int which, int pattern, int j, double* moved,
                              double* unmoved, double delta, double share, int* rows,
                              double* values) noexcept nogil
    cdef void assemble(self, double c) noexcept nogil
    cdef void scale(self, int mode, double c, double* rows, double* columns) noexcept nogil
    cdef void assemble_split(self, int* of_y, int* start, int* row,
                             double* basis) noexcept nogil
    cdef double divide(self, double* rows, double* columns) noexcept nogil
    cdef void weigh(self, double* weight) noexcept nogil
    cdef int factor(self) noexcept nogil
    cdef void solve(self, double* b) noexcept nogil
    cdef void solve_well(self, double* b) noexcept nogil
    cdef double pivot_ratio(self) noexcept nogil

cdef bint has_changed(double new, double old, double size, double noise) noexcept nogil
