"""Repairs by combinations of equations with factors that depend on the solution.

Where the system Jacobian J has no constant left null vector, one is found from its entries as
expressions: of a smallest set of dependent rows, one is written in terms of the others,

    J_l = sum_i w_i J_i,      g = f_l - sum_i w_i f_i^(c_i - c_l),

and g replaces f_l. That is right if no w_i contains the derivatives that are to cancel; whether
they do cancel is checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from tether.structure.equations import Equations, Points, SparseRows, dense
from tether.structure.repair import (
    Combination,
    Repaired,
    combination,
    connected,
    null_vectors,
    repair,
)
from tether.structure.sigma import Signature, Unmatched
from tether.trace.graph import STATIC

__all__ = ["repair_varying"]

# The factors come from a system of at most this many equations.
MOST_ROWS = 5
MOST_REPAIRS = 20
# Constant pivots are preferred to expressions unless they are smaller by this factor.
CONSTANT_PREFERRED = 1e3


def repair_varying(system: Equations, points: Points) -> Repaired:
    """Combine equations with varying factors until the system Jacobian is regular.

    Parameters
    ----------
    system : Equations
        The equations, after `repair`.
    points : Points
        General points.

    Returns
    -------
    Repaired

    Examples
    --------
    >>> import numpy as np
    >>> from tether.structure.equations import Equations, general_points
    >>> from tether.structure.varying import repair_varying
    >>> from tether.trace import formula, trace
    >>> def fun(t, y, yp):
    ...     a, b = y
    ...     return [yp[0] + b*yp[1] - a, b*yp[0] + b*b*yp[1] + 1]
    >>> system = Equations.of_trace(trace(fun, 2))
    >>> fixed = repair_varying(system, general_points(0.0, np.ones(2), np.ones(2)))
    >>> fixed.regular, formula(system.graph, fixed.system.rows[1], "ab")
    (True, 'a*b + 1')
    """
    done: list[Combination] = []
    for _ in range(MOST_REPAIRS):
        signature = system.signature
        if isinstance(signature, Unmatched):
            break
        changed = _combined_once(system, signature, points)
        if changed is None:
            break
        repaired = repair(changed[0], points)
        system = repaired.system
        done += [changed[1], *repaired.combinations]
        if repaired.regular:
            return replace(repaired, combinations=tuple(done))
    return Repaired(system, tuple(done), (), False)


def _combined_once(
    system: Equations, signature: Signature, points: Points
) -> tuple[Equations, Combination] | None:
    """Cancel leading derivatives in one equation, or else slopes; None if that is impossible."""
    values = system.values(points)
    finite = np.flatnonzero(np.isfinite(values).all(axis=0))
    if not len(finite):
        return None
    slopes_only = [0] * system.n, [1] * system.n
    for c, d in ((signature.c, signature.d), slopes_only):
        leading = _Leading(system, c, d, values[:, finite[0]])
        for rows in leading.dependent_rows():
            weights = leading.weights(rows)
            node, _ = combination(system, weights, c, d, c[rows[0]], points)
            if node is not None:
                depth = max(system.depth[i] + c[i] - c[rows[0]] for i in rows)
                changed = system.replaced({rows[0]: node}, {rows[0]: depth})
                return changed, Combination(rows[0], dict.fromkeys(rows, 1.0), True)
    return None


class _Leading:
    """Derivatives of f_i^(c_i) by y_j^(d_j), as expressions and as numbers at one point."""

    def __init__(
        self, system: Equations, c: Sequence[int], d: Sequence[int], values: np.ndarray
    ) -> None:
        self.graph, self.c = system.graph, c
        self.nodes: list[dict[int, int]] = [{} for _ in system.rows]
        self.numbers: SparseRows = [{} for _ in system.rows]
        for (i, j, k, node), value in zip(system.entries, values, strict=True):
            if k == d[j] - c[i]:
                self.nodes[i][j] = node
                self.numbers[i][j] = np.array([value])

    def dependent_rows(self) -> Iterator[list[int]]:
        """Yield smallest sets of rows that depend on each other; the first is to be replaced."""
        for group in connected(self.numbers):
            for factors in null_vectors(self.numbers, group, self.c):
                if 2 <= len(factors) <= MOST_ROWS + 1:
                    # keep the simpler rows, so that divisors are numbers
                    yield sorted(factors, key=lambda i: (self.c[i], -self._variable_entries(i)))

    def _variable_entries(self, i: int) -> int:
        return sum(self.graph.level[node] > STATIC for node in self.nodes[i].values())

    def weights(self, rows: Sequence[int]) -> dict[int, int]:
        """Factors of a combination of rows that is zero; that of the first is 1."""
        graph, nodes = self.graph, self.nodes
        others = rows[1:]
        # sum_i w_i J_ij = -J_0j: one row of this matrix for each chosen column j
        matrix = [
            [nodes[i].get(j, graph.zero) for i in others]
            + [graph.neg(nodes[rows[0]].get(j, graph.zero))]
            for j in self._independent_columns(others)
        ]
        solution = self._solved(matrix)
        return {rows[0]: graph.one} | dict(zip(others, solution, strict=True))

    def _independent_columns(self, rows: Sequence[int]) -> list[int]:
        """One column for each row, the k-th of them a pivot of the k-th row."""
        columns = sorted({j for i in rows for j in self.nodes[i]})
        matrix = dense(self.numbers, rows, columns, 1)[0]
        chosen = []
        for k, i in enumerate(rows):
            size = np.abs(matrix[k])
            constant = [
                j in self.nodes[i] and self.graph.level[self.nodes[i][j]] <= STATIC
                for j in columns
            ]
            preferred = np.where(constant, CONSTANT_PREFERRED, 1.0) * size
            best = int(np.argmax(preferred))
            chosen.append(columns[best])
            if size[best] > 0.0:
                below = matrix[k + 1 :, best] / matrix[k, best]
                matrix[k + 1 :] -= np.outer(below, matrix[k])
        return chosen

    def _solved(self, matrix: list[list[int]]) -> list[int]:
        """Solve for the factors by Cramer's rule.

        Elimination would divide by pivots, which may vanish although the determinant does not.
        """
        graph, size = self.graph, len(matrix)
        known: dict[tuple[int, ...], int] = {(): graph.one}

        def minor(columns: tuple[int, ...]) -> int:
            """Expand the determinant of the first rows and these columns by the last of them."""
            if columns not in known:
                row, total = matrix[len(columns) - 1], graph.zero
                for k, column in enumerate(columns):
                    if row[column] != graph.zero:
                        rest = minor(columns[:k] + columns[k + 1 :])
                        term = graph.mul(row[column], rest)
                        odd = (len(columns) - 1 - k) % 2
                        total = graph.sub(total, term) if odd else graph.add(total, term)
                known[columns] = total
            return known[columns]

        whole = minor(tuple(range(size)))
        return [
            graph.div(minor((*range(k), size, *range(k + 1, size))), whole) for k in range(size)
        ]
