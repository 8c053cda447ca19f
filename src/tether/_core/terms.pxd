from tether._core.estimates cimport propagate
from tether._core.norms cimport weighted_norm
from tether._core.state cimport State

cdef void set_terms(State s) noexcept nogil
cdef void filter_terms(State s, int lowest) noexcept nogil
cdef void add_difference(State s, int j, double factor) noexcept nogil
