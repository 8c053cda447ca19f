from tether._core.between cimport weight_between
from tether._core.codes cimport OF_Y, OF_YP
from tether._core.linear cimport solve_scaled
from tether._core.norms cimport weighted_norm
from tether._core.state cimport State

cdef bint filters(State s) noexcept nogil
cdef void apply_estimate(State s) noexcept nogil
cdef void raise_error(State s, double error) noexcept nogil
cdef void replace_error(State s) noexcept nogil
cdef void set_test_weights(State s) noexcept nogil
cdef bint is_untestable(State s) noexcept nogil
cdef bint round_off_dominates(State s) noexcept nogil
cdef bint is_lost_in_round_off(State s) noexcept nogil
cdef void note_reactions(State s) noexcept nogil
cdef void note_untested(State s) noexcept nogil
cdef void set_weights_of_determined(State s, double iteration) noexcept nogil
cdef void find_noise(State s) noexcept nogil
cdef void find_own_noise(State s) noexcept nogil
cdef void find_noise_of_kind(State s, int v, double h) noexcept nogil
cdef double change_of_step(State s) noexcept nogil
cdef void filter_error(State s) noexcept nogil
cdef void propagate(State s, double* d) noexcept nogil
cdef double interpolation_error(State s) noexcept nogil
