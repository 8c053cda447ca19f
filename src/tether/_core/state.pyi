"""Types of the core's State; written by .ci/state_stub.py from state.pxd and state.py."""

from typing import Any

import numpy as np

from tether._core.matrix import Matrix

class State:
    n: int
    t_end: float
    direction: float
    residual_adapter: Any
    jacobian_adapter: Any
    slopes_adapter: Any
    events_adapter: Any
    python_residual: bool
    error: Any
    given: Any
    retries: bool
    trial_error: Any
    trial_error_step: int
    max_order: int
    lowest_order: int
    keeps_order: bool
    max_step: float
    n_ceilings: int
    ceiling: int
    controller: int
    newton_norm: int
    error_norm: int
    newton_tolerance: float
    newton_by_step: bool
    t: float
    h: float
    k: int
    last_h: float
    last_k: int
    starting: bool
    steps_at_order: int
    t_began: float
    untestable: int
    t_new: float
    cj: float
    y_norm: float
    matrix: Matrix
    scaling_mode: int
    condition: float
    cj_factored: float
    linear_error: float
    jacobian_exists: bool
    jacobian_current: bool
    jacobian_step: int
    compared: int
    renewals: int
    fyp_known: bool
    fyp_exists: bool
    fyp_constant: bool
    guesses: bool
    guessed: bool
    past: int
    extra: int
    trial: int
    misses: int
    guess_from: int
    saving: float
    pauses: int
    seen_rate: float
    seen_step: int
    correcting: bool
    pattern_given: bool
    fy_sparse: bool
    fyp_sparse: bool
    fy_colours: int
    fyp_colours: int
    calls_saved: int
    estimate: int
    highest_kind: int
    share: float
    interpolated: bool
    exact_at_steps: bool
    noise_jacobian: int
    round_off_step: int
    place: float
    checked_step: float
    jumped: bool
    jump_step: float
    jump_size: float
    shorter_at_jump: int
    terms_filtered: bool
    new_order: int
    last_control: float
    n_constraints: int
    n_pieces: int
    pieces: list[Any]
    pieces_have_jacobians: bool
    gy_sparse: bool
    project_before_test: bool
    projection_power: float
    projection_adapter: Any
    rank: int
    lowest_rank: int
    highest_rank: int
    t_lowest_rank: float
    must_hold: bool
    rank_floor: int
    rank_ceiling: int
    rank_changed: bool
    rank_understood: bool
    drift: float
    worst_drift: float
    projection_size: float
    contradictions: int
    projections: int
    error_failures: int
    newton_failures: int
    first_increment: float
    failed_increment: float
    failed_error: float
    in_vain: int
    damped_steps: int
    review_after: int
    ring_size: int
    attempts: int
    rate: float
    steps: int
    nfev: int
    njev: int
    nlu: int
    iterations: int
    error_test_failures: int
    convergence_failures: int
    untested: int
    t_untested: float
    t_last_untested: float
    largest_reaction: float
    reaction_error: float
    t_reaction_error: float
    keep_steps: bool
    stored: int
    capacity: int
    n_eval: int
    next_eval: int
    n_events: int
    to_compare: bool
    compare_at: int
    n_conditions: int
    conditions_adapter: Any
    branch: int
    n_branches: int
    most_branches: int
    n_surfaces: int
    heights_adapter: Any
    heights_of_rows: bool
    def __init__(self, matrix: Any, rtol: Any, atol: Any) -> None: ...
    def array(self, name: Any) -> np.ndarray: ...
    @property
    def array_names(self) -> np.ndarray: ...
    @property
    def y_now(self) -> np.ndarray: ...
    @property
    def yp_now(self) -> np.ndarray: ...
    @property
    def y_tried(self) -> np.ndarray: ...
    @property
    def yp_tried(self) -> np.ndarray: ...
    @property
    def rtols(self) -> np.ndarray: ...
    @property
    def atols(self) -> np.ndarray: ...
    @property
    def tolerances(self) -> np.ndarray: ...
    @property
    def weights(self) -> np.ndarray: ...
    @property
    def kinds(self) -> np.ndarray: ...
    @property
    def reactions(self) -> np.ndarray: ...
    @property
    def with_slopes(self) -> np.ndarray: ...
    @property
    def constraint_slopes(self) -> np.ndarray: ...
    def as_slopes(self, values: Any) -> None: ...
    @property
    def kept_values(self) -> np.ndarray: ...
    @property
    def piece_starts(self) -> np.ndarray: ...
    @property
    def event_values(self) -> np.ndarray: ...
    @property
    def event_rest(self) -> np.ndarray: ...
    @property
    def event_values_tried(self) -> np.ndarray: ...
    @property
    def ring_rows(self) -> np.ndarray: ...
    def take_over_from(self, old: Any) -> None: ...
    def use_kinds(self, kind: Any, reaction: Any, estimate: Any, exact_at_steps: Any = ...) -> None: ...
    def want(self, wanted: Any) -> None: ...
    def scale_matrix(self, mode: Any) -> None: ...
    def keep_steps_in(self, t: Any, y: Any, yp: Any, k: Any, g: Any) -> None: ...
    def evaluate_at(self, t: Any, y: Any, yp: Any) -> None: ...
    def limit_steps(self, t: Any, h: Any) -> None: ...
    def constrain(self, pieces: Any, starts: Any, functions: Any, jacobians: Any, data: Any, entries: Any = ...) -> None: ...
    def make_room_for_slopes(self, piece: Any, rows: Any, columns: Any) -> None: ...
    def watch_events(self, directions: Any) -> None: ...
