"""Starting values of a reduced system from those a user has, which may be approximate.

The constraints are solved stage by stage, like a Taylor series of the solution: positions from the
position constraints, then velocities from those differentiated once, with the positions already
fixed, and so on. In each stage the change is the smallest possible. Where that has moved a
differential unknown, the law of jumps of the equations decides instead (`jump.py`). Last come
slopes and multipliers, which the equations determine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from tether._core.plain import Plain
from tether.base.reason import Kind, Reason, Row
from tether.structure.hidden import Reduced
from tether.structure.jump import Jump, Jumping, LargeJumping, Matrices, find_jump
from tether.structure.least_change import jet_scale, least_change, movable, shortest_solution
from tether.structure.scaling import Units
from tether.structure.start import Start
from tether.trace import SparseJacobian

__all__ = ["Search", "reduced_start"]

# A change below this share of the value is no change ...
NO_CHANGE = 1e-13
# ... and one below this share is no jump.
NO_JUMP = 1e-10
# From this number of unknowns on, the law of a jump is solved with sparse matrices.
LARGE = 100
MADE_CONSISTENT, AS_GIVEN = Reason(Kind.MADE_CONSISTENT), Reason(Kind.AS_GIVEN)


def reduced_start(
    reduced: Reduced,
    t0: float,
    y0: np.ndarray,
    yp0: np.ndarray | None = None,
    args: np.ndarray | None = None,
    units: Units | None = None,
    more: MoreRows | None = None,
) -> Start:
    """Find consistent values near those given.

    Parameters
    ----------
    reduced : Reduced
        The system; where it is not differentiated to the end, ``reduced.full`` is solved.
    t0 : float
        Starting time.
    y0, yp0 : array_like, shape (n_user,)
        The user's values. Those that the equations determine, such as multipliers, are replaced.
    args : ndarray, optional
        Values of the arguments, if the system was analysed with others.
    units : Units, optional
        Units in which changes are measured; all alike by default.
    more : MoreRows, optional
        Further constraints on the unknowns of `reduced`, satisfied in the last stage: in a
        mechanism, by velocities.

    Returns
    -------
    Start
        For the unknowns of `reduced`.

    Examples
    --------
    >>> from tether.structure.equations import Equations
    >>> from tether.structure.hidden import reduce_index
    >>> from tether.structure.reduced_start import reduced_start
    >>> from tether.trace import trace
    >>> def pendulum(t, y, yp):
    ...     x, z, u, w, lam = y
    ...     return [yp[0] - u, yp[1] - w, yp[2] + lam*x, yp[3] + lam*z + 9.81, x*x + z*z - 1]
    >>> system = Equations.of_trace(trace(pendulum, 5))
    >>> start = reduced_start(reduce_index(system, system.signature), 0.0, [0.61, -0.8, 1, 0, 0])
    >>> [round(float(v), 3) for v in start.y]
    [0.606, -0.795, 0.632, 0.482, 8.433]
    """
    full = reduced.full
    place = {unknown: i for i, unknown in enumerate(full.unknowns)}
    places = [place[unknown] for unknown in reduced.unknowns]
    if more is not None:
        found = _find_start(full, t0, y0, yp0, args, units, more, places)
        return replace(found, y=found.y[places], yp=found.yp[places])
    inputs = [y0, () if yp0 is None else yp0, reduced.args if args is None else args]
    key = (
        float(t0), yp0 is None, *(np.asarray(part, float).tobytes() for part in inputs),
        None if units is None else (units.y.tobytes(), units.t),
    )
    before, found = full.last_start.get("found", (None, None))
    if before != key:
        found = _find_start(full, t0, y0, yp0, args, units, None, places)
        full.last_start["found"] = key, found
    return replace(found, y=found.y[places], yp=found.yp[places], moved=dict(found.moved))


def _find_start(
    full: Reduced,
    t0: float,
    y0: np.ndarray,
    yp0: np.ndarray | None,
    args: np.ndarray | None,
    units: Units | None,
    more: MoreRows | None,
    places: list[int],
) -> Start:
    """Find values for all unknowns; the further rows depend on the unknowns at `places`."""
    y, yp = full.lift(np.asarray(y0, float), None if yp0 is None else np.asarray(yp0, float))
    search = Search(full, float(t0), args, units)
    if more is not None:
        search.add(more, places)
    before = search.largest(y, yp)
    given = y.copy()
    failure, jump, lawful = search.satisfy_constraints(y), None, True
    if failure is None and search.has_jumped(given, y):
        jump = search.follow_law(given, y, yp)
        lawful = jump is not None
    failure = failure or search.solve_equations(y, yp)
    if failure is None:
        search.complete_slopes(y, yp)
    after = search.largest(y, yp)
    moved = _moved(np.asarray(y0, float), y[: full.n_user], search.units)
    done = MADE_CONSISTENT if moved else AS_GIVEN
    return Start(
        y, yp, failure is None, failure or done, moved=moved, residual=(before, after), jump=jump,
        lawful=lawful,
    )


def _moved(given: np.ndarray, found: np.ndarray, units: Units) -> dict[int, float]:
    change = found - given
    beside = units.y * np.max(np.abs(given) / units.y, initial=0.0)
    least = NO_CHANGE * (np.maximum(np.abs(given), np.abs(found)) + beside)
    return {int(j): float(change[j]) for j in np.flatnonzero(np.abs(change) > least)}


class MoreRows(Protocol):
    """Constraints that do not come from the equations."""

    def values(self, y: np.ndarray) -> np.ndarray:
        """Return their values, which are zero where they hold."""

    def slopes(self, y: np.ndarray) -> np.ndarray:
        """Return their derivatives by the unknowns."""


class Search:
    """Newton's method for constraints and equations of one system at one time."""

    def __init__(
        self,
        reduced: Reduced,
        t: float,
        args: np.ndarray | None = None,
        units: Units | None = None,
        fixed: Sequence[int] = (),
    ) -> None:
        self.reduced, self.t = reduced, t
        self.fixed = list(fixed)               # unknowns that keep their values
        self.units = units or Units.alike(reduced.n_user)
        self.args = reduced.args if args is None else args
        self.programs = reduced.programs
        self._runners: dict[str, Plain] = {}
        self.stages = np.array(reduced.stages)
        self.level_stages = np.array([level.stage for level in reduced.levels], dtype=int)
        self.more: MoreRows | None = None
        self.places: list[int] = []

    @property
    def is_large(self) -> bool:
        """Whether matrices of all equations should be sparse."""
        return self.reduced.n >= LARGE

    def add(self, more: MoreRows, places: list[int]) -> None:
        """Add constraints on the unknowns at some places."""
        self.more, self.places = more, places

    def largest(self, y: np.ndarray, yp: np.ndarray) -> float:
        """Largest value of an equation or constraint."""
        values = np.abs(np.concatenate([self._residual(y, yp), self._constraints(y)]))
        return float(values.max(initial=0.0))

    def scale(self, y: np.ndarray) -> np.ndarray:
        """Return the units in which changes of the unknowns are measured."""
        return jet_scale(y, self.units, self.reduced.unknowns[self.reduced.n_user :])

    # --- constraints ----------------------------------------------------------------------

    def satisfy_constraints(self, y: np.ndarray) -> Reason | None:
        """Change y so that all constraints hold; return why that fails, or None."""
        if self.reduced.enters:
            return self._satisfy_array(y)
        stages = sorted(set(self.level_stages.tolist()))
        last = max((stage for stage in stages if stage < 0), default=None)
        for stage in stages:
            if failure := self._satisfy_stage(y, stage, with_more=stage == last):
                return failure
        return None

    def _satisfy_stage(self, y: np.ndarray, stage: int, with_more: bool) -> Reason | None:
        """Satisfy the constraints of a stage; move the user's values only if necessary."""
        rows = np.flatnonzero(self.level_stages == stage)
        given, failure = y.copy(), None
        for free in self.movable_sets(self.stages == stage):
            y[:] = given
            failure = self._satisfy(y, rows, free, with_more)
            if failure is None:
                break
        return failure

    def movable_sets(self, inside: np.ndarray) -> Iterator[np.ndarray]:
        """Yield sets of unknowns to move, each larger than the one before.

        First derivatives, about which the user has said little or nothing; then variables that
        have no derivative in the equations, such as multipliers, whose values are guesses; then
        all.
        """
        numbers = np.arange(len(inside))
        further = inside & (numbers >= self.reduced.n_user)
        guesses = further | (inside & np.isin(numbers, self.reduced.without_slopes))
        for part, larger in pairwise((further, guesses, inside)):
            if part.any() and part.sum() < larger.sum():
                yield part
        yield inside

    def _satisfy_array(self, y: np.ndarray) -> Reason | None:
        """Satisfy all levels at once; keep as many of the user's values as possible."""
        given, failure = y.copy(), None
        n, rows = self.reduced.n_user, np.arange(len(self.level_stages))
        for free in movable(self.reduced.enters, len(y) - n):
            y[:] = given
            failure = self._satisfy(y, rows, free)
            if failure is None:
                # the remaining residual is small, but may be more than round-off
                return self._satisfy(y, rows, np.ones(len(y), bool))
        return failure

    # --- jumps ----------------------------------------------------------------------------

    def has_jumped(self, before: np.ndarray, after: np.ndarray) -> bool:
        """Whether a differential variable was moved."""
        n = self.reduced.n_user
        size = np.maximum(np.abs(before), np.abs(after))[:n]
        beside = self.units.y * np.max(size / self.units.y, initial=0.0)
        jumped = np.abs(after - before)[:n] > NO_JUMP * (size + beside)
        jumped[list(self.reduced.without_slopes)] = False
        return bool(jumped.any())

    def follow_law(self, before: np.ndarray, y: np.ndarray, yp: np.ndarray) -> Jump | None:
        """Change y to the values to which those before jump by the law; None if there are none.

        On entry y satisfies the constraints: it is a guess of the values after the jump.
        """
        reduced, n = self.reduced, self.reduced.n_user
        full, everything = y.copy(), np.arange(len(self.level_stages))
        scale = self.scale(y)

        def onto_constraints(start: np.ndarray, directions: np.ndarray) -> np.ndarray | None:
            x = y.copy()
            x[:n] = start
            along = np.zeros((len(y), directions.shape[1] + len(y) - n))
            along[:n, : directions.shape[1]] = directions
            along[n:, directions.shape[1] :] = np.diag(scale[n:])
            if self._satisfy(x, everything, np.ones(len(y), bool), directions=along) is not None:
                return None
            full[:] = x
            return x[:n]

        movable = np.ones(n, bool)
        movable[self.fixed] = False
        stages = self.stages[:n]
        early = stages < -1
        if reduced.enters:
            early = np.array(reduced.enters) < max(reduced.enters) - 1
        jump = find_jump(
            Jumping(self.law(yp[:n]), onto_constraints, self.units.y, movable, early,
                    self._large(yp[:n], y, full) if n >= LARGE else None),
            before[:n], y[:n],
        )
        if jump is not None:
            y[:] = full
        return jump

    def _large(self, slopes: np.ndarray, y: np.ndarray, found: np.ndarray) -> LargeJumping:
        """Make the law with sparse matrices; all unknowns after a jump are written to `found`."""
        from scipy.sparse import csr_array, vstack  # late, to save time

        n, g_y = self.reduced.n_user, self.programs.g_y

        def constraints(x: np.ndarray) -> np.ndarray:
            own = self._constraints(x)
            return own if self.more is None else np.append(own, self.more.values(x[self.places]))

        def slopes_of(x: np.ndarray) -> Any:
            entries = self._run("constraint_jacobian", x, x)[: len(g_y.rows)]
            own = csr_array((entries, (g_y.rows, g_y.cols)), shape=g_y.shape)
            if self.more is None:
                return own
            part = csr_array(self.more.slopes(x[self.places])).tocoo()
            columns = np.asarray(self.places)[part.coords[1]]
            shape = part.shape[0], len(x)
            return vstack([own, csr_array((part.data, (part.coords[0], columns)), shape=shape)])

        def take(x: np.ndarray) -> None:
            found[:] = x

        return LargeJumping(
            self._sparse_law(slopes), constraints, slopes_of, y[n:], self.scale(y), take
        )

    def _sparse_law(self, slopes: np.ndarray) -> Matrices:
        """As `law`, with sparse matrices."""
        from scipy.sparse import csr_array  # late, to save time

        system, n = self.reduced.source[0], self.reduced.n_user
        runner = Plain(system.program_given, self.args)
        rows, columns, order = np.array([entry[:3] for entry in system.entries_given], int).T
        chosen = [order == 1, order == 0]

        def matrices(y: np.ndarray) -> tuple[Any, Any]:
            values = np.asarray(runner.values(self.t, y, slopes))
            e, a = (csr_array((values[mine], (rows[mine], columns[mine])), shape=(n, n))
                    for mine in chosen)
            return e, a

        return matrices

    def law(self, slopes: np.ndarray) -> Matrices:
        """F_y' and F_y of the equations as written."""
        system, n = self.reduced.source[0], self.reduced.n_user
        entries = system.entries_given
        runner = Plain(system.program_given, self.args)

        def matrices(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            found = np.zeros((2, n, n))
            for (i, j, k, _), value in zip(
                entries, runner.values(self.t, y, slopes), strict=True
            ):
                found[k, i, j] = value
            return found[1], found[0]

        return matrices

    def _satisfy(
        self, y: np.ndarray, rows: np.ndarray, free: np.ndarray, with_more: bool = True,
        directions: np.ndarray | None = None,
    ) -> Reason | None:
        """Satisfy some constraints by changes of free unknowns."""
        free = free.copy()
        free[self.fixed] = False
        more = self.more if with_more else None

        def values(x: np.ndarray) -> np.ndarray:
            own = self._constraints(x)[rows]
            return own if more is None else np.append(own, more.values(x[self.places]))

        def slopes(x: np.ndarray) -> Any:
            if more is None and directions is None and self.is_large:
                return _sparse(self.programs.g_y, self._run("constraint_jacobian", x, x))[rows]
            own = self.constraint_jacobian(x)[rows]
            if more is None:
                return own
            part = more.slopes(x[self.places])
            further = np.zeros((len(part), len(x)))
            further[:, self.places] = part
            return np.vstack([own, further])

        def rounding(x: np.ndarray) -> np.ndarray:
            errors = np.zeros(len(values(x)))
            errors[: len(rows)] = self._rounding("constraints", x, x)[rows]
            return errors

        y[:], failure = least_change(
            values, slopes, y.copy(), self.scale(y), determined=False, free=free,
            rounding=rounding, directions=directions,
        )
        if failure is None:
            return None
        if failure.row >= len(rows):
            return Reason(Kind.GIVEN_CANNOT_HOLD)
        worst = self.reduced.levels[rows[failure.row]]
        return _cannot_hold(worst.equation, worst.order, failure.value)

    def _constraints(self, y: np.ndarray) -> np.ndarray:
        return self._run("constraints", y, y)

    def constraint_jacobian(self, y: np.ndarray) -> np.ndarray:
        """Differentiate the constraints by the unknowns."""
        return _dense(self.programs.g_y, self._run("constraint_jacobian", y, y))

    # --- equations ------------------------------------------------------------------------

    def solve_equations(self, y: np.ndarray, yp: np.ndarray) -> Reason | None:
        """Find slopes and the algebraic part of y; return why that fails, or None."""
        algebraic = self.stages == 0

        def values(x: np.ndarray) -> np.ndarray:
            y[algebraic], yp[~algebraic] = x[algebraic], x[~algebraic]
            return self._residual(y, yp)

        def slopes(x: np.ndarray) -> Any:
            y[algebraic], yp[~algebraic] = x[algebraic], x[~algebraic]
            return self._leading(*self._jacobians(y, yp, self.is_large))

        def rounding(x: np.ndarray) -> np.ndarray:
            return self._rounding(
                "residual", np.where(algebraic, x, y), np.where(algebraic, yp, x)
            )

        given, scale = np.where(algebraic, y, yp), self.scale(y)
        scale = np.where(algebraic, scale, scale / self.units.t)
        x, failure = least_change(
            values, slopes, given, scale, determined=True, rounding=rounding
        )
        y[algebraic], yp[~algebraic] = x[algebraic], x[~algebraic]
        if failure and failure.row < self.reduced.n_user:
            order = self.reduced.source[1].c[failure.row]
            return _cannot_hold(failure.row, order, failure.value)
        return Reason(Kind.NO_SLOPES) if failure else None

    def complete_slopes(self, y: np.ndarray, yp: np.ndarray) -> None:
        """Find slopes of unknowns that have none in the equations, from their derivative.

        With x the differential and z the algebraic part of y, it is math (16):
        F_t + F_x x' + (F_x' x'' + F_z z') = 0, for x'' and z'.
        """
        algebraic = self.stages == 0
        if not algebraic.any():
            return
        f_y, f_yp = self._jacobians(y, yp, self.is_large)
        right = -(self._run("rate", y, yp) + f_y[:, ~algebraic] @ yp[~algebraic])
        if np.isfinite(right).all():
            scale = self.scale(y) / self.units.t
            scale = np.where(algebraic, scale, scale / self.units.t)
            found = shortest_solution(self._leading(f_y, f_yp), right, scale)
            yp[algebraic] = found[algebraic]

    def rates(self, y: np.ndarray, yp: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Differentiate equations and constraints by t alone."""
        entries = self._run("constraint_jacobian", y, y)
        return self._run("rate", y, yp), entries[len(self.programs.g_y.nodes) :]

    def leading_matrix(self, y: np.ndarray, yp: np.ndarray) -> np.ndarray:
        """Differentiate the equations by slopes and, where there are none, by values."""
        return np.asarray(self._leading(*self._jacobians(y, yp)))

    def _leading(self, f_y: Any, f_yp: Any) -> Any:
        """Take columns of differential unknowns from `f_yp`, the others from `f_y`."""
        algebraic = self.stages == 0
        if isinstance(f_y, np.ndarray):
            return np.where(algebraic, f_y, f_yp)
        from scipy.sparse import diags_array  # late, to save time

        return f_y @ diags_array(1.0 * algebraic) + f_yp @ diags_array(1.0 * ~algebraic)

    def _jacobians(
        self, y: np.ndarray, yp: np.ndarray, sparse: bool = False
    ) -> tuple[Any, Any]:
        programs = self.programs
        values = self._run("system", y, yp)[self.reduced.n :]
        count = len(programs.f_y.nodes)
        make = _sparse if sparse else _dense
        return make(programs.f_y, values[:count]), make(programs.f_yp, values[count:])

    def _residual(self, y: np.ndarray, yp: np.ndarray) -> np.ndarray:
        return self._run("residual", y, yp)

    def _run(self, name: str, y: np.ndarray, yp: np.ndarray) -> np.ndarray:
        """Run a program at a point."""
        return self._runner(name).values(self.t, y, yp)

    def _runner(self, name: str) -> Plain:
        """Program of this name, unscheduled: a search makes too few calls to pay for a schedule."""
        if name not in self._runners:
            self._runners[name] = Plain(getattr(self.programs, name), self.args)
        return self._runners[name]

    def _rounding(self, name: str, y: np.ndarray, yp: np.ndarray) -> np.ndarray:
        """Bounds of the rounding errors that a program makes at a point."""
        return self._runner(name).values_with_errors(self.t, y, yp)[1]


def _cannot_hold(equation: int, order: int, value: float) -> Reason:
    return Reason(Kind.CANNOT_HOLD, (Row(equation, order),), values=(value,))


def _sparse(pattern: SparseJacobian, values: np.ndarray) -> Any:
    from scipy.sparse import csr_array  # late, to save time

    entries = values[: len(pattern.rows)]
    return csr_array((entries, (pattern.rows, pattern.cols)), shape=pattern.shape)


def _dense(pattern: SparseJacobian, values: np.ndarray) -> np.ndarray:
    matrix = np.zeros(pattern.shape)
    matrix[pattern.rows, pattern.cols] = values[: len(pattern.rows)]
    return matrix
