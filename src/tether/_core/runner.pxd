from tether._core.arrays cimport integer_address
from tether._core.state cimport State

ctypedef void (*constraint_t)(double, double*, double*, void*) noexcept nogil

cdef object addresses_of(constraint_t function, constraint_t jacobian, object runner)
cdef int* keep(list arrays, object array) except? NULL
