"""Models of functions of whole arrays: templates that run over many rows."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from tether._core.rows import Rows
from tether._core.state import State
from tether.base.pattern import Pattern
from tether.plan.model import AsWritten, Given, is_current
from tether.plan.plan import Plan
from tether.problem.names import counted
from tether.problem.problem import Problem
from tether.problem.sparsity import Sparsity
from tether.structure.switch_times import SwitchTimes
from tether.trace.backend import Backend, Places
from tether.trace.reading import Reading
from tether.trace.row_table import RowTable
from tether.trace.verify import ArrayPair

if TYPE_CHECKING:
    from tether.structure.row_reduction import RowReduction

__all__ = ["OnArrays", "ReducedOnArrays"]


class OnArrays(AsWritten):
    """A function of whole arrays, run as templates over many rows with their exact Jacobian.

    What is known about it is what is known about a function that is called, and the pattern.
    """

    reading: Reading

    def __init__(
        self, problem: Problem, n: int, plan: Plan, reading: Reading, point: Given
    ) -> None:
        super().__init__(problem, n, point)
        self._plan, self.reading, self.ledger = plan, reading, plan.ledger
        self.inputs = plan.args(problem.args, reading.hidden)
        self.values, self.frozen_rows = plan.with_shifts(self.inputs), plan.frozen_rows

    @cached_property
    def sparsity(self) -> Sparsity | None:
        """Where derivatives stand."""
        backend = self._backend
        return Sparsity(
            Pattern(self.n, backend.fy), Pattern(self.n, backend.fyp), by_user=False
        )

    @property
    def _backend(self) -> Backend:
        assert self._plan.system is not None
        return self._plan.system

    @property
    def pattern(self) -> Pattern:
        """Where the entries of F_y and F_y' stand."""
        return self._plan.pattern

    @property
    def switch_times(self) -> SwitchTimes | None:
        """What turns with time alone."""
        return self._plan.switch_times

    def attach(self, state: State) -> None:
        """Put the templates behind the core's seams."""
        self._backend.attach(state, self.values)

    def new_runner(self, values: np.ndarray) -> tuple[Rows, tuple[Places, Places]]:
        """Return the templates in a memory of their own, and where entries of F_y and F_y' stand.

        They are written one after the other.
        """
        runner, backend = self._backend.new(values), self._backend
        runner.place(np.arange(len(backend.fy[0])), np.arange(len(backend.fyp[0])))
        return runner, (backend.fy, backend.fyp)

    def freeze(self, sides: np.ndarray, state: State) -> None:
        """Let the templates that a state runs freeze their conditions on sides of surfaces."""
        assert self.frozen_rows is not None
        self.values = np.append(self.inputs, self.frozen_rows.shifts(sides))
        state.residual_adapter.set_args(self.values)

    @property
    def how(self) -> str:
        """How the equations are run, in words."""
        return f"traced as arrays: {self._templates}{self._without}"

    @property
    def _templates(self) -> str:
        table = self._backend.program
        assert isinstance(table, RowTable)
        return f"{counted(table.templates, 'template')} for {self.n} equations"

    @property
    def _without(self) -> str:
        assert self._plan.arrays is not None
        left_out = self._plan.arrays.left_out
        return f"; left out: {', '.join(left_out)}" if left_out else ""

    @property
    def calls_back(self) -> bool:
        """Whether a function of the user's is called in a step, and may have effects."""
        return self.constraints.called

    @property
    def is_current(self) -> bool:
        """Whether what the residual reads is still what it was when it was traced."""
        return is_current(self, self._plan)

    def pair(self) -> ArrayPair:
        """Set the templates of the user's equations beside the function they come from."""
        problem = self.problem
        return ArrayPair(self._as_written(), problem.fun, problem.args, problem.fills)

    def _as_written(self) -> Rows:
        """Make what runs the user's equations, with no condition frozen."""
        return self._backend.new(self._plan.with_shifts(self.inputs))


class ReducedOnArrays(OnArrays):
    """A function of whole arrays of index 2 or 3, integrated at index 1 on its constraints."""

    row_reduction: RowReduction

    def __init__(
        self, problem: Problem, n: int, plan: Plan, reading: Reading, point: Given
    ) -> None:
        super().__init__(problem, n, plan, reading, point)
        assert plan.row_reduction is not None
        self.row_reduction = plan.row_reduction
        self.constraints = self.constraints.with_found(plan.constraints, self.values)

    @property
    def is_index_1(self) -> bool:
        """Whether it was reduced to index 1."""
        return True

    @property
    def determined(self) -> np.ndarray:
        """Multipliers: a user can only guess them."""
        return self.row_reduction.multipliers

    @property
    def how(self) -> str:
        """How the equations are run, in words."""
        found = self.row_reduction
        kept = counted(found.constraints.n_values, "constraint")
        return (
            f"traced as arrays; index {found.index} reduced to 1, kept on {kept} of the "
            f"equations: {self._templates}{self._without}"
        )

    def _as_written(self) -> Rows:
        """Make what runs the user's equations."""
        assert self._plan.arrays is not None
        return Rows(self._plan.arrays.table, self.values)
