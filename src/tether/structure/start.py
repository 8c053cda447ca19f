"""Starting values of a reduced system from those a user has, which may be approximate.

The constraints are solved stage by stage, as a series of the solution would be found: positions
from the position constraints, then velocities from those differentiated once, with the positions
already fixed, and so on. In each stage the change is the smallest that will do. Last come slopes
and multipliers, which the equations determine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from tether.structure.hidden import Reduced
from tether.trace import SparseJacobian, evaluate

__all__ = ["ReducedStart", "Search", "reduced_start"]

MAX_ITERATIONS = 100
MAX_HALVINGS = 30
# Singular values of the scaled Jacobian below this, of the largest, are zero.
RANK = 1e-11
# A singular value below this, of the one before it, may be meant to be zero.
GAP = 1e-2
WELL_CONDITIONED = 1e8
# No other step is tried when one makes the equations smaller by this factor.
GOOD_STEP = 0.25
# What may be left of an equation, of the sum of its linearised terms.
LEFT_OVER = 1e-9
# A change below this, of the size of the value, is no change.
NO_CHANGE = 1e-13
ROUND_OFF = 2.0**-52


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
    reduced: Reduced, t0: float, y0: np.ndarray, yp0: np.ndarray | None = None
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
    search = Search(full, float(t0))
    before = search.largest(y, yp)
    message = search.satisfy_constraints(y) or search.solve_equations(y, yp)
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

    def __init__(self, reduced: Reduced, t: float) -> None:
        self.reduced, self.t = reduced, t
        self.programs = reduced.programs
        self.stages = np.array(reduced.stages)
        self.level_stages = np.array([level.stage for level in reduced.levels], dtype=int)

    def largest(self, y: np.ndarray, yp: np.ndarray) -> float:
        """Largest value of an equation or constraint."""
        values = np.abs(np.concatenate([self._residual(y, yp), self._constraints(y)]))
        return float(values.max(initial=0.0))

    # --- constraints ----------------------------------------------------------------------

    def satisfy_constraints(self, y: np.ndarray) -> str:
        """Change y so that all constraints hold; return why that fails, or nothing."""
        for stage in sorted(set(self.level_stages.tolist())):
            rows = np.flatnonzero(self.level_stages == stage)
            columns = np.flatnonzero(self.stages == stage)
            scale = _units(y[columns])

            def values(x: np.ndarray, rows: np.ndarray = rows, columns: np.ndarray = columns,
                       ) -> np.ndarray:
                y[columns] = x
                return self._constraints(y)[rows]

            def slopes(x: np.ndarray, rows: np.ndarray = rows, columns: np.ndarray = columns,
                       ) -> np.ndarray:
                y[columns] = x
                return self.constraint_jacobian(y)[np.ix_(rows, columns)]

            x, failure = _gauss_newton(values, slopes, y[columns].copy(), scale, False)
            y[columns] = x
            if failure:
                worst = self.reduced.levels[rows[failure.row]]
                return self._words(worst.equation, worst.order, failure.value)
        return ""

    def _constraints(self, y: np.ndarray) -> np.ndarray:
        return evaluate(self.programs.constraints, self.t, y, y, self.reduced.args)

    def constraint_jacobian(self, y: np.ndarray) -> np.ndarray:
        """Differentiate the constraints by the unknowns."""
        program, pattern = self.programs.constraint_jacobian, self.programs.g_y
        return _dense(pattern, evaluate(program, self.t, y, y, self.reduced.args))

    # --- equations ------------------------------------------------------------------------

    def solve_equations(self, y: np.ndarray, yp: np.ndarray) -> str:
        """Find slopes and what the equations determine of y; return why not, or nothing."""
        algebraic = self.stages == 0
        scale = 1.0 + np.abs(np.where(algebraic, y, yp))

        def values(x: np.ndarray) -> np.ndarray:
            y[algebraic], yp[~algebraic] = x[algebraic], x[~algebraic]
            return self._residual(y, yp)

        def slopes(x: np.ndarray) -> np.ndarray:
            y[algebraic], yp[~algebraic] = x[algebraic], x[~algebraic]
            return self.leading_matrix(y, yp)

        x, failure = _gauss_newton(values, slopes, np.where(algebraic, y, yp), scale, True)
        y[algebraic], yp[~algebraic] = x[algebraic], x[~algebraic]
        if failure and failure.row < self.reduced.n_user:
            return self._words(failure.row, self.reduced.source[1].c[failure.row], failure.value)
        return "the slopes cannot be found" if failure else ""

    def leading_matrix(self, y: np.ndarray, yp: np.ndarray) -> np.ndarray:
        """Differentiate the equations by slopes and, where there are none, by values."""
        programs = self.programs
        values = evaluate(programs.jacobian, self.t, y, yp, self.reduced.args)
        count = len(programs.f_y.nodes)
        algebraic = self.stages == 0
        matrix = _dense(programs.f_yp, values[count:])
        matrix[:, algebraic] = _dense(programs.f_y, values[:count])[:, algebraic]
        return matrix

    def _residual(self, y: np.ndarray, yp: np.ndarray) -> np.ndarray:
        return evaluate(self.programs.residual, self.t, y, yp, self.reduced.args)

    def _words(self, equation: int, order: int, value: float) -> str:
        times = ("", ", differentiated once,", ", differentiated twice,")
        which = times[order] if order < 3 else f", differentiated {order} times,"
        return f"equation {equation}{which} cannot be satisfied near y0: {value:.3g} is left"


def _dense(pattern: SparseJacobian, values: np.ndarray) -> np.ndarray:
    matrix = np.zeros(pattern.shape)
    matrix[pattern.rows, pattern.cols] = values[: len(pattern.rows)]
    return matrix


def _units(y: np.ndarray) -> np.ndarray:
    """Choose units to measure changes in: all alike, unless a value is far smaller."""
    size = np.abs(y)
    largest = size.max(initial=0.0) or 1.0
    return np.where(size > 0.0, np.minimum(100.0 * size, largest), largest)


@dataclass(frozen=True)
class _Failure:
    row: int
    value: float


def _gauss_newton(
    values: Callable[[np.ndarray], np.ndarray],
    slopes: Callable[[np.ndarray], np.ndarray],
    x: np.ndarray,
    scale: np.ndarray,
    determined: bool,
) -> tuple[np.ndarray, _Failure | None]:
    """Solve equations by shortest steps, measured in `scale`.

    With `determined` there are as many equations as unknowns, normally independent.
    """
    r = values(x)
    if not r.any():
        return x, None
    for _ in range(MAX_ITERATIONS):
        if not np.isfinite(r).all():
            return x, _Failure(int(np.argmin(np.isfinite(r))), float("nan"))
        A = slopes(x)
        terms = np.abs(A) @ (np.abs(x) + scale)
        if np.all(np.abs(r) <= 2 * ROUND_OFF * terms):
            return x, None
        new = None
        for step in _steps(A * scale, -r, determined):
            candidate = _damped(values, x, r, step * scale, terms)
            if candidate is not None and (new is None or candidate.ratio < new.ratio):
                new = candidate
                if new.ratio < GOOD_STEP:
                    break
        if new is None:
            break
        x, r = new.x, new.r
    left = np.abs(r) - LEFT_OVER * terms
    worst = int(np.argmax(left))
    return x, _Failure(worst, float(r[worst])) if left[worst] > 0 else None


def _steps(A: np.ndarray, b: np.ndarray, determined: bool) -> Iterator[np.ndarray]:
    """Shortest solutions of A x = b with rows of any units.

    Where the singular values have a gap, those below it are taken for zero first: where
    constraints repeat each other on their solutions only, Newton's method itself converges slowly
    and goes far.
    """
    length = np.abs(A).max(axis=1, initial=0.0)
    length[length == 0.0] = 1.0
    A, b = A / length[:, None], b / length
    if determined and _well_conditioned(A):
        yield np.linalg.solve(A, b)
        return
    u, s, vt = np.linalg.svd(A, full_matrices=False)
    if not len(s) or s[0] == 0.0:
        yield np.zeros(A.shape[1])
        return
    along = u.T @ b
    full = int(np.sum(s > RANK * s[0]))
    gaps = s[1:full] / s[: full - 1]
    ranks = [int(np.argmin(gaps)) + 1] if len(gaps) and gaps.min() < GAP else []
    for rank in (*ranks, full):
        yield vt[:rank].T @ (along[:rank] / s[:rank])


def _well_conditioned(A: np.ndarray) -> bool:
    try:
        inverse = np.linalg.inv(A)
    except np.linalg.LinAlgError:
        return False
    return bool(np.linalg.norm(A, 1) * np.linalg.norm(inverse, 1) < WELL_CONDITIONED)


@dataclass(frozen=True, eq=False)
class _Point:
    x: np.ndarray
    r: np.ndarray
    ratio: float  # of the residuals after and before


def _damped(
    values: Callable[[np.ndarray], np.ndarray],
    x: np.ndarray,
    r: np.ndarray,
    step: np.ndarray,
    terms: np.ndarray,
) -> _Point | None:
    """Take the longest of 1, 1/2, 1/4, ... of a step that makes the equations smaller."""
    weight = 1.0 / np.where(terms > 0.0, terms, 1.0)
    size = float(np.linalg.norm(weight * r))
    for halvings in range(MAX_HALVINGS):
        new = x + 0.5**halvings * step
        new_r = values(new)
        new_size = float(np.linalg.norm(weight * new_r))
        if new_size < size:
            return _Point(new, new_r, new_size / size)
        if size < LEFT_OVER:  # round-off decides from here on
            break
    return None
