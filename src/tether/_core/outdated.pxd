from tether._core.codes cimport MOST_EFFECTS, OF_Y
from tether._core.linear cimport solve_scaled
from tether._core.norms cimport measure
from tether._core.state cimport State

cdef void keep_residual(State s) noexcept nogil
cdef bint is_suspicious(State s, double damping) noexcept nogil
cdef bint is_between(double x, double low, double high) noexcept nogil
cdef bint keep_significant(State s) noexcept nogil
cdef bint error_persists(State s) noexcept nogil
cdef bint keep_most_lost(State s, double size) noexcept nogil
cdef bint persists_in_two(State s) noexcept nogil
cdef bint matters(State s, double size, double kept) noexcept nogil
cdef bint share_is_small(State s) noexcept nogil
cdef void find_effects(State s, int j) noexcept nogil
cdef void find_pair(State s, int i, int j) noexcept nogil
cdef double set_response(State s, int i) noexcept nogil
cdef double next_increment(State s) noexcept nogil
cdef bint set_remainders(State s) noexcept nogil
cdef bint find_suspects(State s, double cj_change) noexcept nogil
cdef void note_changes(State s) noexcept nogil
cdef bint step_shows_outdated(State s) noexcept nogil
cdef bint keep_uncancelled(State s) noexcept nogil
cdef bint any_alarm_counts(State s) noexcept nogil
cdef void ignore_for_longer(State s) noexcept nogil
cdef void confirm(State s) noexcept nogil
cdef void forget_alarms(State s) noexcept nogil
