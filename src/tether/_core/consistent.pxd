from tether._core.adapters cimport evaluate
from tether._core.arrays cimport address, doubles_of, integer_address
from tether._core.codes cimport (
    AS_GIVEN, ITERATION, MAX_NORM, NO_CONVERGENCE, NON_FINITE, OF_Y, OF_YP, OK, SINGULAR,
    USER_EXCEPTION,
)
from tether._core.jacobian cimport largest
from tether._core.norms cimport all_finite, set_weights, weighted_norm
from tether._core.state cimport State

cdef class ConsistentSearch:
    cdef State s
    cdef public object arrays
    cdef int n
    cdef double t, scale
    cdef public double before, after
    cdef bint with_basis
    cdef bint fresh                   # the state's Jacobian belongs to the present values
    cdef readonly bint moved          # the values are no longer the given ones
    cdef double* y
    cdef double* yp
    cdef double* ypp
    cdef double* r
    cdef double* dy
    cdef double* dyp
    cdef double* y_tried
    cdef double* yp_tried
    cdef double* x
    cdef double* rows
    cdef double* columns
    cdef int* basis_start             # R and N, column by column
    cdef int* basis_row
    cdef double* basis
    cdef int* dual_start
    cdef int* dual_row
    cdef double* dual
    cdef int* algebraic

cdef void begin_search(ConsistentSearch c, double* y, double* yp) noexcept nogil
cdef int find_consistent(ConsistentSearch c, State s, bint slopes_given) noexcept nogil
cdef int split(ConsistentSearch c, State s) noexcept nogil
cdef bint renew_jacobian(ConsistentSearch c, State s) noexcept nogil
cdef void mark_algebraic(ConsistentSearch c, State s) noexcept nogil
cdef double equilibrate(ConsistentSearch c, State s) noexcept nogil
cdef double unit_of(ConsistentSearch c, State s, int j) noexcept nogil
cdef double largest_response(ConsistentSearch c, State s) noexcept nogil
cdef void solve_split(ConsistentSearch c, State s) noexcept nogil
cdef void expand(ConsistentSearch c, double* v) noexcept nogil
cdef bint take_damped(ConsistentSearch c, State s) noexcept nogil
cdef bint is_negligible(ConsistentSearch c, State s) noexcept nogil
cdef bint is_small(ConsistentSearch c, State s) noexcept nogil
cdef void find_slopes(ConsistentSearch c, State s) noexcept nogil
cdef void forget_algebraic_slopes(ConsistentSearch c) noexcept nogil
