from tether._core.codes cimport OF_Y, OF_YP
from tether._core.linear cimport solve_scaled
from tether._core.norms cimport measure
from tether._core.state cimport State

cdef void keep_residual(State s) noexcept nogil
cdef bint is_suspicious(State s, double damping) noexcept nogil
cdef bint is_between(double x, double low, double high) noexcept nogil
cdef bint stands_out(State s) noexcept nogil
cdef bint stays_behind(State s) noexcept nogil
cdef bint leave_lost(State s, double size) noexcept nogil
cdef bint stays_in_two(State s) noexcept nogil
cdef bint matters(State s, double size, double kept) noexcept nogil
cdef double respond(State s, int i) noexcept nogil
cdef double next_increment(State s) noexcept nogil
cdef bint leaves_something(State s) noexcept nogil
cdef bint something_is_missing(State s, double* change) noexcept nogil
cdef void note_changes(State s) noexcept nogil
cdef bint last_step_tells(State s) noexcept nogil
cdef bint leave_plain(State s) noexcept nogil
cdef bint is_news(State s) noexcept nogil
cdef void doubt(State s) noexcept nogil
cdef void confirm(State s) noexcept nogil
cdef void forget_alarms(State s) noexcept nogil
