"""Which initial values may be chosen freely."""

from __future__ import annotations

import numpy as np

from tether.structure.hidden import Reduced
from tether.structure.reduced_start import Search
from tether.structure.scaling import balanced

__all__ = ["free_unknowns"]

# A column with less than this left, in rows scaled to 1, depends on those chosen before.
DEPENDENT = 1e-9


def free_unknowns(reduced: Reduced, t: float, y: np.ndarray) -> list[int]:
    """One set of unknowns whose values may be chosen; the constraints determine the others.

    The constraints are solved, one after the other, for the unknown that they determine best;
    those that repeat others are left out.
    """
    states = [j for j, stage in enumerate(reduced.stages) if stage < 0]
    C = _by_states(Search(reduced, t).constraint_jacobian(y), np.array(reduced.stages) < 0)
    largest = np.abs(C).max(axis=1, initial=0.0)
    C = C / np.where(largest > 0.0, largest, 1.0)[:, None]
    taken: set[int] = set()
    for _ in range(len(C)):
        size = np.linalg.norm(C, axis=0)
        best = int(np.argmax(np.round(size, 12)))
        if size[best] <= DEPENDENT:
            break
        taken.add(best)
        direction = C[:, best] / size[best]
        C = C - np.outer(direction, direction @ C)
    return [j for k, j in enumerate(states) if k not in taken]


def _by_states(G: np.ndarray, state: np.ndarray) -> np.ndarray:
    """Combine the constraints so that only states are left in them."""
    if not G[:, ~state].any():
        return G[:, state]
    row, column = balanced(G[:, ~state])
    left, values, _ = np.linalg.svd(row[:, None] * G[:, ~state] * column)
    rank = int(np.sum(values > DEPENDENT))
    return left[:, rank:].T @ (row[:, None] * G[:, state])
