"""Consistent values above index 1 where the equations are known only by their values.

A solution that begins at (t, y) has a Taylor polynomial p, and F vanishes along it. With a unit
of time T, t + s T for the time and c_j for the coefficients, the coefficients of

    F(t + s T, p(s), p'(s) / T) = f_0 + f_1 s + f_2 s^2 + ...,    p(s) = c_0 + c_1 s + ...,

must be zero up to f_k, k = index - 1: those are all the constraints on y = c_0, given and hidden,
and the higher coefficients take any values that fit (the derivative array, math (27)). The f_i come
from differences along the polynomial, only forward in time: before a break another function holds.
Linearised, with the same expansion of F_y and F_y',

    df_i = sum_j (A_(i-j) + j / T E_(i-j+1)) dc_j.

The combinations of these rows in which only dc_0 is left are the linearised constraints. How many
there are is known from the linearised system (`structure/pencil.py`): no ranks are decided here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tether._core import probe
from tether._core.adapters import raise_user_error
from tether._core.state import State
from tether.start.consistent import residual_at, time_scale
from tether.start.law_of_values import law_of_values
from tether.structure.jump import Jump, Jumping, find_jump
from tether.structure.pencil import Pencil
from tether.structure.scaling import Units

__all__ = ["Keep", "Settled", "settle"]

EPS = 2.0**-52
TINY = 1e-300
CUBE_ROOT_EPS = 2.0**-17
# No matrices with more rows than this are made.
MOST_ROWS = 1500
MAX_ITERATIONS = 20
MAX_HALVINGS = 12
MAX_CHOICES = 8
MAX_POLISHING = 4
# Points of a difference formula after the first.
POINTS = 4
# Number of distances between points that are tried, each shorter than the last by this factor.
MAX_DISTANCES = 10
CLOSER = 4.0
# Longest distance, as a share of the time in which y changes by its own size.
FARTHEST = 0.1
# Distance between Jacobians, which have fewer digits, relative to that between values.
JACOBIANS_APART = 32.0
# Singular values of the constraints below this share of the largest are zero.
RANK = 1e-5
# A change below this share of the tolerance does not count.
NEGLIGIBLE = 1e-2
# A change below this many times the estimated error of differences is round-off.
ROUND_OFF = 20.0
# If an iteration gets stuck below this many times that, round-off is larger than estimated.
STUCK = 100.0
# The matrix is kept as long as changes shrink by at least this factor.
STILL_GOOD = 0.05


@dataclass(frozen=True, eq=False)
class Keep:
    """Unknowns that a search must not move, and changes of the others that cost the same."""

    fixed: np.ndarray            # of bool
    lengths: np.ndarray
    by_law: bool = True          # differential unknowns move by the law of jumps


@dataclass(frozen=True, eq=False)
class Settled:
    """Values on all constraints, given and hidden, near those that were given."""

    y: np.ndarray
    yp: np.ndarray
    moved: np.ndarray            # marks components of y whose change is not negligible
    jump: Jump | None = None     # of differential unknowns, by the law of the equations
    lawful: bool = True          # false if they had to jump and the law gave no values


def settle(
    state: State, t: float, y: np.ndarray, yp: np.ndarray, fy: np.ndarray, fyp: np.ndarray,
    pencil: Pencil, keep: Keep | None = None,
) -> Settled | None:
    """Move y onto its constraints, as little as possible, and find y' to match.

    Multipliers and other unknowns that occur without their derivative are moved first, then
    velocities, then the rest. Differential unknowns move by the law of jumps
    (`structure/jump.py`). None if no such values are found.

    Parameters
    ----------
    state : State
        The state with the equations, and with weights for this point.
    t, y, yp : float, ndarray, ndarray
        The point.
    fy, fyp : ndarray
        F_y and F_y' there.
    pencil : Pencil
        Index and kinds of the unknowns.
    keep : Keep, optional
        Unknowns not to be moved, and changes of the others that cost the same.
    """
    assert pencil.index is not None
    if len(y) * pencil.index > MOST_ROWS:
        return None
    point = _Point(state, t, y, yp, fy, fyp, pencil, keep)
    with np.errstate(all="ignore"):
        found = _least(point)
        if found is None or (keep is not None and not keep.by_law):
            return found
        return _by_law(point, found) if _jumps(point, found) else found


@dataclass(frozen=True, eq=False)
class _Point:
    """The point where a search begins; attributes as in `settle`."""

    state: State
    t: float
    y: np.ndarray
    yp: np.ndarray
    fy: np.ndarray
    fyp: np.ndarray
    pencil: Pencil
    keep: Keep | None

    @property
    def free(self) -> np.ndarray:
        """Mark unknowns that have no derivative in the equations."""
        return np.asarray((self.fyp == 0.0).all(axis=0))

    @property
    def counts(self) -> list[int]:
        """Numbers of constraints on y after 0, 1, ... differentiations."""
        return np.cumsum(self.pencil.counts).tolist()

    def search(self) -> _Search:
        terms = np.abs(self.fy) @ np.abs(self.y) + np.abs(self.fyp) @ np.abs(self.yp)
        return _Search(
            self.state, self.t, self.y, self.yp, self.pencil, terms, self.free, self.keep
        )


def _jumps(point: _Point, found: Settled) -> bool:
    """Whether a differential unknown was moved by more than the error allowed in a step."""
    state, y, differential = point.state, point.y, ~point.free
    units = Units.of(state.rtols, state.atols, y)
    beside = units.y * np.max((np.abs(y) / units.y)[differential], initial=0.0)
    change = np.abs(found.y - y) > state.rtols * (np.abs(y) + beside) + state.atols
    return bool(np.any(change & differential))


def _least(point: _Point) -> Settled | None:
    """Change the values as little as possible."""
    search = point.search()
    for movable in range(1, len(search.groups) + 1):
        if search.run(point.counts, movable):
            return search.polished(point.y)
        search = point.search()
    if not search.groups:
        return None
    # from farther away: constraints as written first, hidden ones later
    for order in range(len(point.counts)):
        if not search.run(point.counts[: order + 1], len(search.groups)):
            return None
    return search.polished(point.y)


def _by_law(point: _Point, nearby: Settled) -> Settled:
    """Let differential unknowns jump by the law of the equations; without one, keep `nearby`.

    Unknowns without a derivative are mere guesses and start from their values in `nearby`.
    """
    pencil, free = point.pencil, point.free
    assert pencil.index is not None
    assert pencil.scales is not None
    scales, settled = pencil.scales, [nearby]

    def onto_constraints(start: np.ndarray, directions: np.ndarray) -> np.ndarray | None:
        begin = np.where(free, nearby.y, start)
        search = replace(point, y=begin, yp=nearby.yp).search()
        search.directions = directions
        if not search.run(point.counts, len(search.groups)):
            return None
        settled.append(search.polished(begin))
        return np.where(free, start, settled[-1].y)

    fixed = np.zeros(len(free), bool) if point.keep is None else point.keep.fixed
    matrices = law_of_values(
        point.state, point.t, nearby.yp, scales.columns, scales.columns / abs(scales.time)
    )
    early = ~free & (pencil.var_index < 2) if pencil.index > 2 else np.zeros(len(free), bool)
    before = np.where(free, nearby.y, point.y)
    jump = find_jump(
        Jumping(matrices, onto_constraints, scales.columns, ~fixed, early), before, nearby.y
    )
    if jump is None:
        return replace(nearby, lawful=False)
    found = settled[-1]
    return replace(found, moved=found.moved | nearby.moved, jump=jump)


class _Search:
    """Newton's iteration for the coefficients of the polynomial."""

    def __init__(
        self, state: State, t: float, y: np.ndarray, yp: np.ndarray,
        pencil: Pencil, terms: np.ndarray, free: np.ndarray, keep: Keep | None,
    ) -> None:
        assert pencil.scales is not None
        self.state, self.t, self.n = state, t, len(y)
        fast = pencil.var_index > 1
        groups = [free, ~free & fast, ~free & ~fast]
        if keep is not None:
            groups = [group & ~keep.fixed for group in groups]
        self.groups = [np.flatnonzero(group) for group in groups if group.any()]
        self.free = free
        self.enters = np.maximum(pencil.var_index - 1, 0)      # differentiations until constrained
        self.row, self.column = pencil.scales.rows, pencil.scales.columns
        self.unit = state.direction * pencil.scales.time
        self.c = np.zeros((4, len(y)))
        self.c[0], self.c[1] = y, self.unit * yp
        self.noise = EPS * self.row * terms    # round-off of the values
        self.moved, self.choices = False, 0
        self.directions: np.ndarray | None = None      # y may only be moved along these
        # lengths in which changes are measured; for multipliers, from the equations
        units = Units.of(state.rtols, state.atols, y)
        self.length = units.largest(y) * units.y
        self.length[free] = self.column[free]
        if keep is not None:
            self.length[~free] = keep.lengths[~free]

    # --- the equations ------------------------------------------------------------------------

    def _farthest(self) -> float:
        """Longest distance of the points of a difference formula, in units of time."""
        slope = np.abs(self.c[1]) / (np.abs(self.c[0]) + self.column)
        left = (abs(self.state.t_end - self.t) or abs(self.state.last_h)) / POINTS
        reach = min(4.0 * time_scale(self.state, self.t), left) / abs(self.unit)
        return min(reach, FARTHEST / max(slope.max(), 1e-300))

    def _point(self, s: float) -> tuple[float, np.ndarray, np.ndarray]:
        """Time, p and p' at a distance."""
        power = np.arange(len(self.c))
        y = (s**power) @ self.c
        yp = (power[1:] * s ** power[:-1]) @ self.c[1:] / self.unit
        return self.t + s * self.unit, y, yp

    def _value(self, s: float) -> np.ndarray | None:
        """F at a distance, in natural units; None where it is undefined."""
        r = residual_at(self.state, *self._point(s))
        return None if r is None else self.row * r

    def _expanded(
        self, order: int, distance: float, first: np.ndarray | None
    ) -> np.ndarray | None:
        """Coefficients f_0, ..., f_order by differences, one per row; None where F is undefined."""
        if first is None:
            return None
        values = np.empty((POINTS + 1, self.n))
        values[0] = first
        for i in range(1, POINTS + 1):
            value = self._value(i * distance)
            if value is None:
                return None
            values[i] = value
        weights = np.linalg.inv(np.vander(np.arange(POINTS + 1.0), increasing=True))
        return (weights @ values)[: order + 1] / distance ** np.arange(order + 1)[:, None]

    def _choose_distance(self, order: int) -> bool:
        """Choose the distance at which coefficients change least; that change is their error."""
        if order == 0:
            self.distance, self.error = self._farthest(), self.noise.copy()
            return True
        self.choices += 1
        first, best, before, distance = self._value(0.0), np.inf, None, self._farthest()
        for _ in range(MAX_DISTANCES):
            here = self._expanded(order, distance, first)
            if here is not None and before is not None:
                round_off = self.noise / distance ** np.arange(order + 1)[:, None]
                change = np.abs(here - before) + round_off
                if change.max() < best:
                    best, self.distance, self.error = float(change.max()), distance, change.ravel()
            before, distance = here, distance / CLOSER
        return bool(np.isfinite(best))

    def _residual(self, order: int) -> np.ndarray | None:
        first = self._value(0.0)
        found = first if order == 0 else self._expanded(order, self.distance, first)
        return None if found is None else found.ravel()

    def _matrices(self, s: float) -> tuple[np.ndarray, np.ndarray] | None:
        """F_y and F_y' at a distance, in natural units."""
        t, y, yp = self._point(s)
        if self.state.jacobian_adapter is None:
            found = self._differenced(t, y, yp)
        else:
            status, *found = probe.jacobian_at(self.state, t, y, yp)
            self.state.jacobian_exists = False     # it may be that of another point
            raise_user_error(self.state)
            if status != 0:
                return None
        if found is None or not all(np.isfinite(part).all() for part in found):
            return None
        fy, fyp = found
        scale = self.row[:, None]
        return scale * fy * self.column, scale * fyp * self.column / self.unit

    def _differenced(
        self, t: float, y: np.ndarray, yp: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Central differences in natural units: those of the steps are too coarse here."""
        fy, fyp = np.zeros((2, self.n, self.n))
        for j in range(self.n):
            size = CUBE_ROOT_EPS * max(abs(y[j]), self.column[j])
            column = self._slope(t, y, yp, j, size, 0.0)
            if column is None:
                return None
            fy[:, j] = column
            if self.free[j]:
                continue
            size = CUBE_ROOT_EPS * max(abs(yp[j]), self.column[j] / abs(self.unit))
            column = self._slope(t, y, yp, j, 0.0, size)
            if column is None:
                return None
            fyp[:, j] = column
        return fy, fyp

    def _slope(
        self, t: float, y: np.ndarray, yp: np.ndarray, j: int, in_y: float, in_yp: float
    ) -> np.ndarray | None:
        """Difference quotient by an unknown or its derivative, to both sides if possible."""
        values = []
        for side in (1.0, -1.0, 0.0):
            moved, slopes = y.copy(), yp.copy()
            moved[j] += side * in_y
            slopes[j] += side * in_yp
            r = residual_at(self.state, t, moved, slopes)
            if r is not None:
                values.append((side, r))
            if len(values) == 2:
                (a, r_a), (b, r_b) = values
                return (r_a - r_b) / ((a - b) * (in_y + in_yp))
        return None

    def _linearised(self, order: int) -> np.ndarray | None:
        """Matrix of df_i by dc_j, in units of the columns."""
        n, apart = self.n, min(JACOBIANS_APART * self.distance, self._farthest())
        found = []
        for i in range(order + 1):
            matrices = self._matrices(i * apart)
            if matrices is None:
                return None
            found.append(matrices)
        weights = np.linalg.inv(np.vander(apart * np.arange(order + 1.0), increasing=True))
        A, E = (np.tensordot(weights, np.array(part), 1) for part in zip(*found, strict=True))
        J = np.zeros((order + 1, n, order + 2, n))
        for i in range(order + 1):
            for j in range(i + 2):
                if j <= i:
                    J[i, :, j] += A[i - j]
                J[i, :, j] += j * E[i - j + 1] if i - j + 1 <= order else 0.0
        return J.reshape((order + 1) * n, (order + 2) * n)

    # --- the iteration ------------------------------------------------------------------------

    def run(self, counts: list[int], movable: int) -> bool:
        """Make as many coefficients vanish as there are counts; tell whether that was possible.

        The counts are the numbers of constraints on y in the first coefficients. Only the first
        `movable` groups of y are moved. The iteration is repeated once, because the best distance
        for differences depends on the polynomial.
        """
        self.counts, self.movable, order = counts, movable, len(counts) - 1
        for _ in range(2):
            before = self.c[0].copy()
            if not self._choose_distance(order) or not self._iterate(order):
                return False
            if order == 0 or np.array_equal(self.c[0], before):
                break
        return True

    def _iterate(self, order: int) -> bool:
        """Iterate with one distance; values that satisfy the equations at once are not changed."""
        r = self._residual(order)
        if r is None or not self._prepare(order):
            return False
        change = self._step(r, order)
        if self.settled and not self.moved:
            return True
        for _ in range(MAX_ITERATIONS):
            size, excess = _size(change), self.excess
            found = self._take_damped(change, order)
            if found is None:
                return excess <= STUCK
            self.moved = True
            if order > 0 and self._farthest() < self.distance and self.choices < MAX_CHOICES:
                # y changes faster than expected
                return self._choose_distance(order) and self._iterate(order)
            if self.settled:
                return True
            change = found
            if np.all(self.column * np.abs(change[0]) <= self.nothing):
                return False               # unknowns of other groups would have to move
            if not _size(change) <= STILL_GOOD * size:
                r = self._residual(order)
                if r is None or not self._prepare(order):
                    return False
                change = self._step(r, order)
        return False

    def _prepare(self, order: int) -> bool:
        """Linearise and factor, for each number of differentiations: fewer are more accurate."""
        J = self._linearised(order)
        if J is None:
            return False
        self.J, self.levels = J, []
        terms = np.abs(self.c[:2] / self.column).ravel()
        self.noise = EPS * np.abs(J[: self.n, : 2 * self.n]) @ terms
        self.error[: self.n] = np.maximum(self.error[: self.n], self.noise)
        for k, count in enumerate(self.counts):
            part = J[: (k + 1) * self.n, : (k + 2) * self.n]
            rest = _MinimumNorm(part[:, self.n :], len(part) - count)
            self.levels.append(_Level(rest.left.T, self._shift(rest, part, len(self.groups))))
        self.rest = rest
        self.shift = self.levels[-1].needed
        if self.movable < len(self.groups):
            self.shift = self._shift(rest, J, self.movable)
        if self.directions is not None:
            self.shift = self._shift_along(rest, J, self.directions / self.column[:, None])
        return all(np.isfinite(level.needed).all() for level in self.levels)

    def _shift(self, rest: _MinimumNorm, J: np.ndarray, movable: int) -> np.ndarray:
        """Least changes of y that change each of its linearised constraints by one."""
        C = rest.left.T @ J[:, : self.n]
        return _least_change(
            C, np.eye(len(C)), self.groups[:movable], self.length / self.column,
            RANK * float(np.linalg.norm(C, 2)),
        )

    def _shift_along(
        self, rest: _MinimumNorm, J: np.ndarray, directions: np.ndarray
    ) -> np.ndarray:
        """As `_shift`, for changes that are combinations of some directions."""
        C = rest.left.T @ J[:, : self.n]
        return directions @ np.linalg.pinv(C @ directions, rcond=RANK)

    def _step(self, r: np.ndarray, order: int) -> np.ndarray:
        """Change of all coefficients, in units of the columns; `settled` tells if y may stay."""
        s = self.state
        tolerance = s.rtols * np.abs(self.c[0]) + s.atols
        needed, noise = np.zeros((2, order + 1, self.n))
        for k, level in enumerate(self.levels):
            rows = level.left.shape[1]
            needed[k] = self.column * np.abs(level.needed @ (level.left @ r[:rows]))
            noise[k] = ROUND_OFF * self.column * level.noise(self.error[:rows])
        own = noise[np.minimum(self.enters, order), np.arange(self.n)]
        self.nothing = np.maximum(NEGLIGIBLE * tolerance, own)
        self.settled = bool(np.all(needed <= np.maximum(self.nothing, noise)))
        self.round_off = own
        self.excess = float(np.max(needed / np.maximum(np.maximum(own, noise), TINY)))
        dy = self.shift @ (-self.rest.left.T @ r)
        dz = self.rest.solve(-r - self.J[:, : self.n] @ dy)
        return np.concatenate([dy, dz]).reshape(order + 2, self.n)

    def _take_damped(self, change: np.ndarray, order: int) -> np.ndarray | None:
        """Take the longest of 1, 1/2, 1/4, ... of a change that makes the next one smaller.

        The next change, with the same matrix, tells how far y is from its constraints. The values
        of the equations do not, since the highest coefficients adapt to any y.
        """
        kept, size, length = self.c.copy(), _size(change), 1.0
        for _ in range(MAX_HALVINGS):
            self.c = kept.copy()
            self.c[: order + 2] += length * change * self.column
            r = self._residual(order)
            if r is not None:
                following = self._step(r, order)
                if self.settled or _size(following) <= (1.0 - 0.25 * length) * size:
                    return following
            length /= 2.0
        self.c = kept
        return None

    def polished(self, y: np.ndarray) -> Settled:
        """Return the values found, moved onto the constraints up to round-off.

        An error within the tolerance would be too large: the first step divides it by its length
        for velocities, and once more for multipliers.
        """
        order = len(self.counts) - 1
        if self.directions is None:
            self.shift = self.levels[-1].needed
        for _ in range(MAX_POLISHING):
            kept, excess = self.c.copy(), self.excess
            r = self._residual(order)
            if excess <= 1.0 or r is None:
                break
            self.c[: order + 2] += self._step(r, order) * self.column
            r = self._residual(order)
            if r is not None:
                self._step(r, order)
            if r is None or not self.excess < excess:
                self.c, self.excess = kept, 0.0
        found = self.c[0].copy()
        change = np.abs(found - y)
        return Settled(
            np.where(change > self.round_off, found, y), self.c[1] / self.unit,
            change > self.nothing,
        )


def _size(change: np.ndarray) -> float:
    """Size of a change of y and y'."""
    return float(np.linalg.norm(change[:2]))


@dataclass(frozen=True, eq=False)
class _Level:
    """Linearised constraints on y after some number of differentiations."""

    left: np.ndarray             # combinations of the equations
    needed: np.ndarray           # changes of y that satisfy them, in units of the columns

    def noise(self, error: np.ndarray) -> np.ndarray:
        """Bound the changes of y that errors of the equations cause."""
        return np.abs(self.needed) @ (np.abs(self.left) @ error)


class _MinimumNorm:
    """Shortest solutions of a system with a matrix of known rank, and its left null space."""

    def __init__(self, matrix: np.ndarray, rank: int) -> None:
        from scipy.linalg import qr

        Q, R, self.order = qr(matrix, pivoting=True)
        self.range, self.left = Q[:, :rank], Q[:, rank:]
        self.right, self.triangle = np.linalg.qr(R[:rank].T)

    def solve(self, b: np.ndarray) -> np.ndarray:
        from scipy.linalg import solve_triangular

        x = np.empty(len(self.order))
        inner = solve_triangular(self.triangle, self.range.T @ b, trans="T", check_finite=False)
        x[self.order] = self.right @ inner
        return x


def _least_change(
    C: np.ndarray, b: np.ndarray, groups: list[np.ndarray], length: np.ndarray, zero: float
) -> np.ndarray:
    """Solve C x = b by the first group of unknowns as far as possible, by the others for the rest.

    In each group x is the shortest in units of the lengths. Singular values up to `zero` are zero.
    """
    x = np.zeros((C.shape[1], b.shape[1]))
    group = groups[0]
    rank = int(np.sum(np.linalg.svd(C[:, group], compute_uv=False) > zero))
    u, s, vt = np.linalg.svd(C[:, group] * length[group])
    if rank < len(C) and len(groups) > 1:
        K = u[:, rank:]
        x += _least_change(K.T @ C, K.T @ b, groups[1:], length, zero)
        b = b - C @ x
    x[group] = length[group, None] * (vt[:rank].T @ ((u[:, :rank].T @ b) / s[:rank, None]))
    return x
