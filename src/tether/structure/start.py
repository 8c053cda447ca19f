"""Starting values of a reduced system from those a user has, which may be approximate.

The constraints are solved stage by stage, as a series of the solution would be found: positions
from the position constraints, then velocities from those differentiated once, with the positions
already fixed, and so on. In each stage the change is the smallest that will do. Last come slopes
and multipliers, which the equations determine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from tether.structure.hidden import Reduced
from tether.structure.least_change import (
    jet_scale,
    least_change,
    movable,
    shortest_solution,
    units_of,
)
from tether.trace import SparseJacobian, evaluate

__all__ = ["ReducedStart", "Search", "reduced_start"]

# A change below this, of the size of the value, is no change.
NO_CHANGE = 1e-13


@dataclass(frozen=True, eq=False)
class ReducedStart:
    """Consistent values for all unknowns of a reduced system.

    Attributes
    ----------
    y, yp : ndarray
        Values and slopes.
    success : bool
        Whether they satisfy equations and constraints.
    message : str
        What was done, or what cannot be satisfied.
    moved : dict
        The user's variables that were changed, and by how much.
    residual : tuple of float
        Largest value of an equation or constraint before and after.
    """

    y: np.ndarray
    yp: np.ndarray
    success: bool
    message: str
    moved: dict[int, float] = field(default_factory=dict)
    residual: tuple[float, float] = (0.0, 0.0)


def reduced_start(
    reduced: Reduced,
    t0: float,
    y0: np.ndarray,
    yp0: np.ndarray | None = None,
    args: np.ndarray | None = None,
) -> ReducedStart:
    """Find consistent values near those given.

    Parameters
    ----------
    reduced : Reduced
        The system; where it is not differentiated to the end, ``reduced.full`` is solved.
    t0 : float
        Starting time.
    y0, yp0 : array_like, shape (n_user,)
        The user's values. What the equations determine, such as multipliers, is replaced.
    args : ndarray, optional
        Values of the arguments, where they are others than the system was analysed with.

    Returns
    -------
    ReducedStart
        For the unknowns of `reduced`.

    Examples
    --------
    >>> from tether.structure.equations import Equations
    >>> from tether.structure.hidden import reduce_index
    >>> from tether.structure.start import reduced_start
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
    y, yp = full.lift(np.asarray(y0, float), None if yp0 is None else np.asarray(yp0, float))
    search = Search(full, float(t0), args)
    before = search.largest(y, yp)
    message = search.satisfy_constraints(y) or search.solve_equations(y, yp)
    if not message:
        search.complete_slopes(y, yp)
    after = search.largest(y, yp)
    places = [full.unknowns.index(unknown) for unknown in reduced.unknowns]
    y, yp = y[places], yp[places]
    moved = _moved(np.asarray(y0, float), y[: reduced.n_user])
    if message:
        return ReducedStart(y, yp, False, message, moved, (before, after))
    text = "made consistent" if moved else "consistent as given"
    return ReducedStart(y, yp, True, text, moved, (before, after))


def _moved(given: np.ndarray, found: np.ndarray) -> dict[int, float]:
    change = found - given
    least = NO_CHANGE * (np.maximum(np.abs(given), np.abs(found)) + np.abs(given).max(initial=0.0))
    return {int(j): float(change[j]) for j in np.flatnonzero(np.abs(change) > least)}


