"""What a method of integration is to everybody else: read this before you write one.

A run is a sequence of steps in a memory of the core, `State`. A method knows how to take them. It
gets a memory that is filled in, with functions, tolerances and the end of the interval, and it
leaves behind, after every step, the new point (`state.t`, `state.y_now`, `state.yp_now`), the
size and order of the step (`state.last_h`, `state.last_k`) and the counts of its work. All else in
the memory is its own: nobody but the method reads or writes its history.

`Integration` asks for starts and restarts, for steps, and for the polynomial over the last step;
it does not know which method answers. `tether.run.bdf` is the first one.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from tether._core.state import State
from tether.run.steps import Steps
from tether.structure.start import Start

__all__ = ["DenseOutput", "Method", "Polynomial"]


class Polynomial(Protocol):
    """The solution over one step."""

    t: float                     # end of the step ...
    t_old: float                 # ... and its beginning
    k: int                       # its degree

    def __call__(self, t: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Return y and y' at a time or at an array of times (as columns)."""

    def restricted(self, n: int) -> Polynomial:
        """Return the polynomial of the first n unknowns."""


class DenseOutput(Protocol):
    """The solution between the points of a whole run."""

    @property
    def t_min(self) -> float:
        """Smallest time covered."""

    @property
    def t_max(self) -> float:
        """Largest time covered."""

    def __call__(self, t: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Return y and y' at a time or at an array of times (as columns)."""


class Method(Protocol):
    """How steps are taken. One object serves all runs: what belongs to a run is in its state."""

    def begin(self, state: State, t: float, start: Start, first_step: float) -> int:
        """Begin at a consistent start, without a past; return a code of the core.

        A `first_step` of zero leaves its size to the method.
        """

    def advance(self, state: State, count: int) -> int:
        """Take up to `count` steps; return the code of the core that says why it stopped.

        It returns at the end of the interval, where an event function has changed its sign, where
        the caller wanted to look, and where it cannot go on.
        """

    def polynomial(self, state: State) -> Polynomial:
        """Return the polynomial over the last step, of all unknowns."""

    def interpolant(self, steps: Steps) -> DenseOutput:
        """Return the solution between the points of a run that is over."""

    def add_past(self, state: State, times: np.ndarray, values: np.ndarray) -> None:
        """After `begin`: use the solution at times before, oldest first, as columns."""

    def go_on(self, state: State, t: float, start: Start, past: Polynomial) -> None:
        """Begin at a time within a step where the solution goes on smoothly, with its past."""
