"""Steps from a surface that lead to the wrong side, and spirals that come to no end.

An error within the tolerance is large for a solution that hardly leaves a surface before it returns
to it. Where the equations contain roots, a second derivative at the surface may be infinite.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tether.run.sides import AT_REST, ROUND_OFF, SidesOfSurfaces
from tether.run.spirals import Spiral
from tether.run.watch import EPS

if TYPE_CHECKING:
    from tether.run.integration import Integration

__all__ = ["Straying"]

# A solution that stays on a surface changes by less than this many tolerances.
NO_JUMP = 0.1
# The next step after one that went astray, as a share of it.
AFTER_STRAYING = 1e-2
# The first step is this share of the time after which a second derivative would lead the solution
# back; if that is a smaller share of it, the derivative is infinite but for round-off.
FIRST_STEP_SHARE, RETURN_SHARE = 0.25, 1e-3


class Straying(SidesOfSurfaces):
    """Watches the steps from surfaces.

    Attributes
    ----------
    ended : tuple of int
        Functions of the surfaces that the solution has passed ever faster, and on which it is now.
    """

    def __init__(self, run: Integration) -> None:
        super().__init__(run)
        self.ended: tuple[int, ...] = ()
        self._spiral = Spiral()
        self._astray = False                   # whether the last step went to a wrong side
        # sides to which the solution seemed to go from surfaces to which it has come back
        self._sides_ahead: dict[int, float] = {}

    def _leaves(self, k: int) -> bool:
        """Tell whether the start moves away from a surface, whatever the step after it did.

        Where a second derivative is infinite, as that of a root, the step may have gone astray.
        """
        assert self._of is not None
        if not (self._of.rates[1][k] and self.run.start.success):
            return False
        rates = self._rates()
        return bool(rates[k] * self._sides[k] > AT_REST * np.abs(rates).max())

    def pass_after_all(self) -> bool:
        """Pass surfaces on which the solution could only stay if unknowns jumped.

        Steps that went astray have passed them back and forth. Tell if there are such surfaces.
        """
        run, ahead = self.run, {f: side for f, side in self._sides_ahead.items() if side}
        self._sides_ahead = {}
        if not (ahead and run.start.success and run.model.shares):
            return False
        start, n = run.start, run.n
        change = np.abs(start.y[:n] - run.given[1]) * run.state.weights[:n]
        if start.jump is None or change.max() <= NO_JUMP:
            return False
        self._astray = True
        self._expect_sides(self._sides)
        for function, side in ahead.items():
            self._go_to(function, side, run.given[0])
        self.slides = tuple(k for k in self.slides if self._functions[k] not in ahead)
        return True

    def shorten_step(self) -> None:
        """Begin with a step that does not pass the next surface of a spiral unseen."""
        run = self.run
        if not run.start.success or self._of is None:
            return
        h, t = abs(run.state.h), run.given[0]
        longest, back = self._spiral.first_step(t), self._return_time(h)
        if self._astray:
            longest = min(longest, AFTER_STRAYING * run.stride)
        longest = min(h, max(longest, ROUND_OFF * EPS * abs(t)))
        if self._astray or back < RETURN_SHARE * longest:
            run.start = replace(run.start, ypp=None)
            run.shorten_first_step(longest)
        elif min(longest, FIRST_STEP_SHARE * back) < h:
            run.shorten_first_step(min(longest, FIRST_STEP_SHARE * back))
        self._astray = False

    def _return_time(self, h: float) -> float:
        """When the solution turns back to surfaces that it has just passed, if within a step h."""
        assert self._of is not None
        t, times = self.run.given[0], [np.inf]
        if self.run.start.ypp is None or t not in self._turned.values():
            return np.inf
        here, behind = self._rates_here_and_behind(h)
        for surface, side, now, then in zip(
            self._of.surfaces, self._sides, here, behind, strict=True
        ):
            if self._turned.get(surface.function) == t and now * side > 0.0 > then * side:
                times.append(h * now / (now - then))
        return float(min(times))

    def _is_lost(self, k: int, t: float, y: np.ndarray) -> bool:
        """Tell whether the solution moves around a surface within its tolerance, without end."""
        frozen, start = self._of, self.run.start
        assert frozen is not None
        surface, n = frozen.surfaces[k], frozen.traced.n
        if not (surface.conditions and frozen.rates[1][k] and start.success):
            return False
        if len(y) < n or not self._spiral.has_stalled(surface.function):
            return False
        farthest = abs(self._rates()[k] * (t - self.run.given[0])) / 4.0
        return bool(farthest <= self._allowed(frozen, k, t, y[:n], start.yp[:n]))
