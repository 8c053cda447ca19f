"""Consistent y and y' together, with components that are fixed, guessed or free.

The conditions on y alone that follow from F(t, y, y') = 0 and the hidden constraints G(t, y) = 0
are the equations of y, math (19): with U_0 the directions of F that y' does not change,

    E(y) = [U_0^T F; G] = 0.

Newton's steps in y solve them with the least weighted change, then the point moves along the
solutions towards the guess; y' follows from the rest of F, and the part of y' on which F does not
depend from d/dt E = 0.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tether._core import constraints as core_constraints
from tether._core import probe
from tether._core.adapters import raise_user_error
from tether._core.state import State
from tether.base.reason import Kind, Reason, Row
from tether.plan.model import Model
from tether.start.derivative import StateSystem, find_derivative
from tether.structure.least_change import shortest
from tether.structure.reduced_start import Search as ReducedSearch
from tether.structure.scaling import Units, balanced, nonzero, ranges
from tether.structure.start import Start

__all__ = ["Roles", "Search", "derivative_only"]

MAX_ITERATIONS = 500                   # a diode takes one for each thermal voltage
MAX_HALVINGS = 60
MAX_APPROACHES = 20
MAX_REFUSALS = 20                      # iterations in which linearised equations may conflict
RANK = 1e-9                            # relative singular value of a dependent equation
REACHED = 1e-7                         # relative singular value of a direction that y' changes
ABSENT = 1e-14                         # share of a derivative that does not occur
CONVERGED = 1e-12
LEFT_OVER = 1e-8                       # share of its terms below which an equation holds
NEGLIGIBLE = 1e-6                      # share of the tolerance that does not matter
FREE_WEIGHT = 1e-6                     # weight of a free component, relative to that of a guess
ROOT_EPS = float(np.sqrt(np.finfo(float).eps))


def derivative_only(
    state: State, t: float, y: np.ndarray, yp: np.ndarray, form: str, band: Any
) -> Start:
    """Find y' for a given y, HK Appendix II."""
    system = StateSystem(state, t, y, yp)
    found = find_derivative(
        system, t, y, yp, form=form, band=band, uncertainty=1e-2 / state.weights
    )
    reason = found.reason
    if found.equations:
        reason = replace(reason, kind=Kind.ALL_IS_FIXED)
    return Start(
        y, found.yp, found.success, reason, residual=found.residual, ypp=found.ypp,
        fixed=found.fixed,
    )


@dataclass(frozen=True)
class Roles:
    """Which components are fixed, which free, and what a change of the others costs."""

    fixed: list[int]
    free: list[int]
    automatic: bool
    weights: np.ndarray
    by_law: bool = False               # differential unknowns move by the law of jumps
    fixed_slopes: Sequence[int] = ()   # components of y' that are fixed


