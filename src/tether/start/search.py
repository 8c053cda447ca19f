"""Consistent y and y' together, with components that are fixed, guessed or free.

What F(t, y, y') = 0 and the hidden constraints G(t, y) = 0 say about y alone are the equations
of y, math (19): with U_0 the directions of F that y' does not reach,

    E(y) = [U_0^T F; G] = 0.

Newton's steps in y solve them with the least weighted change, then the point moves along the
solutions towards the guess; y' follows from the rest of F, and its part that F does not see from
d/dt E = 0.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tether._core import constraints as core_constraints
from tether._core import probe
from tether._core.adapters import raise_users
from tether._core.state import State
from tether.base.capacity import OF_A_SEARCH, require_matrices
from tether.base.checks import check_time, check_vector
from tether.plan.memory import new_state
from tether.plan.model import AsWritten
from tether.problem.names import check_names
from tether.problem.options import Options
from tether.problem.problem import as_problem, prepared
from tether.start.consistent import Start
from tether.start.derivative import StateSystem, find_derivative
from tether.structure.least_change import shortest
from tether.structure.scaling import Units, balanced, nonzero, ranges

__all__ = ["consistent_start"]

MAX_ITERATIONS = 500                   # a diode takes one for each thermal voltage
MAX_HALVINGS = 60
MAX_APPROACHES = 20
RANK = 1e-9                            # relative singular value of a dependent equation
REACHED = 1e-7                         # relative singular value of what y' reaches
ABSENT = 1e-14                         # share of a derivative that does not occur
CONVERGED = 1e-12
LEFT_OVER = 1e-8                       # of the terms of an equation: what may be left of it
NEGLIGIBLE = 1e-6                      # of the tolerance: a change that does not matter
FREE = 1e-6                            # weight of a free component, next to 1 for a guess
ROOT_EPS = float(np.sqrt(np.finfo(float).eps))


def consistent_start(
    fun: Any,
    t0: float,
    y0: ArrayLike,
    yp0: ArrayLike | None = None,
    *,
    fixed: Iterable[int | str] | None = None,
    free: Iterable[int | str] | None = None,
    weights: ArrayLike | None = None,
    constraints: Any = None,
    names: Sequence[str] | None = None,
    args: Sequence[Any] = (),
    jac: Any = None,
    rtol: ArrayLike = 1e-6,
    atol: ArrayLike = 1e-9,
    form: str = "dense",
    band: tuple[int, int] | None = None,
) -> Start:
    """Find starting values y and y' that satisfy the equations and their hidden constraints.

    Parameters
    ----------
    fun : callable or Problem
        The residual, as in `solve_dae`.
    t0 : float
        Starting time.
    y0, yp0 : array_like
        Starting values: known, guessed or arbitrary, component by component.
    fixed : indices or names, optional
        Components of y that keep their value exactly.
    free : indices or names, optional
        Components whose value means nothing: the equations have to determine them. When left
        out, the unknowns without a derivative in the equations are moved first.
    weights : array_like, optional
        How much a change of each guess costs; one over its absolute tolerance when left out, so
        all alike if `atol` is one number. For velocities give the square roots of the masses to
        correct them by an impulse.
    constraints : optional
        Hidden constraints G(t, y) = 0 of an index-2 or index-3 system, as in `solve_dae`.
    names : sequence of str, optional
        Names of the unknowns, for `fixed`, `free` and the messages.
    args, jac, rtol, atol
        As in `solve_dae`; the tolerances say in which units the unknowns are, and judge how far
        a value has moved.
    form : {"dense", "sparse", "banded"}
        Linear algebra of the search for y' where all of y is fixed (HK Appendix II): orthogonal
        factors, or the regularised system of HK eq. 24 by sparse or by band LU, the latter with
        ``band=(ml, mu)``.

    Returns
    -------
    Start
        With ``success=False`` and a message that names equations and unknowns if there is none.

    Examples
    --------
    A pendulum (index 3) from its angle; velocities and tension are found:

    >>> from tether import consistent_start
    >>> def pendulum(t, y, yp):
    ...     x, z, u, w, lam = y
    ...     return [yp[0] - u, yp[1] - w, yp[2] + lam*x, yp[3] + lam*z + 9.81, x*x + z*z - 1]
    >>> hidden = [lambda t, y: y[0]*y[2] + y[1]*y[3],
    ...           lambda t, y: y[2]**2 + y[3]**2 - y[4] - 9.81*y[1]]
    >>> start = consistent_start(pendulum, 0, [0.6, -0.8, 1.0, 0.0, 0.0], fixed=[0, 1],
    ...                          constraints=hidden, weights=[1, 1, 1, 1, 1])
    >>> [round(float(v), 3) for v in start.y]
    [0.6, -0.8, 0.64, 0.48, 8.488]
    """
    problem = as_problem(fun, jac, args, constraints)
    t = check_time("t0", t0)
    y = check_vector("y0", y0)
    yp = np.zeros_like(y) if yp0 is None else check_vector("yp0", yp0, len(y))
    n = len(y)
    labels = check_names("names", names, n) or [f"y[{i}]" for i in range(n)]
    options = Options(rtol=rtol, atol=atol)
    units = Units.of_options(options, y)
    roles = Roles(
        _components("fixed", fixed, labels), _components("free", free, labels),
        free is None, 1.0 / units.y if weights is None else _weights(weights, n),
    )
    both = sorted(set(roles.fixed) & set(roles.free))
    if both:
        raise ValueError(f"fixed and free both name {[labels[i] for i in both]}")
    require_matrices(len(y), OF_A_SEARCH)
    problem = prepared(problem, t, y)
    model = AsWritten(problem, n)
    state = new_state(model, options)
    state.given = t, y, np.zeros(n) if yp is None else yp
    model.constraints.attach(state, t, y, problem.args, options)
    model.constraints.set_references(state, t, y)
    state.h = 1.0
    if len(roles.fixed) == n and not state.n_constraints:
        return _derivative_only(state, t, y, yp, form, band)
    if form != "dense" or band is not None:
        raise ValueError("form and band are for a start with all of y fixed and no constraints")
    return Search(state, t, labels, roles, units).run(y, yp)


def _derivative_only(
    state: State, t: float, y: np.ndarray, yp: np.ndarray, form: str, band: Any
) -> Start:
    """Find y' for a given y, HK Appendix II."""
    system = StateSystem(state, t, y, yp)
    found = find_derivative(
        system, t, y, yp, form=form, band=band, uncertainty=1e-2 / state.weights
    )
    message = found.message
    if found.equations:
        equations = ", ".join(f"equation {i} (off by {e:.3g})" for i, e in found.equations.items())
        message = f"too much is fixed: {equations} cannot hold with all of y fixed"
    return Start(y, found.yp, found.success, message, {}, found.residual, found.ypp,
                 fixed=tuple(range(len(y))))


