from tether._core.codes cimport H211B, MAX_ORDER
from tether._core.state cimport State
from tether._core.terms cimport filter_terms

cdef int lower_order(State s) noexcept nogil
cdef bint decreasing(State s) noexcept nogil
cdef bint is_quiet(State s) noexcept nogil
cdef int next_order(State s) noexcept nogil
cdef bint gains_nothing(State s) noexcept nogil
cdef double possible_growth(State s, int q) noexcept nogil
cdef bint may_mislead(State s) noexcept nogil
cdef int best_neighbour(State s) noexcept nogil
