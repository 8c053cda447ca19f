"""Connect a traced program to the core, run by the machine or compiled to C."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tether._core import machine, native, row_seams, rows
from tether._core.matrix import Matrix
from tether._core.schedule import schedule
from tether._core.sparse import Sparse
from tether._core.state import State
from tether.trace.emit import Program
from tether.trace.refusal import Untraceable
from tether.trace.row_table import RowTable
from tether.trace.templates import fold_program
from tether.trace.tracer import Trace

__all__ = ["BACKENDS", "Backend", "Places", "prepare", "prepare_rows", "prepare_system"]

Places = tuple[Sequence[int] | np.ndarray, Sequence[int] | np.ndarray]     # rows and columns

BACKENDS = ("auto", "machine", "c")
LAYOUTS = ("columns", "rows", "list")
# With more unknowns than this, full matrices are rare.
MOST_COLUMNS = 1000
# Programs of at least so many operations are run as templates if these are few: with many
# templates, each for a few scattered rows, the machine is as fast.
LONG_PROGRAM, FEW_TEMPLATES = 5000, 16


@dataclass(frozen=True, eq=False)
class Backend:
    """A program ready to run. It keeps no state of a run, so states and threads may share it.

    Attributes
    ----------
    name : str
        "machine" or "c"; or "rows", for templates that run over many rows.
    reason : str
        Why it is not C; empty if it is, or if C was not asked for.
    program : Program or RowTable
        The program or the templates that it runs.
    n_values : int
        Number of values; the rest of the outputs are entries.
    fy, fyp : pair of sequences
        Rows and columns of the entries of F_y and F_y'.
    """

    name: str
    reason: str
    program: Program | RowTable
    n_values: int
    fy: Places
    fyp: Places
    layout: str                      # where `_first` writes the entries
    _first: machine.Machine | native.Native | rows.Rows    # copied by `new`; it never runs itself
    _placed: list[tuple[Any, tuple[np.ndarray, np.ndarray]]] = field(default_factory=list)

    def new(self, args: Sequence[float] | np.ndarray = ()) -> Any:
        """Make a runner with memory of its own: a `Machine`, a `Native` or a `Rows`."""
        return self._first.twin(args)

    def attach(self, state: State, args: Sequence[float] | np.ndarray = ()) -> None:
        """Make a state compute its residual and, if there are entries, its Jacobian with it."""
        runner = self.new(args)
        if isinstance(state.matrix, Sparse) or self.layout == "list":
            runner.place(*self._positions_in(state.matrix))
        if self.name == "c":
            native.use_native(state, runner)
        elif self.name == "rows":
            row_seams.use_rows(state, runner)
        else:
            machine.use_machine(state, runner)

    def _positions_in(self, matrix: Matrix) -> tuple[np.ndarray, np.ndarray]:
        """Positions of the entries of F_y and F_y' in a matrix, kept for the last pattern."""
        pattern = getattr(matrix, "pattern", None)
        for known, positions in self._placed:
            if pattern is not None and known is pattern:
                return positions
        both = zip(self.fy, self.fyp, strict=True)
        places = matrix.positions(*(np.append(*pair) for pair in both))
        found = places[: len(self.fy[0])], places[len(self.fy[0]) :]
        self._placed[:] = [(getattr(matrix, "pattern", None), found)]
        return found

    def attach_events(self, state: State, args: Sequence[float] | np.ndarray = ()) -> None:
        """Make a state compute its event functions with it."""
        if self.name == "c":
            native.use_native_events(state, self.new(args))
        elif self.name == "rows":
            row_seams.use_row_events(state, self.new(args))
        else:
            machine.use_machine_events(state, self.new(args))


