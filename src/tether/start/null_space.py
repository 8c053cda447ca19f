"""Directions of y' that change the residual, and those that leave it unchanged."""

from __future__ import annotations

from typing import Any

import numpy as np

from tether.structure.scaling import balanced

__all__ = ["directions", "sparse_directions"]

# A direction of y' that changes F by less than this share of the largest change has no effect.
NO_EFFECT = 1e-7
# Relative size of what is left of terms that cancel in an equation.
ROUND_OFF = 1e-14
# Largest group of derivatives that occur together for which singular vectors are found.
MOST_TOGETHER = 1500

Directions = tuple[Any, Any, np.ndarray]


def directions(fy: np.ndarray, fyp: np.ndarray, unit: np.ndarray, scale: float) -> Directions:
    """Directions of y', their dual basis, and which of them have no effect; in natural units."""
    matrix = fyp * unit
    size = np.maximum(np.abs(matrix), scale * np.abs(fy * unit)).max(axis=1, keepdims=True)
    matrix[np.abs(matrix) <= ROUND_OFF * size] = 0.0
    vectors, length, sizes = _singular(matrix, unit)
    return length * vectors, vectors / length, sizes <= NO_EFFECT * sizes[0]


def sparse_directions(fy: Any, fyp: Any, unit: np.ndarray, scale: float) -> Directions | None:
    """As `directions`, of sparse matrices: for each group of derivatives that occur together.

    None if a group is so large that its singular vectors would take too long.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csc_array
    >>> from tether.start.null_space import sparse_directions
    >>> fyp = csc_array([[1.0, -1.0, 0.0], [-1.0, 1.0, 0.0], [0.0, 0.0, 2.0]])
    >>> sparse_directions(fyp, fyp, np.ones(3), 1.0)[2]
    array([False,  True, False])
    """
    from scipy.sparse import coo_array, csc_array  # late, to save time
    from scipy.sparse.csgraph import connected_components

    n = len(unit)
    matrix = csc_array(fyp * unit).tocoo()
    size = np.maximum(
        abs(matrix).max(axis=1).toarray(), scale * abs(fy * unit).max(axis=1).toarray()
    ).ravel()
    keep = np.abs(matrix.data) > ROUND_OFF * size[matrix.row]
    data, row, column = matrix.data[keep], matrix.row[keep], matrix.col[keep]
    graph = coo_array((np.ones(len(data)), (row, n + column)), shape=(2 * n, 2 * n))
    count, group = connected_components(graph, directed=False)
    rows, columns = _Members(group[:n], count), _Members(group[n:], count)
    if columns.number.max() > MOST_TOGETHER:
        return None
    of_entry = group[row]
    effects, largest = np.zeros(n), 0.0
    places: list[np.ndarray] = []
    values: list[np.ndarray] = []
    shapes = np.stack([rows.number, columns.number], axis=1)
    for shape in np.unique(shapes[columns.number > 0], axis=0):    # all groups of one shape at once
        alike = np.flatnonzero((shapes == shape).all(axis=1))
        number = np.full(count, -1)
        number[alike] = np.arange(len(alike))
        here = number[of_entry] >= 0
        blocks = np.zeros((len(alike), *shape))
        blocks[number[of_entry[here]], rows.place[row[here]], columns.place[column[here]]] = (
            data[here]
        )
        own = columns.of(alike)
        vectors, length, sizes = _singular(blocks, unit[own])
        largest = max(largest, sizes.max(initial=0.0))
        effects[own[:, : sizes.shape[1]]] = sizes
        places.append(np.array([np.repeat(own, shape[1], axis=1), np.tile(own, shape[1])]))
        values.append(np.array([length * vectors, vectors / length]))
    place, value = (
        np.concatenate([part.reshape(2, -1) for part in parts], axis=1)
        for parts in (places, values)
    )
    basis, dual = (csc_array((entries, place), shape=(n, n)) for entries in value)
    return basis, dual, effects <= NO_EFFECT * largest


class _Members:
    """The members of numbered groups.

    Attributes
    ----------
    number : ndarray
        Number of members of every group.
    place : ndarray
        Place of every member in its group.
    """

    def __init__(self, group: np.ndarray, count: int) -> None:
        self.number = np.bincount(group, minlength=count)
        self._sorted = np.argsort(group, kind="stable")
        self._first = np.cumsum(self.number) - self.number
        self.place = np.empty(len(group), int)
        self.place[self._sorted] = np.arange(len(group)) - self._first[group[self._sorted]]

    def of(self, groups: np.ndarray) -> np.ndarray:
        """Members of some groups of the same size, one row for each group."""
        return self._sorted[self._first[groups][:, None] + np.arange(self.number[groups[0]])]


def _singular(matrix: np.ndarray, unit: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Right singular vectors in columns, the lengths of their components, and singular values.

    Works on one matrix, or on a stack of them.
    """
    row, column = balanced(matrix)
    _, sizes, vt = np.linalg.svd(row[..., None] * matrix * column[..., None, :])
    vt[np.abs(vt) < ROUND_OFF] = 0.0       # a row of pure round-off would look like any other
    return np.swapaxes(vt, -1, -2), (unit * column)[..., None], sizes
