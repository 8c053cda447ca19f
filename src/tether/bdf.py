"""Bdf: the integrator one step at a time."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tether import replan
from tether._core import begin, codes, interpolate, linear, probe, step
from tether._core import project as project_core
from tether._core.adapters import raise_users, take_refusal
from tether._core.state import State
from tether.checks import check_time, check_vector
from tether.events import Switch
from tether.linear.condition import condition_number
from tether.memory import OF_A_RUN, require_matrices
from tether.model import ReducedProblem, TracedProblem, find_model
from tether.names import Names, check_names
from tether.options import (
    CONTROLLERS,
    ESTIMATES,
    NORMS,
    SCALINGS,
    Options,
    merge,
)
from tether.problem import Problem, as_problem
from tether.references import References
from tether.result import LocalInterpolant, Statistics
from tether.start.consistent import (
    Start,
    make_consistent,
    merge_starts,
    refuse_changes,
)
from tether.start.first_step import first_step as choose_first_step
from tether.start.high_index import curvature, find_kinds, refuse_pencil, start_above_index_1
from tether.start.on_constraints import start_on_constraints
from tether.status import Status
from tether.structure.pencil import Pencil
from tether.structure.scaling import Units
from tether.trust import Trust

__all__ = ["Bdf"]

SMALL = 20                  # up to here the core's own LU beats LAPACK
# At index 2 and 3 ordinary unknowns are held to this share of the tolerance; measured,
# docs/high_index.md.
HIGH_INDEX_SHARE = 2.0**-7
# Failures after which the equations may have changed their index.
PUZZLING = (Status.ERROR_TEST_FAILED, Status.NO_CONVERGENCE, Status.SINGULAR_MATRIX)
# ... or their hidden constraints, or need other choices for the same.
STALLED = (
    *PUZZLING, Status.NON_FINITE, Status.SMALLER_IS_WORSE, Status.NOT_ON_CONSTRAINTS,
    Status.CONTRADICTION,
)
# Of the tolerance: a new begin in the midst of a run changes y by less than this.
NEARBY = 100.0
# Returns of the core in the midst of a run.
GOING_ON = (codes.PAUSED, codes.TO_COMPARE)
# Equations that switch with time are looked at so often: nothing that lasts for a fiftieth of the
# interval is stepped over.
LOOKS = 100
# Steps between looks at the rows that were chosen of a derivative array.
LOOK_EVERY = 10


class Bdf:
    """Variable-order, variable-step BDF for F(t, y, y') = 0, one step at a time.

    Parameters
    ----------
    problem : Problem or callable
        What to integrate; a callable is wrapped as ``Problem(callable)``.
    t0 : float
        Starting time.
    y0, yp0 : array_like
        Starting values; `yp0` and the algebraic part of `y0` are made consistent.
    options : Options or mapping, optional
        Tolerances and the rest.
    t_bound : float
        The integration stops there exactly; its side of `t0` gives the direction.
    history : pair of array_like, optional
        Times before `t0`, oldest first, and the solution there as columns. With m of them the
        integration begins at order m (at most `max_order`) instead of 1.
    dense_output : bool
        Whether `dense_output` will be called. Multipliers, which have no part in the error test
        otherwise, are then controlled between the steps too.
    names, equation_names : sequence of str, optional
        Names of variables and equations for messages; see `solve_dae`.

    Attributes
    ----------
    t, y, yp : float, ndarray, ndarray
        The current point.
    t_old : float or None
        The point before.
    order, step_size : int, float
        Of the last step.
    status : Status
        RUNNING, REACHED_END or a failure.
    start : Start
        What was done to the starting values.
    stats : Statistics
        Work so far.
    exception : Exception or None
        What a function raised where the step that failed was tried.

    Examples
    --------
    >>> from tether import Bdf, Problem, Status
    >>> bdf = Bdf(Problem(lambda t, y, yp: [yp[0] + y[0]]), 0.0, [1.0], t_bound=1.0)
    >>> while bdf.step() == Status.RUNNING:
    ...     pass
    >>> bdf.t, round(float(bdf.y[0]), 4)
    (1.0, 0.3679)
    """

    start: Start
    status: Status
    exception: Exception | None
    given: tuple[float, np.ndarray, np.ndarray | None]     # what the last start was made from

    def __init__(
        self,
        problem: Problem | Any,
        t0: float,
        y0: ArrayLike,
        yp0: ArrayLike | None = None,
        options: Options | Mapping[str, Any] | None = None,
        *,
        t_bound: float = math.inf,
        history: tuple[ArrayLike, ArrayLike] | None = None,
        dense_output: bool = True,
        names: Any = None,
        equation_names: Any = None,
    ) -> None:
        self.options = merge(options)
        self.problem = as_problem(problem)
        t0, t_bound = check_time("t0", t0), check_time("t_bound", t_bound, finite=False)
        if t_bound == t0:
            raise ValueError(f"t_bound must differ from t0, both are {t0}")
        y = check_vector("y0", y0)
        yp = None if yp0 is None else check_vector("yp0", yp0, len(y))
        require_matrices(len(y), OF_A_RUN)
        self.problem = self.problem.prepare(t0, y)
        self.n, self.note = len(y), ""
        # for, by somebody, between the steps
        self.asked = np.ones(self.n, bool) if dense_output else np.zeros(self.n, bool)
        self._is_asked = dense_output                  # whether any of them is
        self._names_given = check_names("names", names, self.n), check_names(
            "equation_names", equation_names, self.n
        )
        self.units = Units.of_options(self.options, y, abs(t_bound - t0))
        if self.options.first_step is not None and self.options.first_step > abs(t_bound - t0):
            raise ValueError(
                f"first_step must not be longer than the interval, got {self.options.first_step}"
            )
        self.t_old: float | None = None
        self.plans = 1                         # so many structures were met so far
        self.tried_at: float | None = None     # where a failure last led to a new analysis
        self.reduced_at: float | None = None   # ... or to other choices
        self.stride = math.inf                 # of the last step before the run began anew
        self.watched: list[Switch] | None = None    # by `step`, where the structure may change
        self.changed = False                   # whether what the residual reads was
        self.trust = Trust(self)
        self.references = References()
        self._begin(t0, y, yp, t_bound)
        if not self.start.success and self.trust.starts_wrong(t0, y, yp):
            self._begin(t0, y, yp, t_bound)
        self.plans = 1
        self.settle_references()
        if not self.start.on_constraints and self.model.constraints.all:
            reason = self.names.translate(self.start.message)
            raise ValueError(f"y0 is not on the constraints: {reason}")
        if self._state.highest_kind > 2 and self._state.n_constraints and self.start.success:
            self._refuse_constraints(t0)
        if history is not None:
            begin.add_history(self._state, *_check_history(history, self._state))

    def _begin(self, t: float, y: np.ndarray, yp: np.ndarray | None, t_bound: float) -> None:
        """Choose what is integrated, and find a start for it."""
        began = time.perf_counter()
        self.model = self._find_model(t, y, yp)
        self._state = new_state(self.model, self.n, self.options)
        self._state.given = t, y, np.zeros_like(y) if yp is None else yp
        self._state.t_end = t_bound
        self._state.direction = math.copysign(1.0, t_bound - t)
        if isinstance(self.model, TracedProblem) and self.model.plan.original.is_switched_by_time:
            longest = abs(t_bound - t) / LOOKS
            self._state.max_step = min(self.options.max_step, longest)
        self._attach_constraints(t, y)
        self._constraint_key = self.model.constraints.key(self.n, self.problem.args)
        self.restart(t, y, yp, self.options.first_step, self.options.start)
        if not self.start.success and self.options.start == "auto":
            replan.try_another_plan(self, t, y, yp)
        elif yp is None:
            replan.choose_by_slopes(self, t, y)
        self.trust.spent(time.perf_counter() - began)

    def _attach_constraints(self, t: float, y: np.ndarray) -> None:
        """Let the state hold the constraints: as programs where these can be trusted."""
        constraints, args = self.model.constraints, self.problem.args
        constraints.attach(self._state, t, y, args, self.options)
        while self.trust.refuses_constraints(t, y):
            constraints.attach(self._state, t, y, args, self.options)

    def _refuse_constraints(self, t: float) -> None:
        """Refuse to project what index 3 as written finds by differences of other unknowns."""
        found = self.model.constraints.first_on(
            self._state, t, self.start.y, self._state.array("kind") > 1
        )
        if found is not None:
            raise ValueError(
                f"{found[0]}: at index 3 as written nothing that depends on "
                f"{self.names.variable(found[1])} can be kept: it is the difference of other "
                "unknowns, and a projection would be undone. Pass form='auto' (with a function "
                "that can be traced), or equations of a lower index"
            )

    def _find_model(self, t: float, y: np.ndarray, yp: np.ndarray | None) -> Problem:
        """Trace the problem where that is wanted and can be done."""
        if self.options.trace == "never":
            return self.problem
        options = self.options
        model, note = find_model(
            self.problem, t, y, yp, options.form, options.backend, self.units
        )
        if difference := self.trust.refuses(model, t, y, yp):
            model, note = self.problem, difference
            self.trust.adopt(model)
        if note and self.options.trace == "always":
            raise ValueError(f"trace='always', but fun cannot be traced: {note}")
        self.note = note
        return model

    def adopt(self, model: Problem) -> None:
        """Integrate this from now on."""
        self.changed |= getattr(model, "key", None) != getattr(self.model, "key", None)
        self.model = model
        self.trust.adopt(model)
        self._constraint_key = model.constraints.key(self.n, self.problem.args)
        self.watched = None

    @property
    def is_current(self) -> bool:
        """Whether functions and arguments are what they were when the plan was made."""
        key = self.model.constraints.key(self.n, self.problem.args)
        return self.model.is_current(self.n) and key == self._constraint_key

    @cached_property
    def names(self) -> Names:
        """Names of variables and equations, given or read off the function."""
        return Names.of(self.problem, self.n, *self._names_given)

    @property
    def calls_back(self) -> bool:
        """Whether a function of the user's is called in a step, and may have effects."""
        if not isinstance(self.model, TracedProblem) or self.model.constraints.called:
            return True
        return self.model.jac is not None and not isinstance(self.model, ReducedProblem)

    @property
    def how(self) -> str:
        """How the equations are run, in words."""
        times = "once" if self.plans == 2 else f"{self.plans - 1} times"
        return self._how_now + (f"; the structure changed {times}" if self.plans > 1 else "")

    @property
    def _how_now(self) -> str:
        if isinstance(self.model, ReducedProblem):
            index = self.model.plan.analysis.index if self.model.plan.analysis else None
            return (
                f"traced; index {index} reduced to {self.model.reduced.form}, kept on "
                f"{len(self.model.reduced.constraints)} constraints of the equations; "
                f"{self.model.run_by}"
            )
        if isinstance(self.model, TracedProblem):
            return f"traced, as written; {self.model.run_by}"
        return "called as it is" + (f": {self.note}" if self.note else "")

    def restart(
        self,
        t: float,
        y: np.ndarray,
        yp: np.ndarray | None,
        first_step: float | None = None,
        mode: str = "auto",
    ) -> None:
        """Begin anew at (t, y) with a consistent y'; `mode` as in `Options.start`."""
        s = self._state
        self.given = t, y, yp
        self.start = self._find_start(t, y, yp, mode)
        refusal = take_refusal(s)
        self.exception = None if self.start.success else refusal
        if self._use_kinds(self.start.pencil):
            probe.move_to(s, t, self.start.y, self.start.yp)       # for weights that belong to them
        self.ask()
        code = self._begin_core(t, self.start, first_step or choose_first_step(s, self.start))
        self._expect_rank()
        self.trust.watch(s)
        if not self.start.success:
            self.status = self.start.status
        else:
            self.status = Status.RUNNING if code == codes.OK else Status(code)

    def _begin_core(self, t: float, start: Start, first_step: float) -> int:
        """Let the core begin with these values: at order 1, or at index 3 as written at order 2."""
        s = self._state
        code = begin.begin(
            s, t, np.ascontiguousarray(start.y), np.ascontiguousarray(start.yp), first_step
        )
        if s.lowest_order > 1 and start.success:
            ypp = start.ypp if start.ypp is not None else curvature(s, t, start.y, start.yp)
            if ypp is not None:
                begin.bend(s, np.ascontiguousarray(ypp))
        return code

    def shorten_first_step(self, h: float) -> None:
        """Begin once more where the run has just begun, with a shorter step."""
        self._begin_core(self._state.t, self.start, h)

    def ask(self, unknowns: np.ndarray | None = None) -> None:
        """Control the user's variables that are asked for between the steps, these among them."""
        if unknowns is not None:
            self.asked |= unknowns
            self._is_asked |= bool(unknowns.any())
        if not self._is_asked:
            return
        s = self._state
        marks = np.append(self.asked, np.zeros(s.n - self.n, bool)).astype(np.intc)
        if s.jacobian_exists:
            marks[~s.array("fyp").reshape(s.n, s.n).any(axis=1)] *= 2
        s.want(marks)

    def _expect_rank(self) -> None:
        """Let the core notice where the equations have other constraints than those of the plan.

        Fewer independent ones than at the start, or more where some repeat each other.
        """
        s, model = self._state, self.model
        if not isinstance(model, ReducedProblem) or model.constraints.all:
            return
        s.must_hold = True
        s.rank_floor, s.rank_ceiling = s.rank, 2**30
        s.rank_changed = s.rank_understood = False
        if s.rank and model.plan.analysis is not None and model.plan.analysis.redundant:
            s.rank_ceiling = s.rank

    def _find_start(self, t: float, y: np.ndarray, yp: np.ndarray | None, mode: str) -> Start:
        if isinstance(self.model, ReducedProblem):
            return self._find_reduced_start(t, y, yp, mode)
        self._set_references(t, y)
        if mode == "assume":
            given = np.zeros_like(y) if yp is None else yp
            return Start(y, given, True, "assumed to be consistent", pencil=self._look(t, y, given))
        found = self._from_constraints(t, y, yp)
        if not found.on_constraints and self._let_invariants_jump(t, y):
            found = self._from_constraints(t, y, yp)
        return refuse_changes(self._state, found, y, yp) if mode == "check" else found

    def _from_constraints(
        self, t: float, y: np.ndarray, yp: np.ndarray | None, lifted: bool = False
    ) -> Start:
        """Move onto the constraints, then find what else makes the values consistent.

        Values that were `lifted` are on those of the equations but for round-off, and only the
        user's have a say about how far they may be moved.
        """
        if self._state.n_constraints == 0:
            return self._complete(t, y, yp)
        constraints = self.model.constraints
        goes_on = self.references.values is not None
        accept = self.options.accept_projected_start or goes_on or (lifted and not constraints.all)
        on_constraints = start_on_constraints(self._state, t, y, constraints, accept)
        if not on_constraints.success:
            return on_constraints
        return merge_starts(on_constraints, self._complete(t, on_constraints.y, yp))

    def _complete(self, t: float, y: np.ndarray, yp: np.ndarray | None) -> Start:
        """Find what the equations determine, whatever their index."""
        found = make_consistent(self._state, t, y, yp)
        reduced = isinstance(self.model, ReducedProblem) and self.model.reduced.form == 1
        if found is None or not (found.success or reduced or self._is_index_1(t, y, yp)):
            trusted = self.problem.var_index is not None
            found = start_above_index_1(self._state, t, y, yp, trusted)
        return found

    def _find_reduced_start(
        self, t: float, y: np.ndarray, yp: np.ndarray | None, mode: str
    ) -> Start:
        """Let the reduced equations say what belongs to the user's values.

        Values on the constraints are completed as those of any system of index 1; others are
        first brought there, positions before velocities.
        """
        assert isinstance(self.model, ReducedProblem)
        s = self._state
        if mode == "assume":
            whole, slopes = self.model.reduced.lift(y, yp)
            self._set_references(t, whole)
            return Start(whole, slopes, True, "assumed to be consistent")
        if s.n == self.n:
            self._set_references(t, y)
            found = self._from_constraints(t, y, yp)
            if found.success and not self._is_far(found.y, y):
                return refuse_changes(s, found, y, yp) if mode == "check" else found
        lifted = self._lift(t, y, yp)
        if not lifted.success:
            return lifted
        if self.references.values is None:
            self._set_references(t, lifted.y)
        found = self._from_constraints(t, lifted.y, lifted.yp, lifted=True)
        if found.success:
            found = replace(found, moved=lifted.moved, message=lifted.message)
        if mode == "check":
            return refuse_changes(s, found, np.append(y, found.y[len(y):]), None)
        return found

    def _is_far(self, found: np.ndarray, y: np.ndarray) -> bool:
        """Whether a run that goes on would jump: then the least change may be another."""
        if self.references.values is None:
            return False
        return probe.weighted_size(self._state, found - y) > 1.0

    def _lift(self, t: float, y: np.ndarray, yp: np.ndarray | None) -> Start:
        """Consistent values for a reduced system; in a run, on what was given beside it too."""
        assert isinstance(self.model, ReducedProblem)
        if self.references.values is None:
            return self.model.lift(t, y, yp)
        self._set_references(t, y)
        given = self.model.constraints.of_user(self._state, t)
        lifted = Start(y, np.zeros_like(y), False, "")
        for number, more in enumerate(given):
            lifted = self.model.lift(t, y, yp, more)
            if lifted.success:
                if number:
                    self._let_invariants_jump(t, lifted.y)
                break
        return lifted

    def settle_references(self) -> None:
        """Go on with what the last start has made of the invariants."""
        if self.references.values is None:
            self.references.keep(self.model.constraints.references(self._state))
        self.references.settle()

    def _set_references(self, t: float, y: np.ndarray) -> None:
        """Let invariants keep their values of the start of the run, or those at (t, y)."""
        self.references.no_jump()
        self.model.constraints.set_references(self._state, t, y, self.references.values)

    def _let_invariants_jump(self, t: float, y: np.ndarray) -> bool:
        """Take the invariants' values at a point where they cannot be kept; note that it is so."""
        constraints, s = self.model.constraints, self._state
        if self.references.values is None:
            return False
        constraints.set_references(s, t, y)
        now = constraints.references(s)
        assert now is not None
        rows = range(s.n_constraints - len(now), s.n_constraints)
        self.references.jump(t, now, [constraints.name_of(s, row) for row in rows])
        return True

    def _use_kinds(self, pencil: Pencil | None) -> bool:
        """Let the core treat the unknowns by kind; False if that is what it does already."""
        s, options = self._state, self.options
        kinds = self.problem.var_index
        if kinds is None and pencil is not None:
            kinds = pencil.var_index
        reduced = isinstance(self.model, ReducedProblem)
        if kinds is None:
            if s.highest_kind == 0 and not reduced and options.estimate == "auto":
                return False
            kinds = np.zeros(s.n, int)
        high = kinds.max() > 1
        estimate = self._estimate(high, reduced)
        if reduced and not high and estimate == "exclude":
            return self._leave_multipliers_out()
        code = ESTIMATES.index(estimate)
        if np.array_equal(kinds, s.array("kind")) and s.estimate == code:
            return False
        if options.estimate == "auto":
            s.share = HIGH_INDEX_SHARE if high else 1.0
        reaction = (kinds > 1) & ~s.array("fyp").reshape(s.n, s.n).any(axis=1)
        if pencil is not None and pencil.dof == 0:     # nothing evolves: they are the result
            reaction[:] = False
        s.use_kinds(kinds, reaction, code)
        return True

    def _estimate(self, high: bool, reduced: bool) -> str:
        """Return the error estimate to use; at the start of a run refuse one without a meaning."""
        others: tuple[str, ...]
        if high:
            usual, others = "mechanical", ESTIMATES
        elif reduced:
            usual, others = "exclude", ("classical", "exclude")
        else:
            usual, others = "classical", ("classical", "local")
        wish = self.options.estimate
        if wish in others:
            return wish
        known = self.options.start != "assume"     # otherwise nobody has looked at the index yet
        if wish != "auto" and known and self._state.steps == 0:
            raise ValueError(
                f"estimate={wish!r} is for unknowns of index 2 and 3 as they are written, and here "
                + ("the system is integrated reduced to index 1" if reduced else "there are none")
                + f": use one of {others}"
                + (", or form='given'" if reduced else "")
            )
        return usual

    def _leave_multipliers_out(self) -> bool:
        """Keep what a reduced system determines at every step out of the error test.

        Multipliers are exact where the rest is and do not influence what follows (PL2 section 5).
        Between the steps they are controlled where somebody asks for them.
        """
        assert isinstance(self.model, ReducedProblem)
        s = self._state
        determined = self.model.reduced.determined
        if np.array_equal(2 * determined, s.array("kind")):
            return False
        s.use_kinds(
            2 * determined, determined, ESTIMATES.index("exclude"), exact_at_steps=True
        )
        return True

    def condition(self) -> float:
        """Estimate the condition number (1-norm) of the iteration matrix as it was last factored.

        Takes a few solutions with the factors. NaN before the first step.
        """
        return condition_number(self._state)

    def refresh(self) -> None:
        """Take notice if somebody's code has changed what the residual reads."""
        if self.is_current:
            return
        before, t, y, yp = self._state, self.t, self.y, self.yp
        self.references.forget()
        replan.replan(self, (t, y, yp))
        if self._state is not before and not self.status.failed:
            self.restart(t, y, yp)
        else:
            self._set_references(t, self._state.array("phi")[: self._state.n].copy())
        self.settle_references()

    def project(self, t: float, y: np.ndarray) -> np.ndarray:
        """Return the point on the constraints next to (t, y); where there is none, y itself."""
        s = self._state
        if s.n_constraints == 0:
            return y
        s.array("y")[:] = y
        s.t_new = t
        status = project_core.project_point(s)
        raise_users(s)
        return s.array("y").copy() if status == codes.OK else y

    def step(self) -> Status:
        """Take one step and return the status; a finished or failed run stays where it is."""
        taken = self._state.steps
        self.refresh()
        if self.model.modes is not None and self.watched is None:
            self.watched = replan.switches(self, timed=True)
        while self.status == Status.RUNNING and self._state.steps == taken:
            self.advance(1)
        if self.model.modes is not None and self._state.steps > taken:
            replan.pass_surfaces(self)
        return self.status

    def advance(self, count: int) -> int:
        """Take up to `count` steps without returning to Python; return the core's code."""
        s = self._state
        self.t_old = s.t if count == 1 else None
        began = time.perf_counter()
        code = step.advance(s, self._before_next_look(count))
        raise_users(s)
        self.exception = take_refusal(s)
        if self.trust.objects(code, time.perf_counter() - began):
            self.status = Status.TRACE_DIFFERS
            return codes.PAUSED
        if code in GOING_ON and self._is_worn() and replan.choose_again(self):
            return codes.PAUSED
        if code == codes.PUZZLED and s.rank_changed:
            replan.look_at_rank(self)
            return codes.PAUSED
        if code == codes.PUZZLED and s.lowest_order > 1 and self._begin_here():
            return codes.PAUSED
        if code == codes.PUZZLED or code in PUZZLING:
            changed = self._look_again()
            if changed or code == codes.PUZZLED:
                return codes.PAUSED
        if code in STALLED and replan.rescue(self):
            return codes.PAUSED
        if code < 0:
            self.status = Status(code)
        elif code == codes.REACHED_END:
            self.status = Status.REACHED_END
        return code

    def _look(self, t: float, y: np.ndarray, yp: np.ndarray) -> Pencil | None:
        """Local index and kinds at a point; None for index 0 and 1, or if the user gave them."""
        if self.problem.var_index is not None or probe.move_to(self._state, t, y, yp) != 0:
            return None
        pencil = find_kinds(self._state, t, y, yp)
        if pencil is None or pencil.index is None or pencil.index < 2:
            return None
        return pencil

    def _is_index_1(self, t: float, y: np.ndarray, yp: np.ndarray | None) -> bool:
        """Whether a failed search for consistent values is due to the values, not to the index."""
        pencil = find_kinds(self._state, t, y, np.zeros_like(y) if yp is None else yp)
        return pencil is None or (pencil.index is not None and pencil.index <= 1)

    def _look_again(self) -> bool:
        """After a failure: go on from here if the unknowns turn out to be of other kinds."""
        s = self._state
        if isinstance(self.model, ReducedProblem) and self.model.reduced.form == 1:
            return False                       # its kinds follow from the reduction
        t, y, yp = s.t, s.array("phi")[: s.n].copy(), s.array("yp_n").copy()
        s.look_after = 2 * s.steps + 100
        pencil = self._look(t, y, yp)
        if pencil is None or refuse_pencil(pencil) is not None or not self._use_kinds(pencil):
            return False
        probe.move_to(s, t, y, yp)
        return self._begin_core(t, Start(y, yp, True, ""), 0.0) == codes.OK

    def _begin_here(self) -> bool:
        """After failures at index 3 as written: go on from consistent values next to the last.

        The last velocities are off their hidden constraints by what was within the tolerance. A
        much shorter step would make multipliers of that.
        """
        s = self._state
        if s.t == s.t_began:
            return False
        t, y, yp = s.t, s.array("phi")[: s.n].copy(), s.array("yp_n").copy()
        first_step, weight = abs(s.h), s.share * s.array("weight")
        weight[s.array("kind") > 2] = 0.0
        s.t_began = t                          # once
        found = self._find_start(t, y, yp, "auto")
        probe.move_to(s, t, y, yp)
        if not found.success or np.any(np.abs(found.y - y) * weight > NEARBY):
            return False
        return self._begin_core(t, found, first_step) == codes.OK

    def _before_next_look(self, count: int) -> int:
        """Limit the number of steps where the choice of a reduction has to be looked at."""
        if not self._rows_were_chosen:
            return count
        return min(count, LOOK_EVERY - self._state.steps % LOOK_EVERY)

    @property
    def _rows_were_chosen(self) -> bool:
        return isinstance(self.model, ReducedProblem) and bool(self.model.reduced.enters)

    def _is_worn(self) -> bool:
        if not self._rows_were_chosen or self._state.steps % LOOK_EVERY:
            return False
        assert isinstance(self.model, ReducedProblem)
        s = self._state
        return self.model.is_worn(s.t, s.array("phi")[: s.n].copy(), s.array("yp_n").copy())

    @property
    def t(self) -> float:
        """Current time."""
        return self._state.t

    @property
    def y(self) -> np.ndarray:
        """Solution at the current time (a copy)."""
        return self._state.array("phi")[: self.n].copy()

    @property
    def yp(self) -> np.ndarray:
        """Derivative at the current time (a copy)."""
        return self._state.array("yp_n")[: self.n].copy()

    @property
    def order(self) -> int:
        """Order of the last step."""
        return self._state.last_k

    @property
    def step_size(self) -> float:
        """Size of the last step."""
        return self._state.last_h

    @property
    def next_step(self) -> float:
        """Size the next step will be tried with."""
        return self._state.h

    @property
    def stats(self) -> Statistics:
        """Work so far."""
        return Statistics.of(self._state, checks=self.trust.points)

    def dense_output(self) -> LocalInterpolant:
        """Return the polynomial over the last step: ``dense_output()(t) -> (y, yp)``."""
        if self._state.steps == 0:
            raise RuntimeError("dense_output needs a step first")
        return self.polynomial().restricted(self.n)

    def polynomial(self) -> LocalInterpolant:
        """Return the same for all unknowns that are integrated."""
        return LocalInterpolant(*interpolate.last_step_polynomial(self._state))


def new_state(problem: Problem, n: int, options: Options) -> State:
    """Make the core's memory for a problem of n unknowns and attach its functions."""
    if problem.size(n) != n:
        rtol, atol = options.tolerances(n)
        owner, slack = problem.owner(n), problem.slack(n)
        n = len(owner)
        require_matrices(n, OF_A_RUN)
        state = State(n, np.minimum(slack * rtol[owner], 1.0), slack * atol[owner])
    elif options.same_for_all:
        state = State(n, options.rtol, options.atol)
    else:
        state = State(n, *options.tolerances(n))
    state.max_order = options.max_order
    state.max_step = options.max_step
    state.controller = CONTROLLERS.index(options.controller)
    state.error_norm = NORMS.index(options.error_norm)
    state.newton_norm = NORMS.index(options.newton_norm)
    state.newton_tolerance = options.newton_tolerance
    state.newton_by_step = options.newton_test == "yp"
    if options.scaling != "none":
        state.scale_matrix(SCALINGS.index(options.scaling))
    problem.attach(state)
    if n <= SMALL:
        linear.use_small_factor(state)
    else:
        from tether._core import lapack

        lapack.use_lapack(state)
    return state


def _check_history(history: Any, state: State) -> tuple[np.ndarray, np.ndarray]:
    try:
        t, y = (np.ascontiguousarray(part, float) for part in history)
    except (TypeError, ValueError):
        raise ValueError("history must be a pair (times, values)") from None
    if t.ndim != 1 or len(t) == 0 or y.shape != (state.n, len(t)):
        raise ValueError(
            f"history must be m times and values of shape ({state.n}, m), got shapes "
            f"{t.shape} and {y.shape}"
        )
    if np.any(state.direction * np.diff(np.append(t, state.t)) <= 0):
        raise ValueError("history must have its times before t0, oldest first")
    if not (np.all(np.isfinite(t)) and np.all(np.isfinite(y))):
        raise ValueError("history must be finite")
    return t, np.ascontiguousarray(y.T)
