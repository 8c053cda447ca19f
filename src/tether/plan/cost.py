"""What a factorisation and its solutions cost, stored in full, as a band, or without zeros.

The figures are nanoseconds; only their ratios matter (`benchmarks/linear_solvers.py`).
"""

from __future__ import annotations

from tether._core.sparse_lu import SparseLU
from tether.base.pattern import Pattern

__all__ = ["cheapest_way"]

SOLUTIONS = 4               # with the same factors, on average
# LAPACK's factors of a full matrix, by operation; its solutions, by entry.
FULL, FULL_ENTRY = 0.2, 0.3
# Factors that leave zeros out: by operation, by entry, and by column.
SPARSE, SPARSE_ENTRY = 1.2, 4.0
SPARSE_SOLUTION, SPARSE_COLUMN = 1.05, 8.5
# A band: narrow ones by the core's loops, wide ones by LAPACK.
BAND, WIDE_BAND = 0.8, 0.5
BAND_ENTRY, BAND_COLUMN = 1.5, 14.0
BAND_SOLUTION, BAND_SOLUTION_COLUMN = 0.75, 13.0
THREE_DIAGONALS = 4.0       # a solution, by column


def cheapest_way(pattern: Pattern) -> str:
    """Tell whether "dense", "sparse" or "band" costs least for the pattern of a matrix."""
    if pattern.way is None:
        costs = {
            "dense": dense_cost(pattern.n),
            "sparse": sparse_cost(pattern),
            "band": band_cost(pattern),
        }
        pattern.way = min(costs, key=lambda way: costs[way])
    return str(pattern.way)


def dense_cost(n: int) -> float:
    """Cost of LAPACK's factors of a full matrix."""
    return n**3 / 3 * FULL + SOLUTIONS * n**2 * FULL_ENTRY


def sparse_cost(pattern: Pattern) -> float:
    """Cost of factors that leave zeros out; they are made once to see how many there are."""
    factors = SparseLU(pattern)
    if not factors.take(pattern.regular_values):
        return 0.0          # structurally singular: this way says which equations are to blame
    once = SPARSE * factors.operations + SPARSE_ENTRY * factors.entries
    solution = SPARSE_SOLUTION * factors.entries + SPARSE_COLUMN * pattern.n
    return float(once + SOLUTIONS * solution)


def band_cost(pattern: Pattern) -> float:
    """Cost of factors within the narrowest band."""
    n, band = pattern.n, pattern.band
    once = n * (band.below * (band.above + 1) * (BAND if band.is_narrow else WIDE_BAND)
                + band.width * BAND_ENTRY + BAND_COLUMN)
    solution = n * (band.width * BAND_SOLUTION + BAND_SOLUTION_COLUMN)
    if band.is_three:
        solution = n * THREE_DIAGONALS
    return once + SOLUTIONS * solution
