"""A lane: memory in which members of an ensemble run, one after another, without Python.

Every member begins with the memory as it was when the lane was made. A lane does what a separate
run would do, in the same order and with the same verbs, so that it takes the same steps to the same
bits; a member that needs anything more is left to such a run. The order is that of
`tether.run.integration` (start), `tether.run.drive` (run) and `tether.explain.doubts` (end).
"""

import cython
import numpy as np
from cython.cimports.libc.math import fabs, isfinite, sqrt

from tether._core.surfaces import watch_surfaces

AVAILABLE = cython.compiled            # the interpreted core cannot copy its memory

# What became of a member; for anything but DONE or STOPPED it needs a separate run.
NOT_YET, DONE, AT_THE_START, ON_THE_WAY, DOUBTFUL, WITHOUT_END = 0, 1, 2, 3, 4, 5
# Ended by an event, which is a success as well.
STOPPED = 6
# Counts for each member, one column each.
COUNTS = (
    "steps", "nfev", "njev", "nlu", "iterations", "error_test_failures", "convergence_failures",
    "projections",
)
BATCH_STEPS = cython.declare(cython.longlong, 1000)    # steps between looks at `stop`
# `tether.start`: residuals that a projected start may have left, and changes that count as none.
RESIDUAL_SHARE = cython.declare(cython.double, 1e-3)
RESIDUAL_ROUND_OFF = cython.declare(cython.double, 1e-10)
NO_CHANGE = cython.declare(cython.double, 1e-6)
SHARE_OF_SPAN = cython.declare(cython.double, 1e-3)
TARGET = cython.declare(cython.double, 0.25)
# `tether.run.switching`: heights below this many units of round-off count as zero.
ROUND_OFF = cython.declare(cython.double, 64.0)
EPS = cython.declare(cython.double, 2.0**-52)
INFINITY = cython.declare(cython.double, float("inf"))
# `tether.explain.doubts`.
LARGEST_CHANGE = cython.declare(cython.double, 100.0)
LARGEST_DRIFT = cython.declare(cython.double, 100.0)
ATTEMPTS_AT_ORDER_1 = cython.declare(cython.longlong, 4 * 64)


