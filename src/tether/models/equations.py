"""Equations of a model, ready for `tether.solve_dae`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Equations"]


@dataclass(frozen=True, eq=False)
class Equations:
    """Equations of a model, ready for `tether.solve_dae`.

    Attributes
    ----------
    fun : callable
        The residual ``fun(t, y, yp)``, in plain NumPy.
    names, units : tuple of str
        Names and units of the unknowns.
    y0 : ndarray
        Zeros: a circuit without charges and currents, a fluid at rest. The solver finds the values
        that follow from the equations.
    """

    fun: Callable[[float, Any, Any], Any]
    names: tuple[str, ...]
    units: tuple[str, ...]
    y0: np.ndarray

    def start(self, values: dict[str, float]) -> np.ndarray:
        """Return starting values with some unknowns set by name.

        Parameters
        ----------
        values : dict
            Values by name, as in ``{"v(out)": 5.0}``.
        """
        y0 = self.y0.copy()
        for name, value in values.items():
            if name not in self.names:
                known = ", ".join(self.names)
                raise ValueError(f"{name!r} is not an unknown; the unknowns are {known}")
            y0[self.names.index(name)] = value
        return y0
