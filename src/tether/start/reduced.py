"""A start for a system that was reduced to a lower index."""

from __future__ import annotations

import numpy as np

from tether.plan.model import ReducedModel
from tether.start.consistent import Start
from tether.structure.start import MoreRows, reduced_start

__all__ = ["lift"]


def lift(
    model: ReducedModel,
    t: float,
    y: np.ndarray,
    yp: np.ndarray | None,
    more: MoreRows | None = None,
) -> Start:
    """Find consistent values of all unknowns near the user's, on further constraints too."""
    found = reduced_start(model.reduced, t, y, yp, model.values, model.units, more)
    return Start(found.y, found.yp, found.success, found.message, found.moved, found.residual)
