"""Happening: why a run restarts, for sensitivities that depend on it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["Happening"]


@dataclass(frozen=True, eq=False)
class Happening:
    """Why a run restarts.

    Attributes
    ----------
    t : float
        Time of the restart.
    y, yp : ndarray
        Values of the user's unknowns before it.
    acting : tuple of int
        Events that change the state, in this order.
    turned, passing : tuple of int
        Surfaces that were passed: those on which the structure depends, and those on which only
        frozen conditions depend.
    decides : bool
        Whether the time is a zero of one of these functions.
    is_break : bool
        Whether it is a time at which the equations switch.
    """

    t: float
    y: np.ndarray
    yp: np.ndarray
    acting: tuple[int, ...] = ()
    turned: tuple[int, ...] = ()
    passing: tuple[int, ...] = ()
    decides: bool = False
    is_break: bool = False