class Lane:
    """The memory of one thread.

    Parameters
    ----------
    s : State
        Ready for a run, before its start; belongs to this lane alone.
    runner : Machine or Native
        Runs the equations.
    search : ConsistentSearch
        Finds consistent values in this state.
    n_user : int
        Number of the user's unknowns.
    t0 : float
        Where every member begins.
    times : ndarray
        Output times.
    first_step : float
        Zero lets the lane choose it.
    most_steps : int
        Members that take more steps are left to a separate run.
    first_invariant : int
        First row of the constraints that keep their starting values.
    determined : ndarray of bool
        Unknowns whose starting values may be replaced without notice.
    wanted : ndarray of bool
        Unknowns that are wanted between the steps.
    is_reduced, must_hold, slopes_given : bool
        Whether the equations were reduced, whether they imply all constraints, and whether y' is
        given at the start.
    heights, sizes : Machine, optional
        Heights above the surfaces where conditions of the equations change, and the quantities that
        heights are differences of; the last inputs of the equations freeze the conditions.
    stops_after : ndarray, optional
        For each event that the state watches: how many times it happens before it ends a run.
    """

    def __init__(
        self, s, runner, search, n_user, t0, times, first_step, most_steps, first_invariant,
        determined, wanted, is_reduced, must_hold, slopes_given, heights=None, sizes=None,
        stops_after=None,
    ):
        self.s, self.c, self.runner = s, search, runner
        self.in_c = isinstance(runner, Native)
        self.n_user, self.t0 = n_user, t0
        self.first_step, self.most_steps = first_step, most_steps
        self.first_invariant, self.is_reduced = first_invariant, is_reduced
        self.must_hold, self.slopes_given = must_hold, slopes_given
        self.heights, self.sizes = heights, sizes
        self.n_surfaces = 0
        if heights is not None:
            self.n_surfaces = heights.n_values
            watch_surfaces(s, heights, np.zeros(self.n_surfaces), np.zeros(self.n_surfaces))
        self.has_conditions = s.n_conditions > 0
        self.log = None if stops_after is None else EventLog(s, t0, stops_after)
        self.n_times = len(times)
        self.times = np.array(times, float)
        self.outputs = np.zeros((2, max(1, self.n_times * s.n)))
        if self.n_times:
            s.evaluate_at(self.times, self.outputs[0], self.outputs[1])
        n: cython.int = s.n
        self.own = np.zeros(5 * s.n + s.n_constraints + 3 * self.n_surfaces)
        self.own[3 * s.n : 3 * s.n + n_user] = determined
        self.own[4 * s.n : 4 * s.n + n_user] = wanted
        self.between = np.any(wanted)
        self.y_start = address(self.own)
        self.yp_start = self.y_start + n
        self.change = self.yp_start + n
        self.guessed = self.change + n
        self.wanted = self.guessed + n
        self.g_before = self.wanted + n
        self.pairs = self.g_before + self.s.n_constraints
        self.shifts = self.pairs + 2 * self.n_surfaces
        self.keep_memory()

    def keep_memory(self):
        """Copy everything that a run changes."""
        arrays = {}
        for name, value in self.s.arrays.items():
            if not name.startswith("eval_"):   # output, written before it is read
                array = value[0] if type(value) is tuple else value
                arrays[id(array)] = array
        matrix = cython.cast(Dense, self.s.matrix)
        for array in (matrix.pivots, *matrix.factor_lists):
            arrays[id(array)] = array
        self.kept = [(array, array.copy()) for array in arrays.values() if array.size]
        self.n_kept = len(self.kept)
        self.where = np.array(
            [[old.ctypes.data, new.ctypes.data, old.nbytes] for old, new in self.kept], np.int64
        )
        place: cython.longlong[:, ::1] = self.where
        self.places = cython.address(place[0, 0])
        # all fields of a State lie between these two; objects among them are not replaced in a run
        first: cython.longlong = cython.cast(cython.longlong, cython.address(self.s.n))
        last: cython.longlong = cython.cast(cython.longlong, cython.address(self.s.taken))
        self.fields_size = last - first
        self.fields = np.zeros(self.fields_size, np.uint8)
        field: cython.uchar[::1] = self.fields
        self.fields_kept = cython.address(field[0])
        memcpy(self.fields_kept, cython.address(self.s.n), self.fields_size)

    def run_members(
        self, inputs, y0, yp0, y_end, yp_end, y, yp, t_end, counts, drift, moved, outcome, stop
    ):
        """Run members until `stop` is set; rows of the arrays belong to members.

        Return their events as rows of `tether._core.event_log`.

        Parameters
        ----------
        inputs : ndarray
            Inputs of the equations, then those of the constraints, piece by piece.
        y0, yp0 : ndarray
            Starting values; slopes are ignored unless they are given.
        y_end, yp_end, t_end : ndarray
            Receive the last values and their time.
        y, yp : ndarray
            Receive the values at the output times.
        counts, drift, moved : ndarray
            Receive the work, the largest residual of a constraint, and whether y0 was changed by
            more than its tolerance.
        outcome : ndarray of int8
            Receives the outcome of each; only members that are NOT_YET are run.
        stop : ndarray of int8
            Set by the caller, from another thread.
        """
        members: cython.longlong = len(outcome)
        i: cython.longlong
        width: cython.longlong = inputs.shape[1]
        n: cython.longlong = self.n_user
        inputs_view: cython.double[:, ::1] = inputs if width else np.zeros((1, 1))
        y0_view: cython.double[:, ::1] = y0
        yp0_view: cython.double[:, ::1] = yp0
        y_end_view: cython.double[:, ::1] = y_end
        yp_end_view: cython.double[:, ::1] = yp_end
        values: cython.double[::1] = y.reshape(-1) if y.size else np.zeros(1)
        slopes: cython.double[::1] = yp.reshape(-1) if yp.size else np.zeros(1)
        t_view: cython.double[::1] = t_end
        counts_view: cython.longlong[:, ::1] = counts
        drift_view: cython.double[::1] = drift
        moved_view: cython.char[::1] = moved
        outcome_view: cython.char[::1] = outcome
        stop_view: cython.char[::1] = stop
        stop_at: cython.p_char = cython.address(stop_view[0])
        y0_step: cython.longlong = 1 if y0.shape[0] > 1 else 0
        yp0_step: cython.longlong = 1 if yp0.shape[0] > 1 else 0
        size: cython.longlong = self.n_times * n
        following: cython.longlong = 0
        while following < members:
            with cython.nogil:
                for i in range(following, members):
                    following = i + 1
                    if stop_at[0] != 0:
                        following = members
                        break
                    if outcome_view[i] != 0:
                        continue
                    outcome_view[i] = run_member(
                        self, self.s, i, cython.address(inputs_view[i if width else 0, 0]),
                        cython.address(y0_view[i * y0_step, 0]),
                        cython.address(yp0_view[i * yp0_step, 0]),
                        stop_at, cython.address(moved_view[i]),
                    )
                    if outcome_view[i] == NO_ROOM_CODE:
                        outcome_view[i] = NOT_YET_CODE
                        following = i          # again, with more room
                        break
                    if outcome_view[i] != DONE_CODE and outcome_view[i] != STOPPED_CODE:
                        continue
                    hand_over(
                        self, self.s, outcome_view[i] == STOPPED_CODE,
                        cython.address(y_end_view[i, 0]), cython.address(yp_end_view[i, 0]),
                        cython.address(t_view[i]),
                        cython.address(values[i * size if size else 0]),
                        cython.address(slopes[i * size if size else 0]),
                        cython.address(counts_view[i, 0]),
                    )
                    drift_view[i] = self.s.worst_drift
            if following < members:
                self.log.make_room()
        return None if self.log is None else self.log.take_all()


