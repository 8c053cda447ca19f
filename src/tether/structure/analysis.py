"""What kind of DAE a traced system is: all of the analysis, in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tether.structure.equations import MOST_DENSE, Equations, Points, general_points
from tether.structure.hidden import Reduced, reduce_index
from tether.structure.pencil import Pencil, local_pencil
from tether.structure.reduced_start import reduced_start
from tether.structure.redundant import Redundancy, find_redundancy
from tether.structure.repair import Repaired, repair, shuffle
from tether.structure.scaling import Units
from tether.structure.sigma import Signature, Unmatched
from tether.structure.start import Start
from tether.trace import Trace

if TYPE_CHECKING:
    from tether.structure.array import DerivativeArray
    from tether.structure.ranks import ArrayRanks

__all__ = ["Analysis", "analyze_trace"]


@dataclass(frozen=True, eq=False)
class Analysis:
    """All that is found out about a traced system.

    Attributes
    ----------
    traced : Trace
        The equations.
    t : float
        Starting time.
    given : Equations
        The equations as written.
    repaired : Repaired or None
        The same with combinations in place of some; None if they are structurally singular.
    index : int or None
        Differentiation index; None where it could not be found.
    dof : int or None
        Number of free initial values.
    reduced : Reduced or None
        The system to integrate; None if there is no unique solution or the structure is not
        understood.
    start : Start or None
        Consistent values for ``reduced.full``; None where they were not looked for.
    redundancy : Redundancy or None
        Equations that repeat each other, where those were looked for.
    pencil : Pencil or None
        The linearised system near the start, if it was asked for.
    ranks : ArrayRanks or None
        Ranks of the derivative array; it is used where the offsets do not tell the index.
    units : Units or None
        Units of the unknowns; None if all are alike.
    """

    traced: Trace
    t: float
    given: Equations
    repaired: Repaired | None = None
    index: int | None = None
    dof: int | None = None
    reduced: Reduced | None = None
    start: Start | None = None
    redundancy: Redundancy | None = None
    pencil: Pencil | None = None
    ranks: ArrayRanks | None = None
    names: Sequence[str] | None = None
    units: Units | None = None

    @property
    def structural_index(self) -> int | None:
        """Index by the pattern of the equations as written."""
        signature = self.given.signature
        return signature.structural_index if isinstance(signature, Signature) else None

    @property
    def local_index(self) -> int | None:
        """Index of the linearised system."""
        return None if self.pencil is None else self.pencil.index

    @property
    def understood(self) -> bool:
        """Tell whether the reduced system determines the motion near the start."""
        if self.repaired is None or self.reduced is None:
            return False
        if not self.repaired.regular:
            return self.redundant
        return self.redundancy is None or self.redundancy.kind != "open"

    @property
    def redundant(self) -> bool:
        """Tell whether equations repeat each other while the motion is determined."""
        return self.redundancy is not None and self.redundancy.kind == "redundant"


def analyze_trace(
    traced: Trace,
    t0: float,
    y0: np.ndarray,
    yp0: np.ndarray | None = None,
    args: Sequence[Any] = (),
    *,
    names: Sequence[str] | None = None,
    form: int = 1,
    thorough: bool = False,
    units: Units | None = None,
    hidden: Sequence[float] | np.ndarray = (),
) -> Analysis:
    """Analyse and reduce a traced system.

    Parameters
    ----------
    traced : Trace
        The equations.
    t0, y0, yp0 : float, ndarray, ndarray
        Starting values, possibly approximate.
    args : sequence
        Further arguments of the residual.
    names : sequence of str, optional
        Names of the variables; read off the function when left out.
    form : {1, 2}
        Index to which the system is reduced.
    thorough : bool
        Compute the local index as well as the structural one, and look for consistent values
        even if the system needs no reduction.
    units : Units, optional
        Units of the unknowns; all alike by default.
    hidden : sequence of float
        Values of inputs of the trace that are not floats in `args`.

    Returns
    -------
    Analysis

    Examples
    --------
    >>> import numpy as np
    >>> from tether.structure.analysis import analyze_trace
    >>> from tether.trace import trace
    >>> found = analyze_trace(trace(lambda t, y, yp: [yp[0] - y[1], y[0] - t], 2), 0.0, np.ones(2))
    >>> found.index, found.reduced.n, found.start.y
    (2, 2, array([0., 1.]))
    """
    y = np.asarray(y0, float)
    yp = None if yp0 is None else np.asarray(yp0, float)
    given = Equations.of_trace(traced, args, hidden)
    found = Analysis(traced, float(t0), given, names=names, units=units)
    if isinstance(found.given.signature, Unmatched):
        return found
    points = general_points(found.t, y, np.zeros_like(y) if yp is None else yp, units)
    pencil = _linearised(found.given, points) if thorough else None
    repaired = _repaired(found.given, points, pencil)
    found = replace(found, pencil=pencil)
    tried = _reduced(found, repaired, y, yp, form, thorough)
    if tried.understood:
        return tried
    from tether.structure.array import DerivativeArray  # late, to save time: rarely needed
    from tether.structure.ranks import find_ranks
    from tether.structure.varying import repair_varying

    varied = repair_varying(repaired.system, points)
    array = DerivativeArray(found.given, units)
    ranks = None if varied.regular else _singular_as_written(array, points)
    if ranks is None:
        ranks = find_ranks(array, points)
    if varied.regular:
        combinations = (*repaired.combinations, *varied.combinations)
        varied = replace(varied, combinations=combinations)
        tried_again = _reduced(found, varied, y, yp, form, thorough)
        if tried_again.understood and _confirmed(tried_again, ranks):
            return tried_again
    return _by_array(tried, ranks, points, y, yp, form)


def _confirmed(found: Analysis, ranks: ArrayRanks) -> bool:
    """Tell whether the derivative array gives the same index and degrees of freedom.

    Factors that vary are differentiated as well: f times the derivative of its factor may look
    like a leading derivative, although f is zero on all solutions.
    """
    if ranks.kind == "unknown":
        return True
    return (found.index, found.dof) == (ranks.index, ranks.dof)


def _by_array(
    found: Analysis,
    ranks: ArrayRanks,
    points: Points,
    y: np.ndarray,
    yp: np.ndarray | None,
    form: int,
) -> Analysis:
    """Use the derivative array; the offsets, and all that depends on them, are wrong."""
    pencil = found.pencil or _linearised(found.given, points)
    found = replace(
        found, pencil=pencil, ranks=ranks, index=ranks.index, dof=ranks.dof, reduced=None,
        start=None,
    )
    if ranks.kind == "unknown" and pencil is not None and not pencil.singular:
        return replace(found, index=pencil.index, dof=pencil.dof)
    if ranks.kind != "regular":
        return found
    as_written = Repaired(found.given, (), (), regular=False)
    found = replace(found, repaired=as_written, redundancy=None)
    assert ranks.index is not None
    if ranks.index <= form:
        return found
    from tether.structure.implicit import reduce_by_array  # late, to save time

    reduced = reduce_by_array(ranks, found.t, y)
    if reduced is None:
        return found
    start = reduced_start(reduced, found.t, y, yp, units=found.units)
    return replace(found, reduced=reduced, start=start)


def _reduced(
    found: Analysis,
    repaired: Repaired,
    y: np.ndarray,
    yp: np.ndarray | None,
    form: int,
    thorough: bool,
) -> Analysis:
    """Reduce a system and judge the result at the start."""
    found = replace(found, repaired=repaired)
    system, signature = repaired.system, repaired.system.signature
    if isinstance(signature, Unmatched):
        return found
    index = system.index(signature)
    local = found.pencil
    if local is not None and local.index is not None and local.dof == signature.dof:
        # offsets count differentiations that another combination of equations would save
        index = min(index, local.index)
    reduced = reduce_index(system, signature, form, index)
    found = replace(found, index=index, dof=signature.dof, reduced=reduced)
    if reduced.n > MOST_DENSE:
        return found
    if thorough or not reduced.as_given or not repaired.regular:
        return _at_the_start(found, y, yp)
    from tether.structure.ranks import regular_on_solutions  # late, to save time

    regular = regular_on_solutions(system, signature, found.t, y, yp, found.units)
    return found if regular else replace(found, redundancy=Redundancy("open"))


def _repaired(given: Equations, points: Points, pencil: Pencil | None) -> Repaired:
    repaired = repair(given, points)
    signature = repaired.system.signature
    if pencil is None or pencil.index is None or isinstance(signature, Unmatched):
        return repaired
    if repaired.regular and pencil.index < repaired.system.index(signature):
        shuffled = shuffle(repaired.system, points)
        if shuffled.combinations and shuffled.regular:
            combinations = (*repaired.combinations, *shuffled.combinations)
            return replace(shuffled, combinations=combinations)
    return repaired


def _linearised(given: Equations, points: Points) -> Pencil | None:
    """Linearise at the first general point where the equations are finite."""
    n = given.n
    if n > MOST_DENSE:
        return None
    values = given.values(points)
    for k in np.flatnonzero(np.isfinite(values).all(axis=0)):
        matrices = np.zeros((2, n, n))
        for (i, j, order, _), value in zip(given.entries, values[:, k], strict=True):
            matrices[order, i, j] = value
        return local_pencil(matrices[1], matrices[0], scale=points.units.y)
    return None


def _singular_as_written(array: DerivativeArray, points: Points) -> ArrayRanks | None:
    """Ranks of a large system that is singular as written; None if it does not prove singular.

    The derivative array would need singular values of full matrices.
    """
    given = array.system
    n = given.n
    if n <= MOST_DENSE:
        return None
    from scipy.sparse import csc_array  # late, to save time

    from tether.structure.ranks import ArrayRanks
    from tether.structure.sparse_pencil import singular_pencil

    values = given.values(points)
    places = np.array([entry[:3] for entry in given.entries]).reshape(-1, 3)
    for k in np.flatnonzero(np.isfinite(values).all(axis=0)):
        fy, fyp = (
            csc_array((values[here, k], places[here, :2].T), shape=(n, n))
            for here in (places[:, 2] == 0, places[:, 2] == 1)
        )
        pencil = singular_pencil(fyp, fy, points.units.y)
        if pencil is None:
            return None
        return ArrayRanks(
            "singular", array, dependent=pencil.dependent, undetermined=pencil.undetermined
        )
    return None


def _at_the_start(found: Analysis, y: np.ndarray, yp: np.ndarray | None) -> Analysis:
    """Look for consistent values, and for equations that repeat each other there."""
    assert found.reduced is not None
    full = found.reduced.full
    start = reduced_start(full, found.t, y, yp, units=found.units)
    if not start.success:
        return replace(found, start=start)
    redundancy = find_redundancy(full, found.t, start.y, start.yp, found.units)
    found = replace(found, start=start, redundancy=redundancy)
    if not found.redundant:
        return found
    assert redundancy.left is not None
    assert redundancy.right is not None
    from tether.structure.freedom import free_unknowns  # late, to save time

    unique = full.with_fixed_gauge(redundancy.left, redundancy.right)
    start = reduced_start(unique, found.t, y, yp, units=found.units)
    dof = len(free_unknowns(unique, found.t, start.y))
    return replace(found, reduced=unique, start=start, dof=dof)

