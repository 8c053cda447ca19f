from libc.string cimport memcpy

from tether._core.adapters cimport evaluate
from tether._core.arrays cimport address
from tether._core.begin cimport begin_at
from tether._core.codes cimport AS_GIVEN, EVENT_FOUND, MAX_NORM, OF_YP, OK, PAUSED, REACHED_END
from tether._core.consistent cimport ConsistentSearch, begin_search, find_consistent
from tether._core.constraints cimport evaluate_constraints
from tether._core.dense cimport Dense
from tether._core.event_log cimport (
    HAS_NO_ROOM, IS_UNCLEAR, STOPS, EventLog, arm_events, begin_log, forget_member, serve_events,
)
from tether._core.linear cimport solve_scaled
from tether._core.machine cimport Machine, take_args, take_last_args, values_at, write_static
from tether._core.native cimport (
    Native, take_last_native_args, take_native_args, write_native_static,
)
from tether._core.norms cimport set_weights, weighted_norm
from tether._core.project cimport move_onto
from tether._core.state cimport State
from tether._core.step cimport run
from tether._core.store cimport store_outputs
from tether._core.surfaces cimport passed_surface

cdef enum:
    NOT_YET_CODE = 0
    DONE_CODE = 1
    AT_THE_START_CODE = 2
    ON_THE_WAY_CODE = 3
    DOUBTFUL_CODE = 4
    WITHOUT_END_CODE = 5
    STOPPED_CODE = 6
    NO_ROOM_CODE = 7

cdef class Lane:
    cdef State s
    cdef ConsistentSearch c
    cdef object runner
    cdef EventLog log
    cdef bint in_c
    cdef int n_user, first_invariant
    cdef double t0, first_step
    cdef long long most_steps
    cdef bint is_reduced, must_hold, slopes_given, between
    cdef object heights, sizes        # see the parameters of Lane
    cdef int n_surfaces
    cdef bint has_conditions
    cdef long long n_times
    cdef object times, outputs, own, kept, where, fields
    cdef double* y_start
    cdef double* yp_start
    cdef double* change
    cdef double* guessed              # nonzero: may be replaced without notice
    cdef double* wanted               # nonzero: wanted between the steps
    cdef double* g_before
    cdef double* pairs
    cdef double* shifts
    cdef int n_kept
    cdef long long* places            # for every array: its address, that of its copy, its size
    cdef long long fields_size
    cdef unsigned char* fields_kept

cdef int run_member(Lane lane, State s, long long member, double* inputs, double* y0, double* yp0,
                    char* stop, char* moved) noexcept nogil
cdef int run_on(Lane lane, State s, long long member, char* stop) noexcept nogil
cdef void restore(Lane lane, State s) noexcept nogil
cdef void take_inputs(Lane lane, State s, double* inputs) noexcept nogil
cdef int take_piece_args(void* piece, double* inputs) noexcept nogil
cdef bint freeze(Lane lane, State s) noexcept nogil
cdef void freeze_piece(void* piece, double* shifts, int count) noexcept nogil
cdef bint begin_member(Lane lane, State s, double* y0, double* yp0, char* moved) noexcept nogil
cdef bint go_onto_constraints(Lane lane, State s) noexcept nogil
cdef bint moves_what_evolves(Lane lane, State s) noexcept nogil
cdef bint move_to_start(Lane lane, State s) noexcept nogil
cdef bint signs_are_kept(Lane lane, State s, double* y0) noexcept nogil
cdef void want_between(Lane lane, State s) noexcept nogil
cdef double choose_first_step(Lane lane, State s) noexcept nogil
cdef bint is_beyond_doubt(Lane lane, State s) noexcept nogil
cdef void hand_over(Lane lane, State s, bint is_cut, double* y_end, double* yp_end, double* t_end,
                    double* y, double* yp, long long* counts) noexcept nogil