def run_member(lane, s, member, inputs, y0, yp0, stop, moved):
    """Run one member from start to end, and record its events."""
    outcome: cython.int
    restore(lane, s)
    take_inputs(lane, s, inputs)
    moved[0] = 0
    outcome = AT_THE_START_CODE
    if begin_member(lane, s, y0, yp0, moved):
        outcome = run_on(lane, s, member, stop)
    if s.n_events > 0 and outcome != DONE_CODE and outcome != STOPPED_CODE:
        forget_member(lane.log)
    return outcome


def run_on(lane, s, member, stop):
    """Run a member from its start to its end."""
    status: cython.int = PAUSED
    if lane.n_times > 0:
        store_outputs(s, lane.t0)
    if s.n_events > 0 and not arm_events(s):
        return AT_THE_START_CODE
    while status == PAUSED and s.steps < lane.most_steps:
        if stop[0] != 0:
            return NOT_YET_CODE
        status = run(s, min(lane.most_steps - s.steps, BATCH_STEPS))
        if status == EVENT_FOUND:
            if s.n_surfaces > 0 and passed_surface(s):
                return ON_THE_WAY_CODE
            status = serve_events(lane.log, s, member)
            if status == HAS_NO_ROOM:
                return NO_ROOM_CODE
            if status == IS_UNCLEAR:
                return ON_THE_WAY_CODE
            if status == STOPS:
                return STOPPED_CODE if is_beyond_doubt(lane, s) else DOUBTFUL_CODE
            status = REACHED_END if s.t == s.t_end else PAUSED
    if status == PAUSED:
        return WITHOUT_END_CODE
    if status != REACHED_END:
        return ON_THE_WAY_CODE
    return DONE_CODE if is_beyond_doubt(lane, s) else DOUBTFUL_CODE


