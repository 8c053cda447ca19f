"""Whether a Jacobian given by the user is exact, or only an approximation.

An approximation is good enough for the iterations of a run, but it makes derivatives of the
solution wrong.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tether.sensitivity.differences import NotSmooth, central

__all__ = ["CHECK_EVERY", "refuse_inexact"]

# Largest relative difference between an exact Jacobian and difference quotients.
EXACTNESS_TOLERANCE = 1e-5
# One of so many points is checked.
CHECK_EVERY = 8


def refuse_inexact(
    what: str, t: float, fun: Callable[..., np.ndarray], points: list[np.ndarray],
    matrices: list[np.ndarray],
) -> None:
    """Compare the derivative of `fun(*points)` along one direction with that by the matrices.

    Examples
    --------
    >>> import numpy as np
    >>> from tether.sensitivity.exactness import refuse_inexact
    >>> refuse_inexact("jac", 0.0, lambda y: y * y, [np.array([3.0])], [np.array([[6.0]])])
    """
    directions = [_direction(x, k) for k, x in enumerate(points)]

    def along(change: float) -> np.ndarray:
        return fun(*(x + change * v for x, v in zip(points, directions, strict=True)))

    pairs = list(zip(matrices, directions, strict=True))
    said = np.asarray(sum(matrix @ v for matrix, v in pairs))
    terms = np.asarray(sum(np.abs(matrix) @ np.abs(v) for matrix, v in pairs))
    try:
        found = central(along, 1.0, terms)
    except NotSmooth:                          # exactly at a kink
        return
    wrong = np.abs(found - said) > EXACTNESS_TOLERANCE * (terms + np.abs(found))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"sensitivity: {what} is not the derivative of its function at t = {t:.6g}: along some "
            f"direction value {row} changes by {found[row]:.6g}, and {what} says {said[row]:.6g}. "
            "An approximation is good enough for a run, but not for its derivatives: correct it, "
            "or leave it out"
        )


def _direction(x: np.ndarray, turn: int) -> np.ndarray:
    """Make a change of all components, each by about its size."""
    size = np.abs(x) + 1e-3 * max(float(np.abs(x).max(initial=0.0)), 1e-3)
    places = np.arange(len(x)) + 0.7 * turn
    return size * np.where(np.arange(len(x)) % 2, -1.0, 1.0) * (1.0 + 0.5 * np.sin(places))
