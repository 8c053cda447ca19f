"""Conditions on elements of whole arrays: frozen during a step, changed where surfaces are passed.

The same as `Switching`, for tables of conditions instead of single ones
(`tether.structure.frozen_rows`). A step that has passed a surface is cut there, and the run
restarts on the other side.

Two things are different where there may be as many surfaces as unknowns. A solution that both sides
hold on a surface is not kept there: its condition is left free. And if so many elements pass their
kinks that a run would restart all the time, as with a front that moves over a grid, the conditions
of that operation are left free too. During a step they then follow the unknowns, and the error test
sees the kinks: the error is proportional to the tolerance, a few times larger than with located
kinks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tether._core import surfaces
from tether.run.method import Polynomial
from tether.run.switching import ROUND_OFF, Switching
from tether.run.watch import EPS, find_zero

if TYPE_CHECKING:
    from tether.run.integration import Integration
    from tether.structure.frozen_rows import FrozenRows

__all__ = ["ArraySwitching"]

# As a share of the height that corresponds to the absolute tolerances: so near its surface a
# condition is left free, since it is uncertain on which side the solution is.
NEAR_SURFACE = 0.05
# As a share of the change of a height in the step: surfaces that are passed this soon after the
# first one are passed together.
PASSED_TOGETHER = 1e-9
# As a share of the change of the equations between the sides at the end of the step: a smaller
# change on the surface is a kink.
KINK = 0.01
# Times within a step up to which surfaces of one operation are located one by one: kinks and jumps.
MOST_KINKS, MOST_JUMPS = 8, 100
# Kinks of one operation that are always located, and then one in so many steps.
FIRST_KINKS, STEPS_FOR_KINK = 20, 4


class ArraySwitching(Switching):
    """The frozen conditions of one run of templates."""

    def __init__(self, run: Integration) -> None:
        super().__init__(run)
        self._rows: FrozenRows | None = None   # the conditions to which the following belongs
        self._operands: Any = None             # runner for the operands of heights
        self._near = np.zeros(0)               # heights within which a condition stays free
        self._wanted: np.ndarray | None = None  # sides at the next start ...
        self._certain = np.zeros(0, bool)      # ... which of them are certain ...
        self._passing = np.zeros(0, bool)      # ... and conditions that change there
        self._free = np.zeros(0, bool)         # conditions that are left free
        self._when = np.zeros(0)               # when surfaces were last passed
        self._kinks = np.zeros(0)              # number passed, for each operation ...
        self._first_step = np.zeros(0)         # ... since this step

    # --- where the solution goes ----------------------------------------------------------------

    def turn(self, t: float, passing: Sequence[int], y: np.ndarray) -> None:
        """Move to the other sides of the surfaces that the solution has reached.

        One to which it returns at the same time holds it; its condition is left free.
        """
        back = self._passing & (np.abs(t - self._when) <= ROUND_OFF * EPS * abs(t))
        self._free |= back
        self._wanted = np.where(self._passing, -self._sides, self._sides)
        self._certain = self._passing & ~self._free
        self._when[self._passing] = t

    def leave_surfaces(self) -> None:
        """Reconsider all conditions: the state or the functions have changed."""
        self._wanted = None
        self._free[:] = False

    # --- starts ---------------------------------------------------------------------------------

    def prepare_start(self) -> None:
        """Freeze conditions where the sides of the start are known; free the others."""
        if self._follow_rows() is not None:
            self._put(np.zeros(len(self._when)) if self._wanted is None else self._wanted)

    def go_on(self) -> None:
        """Continue from the current point with other inputs, or other conditions."""
        s = self.run.state
        if self._follow_rows() is not None:
            self._put(self._sides_on(s.t, s.y_now, s.yp_now))

    def settle_start(self) -> bool:
        """Freeze conditions where the start lies; tell whether it must be found again."""
        start = self.run.start
        if self._rows is None or not start.success:
            return False
        sides, wanted = self._sides_on(self.run.given[0], start.y, start.yp), self._wanted
        if wanted is not None:
            kept = ~self._free & (self._certain | (sides == 0.0))
            sides = np.where(kept, wanted, sides)
            if np.any(~self._free & (wanted != 0.0) & (sides != wanted)):
                self._wanted = sides
                return True
        self._wanted = None
        self._put(sides)
        return False

    def search_sides(self, mode: str) -> None:
        """Leave a start that was not found: there are too many sides to try."""

    def _follow_rows(self) -> FrozenRows | None:
        """Take over the conditions of the current model; return them, None if it has none."""
        run, rows = self.run, self.run.model.frozen_rows
        if rows is None:
            self._rows = None
            surfaces.watch_no_surfaces(run.state)
            return None
        if rows is not self._rows:
            count, operations = len(rows.groups), int(rows.groups[-1]) + 1
            self._sides, self._bands, self._near = np.zeros((3, count))
            self._free, self._passing = np.zeros(count, bool), np.zeros(count, bool)
            self._when = np.full(count, np.inf)
            self._kinks, self._first_step = np.zeros(operations), np.zeros(operations)
            self._wanted = None
            run.want_between(rows.unknowns)
        if rows is not self._rows or run.model is not self._model:
            free = np.append(run.model.inputs, np.zeros(len(rows.groups)))
            self._heights, self._operands = rows.heights.new(free), rows.operands.new(free)
        self._rows = rows
        return rows

    def _sides_on(self, t: float, y: np.ndarray, yp: np.ndarray) -> np.ndarray:
        """Side of each surface on which a point lies; 0 near a surface."""
        assert self._rows is not None
        above, below = self._operands.values(t, y, yp).reshape(2, -1)
        self._bands = ROUND_OFF * EPS * (np.abs(above) + np.abs(below))
        rows, columns = self._rows.heights.fy
        entries = np.zeros((2, max(len(rows), len(self._rows.heights.fyp[0]))))
        self._heights.entries_into(t, y, yp, *entries)
        allowed = NEAR_SURFACE * np.abs(entries[0, : len(rows)]) * self.run.state.atols[columns]
        self._near = np.fmax(self._bands, np.bincount(rows, allowed, len(self._bands)))
        return self._beside(above - below)

    def _beside(self, heights: np.ndarray) -> np.ndarray:
        off = np.abs(heights) > self._near
        return np.where(off & ~self._free, np.sign(heights), 0.0)

    def _put(self, sides: np.ndarray | Sequence[float], follows: bool = False) -> None:
        """Freeze conditions; if they only follow the solution, the Jacobian is kept."""
        run, sides = self.run, np.array(sides, float)
        sides[self._free] = 0.0
        is_attached = self._state is run.state and self._model is run.model
        if not is_attached or not np.array_equal(sides, self._sides):
            run.model.freeze(sides, run.state)
            if not (is_attached and follows):
                run.state.jacobian_exists = False
                run.state.cj_factored = 0.0
        self._sides, self._state, self._model = sides, run.state, run.model
        bands = np.where(sides == 0.0, self._near, self._bands)
        bands[self._free] = np.inf
        surfaces.watch_surfaces(run.state, self._heights, sides, bands)

    # --- steps ----------------------------------------------------------------------------------

    def passed(self, polynomial: Polynomial) -> list[tuple[float, int]]:
        """Find when surfaces were first passed in the last step; refreeze conditions.

        All that are passed then have the same number; `turn` knows which they are.
        """
        run, s = self.run, self.run.state
        if self._rows is None or run.model.frozen_rows is not self._rows:
            return []
        heights = self._heights.values(s.t, s.y_now, s.yp_now)
        left = heights * self._sides < -self._bands
        beyond = left & (np.abs(heights) > self._near)
        if not beyond.any():
            unfrozen = left | (self._sides == 0.0)
            self._put(np.where(unfrozen, self._beside(heights), self._sides), follows=True)
            return []
        t, here = self._first_of(beyond, heights, polynomial)
        begun = self._heights.values(polynomial.t_old, *polynomial(polynomial.t_old))
        left_over = here * self._sides
        soon = np.fmax(PASSED_TOGETHER * np.abs(heights - begun), np.min(left_over[beyond]))
        self._passing = beyond & (left_over <= soon)
        later = np.flatnonzero(beyond & ~self._passing)
        share = begun[later] / (begun[later] - heights[later])
        self._leave_free_where_dense(later, share, t, polynomial)
        return [(t, 0)]

    def _first_of(
        self, beyond: np.ndarray, last: np.ndarray, polynomial: Polynomial
    ) -> tuple[float, np.ndarray]:
        """Return when the first of some surfaces is passed, and the heights there."""
        sides = self._sides[beyond]

        def lowest(t: float) -> float:
            heights[:] = self._heights.values(t, *polynomial(t))
            return float(np.min(heights[beyond] * sides))

        heights, a, b = last.copy(), polynomial.t_old, polynomial.t
        first = lowest(a)
        if first <= 0.0:
            return a, heights
        close = 4.0 * EPS * max(abs(a), abs(b), 1e-300)
        t = find_zero(lowest, a, b, first, float(np.min(last[beyond] * sides)), close)
        lowest(t)
        return t, heights

    def _leave_free_where_dense(
        self, later: np.ndarray, share: np.ndarray, t: float, polynomial: Polynomial
    ) -> None:
        """Free the conditions of operations of which too many are passed one by one.

        Surfaces that are passed `later` in the step are passed roughly after a `share` of it.
        """
        assert self._rows is not None
        groups, s = self._rows.groups, self.run.state
        steps, size = s.steps, len(self._kinks)
        times = np.unique(np.stack([groups[later], np.round(share, 6)]), axis=1)
        passed = np.bincount(times[0].astype(int), minlength=size)
        is_kink = self._change(t, *polynomial(t)) <= KINK * self._change(s.t, s.y_now, s.yp_now)
        now = np.unique(groups[self._passing])
        if is_kink:
            new = now[self._kinks[now] == 0]
            self._first_step[new] = steps
            self._kinks[now] += 1
            often = self._kinks > FIRST_KINKS + (steps - self._first_step) / STEPS_FOR_KINK
            dense = (passed > MOST_KINKS) | often
        else:
            dense = passed > MOST_JUMPS
        self._free |= dense[groups]

    def _change(self, t: float, y: np.ndarray, yp: np.ndarray) -> float:
        """Return how far the equations differ beyond the surfaces that are passed."""
        assert self._rows is not None
        model, found = self.run.model, []
        runner = self.run.state.residual_adapter.twin(model.values)
        for sides in (self._sides, np.where(self._passing, -self._sides, self._sides)):
            runner.set_args(np.append(model.inputs, self._rows.shifts(sides)))
            found.append(runner.values(t, y, yp))
        return float(np.max(np.abs(found[1] - found[0])))

    def free_all(self) -> bool:
        """Free all conditions if the run cannot continue; tell whether any was frozen."""
        if self._rows is None or not self._sides.any():
            return False
        self._free[:] = True
        self._put(self._sides)
        return True