def restore(lane, s):
    """Restore the memory to what it was when the lane was made."""
    k: cython.int
    for k in range(lane.n_kept):
        memcpy(
            cython.cast(cython.p_void, lane.places[3 * k]),
            cython.cast(cython.p_void, lane.places[3 * k + 1]), lane.places[3 * k + 2],
        )
    memcpy(cython.address(s.n), lane.fields_kept, lane.fields_size)


def take_inputs(lane, s, inputs):
    """Give the programs of equations and constraints the inputs of a member."""
    piece: cython.int
    if lane.in_c:
        take_native_args(cython.cast(Native, lane.runner), inputs)
        write_native_static(cython.cast(Native, lane.runner), s.matrix.fy, s.matrix.fyp)
        inputs += cython.cast(Native, lane.runner).n_args
    else:
        take_args(cython.cast(Machine, lane.runner), inputs)
        write_static(cython.cast(Machine, lane.runner), s.matrix.fy, s.matrix.fyp)
        inputs += cython.cast(Machine, lane.runner).n_args
    for piece in range(s.n_pieces):
        inputs += take_piece_args(cython.cast(cython.p_void, s.piece_data[piece]), inputs)
    if lane.n_surfaces > 0:
        take_args(cython.cast(Machine, lane.heights), inputs)
        inputs += cython.cast(Machine, lane.heights).n_args
        take_args(cython.cast(Machine, lane.sizes), inputs)
        inputs += cython.cast(Machine, lane.sizes).n_args
    if lane.has_conditions:
        take_args(cython.cast(Machine, s.conditions_adapter), inputs)
        inputs += cython.cast(Machine, s.conditions_adapter).n_args
    if s.n_events > 0:
        begin_log(lane.log, s, inputs)


def take_piece_args(piece, inputs):
    """Give the program of a constraint its inputs; return how many there are."""
    take_args(cython.cast(Machine, piece), inputs)
    return cython.cast(Machine, piece).n_args


def freeze(lane, s):
    """Freeze conditions as they are at the start; False if it lies on a surface."""
    k: cython.int
    count: cython.int = lane.n_surfaces
    band: cython.double
    values_at(cython.cast(Machine, lane.sizes), lane.t0, lane.y_start, lane.yp_start, lane.pairs)
    values_at(
        cython.cast(Machine, lane.heights), lane.t0, lane.y_start, lane.yp_start, s.heights
    )
    for k in range(count):
        band = ROUND_OFF * EPS * (fabs(lane.pairs[2 * k]) + fabs(lane.pairs[2 * k + 1]))
        if not fabs(s.heights[k]) > band:
            return False
        s.bands[k] = band
        s.sides[k] = 1.0 if s.heights[k] > 0.0 else -1.0
        lane.shifts[k] = -INFINITY if s.heights[k] > 0.0 else INFINITY
        s.heights[k] = 0.0
    if lane.in_c:
        take_last_native_args(cython.cast(Native, lane.runner), lane.shifts, count)
    else:
        take_last_args(cython.cast(Machine, lane.runner), lane.shifts, count)
    if lane.is_reduced and s.n_pieces > 0:     # the equations' own come first
        freeze_piece(cython.cast(cython.p_void, s.piece_data[0]), lane.shifts, count)
    s.jacobian_exists = False                  # it was found with free conditions
    s.cj_factored = 0.0
    return True


def freeze_piece(piece, shifts, count):
    """Give the program of a constraint the inputs that freeze conditions."""
    take_last_args(cython.cast(Machine, piece), shifts, count)


