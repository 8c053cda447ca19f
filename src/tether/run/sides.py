"""The sides of surfaces on which a solution is, and how it moves there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tether.run.part import Part
from tether.run.watch import EPS

if TYPE_CHECKING:
    from tether._core.state import State
    from tether.plan.model import Model
    from tether.run.integration import Integration
    from tether.structure.frozen import Frozen
    from tether.structure.sliding import Pins

__all__ = ["AT_REST", "ROUND_OFF", "SidesOfSurfaces"]

# A height counts as zero within this many units of round-off.
ROUND_OFF = 64.0
# A solution stays on a surface if its rate is below this share of the larger one.
AT_REST = 1e-9
# How far behind the start a rate that is zero there is looked at, as a share of the last step.
AHEAD = 1e-4


class SidesOfSurfaces(Part):
    """What is known about the surfaces of one run.

    Attributes
    ----------
    slides : tuple of int
        Surfaces on which the solution stays, by their numbers in the plan without sliding.
    pins : tuple of (int, float)
        Surfaces on which it stays because it stays on others, and the shares that the equations
        below them have.
    """

    def __init__(self, run: Integration) -> None:
        super().__init__(run)
        self.slides: tuple[int, ...] = ()
        self.pins: Pins = ()
        self._of: Frozen | None = None         # the conditions to which the following belongs
        self._sides = np.zeros(0)              # 1 above a surface, -1 below, 0 where it is free
        self._bands = np.zeros(0)
        self._heights: Any = None              # runs the program of the heights
        self._state: State | None = None
        self._model: Model | None = None       # the model that gave the programs their inputs
        self._functions: tuple[int, ...] = ()  # of the surfaces that allow sliding, in order
        # by functions of the surfaces:
        self._expected: dict[int, float] = {}  # sides for the next start
        self._forced: set[int] = set()         # which of these are certain
        self._turned: dict[int, float] = {}    # when they were last passed
        self._left: set[int] = set()           # those that the solution has just left

    def _go_to(self, function: int, side: float, t: float) -> None:
        self._expected[function] = side
        self._forced.add(function)
        self._turned[function] = t

    def _is_back(self, function: int, t: float) -> bool:
        """Tell whether the solution returns to a surface right where it passed it."""
        return bool(abs(t - self._turned.get(function, np.inf)) <= ROUND_OFF * EPS * abs(t))

    def _rates(self) -> np.ndarray:
        """Return the rates of heights at the start; where they are zero, those right behind it."""
        run = self.run
        h = AHEAD * min(run.stride, abs(run.state.t_end - run.given[0]))
        here, behind = self._rates_here_and_behind(h)
        changes = np.abs(behind - here) > np.maximum(np.abs(here), AT_REST * np.abs(behind).max())
        return np.where(changes, behind, here)

    def _rates_here_and_behind(self, h: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the rates of heights at the start and a time h after it, as far as known."""
        frozen, run = self._of, self.run
        assert frozen is not None
        n, start, t = frozen.traced.n, run.start, run.given[0]
        y, yp, ypp = start.y[:n], start.yp[:n], start.ypp
        runner = frozen.rates[0].new(run.model.values)
        here = runner.values(t, y, yp).copy()
        if ypp is None or not np.isfinite(h):
            return here, here
        h *= run.state.direction
        there = y + h * (yp + 0.5 * h * ypp[:n]), yp + h * ypp[:n]
        return here, runner.values(t + h, *there)

    def _allowed(
        self, frozen: Frozen, k: int, t: float, y: np.ndarray, yp: np.ndarray
    ) -> float:
        """Return how much a height may change if unknowns change within their tolerances."""
        found, here = 0.0, self._heights.values(t, y, yp)[k]
        for j in np.flatnonzero(frozen.traced.depends_on([frozen.surfaces[k].function], len(y))):
            moved = y.copy()
            moved[j] += self.run.state.tolerances[j]
            found += abs(self._heights.values(t, moved, yp)[k] - here)
        return float(found)

    def _expect_sides(self, sides: np.ndarray) -> None:
        """Expect the next start on these sides of the surfaces, unless it lies on others.

        A solution that has just left a surface is never exactly on it: its side is certain.
        """
        assert self._of is not None
        t = self.run.given[0]
        self._expected = {
            surface.function: side
            for surface, side in zip(self._of.surfaces, sides, strict=True) if surface.conditions
        }
        self._forced = {f for f in self._left & self._expected.keys() if self._is_back(f, t)}
