"""Local index of F(t, y, y') = 0 and the kinds of its variables, from E = F_y' and A = F_y.

The linearised system E y' + A y = g(t) is reduced by Algorithm 1.1 of LP1. A row of E that
depends on other rows gives a constraint, B y = g. Differentiating it, as the algorithm does,
needs every later constraint to be freed of the ones already found. Restricting the system to
the null space of B does both at once and finds the same constraints:

    y = Z w,    B Z = 0,    (E, A) <- (E_kept Z, A_kept Z).

The number of passes until E is regular is the index, the size that is left is the number of
free initial values, and a constraint that depends on others shows a singular pencil.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from tether.structure.scaling import balanced, nonzero

__all__ = ["Pencil", "Scales", "local_pencil", "natural_scales"]

# Singular values of the scaled matrices below this are zero. Finite differences leave 1e-8 in A.
TOLERANCE = 1e-5
# Entries below this share of the largest are noise, with a margin of 100. In E they are removed,
# in A they have little weight when the units are chosen.
NOISE_IN_E = 2e-8
NOISE_IN_A = 1e-6
ROUND_OFF = 1e-13
# Components of unit vectors, and entries of rows scaled to 1, below this do not take part.
PARTICIPATES = 1e-4
# The same for parts that grow as the step shrinks: missing one is worse than finding one too many.
GROWS = 1e-5
# Sweeps of the first equilibration, which only has to be good enough to recognise noise.
SWEEPS = 4
# Pull of the units towards those given, for variables that no equation connects.
DAMPING = 1e-2
# Shifts s for a regular s E + A: several, because one may be close to an eigenvalue.
SHIFTS = (0.7390851, -1.3247180, 2.2360680)


@dataclass(frozen=True, eq=False)
class Scales:
    """Units in which the coefficients of a linearised system are near 1.

    Attributes
    ----------
    rows : ndarray
        Factors of the equations.
    columns : ndarray
        Units of the variables.
    time : float
        Unit of time.

    Examples
    --------
    >>> from tether.structure.pencil import local_pencil
    >>> scales = local_pencil([[1e3]], [[1.0]]).scales
    >>> float(scales.rows[0] * 1e3 * scales.columns[0] / scales.time).__round__(6)
    1.0
    """

    rows: np.ndarray
    columns: np.ndarray
    time: float

    def times(self, scale: ArrayLike | None) -> Scales:
        """Return the same for variables that were measured in units of `scale`."""
        return self if scale is None else replace(self, columns=self.columns * np.asarray(scale))


@dataclass(frozen=True, eq=False)
class Pencil:
    """Index and kinds of variables of the linearised system at one point.

    Attributes
    ----------
    index : int or None
        Local index, the nilpotency of the linearised system; None if the pencil is singular.
    singular : bool
        The linearised system has no unique solution.
    dof : int
        Number of free initial values; 0 if the pencil is singular.
    var_index : ndarray of int
        Kind of every variable: 0 differential, 1 algebraic, v >= 2 if it depends on the
        (v - 1)-th derivative of a constraint. In a mechanism of index 3 positions have 0,
        velocities 2, multipliers 3.
    mechanical : bool
        Index 3 in the form of a constrained mechanism, PL2 (3.8).
    dependent : tuple of int
        Equations that depend on each other, () if the pencil is regular.
    undetermined : tuple of int
        Variables that the equations leave open, () if the pencil is regular.
    prescribed : tuple of int
        Variables of index 3 and above that do not belong in a mechanism: second derivatives of
        something given, variables that occur differentiated, and all above 3.
    counts : tuple of int
        Numbers of constraints on y: given ones, and those found in each differentiation.
    scales : Scales or None
        Units in which the coefficients are near 1; None for a singular pencil.

    Examples
    --------
    >>> from tether.structure.pencil import local_pencil
    >>> pencil = local_pencil([[1, 0], [0, 0]], [[0, -1], [1, 0]])  # x' = z, 0 = x - g(t)
    >>> pencil.index, pencil.dof, pencil.var_index.tolist()
    (2, 0, [0, 2])
    """

    index: int | None
    singular: bool
    dof: int
    var_index: np.ndarray
    mechanical: bool = False
    dependent: tuple[int, ...] = ()
    undetermined: tuple[int, ...] = ()
    prescribed: tuple[int, ...] = ()
    counts: tuple[int, ...] = ()
    scales: Scales | None = None


def local_pencil(
    E: np.ndarray,
    A: np.ndarray,
    *,
    scale: np.ndarray | None = None,
    tolerance: float = TOLERANCE,
) -> Pencil:
    """Find the local index and the kinds of the variables.

    Parameters
    ----------
    E, A : array of shape (n, n)
        dF/dy' and dF/dy at one point.
    scale : array of shape (n,), optional
        Units of the variables, positive; ones by default.
    tolerance : float, optional
        Singular values of the scaled matrices below this count as zero.

    Returns
    -------
    Pencil

    Notes
    -----
    An entry that happens to vanish at the point counts as zero. A pendulum that hangs straight
    down looks like a prescribed vertical motion beside a free horizontal one. For an answer that
    holds for a whole solution, shift time and point a little, say by 1e-3 of their sizes.

    Examples
    --------
    Two equations say the same:

    >>> from tether.structure.pencil import local_pencil
    >>> pencil = local_pencil([[1, 0, 0], [0, 0, 0], [0, 0, 0]], [[1, 1, 0], [0, 1, 1], [0, 2, 2]])
    >>> pencil.singular, pencil.dependent
    (True, (1, 2))
    """
    given = _checked(E, A, scale)
    E, A = _equilibrated(*given)
    algebraic = ~E.any(axis=0)
    counts = _count_constraints(E, A, tolerance)
    if counts is None:
        return Pencil(
            index=None,
            singular=True,
            dof=0,
            var_index=algebraic.astype(int),
            dependent=_null_support(E.T, A.T, tolerance),
            undetermined=_null_support(E, A, tolerance),
        )
    growth = _growth(E, A, counts)
    prescribed = _prescribed(E, A, growth, tolerance)
    return Pencil(
        index=len(counts),
        singular=False,
        dof=len(E) - sum(counts),
        var_index=np.where(growth > 0, growth + 1, algebraic),
        mechanical=len(counts) == 3 and not prescribed,
        prescribed=prescribed,
        counts=tuple(counts),
        scales=natural_scales(*given).times(scale),
    )


def natural_scales(E: np.ndarray, A: np.ndarray) -> Scales:
    """Find units in which the coefficients of F_y' and F_y are near 1.

    Examples
    --------
    >>> import numpy as np
    >>> from tether.structure.pencil import natural_scales
    >>> scales = natural_scales(np.array([[1e3]]), np.array([[1.0]]))
    >>> float(scales.rows[0] * 1e3 * scales.columns[0] / scales.time).__round__(6)
    1.0
    """
    time = _time_unit(E, A)
    row, column = balanced(np.maximum(np.abs(time * E), np.abs(A)), SWEEPS)
    E, A = row[:, None] * time * E * column, row[:, None] * A * column
    units, faster = _natural_units(_without_noise(E), A)
    size = np.maximum(np.abs(E) / faster, np.abs(A)) * units
    return Scales(row / nonzero(size.max(axis=1)), column * units, faster / time)


def _checked(
    E: np.ndarray, A: np.ndarray, scale: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Copy E and A, in units of the typical sizes of the variables."""
    E, A = np.array(E, float), np.array(A, float)
    if E.ndim != 2 or E.shape[0] != E.shape[1] or A.shape != E.shape:
        raise ValueError(f"E and A must be square and alike, not {E.shape} and {A.shape}")
    if not (np.isfinite(E).all() and np.isfinite(A).all()):
        raise ValueError("E and A must be finite")
    if scale is None:
        return E, A
    scale = np.asarray(scale, float)
    if scale.shape != (len(E),) or not np.all((scale > 0) & np.isfinite(scale)):
        raise ValueError(f"scale must be {len(E)} positive numbers")
    return E * scale, A * scale


