"""Singular pencils of sparse matrices, found by inverse iteration.

Singular values of n unknowns would take time like n cubed and memory like n squared. Whether
s E + A is singular for every s, and by which equations and unknowns, follows from a few solutions
with sparse factors.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tether.structure.pencil import PARTICIPATES, SHIFTS, Pencil
from tether.structure.scaling import nonzero

__all__ = ["singular_pencil"]

# Singular values of the scaled matrix below this are zero; differences are not more exact.
TOLERANCE = 1e-7
# Added to the diagonal, so that exactly singular matrices have factors.
NUDGE = 1e-13
# Number of null vectors looked for at first, and at most: more dependences would tell nothing.
FIRST_VECTORS, MOST_VECTORS = 8, 64
ITERATIONS = 3
SWEEPS = 4


def singular_pencil(E: Any, A: Any, scale: np.ndarray) -> Pencil | None:
    """Return a singular pencil s E + A and what makes it singular; None for a regular one.

    Parameters
    ----------
    E, A : sparse arrays of shape (n, n)
        dF/dy' and dF/dy at one point.
    scale : ndarray
        Units of the unknowns.

    Returns
    -------
    Pencil or None

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csc_array, eye_array
    >>> from tether.structure.sparse_pencil import singular_pencil
    >>> E = csc_array(np.diag([1.0, 0.0, 0.0]))
    >>> A = csc_array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0], [0.0, 2.0, 2.0]])
    >>> singular_pencil(E, A, np.ones(3)).dependent
    (1, 2)
    >>> singular_pencil(E, csc_array(eye_array(3)), np.ones(3)) is None
    True
    """
    E, A = _equilibrated(E * scale, A * scale)
    left, right = [], []
    for shift in SHIFTS:
        found = _null_vectors((shift * E + A).tocsc())
        if found is None:
            return None
        left.append(found[0])
        right.append(found[1])
    # a shift that is an eigenvalue of the regular part has too many null vectors
    fewest = min(vectors.shape[1] for vectors in left)
    return Pencil(
        index=None,
        singular=True,
        dof=0,
        var_index=(abs(E).max(axis=0).toarray().ravel() == 0.0).astype(int),
        dependent=_support(left, fewest),
        undetermined=_support(right, fewest),
    )


def _equilibrated(E: Any, A: Any) -> tuple[Any, Any]:
    """Choose a unit of time, and scale rows and columns of both towards largest entries of 1."""
    in_E, in_A = (abs(matrix).max(axis=1).toarray().ravel() for matrix in (E, A))
    both = (in_E > 0.0) & (in_A > 0.0)
    ratios = np.sort(in_A[both] / in_E[both])
    E = E * (ratios[len(ratios) // 4] if len(ratios) else 1.0)
    size = abs(E).maximum(abs(A)).tocsr()
    rows, columns = np.ones(size.shape[0]), np.ones(size.shape[1])
    for _ in range(SWEEPS):
        scaled = _times(rows, size, columns)
        rows /= np.sqrt(nonzero(scaled.max(axis=1).toarray().ravel()))
        scaled = _times(rows, size, columns)
        columns /= np.sqrt(nonzero(scaled.max(axis=0).toarray().ravel()))
    rows /= nonzero(_times(rows, size, columns).max(axis=1).toarray().ravel())
    return _times(rows, E, columns), _times(rows, A, columns)


def _times(rows: np.ndarray, matrix: Any, columns: np.ndarray) -> Any:
    from scipy.sparse import diags_array  # late, to save time

    return diags_array(rows) @ matrix @ diags_array(columns)


def _null_vectors(matrix: Any) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the left and right null vectors of a matrix as columns; None if there are none.

    With a pivot that is zero up to round-off, solutions are null vectors. A tiny amount is added to
    the diagonal, so that no pivot is exactly zero.
    """
    from scipy.sparse import diags_array  # late, to save time
    from scipy.sparse.linalg import splu

    n = matrix.shape[0]
    draw = np.random.default_rng(0)
    try:
        factors = splu((matrix + diags_array(NUDGE * draw.uniform(0.5, 1.0, n))).tocsc())
    except RuntimeError:
        return None
    count = min(FIRST_VECTORS, n)
    while True:
        left = np.linalg.qr(draw.standard_normal((n, count)))[0]
        for _ in range(ITERATIONS):
            right = factors.solve(left)
            if not np.isfinite(right).all():
                return None
            right = np.linalg.qr(right)[0]
            left = factors.solve(right, trans="T")
            if not np.isfinite(left).all():
                return None
            left = np.linalg.qr(left)[0]
        among_left, values, among_right = np.linalg.svd(left.T @ (matrix @ right))
        zero = values <= TOLERANCE
        if not zero.any():
            return None
        if not zero.all() or count == n:
            return left @ among_left[:, zero], right @ among_right[zero].T
        if count >= MOST_VECTORS:
            return None
        count = min(2 * count, n)


def _support(spaces: list[np.ndarray], fewest: int) -> tuple[int, ...]:
    """Find what takes part at every shift: at some, null vectors run through chains of others."""
    shares = [np.abs(space).max(axis=1) for space in spaces if space.shape[1] == fewest]
    return tuple(np.flatnonzero(np.min(shares, axis=0) > PARTICIPATES).tolist())
