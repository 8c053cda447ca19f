from tether._core.adapters cimport evaluate
from tether._core.codes cimport BLOCK, NO_CONVERGENCE, NON_FINITE, OK, UNSCALED, USER_EXCEPTION
from tether._core.guess cimport begin_at_guess, compare_guesses, keep_point
from tether._core.linear cimport assemble_and_factor, solve_scaled
from tether._core.norms cimport measure
from tether._core.outdated cimport (
    confirm,
    is_suspicious,
    keep_residual,
    step_shows_outdated,
    keep_most_lost,
    note_changes,
    error_persists,
)
from tether._core.predict cimport start_from_prediction
from tether._core.state cimport State

cdef int correct(State s) noexcept nogil
cdef int correct_with_factors(State s) noexcept nogil
cdef bint may_guess(State s) noexcept nogil
cdef int correct_guess(State s) noexcept nogil
cdef void note_success(State s, int status) noexcept nogil
cdef void note_saving(State s, long long taken) noexcept nogil
cdef long long saved_by_guess(State s, long long taken) noexcept nogil
cdef int correct_with_new_jacobian(State s, int status) noexcept nogil
cdef bint is_old(State s) noexcept nogil
cdef int set_up(State s, bint fresh) noexcept nogil
cdef int iterate(State s) noexcept nogil
cdef bint needs_factor(State s) noexcept nogil
cdef bint is_spent(State s, double size) noexcept nogil
cdef bint is_enough(State s, double error) noexcept nogil
cdef bint is_close(State s, double size) noexcept nogil
cdef bint checks_matrix(State s) noexcept nogil
cdef bint judges_matrix(State s) noexcept nogil
cdef void keep_increment(State s) noexcept nogil
cdef double seen_rate(State s) noexcept nogil
cdef bint changes_sign(State s) noexcept nogil
cdef double find_increment(State s, double damping) noexcept nogil
cdef void take_increment(State s, double length) noexcept nogil
cdef void move_some(State s, double length, int first, int last) noexcept nogil
cdef bint stagnated(State s, double size) noexcept nogil
cdef int failure_of_solution(State s) noexcept nogil
cdef int correct_damped(State s) noexcept nogil
cdef double damped_length(State s, double size) noexcept nogil
