"""The 2N system of HK eq. 21, factored: dense (eq. 22-23), sparse (eq. 24) and banded.

`derivative.py` says what is solved and why HK eq. 24 needs a second variant.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

EPS = float(np.finfo(float).eps)
# Largest y'' eps allowed in HK eq. 24; this factor is lost in accuracy.
LARGEST_EFFECT = 1e3
# Damping of the least squares of the regularised forms, relative to |B|^2: a step leaves an error
# of DAMPING cond(B)^2.
DAMPING = 1e-14

Matrix = Any                           # ndarray or a sparse array of SciPy
Pair = tuple[np.ndarray, np.ndarray]


class Factors(ABC):
    """Factors of HK eq. 21 at a point.

    `regular` is False where the index is above 1, `decides` is True where F alone determines y'.
    """

    regular: bool
    decides = False

    @abstractmethod
    def solve(self, b1: np.ndarray, b2: np.ndarray) -> Pair:
        """Return the increments of y' and y''."""

    @abstractmethod
    def reduce(self, b1: np.ndarray) -> np.ndarray:
        """Return a dy' that brings B dy' as close to b1 as possible."""


class Dense(Factors):
    """Complete orthogonal decomposition Q B K = [R 0; 0 0], HK eq. 22."""

    def __init__(self, A: Matrix, B: Matrix, tolerance: float) -> None:
        from scipy.linalg import lu_factor

        A, B = (M.toarray() if hasattr(M, "tocsr") else M for M in (A, B))
        self.Q, self.R, self.K = _orthogonal_decomposition(B, tolerance)
        k = len(self.R)
        self.decides = k == len(B)
        QAK = self.Q @ A @ self.K
        self.C, D = QAK[:k], QAK[k:]                          # HK, below eq. 22
        self.D1, self.D2 = D[:, :k], D[:, k:]
        # [R~; D] = [R 0; D1 D2] is regular exactly if D2 is.
        self.regular = self.decides or _is_regular(
            self.D2, np.abs(D).max(axis=1), np.abs(A @ self.K[:, k:]).max(axis=0), tolerance
        )
        if self.regular and not self.decides:
            self.lu = lu_factor(self.D2)

    def solve(self, b1: np.ndarray, b2: np.ndarray) -> Pair:
        """Solve by HK eq. 23."""
        from scipy.linalg import lu_solve

        k = len(self.R)
        d, f, g = (self.Q @ b1)[:k], (self.Q @ b2)[:k], (self.Q @ b2)[k:]
        x = np.zeros_like(b1)
        if k > 0:
            x[:k] = self._back_substitute(d)                  # HK eq. 23, rows 1 and 2
        if not self.decides:
            x[k:] = lu_solve(self.lu, g - self.D1 @ x[:k], check_finite=False)
        z = np.zeros_like(b1)                                 # HK eq. 23, row 3: least |z|
        if k > 0:
            z[:k] = self._back_substitute(f - self.C @ x)     # HK print f for f - C x
        return self.K @ x, self.K @ z

    def reduce(self, b1: np.ndarray) -> np.ndarray:
        """Solve in the least-squares sense."""
        k = len(self.R)
        if k == 0:
            return np.zeros_like(b1)
        return self.K[:, :k] @ self._back_substitute((self.Q @ b1)[:k])

    def _back_substitute(self, b: np.ndarray) -> np.ndarray:
        from scipy.linalg import solve_triangular

        return solve_triangular(self.R, b, check_finite=False)


