"""Directions of y' that the equations see, and those that they do not see."""

from __future__ import annotations

from typing import Any

import numpy as np

from tether.structure.scaling import balanced

__all__ = ["directions", "sparse_directions"]

# Relative: a direction of y' that moves F by less is not seen.
UNSEEN = 1e-7
# Relative: what is left of terms that cancel in an equation.
ROUND_OFF = 1e-14
# Derivatives that hang together in the equations: of more no singular vectors are found.
MOST_TOGETHER = 1500

Directions = tuple[Any, Any, np.ndarray]


def directions(fy: np.ndarray, fyp: np.ndarray, unit: np.ndarray, scale: float) -> Directions:
    """Directions of y', their dual basis, and which of them F does not see; in natural units."""
    matrix = fyp * unit
    size = np.maximum(np.abs(matrix), scale * np.abs(fy * unit)).max(axis=1, keepdims=True)
    matrix[np.abs(matrix) <= ROUND_OFF * size] = 0.0
    vectors, length, sizes = _singular(matrix, unit)
    return length * vectors, vectors / length, sizes <= UNSEEN * sizes[0]


def sparse_directions(fy: Any, fyp: Any, unit: np.ndarray, scale: float) -> Directions | None:
    """Find the same of sparse matrices, for derivatives that hang together in turn.

    None where so many hang together that their singular vectors would take too long.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csc_array
    >>> from tether.start.null_space import sparse_directions
    >>> fyp = csc_array([[1.0, -1.0, 0.0], [-1.0, 1.0, 0.0], [0.0, 0.0, 2.0]])
    >>> sparse_directions(fyp, fyp, np.ones(3), 1.0)[2]
    array([False,  True, False])
    """
    from scipy.sparse import block_array, csc_array  # late, to save time
    from scipy.sparse.csgraph import connected_components

    n = len(unit)
    matrix = (fyp * unit).tocoo()
    size = np.maximum(
        abs(matrix).max(axis=1).toarray(), scale * abs(fy * unit).max(axis=1).toarray()
    ).ravel()
    keep = np.abs(matrix.data) > ROUND_OFF * size[matrix.row]
    matrix = csc_array((matrix.data[keep], (matrix.row[keep], matrix.col[keep])), shape=(n, n))
    graph = block_array([[None, matrix], [matrix.T, None]])
    _, group = connected_components(abs(graph), directed=False)
    by_group = np.argsort(group[n:], kind="stable")
    rows_by_group = np.argsort(group[:n], kind="stable")
    unseen, largest = np.zeros(n), 0.0
    places: list[np.ndarray] = []
    values: list[np.ndarray] = []
    numbers, first = np.unique(group[n:][by_group], return_index=True)
    for number, columns in zip(numbers, np.split(by_group, first[1:]), strict=True):
        bounds = np.searchsorted(group[:n][rows_by_group], (number, number + 1))
        rows = rows_by_group[slice(*bounds)]
        if len(columns) > MOST_TOGETHER:
            return None
        block = matrix[:, columns][rows].toarray()
        vectors, length, sizes = _singular(block, unit[columns])
        largest = max(largest, sizes.max(initial=0.0))
        unseen[columns] = np.append(sizes, np.zeros(len(columns) - len(sizes)))
        places.append(np.array([np.repeat(columns, len(columns)), np.tile(columns, len(columns))]))
        values.append(np.array([(length * vectors).ravel(), (vectors / length).ravel()]))
    place, value = np.concatenate(places, axis=1), np.concatenate(values, axis=1)
    basis, dual = (csc_array((entries, place), shape=(n, n)) for entries in value)
    return basis, dual, unseen <= UNSEEN * largest


def _singular(matrix: np.ndarray, unit: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Right singular vectors in columns, the lengths of their components, and singular values."""
    row, column = balanced(matrix)
    _, sizes, vt = np.linalg.svd(row[:, None] * matrix * column)
    vt[np.abs(vt) < ROUND_OFF] = 0.0       # a row of nothing else would look like any other
    return vt.T, (unit * column)[:, None], sizes