def prepare(
    program: Program,
    n_values: int | None = None,
    fy: Places = ((), ()),
    fyp: Places = ((), ()),
    *,
    layout: str = "columns",
    backend: str = "machine",
    otherwise: Backend | None = None,
    folds: bool = False,
) -> Backend:
    """Make a program ready to run.

    Parameters
    ----------
    program : Program
        Its outputs are first the values, then the entries of F_y, then those of F_y'.
    n_values : int, optional
        How many outputs are values; all of them when left out.
    fy, fyp : pair of sequences
        Rows and columns of the entries of F_y and F_y'; each position once.
    layout : str
        Where the entries go: "columns" of a dense matrix, as in the core; its "rows", as for
        constraints; or "list", in the order given. With many unknowns "columns" means "list",
        too, until it is known how the matrix is stored.
    backend : str
        "machine"; "c", with the machine to fall back on; or "auto": C if the library exists
        already, without calling the compiler.
    otherwise : Backend, optional
        The same program run by the machine, to be used if there is no C, instead of a new one.
    folds : bool
        Run long programs as templates if their rows have few shapes: faster, the same bits.

    Examples
    --------
    >>> from tether.trace import trace
    >>> from tether.trace.backend import prepare
    >>> program = trace(lambda t, y, yp: [yp[0] + y[0] ** 2], 1).program()
    >>> prepare(program).new().values(0.0, [3.0], [1.0])
    array([10.])
    """
    if backend not in BACKENDS:
        raise ValueError(f"backend must be one of {', '.join(BACKENDS)}, got {backend!r}")
    if layout not in LAYOUTS:
        raise ValueError(f"layout must be one of {', '.join(LAYOUTS)}, got {layout!r}")
    n_values = len(program.outputs) if n_values is None else n_values
    if layout == "columns" and program.n > MOST_COLUMNS:
        layout = "list"
    fy_positions = _positions(*fy, program.n, n_values, layout)
    fyp_positions = _positions(*fyp, program.n, n_values, layout)
    reason, no_args = "", np.zeros(program.p)
    if backend != "machine":
        # late, to save time: most runs need no C
        from tether.trace.compile_c import NotCompiled, compile_program

        try:
            library = compile_program(
                program, n_values, len(fy_positions), only_cached=backend == "auto"
            )
            first = native.Native(library, no_args, fy_positions, fyp_positions)
            return Backend("c", "", program, n_values, fy, fyp, layout, first)
        except NotCompiled as error:
            reason = str(error) if backend == "c" else ""
            if otherwise is not None:
                return replace(otherwise, reason=reason) if reason else otherwise
    table = _templates(program, n_values, fy, fyp) if folds and layout == "list" else None
    if table is not None:
        return replace(prepare_rows(table), reason=reason)
    slow = machine.Machine(schedule(program, n_values), no_args, fy_positions, fyp_positions)
    return Backend("machine", reason, program, n_values, fy, fyp, layout, slow)


def _templates(program: Program, n_values: int, fy: Places, fyp: Places) -> RowTable | None:
    """Return a long program as a few templates; None if it is short or needs many."""
    if program.size < LONG_PROGRAM:
        return None
    try:
        table = fold_program(program, n_values, fy, fyp)
    except Untraceable:
        return None
    return table if table.templates <= FEW_TEMPLATES else None


def prepare_rows(table: RowTable) -> Backend:
    """Make templates and the entries of their Jacobian ready to run."""
    first = rows.Rows(table, np.zeros(table.n_args))
    return Backend("rows", "", table, table.n_values, table.fy, table.fyp, "list", first)


def prepare_system(traced: Trace, **options: Any) -> Backend:
    """Make a traced residual and its exact Jacobian ready to run, in one program.

    Parameters
    ----------
    traced : Trace
        The residual.
    **options
        `backend`, as in `prepare`.

    Raises
    ------
    NoProgram
        If the residual calls a function that only Python can run.

    Examples
    --------
    >>> import numpy as np
    >>> from tether.trace import trace
    >>> from tether.trace.backend import prepare_system
    >>> runner = prepare_system(trace(lambda t, y, yp: [yp[0] + y[0] ** 2], 1)).new()
    >>> fy, fyp = np.zeros(1), np.zeros(1)
    >>> runner.entries_into(0.0, [3.0], [1.0], fy, fyp)
    >>> fy, fyp
    (array([6.]), array([1.]))
    """
    f_y, f_yp = traced.f_y, traced.f_yp
    program = traced.program(traced.outputs + f_y.nodes + f_yp.nodes)
    entries = ((f_y.rows, f_y.cols), (f_yp.rows, f_yp.cols))
    return prepare(program, len(traced.outputs), *entries, **options)


def _positions(
    rows: Any, cols: Any, n: int, n_values: int, layout: str
) -> np.ndarray:
    i, j = np.asarray(rows, np.intc), np.asarray(cols, np.intc)
    if len(i) != len(j) or np.any((i < 0) | (i >= n_values) | (j < 0) | (j >= n)):
        raise ValueError(f"an entry is not in a matrix of shape {(n_values, n)}")
    if layout == "list":
        return np.arange(len(i), dtype=np.intc)
    return i * n + j if layout == "rows" else j * n_values + i
