"""Hidden constraints, and the index-1 form of a system that needs no choice of states.

With the offsets c_i, d_j of `tether.structure.sigma` the derivatives f_i^(c_i) = 0 determine the
derivatives of order d_j of all variables. As a first-order system in the unknowns y_j^(k),
k < d_j, they have index 1 at most, and the equations differentiated less, f_i^(k) = 0 for k < c_i,
hold along its solutions: they are the constraints, given or hidden, onto which it is projected.

Most equations of most systems are explicit, a y_j' = f(t, y) with a constant a. Then y_j' can be
replaced by f / a wherever a derivative is taken:

    d/dt = d/dt|_y + sum_explicit f_j/a d/dy_j + sum_others y_j' d/dy_j + y_j'' d/dy_j' + ...

so that explicit equations are never differentiated, their variables need no unknowns for their
derivatives, and the twice differentiated constraint of a mechanism becomes an algebraic equation
for its multiplier. A pendulum keeps its five unknowns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from tether.base.reason import Row
from tether.structure.equations import Equations
from tether.structure.sigma import Signature
from tether.trace import Program, SparseJacobian, directional, emit, jacobian, substitute
from tether.trace import opcodes as op
from tether.trace.graph import STATIC, Graph

__all__ = [
    "Level",
    "Reduced",
    "ReducedPrograms",
    "explicit_slopes",
    "has_slopes",
    "rates",
    "reduce_index",
]


@dataclass(frozen=True)
class Level:
    """An equation of the system, differentiated.

    Attributes
    ----------
    equation : int
        Which one.
    order : int
        How often.
    node : int
        The expression, in terms of the reduced unknowns.
    stage : int
        0 for the highest derivative that is used, -1 for the one below, ...
    """

    equation: int
    order: int
    node: int
    stage: int


@dataclass(frozen=True, eq=False)
class ReducedPrograms:
    """What an integration of the reduced system runs.

    Attributes
    ----------
    residual : Program
        The equations.
    system : Program
        The equations, then entries of F_y and of F_y', at the places `f_y` and `f_yp` say.
    f_y, f_yp : SparseJacobian
        The places of these entries.
    rate : Program
        Partial derivatives of the equations by t.
    constraints : Program
        Values of all constraints G(t, y).
    constraint_jacobian : Program
        Entries of dG/dy at the places `g_y` says, then dG/dt, one value per constraint.
    g_y : SparseJacobian
        The places of these entries.
    """

    residual: Program
    system: Program
    f_y: SparseJacobian
    f_yp: SparseJacobian
    rate: Program
    constraints: Program
    constraint_jacobian: Program
    g_y: SparseJacobian


@dataclass(frozen=True, eq=False)
class Reduced:
    """A system of index 1 at most (or 2, on request) with the solutions of the one given.

    Attributes
    ----------
    graph : Graph
        The graph of the expressions.
    n_user : int
        Number of variables of the system as given; they are the first unknowns.
    unknowns : tuple of (int, int)
        For each unknown, the variable and the order of its derivative.
    equations : tuple of int
        One expression per unknown, in t, y and y' of the unknowns.
    levels : tuple of Level
        Constraints: equations of all orders below the highest, in t and y of the unknowns.
    stages : tuple of int
        For every unknown: 0 where the equations determine it, -1 where they determine its
        derivative, -2 its second derivative, ...
    form : int
        Highest index, 1 or 2.
    args : ndarray
        Values of the arguments.
    source : tuple
        The system and its offsets.
    as_given : bool
        The equations are those of the user.
    plain : Reduced or None
        The same system before multipliers were made unique.
    enters : tuple of int
        If the system was made from its derivative array (`tether.structure.implicit`): for each
        of the user's variables, the number of differentiations after which it is constrained.
        Empty otherwise.
    guess : tuple of float
        In the same case, values of the additional unknowns at the point where it was made.
    last_start : dict
        The last result of `reduced_start`, and the values it is for: the analysis, the run and
        every later run of the same problem ask for the same start.
    """

    graph: Graph
    n_user: int
    unknowns: tuple[tuple[int, int], ...]
    equations: tuple[int, ...]
    levels: tuple[Level, ...]
    stages: tuple[int, ...]
    form: int
    args: np.ndarray
    source: tuple[Equations, Signature]
    as_given: bool = False
    plain: Reduced | None = None
    enters: tuple[int, ...] = ()
    guess: tuple[float, ...] = ()
    last_start: dict[str, Any] = field(default_factory=dict, init=False, repr=False)

    @property
    def n(self) -> int:
        """Number of unknowns."""
        return len(self.unknowns)

    @property
    def tops(self) -> tuple[int, ...]:
        """Expressions that replace the user's equations."""
        return self.equations[: self.n_user]

    @property
    def constraints(self) -> tuple[int, ...]:
        """Expressions of the constraints."""
        return tuple(level.node for level in self.levels)

    def origin(self, row: int) -> Row:
        """Tell from which of the user's equations an equation is, and how often differentiated."""
        if row >= self.n_user:                 # the definition of a derivative
            return Row(self.unknowns[row][0])
        system, signature = self.source
        same = self.equations[row] == system.rows[row]
        return Row(row, 0 if same else signature.c[row])

    def names(self, names: Sequence[str]) -> list[str]:
        """Names of all unknowns, from those of the user's variables."""
        return [names[j] + "'" * k for j, k in self.unknowns]

    def lift(self, y: np.ndarray, yp: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Values of the unknowns and their slopes from those of the user; zero beyond those."""
        jets = np.zeros((3, self.n_user))
        jets[0] = y
        if yp is not None:
            jets[1] = yp
        values = [jets[min(k, 2), j] for j, k in self.unknowns]
        slopes = [jets[min(k + 1, 2), j] for j, k in self.unknowns]
        if self.guess:
            values[self.n_user :] = self.guess
        return np.array(values), np.array(slopes)

    @cached_property
    def without_slopes(self) -> tuple[int, ...]:
        """The user's variables whose derivatives do not occur in the equations as written."""
        leaves = (self.graph.nodes[x] for x in self.graph.inputs(self.source[0].given))
        sloped = {j for code, j, order, _ in leaves if code == op.Y and order > 0}
        return tuple(j for j in range(self.n_user) if j not in sloped)

    @cached_property
    def determined(self) -> np.ndarray:
        """Mark, by one, the unknowns that the others determine at every moment: multipliers."""
        return (np.array(self.stages) == 0).astype(np.intc)

    @cached_property
    def programs(self) -> ReducedPrograms:
        """Programs of the equations, the constraints and their derivatives."""
        graph, n, p = self.graph, self.n, len(self.args)
        y = [graph.y(j) for j in range(n)]
        f_y, f_yp = self._jacobians()
        g_both = jacobian(graph, self.constraints, [*y, graph.time()])
        g_y, g_t = _columns(g_both, 0, n), _columns(g_both, n, n + 1)
        f_t = jacobian(graph, self.equations, [graph.time()])

        def program(nodes: Sequence[int]) -> Program:
            return emit(graph, nodes, n, p, opaque=True)

        return ReducedPrograms(
            residual=program(self.equations),
            system=program([*self.equations, *f_y.nodes, *f_yp.nodes]),
            f_y=f_y,
            f_yp=f_yp,
            rate=program(_column(f_t, graph)),
            constraints=program(self.constraints),
            constraint_jacobian=program(g_y.nodes + _column(g_t, graph)),
            g_y=g_y,
        )

    def _jacobians(self) -> tuple[SparseJacobian, SparseJacobian]:
        """Differentiate the equations by y and by y'; unchanged ones are not done again."""
        graph, n, system = self.graph, self.n, self.source[0]
        same = {i for i, node in enumerate(self.tops) if node == system.rows[i]}
        entries = [entry for entry in system.entries if entry[0] in same]
        changed = [i for i in range(n) if i not in same]
        inputs = [graph.y(j, order) for order in (0, 1) for j in range(n)]
        found = jacobian(graph, [self.equations[i] for i in changed], inputs)
        entries += [
            (changed[row], col % n, col // n, node)
            for row, col, node in zip(found.rows, found.cols, found.nodes, strict=True)
        ]
        parts = [sorted(entry for entry in entries if entry[2] == order) for order in (0, 1)]
        f_y, f_yp = (
            SparseJacobian((n, n), *([entry[k] for entry in part] for k in (0, 1, 3)))
            for part in parts
        )
        return f_y, f_yp

    @cached_property
    def full(self) -> Reduced:
        """The same system at index 1: it determines all slopes and multipliers."""
        if self.form == 1 and not self.as_given:
            return self
        return _differentiate(*self.source, form=1)

    def with_fixed_gauge(self, left: np.ndarray, right: np.ndarray) -> Reduced:
        """Make multipliers unique that redundant constraints leave open.

        Dependent constraints T(y, z) = 0 with left null vectors U and multipliers z with null
        vectors V, both constant, become T + U V^T z = 0. Multiplied by the null vectors of any
        other point this says V^T z = 0, the solution of least length where V was taken; forces
        do not depend on the choice.

        Parameters
        ----------
        left, right : ndarray, shape (n, r)
            U and V.
        """
        graph = self.graph
        equations = list(self.equations)
        sums = [_linear_sum(graph, vector) for vector in right.T]
        for i, row in enumerate(left):
            for factor, node in zip(row, sums, strict=True):
                if factor:
                    equations[i] = graph.add(
                        equations[i], graph.mul(graph.constant(factor), node)
                    )
        return replace(self, equations=tuple(equations), plain=self)


def reduce_index(
    system: Equations, signature: Signature, form: int = 1, index: int | None = None
) -> Reduced:
    """Reduce a system to index 1, or to index 2.

    Parameters
    ----------
    system : Equations
        The equations.
    signature : Signature
        Their offsets; the system Jacobian must be regular.
    form : {1, 2}
        Highest index. At 2 every equation is differentiated one time less.
    index : int, optional
        Index of the system, where it is known to be lower than the offsets say.

    Returns
    -------
    Reduced
        The equations as they are where no differentiation is needed.

    Examples
    --------
    >>> from tether.structure.equations import Equations
    >>> from tether.structure.hidden import reduce_index
    >>> from tether.trace import formula, trace
    >>> def prescribed(t, y, yp):
    ...     x, v, force = y
    ...     return [yp[0] - v, yp[1] - force, x - t**3]
    >>> system = Equations.of_trace(trace(prescribed, 3))
    >>> reduced = reduce_index(system, system.signature)
    >>> [formula(system.graph, node, "xvf") for node in reduced.constraints]
    ['x - t**3', 'v - 3*t**2']
    """
    if (system.index(signature) if index is None else index) <= form:
        return _as_given(system, signature, form)
    return _differentiate(system, signature, form)


def _as_given(system: Equations, signature: Signature, form: int) -> Reduced:
    return Reduced(
        graph=system.graph,
        n_user=system.n,
        unknowns=tuple((j, 0) for j in range(system.n)),
        equations=system.given,
        levels=(),
        stages=tuple(-d for d in signature.d),
        form=form,
        args=system.args,
        source=(system, signature),
        as_given=True,
    )


def _differentiate(system: Equations, signature: Signature, form: int) -> Reduced:
    graph, c, d = system.graph, signature.c, signature.d
    explicit, own_rows = _explicit(system, signature)
    levels = _differentiated(system, signature, explicit, own_rows)
    tops = list(system.rows)
    for i, nodes in levels.items():
        tops[i] = nodes[max(c[i] + 1 - form, 0)]
    jets = _Jets(graph, system.n, tops, set(explicit))
    orders = [(i, k) for i in levels for k in range(c[i])]
    renamed = jets.renamed([*(levels[i][k] for i, k in orders), *tops])
    below = [
        Level(i, k, node, k - c[i]) for (i, k), node in zip(orders, renamed, strict=False)
    ]
    return Reduced(
        graph=graph,
        n_user=system.n,
        unknowns=jets.unknowns,
        equations=(*renamed[len(orders) :], *jets.definitions()),
        levels=tuple(_constraints_among(graph, below)),
        stages=tuple(k - d[j] for j, k in jets.unknowns),
        form=form,
        args=system.args,
        source=(system, signature),
    )


def _explicit(system: Equations, signature: Signature) -> tuple[dict[int, int], set[int]]:
    """Explicit equations whose offset fits that of their variable, d_j = c_i + 1."""
    c, d = signature.c, signature.d
    return explicit_slopes(system, lambda i, j: d[j] == c[i] + 1)


def explicit_slopes(
    system: Equations, wanted: Callable[[int, int], bool] = lambda i, j: True
) -> tuple[dict[int, int], set[int]]:
    """Variables with an explicit equation for y', the expressions of y', and those equations.

    Parameters
    ----------
    system : Equations
        The equations.
    wanted : callable
        Whether equation i may be the one of variable j.
    """
    graph = system.graph
    slopes: list[list[tuple[int, int, int]]] = [[] for _ in system.rows]
    for i, j, k, node in system.entries:
        if k > 0:
            slopes[i].append((j, k, node))
    chosen: dict[int, tuple[int, int]] = {}
    for i, found in enumerate(slopes):
        if len(found) == 1:
            j, k, node = found[0]
            if k == 1 and wanted(i, j) and j not in chosen and graph.level[node] <= STATIC:
                chosen[j] = i, node
    rows = [system.rows[i] for i, _ in chosen.values()]
    rests = substitute(graph, rows, {graph.y(j, 1): graph.zero for j in chosen})
    explicit, own_rows = {}, set()
    most = _most_in(graph, rests)
    for (j, (i, factor)), rest in zip(chosen.items(), rests, strict=True):
        if most[rest] != _SLOPE:
            explicit[j] = graph.div(graph.neg(rest), factor)
            own_rows.add(i)
    return explicit, own_rows


def _differentiated(
    system: Equations, signature: Signature, explicit: dict[int, int], own_rows: set[int]
) -> dict[int, list[int]]:
    """Differentiate equations that are not explicit 0 to c_i times, where c_i > 0."""
    graph, c = system.graph, signature.c
    rows = [i for i in range(system.n) if c[i] > 0 and i not in own_rows]
    slopes = {graph.y(j, 1): node for j, node in explicit.items()}
    nodes = substitute(graph, [system.rows[i] for i in rows], slopes)
    levels = {i: [node] for i, node in zip(rows, nodes, strict=True)}
    for order in range(max(c, default=0)):
        rows = [i for i in rows if c[i] > order]
        latest = [levels[i][-1] for i in rows]
        for i, node in zip(rows, rates(graph, latest, explicit), strict=True):
            levels[i].append(node)
    return levels


def rates(graph: Graph, nodes: Sequence[int], explicit: dict[int, int]) -> list[int]:
    """Total time derivatives, with the slopes of explicit variables put in."""
    seeds = {}
    for leaf in graph.inputs(nodes):
        code, j, k, _ = graph.nodes[leaf]
        if code == op.TIME:
            seeds[leaf] = graph.one
        elif code == op.Y:
            seeds[leaf] = explicit[j] if k == 0 and j in explicit else graph.y(j, k + 1)
    return directional(graph, nodes, seeds)


class _Jets:
    """Unknowns of the reduced system: variables and as many of their derivatives as needed."""

    def __init__(self, graph: Graph, n: int, equations: Sequence[int], explicit: set[int]) -> None:
        self.graph = graph
        sizes = [1] * n
        for leaf in graph.inputs(equations):
            code, j, k, _ = graph.nodes[leaf]
            if code == op.Y and j not in explicit:
                sizes[j] = max(sizes[j], k)
        further = [(j, k) for j, size in enumerate(sizes) for k in range(1, size)]
        self.unknowns = (*((j, 0) for j in range(n)), *further)
        self._place = {unknown: number for number, unknown in enumerate(self.unknowns)}
        self._names = {}
        for j, k in further:
            number = self._place[j, k]
            self._names[graph.y(j, k)] = graph.y(number)
            if k + 1 == sizes[j]:
                self._names[graph.y(j, k + 1)] = graph.y(number, 1)

    def renamed(self, nodes: Sequence[int]) -> list[int]:
        """Write derivatives of variables as unknowns, or as slopes of unknowns."""
        return substitute(self.graph, nodes, self._names) if self._names else list(nodes)

    def definitions(self) -> list[int]:
        """Equations that make an unknown the slope of the one below."""
        graph, place = self.graph, self._place
        return [
            graph.sub(graph.y(place[j, k - 1], 1), graph.y(place[j, k]))
            for j, k in self.unknowns if k > 0
        ]


def has_slopes(graph: Graph, node: int) -> bool:
    """Tell whether derivatives of y occur in an expression."""
    return any(graph.nodes[x][0] == op.Y and graph.nodes[x][2] > 0 for x in graph.inputs([node]))


def _constraints_among(graph: Graph, levels: list[Level]) -> list[Level]:
    """Pick the expressions that contain no slopes and are not mere numbers."""
    most = _most_in(graph, [level.node for level in levels])
    return [level for level in levels if most[level.node] == _VALUE]


_NUMBER, _VALUE, _SLOPE = 0, 1, 2      # the most that occurs in an expression


def _most_in(graph: Graph, nodes: Sequence[int]) -> dict[int, int]:
    """Tell what occurs in expressions: slopes, values, or mere numbers.

    One walk serves all of them: they may be many, and share large parts.
    """
    most: dict[int, int] = {}
    for node in graph.cone(nodes):
        code, _, order, _ = graph.nodes[node]
        if code == op.Y:
            most[node] = _SLOPE if order > 0 else _VALUE
        elif code in (op.TIME, op.ARG):
            most[node] = _VALUE
        else:
            most[node] = max((most[x] for x in graph.influences(node)), default=_NUMBER)
    return most


def _columns(matrix: SparseJacobian, first: int, last: int) -> SparseJacobian:
    """Part of a Jacobian: columns from first to before last."""
    inside = [k for k, j in enumerate(matrix.cols) if first <= j < last]
    return SparseJacobian(
        (matrix.shape[0], last - first),
        [matrix.rows[k] for k in inside],
        [matrix.cols[k] - first for k in inside],
        [matrix.nodes[k] for k in inside],
    )


def _column(matrix: SparseJacobian, graph: Graph) -> list[int]:
    """All entries of a Jacobian with one column."""
    entries = dict(zip(matrix.rows, matrix.nodes, strict=True))
    return [entries.get(row, graph.zero) for row in range(matrix.shape[0])]


def _linear_sum(graph: Graph, factors: np.ndarray) -> int:
    """Sum of multiples of the unknowns."""
    total = graph.zero
    for j in np.flatnonzero(factors):
        total = graph.add(total, graph.mul(graph.constant(factors[j]), graph.y(int(j))))
    return total