# --- Units ------------------------------------------------------------------------------------


def _equilibrated(E: np.ndarray, A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Scale columns to natural units and rows to length 1, without the noise of E.

    The length of a row is that of its part in E if it has one: a fast equation, y' = -1e6 y, is
    no less differential than a slow one.
    """
    E, A = _balanced(_time_unit(E, A) * E, A)
    E = _without_noise(E)
    units, _ = _natural_units(E, A)
    E, A = E * units, A * units
    length, other = np.linalg.norm(E, axis=1), np.linalg.norm(A, axis=1)
    length = nonzero(np.where(length > 0, length, other))[:, None]
    return E / length, A / length


def _time_unit(E: np.ndarray, A: np.ndarray) -> float:
    """Choose a unit of time in which E and A have the same size in typical differential equations.

    An equation at the upper quartile of E / A is typical: those free of y' may have noise in E.
    """
    in_E, in_A = np.abs(E).max(axis=1, initial=0.0), np.abs(A).max(axis=1, initial=0.0)
    both = (in_E > 0.0) & (in_A > 0.0)
    ratios = np.sort(in_A[both] / in_E[both])
    return float(ratios[len(ratios) // 4]) if len(ratios) else 1.0


def _balanced(E: np.ndarray, A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Scale rows and columns of both towards largest entries of 1."""
    row, column = balanced(np.maximum(np.abs(E), np.abs(A)), SWEEPS)
    return row[:, None] * E * column, row[:, None] * A * column


def _without_noise(E: np.ndarray) -> np.ndarray:
    """Set noise in E to 0.

    Differences give an exact 0 where y_j' does not occur. So a row with zeros in it has no noise
    but round-off, and its small entries belong to fast equations.
    """
    noise = np.where((E == 0.0).any(axis=1, keepdims=True), ROUND_OFF, NOISE_IN_E)
    return np.where(np.abs(E) > noise * np.abs(E).max(initial=0.0), E, 0.0)


def _natural_units(E: np.ndarray, A: np.ndarray) -> tuple[np.ndarray, float]:
    """Units of the variables and of time in which all coefficients are as near to 1 as possible.

    Least squares of log |E_ij| + r_i + c_j - s and log |A_ij| + r_i + c_j, with the unit of
    time s as an unknown beside those of rows and columns (Curtis and Reid, 1972). Entries in
    that may be noise weigh less. Scaling by largest entries is not enough for a mechanism of
    light bodies and stiff springs: inertia would be lost beside the forces unless accelerations
    got large units.
    """
    n = len(E)
    in_E = (E != 0.0).astype(float)
    in_A = A**2 / nonzero(A**2 + (NOISE_IN_A * np.abs(A).max(initial=0.0)) ** 2)
    log_E = in_E * np.log(nonzero(np.abs(E)))
    logs = log_E + in_A * np.log(nonzero(np.abs(A)))
    both = in_E + in_A
    normal = np.zeros((2 * n + 1, 2 * n + 1))
    normal[:n, n:-1], normal[n:-1, :n] = both, both.T
    normal[:n, -1] = normal[-1, :n] = -in_E.sum(axis=1)
    normal[n:-1, -1] = normal[-1, n:-1] = -in_E.sum(axis=0)
    diagonal = [both.sum(axis=1), both.sum(axis=0), [in_E.sum()]]
    normal[np.diag_indices(2 * n + 1)] = np.concatenate(diagonal) + DAMPING
    rhs = np.concatenate([-logs.sum(axis=1), -logs.sum(axis=0), [log_E.sum()]])
    logarithms = np.linalg.solve(normal, rhs)
    return np.exp(logarithms[n:-1]), float(np.exp(logarithms[-1]))


# --- Index ------------------------------------------------------------------------------------


def _count_constraints(E: np.ndarray, A: np.ndarray, tolerance: float) -> list[int] | None:
    """Count the constraints found in each pass of Algorithm 1.1; None for a singular pencil.

    The number of passes is the index, and pass i finds one constraint for every nilpotent block
    of size i or more.
    """
    counts: list[int] = []
    size = np.linalg.norm(A, axis=1)
    while len(E):
        kept, dropped, factors = _row_basis(E, tolerance)
        if not len(dropped):
            break
        # E_dropped = factors E_kept: the difference of these rows is free of y'.
        B = A[dropped] - factors @ A[kept]
        B_size = size[dropped] + np.abs(factors) @ size[kept]
        _, values, basis = np.linalg.svd(B / nonzero(B_size)[:, None])
        if values[-1] <= tolerance:
            return None
        counts.append(len(dropped))
        Z = basis[len(dropped) :].T
        E, A, size = E[kept] @ Z, A[kept] @ Z, size[kept]
    return counts


def _row_basis(E: np.ndarray, tolerance: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of E that span the others, the others, and the factors that combine the former.

    Whole rows are kept, instead of the combinations of a singular value decomposition, so that
    fast equations do not swamp slow ones.
    """
    n = len(E)
    rank = int(np.sum(np.linalg.svd(E, compute_uv=False) > tolerance))
    if rank == n:
        return np.arange(n), np.arange(0), np.zeros((0, n))
    from scipy.linalg.lapack import dgeqp3, dtrtrs

    R, order, *_ = dgeqp3(E.T)
    order = order - 1  # counted from 1
    factors = dtrtrs(R[:rank, :rank], R[:rank, rank:])[0].T if rank else np.zeros((n, 0))
    return order[:rank], order[rank:], factors


# --- Kinds of variables -----------------------------------------------------------------------


def _growth(E: np.ndarray, A: np.ndarray, counts: list[int]) -> np.ndarray:
    """Exponent i for every variable with which its row of (E + g A)^-1 E grows, g^-i, g -> 0.

    In Weierstrass form the rows are those of N (N + g I)^-1 = N/g - N^2/g^2 + ..., so i is the
    last power of the nilpotent part N in which the variable takes part. The ranges of the
    powers get orthonormal bases, whose dimensions are known from the counts, so that no power of
    N is formed and no sizes are compared.
    """
    growth = np.zeros(len(E), int)
    if len(counts) < 2:
        return growth
    W = _nilpotent_space(E, A, counts)
    N = np.linalg.lstsq(A @ W, E @ W, rcond=None)[0]
    image = np.eye(W.shape[1])
    for power in range(1, len(counts)):
        image = np.linalg.svd(N @ image, full_matrices=False)[0][:, : sum(counts[power:])]
        growth[np.linalg.norm(W @ image, axis=1) > GROWS] = power
    return growth


def _nilpotent_space(E: np.ndarray, A: np.ndarray, counts: list[int]) -> np.ndarray:
    """Orthonormal basis of the nilpotent part.

    W_0 = {0}, W_i = {w: E w in A W_(i-1)}, the null space of ((s E + A)^-1 E)^i for any s; its
    dimension is the number of constraints found in i passes.
    """
    n = len(E)
    W = np.zeros((n, 0))
    for dimension in np.cumsum(counts):
        Q = np.linalg.qr(A @ W)[0]
        W = np.linalg.svd(E - Q @ (Q.T @ E))[2][n - dimension :].T
    return W


# --- Mechanisms -------------------------------------------------------------------------------


def _prescribed(
    E: np.ndarray, A: np.ndarray, growth: np.ndarray, tolerance: float
) -> tuple[int, ...]:
    """Variables of index 3 and above that are not multipliers or accelerations of a mechanism.

    Multipliers and accelerations occur undifferentiated, in equations that must be solved together
    with the constraints. A variable that follows from others by differentiation, once these are
    known, is the derivative of something given: its own block of the block triangular form has a
    lower index.
    """
    high = growth >= 2
    if not high.any():
        return ()
    strange = high & ((growth > 2) | E.any(axis=0))
    rows, block = _block_form(E, A, tolerance)
    for label in np.unique(block[high & ~strange]):
        own = np.flatnonzero(block == label)
        if _index_of_part(E, A, rows[own], own, tolerance) < 3:
            strange[own] |= high[own]
    return tuple(np.flatnonzero(strange).tolist())


def _index_of_part(
    E: np.ndarray, A: np.ndarray, rows: np.ndarray, columns: np.ndarray, tolerance: float
) -> int:
    """Index of a diagonal block of a system of index 3 or more, or 3 if it is higher."""
    if len(columns) < 3:  # the index is never larger than the system
        return len(columns)
    if len(columns) == len(E):
        return 3
    part = np.ix_(rows, columns)
    counts = _count_constraints(*_equilibrated(E[part], A[part]), tolerance)
    return 0 if counts is None else len(counts)


def _block_form(E: np.ndarray, A: np.ndarray, tolerance: float) -> tuple[np.ndarray, np.ndarray]:
    """Equation matched to every variable, and number of the variable's block."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components, maximum_bipartite_matching

    size = np.maximum(np.abs(E), np.abs(A))
    # What is left of E is no noise, however small beside A. The pattern is of floats because
    # csgraph would convert one of booleans in each call.
    occurs = (size > tolerance * size.max(axis=1, keepdims=True)) | (E != 0.0)
    pattern = occurs.astype(float)
    rows = maximum_bipartite_matching(csr_array(pattern), perm_type="row")
    if rows.min() < 0:  # only if the pattern lacks entries that make the pencil regular
        return np.arange(len(E)), np.zeros(len(E), int)
    _, block = connected_components(csr_array(pattern[rows]), connection="strong")
    return rows, block


# --- Singular pencils -------------------------------------------------------------------------


def _null_support(E: np.ndarray, A: np.ndarray, tolerance: float) -> tuple[int, ...]:
    """Columns that take part in the null vectors of s E + A for any s."""
    spaces = []
    for shift in SHIFTS:
        _, values, basis = np.linalg.svd(shift * E + A)
        nullity = int(np.sum(values <= tolerance * values[0]))
        spaces.append(basis[-max(nullity, 1) :])
    # A shift that is an eigenvalue of the regular part has too many null vectors.
    smallest = min(len(space) for space in spaces)
    null_vectors = np.vstack([space for space in spaces if len(space) == smallest])
    return tuple(np.flatnonzero(np.abs(null_vectors).max(axis=0) > PARTICIPATES).tolist())
