from tether._core.arrays cimport address, integer_address
from tether._core.codes cimport COLUMNS, MOST_EFFECTS, OF_YP, RING_COLUMNS, RING_ROWS
from tether._core.matrix cimport Matrix

# The functions that differ from problem to problem.
ctypedef int (*residual_t)(State s, double t, double* y, double* yp, double* out) noexcept nogil
ctypedef int (*jacobian_t)(State s, double t, double* y, double* yp) noexcept nogil
ctypedef int (*piece_t)(State s, int piece, double t, double* y) noexcept nogil
ctypedef void (*project_t)(State s) noexcept nogil
ctypedef int (*linearise_t)(State s) noexcept nogil
ctypedef int (*events_t)(State s, double t, double* y, double* yp, double* g) noexcept nogil

cdef class State:
    # --- the problem
    cdef public int n
    cdef public double t_end          # never stepped over
    cdef public double direction      # +1 or -1
    cdef residual_t residual
    cdef jacobian_t jacobian
    cdef jacobian_t slopes            # F_y' where the Jacobian is found by differences
    cdef events_t events
    cdef public object residual_adapter
    cdef public object jacobian_adapter
    cdef public object slopes_adapter
    cdef public object events_adapter
    cdef public bint python_residual  # the residual needs the GIL
    cdef public object error          # the exception a user's function raised
    cdef public object given          # the point that the user gave: t, y, y'; or None
    cdef public bint retries          # a failed step is tried again with a smaller one
    cdef public object trial_error    # the last exception at a trial point, and its traceback
    cdef public long long trial_error_step  # ... in this step
    cdef void* c_function
    cdef void* c_data

    # --- options
    cdef double* rtol
    cdef double* atol
    cdef double* unit                 # changes of the unknowns that count as equal
    cdef public int max_order
    cdef public int lowest_order      # 2 at index 3 as written
    cdef public bint keeps_order      # not lowered where nothing changes
    cdef public double max_step
    cdef public int n_ceilings        # number of times from which steps are limited, or 0 ...
    cdef public int ceiling           # ... the current one
    cdef double* ceiling_t
    cdef double* ceiling_h
    cdef public int controller
    cdef public int newton_norm
    cdef public int error_norm
    cdef public double newton_tolerance
    cdef public bint newton_by_step   # P82 eq. 5.10 instead of 5.9

    # --- history: y(t_n) and its scaled divided differences, math (2)
    cdef public double t, h
    cdef public int k
    cdef double psi[COLUMNS + 1]      # psi[j] = t_n - t_{n-j}
    cdef double* phi                  # phi[j n + i], j = 0..COLUMNS-1
    cdef double* yp_n                 # y'(t_n)
    cdef public double last_h         # the step that led to t_n ...
    cdef public int last_k            # ... and its order
    cdef public bint starting         # raise order and step until the first failure
    cdef public int steps_at_order
    cdef public double t_began        # where the history begins
    cdef public int untestable        # further steps in which velocities and reactions go untested

    # --- the step being tried
    cdef public double t_new
    cdef double psi_new[COLUMNS + 1]
    cdef double alpha[COLUMNS + 1]
    cdef double beta[COLUMNS + 1]
    cdef double gamma[COLUMNS + 1]
    cdef double error_constant[COLUMNS]
    cdef public double cj
    cdef double* tolerance            # rtol |y_n| + atol
    cdef double* weight               # 1 / tolerance
    cdef double* error_weight         # of the error test: zero for what is left out of it
    cdef double* filtered_weight      # of the filtered errors
    cdef double* newton_weight        # of the convergence test
    cdef public double y_norm         # max |y_n| weight
    cdef double* y_predicted
    cdef double* yp_predicted
    cdef double* y
    cdef double* yp
    cdef double* correction           # y - y_predicted, the next difference of order k + 1
    cdef double* r                    # residual, then Newton's increment
    cdef double* scratch
    cdef double* increment            # of Newton's method
    cdef double* noise                # round-off of each residual
    cdef double* before               # the residual before an increment

    # --- iteration matrix F_y + cj F_y' and its factors
    cdef public Matrix matrix         # the matrices, however they are stored
    cdef int* column_rows             # the entries of a column, in transit
    cdef double* column_values
    cdef public int scaling_mode      # of the rows and columns of the matrix, math (25)
    cdef double* row_scale
    cdef double* column_scale
    cdef public double condition      # of the factored matrix, a lower estimate; -1: singular
    cdef public double cj_factored    # 0: nothing factored yet
    cdef public double linear_error   # residual a linear solution may leave, relative
    cdef public bint jacobian_exists
    cdef public bint jacobian_current  # evaluated during this step
    cdef public long long jacobian_step
    cdef public long long compared    # Jacobians compared with the one before
    cdef public int renewals          # ... in this iteration
    cdef int suspects                 # equations in `column_rows` it may be out of date for
    cdef int pair_first               # of the last two of these, and what they do to each other
    cdef int pair_last
    cdef double[4] pair_effects
    cdef long long pair_nlu           # with the factors made then
    cdef double* effects              # of equations on each other, if they are few
    cdef double* effects_nlu          # with which factors they were found
    cdef double* shares               # what follows from them
    cdef public bint fyp_known        # F_y' is given and constant
    cdef public bint fyp_exists
    cdef public bint fyp_constant     # F_y' has not changed from one difference to the next

    # --- points from which Newton's iteration begins (guess.py)
    cdef public bint guesses          # the iteration begins at a guess: residuals are expensive
    cdef public bint guessed          # ... in this step
    cdef public int past              # number of points since the history began
    cdef public int extra             # a guess at order k is made from k + extra of them ...
    cdef public int trial             # ... or, for comparison, one more or less
    cdef public int misses            # failed guesses count two, others minus one
    cdef public long long guess_from  # no guess before this step
    cdef public double saving         # residuals that a guess has saved per step, recently
    cdef public int pauses            # how many times that was too few
    cdef double* past_t
    cdef double* past_y
    cdef double* past_yp
    cdef double* beside_y             # the prediction, less what is extrapolated from these points
    cdef double* beside_yp
    cdef double* sizes                # of the terms of each equation, at the last Jacobian
    cdef double* changed_much         # nonzero if the sizes have changed much between Jacobians
    cdef double* alarms               # false alarms from steps of the equation ...
    cdef double* ignored_until        # ... and the step until which they are ignored
    cdef double* guess                # of the correction
    cdef double* gap                  # the residual of the linear model
    cdef public double seen_rate      # of convergence, last measured ...
    cdef public long long seen_step   # ... in this step

    # --- groups of columns for differences (colours.py)
    cdef public bint correcting       # the Jacobian is for Newton's iteration
    cdef public bint pattern_given    # the groups are those of patterns that the user gave
    cdef public bint fy_sparse        # as far as is known
    cdef public bint fyp_sparse
    cdef int* fy_colour               # the group of each column
    cdef int* fyp_colour
    cdef public int fy_colours        # number of groups; 0: columns are taken one by one
    cdef public int fyp_colours
    cdef public long long calls_saved  # ... by groups, less those spent in vain
    cdef long long random_state
    cdef double* delta                # increments of the columns
    cdef double* unmoved
    cdef double* expected             # change of each residual ...
    cdef double* expected_size        # ... and the sum of its parts

    # --- error and order
    cdef public int estimate          # which error estimate, math (8), (20)-(23)
    cdef int* kind                    # var_index: 0, 1 ordinary; 2, 3 lose one or two orders
    cdef int* reaction                # of kind 2 or 3, and without derivative in the equations
    cdef public int highest_kind
    cdef double* filtered             # the error being computed
    cdef public double share          # of the tolerance, for ordinary unknowns
    cdef int* wanted                  # wanted between the steps
    cdef public bint interpolated     # ... and one of these is left out of the error test
    cdef public bint exact_at_steps   # kind 2 means determined by the equations at every step
    cdef double* round_off            # of such unknowns, where it matters ...
    cdef double* noise_share          # round-off of a kind-2 unknown, in that of y / h ...
    cdef double* own_noise            # ... or its own, from equations without slopes; 0: none
    cdef public long long noise_jacobian    # ... at the Jacobian with this number
    cdef public long long round_off_step    # ... measured last at this step; 0: never
    cdef public double place          # fraction of the step at which it was checked last
    cdef public double checked_step   # longest step that passed the check since a failure
    cdef public bint jumped           # accepted though unknowns jump in this step
    cdef public double jump_step      # the last step that failed only because of them ...
    cdef public double jump_size      # ... with this difference ...
    cdef public int shorter_at_jump   # ... after so many longer ones
    cdef double difference_norm[COLUMNS]
    cdef double order_error[COLUMNS]  # error estimate if the order had been q
    cdef double order_term[COLUMNS]   # |h^(q+1) y^(q+1)|, math (9)
    cdef public bint terms_filtered   # ... of T d instead of d, math (20)
    cdef public int new_order
    cdef public double last_control   # the controller's memory

    # --- constraints G(t, y) = 0 in pieces, Python and C; invariants have a reference value
    cdef public int n_constraints
    cdef public int n_pieces
    cdef int* piece_start             # the rows of piece p begin here
    cdef long long* piece_function    # address of a C function, 0 for a Python piece
    cdef long long* piece_jacobian
    cdef long long* piece_data        # its user data; -1: takes none
    cdef public list pieces           # the adapters of the Python pieces
    cdef piece_t call_piece
    cdef piece_t call_piece_jacobian
    cdef public bint pieces_have_jacobians
    cdef double* g                    # the constraints' residual
    cdef double* g_reference
    cdef double* g_saved
    cdef double* gy                   # its Jacobian, row by row, or its entries ...
    cdef public bint gy_sparse        # ... that can be other than zero
    cdef long long* slope_start       # first entry of each piece
    # --- projection onto them
    cdef public bint project_before_test
    cdef public double projection_power
    cdef project_t solve_projection
    cdef linearise_t factor_projection
    cdef public object projection_adapter
    cdef double* scaling              # W^p
    cdef double* row_whole            # squared length of a row
    cdef double* row_left             # squared length of the remainder of a row
    cdef long long* row_mask          # groups of columns in which it is not zero
    cdef int reach                    # columns beyond this are zero in all rows
    cdef double* basis                # orthogonal rows, or the rows of A
    cdef double* triangle             # L of the rows, or the Cholesky factor
    cdef int* row_order
    cdef double* multiplier
    cdef double* shift                # dy
    cdef public int rank
    cdef public int lowest_rank       # at the accepted steps ...
    cdef public int highest_rank
    cdef public double t_lowest_rank  # ... and where that was first found
    cdef public bint must_hold         # every step must satisfy them: the equations imply them
    cdef public int rank_floor        # a step with another rank fails ...
    cdef public int rank_ceiling
    cdef public bint rank_changed     # ... for the first time: time to examine the equations
    cdef public bint rank_understood  # ... and other equations have been found
    cdef public double drift          # largest |g| after the projection
    cdef public double worst_drift
    cdef public double projection_size  # weighted, of the last step
    cdef public int contradictions    # steps in a row whose projection undid the corrector
    cdef public long long projections

    # --- control counters of the step being tried (not statistics)
    cdef public int error_failures
    cdef public int newton_failures
    cdef public double first_increment  # of this attempt's iteration
    cdef public double failed_increment  # ... of the last failed one in this step
    cdef public double failed_error   # of this step's last failed attempt, at the same order
    cdef public int in_vain           # failures in a row that a smaller step did not help
    cdef public int damped_steps
    cdef public long long review_after  # step from which the kinds may be examined again

    # --- the last attempts, for a diagnosis
    cdef double* ring
    cdef public int ring_size         # number of attempts that are kept
    cdef public long long attempts
    cdef public double rate           # of convergence, last measured

    # --- statistics
    cdef public long long steps, nfev, njev, nlu, iterations
    cdef public long long error_test_failures, convergence_failures
    cdef public long long untested    # steps not tested for what follows from slopes ...
    cdef public double t_untested, t_last_untested   # ... the first and the last of them
    cdef public double largest_reaction, reaction_error, t_reaction_error  # of index 3 as written

    # --- what is kept
    cdef public bint keep_steps
    cdef public long long stored, capacity
    cdef double* store_t
    cdef double* store_y
    cdef double* store_yp
    cdef int* store_k
    cdef double* store_g
    cdef public long long n_eval, next_eval
    cdef double* eval_t
    cdef double* eval_y
    cdef double* eval_yp

    # --- events
    cdef public int n_events
    cdef double* g_old
    cdef double* g_new
    cdef double* g_rest
    cdef int* g_direction

    # --- comparison of a program with the function it was traced from
    cdef public bint to_compare       # due at the last accepted step ...
    cdef public long long compare_at  # ... and at this step number
    cdef public int n_conditions      # of the function's branches
    cdef public object conditions_adapter
    cdef double* answers              # of the conditions
    cdef public long long branch      # of the last step, as a number
    cdef long long* branches          # found so far
    cdef public int n_branches, most_branches

    # --- conditions that are frozen while a step is taken
    cdef public int n_surfaces        # conditions whose surfaces are watched
    cdef public object heights_adapter
    cdef public bint heights_of_rows  # whether templates compute the heights
    cdef double* heights              # of the last accepted point above them
    cdef double* sides                # the side for it: 1, -1, or 0 on the surface itself
    cdef double* bands                # heights that count as zero

    cdef object memory                # a block that arrays are taken from ...
    cdef double* block
    cdef long long taken              # ... and how much of it is used
    cdef dict arrays                  # the arrays behind the pointers, or their place in a block

cdef int open_block(State s, long long size) except -1
cdef int set_units(State s) except -1
cdef double* take(State s, str name, long long size) except? NULL
cdef int spread(object value, double* out, int n) except -1
cdef double* doubles(State s, str name, object array) except? NULL
cdef int* integers(State s, str name, object array) except? NULL
cdef long long* long_integers(State s, str name, object array) except? NULL
