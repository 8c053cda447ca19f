"""Starting values for a model, at the start of a run and wherever it restarts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from tether._core import probe
from tether._core.state import State
from tether.base.reason import Kind, Reason
from tether.base.status import Status
from tether.plan.model import Model
from tether.problem.options import Options
from tether.start.consistent import make_consistent, merge_starts, refuse_changes
from tether.start.on_constraints import start_on_constraints
from tether.start.reduced import lift
from tether.start.references import References
from tether.structure.hidden import Reduced
from tether.structure.pencil import Pencil
from tether.structure.reduced_start import MADE_CONSISTENT
from tether.structure.start import Start, changed_values

if TYPE_CHECKING:
    from tether.structure.row_reduction import RowReduction

__all__ = ["StartFinder", "kinds_at"]

ASSUMED = Reason(Kind.ASSUMED)


@dataclass(eq=False, slots=True)
class StartFinder:
    """Finds consistent values for a model in its memory.

    Invariants keep the values in `references`; if there are none yet, those at the start are
    taken. With `guessed` the given slopes are mere guesses.
    """

    model: Model
    state: State
    options: Options
    references: References
    guessed: bool = False

    def find(self, t: float, y: np.ndarray, yp: np.ndarray | None, mode: str) -> Start:
        """Find consistent values near the given ones; `mode` as in `Options.start`."""
        y, yp = self.model.extended(y, yp)
        if self.model.reduced is not None:
            return self._find_reduced(self.model.reduced, t, y, yp, mode)
        if (index := self.model.concealed_index) is not None:
            reason = Reason(Kind.CONCEALED_INDEX, index=index)
            given = np.zeros_like(y) if yp is None else yp
            return Start(y, given, False, reason, status=Status.INDEX_TOO_HIGH)
        self.set_references(t, y)
        if self.model.row_reduction is not None and mode != "assume":
            return self._find_on_rows(self.model.row_reduction, t, y, yp, mode)
        if mode == "assume":
            given = np.zeros_like(y) if yp is None else yp
            kinds = kinds_at(self.state, self.model, t, y, given)
            return Start(y, given, True, ASSUMED, pencil=kinds)
        found = self._from_constraints(t, y, yp)
        if not found.on_constraints and self._let_invariants_jump(t, y):
            found = self._from_constraints(t, y, yp)
        return refuse_changes(self.state, found, y, yp) if mode == "check" else found

    def _from_constraints(
        self, t: float, y: np.ndarray, yp: np.ndarray | None, lifted: bool = False
    ) -> Start:
        """Move onto the constraints, then make the values consistent with the equations.

        Values that were `lifted` satisfy the constraints of the equations up to round-off. How far
        they may be moved is limited only if there are constraints of the user's.
        """
        if self.state.n_constraints == 0:
            return self._complete(t, y, yp)
        constraints = self.model.constraints
        goes_on = self.references.values is not None
        accept = self.options.accept_projected_start or goes_on or (lifted and not constraints.all)
        on_constraints = start_on_constraints(self.state, t, y, constraints, accept)
        if not on_constraints.success:
            return on_constraints
        return merge_starts(on_constraints, self._complete(t, on_constraints.y, yp))

    def _complete(self, t: float, y: np.ndarray, yp: np.ndarray | None) -> Start:
        """Find the values that the equations determine, whatever their index."""
        found = make_consistent(self.state, t, y, yp, self.guessed)
        if found is None or not (
            found.success or self.model.is_index_1 or self._is_index_1(t, y, yp)
        ):
            from tether.start.high_index import start_above_index_1  # late, to save time

            trusted = self.model.problem.var_index is not None
            found = start_above_index_1(self.state, t, y, yp, trusted)
        return found

    def _find_reduced(
        self, reduced: Reduced, t: float, y: np.ndarray, yp: np.ndarray | None, mode: str
    ) -> Start:
        """Find values for a reduced system.

        Values on the constraints are completed as for any system of index 1; others are first
        moved there, positions before velocities.
        """
        s = self.state
        if mode == "assume":
            whole, slopes = reduced.lift(y, yp)
            self.set_references(t, whole)
            return Start(whole, slopes, True, ASSUMED)
        if s.n == len(y):
            self.set_references(t, y)
            found = self._from_constraints(t, y, yp)
            if found.success and not self._is_far(found.y, y):
                return refuse_changes(s, found, y, yp) if mode == "check" else found
        lifted = self._lift(t, y, yp)
        if not lifted.success:
            return lifted
        if self.references.values is None:
            self.set_references(t, lifted.y)
        found = self._from_constraints(t, lifted.y, lifted.yp, lifted=True)
        if found.success:
            found = replace(
                found, moved=lifted.moved, reason=lifted.reason, jump=lifted.jump,
                lawful=lifted.lawful,
            )
        if mode == "check":
            return refuse_changes(s, found, np.append(y, found.y[len(y):]), None)
        return found

    def _find_on_rows(
        self, reduction: RowReduction, t: float, y: np.ndarray, yp: np.ndarray | None, mode: str
    ) -> Start:
        """Find values for reduced arrays; values off the constraints jump by the law."""
        s = self.state
        found = self._from_constraints(t, y, yp)
        change = np.where(reduction.multipliers, 0.0, found.y - y)
        if not found.success or probe.weighted_size(s, change) > 1.0:
            from tether.start.on_rows import jump_on_rows  # late, to save time

            jump = jump_on_rows(reduction, self.model.leading, s, t, y)
            if jump is not None:
                found = self._from_constraints(t, jump.y, yp, lifted=True)
            if found.success:
                found = replace(
                    found, moved=changed_values(found.y, y, s.tolerances), jump=jump,
                    reason=MADE_CONSISTENT, lawful=jump is not None,
                )
        return refuse_changes(s, found, y, yp) if mode == "check" else found

    def _is_far(self, found: np.ndarray, y: np.ndarray) -> bool:
        """Whether the values would jump: then the law of the equations decides how."""
        if self.references.values is None and not self.options.accept_projected_start:
            return False
        return probe.weighted_size(self.state, found - y) > 1.0

    def _lift(self, t: float, y: np.ndarray, yp: np.ndarray | None) -> Start:
        """Consistent values for a reduced system; in a run, also on the user's constraints."""
        model = self.model
        if self.references.values is None:
            return lift(model, t, y, yp)
        self.set_references(t, y)
        given = model.constraints.of_user(self.state, t)
        lifted, number = Start(y, np.zeros_like(y), False, Reason(Kind.NOTHING)), 0
        for place, more in enumerate(given):
            tried = lift(model, t, y, yp, more)
            # a jump by the law of the equations takes precedence over an invariant
            if tried.success and (tried.lawful or not lifted.success):
                lifted, number = tried, place
            if lifted.success and lifted.lawful:
                break
        if lifted.success and number:
            self._let_invariants_jump(t, lifted.y)
        return lifted

    def set_references(self, t: float, y: np.ndarray) -> None:
        """Let invariants keep the values from the start of the run, or those at (t, y)."""
        self.references.no_jump()
        self.model.constraints.set_references(self.state, t, y, self.references.values)

    def _let_invariants_jump(self, t: float, y: np.ndarray) -> bool:
        """Give invariants that cannot be kept the values at a point, and note that they jump."""
        constraints, s = self.model.constraints, self.state
        if self.references.values is None:
            return False
        constraints.set_references(s, t, y)
        now = constraints.references(s)
        assert now is not None
        rows = range(s.n_constraints - len(now), s.n_constraints)
        self.references.jump(t, now, [constraints.name_of(s, row) for row in rows])
        return True

    def _is_index_1(self, t: float, y: np.ndarray, yp: np.ndarray | None) -> bool:
        """Whether a failed search for consistent values is due to the values, not to the index."""
        from tether.start.high_index import find_kinds  # late, to save time

        pencil = find_kinds(self.state, t, y, np.zeros_like(y) if yp is None else yp)
        return pencil is None or (pencil.index is not None and pencil.index <= 1)


def kinds_at(
    state: State, model: Model, t: float, y: np.ndarray, yp: np.ndarray
) -> Pencil | None:
    """Local index and kinds at a point; None for index 0 and 1, or if the user gave them."""
    if model.problem.var_index is not None or probe.move_to(state, t, y, yp) != 0:
        return None
    from tether.start.high_index import find_kinds  # late, to save time

    pencil = find_kinds(state, t, y, yp)
    if pencil is None or pencil.index is None or pencil.index < 2:
        return None
    return pencil
