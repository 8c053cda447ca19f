"""What the pattern of templates tells about the structure of a large system."""

from __future__ import annotations

import numpy as np

from tether.trace.row_table import RowTable

__all__ = ["has_regular_structure"]


def has_regular_structure(table: RowTable) -> bool:
    """Tell whether the highest derivatives of all unknowns can be matched to equations.

    Then the index is 0 or 1, unless entries cancel: an unknown whose slope occurs nowhere counts
    itself (Pantelides' algorithm would differentiate nothing).

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

    n = table.n
    has_slope = np.zeros(n, bool)
    has_slope[table.fyp[1]] = True
    leads = ~has_slope[table.fy[1]]
    rows = np.concatenate([table.fyp[0], table.fy[0][leads]])
    columns = np.concatenate([table.fyp[1], table.fy[1][leads]])
    matrix = csr_array((np.ones(len(rows), np.int8), (rows, columns)), shape=(n, n))
    return bool((maximum_bipartite_matching(matrix) >= 0).all())
