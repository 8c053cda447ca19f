"""Model: what is integrated for a problem.

A model has the problem that the user wrote. This is integrated as written, by calling the functions
(`AsWritten`) or running a program (`TracedModel`), or reduced to a lower index (`ReducedModel`).
Models for functions of whole arrays are in `on_arrays.py`.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from tether._core import adapters, codes, colours, jacobian
from tether._core.sparse import Sparse
from tether._core.state import State
from tether.base.pattern import Pattern
from tether.plan.constraints import Constraints
from tether.plan.ledger import Ledger
from tether.plan.plan import Plan
from tether.plan.whole_arrays import works_on_arrays
from tether.problem.names import counted
from tether.problem.problem import Problem
from tether.problem.sparsity import Sparsity
from tether.structure.equations import regularity
from tether.structure.frozen import Frozen
from tether.structure.hidden import Reduced
from tether.structure.modes import Modes, Sides
from tether.structure.reduced_start import Search
from tether.structure.scaling import Units
from tether.structure.sliding import Pins
from tether.structure.switch_times import SwitchTimes
from tether.trace.backend import Backend
from tether.trace.reading import Reading, read_function
from tether.trace.verify import ArrayPair, Pair

if TYPE_CHECKING:
    from tether.structure.frozen_rows import FrozenRows
    from tether.structure.row_reduction import LeadingMatrix, RowReduction

__all__ = [
    "AsWritten", "Given", "Model", "Point", "ReducedModel", "Tolerance", "TracedModel",
    "is_current",
]

# Rows of a derivative array are chosen again when their regularity has fallen to this share.
WORN_REGULARITY = 0.1
# A derivative in the array may be less accurate by this factor for each order.
SLACK_PER_ORDER = 10.0
# With fewer unknowns, the pattern of the matrices is not worth finding.
PATTERN_FROM = 200
# From so many unknowns on, a residual of whole arrays costs less than guessing its solution.
CHEAP_FROM = 500
# First guess of the share of one side in a mixture of the two sides of a surface.
EVEN_SHARE = 0.5

Point = tuple[float, np.ndarray, np.ndarray]
Given = tuple[float, np.ndarray, np.ndarray | None]
Tolerance = tuple[np.ndarray, np.ndarray]      # of y and of y'


class Model:
    """What is integrated for a problem of n unknowns.

    Attributes
    ----------
    problem : Problem
        What the user wrote.
    n, size : int
        Number of the user's unknowns, and of those that are integrated.
    constraints : Constraints
        Those of the user, and those found in the equations.
    plan : Plan or None
        What is known from the trace; None where the functions are called.
    reading : Reading or None
        All that the residual depended on when the model was made; None where it is called.
    reduced : Reduced or None
        The equations of lower index that are integrated in place of the user's.
    row_reduction : RowReduction or None
        The same for a function of whole arrays.
    is_reduced : bool
        Whether there is either of them.
    rows_were_chosen : bool
        Whether the equations are rows of a derivative array, which may wear out.
    modes, sides : Modes or None, tuple of bool
        Conditions on which the structure depends, and their answers in this model.
    freezes : bool
        Whether it has conditions on unknowns that are frozen while a step is taken.
    """

    plan: Plan | None = None
    reading: Reading | None = None
    reduced: Reduced | None = None
    row_reduction: RowReduction | None = None
    is_reduced = rows_were_chosen = freezes = False
    modes: Modes | None = None
    sides: Sides = ()
    frozen: Frozen | None = None               # conditions that can be frozen, if there are any
    frozen_rows: FrozenRows | None = None      # the same for a function of whole arrays
    slides: tuple[int, ...] = ()               # numbers of the surfaces on which it slides
    pins: Pins = ()                            # others on which it stays, with given shares
    shares = 0                                 # how many; each is an unknown after the user's
    ledger: Ledger | None = None               # what comparisons with the function may cost
    inputs: np.ndarray = np.zeros(0)           # inputs of the user's function
    values: np.ndarray = np.zeros(0)           # inputs of the programs: these, and shifts
    units: Units | None = None                 # those with which a reduced system was made

    def __init__(self, problem: Problem, n: int) -> None:
        self.problem, self.n, self.size = problem, n, n
        self.constraints = Constraints(problem.constraints, problem.invariants)

    @property
    def pattern(self) -> Pattern | None:
        """Where F_y and F_y' have entries; None if that is not known."""
        return None

    @property
    def is_full(self) -> bool:
        """Whether the pattern was looked for, and the matrices turned out to be nearly full."""
        return False

    def attach(self, state: State) -> None:
        """Put the equations behind the core's seams."""
        raise NotImplementedError

    @property
    def how(self) -> str:
        """How the equations are evaluated, in words."""
        raise NotImplementedError

    @property
    def owner(self) -> np.ndarray:
        """For every unknown, the number of the user's variable to which it belongs."""
        return np.arange(self.size)

    @property
    def slack(self) -> np.ndarray:
        """For every unknown, how much less accurate it may be than its owner."""
        return np.ones(self.size)

    def extended(
        self, y: np.ndarray, yp: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Add guesses of shares to the user's unknowns."""
        if not self.shares or len(y) != self.n:
            return y, yp
        whole = np.append(y, np.full(self.shares, EVEN_SHARE))
        return whole, None if yp is None else np.append(yp, np.zeros(self.shares))

    @property
    def determined(self) -> np.ndarray:
        """Which of the user's starting values are replaced without a warning."""
        return np.zeros(self.n, bool)

    @property
    def calls_back(self) -> bool:
        """Whether steps call a function of the user's, which may have side effects."""
        return True

    @property
    def multipliers(self) -> np.ndarray | None:
        """Mark by 1 the unknowns that reduced equations determine; None if not reduced."""
        if self.row_reduction is not None:
            return self.row_reduction.multipliers.astype(np.intc)
        return None if self.reduced is None else self.reduced.determined

    @cached_property
    def leading(self) -> LeadingMatrix:
        """The matrix that determines slopes, multipliers and jumps of whole arrays."""
        from tether.structure.row_reduction import LeadingMatrix  # late, to save time

        assert self.row_reduction is not None
        return LeadingMatrix(self.row_reduction.system, self.values)

    @property
    def is_index_1(self) -> bool:
        """Whether it was reduced to index 1."""
        return self.reduced is not None and self.reduced.form == 1

    @property
    def concealed_index(self) -> int | None:
        """The index of equations that are not reduced, if it is above 1 and not the local index.

        Only their derivative array shows it, at points that satisfy it; elsewhere its ranks prove
        nothing. The treatment of index 2 and 3 as written relies on the local index, and would be
        applied to the wrong unknowns or not at all.
        """
        found = None if self.plan is None else self.plan.analysis
        if self.is_reduced or found is None or found.ranks is None or found.index is None:
            return None
        if not found.ranks.consistent:
            return None
        return found.index if found.index > 1 and found.index != found.local_index else None

    @property
    def only_here(self) -> bool:
        """Whether it was made from the current values, not from the structure alone."""
        return self.plan is not None and self.plan.only_here

    @property
    def redundant(self) -> bool:
        """Whether some of the constraints found in the equations repeat each other."""
        found = None if self.plan is None else self.plan.analysis
        return found is not None and found.redundant

    @property
    def is_switched_by_time(self) -> bool:
        """Whether the equations have conditions on time."""
        return self.plan is not None and self.plan.is_switched_by_time

    @property
    def switch_times(self) -> SwitchTimes | None:
        """When conditions on time alone change; None if no such conditions are known."""
        return None if self.plan is None else self.plan.switch_times

    @property
    def is_current(self) -> bool:
        """Whether what was attached still is what the functions compute; always if called."""
        return True

    def exception_at(
        self, t: float, y: np.ndarray, yp: np.ndarray | None
    ) -> Exception | None:
        """Return the exception that the residual raises where its program is NaN, or None."""
        return None

    def sides_at(self, t: float, y: np.ndarray, yp: np.ndarray) -> Sides:
        """On which side of each surface between modes a point lies."""
        return self.sides

    def sides_after(self, old: Given, new: Point, tolerance: Tolerance) -> Sides:
        """On which sides a point lies after a move; only surfaces clearly crossed are changed."""
        return self.sides

    def band(self, surface: int, point: Point, tolerance: Tolerance) -> float:
        """Width of the band around a surface, made by a tolerance; zero if a point is outside."""
        return 0.0

    def is_worn(self, t: float, y: np.ndarray, yp: np.ndarray) -> bool:
        """Whether the rows chosen of a derivative array now determine derivatives badly."""
        return False

    def has_structure_of(self, other: Model) -> bool:
        """Whether its unknowns and constraints are the same as those of another model."""
        mine, theirs = self.reduced, other.reduced
        if self.shares != other.shares:
            return False
        if mine is None or theirs is None:
            return mine is theirs
        return (
            mine.unknowns == theirs.unknowns and mine.stages == theirs.stages
            and len(mine.levels) == len(theirs.levels)
        )

    def has_freedom_of(self, other: Model) -> bool:
        """Whether another model is reduced from the same index and has as many free values."""
        if self.reduced is None or other.reduced is None:
            return False
        assert self.plan is not None
        assert other.plan is not None
        mine, theirs = self.plan.analysis, other.plan.analysis
        if mine is None or theirs is None:
            return False
        return (mine.index, mine.dof) == (theirs.index, theirs.dof)

    def pair(self) -> Pair | ArrayPair | None:
        """Pair the program of the user's equations with the function; None if it is called."""
        return None

    @property
    def is_switched(self) -> bool:
        """Whether it has conditions on unknowns that a run has to watch."""
        return self.modes is not None or self.freezes

    def freeze(self, sides: np.ndarray, state: State) -> None:
        """Freeze the conditions in the program that a state runs; here there are none."""

    def count(self, state: State) -> None:
        """Note the work of a run."""


class AsWritten(Model):
    """The user's functions, called; `point` is where their derivatives may be examined.

    What is found there is kept in `known`, the plan of the same functions, if there is one.
    """

    def __init__(
        self, problem: Problem, n: int, point: Given | None = None, known: Plan | None = None
    ) -> None:
        super().__init__(problem, n)
        self.point, self._known = point, known
        self.calls = 0                 # of the function, to find the sparsity

    @cached_property
    def sparsity(self) -> Sparsity | None:
        """The patterns of F_y and F_y', as given by the user or found from values."""
        if self.problem.sparsity is not None or self.point is None or self.n < PATTERN_FROM:
            return self.problem.sparsity
        if self._known is not None and self._known.sparsity is not None:
            return self._known.sparsity
        from tether.plan.discover import see_sparsity  # late, to save time

        seen, calls = see_sparsity(self.problem, *self.point)
        self.calls += calls
        if self._known is not None:
            self._known.sparsity = seen
        return seen

    @cached_property
    def is_cheap(self) -> bool:
        """Whether a residual costs less than a guess that might save one."""
        if self.point is None or self.problem.jac is not None:
            return False
        t, y, yp = self.point
        self.calls += 1
        return works_on_arrays(self.problem, t, y, np.zeros_like(y) if yp is None else yp)

    @property
    def pattern(self) -> Pattern | None:
        """Where F_y and F_y' have entries; None if that is not known."""
        return None if self.sparsity is None else self.sparsity.both

    @property
    def is_full(self) -> bool:
        """Whether the pattern was looked for, and the matrices turned out to be nearly full."""
        looked = self.point is not None and self.n >= PATTERN_FROM and self.problem.capsule is None
        return looked and self.sparsity is None

    def attach(self, state: State) -> None:
        """Put the problem's functions behind the core's seams."""
        problem = self.problem
        if problem.capsule is not None:
            adapters.use_c_residual(
                state, problem.capsule, problem.returns_status, problem.takes_data
            )
        else:
            # without matrix entries, a linear model costs as many residuals as it saves
            is_expensive = not (
                state.matrix.has_no_entries or (self.n >= CHEAP_FROM and self.is_cheap)
            )
            adapters.use_python_residual(
                state, problem.fun, problem.args, problem.fills, is_expensive
            )
        if state.matrix.has_no_entries:
            from tether._core.matrix_free import use_directions  # late, to save time

            use_directions(state)
            return
        if problem.jac is not None:
            adapters.use_python_jacobian(state, problem.jac, problem.args)
            return
        jacobian.use_differences(state)
        known = self.sparsity if isinstance(state.matrix, Sparse) else problem.sparsity
        if known is not None:
            colours.use_patterns(state, known.fy, known.fyp)
        state.nfev += self.calls
        if problem.terms is not None:
            adapters.use_python_terms(state, problem.terms, problem.args)
        if problem.fyp is not None:
            state.matrix.put(codes.OF_YP, problem.fyp)
            state.fyp_known = True

    @property
    def how(self) -> str:
        """How the equations are evaluated, in words."""
        return "called as it is"


def is_current(model: Model, plan: Plan) -> bool:
    """Tell whether all that a function reads is unchanged since its plan was made."""
    problem = model.problem
    now = read_function(problem.fun, model.n, problem.args, problem.fills)
    if now != model.reading or model.reading is None:
        return False
    return np.array_equal(model.inputs, plan.args(problem.args, model.reading.hidden))


class TracedModel(Model):
    """The user's equations and their Jacobian, run as a program in the core."""

    plan: Plan
    reading: Reading

    def __init__(
        self, problem: Problem, n: int, plan: Plan, reading: Reading, backend: str
    ) -> None:
        super().__init__(problem, n)
        self.plan, self.reading, self.wanted, self.ledger = plan, reading, backend, plan.ledger
        self.frozen, self.slides, self.shares = plan.frozen, plan.slides, len(plan.slides)
        self.freezes, self.size = plan.frozen is not None, n + self.shares
        self.pins = plan.pins
        self.inputs = plan.args(problem.args, reading.hidden)
        self.values = plan.with_shifts(self.inputs)
        self.backend: Backend | None = None    # set when it is attached
        self.modes, self.sides = plan.modes, plan.sides or ()

    @property
    def pattern(self) -> Pattern:
        """Where F_y and F_y' have entries."""
        return self.plan.pattern

    def attach(self, state: State) -> None:
        """Put the program behind the core's seams; a Jacobian of the user's stays in place."""
        self._attach_program(state)
        if self.problem.jac is not None:
            adapters.use_python_jacobian(state, self.problem.jac, self.problem.args)

    def _attach_program(self, state: State) -> None:
        self.backend = self.plan.backend(self.wanted)
        self.backend.attach(state, self.values)

    def freeze(self, sides: np.ndarray, state: State) -> None:
        """Freeze the conditions of the program that a state runs, on sides of their surfaces."""
        assert self.plan.frozen is not None
        self.values = np.append(self.inputs, self.plan.frozen.shifts(sides))
        state.residual_adapter.set_args(self.values)

    @property
    def how(self) -> str:
        """How the equations are evaluated, in words."""
        return f"traced, as written{self._compiled}{self._without}"

    @property
    def _compiled(self) -> str:
        if self.backend is not None and self.backend.name == "c":
            return "; compiled to C"
        reason = self.backend.reason if self.backend is not None and self.wanted == "c" else ""
        return f"; not compiled to C: {reason}" if reason else ""

    @property
    def _without(self) -> str:
        left_out = self.plan.original.left_out
        return f"; left out: {', '.join(left_out)}" if left_out else ""

    def exception_at(
        self, t: float, y: np.ndarray, yp: np.ndarray | None
    ) -> Exception | None:
        """Return the exception that the residual raises where its program is NaN, or None."""
        if not self.plan.original.raises:
            return None
        slopes = np.zeros_like(y) if yp is None else yp.copy()
        out = [np.zeros(self.n)] if self.problem.fills else []
        try:
            self.problem.fun(t, y.copy(), slopes, *out, *self.problem.args)
        except Exception as error:
            return error
        return None

    @property
    def calls_back(self) -> bool:
        """Whether steps call a function of the user's, which may have side effects."""
        return self.constraints.called or self.problem.jac is not None

    @property
    def is_current(self) -> bool:
        """Whether all that the residual reads is unchanged since it was traced."""
        return is_current(self, self.plan)

    def sides_at(self, t: float, y: np.ndarray, yp: np.ndarray) -> Sides:
        """On which side of each surface between modes a point lies."""
        return () if self.modes is None else self.modes.sides(t, y, yp, self.inputs)

    def sides_after(self, old: Given, new: Point, tolerance: Tolerance) -> Sides:
        """On which sides a point lies after a move; only surfaces clearly crossed are changed."""
        if self.modes is None:
            return ()
        t, y, yp = old
        before = self.modes.heights(t, y, np.zeros_like(y) if yp is None else yp, self.inputs)
        after = self.modes.heights(*new, self.inputs)
        return tuple(
            side if before[k] == after[k] or self.band(k, new, tolerance) else bool(after[k] < 0.0)
            for k, side in enumerate(self.sides)
        )

    def band(self, surface: int, point: Point, tolerance: Tolerance) -> float:
        """Width of the band around a surface, made by a tolerance; zero if a point is outside."""
        assert self.modes is not None
        height = self.modes.heights(*point, self.inputs)[surface]
        width = self.modes.band(surface, *point, self.inputs, tolerance)
        return width if abs(height) <= width else 0.0

    def pair(self) -> Pair:
        """Pair the program of the user's equations with the function, to be compared."""
        problem = self.problem
        return self.plan.pair(problem.fun, problem.args, problem.fills, self.reading.hidden)

    def count(self, state: State) -> None:
        """Note the work of a run."""
        self.plan.evaluations += state.nfev


class ReducedModel(TracedModel):
    """A system of index 2 or more, integrated at a lower index on all of its constraints.

    Its unknowns begin with the user's.
    """

    reduced: Reduced
    is_reduced = True

    def __init__(
        self, problem: Problem, n: int, plan: Plan, reading: Reading, backend: str, units: Units
    ) -> None:
        super().__init__(problem, n, plan, reading, backend)
        assert plan.reduced is not None
        self.reduced, self.size = plan.reduced, plan.reduced.n
        self.rows_were_chosen = bool(plan.reduced.enters)
        self.best = 0.0              # largest regularity of the leading matrix so far, at most 1
        self.units = units.with_more(self.shares) if self.shares else units
        self.constraints = self.constraints.with_found(plan.constraints, self.values)

    def freeze(self, sides: np.ndarray, state: State) -> None:
        """Freeze the conditions of the programs that a state runs, on sides of their surfaces."""
        super().freeze(sides, state)
        self.constraints.set_inputs(self.values)

    def attach(self, state: State) -> None:
        """Put the program behind the core's seams."""
        self._attach_program(state)

    @property
    def how(self) -> str:
        """How the equations are evaluated, in words."""
        index = self.plan.analysis.index if self.plan.analysis else None
        kept = counted(len(self.reduced.constraints), "constraint")
        return (
            f"traced; index {index} reduced to {self.reduced.form}, kept on {kept} of the "
            f"equations{self._compiled}{self._without}"
        )

    @property
    def owner(self) -> np.ndarray:
        """For every unknown, the number of the user's variable of which it is a derivative."""
        return np.array([j for j, _ in self.reduced.unknowns])

    @property
    def slack(self) -> np.ndarray:
        """Allow larger errors in derivatives of a derivative array: they only serve for slopes."""
        orders = np.array([k for _, k in self.reduced.unknowns], float)
        return SLACK_PER_ORDER**orders if self.reduced.enters else np.ones(len(orders))

    @property
    def determined(self) -> np.ndarray:
        """Multipliers and others that the equations determine: users can only guess them."""
        return self.reduced.determined[: self.n].astype(bool)

    @property
    def calls_back(self) -> bool:
        """Whether steps call a function of the user's, which may have side effects."""
        return self.constraints.called

    def is_worn(self, t: float, y: np.ndarray, yp: np.ndarray) -> bool:
        """Whether the rows chosen of a derivative array now determine derivatives badly."""
        sharpness = regularity(Search(self.reduced, t, self.values).leading_matrix(y, yp)[None])[0]
        self.best = max(self.best, sharpness)
        return bool(sharpness < WORN_REGULARITY * self.best)
