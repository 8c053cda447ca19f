"""Units: of unknowns and of time, and matrices in natural units.

No result may depend on the units in which a system is written. How much a change of an unknown
matters is known from its absolute tolerance: changes of two unknowns by the same number of their
tolerances matter alike. Present values cannot tell, since they may be zero.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tether.problem.options import Options

__all__ = [
    "Ranges", "Units", "balanced", "balanced_sparse", "evened", "independent", "nonzero", "ranges",
]

# With these tolerances all units are 1.
RTOL, ATOL = 1e-6, 1e-9
# Components of unit vectors below this are the noise of differences.
PARTICIPATES = 1e-9
# Smaller numbers have lost digits, and quotients by them overflow.
SMALLEST_DIVISOR = 1e-290


@dataclass(frozen=True, eq=False)
class Units:
    """Units of the unknowns and of time.

    Attributes
    ----------
    y : ndarray
        Changes of the unknowns that matter alike.
    t : float
        Length of the time interval, in which an unknown may change by its unit.

    Examples
    --------
    Metres, and millimetres with their own tolerance:

    >>> import numpy as np
    >>> from tether.structure.scaling import Units
    >>> units = Units.of(np.full(2, 1e-6), np.array([1e-9, 1e-6]), np.zeros(2), 20.0)
    >>> units.y, units.t
    (array([   1., 1000.]), 20.0)
    >>> units.sizes(np.array([0.5, 0.0]), 0.3)
    array([  0.5, 150. ])
    """

    y: np.ndarray
    t: float = 1.0

    @classmethod
    def of(
        cls, rtol: np.ndarray, atol: np.ndarray, y: np.ndarray, span: float = math.inf
    ) -> Units:
        """Derive units from tolerances, or from the value where there is no absolute one."""
        time = span if math.isfinite(span) else 1.0
        relative = rtol[rtol > 0.0].min(initial=1.0) if rtol.any() else RTOL
        unit = np.where(atol > 0.0, atol / ATOL * (RTOL / relative), np.abs(y))
        return cls(nonzero(unit), time)

    @classmethod
    def of_options(cls, options: Options, y: np.ndarray, span: float = math.inf) -> Units:
        """Derive units from options, quickly if all unknowns have the same tolerances."""
        rtol, atol = options.rtol, options.atol
        if isinstance(rtol, float) and isinstance(atol, float) and rtol > 0.0 and atol > 0.0:
            return _equal(len(y), rtol, atol, span)
        return cls.of(*options.tolerances(len(y)), y, span)

    @classmethod
    def alike(cls, n: int) -> Units:
        """Give all of n unknowns the unit 1."""
        return cls(np.ones(n))

    def with_more(self, count: int) -> Units:
        """Add unknowns that are shares, with the unit 1."""
        return Units(np.append(self.y, np.ones(count)), self.t)

    def largest(self, y: np.ndarray) -> float:
        """Largest of some values, each in its unit; 1 where all are zero."""
        return float(np.max(np.abs(y) / self.y, initial=0.0)) or 1.0

    def sizes(self, y: np.ndarray, share: float) -> np.ndarray:
        """Size of every unknown: that of its value, and at least a share of the largest value."""
        return np.maximum(np.abs(y), share * self.largest(y) * self.y)


@lru_cache(maxsize=64)
def _equal(n: int, rtol: float, atol: float, span: float) -> Units:
    """Equal units of n unknowns; kept, since most runs have the tolerances of the one before."""
    units = np.full(n, atol / ATOL * (RTOL / min(rtol, 1.0)))
    units.flags.writeable = False
    return Units(units, span if math.isfinite(span) else 1.0)


def balanced(matrix: np.ndarray, sweeps: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """Factors of rows and columns that bring their largest entries towards 1.

    Works on one matrix, or on a stack of them.

    Examples
    --------
    >>> import numpy as np
    >>> from tether.structure.scaling import balanced
    >>> row, column = balanced(np.diag([1e6, 1e-4]))
    >>> row * column * [1e6, 1e-4]
    array([1., 1.])
    """
    size = np.abs(matrix)
    row, column = np.ones(size.shape[:-1]), np.ones((*size.shape[:-2], size.shape[-1]))
    for _ in range(sweeps):
        scaled = row[..., None] * size * column[..., None, :]
        row = row / np.sqrt(nonzero(scaled.max(axis=-1, initial=0.0)))
        column = column / np.sqrt(nonzero(scaled.max(axis=-2, initial=0.0)))
    return row, column


def evened(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Factors of rows and columns that bring all entries towards 1, by least squares of logarithms.

    What only tiny entries determine gets a large factor, though its column has a large entry too.

    Examples
    --------
    >>> import numpy as np
    >>> from tether.structure.scaling import evened
    >>> row, column = evened(np.array([[1.0, -1.0], [1e-12, 0.0]]))
    >>> abs(row[:, None] * [[1.0, -1.0], [1e-12, 0.0]] * column).round(6).tolist()
    [[1.0, 1.0], [1.0, 0.0]]
    """
    i, j = np.nonzero(np.abs(matrix) > SMALLEST_DIVISOR)
    m, n = matrix.shape
    terms = np.zeros((len(i), m + n))
    terms[np.arange(len(i)), i] = terms[np.arange(len(i)), m + j] = 1.0
    logarithms = np.linalg.lstsq(terms, -np.log(np.abs(matrix[i, j])), rcond=None)[0]
    return np.exp(logarithms[:m]), np.exp(logarithms[m:])


