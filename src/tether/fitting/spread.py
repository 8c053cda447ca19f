"""How well the parameters are known: covariance, and quantiles for intervals."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

__all__ = ["Spread"]

# A direction changes nothing if its singular value, with columns of length 1, is smaller than this.
NULL_TOLERANCE = 1e-7
# A parameter is not determined if its component in such a direction is larger than this.
NULL_COMPONENT = 1e-4


@dataclass(frozen=True, eq=False)
class Spread:
    """The errors of parameters that follow from a Jacobian.

    Parameters
    ----------
    jacobian : ndarray, shape (values, parameters)
        Derivative of the weighted differences.
    loss : float
        Sum of their squares.
    known_errors : bool
        Whether standard errors of the measurements were given; otherwise they are estimated from
        the sum of squares.

    Examples
    --------
    >>> import numpy as np
    >>> from tether.fitting.spread import Spread
    >>> spread = Spread(np.ones((4, 1)), 3.0, known_errors=False)
    >>> spread.dof, spread.covariance.tolist()
    (3, [[0.25]])
    """

    jacobian: np.ndarray
    loss: float
    known_errors: bool

    @cached_property
    def lengths(self) -> np.ndarray:
        """Lengths of the columns; 1 where a parameter changes nothing."""
        lengths = np.linalg.norm(self.jacobian, axis=0)
        return np.where(lengths > 0.0, lengths, 1.0)

    @cached_property
    def parts(self) -> tuple[np.ndarray, np.ndarray]:
        """Singular values of the Jacobian with columns of length 1, and the directions."""
        _, s, vt = np.linalg.svd(self.jacobian / self.lengths, full_matrices=True)
        return np.concatenate([s, np.zeros(len(vt) - len(s))]), vt

    @cached_property
    def null(self) -> np.ndarray:
        """Directions in the space of parameters that change nothing, one row for each."""
        s, vt = self.parts
        return vt[s <= NULL_TOLERANCE * max(s[0], NULL_TOLERANCE)] / self.lengths

    @property
    def rank(self) -> int:
        """Number of directions that are determined."""
        return len(self.lengths) - len(self.null)

    @property
    def dof(self) -> int:
        """Degrees of freedom: number of measured values minus number of directions determined."""
        return len(self.jacobian) - self.rank

    @property
    def variance(self) -> float:
        """Variance of a weighted difference."""
        if self.known_errors:
            return 1.0
        return self.loss / self.dof if self.dof > 0 else np.nan

    @cached_property
    def covariance(self) -> np.ndarray:
        """Covariance of the parameters; infinite for those that are not determined."""
        s, vt = self.parts
        kept = s > NULL_TOLERANCE * max(s[0], NULL_TOLERANCE)
        half = vt[kept] / s[kept, None] / self.lengths
        found = self.variance * half.T @ half
        lost = np.any(np.abs(vt[~kept]) > NULL_COMPONENT, axis=0)
        found[lost], found[:, lost] = np.nan, np.nan
        found[lost, lost] = np.inf
        return found

    def quantile(self, level: float) -> float:
        """Half the width of an interval of this level, in standard errors."""
        from scipy.special import ndtri, stdtrit  # late, to save time

        share = 0.5 + 0.5 * level
        if self.known_errors:
            return float(ndtri(share))
        return float(stdtrit(self.dof, share)) if self.dof > 0 else np.nan
