from tether._core.machine cimport Machine, values_at
from tether._core.state cimport State, doubles, long_integers

cdef bint on_new_branch(State s) noexcept nogil
