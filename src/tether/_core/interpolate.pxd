from tether._core.codes cimport COLUMNS
from tether._core.state cimport State

cdef void evaluate_polynomial(int n, int k, double* psi, double* phi, double delta,
                              double* y, double* yp) noexcept nogil
cdef void interpolate(State s, double t, double* y, double* yp) noexcept nogil
cdef void difference_table(double* t, double* y, long long row, int n, int k,
                           double* psi, double* phi) noexcept nogil