class Search:
    """Newton's method for constraints and equations of one system at one time."""

    def __init__(self, reduced: Reduced, t: float, args: np.ndarray | None = None) -> None:
        self.reduced, self.t = reduced, t
        self.args = reduced.args if args is None else args
        self.programs = reduced.programs
        self._runners: dict[str, Any] = {}
        self.stages = np.array(reduced.stages)
        self.level_stages = np.array([level.stage for level in reduced.levels], dtype=int)

    def largest(self, y: np.ndarray, yp: np.ndarray) -> float:
        """Largest value of an equation or constraint."""
        values = np.abs(np.concatenate([self._residual(y, yp), self._constraints(y)]))
        return float(values.max(initial=0.0))

    # --- constraints ----------------------------------------------------------------------

    def satisfy_constraints(self, y: np.ndarray) -> str:
        """Change y so that all constraints hold; return why that fails, or nothing."""
        if self.reduced.enters:
            return self._satisfy_array(y)
        for stage in sorted(set(self.level_stages.tolist())):
            if message := self._satisfy_stage(y, stage):
                return message
        return ""

    def _satisfy_stage(self, y: np.ndarray, stage: int) -> str:
        """Satisfy the constraints of a stage; move the user's values only where it takes that."""
        rows = np.flatnonzero(self.level_stages == stage)
        given, scale, message = y.copy(), self._units(y), ""
        for free in self._movable(self.stages == stage):
            y[:] = given
            message = self._satisfy(y, rows, free, scale)
            if not message:
                break
        return message

    def _units(self, y: np.ndarray) -> np.ndarray:
        """Units of all unknowns; those of positions say nothing about velocities."""
        n = self.reduced.n_user
        unit, stages = np.empty(n), self.stages[:n]
        for stage in set(stages.tolist()):
            unit[stages == stage] = units_of(y[:n][stages == stage])
        return jet_scale(y, unit, self._owner)

    @property
    def _owner(self) -> list[int]:
        """Variables that the further unknowns are derivatives of."""
        return [j for j, _ in self.reduced.unknowns[self.reduced.n_user :]]

    def _movable(self, inside: np.ndarray) -> Iterator[np.ndarray]:
        """Give sets of unknowns to move, each larger than the one before.

        First derivatives, of which the user has said little or nothing; then variables that have
        no derivative in the equations, such as multipliers, which are guesses; then all.
        """
        numbers = np.arange(len(inside))
        further = inside & (numbers >= self.reduced.n_user)
        guesses = further | (inside & np.isin(numbers, self.reduced.without_slopes))
        for part, larger in pairwise((further, guesses, inside)):
            if part.any() and part.sum() < larger.sum():
                yield part
        yield inside

    def _satisfy_array(self, y: np.ndarray) -> str:
        """Satisfy all levels at once; keep as many of the user's variables as can be kept."""
        given, message = y.copy(), ""
        n, rows = self.reduced.n_user, np.arange(len(self.level_stages))
        scale = jet_scale(y, units_of(y[:n]), self._owner)
        for free in movable(self.reduced.enters, len(y) - n):
            y[:] = given
            message = self._satisfy(y, rows, free, scale)
            if not message:
                # what is left is small, but may be more than round-off
                return self._satisfy(y, rows, np.ones(len(y), bool), scale)
        return message

    def _satisfy(
        self, y: np.ndarray, rows: np.ndarray, free: np.ndarray, scale: np.ndarray
    ) -> str:
        """Satisfy some constraints by changes of what is free."""
        y[:], failure = least_change(
            lambda x: self._constraints(x)[rows], lambda x: self.constraint_jacobian(x)[rows],
            y.copy(), scale, determined=False, free=free,
        )
        if failure is None:
            return ""
        worst = self.reduced.levels[rows[failure.row]]
        return self._words(worst.equation, worst.order, failure.value)

    def _constraints(self, y: np.ndarray) -> np.ndarray:
        return self._run("constraints", y, y)

    def constraint_jacobian(self, y: np.ndarray) -> np.ndarray:
        """Differentiate the constraints by the unknowns."""
        return _dense(self.programs.g_y, self._run("constraint_jacobian", y, y))

    # --- equations ------------------------------------------------------------------------

    def solve_equations(self, y: np.ndarray, yp: np.ndarray) -> str:
        """Find slopes and what the equations determine of y; return why not, or nothing."""
        algebraic = self.stages == 0
        scale = np.maximum(self._units(y), np.abs(np.where(algebraic, y, yp)))

        def values(x: np.ndarray) -> np.ndarray:
            y[algebraic], yp[~algebraic] = x[algebraic], x[~algebraic]
            return self._residual(y, yp)

        def slopes(x: np.ndarray) -> np.ndarray:
            y[algebraic], yp[~algebraic] = x[algebraic], x[~algebraic]
            return self.leading_matrix(y, yp)

        given = np.where(algebraic, y, yp)
        x, failure = least_change(values, slopes, given, scale, determined=True)
        y[algebraic], yp[~algebraic] = x[algebraic], x[~algebraic]
        if failure and failure.row < self.reduced.n_user:
            return self._words(failure.row, self.reduced.source[1].c[failure.row], failure.value)
        return "the slopes cannot be found" if failure else ""

    def complete_slopes(self, y: np.ndarray, yp: np.ndarray) -> None:
        """Find slopes of what has none in the equations from their derivative.

        With x the differential and z the algebraic part of y, it is math (16):
        F_t + F_x x' + (F_x' x'' + F_z z') = 0, for x'' and z'.
        """
        algebraic = self.stages == 0
        if not algebraic.any():
            return
        f_y, f_yp = self._jacobians(y, yp)
        f_t = self._run("rate", y, yp)
        f_yp[:, algebraic] = f_y[:, algebraic]
        right = -(f_t + f_y[:, ~algebraic] @ yp[~algebraic])
        if np.isfinite(right).all():
            yp[algebraic] = shortest_solution(f_yp, right)[algebraic]

    def leading_matrix(self, y: np.ndarray, yp: np.ndarray) -> np.ndarray:
        """Differentiate the equations by slopes and, where there are none, by values."""
        f_y, matrix = self._jacobians(y, yp)
        algebraic = self.stages == 0
        matrix[:, algebraic] = f_y[:, algebraic]
        return matrix

    def _jacobians(self, y: np.ndarray, yp: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        programs = self.programs
        values = self._run("jacobian", y, yp)
        count = len(programs.f_y.nodes)
        return _dense(programs.f_y, values[:count]), _dense(programs.f_yp, values[count:])

    def _residual(self, y: np.ndarray, yp: np.ndarray) -> np.ndarray:
        return self._run("residual", y, yp)

    def _run(self, name: str, y: np.ndarray, yp: np.ndarray) -> np.ndarray:
        """Run a program at a point: by the machine, unless it calls what only Python can."""
        program = getattr(self.programs, name)
        if program.opaques:
            return evaluate(program, self.t, y, yp, self.args)
        if name not in self._runners:
            self._runners[name] = self.programs.backend(name).new(self.args)
        return self._runners[name].values(self.t, y, yp)

    def _words(self, equation: int, order: int, value: float) -> str:
        times = ("", ", differentiated once,", ", differentiated twice,")
        which = times[order] if order < 3 else f", differentiated {order} times,"
        return f"equation {equation}{which} cannot be satisfied near y0: {value:.3g} is left"


def _dense(pattern: SparseJacobian, values: np.ndarray) -> np.ndarray:
    matrix = np.zeros(pattern.shape)
    matrix[pattern.rows, pattern.cols] = values[: len(pattern.rows)]
    return matrix
