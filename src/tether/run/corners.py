"""Corners: places where surfaces meet, which some of them hold a solution in.

See `tether.structure.sliding` for the equations that hold there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tether.run.straying import Straying

if TYPE_CHECKING:
    from tether.plan.model import Model
    from tether.run.integration import Integration

__all__ = ["SHARE_SLACK", "Corners"]

# A share is inside its bounds up to this much; one that is to hold a corner must be inside by more.
SHARE_SLACK, SHARE_MARGIN = 1e-6, 1e-3
# The side to which a solution that leaves a corner goes from a pinned surface, by its share.
PINNED_SIDES = {0.0: 1.0, 1.0: -1.0}


class Corners(Straying):
    """The corners in which a solution is held."""

    def __init__(self, run: Integration) -> None:
        super().__init__(run)
        # functions of the surfaces that together hold the solution where they meet ...
        self._corners: list[tuple[int, ...]] = []
        self._freed: dict[int, float] = {}     # ... and of those that no longer do, with the side

    def fits(self, model: Model) -> bool:
        """Tell whether a model's equations stay on the same surfaces."""
        return (self.slides, self.pins) == (model.slides, model.pins)

    def kept(self) -> tuple[Any, ...]:
        """Return what is needed to come back to this way by `go_back_to`."""
        assert self._of is not None
        sides = {surface.function: float(side) for surface, side in
                 zip(self._of.surfaces, self._sides, strict=True) if surface.conditions}
        return self.slides, self.pins, list(self._corners), sides

    def go_back_to(self, kept: tuple[Any, ...]) -> None:
        """Expect the same way at the next start as when it was `kept`."""
        self.slides, self.pins, self._corners, sides = kept
        self._expected = {function: side for function, side in sides.items() if side}
        self._forced = set(self._expected)

    def assume_corner(self, slides: Sequence[int], pins: dict[int, float]) -> None:
        """For the next start, assume that the solution stays where some surfaces meet."""
        self._expect_sides(self._sides)
        self._release([*slides, *pins])
        numbers = {function: k for k, function in enumerate(self._functions)}
        new = [(numbers[function], share) for function, share in pins.items()]
        self.pins = tuple(sorted([*self.pins, *new]))
        self._slide_on([*slides, *self._held_alone])
        self._corners.append((*slides, *pins))

    def is_held(self, functions: Sequence[int]) -> bool:
        """Tell whether the start stays where some surfaces meet, as assumed."""
        frozen, run = self._of, self.run
        if frozen is None or not run.start.success:
            return False
        shares = run.start.y[run.n : run.n + run.model.shares]
        for k, share in zip(self.slides, shares, strict=True):
            margin = SHARE_MARGIN if self._functions[k] in functions else -SHARE_SLACK
            if not margin <= share <= 1.0 - margin:
                return False
        n, t = frozen.traced.n, run.given[0]
        heights = self._heights.values(t, run.start.y[:n], run.start.yp[:n])
        rates, known, left = self._rates(), frozen.rates[1], abs(run.state.t_end - t)
        span = left if np.isfinite(left) else max(1.0, abs(t))
        return all(
            known[k] and abs(heights[k]) + span * abs(rates[k]) <= self._bands[k]
            for k in frozen.pinned
        )

    def leave_corners(self) -> dict[int, float]:
        """Leave corners that no longer hold the start.

        Return the functions of their surfaces, with the sides where shares are used up, and zero.
        """
        run, left = self.run, dict[int, float]()
        if not (self._corners and run.start.success):
            return {}
        shares = run.start.y[run.n : run.n + run.model.shares]
        for k, share in zip(self.slides, shares, strict=True):
            if not -SHARE_SLACK <= share <= 1.0 + SHARE_SLACK:
                self._freed.setdefault(self._functions[k], -1.0 if share > 0.5 else 1.0)
        given = {self._functions[k]: PINNED_SIDES.get(share, 0.0) for k, share in self.pins}
        for corner in self._corners:
            if any(function in self._freed for function in corner):
                left.update({f: self._freed.get(f, given.get(f, 0.0)) for f in corner})
        self._freed = {}
        return left

    @property
    def _held_alone(self) -> list[int]:
        """Functions of the surfaces on which the solution slides outside of corners."""
        in_corners = {function for corner in self._corners for function in corner}
        return [f for f in (self._functions[k] for k in self.slides) if f not in in_corners]

    def _release(self, functions: Iterable[int]) -> None:
        """Forget the corners that some surfaces belong to."""
        some = set(functions)
        off = {f for corner in self._corners if some & set(corner) for f in corner} | some
        self._corners = [corner for corner in self._corners if not some & set(corner)]
        self.pins = tuple((k, share) for k, share in self.pins if self._functions[k] not in off)
        self.slides = tuple(k for k in self.slides if self._functions[k] not in off)

    def _slide_on(self, functions: Iterable[int]) -> None:
        """Stay on surfaces, and on those that hold the solution in corners, but on no others."""
        on = {*functions, *(f for corner in self._corners for f in corner)}
        on -= {self._functions[k] for k, _ in self.pins}
        self.slides = tuple(k for k, f in enumerate(self._functions) if f in on)