class Search:
    """Newton's iteration for one starting point of a model, in its memory.

    Unknowns of a reduced model beyond the user's, which are derivatives of these, and multipliers,
    which follow from the rest, are always free.
    """

    def __init__(
        self, model: Model, state: State, t: float, roles: Roles, units: Units
    ) -> None:
        self.model, self.state, self.t, self.roles = model, state, t, roles
        self.n, self.m = state.n, state.n_constraints
        self.movable = np.setdiff1d(np.arange(self.n), roles.fixed)
        self.weights, self.units = roles.weights, units
        self.before = 0.0                      # largest residual of the values given
        self.follow: list[int] = []            # unknowns that follow from the others
        if model.reduced is not None:
            self.follow = [
                *np.flatnonzero(model.determined).tolist(), *range(model.n, self.n)
            ]
            owner = model.owner
            self.weights, self.units = roles.weights[owner], Units(units.y[owner], units.t)

    def run(self, y: np.ndarray, yp: np.ndarray, nearby: np.ndarray | None = None) -> Start:
        """Find a consistent point, and from there the one nearest to the guess.

        `nearby` are better values than those given, to begin with and to stay close to.
        """
        self.given = self.guess = y
        if probe.move_to(self.state, self.t, y, yp) != 0:
            return self._failed(y, yp, Reason(Kind.ZERO_TOLERANCE))
        r = self._equations(y, yp)
        self.before = np.inf if r is None else float(np.abs(r).max())
        if r is None and nearby is None:
            return self._failed(y, yp, Reason(Kind.GUESS_NOT_FINITE))
        start = None
        if nearby is not None:
            self.guess = nearby
            start = self._solve(nearby, yp)
        if start is None or not start.success:
            self.guess = y
            start = self._solve(y, yp)
        for _ in range(MAX_APPROACHES):
            nearer = self._approach(start) if start.success else None
            if nearer is None:
                break
            start = nearer
        return self._with_guesses_kept(start)

    def _approach(self, start: Start) -> Start | None:
        """Go towards the guess along the solutions; None if that gains nothing."""
        if not len(self.movable):
            return None
        point = self._linearise(start.y, start.yp)
        if point is None:
            return None
        metric = self._metric(point)[self.movable]
        back = (self.guess - start.y)[self.movable] * metric
        A = point.of_y(np.zeros(self.n + self.m))[0][:, self.movable]
        across = ranges(A, 1.0 / metric, RANK).reached.T @ A / metric
        basis = np.linalg.qr(across.T / nonzero(np.abs(across).max(axis=1)))[0]
        along = back - basis @ (basis.T @ back)
        if np.linalg.norm(along) <= 1e-3 * np.linalg.norm(back):
            return None
        y = start.y.copy()
        y[self.movable] += along / metric
        nearer = self._solve(y, start.yp)
        gained = np.linalg.norm((self.guess - nearer.y)[self.movable] * metric)
        return nearer if nearer.success and gained < 0.999 * np.linalg.norm(back) else None

    def _with_guesses_kept(self, start: Start) -> Start:
        """Move only free components if that is enough, so that the guesses stay as they are."""
        point = self._linearise(start.y, start.yp) if start.success else None
        if point is None:
            return start
        free = np.intersect1d(np.array(self._free(point), int), self.movable)
        guesses = np.setdiff1d(self.movable, free)
        if np.array_equal(start.y[guesses], self.guess[guesses]):
            return start
        movable, self.movable = self.movable, free
        y = start.y.copy()
        y[guesses] = self.guess[guesses]
        alone = self._solve(y, start.yp)
        self.movable = movable
        return alone if alone.success else start

    def _solve(self, y: np.ndarray, yp: np.ndarray) -> Start:
        probe.move_to(self.state, self.t, y, yp)
        r = self._equations(y, yp)
        if r is None:
            return self._failed(y, yp, Reason(Kind.GUESS_NOT_FINITE))
        refused, attempts = None, MAX_REFUSALS
        for _ in range(MAX_ITERATIONS):
            linearised = self._linearise(y, yp)
            if linearised is None:
                return self._failed(y, yp, Reason(Kind.JACOBIAN_NOT_FINITE))
            point = linearised
            refusal, dy = self._step_in_y(point, r, y)
            if refusal is not None:
                refused = refused or self._failed(y, yp, refusal)
                attempts -= 1
                if refusal.kind is Kind.TOO_LITTLE_KNOWN or attempts == 0:
                    return refused
            dyp = -point.slopes(r[: self.n] + point.fy @ dy)
            stepped = None
            if not self._converged(y, yp, dy, dyp):
                stepped = self._damped(point, y, yp, r, dy, dyp)
            if stepped is None:
                if refusal is not None and refused is not None:
                    return refused
                break
            y, yp, r = stepped
        allowed = self._left_over(point, y, yp)
        worst = int(np.argmax(np.abs(r) / nonzero(allowed)))
        if abs(r[worst]) > allowed[worst]:
            return self._failed(y, yp, Reason(
                Kind.NO_SOLUTION_NEARBY, (self._row(worst),), values=(float(r[worst]),)
            ))
        whole = self._linearise(y, yp, with_fixed=False) if self.roles.fixed_slopes else point
        yp, open_ones = (yp, []) if whole is None else self._slopes(whole, y, yp)
        done = self._done(y)
        if open_ones:
            done = done.then(Reason(Kind.SLOPES_OPEN, columns=tuple(open_ones)))
        return Start(
            y, yp, True, done, moved=self._moved(y),
            residual=(self.before, float(np.abs(r).max())), fixed=tuple(self.roles.fixed),
        )

    # --- equations ------------------------------------------------------------------------

    def largest(self, y: np.ndarray, yp: np.ndarray) -> float:
        """Largest value of an equation or constraint; infinite where they are not finite."""
        r = self._equations(y, yp)
        return np.inf if r is None else float(np.abs(r).max())

    def holds(self, y: np.ndarray, yp: np.ndarray) -> bool:
        """Whether all equations and constraints hold, as closely as a search solves them."""
        if probe.move_to(self.state, self.t, y, yp) != 0:
            return False
        r, point = self._equations(y, yp), self._linearise(y, yp)
        if r is None or point is None:
            return False
        return bool(np.all(np.abs(r) <= self._left_over(point, y, yp)))

    def moved_on(self, start: Start, y: np.ndarray, yp: np.ndarray) -> Start:
        """Return a start at values that were found from another start."""
        reason = self._done(y)
        if start.reason.kind is Kind.SLOPES_OPEN:
            reason = reason.then(replace(start.reason, earlier=None))
        residual = self.before, self.largest(y, yp)
        return replace(
            start, y=y, yp=yp, reason=reason, moved=self._moved(y), residual=residual
        )

    def _equations(self, y: np.ndarray, yp: np.ndarray) -> np.ndarray | None:
        """F and G stacked, or None where they are not finite."""
        status, r = probe.residual_at(self.state, self.t, y, yp)
        raise_user_error(self.state)
        if status != 0:
            return None
        if self.m == 0:
            return r
        status, g = core_constraints.constraints_at(self.state, self.t, y)
        raise_user_error(self.state)
        return None if status != 0 else np.concatenate([r, g])

    def _linearise(
        self, y: np.ndarray, yp: np.ndarray, with_fixed: bool = True
    ) -> _Point | None:
        status, fy, fyp = probe.jacobian_at(self.state, self.t, y, yp)
        raise_user_error(self.state)
        gy = np.zeros((0, self.n))
        if status == 0 and self.m:
            status, gy = core_constraints.jacobian_of_constraints_at(self.state, self.t, y)
            gy = probe.full(gy)
            raise_user_error(self.state)
        if status != 0 or not all(np.isfinite(part).all() for part in (fy, fyp, gy)):
            return None
        movable = fyp
        if with_fixed and self.roles.fixed_slopes:
            movable = fyp.copy()
            movable[:, list(self.roles.fixed_slopes)] = 0.0    # as if they did not occur
        return _Point(fy, movable, gy, self.units.y, fyp)

    def _step_in_y(
        self, point: _Point, r: np.ndarray, y: np.ndarray
    ) -> tuple[Reason | None, np.ndarray]:
        """Least weighted change that solves the linearised equations of y, or why there is none.

        If the linearised equations contradict each other the equations may still hold farther on:
        then the change solves them as far as possible.
        """
        E, e = point.of_y(r)
        metric = self._metric(point)[self.movable]
        A = E[:, self.movable]
        dy = np.zeros(self.n)
        found = ranges(A, 1.0 / metric, RANK)
        left = found.left.T @ e
        size = np.abs(found.left.T) @ (np.abs(E) @ np.abs(y) + np.abs(e))
        refusal = self._undetermined(found.right.T * metric)
        if np.any(np.abs(left) > 1e-6 * size):
            refusal = self._too_much(point, found.left, left)
        elif refusal is not None:
            return refusal, dy
        combined = found.reached.T
        dy[self.movable] = -shortest(combined @ A, combined @ e, 1.0 / metric)
        return refusal, dy

    def _metric(self, point: _Point) -> np.ndarray:
        metric = self.weights.copy()
        metric[np.array(self._free(point), int)] *= FREE_WEIGHT
        return metric

    def _free(self, point: _Point) -> list[int]:
        """Components that are moved first: free ones, and those that follow from the others."""
        free = self.roles.free
        if self.roles.automatic:
            share = np.abs(point.whole_fyp) * self.units.y
            share = share / nonzero(share.max(axis=1))[:, None]
            free = np.flatnonzero(np.all(share <= ABSENT, axis=0)).tolist()
            if len(free) == self.n:            # all equations are algebraic: all weigh the same
                free = []
        return sorted({*free, *self.follow})

    def _undetermined(self, null: np.ndarray) -> Reason | None:
        """Name the free components that the equations leave open."""
        if not self.roles.free or not len(null):
            return None
        position = {int(c): k for k, c in enumerate(self.movable)}
        free = {*self.roles.free, *self.follow}
        columns = [position[c] for c in sorted(free) if c in position]
        others = [k for k in range(len(self.movable)) if k not in columns]
        # combinations of the null vectors that move free components only
        null = np.linalg.qr(null.T)[0].T
        s, vt = np.zeros(0), np.eye(len(null))
        if others:
            _, s, vt = np.linalg.svd(null[:, others].T)
        only_free = vt[int(np.sum(s > 1e-7)) :] @ null[:, columns]
        open_ones = [
            int(self.movable[place]) for k, place in enumerate(columns)
            if self.movable[place] in self.roles.free and np.any(np.abs(only_free[:, k]) > 1e-6)
        ]
        if not open_ones:
            return None
        return Reason(Kind.TOO_LITTLE_KNOWN, columns=tuple(open_ones))

    def _too_much(self, point: _Point, combined: np.ndarray, left: np.ndarray) -> Reason:
        """Name the equations that cannot hold and the fixed components that prevent it."""
        rows, scale = point.rows_of_y(combined, left)
        share = np.abs(rows) / nonzero(scale)
        worst = [i for i in np.argsort(-share) if share[i] > 0.1 * share.max()]
        E = point.of_y(np.zeros(self.n + self.m))[0] * self.units.y
        seen = np.abs(left @ (combined.T @ E))
        most = np.abs(left) @ (np.abs(combined.T) @ np.abs(E)).max(axis=1)
        blamed = tuple([i for i in self.roles.fixed if seen[i] > 1e-9 * most])
        return Reason(
            Kind.TOO_MUCH_FIXED if blamed else Kind.CONTRADICTION,
            tuple([self._row(i) for i in worst]), blamed, tuple([float(rows[i]) for i in worst]),
        )

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
        """Bound values of equations that hold, by terms or by changes below tolerance."""
        of_y = np.abs(np.vstack([point.fy, point.gy]))
        of_yp = np.concatenate([np.abs(point.fyp) @ np.abs(yp), np.zeros(self.m)])
        nothing = NEGLIGIBLE * (of_y @ self.state.tolerances)
        return LEFT_OVER * (of_y @ np.abs(y) + of_yp) + nothing

    def _slopes(
        self, point: _Point, y: np.ndarray, yp: np.ndarray
    ) -> tuple[np.ndarray, list[int]]:
        """Complete y' by d/dt E = 0; tell which components stay open."""
        N = point.null_of_fyp()
        if N.shape[1] == 0:
            return yp, []
        rates = self._rates(y, yp)
        if rates is None:
            return yp, []
        E, rate = point.of_y(rates)
        E_N = E @ N
        row, column = balanced(E_N)
        u, s, vt = np.linalg.svd(row[:, None] * E_N * column)
        rank = int(np.sum(s > RANK * s[0])) if len(s) and s[0] > 0 else 0
        rhs = -row * (rate + E @ yp)
        slopes = column * (vt[:rank].T @ ((u[:, :rank].T @ rhs) / s[:rank]))
        open_directions = N @ (column[:, None] * vt[rank:].T) / self.units.y[:, None]
        length = nonzero(np.abs(open_directions).max(axis=0, initial=0.0))
        share = np.abs(open_directions / length).max(axis=1, initial=0.0)
        open_ones = np.flatnonzero(share[: self.model.n] > 1e-6).tolist()
        return yp + N @ slopes, open_ones

    def _rates(self, y: np.ndarray, yp: np.ndarray) -> np.ndarray | None:
        """Differentiate F and G by t: exactly where traced, else by differences."""
        rates = np.zeros(self.n + self.m)
        analysis = None if self.model.plan is None else self.model.plan.analysis
        known = None if analysis is None else analysis.reduced
        given = self.n + self.model.constraints.n_found
        if known is None or given < len(rates):
            dt = ROOT_EPS * max(abs(self.t), 1.0)
            self.t += dt
            ahead = self._equations(y, yp)
            self.t -= dt
            here = self._equations(y, yp)
            if ahead is None or here is None:
                return None
            rates = (ahead - here) / dt
        if known is not None:
            exact = ReducedSearch(known, self.t, self.model.values).rates(y, yp)
            rates[:given] = np.concatenate(exact)
        return rates if np.isfinite(rates).all() else None

    # --- results ----------------------------------------------------------------------------

    def _row(self, row: int) -> Row:
        """Tell which equation, differentiated or not, or which constraint a row is."""
        reduced, number = self.model.reduced, int(row) - self.n
        if number >= self.model.constraints.n_found:
            return Row(constraint=self.model.constraints.name_of(self.state, number))
        if number >= 0:
            assert reduced is not None
            level = reduced.levels[number]
            return Row(level.equation, level.order)
        return Row(int(row)) if reduced is None else reduced.origin(int(row))

    def _moved(self, y: np.ndarray) -> dict[int, float]:
        return {int(i): float(y[i] - self.given[i]) for i in np.flatnonzero(y != self.given)}

    def _done(self, y: np.ndarray) -> Reason:
        beyond = np.abs(y - self.given) * self.state.weights > 1.0
        moved = np.flatnonzero(beyond[: self.model.n])
        if not len(moved):
            return Reason(Kind.FOUND_SLOPES)
        return Reason(Kind.MOVED, columns=tuple(moved.tolist()))

    def _failed(self, y: np.ndarray, yp: np.ndarray, reason: Reason) -> Start:
        residual = self.before, self.largest(y, yp)
        return Start(
            y, yp, False, reason, moved=self._moved(y), residual=residual,
            fixed=tuple(self.roles.fixed),
        )


