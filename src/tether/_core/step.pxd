from tether._core.between cimport (begin_after_jump, follow_projection, check_between,
                                   note_corrections)
from tether._core.branches cimport on_new_branch
from tether._core.codes cimport (BLOCK, EVENT_FOUND, OK, PAUSED, REACHED_END, STORE_FULL,
                                 COMPARISON_DUE, TOO_ACCURATE, NO_EVENT_VALUE, USER_EXCEPTION)
from tether._core.coefficients cimport set_coefficients
from tether._core.controller cimport fit_to_end, next_step, recover
from tether._core.error cimport test_error
from tether._core.estimates cimport (is_lost_in_round_off, is_untestable, note_reactions,
                                     note_untested, set_test_weights)
from tether._core.events cimport one_happened, try_events
from tether._core.newton cimport correct
from tether._core.norms cimport set_weights
from tether._core.order cimport lower_order, next_order
from tether._core.predict cimport predict
from tether._core.project cimport project
from tether._core.ring cimport remember
from tether._core.state cimport State
from tether._core.store cimport store
from tether._core.surfaces cimport passed_surface

cdef int step(State s) noexcept nogil
cdef int project_all(State s) noexcept nogil
cdef void complete(State s) noexcept nogil
cdef void move_on(State s, int first, int last) noexcept nogil
cdef int run(State s, long long count) noexcept nogil
