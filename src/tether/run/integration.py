"""Integration: one run, from its start to its end.

It owns the model that is integrated, the core's memory, the start and the status, and it decides
what to do when the core returns with a question. The method takes the steps (`method.py`); where
the equations change, `replan.py` chooses another model.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from tether._core import codes, probe
from tether._core import project as project_core
from tether._core.adapters import DOMAIN_ERRORS, raise_user_error, take_refusal
from tether._core.sparse import Sparse
from tether.base.status import REACHED_END, RUNNING, TRACE_DIFFERS, Status
from tether.run import recover, replan
from tether.run.bdf import BDF
from tether.run.beginning import begin
from tether.run.breaks import Breaks
from tether.run.jumps import Jumped, jumped
from tether.run.kinds import use_kinds
from tether.run.switching import Switching
from tether.run.task import Task
from tether.run.trust import Trust
from tether.start.find import StartFinder
from tether.start.first_step import first_step as choose_first_step
from tether.start.references import References

if TYPE_CHECKING:
    from tether._core.state import State
    from tether.plan.model import Model
    from tether.problem.names import Names
    from tether.problem.options import Options
    from tether.problem.problem import Problem
    from tether.run.method import Method, Polynomial
    from tether.run.watch import Switch
    from tether.structure.leaks import Leak
    from tether.structure.modes import Sides
    from tether.structure.start import Start

__all__ = ["Integration"]

# Codes returned by the core when all is well.
GOING_ON = (codes.PAUSED, codes.COMPARISON_DUE)
# Steps between checks of the rows chosen from a derivative array.
CHECK_EVERY = 10

Kept: TypeAlias = (
    "tuple[Model, State, Start, Status, tuple[float, np.ndarray, np.ndarray | None], int]"
)
# Sides of surfaces before one is passed and after it, and which ones the solution passes.
Way: TypeAlias = "tuple[Sides, Sides, tuple[int, ...]]"


class Integration:
    """One run of a problem from t0 towards `t_bound`; the arguments are those of `tether.Bdf`.

    Attributes
    ----------
    problem, n, options : Problem, int, Options
        The task; n is the number of the user's unknowns.
    model, state : Model, State
        The model being integrated and its memory. Both change when the structure does.
    start, given : Start, tuple
        The last start, and the values it was found from.
    status, exception : Status, Exception or None
        The status; and the exception of a function during the step that failed.
    references : References
        The values that invariants must keep.
    jumps : list of Jumped
        Where unknowns have jumped so far.
    trust : Trust
        Comparisons of traces with the functions themselves.
    """

    start: Start
    status: Status
    exception: Exception | None
    given: tuple[float, np.ndarray, np.ndarray | None]
    model: Model
    state: State
    method: Method = BDF
    # what only few runs change
    t_old: float | None = None
    tried_at: float | None = None              # where a failure last led to a new analysis ...
    reduced_at: float | None = None            # ... or to another choice of reduction
    stride = math.inf                          # size of the last step before a restart
    t_leaks = t_beside = math.nan              # since when there are `leaks` and `beside`
    by_pairs = False                           # whether all ideal diodes are between modes
    floated_at: float | None = None            # where their sides were last chosen after a failure
    lessened_at = math.nan                     # where another start was chosen, with a smaller jump
    watched: list[Switch] | None = None        # surfaces of the structure, for `step`
    changed = False                            # whether the residual has changed
    _breaks: Breaks | None = None              # used by `step`

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
        variable_units: Any = None,
        tape: Any = None,
    ) -> None:
        self.began = time.perf_counter()
        self.tape = tape                       # records a run whose derivatives are wanted
        if tape is not None:
            self.method = tape.method(self)
        self.task = task = Task(
            problem, t0, y0, yp0, options, t_bound=t_bound, names=names,
            equation_names=equation_names, variable_units=variable_units,
        )
        self.problem, self.options, self.units = task.problem, task.options, task.units
        self.n, self.note = task.n, ""
        self._any_wanted = dense_output        # whether unknowns are wanted between the steps
        self.plans = 1                         # number of structures so far
        self.leaks: tuple[Leak, ...] = ()      # terms added for what the equations leave open
        self.beside: tuple[Leak, ...] = ()     # the same beside ideal diodes that all block
        self.slopes_are_old = False            # slopes from before a change are only guesses
        self.between_breaks = False            # whether the next stretch ends at a break
        # sides on which the solution continued without a jump
        self.ways_without_jump: dict[Way, Sides] = {}
        self.trust = Trust(self)
        self._switching: Switching | None = None
        self.references = References()
        self.jumps: list[Jumped] = []
        begin(self, task.t0, task.y, task.yp, task.t_bound)
        if history is not None:
            from tether.run.history import check_history  # late, to save time

            self.method.add_past(self.state, *check_history(history, self.state))

    @cached_property
    def wanted(self) -> np.ndarray:
        """Which unknowns are wanted between the steps."""
        return np.full(self.n, self._any_wanted, bool)

    def kept(self) -> Kept:
        """Return what is needed to come back to this point by `go_back_to`."""
        return self.model, self.state, self.start, self.status, self.given, self.plans

    def go_back_to(self, kept: Kept) -> None:
        """Undo an attempt that has failed."""
        model, self.state, self.start, self.status, self.given, self.plans = kept
        self.adopt(model)

    def adopt(self, model: Model) -> None:
        """Integrate this model from now on."""
        self.changed |= model.reading != self.model.reading
        self.model = model
        self.trust.adopt(model)
        self.read_constraints()
        self.watched = None

    def read_constraints(self) -> None:
        """Note what the constraints read, for `is_current`."""
        self._constraints_read = self.model.constraints.read(self.n, self.problem.args)

    @property
    def is_current(self) -> bool:
        """Whether functions and arguments are unchanged since the plan was made."""
        now = self.model.constraints.read(self.n, self.problem.args)
        return self.model.is_current and now == self._constraints_read

    @property
    def names(self) -> Names:
        """Names of variables and equations, given or read off the function."""
        return self.task.names

    @property
    def how(self) -> str:
        """How the equations are evaluated, in words."""
        words = self.model.how
        if self.model.plan is None and self.note:
            words += f": {self.note}"
        if isinstance(self.state.matrix, Sparse) or self.state.matrix.has_no_entries:
            words += f"; {self.state.matrix.words}"
        if self.plans > 1:
            times = "once" if self.plans == 2 else f"{self.plans - 1} times"
            words += f"; the structure changed {times}"
        return words

    def restart(
        self,
        t: float,
        y: np.ndarray,
        yp: np.ndarray | None,
        first_step: float | None = None,
        mode: str = "auto",
    ) -> None:
        """Restart at (t, y) with a consistent y'; `mode` as in `Options.start`."""
        s = self.state
        self.given = t, y, yp
        self._find_start(mode)
        refusal = take_refusal(s)
        if not self.start.success and refusal is None:
            refusal = self.model.exception_at(t, y, yp)
        self.exception = None if self.start.success else refusal
        if use_kinds(s, self.model, self.options, self.start.pencil):
            probe.move_to(s, t, self.start.y, self.start.yp)  # set the weights for these tolerances
        self.want_between()
        h = first_step or choose_first_step(s, self.start, self.between_breaks)
        code = self.method.begin(s, t, self.start, h)
        self._expect_rank()
        self.trust.watch(s)
        if not self.start.success:
            self.status = self.start.status
        else:
            self.status = RUNNING if code == codes.OK else Status(code)

    def _find_start(self, mode: str) -> None:
        """Find consistent values, with conditions frozen on the sides where the values lie."""
        if self._switching is None and not self.model.freezes:
            self.start = self.find_start(mode)
        else:
            self.switching.find_start(mode)

    @property
    def switching(self) -> Switching:
        """The conditions that are frozen during a step; most runs have none."""
        if self._switching is None and self.model.frozen_rows is not None:
            from tether.run.array_switching import ArraySwitching  # late, to save time

            self._switching = ArraySwitching(self)
        elif self._switching is None:
            self._switching = Switching(self)
        return self._switching

    def find_start(self, mode: str = "auto") -> Start:
        """Find consistent values near the given ones, with conditions frozen as they are."""
        return self.finder.find(*self.given, mode)

    def shorten_first_step(self, h: float) -> None:
        """Begin again at the point where the run has just begun, with a shorter step."""
        self.method.begin(self.state, self.state.t, self.start, h)

    def want_between(self, unknowns: np.ndarray | None = None) -> None:
        """Control, between the steps, the unknowns that are wanted there, including `unknowns`."""
        if unknowns is not None:
            self.wanted |= unknowns
            self._any_wanted |= bool(unknowns.any())
        shares = self.model.shares             # they show where a solution leaves its surfaces
        if not self._any_wanted and not shares:
            return
        s = self.state
        marks = np.zeros(s.n, np.intc)
        marks[: self.n], marks[self.n : self.n + shares] = self.wanted, 1
        if s.jacobian_exists:
            marks[~s.with_slopes] *= 2
        s.want(marks)

    def _expect_rank(self) -> None:
        """Let the core notice when the equations' constraints no longer fit the plan.

        There are then fewer independent ones than at the start, or more if some were redundant.
        """
        s, model = self.state, self.model
        if not model.is_reduced or model.constraints.all:
            return
        s.must_hold = True
        s.rank_floor, s.rank_ceiling = s.rank, 2**30
        s.rank_changed = s.rank_understood = False
        if s.rank and model.redundant:
            s.rank_ceiling = s.rank

    @property
    def finder(self) -> StartFinder:
        """Finder of consistent values for the current model and state."""
        return StartFinder(
            self.model, self.state, self.options, self.references, self.slopes_are_old
        )

    def record_jumps(self, before: np.ndarray | None = None, on_purpose: bool = False) -> None:
        """Record what jumped at the last start, and update the values that invariants keep.

        `before` are the values before the jump, if not those from which the start was found; they
        may have been changed `on_purpose`.
        """
        if self.start.success:
            t, y, _ = self.given
            found = jumped(
                t, y if before is None else before, self.start, self.options, on_purpose
            )
            if found is not None:
                self.jumps.append(found)
        if self.references.values is None:
            self.references.keep(self.model.constraints.references(self.state))
        self.references.settle()

    def uncount_step(self) -> None:
        """Do not count a step of which nothing is left, since an event ends it where it began."""
        self.state.steps -= 1

    def check_limits(self, seconds: float) -> None:
        """Set the status of a run that has taken more steps or time than the options allow."""
        if self.status != RUNNING:
            return
        options = self.options
        if options.max_steps is not None and self.state.steps >= options.max_steps:
            self.status = Status.MAX_STEPS
        elif options.max_seconds is not None and seconds > options.max_seconds:
            self.status = Status.MAX_SECONDS

    def refresh(self) -> bool:
        """Check whether the user's code has changed what the residual reads; act on it and tell."""
        if self.is_current:
            return False
        before, t, y, yp = self.state, self.t, self.y, self.yp
        self.references.forget()
        self.switching.leave_surfaces()
        replan.replan(self, (t, y, yp))
        if self.state is not before and not self.status.failed:
            self.restart(t, y, yp)
        else:
            self.switching.go_on()
            self.finder.set_references(t, self.state.y_now.copy())
        self.record_jumps()
        return True

    def project(self, t: float, y: np.ndarray) -> np.ndarray:
        """Return the point on the constraints next to (t, y), or y itself if there is none."""
        s = self.state
        if s.n_constraints == 0:
            return y
        status, found = project_core.projected(s, t, y)
        raise_user_error(s)
        return found if status == codes.OK else y

    def step(self) -> Status:
        """Take one step and return the status; a finished or failed run does not move."""
        self.refresh()
        before = self.t
        while self.status == RUNNING and self.t == before:
            self._step()
        return self.status

    def _step(self) -> None:
        """Try to take one step; nothing is left of one that surfaces turn back where it began."""
        taken = self.state.steps
        self._serve_breaks()
        while self.status == RUNNING and self.state.steps == taken:
            if self.model.modes is not None and self.watched is None:
                self.watched = replan.switches(self, timed=False)
            self.advance(1)
        if self.model.is_switched and self.state.steps > taken:
            replan.pass_surfaces(self)
        if self._breaks is not None and self._breaks.reached:
            self.status = RUNNING       # the next step restarts

    @property
    def t_bound(self) -> float:
        """Where the run ends."""
        return self.state.t_end if self._breaks is None else self._breaks.t_final

    def move_bound(self, t_bound: float) -> None:
        """Let a run that is taken step by step end at another time, which must lie ahead."""
        s = self.state
        if not s.direction * (t_bound - s.t) > 0.0:
            raise ValueError(f"t_bound must lie ahead of t = {s.t}, got {t_bound}")
        if self.status == REACHED_END:
            self.status = RUNNING
        if self._breaks is None:
            s.t_end = t_bound
            return
        is_at_break = s.t == s.t_end != self._breaks.t_final
        self._breaks.t_final = t_bound
        if not is_at_break:                    # else the next step crosses it first
            self._breaks.aim()

    def _serve_breaks(self) -> None:
        """Before a step: restart where the equations switch, or let the step end there."""
        if self.status != RUNNING:
            return
        if self._breaks is None:
            self._breaks = Breaks(self)
            self._breaks.pass_at_once()
        elif self.state.t == self.state.t_end:
            self._breaks.cross()
        self._breaks.aim()

    def advance(self, count: int) -> int:
        """Take up to `count` steps without returning to Python; return the core's code."""
        s = self.state
        self.t_old = s.t if count == 1 else None
        began = time.perf_counter()
        code = self.method.advance(s, self._before_next_check(count))
        raise_user_error(s)
        self.exception = take_refusal(s)
        if self.trust.finds_difference(s, code, time.perf_counter() - began):
            self.status = TRACE_DIFFERS
            return codes.PAUSED
        if code in GOING_ON and self._is_worn() and replan.reduce_again(self):
            return codes.PAUSED
        if recover.goes_on(self, code):
            return codes.PAUSED
        if code < 0:
            self.status = Status(code)
            if self.status == Status.NON_FINITE and self.exception is None:
                n = self.n
                error = self.model.exception_at(s.t_new, s.y_tried[:n], s.yp_tried[:n])
                if error is not None and not isinstance(error, DOMAIN_ERRORS):
                    raise error                # as if the function had been called
                self.exception = error
        elif code == codes.REACHED_END:
            self.status = REACHED_END
        return code

    def _before_next_check(self, count: int) -> int:
        """Limit the number of steps so that a choice of reduction is checked in time."""
        if not self.model.rows_were_chosen:
            return count
        return min(count, CHECK_EVERY - self.state.steps % CHECK_EVERY)

    def _is_worn(self) -> bool:
        if not self.model.rows_were_chosen or self.state.steps % CHECK_EVERY:
            return False
        s = self.state
        return self.model.is_worn(s.t, s.y_now.copy(), s.yp_now.copy())

    @property
    def t(self) -> float:
        """Current time."""
        return self.state.t

    @property
    def y(self) -> np.ndarray:
        """Solution at the current time (a copy)."""
        return self.state.y_now[: self.n].copy()

    @property
    def yp(self) -> np.ndarray:
        """Derivative at the current time (a copy)."""
        return self.state.yp_now[: self.n].copy()

    def polynomial(self) -> Polynomial:
        """Return the polynomial over the last step, of all unknowns that are integrated."""
        return self.method.polynomial(self.state)
