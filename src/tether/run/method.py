"""The interface of a method of integration: read this before you write one.

A run is a sequence of steps in the core's memory, a `State`. A method takes the steps. It receives
a state with functions, tolerances and the end of the interval, and after every step it leaves there
the new point (`state.t`, `state.y_now`, `state.yp_now`), the size and order of the step
(`state.last_h`, `state.last_k`) and the counts of its work. Everything else in the state belongs to
the method: nobody else reads or writes its history.

`Integration` requests starts and restarts, steps, and the polynomial over the last step, without
knowing the method. `tether.run.bdf` is the first one.
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
    """How steps are taken. One object serves all runs: the data of a run are in its state."""

    def begin(self, state: State, t: float, start: Start, first_step: float) -> int:
        """Begin at a consistent start, without a history; return a code of the core.

        If `first_step` is zero the method chooses it.
        """

    def advance(self, state: State, count: int) -> int:
        """Take up to `count` steps; return the core's code for why it stopped.

        It returns at the end of the interval, where an event function has changed its sign, where a
        comparison is due, and where it cannot continue.
        """

    def polynomial(self, state: State) -> Polynomial:
        """Return the polynomial over the last step, of all unknowns."""

    def interpolant(self, steps: Steps) -> DenseOutput:
        """Return the solution between the points of a finished run."""

    def add_past(self, state: State, times: np.ndarray, values: np.ndarray) -> None:
        """After `begin`: use the solution at earlier times, oldest first, one row each."""

    def go_on(self, state: State, t: float, start: Start, past: Polynomial) -> None:
        """Begin within a step where the solution continues smoothly, with its history."""