def begin_member(lane, s, y0, yp0, moved):
    """Find consistent values and begin there; tell whether nothing unusual was needed."""
    n: cython.int = s.n
    i: cython.int
    h: cython.double
    code: cython.int
    known: cython.bint = lane.slopes_given
    for i in range(n):
        if not isfinite(y0[i]) or (known and not isfinite(yp0[i])):
            return False
        lane.y_start[i] = y0[i]
        lane.yp_start[i] = yp0[i] if known else 0.0
    if s.n_constraints > 0 and not go_onto_constraints(lane, s):
        return False
    begin_search(lane.c, lane.y_start, lane.yp_start)
    code = find_consistent(lane.c, s, known)
    if code == OK:
        if moves_what_evolves(lane, s):
            return False
        for i in range(n):
            lane.y_start[i] = lane.c.y[i]
            lane.yp_start[i] = lane.c.yp[i]
    elif code != AS_GIVEN:
        return False
    if lane.n_surfaces > 0 and not freeze(lane, s):
        return False
    if lane.is_reduced and not move_to_start(lane, s):
        return False
    if not signs_are_kept(lane, s, y0):
        return False
    if lane.between:
        want_between(lane, s)
    h = lane.first_step if lane.first_step > 0.0 else choose_first_step(lane, s)
    if begin_at(s, lane.t0, lane.y_start, lane.yp_start, h) != OK:
        return False
    if lane.must_hold:
        s.must_hold = True
        s.rank_floor = s.rank
    for i in range(lane.n_user):
        if lane.guessed[i] == 0.0 and fabs(lane.y_start[i] - y0[i]) * s.weight[i] > 1.0:
            moved[0] = 1
    return True


def go_onto_constraints(lane, s):
    """Project the starting values; tell if that worked and moved them within the tolerance."""
    n: cython.int = s.n
    m: cython.int = s.n_constraints
    i: cython.int
    j: cython.int
    round_off: cython.double
    if lane.first_invariant < m:
        if evaluate_constraints(s, lane.t0, lane.y_start) != OK:
            return False
        for i in range(lane.first_invariant, m):
            s.g_reference[i] = s.g[i]
    s.t = lane.t0
    for i in range(n):
        s.y[i] = s.phi[i] = lane.y_start[i]
        s.yp[i] = 0.0
    if set_weights(s) != OK or evaluate_constraints(s, lane.t0, s.y) != OK:
        return False
    for i in range(m):
        lane.g_before[i] = s.g[i]
    s.t_new = lane.t0
    if move_onto(s, 1e300) != OK:
        return False
    s.t_new = 0.0
    for i in range(n):
        lane.change[i] = s.y[i] - lane.y_start[i]
        lane.y_start[i] = s.y[i]
        s.correction[i] = 0.0
    if evaluate_constraints(s, lane.t0, lane.y_start) != OK:
        return False
    for i in range(m):
        round_off = 0.0
        for j in range(n):
            round_off += fabs(s.gy[i * n + j]) * (fabs(lane.y_start[j]) + s.tolerance[j])
        if not fabs(s.g[i]) <= max(
            RESIDUAL_SHARE * fabs(lane.g_before[i]), RESIDUAL_ROUND_OFF * round_off
        ):
            return False
        s.g[i] = 0.0
    return weighted_norm(s, lane.change, s.weight, MAX_NORM) <= 1.0


def moves_what_evolves(lane, s):
    """Tell whether the search moved an unknown with a slope by more than its tolerance."""
    j: cython.int
    for j in range(s.n):
        if fabs(lane.c.y[j] - lane.y_start[j]) * s.weight[j] > 1.0:
            if s.matrix.column(OF_YP, j, s.column_rows, s.column_values) > 0:
                return True
    return False


def move_to_start(lane, s):
    """Make the start the state's point, and set the weights."""
    i: cython.int
    s.t = lane.t0
    for i in range(s.n):
        s.y[i] = s.phi[i] = lane.y_start[i]
        s.yp[i] = lane.yp_start[i]
    return set_weights(s) == OK


