"""StartMap: how consistent values depend on the values given.

With w the derivative of the values given and dτ that of the time, both with respect to all
parameters at once, the derivative of the values found, at a fixed time, is s = T w + R + q dτ, math
(36). Slopes and algebraic unknowns follow from the linearised equations, math (37).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tether._core import replay
from tether.base.reason import Kind
from tether.plan.model import ReducedModel
from tether.sensitivity.differences import NotSmooth, central, gradient_of, one_sided
from tether.sensitivity.parameters import Parameters
from tether.sensitivity.slopes import Linearised
from tether.sensitivity.tape import Begin
from tether.structure.hidden import Reduced
from tether.structure.jump import Jumping, highest_order, reached_space
from tether.structure.least_change import jet_scale
from tether.structure.reduced_start import Search, reduced_start
from tether.structure.scaling import Units

if TYPE_CHECKING:
    from tether.sensitivity.large import LargeStart

__all__ = ["GivenStart", "Motion", "StartMap", "is_undecided", "motion_at", "start_map"]

# Smaller relative residuals and changes count as zero.
NEGLIGIBLE = 1e-8
# Smaller relative singular values count as zero.
RANK_TOLERANCE = 1e-10
# Relative distance to the nearby points at which coefficients of the equations are compared.
NEARBY = 1e-4
# Where something switches both before and after a time, differences in time are shorter by this
# factor.
CLOSER = 1e-3
# Relative distance in time after a break at which a start is differentiated: more than changes of
# arguments move the break.
AFTER_BREAK = 2e-4


class Point(NamedTuple):
    """Derivatives of equations and constraints at one point."""

    fy: np.ndarray
    fyp: np.ndarray
    fp: np.ndarray                             # one row per parameter, as in gp
    gy: np.ndarray
    gp: np.ndarray


@dataclass(frozen=True, eq=False)
class StartMap:
    """Derivatives of consistent values.

    Attributes
    ----------
    by_given : ndarray, shape (n, n_user)
        Of the values with respect to those given: T.
    by_parameters : ndarray, shape (n, parameters)
        Of the values with respect to the parameters: R.
    by_time : ndarray, shape (n,)
        Of the values with respect to the time: q.
    slopes_by_values : ndarray, shape (n, n)
        Of the slopes with respect to the values.
    slopes_by_parameters : ndarray, shape (n, parameters)
        Of the slopes with respect to the parameters.
    """

    by_given: np.ndarray
    by_parameters: np.ndarray
    by_time: np.ndarray
    slopes_by_values: np.ndarray
    slopes_by_parameters: np.ndarray

    def values(self, w: np.ndarray, shift: np.ndarray) -> np.ndarray:
        """Return the tangents of the values, one row per parameter, from those of the values given.

        `shift` is the derivative of the time.
        """
        return w @ self.by_given.T + self.by_parameters.T + shift[:, None] * self.by_time

    def slopes(self, s: np.ndarray) -> np.ndarray:
        """Return the tangents of the slopes, from those of the values."""
        return s @ self.slopes_by_values.T + self.slopes_by_parameters.T

    def take_back(
        self, of_values: np.ndarray, gradient: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return adjoints of the values given and of the time, from those of the values found.

        The parameters' part is added to `gradient`.
        """
        gradient += of_values @ self.by_parameters
        return of_values @ self.by_given, of_values @ self.by_time

    def take_slopes_back(self, of_slopes: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """Return adjoints of the values found, from those of their slopes."""
        gradient += of_slopes @ self.slopes_by_parameters
        return of_slopes @ self.slopes_by_values

    def along(self, direction: np.ndarray) -> StartMap:
        """Return the derivatives along one combination of the parameters."""
        return replace(
            self, by_parameters=(self.by_parameters @ direction)[:, None],
            slopes_by_parameters=(self.slopes_by_parameters @ direction)[:, None],
        )


@dataclass(frozen=True, eq=False)
class GivenStart:
    """A start that was taken as it is: values and slopes depend only on those given."""

    size: int
    slope: np.ndarray                          # of the user's unknowns

    def values(self, w: np.ndarray, shift: np.ndarray) -> np.ndarray:
        """Return the tangents of the values, from those of the values given."""
        found = np.zeros((len(w), self.size))
        found[:, : len(self.slope)] = w - np.outer(shift, self.slope)
        return found

    def slopes(self, s: np.ndarray) -> np.ndarray:
        """Return the tangents of the slopes: zero."""
        return np.zeros_like(s)

    def take_back(
        self, of_values: np.ndarray, gradient: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return adjoints of the values given and of the time, from those of the values found."""
        of_given = of_values[:, : len(self.slope)]
        return of_given, -of_given @ self.slope

    def take_slopes_back(self, of_slopes: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """Return adjoints of the values found, from those of their slopes: zero."""
        return np.zeros_like(of_slopes)

    def along(self, direction: np.ndarray) -> GivenStart:
        """Return the derivatives along one combination of the parameters."""
        return self


def start_map(
    begin: Begin, linear: Linearised, parameters: Parameters, depends: bool = True
) -> StartMap | LargeStart | GivenStart:
    """Differentiate a start; `depends` tells whether the values given depend on parameters.

    Invariants are not constraints here: they keep the values that they have at the values found.
    """
    if begin.start.reason.kind is Kind.ASSUMED and begin.happening is None:
        return GivenStart(linear.n, begin.start.yp[: len(begin.given)])
    t, y, yp = np.array([begin.t]), begin.start.y[None], begin.start.yp[None]
    found = linear.at(t, np.ascontiguousarray(y), np.ascontiguousarray(yp))
    if linear.is_large and not linear.m:
        from tether.sensitivity.large import LargeStart  # late, to save time

        return LargeStart(found, begin.start.yp, len(begin.given))
    slopes = Point(*found.matrices())
    n, n_user = linear.n, len(begin.given)
    T, R = np.zeros((n, n_user)), np.zeros((n, len(parameters)))
    if depends:
        T[np.arange(n_user), np.arange(n_user)] = 1.0
    reduced = begin.model.reduced
    by_time = None
    if reduced is not None:
        assert isinstance(begin.model, ReducedModel)
        if begin.start.jump is not None:
            T, R, by_time = _of_jump(
                begin, reduced, begin.model, parameters, slopes, (T, R), depends
            )
        else:
            T, R = _onto_found(begin, reduced, begin.model, slopes, T, R)
    T, R = _onto_given(linear, slopes, begin.start.y, T, R)
    first = _Completion(slopes, None if reduced is None else np.array(reduced.stages) == 0)
    if first.is_axes or reduced is not None or not _has_moved(begin):
        R = first.values(R, -slopes.fp.T)
        T = first.values(T, np.zeros_like(T)) if depends else T
    else:
        T, R = _along_combinations(begin, linear, parameters, slopes, first, T)
    if by_time is None:
        by_time = -T @ begin.start.yp[:n_user]
    else:
        by_time = first.values(by_time[:, None], np.zeros((n, 1)))[:, 0]
    return StartMap(T, R, by_time, *first.slope_maps(slopes.fp))


class _Completion:
    """The algebraic values and the slopes that the equations determine: B of math (15).

    Values are found along the columns of `null`, slopes along those of `rest`: these are single
    unknowns or, where that is not possible, combinations of them.
    """

    def __init__(self, slopes: Point, algebraic: np.ndarray | None) -> None:
        fy, fyp = slopes.fy, slopes.fyp
        self.fy = fy
        found = (fyp == 0.0).all(axis=0) if algebraic is None else algebraic
        self.determined = np.asarray(found)
        inverse = _inverse(np.where(self.determined, fy, fyp))
        self.is_axes = inverse is not None
        if inverse is None:
            size = np.abs(fyp).max(axis=1, initial=0.0)
            size[size == 0.0] = 1.0
            _, sizes, vt = np.linalg.svd(fyp / size[:, None])
            self.rank = int(np.sum(sizes > RANK_TOLERANCE * max(sizes[0], 1e-300)))
            self.null, self.rest = vt[self.rank :].T, vt[: self.rank].T
            matrix = np.hstack([fyp @ self.rest, fy @ self.null])
            inverse = _inverse(matrix)
            if inverse is None:
                inverse = np.linalg.pinv(matrix)
        self.inverse = inverse

    def values(self, values: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Complete tangents of the values, where F_y s + F_y' s' = right.

        Tangents given for single unknowns that the equations determine are ignored.
        """
        if not self.is_axes:
            found = self.inverse[self.rank :] @ (right - self.fy @ values)
            return values + self.null @ found
        kept = np.where(self.determined[:, None], 0.0, values)
        found = self.inverse @ (right - self.fy @ kept)
        return np.where(self.determined[:, None], found, kept)

    def slopes(self, values: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Tangents of the slopes, from those of the values."""
        found = self.inverse @ (right - self.fy @ values)
        if not self.is_axes:
            return self.rest @ found[: self.rank]
        return np.where(self.determined[:, None], 0.0, found)

    def slope_maps(self, fp: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """How tangents of slopes depend on those of values, and on the parameters, math (37)."""
        by_values, by_parameters = -(self.inverse @ self.fy), -(self.inverse @ fp.T)
        if self.is_axes:
            by_values[self.determined] = by_parameters[self.determined] = 0.0
            return by_values, by_parameters
        return self.rest @ by_values[: self.rank], self.rest @ by_parameters[: self.rank]


def _has_moved(begin: Begin) -> bool:
    """Whether a start changed the values given by more than round-off."""
    change = np.abs(begin.start.y[: len(begin.given)] - begin.given)
    return bool(np.any(change > NEGLIGIBLE * np.max(np.abs(begin.given), initial=0.0)))


def _along_combinations(
    begin: Begin, linear: Linearised, parameters: Parameters, slopes: Point, first: _Completion,
    T: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Differentiate a start that moved values along directions in which F_y' is zero.

    F_y' (y+ - y-) = 0 holds with F_y' at y+, so the change of F_y' itself counts as well.
    """
    t, y, yp, n_user = begin.t, begin.start.y, begin.start.yp, len(begin.given)
    change = y.copy()
    change[:n_user] -= begin.given

    def moved(y: np.ndarray, values: np.ndarray) -> np.ndarray:
        return linear.leading(values, t, y, yp) @ change

    size = np.abs(y) + 1e-3 * max(float(np.abs(y).max(initial=0.0)), 1e-3)
    terms = np.abs(slopes.fyp) @ np.abs(change)        # these cancel, since F_y' (y+ - y-) = 0
    by_y = gradient_of(lambda x: moved(x, begin.values), y, size, terms)
    by_p = np.zeros((len(y), len(parameters)))
    for p in parameters.of_inputs:
        number = parameters.inputs[p]

        def along(x: np.ndarray, number: int = number) -> np.ndarray:
            values = begin.values.copy()
            values[number] = x[0]
            return moved(y, values)

        at = begin.values[[number]]
        by_p[:, p] = gradient_of(along, at, np.where(at == 0.0, 1.0, np.abs(at)), terms)[:, 0]
    rank = first.rank
    range_of = np.linalg.svd(slopes.fyp)[0][:, :rank]
    matrix = np.block([
        [slopes.fy, slopes.fyp @ first.rest],
        [range_of.T @ (slopes.fyp + by_y), np.zeros((rank, rank))],
    ])
    inverse = _inverse(matrix)
    if inverse is None:
        inverse = np.linalg.pinv(matrix)
    n = len(y)
    right_T = np.vstack([np.zeros((n, n_user)), range_of.T @ (slopes.fyp @ T)])
    right_R = np.vstack([-slopes.fp.T, -range_of.T @ by_p])
    return inverse[:n] @ right_T, inverse[:n] @ right_R


def _inverse(matrix: np.ndarray) -> np.ndarray | None:
    """Invert a matrix after scaling its rows and columns; None if it is singular."""
    matrix = np.ascontiguousarray(matrix)
    found = np.empty_like(matrix)
    return found if replay.invert(matrix, found) < 1.0 / RANK_TOLERANCE else None


@dataclass(frozen=True, eq=False)
class Motion:
    """Derivatives of a solution at a point, from its equations.

    Attributes
    ----------
    yp, ypp : ndarray
        First and second derivatives. For an algebraic unknown the first follows from those of the
        others; the second is not known, and zero.
    tangents : StartMap or LargeStart
        How tangents of slopes follow from those of values.
    """

    yp: np.ndarray
    ypp: np.ndarray
    tangents: StartMap | LargeStart


def motion_at(
    linear: Linearised, values: np.ndarray, t: float, y: np.ndarray, yp: np.ndarray
) -> Motion:
    """Find the derivatives of a solution at a point where its slopes are known approximately."""
    found = linear.at(np.array([t]), y[None].copy(), yp[None].copy())
    r = linear.residual(values, t, y, yp)
    span, terms = max(abs(t), 1e-3), found.terms(y, yp)
    f_t = _before(lambda dt: linear.residual(values, t + dt, y, yp), span, linear, terms)
    if not (np.isfinite(r).all() and np.isfinite(f_t).all()):
        r, f_t = np.zeros_like(r), np.zeros_like(r)
    if linear.is_large and not linear.m:
        from tether.sensitivity.large import LargeStart  # late, to save time

        large = LargeStart(found, yp, len(yp))
        return Motion(*large.motion(yp, r, f_t), large)
    reduced = linear.model.reduced
    algebraic = None if reduced is None else np.array(reduced.stages) == 0
    point, n = Point(*found.matrices()), len(y)
    first = _Completion(point, algebraic)
    slopes = yp + first.slopes(np.zeros((n, 1)), -r[:, None])[:, 0]
    slopes = first.values(slopes[:, None], -f_t[:, None])[:, 0]
    curvature = first.slopes(slopes[:, None], -f_t[:, None])[:, 0]
    nothing = np.zeros((n, 0))
    tangents = StartMap(nothing, nothing, np.zeros(n), *first.slope_maps(point.fp))
    return Motion(slopes, curvature, tangents)


def is_undecided(begin: Begin, linear: Linearised) -> bool:
    """Whether conditions that were left free switch exactly at a start, so that slopes jump."""
    frozen = begin.model.frozen
    if frozen is None:
        return False
    t, y, yp, n = begin.t, begin.start.y, begin.start.yp, frozen.traced.n
    first = len(begin.values) - len(frozen.surfaces)
    heights = frozen.heights.new(begin.values).values(t, y[:n], yp[:n])
    pairs = frozen.sizes.new(begin.values).values(t, y[:n], yp[:n]).reshape(-1, 2)
    at_zero = np.abs(heights) <= NEGLIGIBLE * np.abs(pairs).sum(axis=1)
    free = (begin.values[first:] == 0.0) & at_zero
    if not free.any():
        return False
    sides = []
    for side in (-np.inf, np.inf):
        values = begin.values.copy()
        values[first:][free] = side
        sides.append(linear.residual(values, t, y, yp))
    terms = linear.at(np.array([t]), y[None].copy(), yp[None].copy()).terms(y, yp)
    return bool(np.any(np.abs(sides[1] - sides[0]) > NEGLIGIBLE * terms))


def _before(
    fun: Callable[[float], np.ndarray], span: float, linear: Linearised, terms: np.ndarray
) -> np.ndarray:
    """Differentiate with respect to time, from one side if something switches there.

    The side before the time is preferred; shortly after a switch it is the side after it.
    """
    direction = linear.state.direction
    for size in (span, CLOSER * span):
        with suppress(NotSmooth):
            return central(fun, size, terms)
        for way in (-direction, direction):
            with suppress(NotSmooth):
                return one_sided(fun, size, way, terms)
    return np.zeros(linear.n)


# --- constraints of the equations -----------------------------------------------------------------


def _onto_found(
    begin: Begin, reduced: Reduced, model: ReducedModel, slopes: Point, T: np.ndarray,
    R: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Differentiate the way of a start onto the constraints of the equations.

    The steps are those of `reduced_start`.
    """
    full = reduced.full
    if full is not reduced:
        raise ValueError(
            "sensitivity: form=2 leaves constraints that are not differentiated often enough; pass "
            "form='auto'"
        )
    n_user, m = reduced.n_user, len(reduced.levels)
    g, gp = slopes.gy[:m], slopes.gp[:, :m].T
    moved = np.hstack([T, R])
    whole = np.hstack([np.zeros((m, T.shape[1])), gp])
    search = Search(reduced, begin.t, begin.values, model.units)
    scale = jet_scale(begin.start.y, search.units, reduced.unknowns[n_user:])
    before = moved.copy()
    if reduced.enters:
        moved = _nearest(g, whole, moved, scale)
    else:
        for stage in sorted(set(search.level_stages.tolist())):
            rows = np.flatnonzero(search.level_stages == stage)
            for free in search.movable_sets(search.stages == stage):
                found = _nearest(g[rows], whole[rows], moved, np.where(free, scale, 0.0))
                if _hold(g[rows], whole[rows], found):
                    break
            moved = found
    evolving = np.ones(n_user, bool)
    evolving[list(reduced.without_slopes)] = False
    jumped = np.abs(moved - before)[:n_user][evolving]
    if jumped.size and jumped.max() > NEGLIGIBLE * max(np.abs(moved).max(), 1e-300):
        lawful = _by_law(begin, search, g, whole, before, moved, scale)
        moved = moved if lawful is None else lawful
    return moved[:, : T.shape[1]], moved[:, T.shape[1] :]


def _nearest(
    g: np.ndarray, right: np.ndarray, moved: np.ndarray, scale: np.ndarray
) -> np.ndarray:
    """Satisfy g v + right = 0 by the least change of v, column by column."""
    left = g @ moved + right
    a = g * scale
    length = np.abs(a).max(axis=1, initial=0.0)
    length[length == 0.0] = 1.0
    step = np.linalg.lstsq(a / length[:, None], left / length[:, None], rcond=RANK_TOLERANCE)[0]
    return moved - scale[:, None] * step


def _hold(g: np.ndarray, right: np.ndarray, moved: np.ndarray) -> bool:
    left = np.abs(g @ moved + right)
    return bool(np.all(left <= NEGLIGIBLE * (np.abs(g) @ np.abs(moved) + np.abs(right) + 1e-300)))


def _by_law(
    begin: Begin, search: Search, g: np.ndarray, right: np.ndarray, before: np.ndarray,
    nearby: np.ndarray, scale: np.ndarray,
) -> np.ndarray | None:
    """Let tangents jump by the law of the equations, as `find_jump` does with values."""
    reduced, n = search.reduced, search.reduced.n_user
    matrices = search.law(begin.start.yp[:n])
    y, unit = begin.start.y[:n], search.units.y
    E, A = matrices(y)
    movable = np.ones(n, bool)

    def along(order: int, start: np.ndarray, movable: np.ndarray) -> np.ndarray | None:
        directions, _ = reached_space(E, A, unit, order, movable)
        whole = np.zeros((len(scale), directions.shape[1] + len(scale) - n))
        whole[:n, : directions.shape[1]] = directions
        whole[n:, directions.shape[1] :] = np.diag(scale[n:])
        if not whole.shape[1]:
            return None
        shares = _nearest(
            g @ whole, right + g @ start, np.zeros((whole.shape[1], start.shape[1])),
            np.ones(whole.shape[1]),
        )
        found = start + whole @ shares
        return found if _hold(g, right, found) else None

    start = nearby.copy()
    start[:n] = before[:n]
    found = along(0, start, movable)
    if found is not None:
        return found
    beside = y + NEARBY * (np.abs(y) + unit)
    if all(np.allclose(a, b, 1e-9, 0.0) for a, b in zip(matrices(beside), (E, A), strict=True)):
        jumping = Jumping(matrices, lambda *_: None, unit, movable, ~movable)
        for order in range(1, highest_order(jumping, y) + 1):
            found = along(order, start, movable)
            if found is not None:
                return found
    stages = np.array(search.stages[:n])
    early = stages < -1
    if reduced.enters:
        early = np.array(reduced.enters) < max(reduced.enters) - 1
    if not early.any():
        return None
    start[:n][early] = nearby[:n][early]
    return along(0, start, ~early)


def _of_jump(
    begin: Begin, reduced: Reduced, model: ReducedModel, parameters: Parameters, slopes: Point,
    given: tuple[np.ndarray, np.ndarray], depends: bool,
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Differentiate a start at which something jumps.

    If the law of the jump does not depend on the values, tangents obey the same law. Derivatives
    with respect to parameters on which the law depends come from differences; so do all of them if
    the law depends on the values.
    """
    t, n = _after_break(begin, 2.0), reduced.n_user
    after, before = begin.start.y.copy(), begin.start.y.copy()
    before[:n] = begin.given

    def law(t: float, values: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
        search = Search(reduced, t, values, model.units)
        return [*search.law(begin.start.yp[:n])(y[:n]), search.constraint_jacobian(y)]

    def is_same(t: float, values: np.ndarray, y: np.ndarray) -> bool:
        pairs = zip(here, law(t, values, y), strict=True)
        return all(np.allclose(one, other, 1e-9, 0.0) for one, other in pairs)

    here = law(t, begin.values, after)
    scale = Search(reduced, t, begin.values, model.units).scale(after)
    beside = after + NEARBY * (np.abs(after) + scale)
    later = t + NEARBY * max(abs(t), 1e-3)
    constant = is_same(t, begin.values, before) and is_same(t, begin.values, beside)
    if not (constant and is_same(later, begin.values, after)):
        return _by_differences(
            begin, reduced, model, parameters, parameters.of_inputs.tolist(), depends
        )
    T, R = _onto_found(begin, reduced, model, slopes, *given)
    numbers: list[int] = []
    for p in parameters.of_inputs:
        values = begin.values.copy()
        values[parameters.inputs[p]] += NEARBY * (abs(values[parameters.inputs[p]]) or 1.0)
        if not is_same(t, values, after):
            numbers.append(int(p))
    if numbers:
        _, own, _ = _by_differences(begin, reduced, model, parameters, numbers, False)
        R[:, numbers] = own[:, numbers]
    return T, R, None


def _after_break(begin: Begin, steps: float) -> float:
    """Return a time some steps after a break, where the answers of conditions on time are clear."""
    if begin.happening is None or not begin.happening.is_break:
        return begin.t
    step = AFTER_BREAK * max(abs(begin.t), 1e-3)
    return begin.t + steps * (step if begin.h >= 0.0 else -step)


def _by_differences(
    begin: Begin, reduced: Reduced, model: ReducedModel, parameters: Parameters,
    numbers: Sequence[int], depends: bool,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Differentiate a start with respect to some parameters and, if wanted, the values given.

    Conditions on time have their new answers only after a break, so derivatives at three times
    after it are extrapolated to the break.
    """
    why = begin.happening
    if why is None or not why.is_break:
        return _differences_at(begin.t, begin, reduced, model, parameters, numbers, depends)
    parts = [
        _differences_at(_after_break(begin, k), begin, reduced, model, parameters, numbers, depends)
        for k in (1.0, 2.0, 3.0)
    ]
    T, R, by_time = (3.0 * a - 3.0 * b + c for a, b, c in zip(*parts, strict=True))
    return T, R, by_time


def _differences_at(
    t: float, begin: Begin, reduced: Reduced, model: ReducedModel, parameters: Parameters,
    numbers: Sequence[int], depends: bool,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Differentiate a start as if it were made at the time t."""
    units, why, y, values = model.units, begin.happening, begin.given, begin.values
    assert isinstance(units, Units)

    def found(t: float, given: np.ndarray, values: np.ndarray) -> np.ndarray:
        return reduced_start(
            reduced, t, given, None if why is None else why.yp, values, units
        ).y

    T, R = np.zeros((reduced.n, len(y))), np.zeros((reduced.n, len(parameters)))
    if depends:
        T = gradient_of(lambda x: found(t, x, values), y, np.abs(y) + units.y)
    for p in numbers:
        number = parameters.inputs[p]

        def along(x: np.ndarray, number: int = number) -> np.ndarray:
            changed = values.copy()
            changed[number] = x[0]
            return found(t, y, changed)

        at = values[[number]]
        R[:, p] = gradient_of(along, at, np.where(at == 0.0, 1.0, np.abs(at)))[:, 0]
    if why is None or not depends:             # the derivative by the time is not needed
        return T, R, -begin.start.yp
    size = np.array([max(abs(t), 1e-3)])
    by_time = gradient_of(lambda x: found(x[0], y, values), np.array([t]), size)[:, 0]
    return T, R, by_time - begin.start.yp


def _onto_given(
    linear: Linearised, slopes: Point, y: np.ndarray, T: np.ndarray, R: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Project onto the constraints that the user has given, but not onto invariants."""
    if linear.m == linear.found:
        return T, R
    rows = slice(0, linear.m - linear.n_invariants)
    gy, gp = slopes.gy[rows], slopes.gp[:, rows].T
    if not len(gy):
        return T, R
    scale = linear.scale(y)
    moved = _nearest(gy, np.hstack([np.zeros((len(gy), T.shape[1])), gp]), np.hstack([T, R]), scale)
    return moved[:, : T.shape[1]], moved[:, T.shape[1] :]
