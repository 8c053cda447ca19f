"""Models for functions of whole arrays: templates that run over many rows."""

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

    Apart from the pattern, no more is known about it than about a function that is called.
    """

    reading: Reading

    def __init__(
        self, problem: Problem, n: int, plan: Plan, reading: Reading, point: Given
    ) -> None:
        super().__init__(problem, n, point)
        self._plan, self.reading, self.ledger = plan, reading, plan.ledger
        self.inputs = plan.args(problem.args, reading.hidden)
        self.values, self.frozen_rows = plan.with_shifts(self.inputs), plan.frozen_rows
        self.freezes = plan.frozen_rows is not None

    @cached_property
    def sparsity(self) -> Sparsity | None:
        """The patterns of F_y and F_y'."""
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
        """Where F_y and F_y' have entries."""
        return self._plan.pattern

    @property
    def switch_times(self) -> SwitchTimes | None:
        """When conditions on time alone change."""
        return self._plan.switch_times

    def attach(self, state: State) -> None:
        """Put the templates behind the core's seams."""
        self._backend.attach(state, self.values)

    def new_runner(self, values: np.ndarray) -> tuple[Rows, tuple[Places, Places]]:
        """Return the templates with a memory of their own, and the places of the entries.

        The entries of F_y and F_y' are written one after the other.
        """
        runner, backend = self._backend.new(values), self._backend
        runner.place(np.arange(len(backend.fy[0])), np.arange(len(backend.fyp[0])))
        return runner, (backend.fy, backend.fyp)

    def freeze(self, sides: np.ndarray, state: State) -> None:
        """Freeze the conditions of the templates that a state runs, on sides of their surfaces."""
        assert self.frozen_rows is not None
        self.values = np.append(self.inputs, self.frozen_rows.shifts(sides))
        state.residual_adapter.set_args(self.values)

    @property
    def how(self) -> str:
        """How the equations are evaluated, in words."""
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
        """Whether steps call a function of the user's, which may have side effects."""
        return self.constraints.called

    @property
    def is_current(self) -> bool:
        """Whether all that the residual reads is unchanged since it was traced."""
        return is_current(self, self._plan)

    def pair(self) -> ArrayPair:
        """Pair the templates of the user's equations with the function, to be compared."""
        problem = self.problem
        return ArrayPair(self._as_written(), problem.fun, problem.args, problem.fills)

    def _as_written(self) -> Rows:
        """Make a runner of the user's equations, with no condition frozen."""
        return self._backend.new(self._plan.with_shifts(self.inputs))


class ReducedOnArrays(OnArrays):
    """A function of whole arrays of index 2 or 3, integrated at index 1 on its constraints."""

    row_reduction: RowReduction
    is_reduced = True

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
        """Multipliers: users can only guess them."""
        return self.row_reduction.multipliers

    @property
    def how(self) -> str:
        """How the equations are evaluated, in words."""
        found = self.row_reduction
        kept = counted(found.constraints.n_values, "constraint")
        return (
            f"traced as arrays; index {found.index} reduced to 1, kept on {kept} of the "
            f"equations: {self._templates}{self._without}"
        )

    def _as_written(self) -> Rows:
        """Make a runner of the user's equations."""
        assert self._plan.arrays is not None
        return Rows(self._plan.arrays.table, self.values)
