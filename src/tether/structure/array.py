"""The derivative array of a system: its equations and all their derivatives up to some order.

Differentiated k times, F(t, y, y') = 0 is an equation for y^(k+1). All of them together,

    F(t, y, y') = 0,  F'(t, y, y', y'') = 0,  ...,  F^(mu)(t, y, ..., y^(mu+1)) = 0,

are algebraic equations for the jet x = (y, y', ..., y^(mu+1)); whatever the equations imply for y
is in them (Campbell 1985). Explicit equations y_j' = f are used to replace y_j' and are not part
of the array, as in `tether.structure.hidden`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from tether._core.plain import Plain
from tether.structure.equations import Equations
from tether.structure.hidden import explicit_slopes, rates
from tether.structure.least_change import jet_scale, least_change
from tether.structure.scaling import Units, nonzero
from tether.trace import SparseJacobian, emit, jacobian, substitute
from tether.trace.emit import Program

__all__ = ["DerivativeArray"]

# A number below this many times its possible rounding error is taken for zero.
ROUNDED = 8.0


class DerivativeArray:
    """Equations of a system with their derivatives, as expressions and as numbers.

    Attributes
    ----------
    system : Equations
        The system.
    units : Units
        Units of its unknowns; all alike by default.
    slopes : dict
        Explicit variables and their y'.
    rows, variables : list of int
        The equations that are differentiated, and the variables that are not explicit.
    levels : list of list of int
        Expressions of the equations, differentiated 0, 1, ... times.

    Examples
    --------
    >>> from tether.structure.array import DerivativeArray
    >>> from tether.structure.equations import Equations
    >>> from tether.trace import formula, trace
    >>> system = Equations.of_trace(trace(lambda t, y, yp: [yp[0] - y[1], y[0] - t**2], 2))
    >>> array = DerivativeArray(system).differentiated()
    >>> [formula(system.graph, node, "xv") for level in array.levels for node in level]
    ['x - t**2', 'v - 2*t']
    """

    def __init__(self, system: Equations, units: Units | None = None) -> None:
        graph = system.graph
        self.system, self.units = system, units or Units.alike(system.n)
        self.slopes, own = explicit_slopes(system)
        self.rows = [i for i in range(system.n) if i not in own]
        self.variables = [j for j in range(system.n) if j not in self.slopes]
        self.levels = [
            substitute(
                graph,
                [system.rows[i] for i in self.rows],
                {graph.y(j, 1): node for j, node in self.slopes.items()},
            )
        ]

    def differentiated(self) -> DerivativeArray:
        """Return the array with one more derivative."""
        more = object.__new__(DerivativeArray)
        more.system, more.units, more.slopes = self.system, self.units, self.slopes
        more.rows, more.variables = self.rows, self.variables
        more.levels = [*self.levels, rates(self.system.graph, self.levels[-1], self.slopes)]
        return more

    @property
    def order(self) -> int:
        """How often the equations are differentiated."""
        return len(self.levels) - 1

    @property
    def size(self) -> int:
        """Number of equations, and of derivatives of y in them."""
        return len(self.rows) * len(self.levels)

    @cached_property
    def derivatives(self) -> list[tuple[int, int]]:
        """Variable and order of derivative of each unknown after y."""
        return [(j, k) for k in range(1, self.order + 2) for j in self.variables]

    @cached_property
    def equations(self) -> list[tuple[int, int]]:
        """Equation of each row, and how often it is differentiated."""
        return [(i, k) for k in range(self.order + 1) for i in self.rows]

    @cached_property
    def nodes(self) -> list[int]:
        """Expressions of the rows."""
        return [node for level in self.levels for node in level]

    # --- numbers --------------------------------------------------------------------------

    def jet(self, y: np.ndarray, higher: np.ndarray) -> np.ndarray:
        """Jet at a point; derivatives beyond those in `higher` (y', y'', ...) are zero."""
        x = np.zeros(self.system.n + self.size)
        x[: self.system.n] = y
        for place, (j, k) in enumerate(self.derivatives, start=self.system.n):
            if k <= len(higher):
                x[place] = higher[k - 1, j]
        return x

    def extended(self, x: np.ndarray) -> np.ndarray:
        """Jet of the array with one derivative less, extended by zeros."""
        return np.concatenate([x, np.zeros(len(self.rows))])

    @cached_property
    def _pattern(self) -> SparseJacobian:
        return jacobian(self.system.graph, self._rows_in_jet, self._unknowns)

    @cached_property
    def _unknowns(self) -> list[int]:
        return [self.system.graph.y(place) for place in range(self.system.n + self.size)]

    @cached_property
    def _rows_in_jet(self) -> list[int]:
        """Rows in which every derivative is an unknown of its own."""
        graph, n = self.system.graph, self.system.n
        names = {
            graph.y(j, k): graph.y(place)
            for place, (j, k) in enumerate(self.derivatives, start=n)
        }
        return substitute(graph, self.nodes, names)

    def _program(self, nodes: list[int]) -> Program:
        system = self.system
        return emit(system.graph, nodes, system.n + self.size, len(system.args), opaque=True)

    def _runner(self, nodes: list[int]) -> Callable[[float, np.ndarray], np.ndarray]:
        plain = Plain(self._program(nodes), self.system.args)
        return lambda t, x: plain.values(t, x, x)

    @cached_property
    def _values(self) -> Callable[[float, np.ndarray], np.ndarray]:
        return self._runner(self._rows_in_jet)

    @cached_property
    def _entries(self) -> Callable[[float, np.ndarray], np.ndarray]:
        return self._runner(self._pattern.nodes)

    def values(self, t: float, x: np.ndarray) -> np.ndarray:
        """Values of all rows."""
        return self._values(t, x)

    def jacobian(self, t: float, x: np.ndarray) -> np.ndarray:
        """Differentiate the rows by y and by its derivatives, in this order."""
        matrix = np.zeros((self.size, self.system.n + self.size))
        matrix[self._pattern.rows, self._pattern.cols] = self._entries(t, x)
        return matrix

    def clean_jacobian(self, t: float, x: np.ndarray) -> np.ndarray:
        """Return the Jacobian with zeros in place of entries that are pure rounding error.

        Terms that cancel leave such entries, and a rank counts them however small they are.
        """
        matrix, pattern = self.jacobian(t, x), self._pattern
        program = self._program(pattern.nodes)
        _, errors = Plain(program, self.system.args).values_with_errors(t, x, x)
        entries = matrix[pattern.rows, pattern.cols]
        matrix[pattern.rows, pattern.cols] = np.where(
            np.abs(entries) <= ROUNDED * errors, 0.0, entries
        )
        return matrix

    def leading(self, J: np.ndarray) -> np.ndarray:
        """F_y' of the system, with explicit equations solved, from the Jacobian of the array."""
        n, q = self.system.n, len(self.rows)
        E = np.zeros((n, n))
        E[range(n - q), list(self.slopes)] = 1.0
        E[n - q :, self.variables] = J[:q, n : n + q]
        return E

    def left_over(self, t: float, x: np.ndarray) -> float:
        """Return what is left of the worst row at a jet, as a share of its linearised terms."""
        terms = np.abs(self.jacobian(t, x)) @ np.abs(x)
        return float(np.max(np.abs(self.values(t, x)) / nonzero(terms), initial=0.0))

    def consistent(
        self, t: float, x: np.ndarray, free: np.ndarray | None = None
    ) -> np.ndarray | None:
        """Find a jet near a given one that satisfies all rows; None where there is none.

        Parameters
        ----------
        t, x : float, ndarray
            Time, and the given jet.
        free : ndarray of bool, optional
            Unknowns that may be changed; all by default.
        """
        found, failure = least_change(
            lambda x: self.values(t, x), lambda x: self.jacobian(t, x), x,
            jet_scale(x, self.units, self.derivatives), determined=False, free=free,
        )
        return found if failure is None else None
