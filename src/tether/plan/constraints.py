"""Constraints and invariants, as passed by the user, checked and prepared for the core."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import accumulate, combinations, islice
from typing import TYPE_CHECKING, Any

import numpy as np

from tether._core import constraints as core
from tether._core import project
from tether._core.adapters import raise_user_error
from tether._core.state import State
from tether.plan.functions import TracedValues, traced_values
from tether.plan.plan import SPARSE_FROM_ROWS
from tether.problem.constraint import Constraint
from tether.problem.lowlevel import capsule_address
from tether.problem.options import Options
from tether.trace.reading import Reading, read_function

if TYPE_CHECKING:
    from tether.plan.slopes import Differences, GivenMatrices

__all__ = ["Constraints", "GivenRows"]

SIGNATURE = "(double, double *, double *[, void *])"
# Relative distance to a nearby point where derivatives do not vanish by coincidence.
GENERAL_SHIFT = 1e-3
# How many subsets of the invariants are tried where not all of them can be kept.
MAX_SUBSETS = 32
# Derivatives are stored without their zeros if no more than this share of them can be nonzero.
SPARSE_SHARE = 0.2
# Below so many unknowns, it costs little to difference one at a time.
PATTERN_FROM = 80


class Constraints:
    """All constraints and invariants of a problem."""

    def __init__(
        self,
        constraints: list[Constraint],
        invariants: list[Constraint],
        found: _Found | None = None,
    ) -> None:
        self.constraints, self.invariants, self.found = constraints, invariants, found
        self.all = constraints + invariants
        # how many were found in the equations
        self.n_found = 0 if found is None or found.program is None else found.program.n_values
        self.called = False          # whether any is a Python function that is called
        # those that are traced, with their names
        self.traced: list[tuple[str, Callable[..., Any], TracedValues]] = []

    def with_found(self, program: Any, args: np.ndarray) -> Constraints:
        """Return these with the constraints that were found in the equations, as a program."""
        return Constraints(self.constraints, self.invariants, _Found(program, args))

    def set_inputs(self, args: np.ndarray) -> None:
        """Set the inputs of the program of the constraints that were found."""
        if self.found is not None:
            self.found.args = args
            for runner in self.found.runners:
                runner.set_args(args)

    def attach(
        self, state: State, t: float, y: np.ndarray, args: tuple, options: Options
    ) -> None:
        """Give the constraints to the state; sizes come from a first call at (t, y)."""
        self.traced = []
        if self.found is None and not self.all:
            state.n_constraints = state.n_pieces = 0
        else:
            self._attach_pieces(state, t, y, args, options)

    def _attach_pieces(
        self, state: State, t: float, y: np.ndarray, args: tuple, options: Options
    ) -> None:
        found = [] if self.found is None else self.found.pieces()
        given = [
            _piece(name, item, t, y, args, options.trace != "never", state.n)
            for name, item in self._named()
        ]
        solver = options.projection_solver
        pieces = [*found, *given]
        few = sum(piece.size for piece in pieces) < SPARSE_FROM_ROWS
        in_list = solver == "sparse" or (solver == "auto" and not few)
        if state.n >= PATTERN_FROM:
            given = [piece.seen(t, y, state, in_list) for piece in given]
            pieces = [*found, *given]
        self.called = any(piece.function == 0 for piece in pieces)
        self.traced = [
            (name, item.fun, piece.traced)
            for (name, item), piece in zip(self._named(), given, strict=True)
            if piece.traced is not None
        ]
        if not pieces:
            state.n_constraints = state.n_pieces = 0
            return
        core.use_python_pieces(state)
        starts = list(accumulate((piece.size for piece in pieces), initial=0))
        entries = _entries(pieces, starts[-1] * state.n) if in_list else None
        for piece in pieces:
            piece.place(state.n, in_list=entries is not None)
        state.constrain(
            [piece.adapter for piece in pieces],
            starts,
            [piece.function for piece in pieces],
            [piece.jacobian for piece in pieces],
            [piece.data for piece in pieces],
            entries,
        )
        state.pieces_have_jacobians = all(piece.has_jacobian for piece in pieces)
        state.project_before_test = options.projection_placement == "before"
        state.projection_power = float(options.projection_power)
        if solver == "orthogonal" or (solver == "auto" and few):
            project.use_orthogonal(state)
        elif options.projection_solver == "cholesky":
            project.use_cholesky(state)
        else:
            from tether.plan.compound import CompoundSystem  # late, to save time

            may_give_up = solver == "auto" and entries is None
            project.use_sparse(state, CompoundSystem(may_give_up))

    def read(self, n: int, args: tuple) -> tuple[Reading | None, ...]:
        """Read all that the user's functions depend on."""
        found = []
        for item in self.all:
            if item.low_level is None:
                found.append(read_function(item.fun, n, args))
        return tuple(found)

    def set_references(
        self, state: State, t: float, y: np.ndarray, kept: np.ndarray | None = None
    ) -> None:
        """Set the values that the invariants are to keep: those given, or those at (t, y)."""
        if not self.invariants:
            return
        reference = state.kept_values
        reference[:] = 0.0
        first = self.first_invariant(state)
        if kept is None:
            status, values = core.constraints_at(state, t, y)
            raise_user_error(state)
            kept = values[first:] if status == 0 else np.full(len(values) - first, np.nan)
        reference[first:] = kept

    def references(self, state: State) -> np.ndarray | None:
        """Values that the invariants are to keep; None if there are no invariants."""
        if not self.invariants:
            return None
        return state.kept_values[self.first_invariant(state) :].copy()

    def first_invariant(self, state: State) -> int:
        """Row of the first invariant; those before are constraints."""
        return int(state.piece_starts[len(self.constraints) + self._n_found])

    def of_user(self, state: State, t: float) -> list[GivenRows]:
        """List subsets of the user's constraints and invariants, in order of preference.

        The first has all of them. Where these cannot all hold, invariants are left out, the last
        ones first; the last subset has no invariants.
        """
        if not self.all:
            return []
        first, count = self.first_invariant(state), state.n_constraints
        always = np.arange(state.piece_starts[self._n_found], first)
        invariants = np.arange(first, count)
        chosen = (part for left_out in range(len(invariants) + 1)
                  for part in combinations(invariants, len(invariants) - left_out))
        rows = [np.append(always, part).astype(int) for part in islice(chosen, MAX_SUBSETS)]
        return [GivenRows(state, t, part) for part in (*rows, always)]

    def first_on(
        self, state: State, t: float, y: np.ndarray, unknowns: np.ndarray
    ) -> tuple[str, int] | None:
        """Name the first constraint that depends on one of the marked unknowns, and the unknown.

        Derivatives are taken near y: at y itself one may vanish, as that of an energy at rest.
        """
        beside = y + GENERAL_SHIFT * (np.abs(y) + 1.0)
        status, slopes = core.jacobian_of_constraints_at(state, t, beside)
        raise_user_error(state)
        if status != 0:
            return None
        rows, columns = slopes.nonzero()
        found = np.flatnonzero(unknowns[columns])
        if not len(found):
            return None
        return self.name_of(state, rows[found[0]]), int(columns[found[0]])

    def name_of(self, state: State, row: int) -> str:
        """Name of one row of G: which constraint or invariant, and which of its values."""
        piece = int(np.searchsorted(state.piece_starts, row, side="right")) - 1
        if piece < self._n_found:
            return f"constraint {row} of the equations"
        name = list(self._named())[piece - self._n_found][0]
        return f"{name}, value {row - state.piece_starts[piece]}"

    @property
    def _n_found(self) -> int:
        return 0 if self.found is None else len(self.found.pieces())

    def _named(self) -> list[tuple[str, Constraint]]:
        return [
            (f"{kind}[{number}]", item)
            for kind, items in (("constraints", self.constraints), ("invariants", self.invariants))
            for number, item in enumerate(items)
        ]


