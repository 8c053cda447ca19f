"""What factors and solutions cost, if a matrix is stored as dense, banded or sparse.

The figures are nanoseconds; only their ratios matter (`benchmarks/linear_solvers.py`).
"""

from __future__ import annotations

from tether._core.sparse_lu import SparseLU
from tether.base.pattern import Pattern

__all__ = ["cheapest_way"]

SOLUTIONS = 4               # with the same factors, on average
# Dense, by LAPACK: factors, per operation; a solution, per entry.
DENSE_FACTOR_OPERATION, DENSE_SOLUTION_ENTRY = 0.2, 0.3
# Sparse: factors, per operation and per entry; a solution, per entry and per column.
SPARSE_FACTOR_OPERATION, SPARSE_FACTOR_ENTRY = 1.2, 4.0
SPARSE_SOLUTION_ENTRY, SPARSE_SOLUTION_COLUMN = 1.05, 8.5
# Banded: factors, per operation (narrow bands by the core's loops, wide ones by LAPACK), per entry
# and per column; a solution, per entry and per column.
BAND_FACTOR_OPERATION, WIDE_BAND_FACTOR_OPERATION = 0.8, 0.5
BAND_FACTOR_ENTRY, BAND_FACTOR_COLUMN = 1.5, 14.0
BAND_SOLUTION_ENTRY, BAND_SOLUTION_COLUMN = 0.75, 13.0
THREE_DIAGONALS_SOLUTION_COLUMN = 4.0       # with three diagonals: a solution, per column


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
    return n**3 / 3 * DENSE_FACTOR_OPERATION + SOLUTIONS * n**2 * DENSE_SOLUTION_ENTRY


def sparse_cost(pattern: Pattern) -> float:
    """Cost of sparse factors; they are made once to count their entries and operations."""
    factors = SparseLU(pattern)
    if not factors.take(pattern.regular_values):
        return 0.0          # structurally singular: only sparse factors name the equations
    once = SPARSE_FACTOR_OPERATION * factors.operations + SPARSE_FACTOR_ENTRY * factors.entries
    solution = SPARSE_SOLUTION_ENTRY * factors.entries + SPARSE_SOLUTION_COLUMN * pattern.n
    return float(once + SOLUTIONS * solution)


def band_cost(pattern: Pattern) -> float:
    """Cost of factors within the narrowest band."""
    n, band = pattern.n, pattern.band
    operation = BAND_FACTOR_OPERATION if band.is_narrow else WIDE_BAND_FACTOR_OPERATION
    once = n * (band.below * (band.above + 1) * operation
                + band.width * BAND_FACTOR_ENTRY + BAND_FACTOR_COLUMN)
    solution = n * (band.width * BAND_SOLUTION_ENTRY + BAND_SOLUTION_COLUMN)
    if band.is_three:
        solution = n * THREE_DIAGONALS_SOLUTION_COLUMN
    return once + SOLUTIONS * solution
