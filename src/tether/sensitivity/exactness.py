"""Whether a Jacobian that a user has given is exact, or only near the derivative.

An approximation serves for the iterations of a run, but derivatives of a solution made with it
are wrong.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tether.sensitivity.differences import NotSmooth, central

__all__ = ["EVERY", "refuse_inexact"]

# Relative: a Jacobian and a difference that differ by more are not the same.
EXACT = 1e-5
# Of so many points one is looked at.
EVERY = 8


def refuse_inexact(
    what: str, t: float, fun: Callable[..., np.ndarray], points: list[np.ndarray],
    matrices: list[np.ndarray],
) -> None:
    """Compare the derivative of `fun(*points)` along one direction with what the matrices say.

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
    except NotSmooth:                          # right at a kink
        return
    wrong = np.abs(found - said) > EXACT * (terms + np.abs(found))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"sensitivity: {what} is not the derivative of its function at t = {t:.6g}: along some "
            f"direction value {row} changes by {found[row]:.6g}, and {what} says {said[row]:.6g}. "
            "An approximation serves for a run, but not for its derivatives: correct it, or leave "
            "it out"
        )


def _direction(x: np.ndarray, turn: int) -> np.ndarray:
    """Make a change of all components, each by about its size."""
    size = np.abs(x) + 1e-3 * max(float(np.abs(x).max(initial=0.0)), 1e-3)
    places = np.arange(len(x)) + 0.7 * turn
    return size * np.where(np.arange(len(x)) % 2, -1.0, 1.0) * (1.0 + 0.5 * np.sin(places))
