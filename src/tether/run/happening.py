"""Happening: why a run begins anew, for those who want to know how that depends on parameters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["Happening"]


@dataclass(frozen=True, eq=False)
class Happening:
    """Why a run begins anew.

    Attributes
    ----------
    t : float
        When.
    y, yp : ndarray
        Values of the user's unknowns before.
    acting : tuple of int
        Events that change the state, in this order.
    turned, passing : tuple of int
        Surfaces that were passed, on which the structure or only frozen conditions depend.
    decides : bool
        Whether the time is where one of these functions is zero.
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
