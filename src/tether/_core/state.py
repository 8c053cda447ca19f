"""The integrator's working memory: one flat object that every verb reads and writes."""

import cython
import numpy as np

from tether.base.blocks import zeros

if not cython.compiled:
    from tether._core.arrays import address, integer_address
    from tether._core.codes import COLUMNS, MOST_EFFECTS, OF_YP, RING_COLUMNS, RING_ROWS

VECTORS = cython.declare(cython.int, 17)   # of length n in the block
# Attempts that are kept, each with its y': fewer above so many unknowns.
FEWER_ATTEMPTS = ((50_000, 8), (4_000, 16))
UNKNOWN = cython.declare(cython.double, float("nan"))
INFINITE = cython.declare(cython.double, float("inf"))

# Counts and memories of a run that survive a change of its State.
CARRIED = (
    "t_end", "direction", "h", "max_step", "steps", "nfev", "njev", "nlu", "iterations",
    "error_test_failures", "convergence_failures", "untested", "t_untested", "t_last_untested",
    "largest_reaction", "reaction_error", "t_reaction_error",
    "projections", "worst_drift", "attempts",
    "review_after",
)


def doubles(s, name, array):
    """Keep `array` alive under `name` and return the address of its first element."""
    s.arrays[name] = array
    return address(array)


def integers(s, name, array):
    """Like `doubles`, for C integers."""
    s.arrays[name] = array
    return integer_address(array)


def long_integers(s, name, array):
    """Like `doubles`, for integers of 64 bits."""
    s.arrays[name] = array
    if cython.compiled:
        view: cython.longlong[::1] = array
        return cython.address(view[0])
    return array


def open_block(s, size):
    """Allocate a block of `size` doubles for `take`: one array instead of many."""
    s.taken = 0
    s.memory = zeros(size)
    s.block = address(s.memory)
    return 0


def take(s, name, size):
    """Take the next `size` doubles of the block for the array `name`."""
    start: cython.longlong = s.taken
    s.taken = start + size
    s.arrays[name] = s.memory, start, s.taken
    return s.block + start if cython.compiled else s.block[start : s.taken]


def spread(value, out, n):
    """Fill a vector with a number, or with those of an array."""
    i: cython.int
    if isinstance(value, float):
        number: cython.double = value
        for i in range(n):
            out[i] = number
    else:
        given = np.empty(n)
        given[:] = value
        numbers: cython.double[::1] = given
        for i in range(n):
            out[i] = numbers[i]
    return 0


def set_units(s):
    """Set the units of the unknowns, in proportion to their absolute tolerances.

    The largest unit is 1, and so is that of an unknown without an absolute tolerance.
    """
    i: cython.int
    largest: cython.double = 0.0
    for i in range(s.n):
        largest = max(largest, s.atol[i])
    for i in range(s.n):
        s.unit[i] = s.atol[i] / largest if s.atol[i] > 0.0 else 1.0
    return 0


