"""Conditions of a traced function on unknowns: frozen during a step, changed at surfaces.

During a step every condition keeps its answer on one side of its surface
(`tether.structure.frozen`), so that the step sees a smooth system. After the step the core compares
the heights above the surfaces with the sides. If the solution has passed one, the step ends at the
surface, and the run restarts on the other side. If it returns there at once, both sides point at
the surface, and the run continues along it (`tether.structure.sliding`) until the share of one side
is used up.

If a start lies on a surface, the rates of its height on both sides show where the solution goes. If
they do not, and where a run cannot continue, conditions are left free: during a step they follow
the unknowns.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from tether._core import surfaces
from tether._core.plain import Plain
from tether.run.corners import SHARE_SLACK, Corners
from tether.run.method import Polynomial
from tether.run.sides import AT_REST, ROUND_OFF
from tether.run.watch import EPS, find_zero

if TYPE_CHECKING:
    from tether.run.integration import Integration
    from tether.structure.frozen import Frozen

__all__ = ["Switching"]

# Limit on how many times a solution may turn at one time.
MOST_TURNS = 12
# Starts to find until it has the sides for which it was found.
MOST_STARTS = 4
# Number of sets of sides to try if there is no start with free conditions.
MOST_SETS = 100
# In units of rounding errors: larger differences of an equation between the sides of a surface that
# is located up to `ROUND_OFF` are a jump.
KINK = 1e5
# With up to this many surfaces at once, all combinations of sides are examined.
MOST_TOGETHER = 4
# A step may leave a surface and return to it: where it is between, 2, 4, 8 ... times sooner.
LOOKS_BACK = 24


class Switching(Corners):
    """The frozen conditions of one run.

    Attributes
    ----------
    used_up : set of int
        Functions of surfaces that the solution left, since the share of one side was used up, and
        to which it returned at once while it stayed on others: it must leave more than one.
    """

    def __init__(self, run: Integration) -> None:
        super().__init__(run)
        self.used_up: set[int] = set()
        self._given_up: set[int] = set()       # conditions that are left free
        self._at_poles: set[int] = set()       # those passed at a pole of their height
        self._t_turn, self._turns = np.nan, 0  # and the number of turns at that time

    # --- where the solution goes ----------------------------------------------------------------

    def turn(self, t: float, passing: Sequence[int], y: np.ndarray) -> None:
        """Decide how the solution continues from surfaces that it has reached at (t, y)."""
        assert self._of is not None
        found = self._of.surfaces
        self._expect_sides(self._sides)
        self._count_turns(t, passing)
        passed = [found[k].function for k in passing if found[k].conditions]
        self.ended = self._spiral.note(t, passed, y, self.run.state.tolerances[: len(y)])
        if not self.ended:
            self.ended = tuple(found[k].function for k in passing if self._is_lost(k, t, y))
        if self.ended:
            self._spiral.forget()
        just_left, self._left, self.used_up = self._left, set(), set()
        self._sides_ahead = {}
        left = list(self.slides)
        for k in passing:
            leaving = self._of.exit_of(k)
            if leaving is not None:
                share, side = leaving
                number = self.slides[share]
                if any(self._functions[number] in corner for corner in self._corners):
                    self._freed[self._functions[number]] = side
                    continue
                left.remove(number)
                self._go_to(self._functions[number], side, t)
                self._left.add(self._functions[number])
            elif k in self._of.pinned:
                self._freed[found[k].function] = 0.0
            elif found[k].function in self._at_poles:
                self._go_to(found[k].function, -self._sides[k], t)
            elif self._is_back(found[k].function, t) and self._leaves(k):
                self._astray = True
                self._go_to(found[k].function, self._sides[k], t)
            elif self._is_back(found[k].function, t):
                if left and found[k].function in just_left:
                    self.used_up.add(found[k].function)
                self._stay_on(found[k].function, left)
                self._sides_ahead[found[k].function] = float(np.sign(self._rates()[k]))
            else:
                self._go_to(found[k].function, -self._sides[k], t)
        self.slides = tuple(sorted(left))

    def _count_turns(self, t: float, passing: Sequence[int]) -> None:
        """Leave conditions free if a solution turns again and again at the same time."""
        assert self._of is not None
        same = abs(t - self._t_turn) <= ROUND_OFF * EPS * abs(t)
        self._t_turn, self._turns = t, self._turns + 1 if same else 0
        if self._turns > MOST_TURNS:
            self._given_up.update(self._of.surfaces[k].function for k in passing)
            self._given_up.update(self._functions[k] for k in self.slides)

    def _stay_on(self, function: int, slides: list[int]) -> None:
        self._expected[function] = 0.0
        if function in self._functions and function not in self._given_up:
            slides.append(self._functions.index(function))
        else:
            self._given_up.add(function)

    def leave_surfaces(self) -> None:
        """Stop sliding: the state or the functions have changed."""
        self.used_up, self._given_up, self._at_poles = set(), set(), set()
        self._spiral.forget()
        self.stop_sliding()

    def give_up_sliding(self) -> None:
        """Leave conditions free if the solution cannot be kept on their surfaces."""
        self._given_up.update(self._functions[k] for k in self.slides)
        self.stop_sliding()

    def stop_sliding(self) -> None:
        """Look anew which of the surfaces on which the solution is hold it."""
        self.slides, self.pins, self.ended = (), (), ()
        self._corners, self._freed = [], {}
        self._expected, self._forced = {}, set()

    # --- starts ---------------------------------------------------------------------------------

    def find_start(self, mode: str) -> None:
        """Find consistent values for the run, with conditions frozen where they lie."""
        run = self.run
        self.prepare_start()
        for _ in range(MOST_STARTS):
            run.start = run.find_start(mode)
            if not self.settle_start():
                self.search_sides(mode)
                return
            self.prepare_start()
        self.leave_surfaces()
        self.prepare_start()
        run.start = run.find_start(mode)
        self.settle_start()

    def prepare_start(self) -> None:
        """Freeze conditions where the sides of the start are known; free the others."""
        frozen = self._follow_model()
        if frozen is not None:
            self._put([self._expected.get(s.function, 0.0) for s in frozen.surfaces])

    def go_on(self) -> None:
        """Continue from the current point with other inputs, or other conditions."""
        frozen, s = self._follow_model(), self.run.state
        if frozen is not None:
            n = frozen.traced.n
            self._put(self._sides_at(frozen, s.t, s.y_now[:n], s.yp_now[:n]))

    def _follow_model(self) -> Frozen | None:
        """Take over the conditions of the current model; return them, None if it has none."""
        run = self.run
        frozen = run.model.frozen
        if frozen is None:
            self._of = None
            surfaces.watch_no_surfaces(run.state)
            return None
        if frozen is not self._of:
            self._bands = np.zeros(len(frozen.surfaces))
            run.want_between(frozen.unknowns[: run.n])
        if frozen is not self._of or run.model is not self._model:
            self._heights = frozen.heights.new(run.model.values)
        self._of = frozen
        if not (frozen.shares or frozen.pins):
            self._functions = tuple(surface.function for surface in frozen.surfaces)
        return frozen

    def _sides_at(
        self, frozen: Frozen, t: float, y: np.ndarray, yp: np.ndarray
    ) -> np.ndarray:
        """Return a point's sides of all surfaces; set the bands that count as on a surface."""
        pairs = frozen.sizes.new(self.run.model.values).values(t, y, yp).reshape(-1, 2)
        self._bands = ROUND_OFF * EPS * np.abs(pairs).sum(axis=1)
        heights = self._heights.values(t, y, yp)
        sides = np.where(np.abs(heights) > self._bands, np.sign(heights), 0.0)
        for k, surface in enumerate(frozen.surfaces):
            if k in frozen.pinned:
                sides[k], self._bands[k] = 0.0, self._allowed(frozen, k, t, y, yp)
            elif not surface.conditions:
                sides[k] = 1.0
            elif surface.function in self._at_poles:
                self._bands[k] = 0.0           # the terms there say nothing about other points
            elif surface.function in self._given_up:
                sides[k], self._bands[k] = 0.0, np.inf
        return sides

    def settle_start(self) -> bool:
        """Freeze conditions where the start lies; tell whether it must be found again."""
        frozen, start = self._of, self.run.start
        if frozen is None or not start.success:
            return False
        n = frozen.traced.n
        sides = self._sides_at(frozen, self.run.given[0], start.y[:n], start.yp[:n])
        again = False
        for k, surface in enumerate(frozen.surfaces):
            function = surface.function
            if surface.conditions and function in self._expected and self._bands[k] < np.inf:
                if sides[k] == 0.0 or function in self._forced:
                    sides[k] = self._expected[function]
                again |= bool(sides[k] != self._expected[function])
        if again:
            forced = self._forced
            self._expect_sides(sides)
            self._forced = forced
            return True
        self._expected, self._forced = {}, set()
        self._put(sides)
        return False

    def search_sides(self, mode: str) -> None:
        """If no start was found on the expected sides of surfaces, look for one on other sides.

        All conditions are frozen, first as they are for the given values. Then the conditions that
        the found values contradict are reversed, all at once or one by one, until there are none.
        """
        run, frozen = self.run, self._of
        if frozen is None or frozen.shares or run.start.success:
            return
        n, (t, y, yp) = frozen.traced.n, run.given
        here = self._sides_at(frozen, t, y[:n], np.zeros(n) if yp is None else yp[:n])
        turnable = [k for k, s in enumerate(frozen.surfaces)
                    if s.conditions and self._bands[k] < np.inf]
        here[[k for k in turnable if here[k] == 0.0]] = 1.0
        waiting, tried = [tuple(here)], set[tuple[float, ...]]()
        failed = run.start
        while waiting and len(tried) < MOST_SETS:
            trial = waiting.pop(0)
            if trial in tried:
                continue
            tried.add(trial)
            sides = np.array(trial)
            self._put(sides)
            run.start = run.find_start(mode)
            wrong = turnable
            if run.start.success:
                found = self._sides_at(frozen, t, run.start.y[:n], run.start.yp[:n])
                wrong = [k for k in turnable if found[k] * sides[k] < 0.0]
                if not wrong:
                    self._expected, self._forced = {}, set()
                    return
                waiting.insert(0, _turned(trial, wrong))
            waiting += [_turned(trial, [k]) for k in wrong]
        run.start = failed
        self.prepare_start()

    # --- several surfaces at once -----------------------------------------------------------------

    @property
    def met(self) -> list[int]:
        """Functions of the surfaces on which the start lies, if they allow sliding."""
        if self._of is None:
            return []
        t, on = self.run.given[0], {self._functions[k] for k in self.slides}
        off = self._given_up | self._left | self._at_poles | {f for c in self._corners for f in c}
        reached = []
        for k, surface in enumerate(self._of.surfaces):
            function = surface.function
            free = self._sides[k] == 0.0 and self._bands[k] < np.inf
            if surface.conditions and function not in off and (free or self._is_back(function, t)):
                reached.append(k)
        if len(reached) + len(on - off) > 1:
            on.update(self._of.surfaces[k].function for k in self._with_jump(reached))
        else:
            on.update(self._of.surfaces[k].function for k in reached)
        return [function for function in self._functions if function in on - off]

    def _with_jump(self, reached: list[int]) -> list[int]:
        """Return those of some surfaces through the start on which the equations jump.

        A solution passes or leaves a mere kink and is never held there: both sides agree on the
        surface. Since conditions may depend on each other, all sides of the other surfaces are
        examined if there are few.
        """
        few = len(reached) <= MOST_TOGETHER
        ways = product((1.0, -1.0), repeat=len(reached)) if few else [self._sides[reached]]
        found: dict[tuple[float, ...], tuple[np.ndarray, np.ndarray]] = {}
        jumping = set()
        for way, (place, k) in product(map(list, ways), enumerate(reached)):
            pair = [(*way[:place], side, *way[place + 1 :]) for side in (1.0, -1.0)]
            for sides in pair:
                if sides not in found:
                    found[sides] = self._equations_on(reached, sides)
            if _differ(*map(found.get, pair)):
                jumping.add(k)
        return sorted(jumping)

    def _equations_on(
        self, reached: list[int], sides: Sequence[float]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return values of the equations at the start for some sides, and their errors."""
        frozen, run = self._of, self.run
        assert frozen is not None
        n, chosen = frozen.traced.n, self._sides.copy()
        chosen[reached] = sides
        runner = Plain(frozen.equations, np.append(run.model.inputs, frozen.shifts(chosen)))
        return runner.values_with_errors(run.given[0], run.start.y[:n], run.start.yp[:n])

    def passes(self, met: list[int]) -> bool:
        """Tell whether the start lies on one side of every surface met and moves away from it.

        Or it stays on it, as before.
        """
        assert self._of is not None
        slid = {self._functions[k] for k in self.slides}
        here = {s.function: float(side)
                for s, side in zip(self._of.surfaces, self._sides, strict=True)}
        ways = {f: 0.0 if f in slid else here.get(f, 0.0) for f in met}
        return all(f in slid or ways[f] for f in met) and self.better_ways(ways) == ways

    def assume(self, ways: dict[int, float]) -> None:
        """For the next start, assume sides of surfaces, or sliding on them."""
        self._expect_sides(self._sides)
        for function, side in ways.items():
            self._go_to(function, side, self.run.given[0])
        self._release(ways)
        self._slide_on([function for function, side in ways.items() if side == 0.0])

    def better_ways(self, ways: dict[int, float]) -> dict[int, float] | None:
        """Correct ways that contradict the start found for them; None if there is no start.

        If a share is used up, the solution goes to the side that has all of it; if a height returns
        to zero, it stays. There are none either where it stays on one of the `used_up` surfaces.
        """
        frozen, run = self._of, self.run
        if frozen is None or not run.start.success:
            return None
        if any(ways.get(function) == 0.0 for function in self.used_up):
            return None
        better, shares = dict(ways), run.start.y[run.n : run.n + run.model.shares]
        for k, share in zip(self.slides, shares, strict=True):
            if not -SHARE_SLACK <= share <= 1.0 + SHARE_SLACK:
                better[self._functions[k]] = -1.0 if share > 0.5 else 1.0
        rates = self._rates()
        for surface, rate, is_known in zip(frozen.surfaces, rates, frozen.rates[1], strict=True):
            side = ways.get(surface.function, 0.0)
            if side and is_known and not rate * side > 0.0:
                better[surface.function] = 0.0
        return better

    def stand_on(self, functions: Sequence[int]) -> None:
        """Leave conditions free at the next start if it lies on their surfaces."""
        self._expect_sides(self._sides)
        self._expected.update(dict.fromkeys(functions, 0.0))
        self._slide_on(())

    def decide_on_surfaces(self) -> bool:
        """Examine surfaces on which the start lies; tell whether it must be found again.

        If the height rises on both sides, or falls on both, the solution goes to that side; if both
        sides point at the surface it stays.
        """
        frozen, run = self._of, self.run
        if frozen is None or not run.start.success:
            return False
        rates, known = frozen.rates
        n = frozen.traced.n
        for k in np.flatnonzero((self._sides == 0.0) & (self._bands < np.inf)).tolist():
            function = frozen.surfaces[k].function
            is_open = known[k] and k not in frozen.pinned and function not in self._given_up
            if not is_open or function not in self._functions:
                continue
            found, before = [], self._sides.copy()
            for side in (1.0, -1.0):
                trial = before.copy()
                trial[k] = side
                self._put(trial)
                start = run.find_start()
                if start.success:
                    runner = rates.new(run.model.values)
                    found.append(runner.values(run.given[0], start.y[:n], start.yp[:n])[k])
            self._put(before)
            way = _way(found)
            if way is not None:
                self._expect_sides(before)
                if way == 0.0:
                    self.slides = tuple(sorted({*self.slides, self._functions.index(function)}))
                else:
                    self._go_to(function, way, run.given[0])
                return True
            run.shorten_first_step(abs(run.state.h))  # the search for starts has moved the state
        return False

    def leave_without_mixture(self) -> bool:
        """Leave surfaces on which no mixture of sides holds the start; tell if there were any."""
        run = self.run
        shares = run.start.y[run.n : run.n + run.model.shares]
        held = (shares >= -SHARE_SLACK) & (shares <= 1.0 + SHARE_SLACK)
        if np.all(held):
            return False
        self.slides = tuple(k for k, is_held in zip(self.slides, held, strict=True) if is_held)
        self._expect_sides(self._sides)
        return True

    def _put(self, sides: np.ndarray | Sequence[float]) -> None:
        run, sides = self.run, np.array(sides, float)
        is_attached = self._state is run.state and self._model is run.model
        if not is_attached or not np.array_equal(sides, self._sides):
            run.model.freeze(sides, run.state)
            run.state.jacobian_exists = False
            run.state.cj_factored = 0.0
        self._sides, self._state, self._model = sides, run.state, run.model
        surfaces.watch_surfaces(run.state, self._heights, sides, self._bands)

    # --- steps ----------------------------------------------------------------------------------

    def passed(self, polynomial: Polynomial) -> list[tuple[float, int]]:
        """Return surfaces passed in the last step, and when; freeze conditions now decided."""
        frozen, run = self._of, self.run
        if frozen is None or run.model.frozen is not frozen:
            return []
        s, n = run.state, frozen.traced.n
        heights = self._heights.values(s.t, s.y_now[:n], s.yp_now[:n])
        off = (self._sides == 0.0) & (np.abs(heights) > self._bands)
        beyond = heights * self._sides < -self._bands
        pinned = list(frozen.pinned)
        beyond[pinned], off[pinned] = off[pinned], False
        if off.any():
            self._put(np.where(off, np.sign(heights), self._sides))
        on_user = polynomial.restricted(n)
        self._at_poles = set()
        return [(self._locate(int(k), on_user), int(k)) for k in np.flatnonzero(beyond)]

    def _locate(self, k: int, polynomial: Polynomial) -> float:
        """Return when a height changes its sign in the last step; note if it does so at a pole."""
        assert self._of is not None

        def height(t: float) -> float:
            return float(self._heights.values(t, *polynomial(t))[k])

        a, b = polynomial.t_old, polynomial.t
        ga, gb = height(a), height(b)
        if ga * self._sides[k] <= 0.0:         # it was passed just before, up to round-off
            tried = [(t, height(t)) for t in a + (b - a) * 0.5 ** np.arange(1, LOOKS_BACK)]
            off = [(t, g) for t, g in tried if g * self._sides[k] > self._bands[k]]
            if not off:
                return a
            a, ga = off[0]
        if gb * self._sides[k] >= 0.0:
            return b
        close = 4.0 * EPS * max(abs(a), abs(b), 1e-300)
        t = find_zero(height, a, b, ga, gb, close)
        behind = t + np.copysign(close, b - a)
        is_before = height(t) * self._sides[k] > 0.0
        matters = self._of.has_roots or self._spiral.passes(self._of.surfaces[k].function)
        if is_before and matters and (b - behind) * (b - a) > 0.0:
            t = behind         # on the new side, where derivatives of roots have their right signs
        if not abs(height(t)) <= max(abs(ga), abs(gb)):
            self._at_poles.add(self._of.surfaces[k].function)
        return t

    def free_all(self) -> bool:
        """Free all conditions if the run cannot continue; tell whether any was frozen."""
        frozen = self._of
        if frozen is None or self.run.model.frozen is not frozen or frozen.shares:
            return False
        if not self._sides.any():
            return False
        self._bands = np.full(len(self._sides), np.inf)
        self._put(np.zeros(len(self._sides)))
        return True


def _turned(sides: tuple[float, ...], wrong: Sequence[int]) -> tuple[float, ...]:
    return tuple(-side if k in wrong else side for k, side in enumerate(sides))


def _differ(one: Any, other: Any) -> bool:
    """Tell whether values differ by more than their errors; NaN differs from everything."""
    (above, error_above), (below, error_below) = one, other
    return not bool(np.all(np.abs(above - below) <= KINK * (error_above + error_below)))


def _way(rates: Sequence[float]) -> float | None:
    """Side to which a solution on a surface goes, by the rates above and below; 0 if it stays.

    None if undecided: it moves along the surface, or could go either way.
    """
    if len(rates) < 2 or not np.all(np.isfinite(rates)):
        return None
    above, below = rates
    small = AT_REST * max(abs(above), abs(below))
    if above > small and below >= -small:
        return 1.0
    if below < -small and above <= small:
        return -1.0
    return 0.0 if above < -small and below > small else None
