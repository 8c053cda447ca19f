"""Starting values of which some are fixed and some are free: the model, and the search on it.

A function that can be traced is analysed as for a run, and the search works on what a run would
integrate: equations of index 1 with all constraints, given and hidden.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from tether._core.state import State
from tether.base.reason import Kind, Reason
from tether.plan.choose import find_model
from tether.plan.memory import new_state
from tether.plan.model import AsWritten, Model
from tether.problem.options import Options
from tether.problem.problem import Problem
from tether.start.by_differences import Keep
from tether.start.find import kinds_at
from tether.start.high_index import HIGHEST_INDEX, start_above_index_1
from tether.start.rescue import better_guess
from tether.start.search import FREE_WEIGHT, Roles, Search, derivative_only
from tether.structure.modes import Sides
from tether.structure.reduced_start import Search as ReducedSearch
from tether.structure.scaling import Units
from tether.structure.start import Start

__all__ = ["find_by_roles"]

# How often the search is repeated because the values found lie where the structure is another.
MOST_MODES = 4


def find_by_roles(
    problem: Problem,
    t: float,
    y: np.ndarray,
    yp: np.ndarray | None,
    roles: Roles,
    options: Options,
    form: str = "dense",
    band: Any = None,
) -> Start:
    """Find consistent values near the given ones; `form` and `band` as in `consistent_start`."""
    finder = _Finder(problem, t, y, yp, roles, options)
    given = problem.constraints or problem.invariants or roles.fixed_slopes
    if len(roles.fixed) == len(y) and not given:
        model = finder.model()
        if model.reduced is None or form != "dense":
            return finder.derivative(model, form, band)
    return finder.with_slopes_kept(finder.run())


class _Finder:
    """Searches for one start, if necessary on several models in turn."""

    def __init__(
        self, problem: Problem, t: float, y: np.ndarray, yp: np.ndarray | None, roles: Roles,
        options: Options,
    ) -> None:
        self.problem, self.t, self.y, self.yp = problem, t, y, yp
        self.roles, self.options, self.n = roles, options, len(y)
        self.units = Units.of_options(options, y)
        self.slopes = np.zeros_like(y) if yp is None else yp
        self.as_written = AsWritten(problem, self.n)

    def model(self, found: Start | None = None, sides: Sides | None = None) -> Model:
        """Choose the model to search on: for the given values, or for those that were found."""
        y, yp = (self.y, self.yp) if found is None else (found.y, found.yp)
        model, _ = find_model(self.problem, self.t, y, yp, "auto", "machine", self.units, sides)
        return model if _agrees(model, self.t, y, yp) else self.as_written

    def run(self) -> Start:
        """Search with the structure at the given values; repeat if it is another one at the end."""
        model = self.model()
        for _ in range(MOST_MODES):
            found = self.search(model)
            if model.modes is None or (found.success and self._holds(found)):
                break
            seen = found if found.success else self.search(self.as_written)
            sides = model.sides_at(self.t, seen.y, seen.yp)
            if not seen.success or sides == model.sides:
                break
            model = self.model(seen, sides)
        if found.success and not self._can_be_trusted(model, found):
            return self.search(self.as_written)
        return found

    def with_slopes_kept(self, found: Start) -> Start:
        """Refuse a start that differs in components of y' that are fixed."""
        fixed = list(self.roles.fixed_slopes)
        if not found.success or np.allclose(found.yp[fixed], self.slopes[fixed], 1e-9, 0.0):
            return found
        changed = [j for j in fixed if found.yp[j] != self.slopes[j]]
        return replace(
            found, success=False, reason=Reason(Kind.SLOPES_NOT_KEPT, columns=tuple(changed))
        )

    def _can_be_trusted(self, model: Model, found: Start) -> bool:
        """Check values found with a program, or with one of its branches, by the function."""
        if model.modes is not None and not self._holds(found):
            return False
        return _agrees(model, self.t, found.y, found.yp)

    def _holds(self, found: Start) -> bool:
        """Whether the equations hold as written."""
        return self._plain.holds(found.y, found.yp)

    @cached_property
    def _plain(self) -> Search:
        state = self._state(self.as_written, self.y)
        return Search(self.as_written, state, self.t, self.roles, self.units)

    def search(self, model: Model) -> Start:
        """Search on one model; return the user's part of what is found."""
        y, yp = self.y, self.slopes
        if model.reduced is not None:
            y, yp = model.reduced.lift(self.y, self.yp)
        state = self._state(model, y)
        search = Search(model, state, self.t, self.roles, self.units)
        if model.reduced is None:
            found = search.run(y, yp)
            if not found.success:
                found = self._from_better_guess(model, search, found)
            return self._onto_hidden(model, search, found) if found.success else found
        found = search.run(y, yp, self._by_stages(model, y, yp)).restricted(self.n)
        given = self._plain.largest(self.y, self.slopes), self._plain.largest(found.y, found.yp)
        return replace(found, residual=given)

    def _from_better_guess(self, model: Model, search: Search, failed: Start) -> Start:
        """Search again from other values of algebraic unknowns, if none of those is fixed."""
        guess = better_guess(model, search.state, self.t, self.y, self.slopes, self.units)
        fixed = self.roles.fixed
        if guess is None or not np.array_equal(guess[fixed], self.y[fixed]):
            return failed
        found = search.run(self.y, self.slopes, guess)
        return found if found.success else failed

    def _by_stages(
        self, model: Model, y: np.ndarray, slopes: np.ndarray
    ) -> np.ndarray | None:
        """Satisfy the constraints as a run does: positions first, then velocities, and so on.

        None if the fixed values do not allow that.
        """
        assert model.reduced is not None
        search = ReducedSearch(
            model.reduced, self.t, model.values, Units(self._lengths), self.roles.fixed
        )
        found = y.copy()
        if search.satisfy_constraints(found) is not None:
            return None
        if self.roles.by_law and search.has_jumped(y, found):
            search.follow_law(y, found, slopes)
        return found

    def _onto_hidden(self, model: Model, search: Search, found: Start) -> Start:
        """Above index 1 as written: go on to the hidden constraints, found by differences."""
        state, t = search.state, self.t
        pencil = None if _is_index_1(model) else kinds_at(state, model, t, found.y, found.yp)
        if pencil is None:
            return found
        index = pencil.index
        assert index is not None
        fixed = np.isin(np.arange(self.n), self.roles.fixed)
        above = start_above_index_1(
            state, t, found.y, found.yp, True, Keep(fixed, self._lengths, self.roles.by_law)
        )
        if not above.success:
            return replace(found, success=False, reason=above.reason)
        moved = above.moved
        if moved and search.holds(above.y, above.yp):
            found, moved = search.moved_on(found, above.y, above.yp), {}
        if not moved and fixed.any():
            beyond = start_above_index_1(state, t, found.y, found.yp, True)
            moved = beyond.moved
            y = np.where(fixed, found.y, beyond.y)
            if moved and not fixed[list(moved)].any() and search.holds(y, beyond.yp):
                found, moved = search.moved_on(found, y, beyond.yp), {}
        if moved:
            violated = Reason(Kind.HIDDEN_CANNOT_HOLD, columns=tuple(moved), index=index)
            return replace(found, success=False, reason=violated)
        if index > HIGHEST_INDEX:
            unknown = Reason(Kind.HIDDEN_UNKNOWN, index=index)
            return replace(found, reason=found.reason.then(unknown))
        return found

    @property
    def _lengths(self) -> np.ndarray:
        """Changes of the unknowns that cost the same."""
        lengths = 1.0 / self.roles.weights
        lengths[self.roles.free] /= FREE_WEIGHT
        return lengths

    def derivative(self, model: Model, form: str, band: Any) -> Start:
        """Find y' alone, HK Appendix II."""
        if model.reduced is not None:
            model = self.as_written
        return derivative_only(self._state(model, self.y), self.t, self.y, self.slopes, form, band)

    def _state(self, model: Model, y: np.ndarray) -> State:
        state = new_state(model, self.options)
        state.given = self.t, self.y, self.slopes
        model.constraints.attach(state, self.t, self.y, self.problem.args, self.options)
        model.constraints.set_references(state, self.t, y)
        state.h = 1.0
        return state


def _is_index_1(model: Model) -> bool:
    """Whether the analysis of the equations found index 0 or 1, so that nothing is hidden."""
    found = None if model.plan is None else model.plan.analysis
    return found is not None and found.index is not None and found.index <= 1


def _agrees(model: Model, t: float, y: np.ndarray, yp: np.ndarray | None) -> bool:
    """Whether what was traced, if anything was, agrees with the function."""
    pair = model.pair()
    return pair is None or pair.difference(t, y, np.zeros_like(y) if yp is None else yp) is None
