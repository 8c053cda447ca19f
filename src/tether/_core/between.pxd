from tether._core.adapters cimport evaluate
from tether._core.codes cimport COLUMNS, ERROR_TEST, OF_Y, OK
from tether._core.linear cimport solve_scaled
from tether._core.state cimport State

cdef double allowed_between(State s, int i) noexcept nogil
cdef double weight_between(State s, int i) noexcept nogil
cdef bint only_between(State s) noexcept nogil
cdef bint measure_round_off(State s) noexcept nogil
cdef int evaluate_beside(State s, double relative, double of_tolerance) noexcept nogil
cdef void note_round_off(State s) noexcept nogil
cdef void measure_again(State s) noexcept nogil
cdef double largest_difference(State s) noexcept nogil
cdef bint passes_jump(State s, double size) noexcept nogil
cdef void note_corrections(State s) noexcept nogil
cdef void follow_projection(State s) noexcept nogil
cdef void determine(State s) noexcept nogil
cdef void begin_after_jump(State s) noexcept nogil
cdef int check_between(State s) noexcept nogil
cdef double next_fraction(State s) noexcept nogil
cdef bint is_due(State s) noexcept nogil
cdef double relative_difference(State s) noexcept nogil
cdef void evaluate_new_polynomial(State s, double delta, double* y, double* yp) noexcept nogil