@dataclass(frozen=True)
class Roles:
    """Which components are fixed, which free, and what a change of the others costs."""

    fixed: list[int]
    free: list[int]
    automatic: bool
    weights: np.ndarray


class Search:
    """Newton's iteration for one starting point."""

    def __init__(
        self, state: State, t: float, labels: list[str], roles: Roles, units: Units
    ) -> None:
        self.state, self.t, self.labels, self.roles, self.units = state, t, labels, roles, units
        self.n, self.m = state.n, state.n_constraints
        self.movable = np.setdiff1d(np.arange(self.n), roles.fixed)

    def run(self, y: np.ndarray, yp: np.ndarray) -> Start:
        """Find a consistent point and the one nearest to the guess on from there."""
        guess = y.copy()
        start = self._solve(y, yp, guess)
        for _ in range(MAX_APPROACHES):
            if not start.success:
                return start
            nearer = self._approach(start, guess)
            if nearer is None:
                break
            start = nearer
        return start

    def _approach(self, start: Start, guess: np.ndarray) -> Start | None:
        """Go towards the guess along the solutions; None if that brings nothing more."""
        point = self._linearise(start.y, start.yp)
        if point is None:
            return None
        metric = self._metric(point)[self.movable]
        back = (guess - start.y)[self.movable] * metric
        A = point.of_y(np.zeros(self.n + self.m))[0][:, self.movable]
        across = ranges(A, 1.0 / metric, RANK).reached.T @ A / metric
        basis = np.linalg.qr(across.T / nonzero(np.abs(across).max(axis=1)))[0]
        along = back - basis @ (basis.T @ back)
        if np.linalg.norm(along) <= 1e-3 * np.linalg.norm(back):
            return None
        y = start.y.copy()
        y[self.movable] += along / metric
        nearer = self._solve(y, start.yp, guess)
        gained = np.linalg.norm((guess - nearer.y)[self.movable] * metric)
        if not nearer.success or gained >= 0.999 * np.linalg.norm(back):
            return None
        return replace(nearer, residual=(start.residual[0], nearer.residual[1]))

    def _solve(self, y: np.ndarray, yp: np.ndarray, guess: np.ndarray) -> Start:
        if probe.move_to(self.state, self.t, y, yp) != 0:
            return self._failed(y, yp, guess, "a tolerance is zero where y0 is", 0.0)
        r = self._equations(y, yp)
        if r is None:
            return self._failed(y, yp, guess, "the residual at the guess is not finite", np.inf)
        before = float(np.abs(r).max())
        for _ in range(MAX_ITERATIONS):
            linearised = self._linearise(y, yp)
            if linearised is None:
                return self._failed(y, yp, guess, "a Jacobian is not finite", before)
            point = linearised
            refusal, dy = self._step_in_y(point, r, y)
            if refusal:
                return self._failed(y, yp, guess, refusal, before)
            dyp = -point.slopes(r[: self.n] + point.fy @ dy)
            if self._converged(y, yp, dy, dyp):
                break
            stepped = self._damped(point, y, yp, r, dy, dyp)
            if stepped is None:
                break
            y, yp, r = stepped
        allowed = self._left_over(point, y, yp)
        worst = int(np.argmax(np.abs(r) / nonzero(allowed)))
        if abs(r[worst]) > allowed[worst]:
            return self._failed(
                y, yp, guess, f"no solution near the guess: {self._equation(worst)} is left with "
                f"{r[worst]:.3g}", before,
            )
        yp, unseen = self._slopes(point, y, yp)
        message = self._message(y, guess)
        if unseen:
            message += "; y' of " + ", ".join(unseen) + " is not determined (index above 1)"
        return Start(y, yp, True, message, self._moved(y, guess),
                     (before, float(np.abs(r).max())), fixed=tuple(self.roles.fixed))

    # --- equations ------------------------------------------------------------------------

    def _equations(self, y: np.ndarray, yp: np.ndarray) -> np.ndarray | None:
        """F and G stacked, or None where they are not finite."""
        status, r = probe.residual_at(self.state, self.t, y, yp)
        raise_users(self.state)
        if status != 0:
            return None
        if self.m == 0:
            return r
        status, g = core_constraints.constraints_at(self.state, self.t, y)
        raise_users(self.state)
        return None if status != 0 else np.concatenate([r, g])

    def _linearise(self, y: np.ndarray, yp: np.ndarray) -> _Point | None:
        status, fy, fyp = probe.jacobian_at(self.state, self.t, y, yp)
        raise_users(self.state)
        gy = np.zeros((0, self.n))
        if status == 0 and self.m:
            status, gy = core_constraints.jacobian_of_constraints_at(self.state, self.t, y)
            raise_users(self.state)
        if status != 0 or not all(np.isfinite(part).all() for part in (fy, fyp, gy)):
            return None
        return _Point(fy, fyp, gy, self.units.y)

    def _step_in_y(self, point: _Point, r: np.ndarray, y: np.ndarray) -> tuple[str, np.ndarray]:
        """Least weighted change that solves the linearised equations of y, or why there is none."""
        E, e = point.of_y(r)
        metric = self._metric(point)[self.movable]
        A = E[:, self.movable]
        dy = np.zeros(self.n)
        found = ranges(A, 1.0 / metric, RANK)
        left = found.left.T @ e
        size = np.abs(found.left.T) @ (np.abs(E) @ np.abs(y) + np.abs(e))
        if np.any(np.abs(left) > 1e-6 * size):
            return self._too_much(point, found.left, left), dy
        missing = self._undetermined(found.right.T * metric)
        if not missing:
            combined = found.reached.T
            dy[self.movable] = -shortest(combined @ A, combined @ e, 1.0 / metric)
        return missing, dy

    def _metric(self, point: _Point) -> np.ndarray:
        metric = self.roles.weights.copy()
        free = self.roles.free
        if self.roles.automatic:
            share = np.abs(point.fyp) * self.units.y
            share = share / nonzero(share.max(axis=1))[:, None]
            free = list(np.flatnonzero(np.all(share <= ABSENT, axis=0)))
            if len(free) == self.n:            # nothing but algebraic equations: all alike
                free = []
        metric[free] *= FREE
        return metric

    def _undetermined(self, null: np.ndarray) -> str:
        """Name the free components that the equations leave open."""
        if not self.roles.free or not len(null):
            return ""
        position = {int(c): k for k, c in enumerate(self.movable)}
        columns = [position[c] for c in self.roles.free if c in position]
        others = [k for k in range(len(self.movable)) if k not in columns]
        # combinations of the null vectors that move free components only
        null = np.linalg.qr(null.T)[0].T
        s, vt = np.zeros(0), np.eye(len(null))
        if others:
            _, s, vt = np.linalg.svd(null[:, others].T)
        only_free = vt[int(np.sum(s > 1e-7)) :] @ null[:, columns]
        open_ones = [
            self.labels[self.movable[columns[k]]]
            for k in range(len(columns)) if np.any(np.abs(only_free[:, k]) > 1e-6)
        ]
        if not open_ones:
            return ""
        return (
            f"too little is known: the equations do not determine {', '.join(open_ones)}; fix or "
            "guess them, or pass the hidden constraints they come from"
        )

    def _too_much(self, point: _Point, combined: np.ndarray, left: np.ndarray) -> str:
        """Name the equations that cannot be met and the fixed components that stand in the way."""
        rows, scale = point.rows_of_y(combined, left)
        share = np.abs(rows) / nonzero(scale)
        worst = [i for i in np.argsort(-share) if share[i] > 0.1 * share.max()]
        E = point.of_y(np.zeros(self.n + self.m))[0] * self.units.y
        seen = np.abs(left @ (combined.T @ E))
        most = np.abs(left) @ (np.abs(combined.T) @ np.abs(E)).max(axis=1)
        blamed = [self.labels[i] for i in self.roles.fixed if seen[i] > 1e-9 * most]
        equations = ", ".join(f"{self._equation(i)} (off by {rows[i]:.3g})" for i in worst[:5])
        if blamed:
            return f"too much is fixed: {equations} cannot hold with {', '.join(blamed)} fixed"
        return f"{equations} cannot hold near the guess: dependent or contradicting equations"

    # --- iteration --------------------------------------------------------------------------

    def _converged(
        self, y: np.ndarray, yp: np.ndarray, dy: np.ndarray, dyp: np.ndarray
    ) -> bool:
        unit = self.units.y
        nothing = CONVERGED * np.abs(y) + NEGLIGIBLE * NEGLIGIBLE * self.state.tolerances
        return bool(
            np.all(np.abs(dy) <= nothing)
            and np.max(np.abs(dyp) / unit) <= CONVERGED * np.max(np.abs(yp) / unit)
        )

    def _damped(
        self,
        point: _Point,
        y: np.ndarray,
        yp: np.ndarray,
        r: np.ndarray,
        dy: np.ndarray,
        dyp: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """Take the longest of 1, 1/2, 1/4, ... of the step that makes the equations smaller."""
        weight = 1.0 / nonzero(point.sensitivity)
        size = np.linalg.norm(weight * r)
        length = 1.0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)     # overflow at a trial point
            for _ in range(MAX_HALVINGS):
                trial = self._equations(y + length * dy, yp + length * dyp)
                if trial is not None and np.linalg.norm(weight * trial) < (
                    1.0 - 1e-6 * length
                ) * size:
                    return y + length * dy, yp + length * dyp, trial
                length /= 2
        return None

    def _left_over(self, point: _Point, y: np.ndarray, yp: np.ndarray) -> np.ndarray:
        """Say what may be left of the equations, by terms or by changes below tolerance."""
        of_y = np.abs(np.vstack([point.fy, point.gy]))
        of_yp = np.concatenate([np.abs(point.fyp) @ np.abs(yp), np.zeros(self.m)])
        nothing = NEGLIGIBLE * (of_y @ self.state.tolerances)
        return LEFT_OVER * (of_y @ np.abs(y) + of_yp) + nothing

    def _slopes(
        self, point: _Point, y: np.ndarray, yp: np.ndarray
    ) -> tuple[np.ndarray, list[str]]:
        """Complete y' by d/dt E = 0 and name the components that stay open."""
        N = point.null_of_fyp()
        if N.shape[1] == 0:
            return yp, []
        dt = ROOT_EPS * max(abs(self.t), 1.0)
        self.t += dt
        ahead = self._equations(y, yp)
        self.t -= dt
        here = self._equations(y, yp)
        if ahead is None or here is None:
            return yp, []
        E, rate = point.of_y((ahead - here) / dt)
        E_N = E @ N
        row, column = balanced(E_N)
        u, s, vt = np.linalg.svd(row[:, None] * E_N * column)
        rank = int(np.sum(s > RANK * s[0])) if len(s) and s[0] > 0 else 0
        rhs = -row * (rate + E @ yp)
        slopes = column * (vt[:rank].T @ ((u[:, :rank].T @ rhs) / s[:rank]))
        open_directions = N @ (column[:, None] * vt[rank:].T) / self.units.y[:, None]
        length = nonzero(np.abs(open_directions).max(axis=0, initial=0.0))
        share = np.abs(open_directions / length).max(axis=1, initial=0.0)
        unseen = [self.labels[i] for i in range(self.n) if share[i] > 1e-6]
        return yp + N @ slopes, unseen

    # --- words ------------------------------------------------------------------------------

    def _equation(self, row: int) -> str:
        return f"equation {row}" if row < self.n else f"constraint {row - self.n}"

    def _moved(self, y: np.ndarray, guess: np.ndarray) -> dict[int, float]:
        return {int(i): float(y[i] - guess[i]) for i in np.flatnonzero(y != guess)}

    def _message(self, y: np.ndarray, guess: np.ndarray) -> str:
        beyond = np.abs(y - guess) * self.state.weights > 1.0
        moved = ", ".join(self.labels[i] for i in np.flatnonzero(beyond))
        return f"moved {moved}" if moved else "found y'"

    def _failed(
        self, y: np.ndarray, yp: np.ndarray, guess: np.ndarray, message: str, before: float
    ) -> Start:
        r = self._equations(y, yp)
        after = float(np.abs(r).max()) if r is not None else np.inf
        return Start(y, yp, False, message, self._moved(y, guess), (before, after),
                     fixed=tuple(self.roles.fixed))