class _Point:
    """The linearised equations at a point, split into those that y' changes and those of y."""

    def __init__(
        self, fy: np.ndarray, fyp: np.ndarray, gy: np.ndarray, unit: np.ndarray,
        whole_fyp: np.ndarray,
    ) -> None:
        self.fy, self.fyp, self.gy, self.unit = fy, fyp, gy, unit
        self.whole_fyp = whole_fyp       # with the columns of fixed components of y'
        self._found = ranges(fyp, unit, REACHED)
        self._beyond = self._found.left.T                         # U_0^T, in terms of F

    @property
    def sensitivity(self) -> np.ndarray:
        """Changes of F and G that changes of the unknowns by their units make."""
        size = np.maximum(np.abs(self.fy) @ self.unit, np.abs(self.fyp) @ self.unit)
        return np.concatenate([size, np.abs(self.gy) @ self.unit])

    def slopes(self, value: np.ndarray) -> np.ndarray:
        """Least change of y' that changes F by `value`, as far as y' can."""
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
        """Spread values of combinations of the equations of y over the rows of F and G.

        Also return the scale of each row.
        """
        k, scale = len(self._beyond), nonzero(self.sensitivity)
        rows = np.hstack([combined[:k].T @ self._beyond, combined[k:].T]) * scale
        return scale * np.linalg.lstsq(rows, left, rcond=None)[0], scale

    def null_of_fyp(self) -> np.ndarray:
        """Directions of y' on which F does not depend."""
        return self._found.right