def _orthogonal_decomposition(
    B: np.ndarray, tolerance: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return Q, R, K: Householder with column pivoting from the left, finished from the right."""
    from scipy.linalg import qr, rq

    left, triangle, order = qr(B, pivoting=True)
    pivots = np.abs(np.diag(triangle))
    k = int(np.count_nonzero(pivots > tolerance * pivots[0]))
    K = np.eye(len(B))
    R = triangle[:0, :0]
    if k > 0:
        wide, right = rq(triangle[:k])                        # [0 R] times orthogonal
        R = wide[:, -k:]
        K[order] = np.roll(right.T, k, axis=1)
    return left.T, R, K


def _is_regular(
    D2: np.ndarray, row_sizes: np.ndarray, column_sizes: np.ndarray, tolerance: float
) -> bool:
    """Judge D2 by its smallest singular value, relative to the rows and columns it is cut from."""
    if not (np.all(row_sizes > 0) and np.all(column_sizes > 0)):
        return False
    # Columns are only enlarged: an unknown in small units, not one with a fast equation.
    scaled = D2 / row_sizes[:, None] / np.minimum(column_sizes, 1.0)
    if not np.isfinite(scaled).all():
        return False
    return bool(np.linalg.svd(scaled, compute_uv=False)[-1] > tolerance)


class Regularised(Factors):
    """HK eq. 24: [B eps I; A B], eps = macheps |B|, or with eps A where that fails."""

    def __init__(self, A: Matrix, B: Matrix, tolerance: float) -> None:
        self.eps = EPS * (float(row_maxima(B).max()) or 1.0)
        columns = np.maximum(row_maxima(A.T), row_maxima(B.T))
        # A right-hand side that is orthogonal to nothing that follows from structure.
        self._mixture = np.random.default_rng(0).uniform(0.5, 1.0, len(columns))
        factored = (self.factor(A, B) and self._has_effect()) or self.factor(A, B, with_A=True)
        self.regular = (
            factored and self._is_bounded(columns, tolerance) and self._factor_least_squares(B)
        )

    def _factor_least_squares(self, B: Matrix) -> bool:
        """Factor [I B; B^T -damping] for the remainder of b1 and a small dy'."""
        from scipy import sparse
        from scipy.sparse.linalg import splu

        B = sparse.csr_array(B)
        identity = sparse.eye_array(B.shape[0])
        damping = DAMPING * float(abs(B).max() or 1.0) ** 2
        compound = sparse.block_array([[identity, B], [B.T, -damping * identity]], format="csc")
        try:
            self.least_squares = splu(compound)
        except RuntimeError:                                  # exactly singular
            return False
        return True

    def reduce(self, b1: np.ndarray) -> np.ndarray:
        """Solve by least squares: HK eq. 24 would spread e of b1 over y' by y'' = e / eps."""
        return self.least_squares.solve(np.concatenate([b1, np.zeros_like(b1)]))[len(b1) :]

    @abstractmethod
    def factor(self, A: Matrix, B: Matrix, with_A: bool = False) -> bool:
        """Factor with eps I or eps A; False if a pivot is zero."""

    def _has_effect(self) -> bool:
        """Tell whether eps acts on the whole null space of B: y'' is then of size 1 / eps."""
        ypp = self.solve(self._mixture, np.zeros_like(self._mixture))[1]
        return bool(np.all(self.eps * np.abs(ypp) < LARGEST_EFFECT))

    def _is_bounded(self, columns: np.ndarray, tolerance: float) -> bool:
        """Tell whether the index is 1: then dy' stays bounded; above, it is of size 1 / eps."""
        dyp = self.solve(np.zeros_like(self._mixture), self._mixture)[0]
        return bool(np.all(np.abs(columns * dyp) < 1.0 / tolerance))


class Sparse(Regularised):
    """HK eq. 24 by sparse LU."""

    def factor(self, A: Matrix, B: Matrix, with_A: bool = False) -> bool:
        """Factor the whole 2N system."""
        from scipy import sparse
        from scipy.sparse.linalg import splu

        A, B = sparse.csr_array(A), sparse.csr_array(B)
        corner = A if with_A else sparse.eye_array(B.shape[0])
        compound = sparse.block_array([[B, self.eps * corner], [A, B]], format="csc")
        try:
            self.lu = splu(compound)
        except RuntimeError:                                  # exactly singular
            return False
        return True

    def solve(self, b1: np.ndarray, b2: np.ndarray) -> Pair:
        """Solve with the sparse factors."""
        dyp, ypp = np.split(self.lu.solve(np.concatenate([b1, b2])), 2)
        return dyp, ypp


class Banded(Regularised):
    """HK eq. 24 with unknowns dy'_1, y''_1, dy'_2, ... and equations 1, N+1, 2, N+2, ...

    `matrix` has the diagonals as rows, as `scipy.linalg.solve_banded` wants them, `widths` counts
    those below and above.
    """

    def __init__(self, A: Matrix, B: Matrix, tolerance: float, ml: int, mu: int) -> None:
        self.ml, self.mu = ml, mu
        super().__init__(A, B, tolerance)

    def factor(self, A: Matrix, B: Matrix, with_A: bool = False) -> bool:
        """Fill the band; it is factored with each right-hand side."""
        n = B.shape[0]
        upper = 2 * self.mu + 1 if with_A else max(2 * self.mu, 1)
        self.widths = 2 * self.ml + 1, upper
        self.matrix = np.zeros((sum(self.widths) + 1, 2 * n))
        inside = 0
        for shift in range(-self.ml, self.mu + 1):            # column minus row
            a, b = A.diagonal(shift), B.diagonal(shift)
            inside += int(np.count_nonzero(a) + np.count_nonzero(b))
            of_yp = slice(2 * max(shift, 0), 2 * (n + min(shift, 0)), 2)
            of_ypp = slice(of_yp.start + 1, of_yp.stop + 1, 2)
            self.matrix[upper - 2 * shift, of_yp] = b
            self.matrix[upper - 2 * shift + 1, of_yp] = a
            self.matrix[upper - 2 * shift, of_ypp] = b
            if with_A:
                self.matrix[upper - 2 * shift - 1, of_ypp] = self.eps * a
        if not with_A:
            self.matrix[upper - 1, 1::2] = self.eps
        if inside < np.count_nonzero(entries(A)) + np.count_nonzero(entries(B)):
            raise ValueError(
                f"band = ({self.ml}, {self.mu}) is too narrow: the Jacobian has entries outside"
            )
        return True

    def solve(self, b1: np.ndarray, b2: np.ndarray) -> Pair:
        """Solve the interleaved system."""
        from scipy.linalg import solve_banded

        rhs = np.column_stack([b1, b2]).ravel()
        try:
            x = solve_banded(self.widths, self.matrix, rhs, check_finite=False)
        except np.linalg.LinAlgError:                         # exactly singular
            x = np.full_like(rhs, np.nan)
        return x[::2], x[1::2]


def row_maxima(matrix: Matrix) -> np.ndarray:
    """Largest absolute value in each row."""
    sizes = abs(matrix).max(axis=1)
    return sizes.toarray().ravel() if hasattr(sizes, "toarray") else sizes


def entries(part: Matrix) -> np.ndarray:
    """Return the stored values of a dense or sparse matrix."""
    return part.data if hasattr(part, "tocsr") else part
