"""A system of traced equations: what depends on what, and numbers for it at given points.

Points are jets: values of y, y', y'', ... beside each other, as many as the equations need.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tether._core.plain import Plain
from tether.structure.scaling import Units
from tether.structure.sigma import Block, Signature, Unmatched, find_signature
from tether.trace import Program, Trace, emit, gradients, substitute
from tether.trace import opcodes as op
from tether.trace.graph import Graph

__all__ = [
    "MOST_DENSE",
    "Entry",
    "Equations",
    "Points",
    "SparseRows",
    "dense",
    "general_points",
    "is_regular",
    "regularity",
    "values_at",
]

# Shifts from the start to general points, relative to the sizes of the values.
SHIFTS = (1e-3, 0.03, 0.1)
# Smallest size of a value, in its unit: zeros are shifted too.
LEAST_SIZE = 0.3
# Singular values and pivots of the scaled system Jacobian below this share of the largest are zero.
SINGULAR = 1e-10
# A matrix is far from singular if its smallest singular value is above this share of the largest.
FAR_FROM_SINGULAR = 1e-6
# Sweeps of scaling after which the means of rows and columns are about 1.
SWEEPS = 8
# Larger matrices are not treated as dense.
MOST_DENSE = 400

Entry = tuple[int, int, int, int]
SparseRows = list[dict[int, np.ndarray]]


@dataclass(frozen=True, eq=False)
class Points:
    """Several points at once.

    Attributes
    ----------
    t : ndarray, shape (k,)
        Times.
    jets : ndarray, shape (orders, n, k)
        Values of y, y', y'', ...
    units : Units
        Units of y and of time.
    """

    t: np.ndarray
    jets: np.ndarray
    units: Units

    def up_to(self, order: int) -> np.ndarray:
        """Jets up to a derivative; derivatives that are missing get arbitrary values."""
        missing = order + 1 - len(self.jets)
        if missing <= 0:
            return self.jets[: order + 1]
        rng = np.random.default_rng(order)
        more = rng.uniform(0.2, 1.0, (missing, *self.jets.shape[1:]))
        for k, values in enumerate(more, start=len(self.jets)):
            values *= (self.units.y / self.units.t**k)[:, None]
        return np.concatenate([self.jets, more])


def general_points(
    t: float, y: np.ndarray, yp: np.ndarray, units: Units | None = None
) -> Points:
    """Choose points around a start at which nothing vanishes by accident; the start is the last.

    The start is included for equations that are finite nowhere else.
    """
    units = units or Units.alike(len(y))
    rng = np.random.default_rng(7)
    t_all, jets = [], []
    for shift in SHIFTS:
        moved = []
        for values, unit in ((y, units.y), (yp, units.y / units.t)):
            size = shift * np.maximum(np.abs(values), LEAST_SIZE * unit)
            signs = rng.choice([-1.0, 1.0], values.shape)
            moved.append(values + size * signs * rng.uniform(0.3, 1.0, values.shape))
        t_all.append(t + shift * units.t * rng.uniform(0.3, 1.0))
        jets.append(moved)
    t_all.append(t)
    jets.append([y, yp])
    return Points(np.array(t_all), np.moveaxis(np.array(jets), 0, -1), units)


def values_at(
    graph: Graph, nodes: Sequence[int], n: int, args: np.ndarray, points: Points
) -> np.ndarray:
    """Values of expressions of t and jets at several points, shape (nodes, points)."""
    return _run(_flattened(graph, nodes, n, len(args)), n, args, points)


def _flattened(graph: Graph, nodes: Sequence[int], n: int, p: int) -> Program:
    """Program of expressions; its unknowns are y, y', y'', ... where any beyond y' occurs."""
    leaves = [graph.nodes[leaf] for leaf in graph.inputs(nodes)]
    order = max((k for code, _, k, _ in leaves if code == op.Y), default=0)
    if order <= 1:
        return emit(graph, nodes, n, p, opaque=True)
    place = {graph.y(j, k): graph.y(k * n + j)
             for code, j, k, _ in leaves if code == op.Y and k > 0}
    return emit(graph, substitute(graph, nodes, place), (order + 1) * n, p, opaque=True)


def _run(program: Program, n: int, args: np.ndarray, points: Points) -> np.ndarray:
    y, yp = points.up_to(1)
    if program.n > n:
        y = points.up_to(program.n // n - 1).reshape(-1, len(points.t))
        yp = np.zeros_like(y)
    return Plain(program, args, len(points.t)).values_at_points(points.t, y, yp)


@dataclass(frozen=True, eq=False)
class Equations:
    """Equations f_i(t, y, y', ...) = 0 as expressions.

    Attributes
    ----------
    graph : Graph
        The graph of the expressions.
    rows : tuple of int
        Their nodes.
    n : int
        Number of variables.
    args : ndarray
        Values of the arguments.
    entries : list of (i, j, k, node)
        Derivatives of f_i by y_j^(k) that are not identically zero.
    given : tuple of int
        Nodes of the equations as the user wrote them; some of `rows` may replace them.
    depth : tuple of int
        How often the given equations were differentiated to make each of these.
    """

    graph: Graph
    rows: tuple[int, ...]
    n: int
    args: np.ndarray
    entries: list[Entry]
    given: tuple[int, ...]
    depth: tuple[int, ...]

    @classmethod
    def of_trace(
        cls, trace: Trace, args: Sequence = (), hidden: Sequence[float] | np.ndarray = ()
    ) -> Equations:
        """Make the equations of a traced residual; `hidden` are inputs outside `args`."""
        entries = [
            (i, j, k, node)
            for k, part in enumerate((trace.f_y, trace.f_yp))
            for i, j, node in zip(part.rows, part.cols, part.nodes, strict=True)
        ]
        rows, inputs = tuple(trace.outputs), trace.args.flatten(args, hidden)
        return cls(trace.graph, rows, trace.n, inputs, entries, rows, (0,) * trace.n)

    def replaced(self, rows: dict[int, int], depth: dict[int, int]) -> Equations:
        """Put other expressions in the place of some equations."""
        kept = [entry for entry in self.entries if entry[0] not in rows]
        return replace(
            self,
            rows=tuple(rows.get(i, node) for i, node in enumerate(self.rows)),
            depth=tuple(depth.get(i, order) for i, order in enumerate(self.depth)),
            entries=kept + self._derivatives(rows),
        )

    @cached_property
    def entries_given(self) -> list[Entry]:
        """Derivatives of the equations as the user wrote them, like `entries`."""
        changed = {i: node for i, node in enumerate(self.given) if node != self.rows[i]}
        if not changed:
            return self.entries
        kept = [entry for entry in self.entries if entry[0] not in changed]
        return kept + self._derivatives(changed)

    @cached_property
    def program_given(self) -> Program:
        """Program of `entries_given`."""
        if self.entries_given is self.entries:
            return self._program
        nodes = [entry[3] for entry in self.entries_given]
        return emit(self.graph, nodes, self.n, len(self.args), opaque=True)

    def index(self, signature: Signature) -> int:
        """How often the given equations are differentiated until they determine all slopes."""
        counts = zip(signature.differentiations, self.depth, strict=True)
        return max((count + depth for count, depth in counts), default=0)

    def _derivatives(self, rows: dict[int, int]) -> list[Entry]:
        nodes = list(rows.values())
        graph = self.graph
        leaves = [x for x in graph.inputs(nodes) if graph.nodes[x][0] == op.Y]
        found = []
        for i, gradient in zip(rows, gradients(graph, nodes, leaves), strict=True):
            for leaf, node in gradient.items():
                if node != graph.zero:
                    _, j, k, _ = graph.nodes[leaf]
                    found.append((i, j, k, node))
        return found

    @cached_property
    def orders(self) -> list[dict[int, int]]:
        """Highest order of every variable in each equation."""
        orders: list[dict[int, int]] = [{} for _ in self.rows]
        for i, j, k, _ in self.entries:
            if k >= orders[i].get(j, 0):
                orders[i][j] = k
        return orders

    @cached_property
    def signature(self) -> Signature | Unmatched:
        """Offsets, or the parts that make the system structurally singular."""
        return find_signature(self.orders)

    def values(self, points: Points) -> np.ndarray:
        """Values of all entries, shape (entries, points)."""
        return _run(self._program, self.n, self.args, points)

    @cached_property
    def _program(self) -> Program:
        nodes = [entry[3] for entry in self.entries]
        return _flattened(self.graph, nodes, self.n, len(self.args))

    def system_jacobian(self, signature: Signature, values: np.ndarray) -> SparseRows:
        """Differentiate f_i^(c_i) by y_j^(d_j): entries by row and column, one value per point."""
        c, d = signature.c, signature.d
        rows: SparseRows = [{} for _ in self.rows]
        for (i, j, k, _), value in zip(self.entries, values, strict=True):
            if k == d[j] - c[i]:
                rows[i][j] = value
        return rows

    @cached_property
    def changing_blocks(self) -> list[tuple[Program, np.ndarray, int]]:
        """Blocks that other inputs may make singular though they were found regular.

        They have several equations, with coefficients that depend on inputs. For each: the
        program of its entries, their places in the matrix, and its size.
        """
        signature = self.signature
        if isinstance(signature, Unmatched):
            return []
        c, d, found = signature.c, signature.d, []
        for block in signature.blocks:
            size = len(block.variables)
            row = {i: k for k, i in enumerate(block.equations)}
            column = {j: k for k, j in enumerate(block.variables)}
            entries = [
                (size * row[i] + column[j], node) for i, j, k, node in self.entries
                if i in row and j in column and k == d[j] - c[i]
            ] if size > 1 else []
            nodes = [node for _, node in entries]
            leaves = self.graph.inputs(nodes)
            if any(self.graph.nodes[leaf][0] == op.ARG for leaf in leaves):
                program = _flattened(self.graph, nodes, self.n, len(self.args))
                found.append((program, np.array([place for place, _ in entries]), size))
        return found

    def is_regular_for(
        self, args: np.ndarray, t: float, y: np.ndarray, yp: np.ndarray, units: Units | None
    ) -> bool:
        """Whether the system Jacobian is regular near a point for other inputs."""
        here = Points(np.array([t]), np.array([y, yp])[:, :, None], units or Units.alike(len(y)))
        if all(
            _is_clearly_regular(_run(program, self.n, args, here)[:, 0], places, size)
            for program, places, size in self.changing_blocks
        ):
            return True
        assert not isinstance(self.signature, Unmatched)
        values = _run(self._program, self.n, args, general_points(t, y, yp, units))
        return bool(self.regular(self.signature, values).any())

    def regular(self, signature: Signature, values: np.ndarray) -> np.ndarray:
        """Tell at which points the system Jacobian is regular; False where it is not finite."""
        J = self.system_jacobian(signature, values)
        result = np.isfinite(values).all(axis=0)
        by_size: dict[int, list[np.ndarray]] = {}
        for block in signature.blocks:
            size = len(block.variables)
            if size == 1:
                result &= J[block.equations[0]][block.variables[0]] != 0.0
            elif size > MOST_DENSE:
                result &= _is_regular_sparse(J, block, result)
            else:
                matrix = dense(J, block.equations, block.variables, len(result))
                by_size.setdefault(size, []).append(matrix)
        for size, blocks in by_size.items():
            matrices = np.stack(blocks)
            matrices[:, ~result] = 0.0
            regular = is_regular(matrices.reshape(-1, size, size))
            result &= regular.reshape(len(blocks), -1).all(axis=0)
        return result


def dense(
    J: SparseRows, rows: Sequence[int], columns: Sequence[int], points: int
) -> np.ndarray:
    """Dense part of a matrix of sparse rows, shape (points, rows, columns)."""
    place = {j: column for column, j in enumerate(columns)}
    matrix = np.zeros((points, len(rows), len(columns)))
    for row, i in enumerate(rows):
        for j, value in J[i].items():
            if j in place:
                matrix[:, row, place[j]] = value
    return matrix


def _is_clearly_regular(values: np.ndarray, places: np.ndarray, size: int) -> bool:
    """Whether a matrix is certainly regular, by a cheap test."""
    flat = np.zeros(size * size)
    flat[places] = values
    matrix = flat.reshape(size, size)
    for axis in (1, 0):
        largest = np.abs(matrix).max(axis=axis, keepdims=True)
        if not (np.isfinite(largest).all() and largest.all()):
            return False
        matrix = matrix / largest
    sizes = np.linalg.svd(matrix, compute_uv=False)
    return bool(sizes[-1] > FAR_FROM_SINGULAR * sizes[0])


def _is_regular_sparse(J: SparseRows, block: Block, finite: np.ndarray) -> np.ndarray:
    """Tell at which points a large block is regular, by sparse factors."""
    from scipy.sparse import coo_array
    from scipy.sparse.linalg import splu

    place = {j: column for column, j in enumerate(block.variables)}
    entries = [(row, place[j], value) for row, i in enumerate(block.equations)
               for j, value in J[i].items() if j in place]
    rows, columns = (np.array([entry[k] for entry in entries]) for k in (0, 1))
    regular = finite.copy()
    for k in np.flatnonzero(finite):
        data = np.array([value[k] for _, _, value in entries])
        largest = np.zeros(len(place))
        np.maximum.at(largest, rows, np.abs(data))
        if not largest.all():
            regular[k] = False
            continue
        scaled = data / largest[rows]
        matrix = coo_array((scaled, (rows, columns)), shape=(len(place), len(place)))
        try:
            pivots = np.abs(splu(matrix.tocsc()).U.diagonal())
        except RuntimeError:  # exactly singular
            regular[k] = False
        else:
            regular[k] = pivots.min() > SINGULAR * pivots.max()
    return regular


def is_regular(matrices: np.ndarray) -> np.ndarray:
    """Tell which of several square matrices are regular, whatever the units of rows and columns."""
    return regularity(matrices) > SINGULAR


def regularity(matrices: np.ndarray) -> np.ndarray:
    """Smallest singular value relative to the largest, for several matrices in natural units.

    The units follow from the largest entries of rows or of columns first, or from the mean entries
    of both, whichever makes a matrix most regular.
    """
    means = _in_mean_units(matrices)
    choices = (matrices, 1, 2), (matrices, 2, 1), (means, 1, 2)
    return np.max([_inverse_condition(*choice) for choice in choices], axis=0)


def _inverse_condition(matrices: np.ndarray, *order: int) -> np.ndarray:
    size = np.abs(matrices)
    for _ in range(3):
        for axis in order:
            largest = size.max(axis=axis, keepdims=True)
            scale = np.where(largest > 0.0, largest, 1.0)
            size, matrices = size / scale, matrices / scale
    values = np.linalg.svd(matrices, compute_uv=False)
    return values[:, -1] / np.where(values[:, 0] > 0.0, values[:, 0], 1.0)


def _in_mean_units(matrices: np.ndarray) -> np.ndarray:
    """Divide rows and columns by the geometric means of their entries, several times."""
    for _ in range(SWEEPS):
        for axis in (1, 2):
            size = np.abs(matrices)
            logs = np.log(np.where(size > 0.0, size, 1.0)).sum(axis=axis, keepdims=True)
            count = (size > 0.0).sum(axis=axis, keepdims=True)
            matrices = matrices / np.exp(logs / np.maximum(count, 1))
    return matrices
