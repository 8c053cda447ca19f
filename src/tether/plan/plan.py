"""Plan: what is known about a function, and the programs made from it."""

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
from tether.structure.sliding import Pins
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

# For so many sets of inputs, it is remembered whether a plan holds for them.
MAX_REMEMBERED = 64
# Functions of fewer unknowns are traced number by number, which takes little time.
ARRAYS_FROM = 500
# From so many constraints on, their derivatives are stored without zeros.
SPARSE_FROM_ROWS = 60

NOTHING = np.zeros(0)


@dataclass(eq=False)
class Plan:
    """What is known about a function, and the programs made from it."""

    traced: Trace | None = None
    analysis: Analysis | None = None
    reduced: Reduced | None = None   # None: the equations as they are written
    modes: Modes | None = None       # what the structure depends on ...
    sides: Sides | None = None       # ... and the sides it was made for; None: yet to be chosen
    frozen: Frozen | None = None     # other conditions on unknowns, if there are any
    slides: tuple[int, ...] = ()     # surfaces (of the plan without them) on which it slides
    pins: Pins = ()                  # others on which it stays, with the share of the side below
    source: Trace | None = None      # the function's trace, if `traced` has other equations
    arrays: ArrayTrace | None = None  # of a function of whole arrays, in place of `traced` ...
    row_reduction: RowReduction | None = None  # ... the reduced equations to integrate instead ...
    frozen_rows: FrozenRows | None = None      # ... and the conditions on unknowns
    make_system: Callable[[str, Backend | None], Backend] | None = None
    system: Backend | None = None
    constraints: Backend | None = None
    note: str = ""                   # why there is no program ...
    sparsity: Sparsity | None = None  # ... and the sparsity found from values instead
    evaluations: int = 0             # of the system, in the runs so far
    looked: bool = False             # whether a library compiled earlier was looked for
    floats: bool = True              # whether ideal diodes may leave something floating
    ledger: Ledger = field(default_factory=Ledger)
    derivatives: dict[bytes, Any] = field(default_factory=dict)    # programs, by parameters
    _served: dict[bytes, bool] = field(default_factory=dict, repr=False)

    @property
    def only_here(self) -> bool:
        """Whether it was made from the current values, not from the structure alone."""
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
        except NoProgram:                      # because of a branch that this mode does not take
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
    def is_switched_by_time(self) -> bool:
        """Whether the function has conditions on time."""
        return self.original.is_switched_by_time

    @cached_property
    def switch_times(self) -> SwitchTimes | None:
        """When conditions on time in the function change; None if there are none."""
        if self.arrays is not None:
            timed = self.arrays.timed
            return None if timed is None else SwitchTimes.of(timed)
        return None if self.traced is None else SwitchTimes.of(self.original)

    def pair(
        self, fun: Callable[..., Any], args: Sequence[Any], fills: bool = False,
        hidden: np.ndarray = NOTHING,
    ) -> Pair:
        """Pair the program with the function that it was made from, to be compared."""
        if self.reduced is self.modes is self.frozen is self.source is None:
            backend = self.system or self.constraints
        else:                                  # prepared only if it will be needed often
            backend = self._original_alone if self.ledger.runs > 1 else None
        runner = None if backend is None else backend.new(self.args(args, hidden))
        return Pair(self.original, runner, fun, args, fills, hidden)

    @cached_property
    def depends_on_inputs(self) -> bool:
        """Whether the structure found may be different for other inputs."""
        found = self.analysis
        return found is not None and bool(found.given.changing_blocks)

    def serves(self, values: np.ndarray, t: float, y: np.ndarray, yp: np.ndarray) -> bool:
        """Whether the structure found holds for other inputs too, near a point."""
        found = self.analysis
        assert found is not None
        key = values.tobytes()
        if key not in self._served:
            if len(self._served) >= MAX_REMEMBERED:
                self._served.clear()
            self._served[key] = found.given.is_regular_for(values, t, y, yp, found.units)
        return self._served[key]

    def with_shifts(self, inputs: np.ndarray) -> np.ndarray:
        """Append the inputs that freeze conditions, set so that all conditions are free."""
        if self.frozen_rows is not None:
            return np.append(inputs, np.zeros(self.frozen_rows.n_inputs))
        if self.frozen is None:
            return inputs
        return np.append(inputs, np.zeros(len(self.frozen.surfaces)))

    def args(self, args: Sequence[Any], hidden: np.ndarray = NOTHING) -> np.ndarray:
        """Values of the inputs of the user's function."""
        found = self.arrays or self.traced
        assert found is not None
        return found.args.flatten(args, hidden)

    @cached_property
    def pattern(self) -> Pattern:
        """Where F_y and F_y' of the system have entries."""
        assert self.system is not None
        return Pattern(self.system.program.n, self.system.fy, self.system.fyp)

    @property
    def _kind(self) -> str:
        """The backend's name in the options: templates count as programs of the machine."""
        assert self.system is not None
        return "machine" if self.system.name == "rows" else self.system.name

    @cached_property
    def _worth_compiling_from(self) -> float:
        """The number of evaluations of the system from which on compiling pays."""
        from tether.trace.compile_c import worth_compiling_from  # late, to save time

        assert self.system is not None
        assert isinstance(self.system.program, Program)
        return worth_compiling_from(self.system.program)

    def backend(self, wanted: str) -> Backend:
        """Program of the system; with "auto", compiled to C once the runs so far show that it pays.

        A library that was compiled earlier is used at once.
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
    """Prepare a program of values and derivatives, as full rows if few, as a list if many."""
    layout = "rows" if g_y.shape[0] < SPARSE_FROM_ROWS else "list"
    return prepare(program, g_y.shape[0], (g_y.rows, g_y.cols), layout=layout)
