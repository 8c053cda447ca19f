"""Conditions on elements of whole arrays: frozen during a step, changed where surfaces are passed.

The same as `Switching`, for tables of conditions instead of single ones
(`tether.structure.frozen_rows`). A step that has passed a surface is cut there, and the run
restarts on the other side.

A solution that both sides hold on a surface stays there if one equation does it
(`tether.structure.row_sliding`), until the share of one side is used up: the two sides of that
equation then have the same sign. Otherwise the condition is left free. So it is if so many elements
pass their kinks that a run would restart all the time, as with a front that moves over a grid.
During a step free conditions follow the unknowns, and the error test sees the kinks: the error is
proportional to the tolerance, a few times larger than with located kinks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tether._core import surfaces
from tether.run.corners import SHARE_SLACK
from tether.run.method import Polynomial
from tether.run.sides import AT_REST, ROUND_OFF
from tether.run.switching import LOOKS_BACK, MOST_TURNS, Switching
from tether.run.watch import EPS, find_zero
from tether.structure.frozen_rows import ON_SURFACE

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
# An element that returns to its surface so often at one time stays there, though its share is
# outside of its bounds: it will not be for long.
RETURNS_TO_STAY = 3


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
        self._leaving = np.zeros(0)            # sides to which held elements go, or 0
        self._just_left = np.zeros(0, bool)    # elements that are still near what held them ...
        self._uncertain = np.zeros(0)          # ... how near that is ...
        self._offset = np.zeros(0)             # ... and how near they were held
        self._turns_at_once = np.zeros(0, int)  # how often elements have turned at one time
        self._kinks = np.zeros(0)              # number passed, for each operation ...
        self._first_step = np.zeros(0)         # ... since this step

    # --- where the solution goes ----------------------------------------------------------------

    def turn(self, t: float, passing: Sequence[int], y: np.ndarray) -> None:
        """Move to the other sides of the surfaces that the solution has reached.

        One to which it returns at the same time holds it. If no equation can do that, its condition
        is left free.
        """
        assert self._rows is not None
        turning = self._passing | (self._leaving != 0.0)
        at_once = np.abs(t - self._when) <= ROUND_OFF * EPS * abs(t)
        self._turns_at_once = np.where(turning & at_once, self._turns_at_once + 1, 0)
        back = self._passing & at_once
        stays = back & self._rows.may_slide & (self._turns_at_once <= MOST_TURNS)
        self._free |= back & ~stays
        self._wanted = np.where(self._passing, -self._sides, self._sides)
        self._wanted[stays] = ON_SURFACE
        self._wanted = np.where(self._leaving != 0.0, self._leaving, self._wanted)
        self._certain = turning & ~self._free
        self._when[turning] = t
        self._just_left |= self._leaving != 0.0
        self._offset = 2.0 * np.abs(self._heights.values(t, y, np.zeros(len(y))))

    def leave_surfaces(self) -> None:
        """Reconsider all conditions: the state or the functions have changed."""
        self._wanted = None
        self._free[:] = self._just_left[:] = False

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
        if wanted is None:
            wanted = self._decided(sides)
            if wanted is None:
                self._put(sides)
                return False
            self._certain = wanted != sides
        kept = ~self._free & (self._certain | (sides == 0.0) | (wanted == ON_SURFACE))
        sides = np.where(kept, wanted, sides)
        held = sides == ON_SURFACE
        if held.any():
            share = self._shares(self.run.given[0], start.y, start.yp)
            gone = held & ~((share >= -SHARE_SLACK) & (share <= 1.0 + SHARE_SLACK))
            gone &= self._turns_at_once < RETURNS_TO_STAY
            sides = np.where(gone, np.where(share > 0.5, -1.0, 1.0), sides)
            self._certain |= gone
        if np.any(~self._free & (wanted != 0.0) & (sides != wanted)) or self._wanted is None:
            self._wanted = sides
            return True
        self._wanted = None
        if np.any(held & self._certain):
            # a history from before would let the height move within the tolerance
            self.run.start = replace(start, ypp=None)
        self._put(sides)
        return False

    def search_sides(self, mode: str) -> None:
        """If there is no start on surfaces, leave their conditions free.

        There are too many sides to try.
        """
        held = self._sides == ON_SURFACE
        if self._rows is None or self.run.start.success or not held.any():
            return
        self._free |= held
        self._wanted = None
        self.prepare_start()
        self.run.start = self.run.find_start(mode)
        self.settle_start()

    def _decided(self, sides: np.ndarray) -> np.ndarray | None:
        """Sides to which elements on their surfaces go; None if there are none of them.

        Where the heights of both sides return to zero the solution stays.
        """
        assert self._rows is not None
        run, rows = self.run, self._rows
        on = (sides == 0.0) & rows.may_slide & ~self._free
        if not on.any():
            return None
        assert rows.rates is not None
        found, start = [], run.start
        for side in (1.0, -1.0):
            self._put(np.where(on, side, sides))
            trial = run.find_start()
            if not trial.success:
                break
            runner = rows.rates.new(run.model.values)
            rate = np.zeros(len(sides))
            rate[rows.may_slide] = runner.values(run.given[0], trial.y, trial.yp)
            found.append(rate)
        run.start = start
        if len(found) < 2:
            return None
        above, below = found
        small = AT_REST * np.maximum(np.abs(above), np.abs(below))
        decided = sides.copy()
        decided[on & (above > small) & (below >= -small)] = 1.0
        decided[on & (below < -small) & (above <= small)] = -1.0
        decided[on & (above <= small) & (below >= -small)] = ON_SURFACE
        return decided

    def _shares(self, t: float, y: np.ndarray, yp: np.ndarray) -> np.ndarray:
        """Return the shares that the equations below surfaces have where elements stay on them."""
        assert self._rows is not None
        model, rows = self.run.model, self._rows
        runner = self.run.state.residual_adapter.twin(model.values)
        shares, held = np.full(len(self._sides), 0.5), self._sides == ON_SURFACE
        for layer in np.unique(rows.layers[held]):
            mine, values = held & (rows.layers == layer), []
            for side in (1.0, -1.0):
                # other conditions of the same equation are on their surfaces only by chance
                sides = np.where(held, side, self._sides)
                runner.set_args(np.append(model.inputs, rows.shifts(sides)))
                values.append(runner.values(t, y, yp)[rows.rows[mine]])
            above, below = values
            with np.errstate(all="ignore"):
                shares[mine] = above / (above - below)
        return shares

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
            self._leaving, self._turns_at_once = np.zeros(count), np.zeros(count, int)
            self._just_left = np.zeros(count, bool)
            self._uncertain, self._offset = np.zeros((2, count))
            self._when = np.full(count, np.inf)
            self._kinks, self._first_step = np.zeros(operations), np.zeros(operations)
            self._wanted = None
            run.want_between(rows.unknowns)
        if rows is not self._rows or run.model is not self._model:
            free = np.append(run.model.inputs, np.zeros(rows.n_inputs))
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
        may_slide, self._uncertain = self._rows.may_slide, self._near.copy()
        self._near[may_slide] = self._bands[may_slide]     # what is that near is held there
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
        bands, held = np.where(sides == 0.0, self._near, self._bands), sides == ON_SURFACE
        bands[self._free] = np.inf
        bands[held] = -1.0                     # shares are looked at after every step
        surfaces.watch_surfaces(run.state, self._heights, np.where(held, 0.0, sides), bands)

    # --- steps ----------------------------------------------------------------------------------

    def passed(self, polynomial: Polynomial) -> list[tuple[float, int]]:
        """Find when surfaces were first passed in the last step; refreeze conditions.

        All that are passed then have the same number; `turn` knows which they are.
        """
        run, s = self.run, self.run.state
        if self._rows is None or run.model.frozen_rows is not self._rows:
            return []
        heights, held = self._heights.values(s.t, s.y_now, s.yp_now), self._sides == ON_SURFACE
        left = ~held & (heights * self._sides < -self._bands)
        # the side of what comes off slowly is known better than its height
        uncertain = np.fmax(self._uncertain, self._offset)
        self._just_left &= ~held & (heights * self._sides <= uncertain)
        left &= ~(self._just_left & (np.abs(heights) <= uncertain))
        beyond = left & (np.abs(heights) > self._near)
        t_left = self._first_left(polynomial) if held.any() else None
        if not beyond.any():
            if t_left is not None:
                self._passing = np.zeros(len(held), bool)
                return [(t_left, 0)]
            unfrozen = left | (self._sides == 0.0)
            if unfrozen.any():
                self._put(np.where(unfrozen, self._beside(heights), self._sides), follows=True)
            return []
        t, here = self._first_of(beyond, heights, polynomial)
        if t_left is not None and abs(t_left - polynomial.t_old) < abs(t - polynomial.t_old):
            self._passing = np.zeros(len(held), bool)
            return [(t_left, 0)]
        self._leaving = np.zeros(len(held))
        begun = self._heights.values(polynomial.t_old, *polynomial(polynomial.t_old))
        left_over = here * self._sides
        soon = np.fmax(PASSED_TOGETHER * np.abs(heights - begun), np.min(left_over[beyond]))
        self._passing = beyond & (left_over <= soon)
        later = np.flatnonzero(beyond & ~self._passing)
        share = begun[later] / (begun[later] - heights[later])
        self._leave_free_where_dense(later, share, t, polynomial)
        return [(t, 0)]

    def _first_left(self, polynomial: Polynomial) -> float | None:
        """Return when the first elements leave their surfaces in the last step, and note which.

        None if all of them stay.
        """
        def inside(t: float) -> np.ndarray:
            share = self._shares(t, *polynomial(t))
            return np.where(self._sides == ON_SURFACE, np.minimum(share, 1.0 - share), 1.0)

        def least(t: float) -> float:
            return float(np.min(inside(t)[gone]))

        a, b, self._leaving = polynomial.t_old, polynomial.t, np.zeros(len(self._sides))
        begin, end = inside(a), inside(b)
        gone = (end < 0.0) & (end < begin)     # others are on their way back
        if not gone.any():
            return None
        t = a
        if np.min(begin[gone]) > 0.0:
            close = 4.0 * EPS * max(abs(a), abs(b))
            t = find_zero(least, a, b, least(a), least(b), close)
        gone &= inside(t) <= SHARE_SLACK
        share = self._shares(t, *polynomial(t))
        self._leaving[gone] = np.where(share[gone] > 0.5, -1.0, 1.0)
        return t

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
        looks = a + (b - a) * 0.5 ** np.arange(1, LOOKS_BACK)
        if first <= 0.0:       # some were passed just before, or leave their surfaces and return
            away = next((t for t in looks if lowest(t) > 0.0), None)
            if away is None:
                lowest(a)
                return a, heights
            a, first = away, lowest(away)
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
        # jumps that may hold elements stay frozen, however many there are
        is_kink_here = is_kink & np.isin(groups, now)
        self._free |= dense[groups] & (is_kink_here | ~self._rows.may_slide)

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