def signs_are_kept(lane, s, y0):
    """Tell whether no unknown has moved to the other side of zero."""
    i: cython.int
    tolerance: cython.double
    for i in range(s.n):
        tolerance = s.rtol[i] * fabs(y0[i]) + s.atol[i]
        if y0[i] * lane.y_start[i] < 0.0 and fabs(lane.y_start[i]) > tolerance:
            if fabs(y0[i]) > tolerance:
                return False
    return True


def want_between(lane, s):
    """Mark unknowns that are wanted between the steps; with 2 those known to have no slope."""
    j: cython.int
    s.interpolated = False
    for j in range(s.n):
        s.wanted[j] = 1 if lane.wanted[j] != 0.0 else 0
        if s.jacobian_exists:
            if s.matrix.column(OF_YP, j, s.column_rows, s.column_values) == 0:
                s.wanted[j] *= 2
        if s.wanted[j] > 1 or (s.kind[j] > 1 and s.wanted[j] > 0):
            s.interpolated = True
    s.checked_step = 0.0


def choose_first_step(lane, s):
    """Choose the first step by the curvature; zero leaves it to the core."""
    h: cython.double
    curvature: cython.double
    if lane.c.ypp[0] != lane.c.ypp[0]:
        return 0.0
    curvature = weighted_norm(s, lane.c.ypp, s.weight, MAX_NORM)
    h = min(SHARE_OF_SPAN * fabs(s.t_end - s.t), s.max_step)
    if curvature > 0.0:
        h = min(h, sqrt(2.0 * TARGET / curvature))
    return h if isfinite(h) else 0.0


def is_beyond_doubt(lane, s):
    """Tell whether none of the checks of a result finds anything."""
    n: cython.int = s.n
    i: cython.int
    j: cython.int
    allowed: cython.double
    largest: cython.double = 0.0
    weight: cython.p_double = s.newton_weight if s.highest_kind > 1 else s.weight
    if s.steps > 0 and s.cj_factored != 0.0:
        for i in range(n):
            lane.y_start[i] = s.phi[i]
            lane.yp_start[i] = s.yp_n[i]
        if evaluate(s, s.t, lane.y_start, lane.yp_start, lane.change) != OK:
            return False
        solve_scaled(s, lane.change)
        for i in range(n):
            if not fabs(lane.change[i]) * weight[i] <= LARGEST_CHANGE * (1.0 + s.projection_size):
                return False
    if s.n_constraints > 0 and s.worst_drift != 0.0:
        for i in range(s.n_constraints):
            allowed = 0.0
            for j in range(n):
                allowed += fabs(s.gy[i * n + j]) * s.tolerance[j]
            largest = max(largest, allowed)
        if not s.worst_drift <= LARGEST_DRIFT * largest:
            return False
    if s.n_constraints > 0 and s.lowest_rank < s.highest_rank:
        return False
    if s.last_k == 1 and s.max_order > 1 and s.attempts >= ATTEMPTS_AT_ORDER_1:
        return False
    return s.untested == 0 and s.reaction_error == 0.0 and not s.to_compare


def hand_over(lane, s, is_cut, y_end, yp_end, t_end, y, yp, counts):
    """Copy the results of a member; an event may have cut its last step."""
    i: cython.longlong
    j: cython.longlong
    n: cython.longlong = lane.n_user
    t_end[0] = lane.log.t_cut if is_cut else s.t
    for j in range(n):
        y_end[j] = lane.log.y[j] if is_cut else s.phi[j]
        yp_end[j] = lane.log.yp[j] if is_cut else s.yp_n[j]
    for i in range(s.next_eval):
        for j in range(n):
            y[i * n + j] = s.eval_y[i * s.n + j]
            yp[i * n + j] = s.eval_yp[i * s.n + j]
    counts[0] = s.steps
    counts[1] = s.nfev
    counts[2] = s.njev
    counts[3] = s.nlu
    counts[4] = s.iterations
    counts[5] = s.error_test_failures
    counts[6] = s.convergence_failures
    counts[7] = s.projections
