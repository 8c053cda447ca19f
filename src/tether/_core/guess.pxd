from tether._core.linear cimport solve_scaled
from tether._core.norms cimport all_finite, weighted_norm
from tether._core.state cimport State, open_block, take

cdef int use_guesses(State s) except -1
cdef void keep_point(State s) noexcept nogil
cdef void begin_at_guess(State s) noexcept nogil
cdef void compare_guesses(State s) noexcept nogil
cdef double miss(State s) noexcept nogil
cdef void find_guess(State s, int extra) noexcept nogil
cdef void extrapolate(State s, int m) noexcept nogil
cdef double share_of(State s, int j, int m) noexcept nogil