def balanced_sparse(matrix: Any, sweeps: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """As `balanced`, of one sparse matrix.

    Examples
    --------
    >>> from scipy.sparse import diags_array
    >>> from tether.structure.scaling import balanced_sparse
    >>> row, column = balanced_sparse(diags_array([1e6, 1e-4]))
    >>> row * column * [1e6, 1e-4]
    array([1., 1.])
    """
    entries = matrix.tocoo()
    (i, j), size = entries.coords, np.abs(entries.data)
    row, column = (np.ones(count) for count in matrix.shape)
    for _ in range(sweeps):
        scaled = row[i] * size * column[j]
        rows, columns = (np.zeros(count) for count in matrix.shape)
        np.maximum.at(rows, i, scaled)
        np.maximum.at(columns, j, scaled)
        row, column = row / np.sqrt(nonzero(rows)), column / np.sqrt(nonzero(columns))
    return row, column


@dataclass(frozen=True, eq=False)
class Ranges:
    """Bases of the range and the null spaces of a matrix.

    Attributes
    ----------
    reached, left : ndarray
        Combinations of its rows, one in each column: independent ones, and those that vanish.
    right : ndarray
        Vectors that the matrix maps to zero, one in each column.
    """

    reached: np.ndarray
    left: np.ndarray
    right: np.ndarray


def ranges(matrix: np.ndarray, unit: np.ndarray, tolerance: float) -> Ranges:
    """Find range and null spaces of a matrix whatever the units of its rows and columns.

    Parameters
    ----------
    matrix : ndarray
        The matrix.
    unit : ndarray
        Units of its columns.
    tolerance : float
        Singular values below this share of the largest are zero.

    Examples
    --------
    >>> import numpy as np
    >>> from tether.structure.scaling import ranges
    >>> found = ranges(np.array([[1e9, 0.0], [0.0, 1e-9]]), np.ones(2), 1e-7)
    >>> found.left.shape[1], found.right.shape[1]
    (0, 0)
    """
    row, column = balanced(matrix * unit)
    column = column * unit
    u, values, vt = np.linalg.svd(row[:, None] * matrix * column)
    rank = int(np.sum(values > tolerance * values[0])) if len(values) and values[0] > 0 else 0
    u[np.abs(u) < PARTICIPATES] = 0.0
    combined, vectors = row[:, None] * u, column[:, None] * vt.T
    return Ranges(combined[:, :rank], combined[:, rank:], vectors[:, rank:])


def independent(matrix: np.ndarray, unit: np.ndarray, tolerance: float) -> np.ndarray:
    """Find independent combinations of the rows, one in each row: as `reached` of `ranges`.

    Examples
    --------
    >>> import numpy as np
    >>> from tether.structure.scaling import independent
    >>> independent(np.array([[1.0, 0.0], [2.0, 0.0]]), np.ones(2), 1e-7).shape
    (1, 2)
    """
    row, column = balanced(matrix * unit)
    u, values, _ = np.linalg.svd(row[:, None] * matrix * column * unit, full_matrices=False)
    rank = int(np.sum(values > tolerance * values[0])) if len(values) and values[0] > 0 else 0
    u[np.abs(u) < PARTICIPATES] = 0.0
    return np.asarray((row[:, None] * u[:, :rank]).T)


def nonzero(x: np.ndarray) -> np.ndarray:
    """Replace 0, and numbers close to it, by 1, for divisors."""
    return np.where(x > SMALLEST_DIVISOR, x, 1.0)
