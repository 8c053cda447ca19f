from libc.math cimport fabs, frexp, ldexp

from tether._core.arrays cimport address
from tether._core.codes cimport OK, SINGULAR
from tether._core.factors cimport Factors, range_of

cdef class SparseLU(Factors):
    cdef public int column            # where the last factorisation failed; -1: it did not
    cdef public long long full, again  # factorisations so far, with new pivots and with the old
    cdef list integers, numbers       # own the memory behind the pointers
    cdef int* start                   # the matrix, column by column ...
    cdef int* row
    cdef int* order                   # ... which are eliminated in this order ...
    cdef int* preferred               # ... each with this row, if it will do
    cdef int* place                   # of each row among the pivots; -1: not yet
    cdef int* l_start                 # L without its diagonal, which is 1
    cdef int* l_row
    cdef double* l_value
    cdef int* u_start                 # U without its diagonal; in the order of the elimination
    cdef int* u_row
    cdef double* u_value
    cdef double* inverse              # of the diagonal of U
    cdef double* scale                # of the rows, before they are eliminated
    cdef public bint strict           # the preferred pivot must not be much smaller than others
    cdef public double growth         # largest entry on the way to the factors ...
    cdef double most_growth           # ... and what it may become with the same pivots
    cdef double* x                    # a column in the making; zero between times
    cdef int* reach                   # rows that it stands in
    cdef int* mark
    cdef int* stack
    cdef int* child
    cdef long long l_room, u_room

cdef object order_by_levels(object pattern)
cdef void scale_rows(SparseLU f, double* values) noexcept nogil
cdef int factor_anew(SparseLU f, double* values) noexcept nogil
cdef int factor_again(SparseLU f, double* values) noexcept nogil
cdef int find_reach(SparseLU f, int column, int k) noexcept nogil
cdef int search_from(SparseLU f, int row, int k, int top) noexcept nogil
cdef int choose_pivot(SparseLU f, int top, int column) noexcept nogil
cdef bint reserve(SparseLU f, long long l_count, long long u_count) noexcept nogil
cdef int* indices(SparseLU f, int which, object array) except? NULL
