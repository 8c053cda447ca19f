"""The structure of a large system, from the pattern of its templates."""

from __future__ import annotations

import numpy as np

from tether.trace.row_table import RowTable

__all__ = ["has_regular_structure", "leading_entries"]


def leading_entries(table: RowTable) -> tuple[np.ndarray, np.ndarray]:
    """Mark the entries of F_y and of F_y' that belong to the highest derivatives of unknowns.

    If the slope of an unknown occurs nowhere, its entries are those of F_y.

    Examples
    --------
    >>> from tether.structure.row_structure import leading_entries
    >>> from tether.trace.array_tracer import trace_arrays
    >>> table = trace_arrays(lambda t, y, yp: y[[1, 1]] + yp[0], 2).table
    >>> table.fy, leading_entries(table)[0].tolist()
    ((array([0, 1], dtype=int32), array([1, 1], dtype=int32)), [True, True])
    """
    has_slope = np.zeros(table.n, bool)
    has_slope[table.fyp[1]] = True
    return ~has_slope[table.fy[1]], np.ones(len(table.fyp[0]), bool)


def has_regular_structure(
    table: RowTable, kept: tuple[np.ndarray, np.ndarray] | None = None
) -> bool:
    """Tell whether the highest derivatives of all unknowns can be matched to equations.

    Then the index is 0 or 1, unless entries cancel: Pantelides' algorithm would differentiate
    nothing. Only the entries of F_y and F_y' that are `kept` count.

    Examples
    --------
    >>> from tether.structure.row_structure import has_regular_structure
    >>> from tether.trace.array_tracer import trace_arrays
    >>> has_regular_structure(trace_arrays(lambda t, y, yp: yp + y, 3).table)
    True
    >>> has_regular_structure(trace_arrays(lambda t, y, yp: y - y.sum() + 0 * yp[::-1], 3).table)
    True
    """
    from scipy.sparse import csr_array  # late, to save time
    from scipy.sparse.csgraph import maximum_bipartite_matching

    n, (of_y, of_slopes) = table.n, leading_entries(table)
    if kept is not None:
        of_y, of_slopes = of_y & kept[0], of_slopes & kept[1]
    rows, columns = (
        np.concatenate([table.fy[k][of_y], table.fyp[k][of_slopes]]) for k in (0, 1)
    )
    matrix = csr_array((np.ones(len(rows), np.int8), (rows, columns)), shape=(n, n))
    return bool((maximum_bipartite_matching(matrix) >= 0).all())
