from tether._core.machine cimport Machine, values_at
from tether._core.rows cimport Rows, row_values
from tether._core.state cimport State, doubles

cdef bint passed_surface(State s) noexcept nogil