class State:
    """Memory of one integration; the matrix has as many columns as there are unknowns.

    `matrix` is a `Matrix` that belongs to this state alone; tolerances are numbers or vectors.
    """

    def __init__(self, matrix, rtol, atol):
        n: cython.int = matrix.n
        self.n, self.matrix, self.arrays = n, matrix, dict(matrix.arrays)
        matrix.failed, matrix.error = False, None
        self.ring_size = RING_ROWS
        for many, rows in FEWER_ATTEMPTS:
            if n > many:
                self.ring_size = rows
                break
        ring: cython.longlong = self.ring_size
        ring *= RING_COLUMNS + n
        effects: cython.longlong = n if n <= MOST_EFFECTS else 0
        effects *= n + 2
        open_block(self, (COLUMNS + VECTORS) * cython.cast(cython.longlong, n) + effects + ring)
        if not cython.compiled:
            for name in ("psi", "psi_new", "alpha", "beta", "gamma"):
                setattr(self, name, np.zeros(COLUMNS + 1))
            for name in ("error_constant", "difference_norm", "order_error", "order_term"):
                setattr(self, name, np.zeros(COLUMNS))
            self.pair_effects = np.zeros(4)
        self.rtol = take(self, "rtol", n)
        self.atol = take(self, "atol", n)
        spread(rtol, self.rtol, n)
        spread(atol, self.atol, n)
        self.unit = take(self, "unit", n)
        set_units(self)
        self.phi = take(self, "phi", COLUMNS * n)
        self.tolerance = take(self, "tolerance", n)
        self.weight = self.error_weight = self.newton_weight = take(self, "weight", n)
        self.y_predicted = take(self, "y_predicted", n)
        self.yp_predicted = take(self, "yp_predicted", n)
        self.y = take(self, "y", n)
        self.yp_n = take(self, "yp_n", n)
        self.yp = take(self, "yp", n)
        self.correction = take(self, "correction", n)
        self.r = take(self, "r", n)
        self.scratch = take(self, "scratch", n)
        self.increment = take(self, "increment", n)
        self.noise = take(self, "noise", n)
        self.before = take(self, "before", n)
        if n <= MOST_EFFECTS:
            self.effects = take(self, "effects", n * n)
            self.effects_nlu = take(self, "effects_nlu", n)
            self.shares = take(self, "shares", n)
        marks = np.zeros(3 * n, np.intc)
        self.arrays["kind"] = marks, 0, n
        self.arrays["wanted"] = marks, n, 2 * n
        self.arrays["column_rows"] = marks, 2 * n, 3 * n
        if cython.compiled:
            self.kind = integer_address(marks)
            self.wanted, self.column_rows = self.kind + n, self.kind + 2 * n
        else:
            self.kind, self.wanted, self.column_rows = np.split(marks, 3)
        self.highest_kind = self.estimate = self.scaling_mode = 0
        self.lowest_order, self.untestable, self.t_began = 1, 0, UNKNOWN
        self.keeps_order = False
        self.share = 1.0
        self.interpolated = self.exact_at_steps = self.jumped = False
        self.place = self.checked_step = 0.0
        self.round_off_step = self.shorter_at_jump = 0
        self.jump_step = self.jump_size = 0.0
        self.column_values = take(self, "column_values", n)
        self.error = self.given = self.trial_error = None
        self.retries, self.trial_error_step = True, -1
        self.residual_adapter = self.jacobian_adapter = self.events_adapter = None
        self.slopes_adapter = None
        self.t_end, self.t_new = INFINITE, 0.0
        self.direction = 1.0
        self.max_step = INFINITE
        self.n_ceilings = self.ceiling = 0
        self.fyp_known = False
        self.steps = self.nfev = self.njev = self.nlu = self.iterations = 0
        self.error_test_failures = self.convergence_failures = self.untested = 0
        self.t_untested = self.t_last_untested = 0.0
        self.largest_reaction = self.reaction_error = self.t_reaction_error = 0.0
        self.keep_steps = False
        self.stored = self.capacity = 0
        self.n_eval = self.next_eval = 0
        self.n_events = 0
        self.to_compare = False
        self.n_conditions = self.compare_at = 0
        self.n_surfaces = 0
        self.error_failures = self.newton_failures = 0
        self.jacobian_step = 0
        self.in_vain = self.damped_steps = self.review_after = 0
        self.first_increment = self.failed_increment = self.failed_error = 0.0
        self.ring = take(self, "ring", ring)
        self.attempts = 0
        self.rate = self.condition = 0.0
        self.linear_error = 0.0
        self.jacobian_exists = self.jacobian_current = False
        self.fyp_exists = self.fyp_constant = False
        self.correcting = False
        self.guesses = self.guessed = False
        self.seen_rate = 1.0
        self.misses = self.guess_from = self.pauses = 0
        self.saving = 0.5
        self.seen_step = -1
        self.compared = self.renewals = self.suspects = 0
        self.pair_first = self.pair_last = self.pair_nlu = -1
        self.past = 0

        self.n_constraints = self.n_pieces = 0
        self.gy_sparse = False
        self.project_before_test = False
        self.projections = self.contradictions = self.rank = 0
        self.lowest_rank, self.highest_rank, self.t_lowest_rank = 2**30, 0, 0.0
        self.rank_floor, self.rank_ceiling = 0, 2**30
        self.rank_changed = self.rank_understood = self.must_hold = False
        self.drift = self.worst_drift = self.projection_size = 0.0

    def array(self, name):
        """Return the array behind a pointer: the same memory, not a copy."""
        array = self.arrays[name]
        if type(array) is tuple:       # a part of a block that is used for the first time
            memory, start, stop = array
            array = self.arrays[name] = memory[start:stop]
        return array

    @property
    def array_names(self):
        """Names of all arrays of the state."""
        return tuple(self.arrays)

    # --- views for other rooms: the same memory, not a copy -------------------------------------

    @property
    def y_now(self):
        """Solution at the end of the last step."""
        return self.array("phi")[: self.n]

    @property
    def yp_now(self):
        """Its derivative."""
        return self.array("yp_n")

    @property
    def y_tried(self):
        """Solution at the point that was tried last."""
        return self.array("y")

    @property
    def yp_tried(self):
        """Its derivative."""
        return self.array("yp")

    @property
    def rtols(self):
        """Relative tolerances of the unknowns."""
        return self.array("rtol")

    @property
    def atols(self):
        """Absolute tolerances of the unknowns."""
        return self.array("atol")

    @property
    def tolerances(self):
        """Errors that the unknowns may have at present: rtol |y| + atol."""
        return self.array("tolerance")

    @property
    def weights(self):
        """One over the tolerances."""
        return self.array("weight")

    @property
    def kinds(self):
        """Kinds of the unknowns (`var_index`)."""
        return self.array("kind")

    @property
    def reactions(self):
        """Which unknowns of kind 2 and 3 have no derivative in the equations."""
        return self.array("reaction")

    @property
    def with_slopes(self):
        """Which unknowns have a derivative in the equations, by the last Jacobian."""
        if self.matrix.has_no_entries:        # unknown
            return np.ones(self.n, bool)
        return abs(self.matrix.get(OF_YP)).sum(axis=0) != 0.0

    @property
    def constraint_slopes(self):
        """Derivatives of the constraints by the unknowns, as last evaluated."""
        return self.as_slopes(self.array("gy"))

    def as_slopes(self, values):
        """Return numbers stored like the derivatives of the constraints as a matrix."""
        if not self.gy_sparse:
            return values.reshape(-1, self.n)
        from scipy.sparse import csr_array  # late, to save time

        places = self.arrays["slope_rows"], self.arrays["slope_columns"]
        return csr_array((values, places), shape=(self.n_constraints, self.n))

    @property
    def kept_values(self):
        """Values that constraints and invariants must keep: zero, or the value at the start."""
        return self.array("g_reference")

    @property
    def piece_starts(self):
        """First row of every constraint function among all constraints, and their number."""
        return self.array("piece_start")

    @property
    def event_values(self):
        """Values of the event functions with which signs are compared."""
        return self.array("g_old")

    @property
    def event_rest(self):
        """Size up to which an event left at zero counts as zero; negative for the others."""
        return self.array("g_rest")

    @property
    def event_values_tried(self):
        """Values of the event functions at the end of the last step."""
        return self.array("g_new")

    @property
    def ring_rows(self):
        """Rows of the last attempts; see `tether.run.attempts`."""
        return self.array("ring").reshape(self.ring_size, -1)

    def take_over_from(self, old):
        """Take over the counts and memories of a run from its old state."""
        for name in CARRIED:
            setattr(self, name, getattr(old, name))

    def use_kinds(self, kind, reaction, estimate, exact_at_steps=False):
        """Treat each unknown by its var_index; `estimate` is a code of the error estimates.

        `reaction` marks those of index 2 and 3 whose derivative does not occur. In a reduced system
        they are the unknowns that the others determine, `exact_at_steps`.
        """
        self.kind = integers(self, "kind", np.asarray(kind, np.intc))
        self.highest_kind = self.arrays["kind"].max()
        self.estimate = estimate
        self.exact_at_steps = exact_at_steps
        self.lowest_order = min(2, self.max_order) if self.highest_kind > 2 else 1
        self.want(self.array("wanted"))
        self.reaction = integers(self, "reaction", np.asarray(reaction, np.intc))
        if self.highest_kind < 2:
            self.error_weight = self.newton_weight = self.filtered_weight = self.weight
            open_block(self, self.n)
            self.filtered = take(self, "filtered", self.n)
            return
        open_block(self, 7 * self.n)
        self.error_weight = take(self, "error_weight", self.n)
        self.filtered_weight = take(self, "filtered_weight", self.n)
        self.newton_weight = take(self, "newton_weight", self.n)
        self.filtered = take(self, "filtered", self.n)
        self.round_off = take(self, "round_off", self.n)
        self.noise_share = take(self, "noise_share", self.n)
        self.own_noise = take(self, "own_noise", self.n)
        self.noise_jacobian = -1
        self.round_off_step = 0

    def want(self, wanted):
        """Mark the unknowns that are wanted between the steps.

        The mark is 2 if the slope does not occur: whatever its kind, a point inside the step then
        says something about the unknown that the ends do not.
        """
        i: cython.int
        self.array("wanted")[:] = wanted
        self.interpolated, self.checked_step = False, 0.0
        for i in range(self.n):
            if self.wanted[i] > 1 or (self.kind[i] > 1 and self.wanted[i] > 0):
                self.interpolated = True

    def scale_matrix(self, mode):
        """Scale rows and columns of the iteration matrix; `mode` is a code of the scalings."""
        self.row_scale = doubles(self, "row_scale", np.ones(self.n))
        self.column_scale = doubles(self, "column_scale", np.ones(self.n))
        self.scaling_mode = mode

    def keep_steps_in(self, t, y, yp, k, g):
        """Store every accepted step into these arrays from row `stored` on."""
        self.store_t = doubles(self, "store_t", t)
        self.store_y = doubles(self, "store_y", y)
        self.store_yp = doubles(self, "store_yp", yp)
        self.store_k = integers(self, "store_k", k)
        if self.n_constraints:
            self.store_g = doubles(self, "store_g", g)
        self.capacity = len(t)
        self.keep_steps = True

    def evaluate_at(self, t, y, yp):
        """Fill rows of `y` and `yp` with the solution at the times `t` as they are passed."""
        self.eval_t = doubles(self, "eval_t", t)
        self.eval_y = doubles(self, "eval_y", y)
        self.eval_yp = doubles(self, "eval_yp", yp)
        self.n_eval = len(t)

    def limit_steps(self, t, h):
        """Limit steps to `h` from the times `t` on, in the order of the run."""
        self.ceiling_t = doubles(self, "ceiling_t", t)
        self.ceiling_h = doubles(self, "ceiling_h", h)
        self.n_ceilings, self.ceiling = len(t), 0

    def constrain(self, pieces, starts, functions, jacobians, data, entries=None):
        """Hold G(t, y) = 0, given in pieces whose rows begin at `starts` (and end at the last).

        `functions`, `jacobians` and `data` are addresses of C functions; a piece whose function is
        zero is the Python adapter in `pieces`. `entries`, if given, has the rows and columns of
        each piece's Jacobian entries, and only these are stored; projections that need the full
        Jacobian cannot then be used.
        """
        m, n = int(starts[len(starts) - 1]), self.n
        self.gy_sparse, room = entries is not None, m * n
        slopes = np.asarray(starts, np.int64) * n
        if entries is not None:
            slopes = np.cumsum([0, *(len(rows) for rows, _ in entries)], dtype=np.int64)
            room = int(slopes[len(entries)])
            self.arrays["slope_rows"] = np.concatenate(
                [rows + first for (rows, _), first in zip(entries, starts, strict=False)])
            self.arrays["slope_columns"] = np.concatenate([columns for _, columns in entries])
        whole = 0 if self.gy_sparse else m         # rows for projections with full matrices
        self.slope_start = long_integers(self, "slope_start", slopes)
        self.pieces = pieces
        self.piece_start = integers(self, "piece_start", np.asarray(starts, np.intc))
        self.piece_function = long_integers(self, "piece_function", np.asarray(functions, np.int64))
        self.piece_jacobian = long_integers(self, "piece_jacobian", np.asarray(jacobians, np.int64))
        self.piece_data = long_integers(self, "piece_data", np.asarray(data, np.int64))
        open_block(self, 6 * m + 2 * n + room + whole * (n + m))
        self.g = take(self, "g", m)
        self.g_saved = take(self, "g_saved", m)
        self.g_reference = take(self, "g_reference", m)
        self.gy = take(self, "gy", room)
        self.scaling = take(self, "scaling", n)
        self.shift = take(self, "shift", n)
        self.row_whole = take(self, "row_whole", m)
        self.row_left = take(self, "row_left", m)
        self.row_mask = long_integers(self, "row_mask", np.zeros(m, np.int64))
        self.basis = take(self, "basis", whole * n)
        self.triangle = take(self, "triangle", whole * m)
        self.multiplier = take(self, "multiplier", m)
        self.row_order = integers(self, "row_order", np.zeros(m, np.intc))
        self.n_pieces = len(pieces)
        self.n_constraints = m

    def make_room_for_slopes(self, piece, rows, columns):
        """Store these entries of a piece in the list of all derivatives of the constraints.

        The other pieces keep their values.
        """
        i: cython.int
        first: cython.longlong = self.slope_start[piece]
        last: cython.longlong = self.slope_start[piece + 1]
        more: cython.longlong = len(rows) - (last - first)
        room: cython.longlong = self.slope_start[self.n_pieces]
        before = np.zeros(room)
        kept: cython.p_double = address(before)
        for i in range(room):
            kept[i] = self.gy[i]
        own = rows + self.piece_start[piece], columns
        for name, mine in zip(("slope_rows", "slope_columns"), own, strict=True):
            found = self.arrays[name]
            self.arrays[name] = np.concatenate([found[:first], mine, found[last:]])
        self.gy = doubles(self, "gy", np.concatenate(
            [before[:first], np.zeros(len(rows)), before[last:]]))
        for i in range(piece + 1, self.n_pieces + 1):
            self.slope_start[i] += more

    def watch_events(self, directions):
        """Check for sign changes of the event functions after every step."""
        m = len(directions)
        self.g_old = doubles(self, "g_old", np.zeros(m))
        self.g_new = doubles(self, "g_new", np.zeros(m))
        self.g_rest = doubles(self, "g_rest", np.full(m, -1.0))
        self.g_direction = integers(self, "g_direction", np.asarray(directions, np.intc))
        self.n_events = m
