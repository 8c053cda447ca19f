from tether._core.codes cimport ERROR_TEST, OK, RING_COLUMNS
from tether._core.estimates cimport filters
from tether._core.state cimport State

cdef void remember(State s, int outcome) noexcept nogil
cdef int worst_component(State s) noexcept nogil
