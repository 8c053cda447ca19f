"""A start for a system that was reduced to a lower index."""

from __future__ import annotations

import numpy as np

from tether.plan.model import Model
from tether.structure.reduced_start import MoreRows, reduced_start
from tether.structure.start import Start

__all__ = ["lift"]


def lift(
    model: Model,
    t: float,
    y: np.ndarray,
    yp: np.ndarray | None,
    more: MoreRows | None = None,
) -> Start:
    """Find consistent values of all unknowns near the user's, also on further constraints."""
    assert model.reduced is not None
    return reduced_start(model.reduced, t, y, yp, model.values, model.units, more)