class _Point:
    """The linearised equations at a point and their split by what y' reaches."""

    def __init__(
        self, fy: np.ndarray, fyp: np.ndarray, gy: np.ndarray, unit: np.ndarray
    ) -> None:
        self.fy, self.fyp, self.gy, self.unit = fy, fyp, gy, unit
        self._found = ranges(fyp, unit, REACHED)
        self._beyond = self._found.left.T                         # U_0^T, in terms of F

    @property
    def sensitivity(self) -> np.ndarray:
        """What changes by a unit make of F and G."""
        size = np.maximum(np.abs(self.fy) @ self.unit, np.abs(self.fyp) @ self.unit)
        return np.concatenate([size, np.abs(self.gy) @ self.unit])

    def slopes(self, value: np.ndarray) -> np.ndarray:
        """Least change of y' that changes F by `value`, as far as y' reaches it."""
        combined = self._found.reached.T
        return shortest(combined @ self.fyp, combined @ value, self.unit)

    def of_y(self, r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Jacobian and residual of the equations of y, E = [U_0^T F; G]."""
        n = len(self.fy)
        return (
            np.vstack([self._beyond @ self.fy, self.gy]),
            np.concatenate([self._beyond @ r[:n], r[n:]]),
        )

    def rows_of_y(
        self, combined: np.ndarray, left: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Spread what is left of combinations of the equations of y over the rows of F and G.

        Also give the scale of each row.
        """
        k, scale = len(self._beyond), nonzero(self.sensitivity)
        rows = np.hstack([combined[:k].T @ self._beyond, combined[k:].T]) * scale
        return scale * np.linalg.lstsq(rows, left, rcond=None)[0], scale

    def null_of_fyp(self) -> np.ndarray:
        """Directions of y' that F does not see."""
        return self._found.right


def _components(name: str, value: Any, labels: list[str]) -> list[int]:
    if value is None:
        return []
    items = [value] if isinstance(value, (str, int, np.integer)) else list(value)
    found = []
    for item in items:
        if isinstance(item, str) and item in labels:
            found.append(labels.index(item))
        elif (
            isinstance(item, (int, np.integer)) and not isinstance(item, bool)
            and -len(labels) <= item < len(labels)
        ):
            found.append(int(item) % len(labels))
        else:
            raise ValueError(f"{name} names {item!r}, which is no unknown; they are {labels}")
    return sorted(set(found))


def _weights(weights: ArrayLike, n: int) -> np.ndarray:
    values = np.asarray(weights)
    if values.dtype.kind not in "fiu" or values.shape != (n,):
        raise ValueError(f"weights must be {n} numbers, one per unknown, got {weights!r}")
    if not np.all(np.isfinite(values)) or np.any(values <= 0):
        raise ValueError(f"weights must be positive and finite, got {weights!r}")
    return values.astype(float)
