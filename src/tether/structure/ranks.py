"""Index, freedom and number of constraints by the ranks of the derivative array.

With M the Jacobian of the derivative array by y', y'', ..., N the one by y, E that of the
equations by y', and at points where the array is satisfied (Kunkel and Mehrmann 1998):

    1. the left null vectors Z of M, a in number, make combinations of the array that contain y
       alone: the constraints, given and hidden;
    2. they are independent if Z^T N has rank a;
    3. there are no others if E is regular on the null space T of Z^T N, rank (E T) = n - a.

The smallest number mu of differentiations for which all this holds gives the index, mu + 1 (0
where there are no constraints), and n - a initial values are free. Nothing is eliminated and no
cancellation has to be found, so this works where structure does not tell the index.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from tether.structure.array import DerivativeArray
from tether.structure.equations import Equations, Points, general_points, values_at
from tether.structure.hidden import has_slopes
from tether.structure.scaling import Units, balanced, nonzero
from tether.structure.sigma import Signature
from tether.trace.graph import FULL

__all__ = ["MOST_ROWS", "ArrayRanks", "find_ranks", "regular_on_solutions"]

# Largest number of rows of the array.
MOST_ROWS = 300
# Entries below this share of the largest in their row are round-off.
ROUND_OFF = 1e-12
# Singular values below this, of matrices with entries of about 1 in each row, are zero.
RANK = 1e-9
# Residuals below this share of those at points near the start are round-off.
SATISFIED = 1e-11
# The rows of the array hold at a point if no more than this is left of the sum of their terms:
# far below RANK, since what is left makes singular values of its own size.
HOLDS = 1e-12
# Components of unit vectors below this do not take part.
PARTICIPATES = 1e-6


@dataclass(frozen=True, eq=False)
class ArrayRanks:
    """What follows from the ranks of the derivative array.

    Attributes
    ----------
    kind : {"regular", "singular", "unknown"}
        There is one solution for every consistent start; there is none or more than one; or the
        array would be too large, or is finite nowhere.
    array : DerivativeArray
        The array with as many derivatives as were needed.
    index, dof : int or None
        Differentiation index and number of free initial values.
    constraints : int
        Number of constraints for y, given and hidden.
    hidden : int
        Number of them that are not among the equations as written.
    consistent : bool
        The ranks are those at points where the array is satisfied.
    enters : tuple of int
        For every variable, the number of differentiations after which it is constrained; one more
        than the largest possible number if it never is.
    jets : tuple of (float, ndarray)
        The points at which the ranks were taken.
    dependent, undetermined : tuple of int
        Equations that repeat or cancel each other, variables that are left open.
    """

    kind: str
    array: DerivativeArray
    index: int | None = None
    dof: int | None = None
    constraints: int = 0
    hidden: int = 0
    consistent: bool = False
    enters: tuple[int, ...] = ()
    jets: tuple[tuple[float, np.ndarray], ...] = ()
    dependent: tuple[int, ...] = ()
    undetermined: tuple[int, ...] = ()


def find_ranks(array: DerivativeArray, points: Points) -> ArrayRanks:
    """Differentiate until the ranks tell the index, or that the system is singular.

    Parameters
    ----------
    array : DerivativeArray
        The equations, not differentiated.
    points : Points
        General points, from which consistent ones are looked for.

    Examples
    --------
    >>> import numpy as np
    >>> from math import exp
    >>> from tether.structure.array import DerivativeArray
    >>> from tether.structure.equations import Equations, general_points
    >>> from tether.structure.ranks import find_ranks
    >>> from tether.trace import trace
    >>> def fun(t, y, yp):
    ...     return [exp(yp[0] + yp[1]) - y[0] - 1, yp[0] + yp[1] - y[1]]
    >>> array = DerivativeArray(Equations.of_trace(trace(fun, 2)))
    >>> found = find_ranks(array, general_points(0.0, np.ones(2), np.ones(2)))
    >>> found.index, found.dof, found.hidden
    (1, 1, 1)
    """
    n = array.system.n
    jets = [
        (float(t), array.jet(points.jets[0, :, k], points.jets[1:, :, k]))
        for k, t in enumerate(points.t)
    ]
    enters = np.full(n, n + 1)
    for order in range(n + 1):
        if order:
            array = array.differentiated()
            jets = [(t, array.extended(x)) for t, x in jets]
        if array.size > MOST_ROWS:
            break
        jets, consistent = _on_the_array(array, jets)
        if not jets:
            break
        judged = [_judge(array, t, x) for t, x in jets]
        # special points have more combinations without derivatives than general ones
        fewest = min(judgement.a for judgement in judged)
        general = [judgement for judgement in judged if judgement.a == fewest]
        for judgement in general:
            enters[judgement.constrained] = np.minimum(enters[judgement.constrained], order)
        if all(judgement.complete for judgement in general):
            written = sum(not has_slopes(array.system.graph, node) for node in array.levels[0])
            return ArrayRanks(
                kind="regular",
                array=array,
                index=order + 1 if fewest else 0,
                dof=n - fewest,
                constraints=fewest,
                hidden=max(fewest - written, 0),
                consistent=consistent,
                enters=tuple(enters.tolist()),
                jets=tuple(jets),
            )
        if all(judgement.repeats for judgement in general):
            return ArrayRanks(
                kind="singular",
                array=array,
                consistent=consistent,
                dependent=_union(judgement.dependent for judgement in general),
                undetermined=_union(judgement.undetermined for judgement in general),
            )
    return ArrayRanks("unknown", array)


def regular_on_solutions(
    system: Equations,
    signature: Signature,
    t: float,
    y: np.ndarray,
    yp: np.ndarray | None,
    units: Units | None = None,
) -> bool:
    """Tell whether the system Jacobian is regular also where the equations are satisfied.

    It may be regular near the solutions and singular on them: if an equation is multiplied by a
    factor, the derivative of the factor contributes near them alone. True if the Jacobian does not
    depend on the solution, or if no such point is found.
    """
    c, d, graph = signature.c, signature.d, system.graph
    fixed = all(
        graph.level[node] < FULL for i, j, k, node in system.entries if k == d[j] - c[i]
    )
    if fixed or system.rows != system.given:
        return True
    points = general_points(t, y, np.zeros_like(y) if yp is None else yp, units)
    if yp is not None and _last_is_a_solution(system, points):
        at_start = Points(points.t[-1:], points.jets[..., -1:], points.units)
        if system.regular(signature, system.values(at_start))[0]:
            return True
    array = DerivativeArray(system, units)
    if array.size > MOST_ROWS:
        return True
    for k, s in enumerate(points.t):
        x = array.consistent(float(s), array.jet(points.jets[0, :, k], points.jets[1:, :, k]))
        if x is None:
            continue
        jets = np.zeros((2, system.n, 1))
        jets[0, :, 0] = x[: system.n]
        jets[1, array.variables, 0] = x[system.n :]
        values = system.values(Points(np.array([s]), jets, points.units))
        if system.regular(signature, values).any():
            return True
    return False


def _last_is_a_solution(system: Equations, points: Points) -> bool:
    """Tell whether residuals at the last point are round-off compared with those at the others."""
    r = np.abs(values_at(system.graph, system.rows, system.n, system.args, points))
    with np.errstate(invalid="ignore"):
        return bool(np.all(r[:, -1] <= SATISFIED * np.nanmax(r[:, :-1], axis=1, initial=0.0)))


def _on_the_array(
    array: DerivativeArray, jets: Sequence[tuple[float, np.ndarray]]
) -> tuple[list[tuple[float, np.ndarray]], bool]:
    """Move jets to where the array is satisfied; if that fails for all, keep the finite ones.

    Where the array holds to round-off at some points, these alone are kept.
    """
    moved = [(t, array.consistent(t, x)) for t, x in jets]
    found = [(t, x) for t, x in moved if x is not None]
    if found:
        exact = [(t, x) for t, x in found if array.left_over(t, x) <= HOLDS]
        return exact or found, True
    return [(t, x) for t, x in jets if np.isfinite(array.jacobian(t, x)).all()], False


def _union(parts: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(sorted({member for part in parts for member in part}))


@dataclass(frozen=True, eq=False)
class _Judgement:
    """Ranks of the array at one point.

    Attributes
    ----------
    a : int
        Number of combinations that are free of derivatives.
    repeats : bool
        These combinations depend on each other.
    complete : bool
        These combinations and the equations determine all slopes.
    constrained : ndarray of bool
        Variables in these combinations.
    dependent, undetermined : tuple of int
        Equations that repeat others, variables that nothing determines.
    """

    a: int
    repeats: bool
    complete: bool
    constrained: np.ndarray
    dependent: tuple[int, ...]
    undetermined: tuple[int, ...]


def _judge(array: DerivativeArray, t: float, x: np.ndarray) -> _Judgement:
    n = array.system.n
    J = array.clean_jacobian(t, x)
    size = np.abs(J) * balanced(J)[1]
    J[size < ROUND_OFF * size.max(axis=1, keepdims=True)] = 0.0
    N, E = J[:, :n], array.leading(J)
    # units of y in which both have entries of one size
    unit = balanced(np.vstack([N, E]))[1]
    N, E = N * unit, E * unit
    row, column = balanced(J[:, n:])
    free = ~J[:, n:].any(axis=1)               # rows without derivatives: their size is that in N
    row[free] = 1.0 / nonzero(np.abs(N[free]).max(axis=1, initial=0.0))
    left, values, _ = np.linalg.svd(row[:, None] * J[:, n:] * column)
    Z, N = left[:, _rank(values) :], row[:, None] * N
    B = Z.T @ N / nonzero((np.abs(Z.T) @ np.abs(N)).max(axis=1, initial=0.0))[:, None]
    among, values, basis = np.linalg.svd(B)
    rank, a = _rank(values), Z.shape[1]
    E = E / nonzero(np.abs(E).max(axis=1))[:, None]
    along = np.linalg.svd(E @ basis[rank:].T, compute_uv=False)
    open_ones = np.linalg.svd(np.vstack([B, E]))
    rows = np.abs(Z @ among[:, rank:]).max(axis=1, initial=0.0) > PARTICIPATES
    return _Judgement(
        a=a,
        repeats=rank < a,
        complete=rank == a and _rank(along) == n - a,
        constrained=np.linalg.norm(basis[:rank], axis=0) > PARTICIPATES,
        dependent=tuple(sorted({array.equations[k][0] for k in np.flatnonzero(rows)})),
        undetermined=_support(open_ones[2][_rank(open_ones[1]) :]),
    )


def _rank(values: np.ndarray) -> int:
    return int(np.sum(values > RANK))


def _support(vectors: np.ndarray) -> tuple[int, ...]:
    return tuple(np.flatnonzero(np.abs(vectors).max(axis=0, initial=0.0) > PARTICIPATES).tolist())