@dataclass(frozen=True, eq=False)
class GivenRows:
    """Some of the user's constraints and invariants, at one time."""

    state: State
    t: float
    rows: np.ndarray             # of the core's constraints

    def values(self, y: np.ndarray) -> np.ndarray:
        """Return their residuals; NaN where they cannot be computed."""
        status, g = core.constraints_at(self.state, self.t, y)
        raise_user_error(self.state)
        return g[self.rows] if status == 0 else np.full(len(self.rows), np.nan)

    def slopes(self, y: np.ndarray) -> np.ndarray:
        """Return their derivatives with respect to the unknowns."""
        _, gy = core.jacobian_of_constraints_at(self.state, self.t, y)
        raise_user_error(self.state)
        part = gy[self.rows]
        return part.toarray() if hasattr(part, "toarray") else part


@dataclass(frozen=True, eq=False)
class _Piece:
    """One constraint function as the core calls it."""

    size: int
    adapter: Any                 # of a Python function; of a program, the runner to keep alive
    function: int = 0            # address of a C function
    jacobian: int = 0
    data: int = -1
    has_jacobian: bool = False
    traced: Any = None           # TracedValues, if it is a traced function of the user's
    backend: Any = None          # if it is a program
    slopes: Differences | GivenMatrices | None = None      # if it is a function that is called

    @property
    def entries(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Rows and columns of the Jacobian's entries, if they are known."""
        if self.slopes is not None:
            return self.slopes.rows, self.slopes.columns
        if self.backend is None:
            return None
        rows, columns = (np.asarray(part, np.int64) for part in self.backend.fy)
        return rows, columns

    def seen(self, t: float, y: np.ndarray, state: State, in_list: bool) -> _Piece:
        """Find out on which unknowns a function that is called depends.

        A Jacobian of the user's is used for that if entries are to be stored as a list.
        """
        if self.backend is not None or self.jacobian:
            return self
        from tether.plan.slopes import see_differences, see_matrices  # late, to save time

        python, n, size = self.adapter, state.n, self.size
        whole = np.concatenate([y, np.zeros(n - len(y))])
        args = () if python is None else python.args
        if python is not None and python.jac is not None:
            if not in_list:
                return self
            matrices = see_matrices(
                lambda t, y: python.jac(t, y, *args), t, whole, size
            )
            adapter = core.PythonPiece(python.fun, python.jac, n, size, args, matrices)
            return replace(self, adapter=adapter, slopes=matrices)

        def values(t: float, y: np.ndarray) -> Any:
            if python is None:
                return core.values_of_c(self.function, self.data, size, t, y)
            return python.fun(t, y, *args)

        found = see_differences(values, t, whole, size, state.array("unit"))
        if found is None:
            return self
        fun = values if python is None else python.fun
        adapter = core.PythonPiece(fun, lambda t, y, *_: found.full(t, y), n, size, args, found)
        return replace(self, adapter=adapter, slopes=found, has_jacobian=True)

    def place(self, n: int, in_list: bool) -> None:
        """Let a program write the entries of its Jacobian as a list, or as full rows."""
        if self.backend is None or in_list == (self.backend.layout == "list"):
            return
        assert self.entries is not None
        rows, columns = self.entries
        self.adapter.place(np.arange(len(rows)) if in_list else rows * n + columns, [])


@dataclass(eq=False)
class _Found:
    """Constraints that were found in the equations."""

    program: Any                 # Backend, or None where there are none
    args: np.ndarray

    runners: list[Any] = field(default_factory=list)

    def pieces(self) -> list[_Piece]:
        if self.program is None:
            return []
        runner = self.program.new(self.args)
        self.runners.append(runner)
        return [_program_piece(self.program, runner)]


def _entries(pieces: list[_Piece], size: int) -> list[tuple[np.ndarray, np.ndarray]] | None:
    """List the entries of all pieces; None if not all are known, or if there are too many."""
    known = [entries for piece in pieces if (entries := piece.entries) is not None]
    few = sum(len(rows) for rows, _ in known) <= SPARSE_SHARE * size
    return known if len(known) == len(pieces) and few else None


def _program_piece(program: Any, runner: Any) -> _Piece:
    function, jacobian, data = runner.constraint_addresses()
    if function:
        return _Piece(
            program.n_values, runner, function, jacobian, data, True, backend=program
        )
    # the interpreted core has no addresses
    n, size = runner.n, program.n_values

    def values(t: float, y: np.ndarray) -> np.ndarray:
        return runner.values(t, y, y)

    def slopes(t: float, y: np.ndarray) -> np.ndarray:
        matrix = np.zeros(size * n)
        runner.entries_into(t, y, y, matrix, matrix)
        return matrix.reshape(size, n)

    return _Piece(size, core.PythonPiece(values, slopes, n, size, ()), has_jacobian=True)


def _piece(
    name: str, item: Constraint, t: float, y: np.ndarray, args: tuple, traced: bool, n: int
) -> _Piece:
    """Prepare a constraint of the user's, a function of the first len(y) of the n unknowns."""
    size = item.size or _size_of(name, item, t, y, args)
    if item.low_level is not None:
        function, data = capsule_address(item.low_level, SIGNATURE, name)
        jacobian = _jacobian_address(name, item, data)
        return _Piece(size, None, function, jacobian, data, item.jac is not None)
    fun, jac = _restricted(item, len(y), n)
    if traced and jac is None:
        whole = np.concatenate([y, np.zeros(n - len(y))])
        found = traced_values(fun, t, whole, size, args)
        if found is not None:
            runner = found.backend.new(found.inputs)
            return replace(_program_piece(found.backend, runner), traced=found)
    return _Piece(size, core.PythonPiece(fun, jac, n, size, args), has_jacobian=jac is not None)


def _restricted(item: Constraint, n_user: int, n: int) -> tuple[Any, Any]:
    """Functions of all unknowns that pass the user's part of them on."""
    if n_user == n:
        return item.fun, item.jac
    fun = item.fun
    jac: Any = item.jac

    def values(t: float, y: Any, *args: Any) -> Any:
        return fun(t, y[:n_user], *args)

    def slopes(t: float, y: Any, *args: Any) -> Any:
        part = jac(t, y[:n_user], *args)
        if hasattr(part, "tocoo"):
            from scipy.sparse import coo_array  # late, to save time

            part = part.tocoo()
            return coo_array((part.data, part.coords), shape=(part.shape[0], n))
        dense = np.asarray(part).reshape(-1, n_user)
        return np.hstack([dense, np.zeros((len(dense), n - n_user))])

    return values, None if jac is None else slopes


def _jacobian_address(name: str, item: Constraint, user_data: int) -> int:
    """Address of a C Jacobian, which is called with the user data of its function."""
    if item.low_level_jac is None:
        return 0
    address, own_data = capsule_address(item.low_level_jac, SIGNATURE, f"{name}.jac")
    if own_data != user_data:
        raise ValueError(f"{name}.jac must take the same user data as {name}, or both none")
    return address


def _size_of(name: str, item: Constraint, t: float, y: np.ndarray, args: tuple) -> int:
    values = np.asarray(item.fun(t, y.copy(), *args))
    if values.ndim > 1 or values.size == 0 or values.dtype.kind not in "fiub":
        raise ValueError(f"{name} must return a real number or a vector of them, got {values!r}")
    return values.size
