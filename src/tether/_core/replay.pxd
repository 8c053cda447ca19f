from tether._core.arrays cimport address, integer_address

cdef void factor(double* a, int* pivot, int n) noexcept nogil
cdef void solve(double* a, int* pivot, int n, double* b) noexcept nogil
cdef void solve_transposed(double* a, int* pivot, int n, double* b) noexcept nogil
