"""Repairs where offsets are wrong because leading derivatives cancel between equations.

Structure knows no numbers. Where the system Jacobian J is singular at every point, a left
null vector u that is constant makes a combination of equations,

    g = sum_i u_i f_i^(c_i - c_l),    c_l the smallest c_i with u_i != 0,

in which no derivative of order d_j - c_l is left. It replaces equation l, and the sum of the
assignment gets smaller (Tan, Nedialkov and Pryce 2017, the linear combination method). With
c = 0, d = 1 and J = F_y' this is the shuffle of a constant leading matrix: the equations of the
transistor amplifier's nodes that are joined by a capacitor, added, are free of derivatives.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush

import numpy as np

from tether.structure.equations import (
    MOST_DENSE,
    Equations,
    Points,
    SparseRows,
    dense,
    values_at,
)
from tether.structure.scaling import balanced
from tether.structure.sigma import Signature, Unmatched
from tether.trace import gradients, substitute, total_derivative
from tether.trace import opcodes as op
from tether.trace.derive import switches
from tether.trace.graph import Graph

__all__ = [
    "Combination",
    "Repaired",
    "combination",
    "connected",
    "null_vectors",
    "repair",
    "shuffle",
]

# Singular values of the scaled stacked Jacobians below this share of the largest are zero.
NULL = 1e-10
# Factors of a null vector below this share of the largest do not take part.
PARTICIPATES = 1e-8
# A combination has cancelled if its value is below this share of its terms.
CANCELLED = 1e-11


@dataclass(frozen=True)
class Combination:
    """Equations that were combined.

    Attributes
    ----------
    replaced : int
        The equation that the combination replaces; -1 if nothing was left of the combination.
    factors : dict
        Factor of each equation; 1 for all if the factors vary.
    varying : bool
        The factors depend on the solution.
    """

    replaced: int
    factors: dict[int, float]
    varying: bool = False


@dataclass(frozen=True, eq=False)
class Repaired:
    """A system after repair.

    Attributes
    ----------
    system : Equations
        The equations, some replaced by combinations.
    combinations : tuple of Combination
        The combinations that replaced an equation.
    dependent : tuple of Combination
        Combinations that vanished: their equations repeat each other.
    regular : bool
        The system Jacobian is regular at a general point.
    """

    system: Equations
    combinations: tuple[Combination, ...]
    dependent: tuple[Combination, ...]
    regular: bool


def repair(system: Equations, points: Points) -> Repaired:
    """Combine equations until the system Jacobian is regular, if possible.

    Parameters
    ----------
    system : Equations
        The equations.
    points : Points
        General points.

    Examples
    --------
    >>> import numpy as np
    >>> from tether.structure.equations import Equations, general_points
    >>> from tether.structure.repair import repair
    >>> from tether.trace import trace
    >>> def capacitor(t, y, yp):
    ...     current = yp[0] - yp[1]
    ...     return [current + y[0], -current + 2*y[1]]
    >>> points = general_points(0.0, np.ones(2), np.ones(2))
    >>> fixed = repair(Equations.of_trace(trace(capacitor, 2)), points)
    >>> fixed.combinations, fixed.system.signature.structural_index
    ((Combination(replaced=0, factors={0: 1.0, 1: 1.0}, varying=False),), 1)
    """
    signature = system.signature
    if isinstance(signature, Unmatched) or system.regular(signature, system.values(points)).any():
        return Repaired(system, (), (), isinstance(signature, Signature))
    return shuffle(system, points)


def shuffle(system: Equations, points: Points) -> Repaired:
    """Combine equations whose y' cancel, then repair the result.

    This also lowers the structural index of systems for which it is above the true one although
    the system Jacobian is regular (Reissig, Martinson and Barton 2000).
    """
    changed, done, _ = _without_cancelling_slopes(system, points)
    repaired = _combine_repeatedly(changed, points)
    return replace(repaired, combinations=(*done, *repaired.combinations))


def _combine_repeatedly(system: Equations, points: Points) -> Repaired:
    done: list[Combination] = []
    dependent: list[Combination] = []
    for _ in range(4 * system.n + 1):
        signature = system.signature
        if isinstance(signature, Unmatched):
            return Repaired(system, tuple(done), tuple(dependent), False)
        values = system.values(points)
        if system.regular(signature, values).any():
            return Repaired(system, tuple(done), tuple(dependent), True)
        finite = np.isfinite(values).all(axis=0)
        if not finite.any():
            break
        pruned = _without_zeros(system, values[:, finite])
        if pruned is not None:
            system = pruned
            continue
        J = system.system_jacobian(signature, values[:, finite])
        changed, new, dependent = _combine(system, signature.c, signature.d, J, points)
        if not new:
            break
        system = changed
        done += new
    return Repaired(system, tuple(done), tuple(dependent), False)


def _without_cancelling_slopes(
    system: Equations, points: Points
) -> tuple[Equations, list[Combination], list[Combination]]:
    if max((k for _, _, k, _ in system.entries), default=0) > 1:
        return system, [], []
    values = system.values(points)
    values = values[:, np.isfinite(values).all(axis=0)]
    E: SparseRows = [{} for _ in system.rows]
    for (i, j, k, _), value in zip(system.entries, values, strict=True):
        if k == 1:
            E[i][j] = value
    return _combine(system, [0] * system.n, [1] * system.n, E, points)


def _without_zeros(system: Equations, values: np.ndarray) -> Equations | None:
    """Remove derivatives that cancel within their equation; None if there are none.

    Equations with kinks are left alone: a derivative without influence here may have it elsewhere.
    """
    graph, orders = system.graph, system.orders
    leaves: dict[int, dict[int, int]] = {}
    for (i, j, k, _), value in zip(system.entries, values, strict=True):
        if k == orders[i][j] and not value.any():
            leaves.setdefault(i, {})[graph.y(j, k)] = graph.zero
    rows = {}
    for i, zeros in leaves.items():
        if not switches(graph, [system.rows[i]], math.inf):
            (rows[i],) = substitute(graph, [system.rows[i]], zeros)
    return system.replaced(rows, {}) if rows else None


def _combine(
    system: Equations, c: Sequence[int], d: Sequence[int], J: SparseRows, points: Points
) -> tuple[Equations, list[Combination], list[Combination]]:
    """Replace equations by combinations from constant left null vectors of J."""
    done, dependent = [], []
    nodes: dict[int, int] = {}
    depth: dict[int, int] = {}
    for rows in connected(J):
        for factors in null_vectors(J, rows, c):
            lowest = min(c[i] for i in factors)
            chosen = next(i for i in factors if c[i] == lowest and i not in nodes)
            factors = {i: factor / factors[chosen] for i, factor in factors.items()}
            weights = {i: system.graph.constant(factor) for i, factor in factors.items()}
            node, cancelled = combination(system, weights, c, d, lowest, points)
            if node is not None:
                nodes[chosen] = node
                depth[chosen] = max(system.depth[i] + c[i] - lowest for i in factors)
                done.append(Combination(chosen, factors))
            elif cancelled:
                dependent.append(Combination(-1, factors))
    return system.replaced(nodes, depth), done, dependent


def connected(J: SparseRows) -> list[list[int]]:
    """Group the rows that share columns; groups of one row are left out."""
    first = list(range(len(J)))  # a row of the same group, or the row itself

    def leader(i: int) -> int:
        while first[i] != i:
            first[i] = first[first[i]]
            i = first[i]
        return i

    owner: dict[int, int] = {}
    for i, row in enumerate(J):
        for j in row:
            first[leader(i)] = leader(owner.setdefault(j, i))
    groups: dict[int, list[int]] = {}
    for i in range(len(J)):
        groups.setdefault(leader(i), []).append(i)
    return [rows for rows in groups.values() if 1 < len(rows) <= MOST_DENSE]


def null_vectors(J: SparseRows, rows: list[int], c: Sequence[int]) -> list[dict[int, float]]:
    """Left null vectors of J with few factors; each has an equation of least c of its own."""
    rows = sorted(rows, key=lambda i: c[i])
    columns = sorted({j for i in rows for j in J[i]})
    matrix = np.hstack(list(dense(J, rows, columns, len(next(iter(J[rows[0]].values()))))))
    row, column = balanced(matrix)
    scaled = row[:, None] * matrix * column
    left, values, _ = np.linalg.svd(scaled, full_matrices=len(rows) > scaled.shape[1])
    rank = int(np.sum(values > NULL * values[0])) if values[0] > 0 else 0
    found = []
    for vector in _reduced_rows(left[:, rank:].T):
        taking_part = np.flatnonzero(np.abs(vector) > PARTICIPATES * np.abs(vector).max())
        factors = (vector * row)[taking_part]
        factors = factors / np.abs(factors).max()
        found.append({rows[k]: _snapped(x) for k, x in zip(taking_part, factors, strict=True)})
    return found


def _reduced_rows(basis: np.ndarray) -> np.ndarray:
    """Reduced row echelon form: every row has a column in which the others are zero."""
    basis = basis.copy()
    remaining = list(range(len(basis)))
    for column in range(basis.shape[1]):
        if not remaining:
            break
        pivot = max(remaining, key=lambda i: abs(basis[i, column]))
        if abs(basis[pivot, column]) <= PARTICIPATES * np.abs(basis[pivot]).max():
            continue
        remaining.remove(pivot)
        basis[pivot] /= basis[pivot, column]
        for i in range(len(basis)):
            if i != pivot:
                basis[i] -= basis[i, column] * basis[pivot]
                basis[i, column] = 0.0
    return basis


def _snapped(x: float) -> float:
    """Remove round-off from simple fractions."""
    nearest = round(12 * x) / 12
    return nearest if abs(x - nearest) < 1e-12 * abs(x) else float(x)


def combination(
    system: Equations,
    weights: dict[int, int],
    c: Sequence[int],
    d: Sequence[int],
    lowest: int,
    points: Points,
) -> tuple[int | None, bool]:
    """Combine equations; the node, None if it vanishes, and whether leading derivatives cancel."""
    graph = system.graph
    terms = []
    for i, weight in weights.items():
        (node,) = total_derivative(graph, [system.rows[i]], c[i] - lowest)
        terms.append(graph.mul(weight, node))
    total = _collected_sum(graph, terms)
    leading = {graph.y(j, d[j] - lowest) for j in range(system.n) if d[j] >= lowest}
    gone = leading | _without_influence(system, terms, total, points)
    (node,) = substitute(graph, [total], dict.fromkeys(gone, graph.zero))
    values = values_at(graph, [*terms, total, node], system.n, system.args, points)
    values = values[:, np.isfinite(values).all(axis=0)]
    size = np.abs(values[: len(terms)]).sum(axis=0)
    if not values.size or np.any(np.abs(values[-1] - values[-2]) > CANCELLED * size):
        return None, False
    vanished = bool(np.all(np.abs(values[-1]) <= CANCELLED * size))
    return None if vanished else node, True


def _collected_sum(graph: Graph, terms: Sequence[int]) -> int:
    """Add expressions, leaving out parts of them that cancel.

    Only their round-off would remain, which may be large, such as that of a large exponential.
    """
    factors: dict[int, float] = {}
    sizes: dict[int, float] = {}
    waiting: list[int] = []            # latest nodes first; operands have smaller numbers

    def put(node: int, factor: float, size: float) -> None:
        if node not in factors:
            factors[node] = sizes[node] = 0.0
            heappush(waiting, -node)
        factors[node] += factor
        sizes[node] += size

    for term in terms:
        put(term, 1.0, 1.0)
    left = []
    while waiting:
        node = -heappop(waiting)
        factor, size = factors[node], sizes[node]
        code, a, b, _ = graph.nodes[node]
        if abs(factor) <= CANCELLED * size:
            continue
        if code in (op.ADD, op.SUB):
            put(a, factor, size)
            put(b, factor if code == op.ADD else -factor, size)
        elif code == op.NEG:
            put(a, -factor, size)
        elif code == op.MUL and (graph.is_constant(a) or graph.is_constant(b)):
            number, other = (a, b) if graph.is_constant(a) else (b, a)
            put(other, factor * graph.value(number), size * abs(graph.value(number)))
        elif code == op.DIV and graph.is_constant(b):
            put(a, factor / graph.value(b), size / abs(graph.value(b)))
        else:
            left.append(node)
    total = graph.zero
    for node in reversed(left):
        term = graph.mul(graph.constant(_snapped(abs(factors[node]))), node)
        total = graph.add(total, term) if factors[node] > 0.0 else graph.sub(total, term)
    return total


def _without_influence(
    system: Equations, terms: Sequence[int], total: int, points: Points
) -> set[int]:
    """Find the leaves whose influence on a sum cancels up to round-off."""
    graph = system.graph
    leaves = [x for x in graph.inputs([total]) if graph.nodes[x][0] == op.Y]
    found = gradients(graph, [*terms, total], leaves)
    nodes = [gradient.get(leaf, graph.zero) for leaf in leaves for gradient in found]
    values = values_at(graph, nodes, system.n, system.args, points)
    finite = np.isfinite(values).all(axis=0)
    values = values[:, finite].reshape(len(leaves), len(found), int(finite.sum()))
    size = np.abs(values[:, :-1]).sum(axis=1)
    cancelled = np.all(np.abs(values[:, -1]) <= CANCELLED * size, axis=1)
    return {leaf for leaf, gone in zip(leaves, cancelled, strict=True) if gone}
