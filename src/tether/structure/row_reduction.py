"""Systems of whole arrays of index 2 and 3, reduced to index 1 without taking the arrays apart.

Equations in which no unknown has its highest derivative are constraints on unknowns that have
slopes. Differentiated, as arrays, they determine these slopes. Where an equation says that a slope
is another unknown, p' = v, the slope is replaced: constraints on positions become constraints on
velocities first, and are differentiated once more. If that is not enough, slopes given by other
equations are replaced as well, m p' = f(t, y), where f contains no multiplier. If the
differentiated constraints and the other equations make a regular system, it has index 1 (Pryce's
offsets are the numbers of differentiations). Its solutions are kept on the constraints of all
levels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tether._core.rows import Rows
from tether.structure.equations import SINGULAR, general_points
from tether.structure.row_structure import has_regular_structure, leading_entries
from tether.structure.scaling import Units
from tether.trace import opcodes as op
from tether.trace.array_tracer import ArrayTrace
from tether.trace.batches import LINEAR, Batches, as_index, picked
from tether.trace.element_rates import rates
from tether.trace.refusal import Untraceable
from tether.trace.row_table import RowTable
from tether.trace.templates import fold

__all__ = ["LeadingMatrix", "RowReduction", "reduce_rows"]

# From positions to accelerations.
MOST_DIFFERENTIATIONS = 2


@dataclass(frozen=True, eq=False)
class RowReduction:
    """A system of index 1 with the solutions of one of index 2 or 3.

    Attributes
    ----------
    system : RowTable
        Its equations: those of the user, some of them differentiated.
    constraints : RowTable
        The constraints as written, then some of them differentiated once.
    rows, last : ndarray
        Which equations are constraints, and for each the place of its last level among the
        constraints.
    index : int
        Index of the system as written.
    multipliers, positions : ndarray of bool
        Unknowns that have no slope in the equations, and those whose slope is given by an equation.
    """

    system: RowTable
    constraints: RowTable
    rows: np.ndarray
    last: np.ndarray
    index: int
    multipliers: np.ndarray
    positions: np.ndarray


class LeadingMatrix:
    """Derivatives of equations by slopes, and by the values of unknowns that have none.

    Parameters
    ----------
    table : RowTable
        The equations.
    args : ndarray
        Values of the arguments.
    """

    def __init__(self, table: RowTable, args: np.ndarray) -> None:
        self._rows, self.n = Rows(table, args), table.n
        self._leads = leading_entries(table)
        self.rows, self.columns = (
            np.concatenate([part[k][leads] for part, leads in zip(
                (table.fy, table.fyp), self._leads, strict=True
            )]) for k in (0, 1)
        )
        self.of_slopes = np.arange(len(self.rows)) >= self._leads[0].sum()

    def at(self, t: float, y: np.ndarray, yp: np.ndarray) -> np.ndarray:
        """Entries at a point, at the places `rows` and `columns`."""
        room = max(map(len, self._leads))
        parts = np.zeros(room), np.zeros(room)
        self._rows.entries_into(t, y, yp, *parts)
        return np.concatenate(
            [part[: len(leads)][leads] for part, leads in zip(parts, self._leads, strict=True)]
        )

    def solver(self, entries: np.ndarray) -> Callable[[np.ndarray], np.ndarray] | None:
        """Return a function that solves with the matrix of these entries; None if singular."""
        from scipy.sparse import csc_array  # late, to save time
        from scipy.sparse.linalg import splu

        largest = np.zeros(self.n)
        np.maximum.at(largest, self.rows, np.abs(entries))
        if not (largest.all() and np.isfinite(largest).all()):
            return None
        places = self.rows, self.columns
        matrix = csc_array((entries / largest[self.rows], places), shape=(self.n, self.n))
        try:
            factors = splu(matrix)
        except RuntimeError:  # exactly singular
            return None
        pivots = np.abs(factors.U.diagonal())
        if pivots.min() <= SINGULAR * pivots.max():
            return None
        return lambda right: factors.solve(right / largest)


def reduce_rows(
    found: ArrayTrace, t: float, y: np.ndarray, yp: np.ndarray, args: np.ndarray, units: Units
) -> RowReduction | None:
    """Reduce a system of whole arrays to index 1; None if that takes more than is done here.

    Parameters
    ----------
    found : ArrayTrace
        The equations, with their source.
    t, y, yp : float, ndarray, ndarray
        The reduced system has to be regular near this point.
    args : ndarray
        Values of the arguments.
    units : Units
        Units of the unknowns.

    Examples
    --------
    >>> import numpy as np
    >>> from tether.structure.row_reduction import reduce_rows
    >>> from tether.structure.scaling import Units
    >>> from tether.trace.array_tracer import trace_arrays
    >>> def prescribed(t, y, yp):
    ...     x, force = y[:3], y[3:]
    ...     return np.concatenate([yp[:3] - force, x**2 - t])
    >>> found = trace_arrays(prescribed, 6)
    >>> start = 1.0, np.ones(6), np.zeros(6)
    >>> reduce_rows(found, *start, np.zeros(0), Units.alike(6)).rows
    array([3, 4, 5])
    """
    assert found.source is not None
    batches, outputs = found.source
    plain = _kinematic(batches, outputs)
    reduction = _reduced(found, plain, t, y, yp, args, units)
    if reduction is None:
        other = _explicit(batches, outputs, found.table)
        if not np.array_equal(other, plain):
            reduction = _reduced(found, other, t, y, yp, args, units)
    return reduction


def _reduced(
    found: ArrayTrace, slopes: np.ndarray, t: float, y: np.ndarray, yp: np.ndarray,
    args: np.ndarray, units: Units,
) -> RowReduction | None:
    """Reduce a system in which the elements `slopes` replace the slopes of all unknowns."""
    assert found.source is not None
    batches, outputs = found.source
    tops, first = outputs.copy(), _without_lead(found.table)
    rows, last = first, np.arange(len(first))
    levels: list[np.ndarray] = []
    try:
        for _ in range(MOST_DIFFERENTIATIONS):
            last[np.isin(first, rows)] = sum(len(level) for level in levels) + np.arange(len(rows))
            levels.append(tops[rows])
            tops[rows] = rates(batches, tops[rows], slopes)
            system = fold(batches, tops)
            rows = _without_lead(system)
            if not len(rows):
                break
        constraints = fold(batches, np.concatenate(levels))
    except Untraceable:
        return None
    if len(rows) or len(constraints.fyp[0]) or not has_regular_structure(system):
        return None
    multipliers = np.ones(batches.n, bool)
    multipliers[found.table.fyp[1]] = False
    positions = slopes != np.arange(batches.n, 2 * batches.n)
    matrix, points = LeadingMatrix(system, args), general_points(t, y, yp, units)
    for k, time in enumerate(points.t):
        entries = matrix.at(time, *np.ascontiguousarray(points.jets[:, :, k]))
        if matrix.solver(entries) is not None:
            return RowReduction(
                system, constraints, first, last, 1 + len(levels), multipliers, positions
            )
    return None


def _without_lead(table: RowTable) -> np.ndarray:
    """List the equations in which no unknown has its highest derivative."""
    of_y, of_slopes = leading_entries(table)
    leads = np.zeros(table.n, bool)
    leads[table.fy[0][of_y]] = leads[table.fyp[0][of_slopes]] = True
    return np.flatnonzero(~leads)


def _kinematic(batches: Batches, outputs: np.ndarray) -> np.ndarray:
    """Elements that replace slopes: other unknowns where an equation is p' - v or v - p'."""
    n = batches.n
    slopes = np.arange(n, 2 * n)
    for batch in batches.batches:
        mine = outputs[(outputs >= batch.start) & (outputs < batch.stop)] - batch.start
        if batch.code != op.SUB or not len(mine):
            continue
        one, other = (picked(operand, mine) for operand in batch.operands)
        for slope, value in ((one, other), (other, one)):
            chosen = (slope >= n) & (slope < 2 * n) & (value < n)
            slopes[slope[chosen] - n] = value[chosen]
    return slopes


def _explicit(batches: Batches, outputs: np.ndarray, table: RowTable) -> np.ndarray:
    """Elements that replace slopes: f / m where an equation is m p' - f, or of a similar form.

    f depends neither on slopes nor on multipliers, and m is a number.
    """
    n, slopes = batches.n, np.arange(batches.n, 2 * batches.n)
    varies = _reached_from(batches, np.ones(batches.first, bool))
    starts = np.ones(batches.first, bool)
    starts[table.fyp[1]] = False               # unknowns that have slopes
    starts[2 * n :] = False
    implicit = _reached_from(batches, starts)
    for batch in list(batches.batches):
        mine = outputs[(outputs >= batch.start) & (outputs < batch.stop)] - batch.start
        if batch.code not in (op.ADD, op.SUB) or not len(mine):
            continue
        one, other = (picked(operand, mine) for operand in batch.operands)
        for part, rest in ((one, other), (other, one)):
            slope, factor = _scaled_slopes(batches, part, varies)
            chosen = np.flatnonzero((slope >= 0) & ~implicit[rest])
            chosen = chosen[slopes[slope[chosen] - n] == slope[chosen]]        # not replaced yet
            if len(chosen):
                value = batches.add(op.DIV, rest[chosen], factor[chosen])
                if batch.code == op.ADD:
                    value = batches.add(op.NEG, value)
                slopes[slope[chosen] - n] = value
    return slopes


def _scaled_slopes(
    batches: Batches, elements: np.ndarray, varies: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Slope and factor of elements that are multiples of one slope; -1 for others."""
    n = batches.n
    is_slope = (elements >= n) & (elements < 2 * n)
    slope = np.where(is_slope, elements, -1)
    factor = np.where(is_slope, batches.constant(1.0), -1)
    for batch in list(batches.batches):
        mine = np.flatnonzero((elements >= batch.start) & (elements < batch.stop))
        if batch.code not in (op.MUL, op.DIV, op.NEG) or not len(mine):
            continue
        operands = [picked(operand, elements[mine] - batch.start) for operand in batch.operands]
        if batch.code == op.NEG:
            operands.append(np.full(len(mine), batches.constant(-1.0)))
        orders = [operands] if batch.code == op.DIV else [operands, operands[::-1]]
        for one, other in orders:
            known = other < len(varies)        # all but constants that were added here
            is_multiple = (one >= n) & (one < 2 * n)
            is_multiple[known] &= ~varies[other[known]]
            fits = np.flatnonzero(is_multiple)
            if len(fits):
                number = other[fits]
                if batch.code == op.DIV:
                    number = batches.add(op.DIV, np.array([batches.constant(1.0)]), number)
                slope[mine[fits]], factor[mine[fits]] = one[fits], number
    return slope, factor


def _reached_from(batches: Batches, starts: np.ndarray) -> np.ndarray:
    """Mark all elements that depend on some of the unknowns, slopes, time and arguments."""
    found = np.zeros(batches.size, bool)
    found[: batches.first] = starts
    for batch in batches.batches:
        part = found[batch.start : batch.stop]
        if batch.code == LINEAR:
            assert batch.ends is not None
            terms = np.append(0, np.cumsum(found[as_index(batch.operands[0])]))
            ends = np.append(0, batch.ends)
            part[:] = np.diff(terms[ends]) > 0
            continue
        for operand in batch.operands:
            part |= found[as_index(operand)]
    return found
