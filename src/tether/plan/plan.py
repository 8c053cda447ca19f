"""Plan: what is known about a function, and the programs that come of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from tether.base.pattern import Pattern
from tether.plan.ledger import Ledger
from tether.problem.sparsity import Sparsity
from tether.structure.analysis import Analysis
from tether.structure.frozen import Frozen
from tether.structure.hidden import Reduced
from tether.structure.modes import Modes, Sides
from tether.structure.switch_times import SwitchTimes
from tether.trace import opcodes as op
from tether.trace.array_tracer import ArrayTrace
from tether.trace.backend import Backend, prepare
from tether.trace.derive import SparseJacobian
from tether.trace.emit import NoProgram, Program
from tether.trace.graph import STATIC
from tether.trace.tracer import Trace
from tether.trace.verify import Pair

if TYPE_CHECKING:
    from tether.structure.frozen_rows import FrozenRows
    from tether.structure.row_reduction import RowReduction

__all__ = ["Plan", "with_rows"]

# For so many values of the inputs it is remembered whether a plan serves them.
MOST_SERVED = 64
# Of fewer unknowns functions are traced number by number in no time.
ENOUGH = 500
# From so many constraints on their derivatives are stored without zeros.
MANY_ROWS = 60

NOTHING = np.zeros(0)


@dataclass(eq=False)
class Plan:
    """What is known about a function, and the programs that come of it."""

    traced: Trace | None = None
    analysis: Analysis | None = None
    reduced: Reduced | None = None   # None: the equations as they are written
    modes: Modes | None = None       # what the structure depends on ...
    sides: Sides | None = None       # ... and the sides it was made for; None: yet to be chosen
    frozen: Frozen | None = None     # other conditions on unknowns, if there are any
    slides: tuple[int, ...] = ()     # surfaces of the plan without that the solution stays on
    source: Trace | None = None      # the function, where other equations were made of it
    arrays: ArrayTrace | None = None  # of a function of whole arrays, in place of `traced`
    row_reduction: RowReduction | None = None  # ... what is integrated in its place ...
    frozen_rows: FrozenRows | None = None      # ... and its conditions on unknowns
    make_system: Callable[[str, Backend | None], Backend] | None = None
    system: Backend | None = None
    constraints: Backend | None = None
    note: str = ""                   # why there is no program ...
    sparsity: Sparsity | None = None  # ... and what was seen of the derivatives instead
    evaluations: int = 0             # in the runs so far
    looked: bool = False             # for a library from an earlier time
    ledger: Ledger = field(default_factory=Ledger)
    derivatives: dict[bytes, Any] = field(default_factory=dict)    # programs, by parameters
    _served: dict[bytes, bool] = field(default_factory=dict, repr=False)

    @property
    def only_here(self) -> bool:
        """Whether it was made with the values at hand, not with the structure alone."""
        if self.traced is not None and self.traced.args.fixed:
            return True
        found = self.analysis
        if found is None or self.reduced is None:
            return False
        changed = found.repaired is None or found.repaired.system is not found.given
        return changed or found.ranks is not None or found.redundant

    @property
    def original(self) -> Trace:
        """The function as it was traced, with all of its branches."""
        found = self.traced if self.modes is None else self.modes.traced
        found = self.source or found
        assert found is not None
        return found

    @cached_property
    def _original_alone(self) -> Backend | None:
        try:
            return prepare(self.original.program())
        except NoProgram:                      # of a branch that this mode is without
            return None

    @cached_property
    def conditions(self) -> Backend | None:
        """Program of the conditions on which the function branches; None if there are none."""
        graph = self.original.graph
        nodes = [
            node for node in graph.cone(self.original.outputs)
            if graph.nodes[node][0] in op.COMPARISONS and graph.level[node] not in (0, STATIC)
        ]
        try:
            return prepare(self.original.program(nodes)) if nodes else None
        except NoProgram:
            return None

    @cached_property
    def switch_times(self) -> SwitchTimes | None:
        """What turns with time in the function; None if nothing does."""
        if self.arrays is not None:
            timed = self.arrays.timed
            return None if timed is None else SwitchTimes.of(timed)
        return None if self.traced is None else SwitchTimes.of(self.original)

    def pair(
        self, fun: Callable[..., Any], args: Sequence[Any], fills: bool = False,
        hidden: np.ndarray = NOTHING,
    ) -> Pair:
        """Set the program beside the function that it was made of."""
        if self.reduced is self.modes is self.frozen is self.source is None:
            backend = self.system or self.constraints
        else:                                  # made ready where it will be needed often
            backend = self._original_alone if self.ledger.runs > 1 else None
        runner = None if backend is None else backend.new(self.args(args, hidden))
        return Pair(self.original, runner, fun, args, fills, hidden)

    @cached_property
    def depends_on_inputs(self) -> bool:
        """Whether the structure that was found may be another for other inputs."""
        found = self.analysis
        return found is not None and bool(found.given.changing_blocks)

    def serves(self, values: np.ndarray, t: float, y: np.ndarray, yp: np.ndarray) -> bool:
        """Whether the structure that was found holds for other inputs too, near a point."""
        found = self.analysis
        assert found is not None
        key = values.tobytes()
        if key not in self._served:
            if len(self._served) >= MOST_SERVED:
                self._served.clear()
            self._served[key] = found.given.is_regular_for(values, t, y, yp, found.units)
        return self._served[key]

    def with_shifts(self, inputs: np.ndarray) -> np.ndarray:
        """Add the inputs that freeze conditions: they are left free."""
        if self.frozen_rows is not None:
            return np.append(inputs, np.zeros(len(self.frozen_rows.groups)))
        if self.frozen is None:
            return inputs
        return np.append(inputs, np.zeros(len(self.frozen.surfaces)))

    def args(self, args: Sequence[Any], hidden: np.ndarray = NOTHING) -> np.ndarray:
        """Values of the inputs that a user's function has."""
        found = self.arrays or self.traced
        assert found is not None
        return found.args.flatten(args, hidden)

    @cached_property
    def pattern(self) -> Pattern:
        """Where the entries of F_y and F_y' of the system stand."""
        assert self.system is not None
        return Pattern(self.system.program.n, self.system.fy, self.system.fyp)

    @property
    def _kind(self) -> str:
        """How the system is run, as a user names it: templates are a program of the machine."""
        assert self.system is not None
        return "machine" if self.system.name == "rows" else self.system.name

    @cached_property
    def _worth_compiling_from(self) -> float:
        """So many evaluations of the system pay for the compiler."""
        from tether.trace.compile_c import worth_compiling_from  # late, to save time

        assert self.system is not None
        assert isinstance(self.system.program, Program)
        return worth_compiling_from(self.system.program)

    def backend(self, wanted: str) -> Backend:
        """Program of the system; compiled to C when the runs so far say that it pays.

        That somebody has compiled it before says so too.
        """
        assert self.system is not None
        assert self.make_system is not None
        if wanted == "auto" and self.system.name == "machine" and not self.system.reason:
            if self.evaluations > self._worth_compiling_from:
                self.system = self.make_system("c", self.system)
            elif not self.looked:
                self.system, self.looked = self.make_system("auto", self.system), True
        elif wanted not in ("auto", self._kind) and not self.system.reason:
            self.system = self.make_system(wanted, self.system if wanted == "c" else None)
        return self.system


def with_rows(program: Program, g_y: SparseJacobian) -> Backend:
    """Prepare a program of values and their derivatives, row by row; a list of those of many."""
    layout = "rows" if g_y.shape[0] < MANY_ROWS else "list"
    return prepare(program, g_y.shape[0], (g_y.rows, g_y.cols), layout=layout)
