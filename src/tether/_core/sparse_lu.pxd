from libc.math cimport fabs, frexp, ldexp

from tether._core.arrays cimport address
from tether._core.codes cimport OK, SINGULAR
from tether._core.factors cimport Factors, range_of

cdef class SparseLU(Factors):
    cdef public int column            # where the last factorisation failed, or -1
    cdef public long long full, again  # factorisations so far, with new pivots and with old ones
    cdef list integers, numbers       # own the memory behind the pointers
    cdef int* start                   # the matrix, column by column ...
    cdef int* row
    cdef int* order                   # ... which are eliminated in this order ...
    cdef int* preferred               # ... each with this row if its entry is large enough
    cdef int* place                   # position of each row among the pivots; -1: not yet known
    cdef int* l_start                 # L without its diagonal, which is 1
    cdef int* l_row
    cdef double* l_value
    cdef int* u_start                 # U without its diagonal; columns in the order of elimination
    cdef int* u_row
    cdef double* u_value
    cdef double* inverse              # reciprocals of the diagonal of U
    cdef double* scale                # of the rows, before elimination
    cdef public bint strict           # the preferred pivot must not be much smaller than others
    cdef public double growth         # largest entry during elimination ...
    cdef double most_growth           # ... and its limit with the same pivots
    cdef double* x                    # the column being computed; otherwise zero
    cdef int* reach                   # its rows
    cdef int* mark
    cdef int* stack
    cdef int* child
    cdef long long l_room, u_room

cdef object order_by_levels(object pattern)
cdef void scale_rows(SparseLU f, double* values) noexcept nogil
cdef int factor_with_new_pivots(SparseLU f, double* values) noexcept nogil
cdef int refactor(SparseLU f, double* values) noexcept nogil
cdef int find_reach(SparseLU f, int column, int k) noexcept nogil
cdef int search_from(SparseLU f, int row, int k, int top) noexcept nogil
cdef int choose_pivot(SparseLU f, int top, int column) noexcept nogil
cdef bint reserve(SparseLU f, long long l_count, long long u_count) noexcept nogil
cdef int* indices(SparseLU f, int which, object array) except? NULL
