"""Variable-order, variable-step BDF: the first method of integration, `tether.run.method`."""

from __future__ import annotations

import numpy as np

from tether._core import begin, interpolate, step
from tether._core.state import State
from tether.run.interpolant import Interpolant, LocalInterpolant
from tether.run.method import Polynomial
from tether.run.steps import Steps
from tether.structure.start import Start

__all__ = ["BDF", "Bdf"]


class Bdf:
    """The steps are those of `tether._core.step`; the history is in the differences `phi`."""

    def begin(self, state: State, t: float, start: Start, first_step: float) -> int:
        """Begin at order 1, or with a parabola at order 2.

        The parabola is needed at index 3 as written. If y'' is known it also makes better restarts,
        of which a run that switches has many.
        """
        code = begin.begin(state, t, start.y, start.yp, first_step)
        if not start.success:
            return code
        ypp = start.ypp
        if state.lowest_order > 1:
            from tether.start.high_index import curvature  # late, to save time

            ypp = curvature(state, t, start.y, start.yp) if ypp is None else ypp
        elif state.steps == 0:
            return code
        if ypp is not None:
            begin.bend(state, np.ascontiguousarray(ypp))
            state.starting = state.lowest_order == 1
        return code

    def advance(self, state: State, count: int) -> int:
        """Take up to `count` steps without returning to Python."""
        return step.advance(state, count)

    def polynomial(self, state: State) -> LocalInterpolant:
        """Return the polynomial through the last points."""
        return LocalInterpolant(*interpolate.last_step_polynomial(state))

    def interpolant(self, steps: Steps) -> Interpolant:
        """Rebuild the polynomials from the points that they pass through."""
        return Interpolant(steps)

    def add_past(self, state: State, times: np.ndarray, values: np.ndarray) -> None:
        """Let the run begin at the order that the number of times allows."""
        begin.add_history(state, times, values)

    def go_on(self, state: State, t: float, start: Start, past: Polynomial) -> None:
        """Continue at the previous order, through equidistant points of the polynomial."""
        h = past.t - past.t_old
        times = t - h * np.arange(past.k, 0, -1)
        begin.begin(state, t, start.y, start.yp, abs(h))
        begin.add_history(state, times, past(times)[0].T)


BDF = Bdf()
