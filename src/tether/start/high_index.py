"""Starting values of a system of index 2 or 3 that is integrated as written.

The kinds of the unknowns follow from the linearised system. y is moved onto all its constraints,
given and hidden, as `by_differences` finds them. If that fails y is kept, and the equations
themselves and the first hidden constraint are checked. With U the left null space of F_y' and N its
null space,

    U^T F = 0  along the solution,  so  U^T (F_t + F_y y') = 0  for some  y' + N c,  math (26).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tether._core import probe
from tether._core.adapters import raise_user_error
from tether._core.sparse import Sparse
from tether._core.state import State
from tether.base.reason import Kind, Reason, Row
from tether.base.status import Status
from tether.start.by_differences import Keep, settle
from tether.start.consistent import largest, residual_at, time_scale, worst_equation
from tether.structure.jump import Jump
from tether.structure.least_change import shortest
from tether.structure.pencil import Pencil, local_pencil, natural_scales
from tether.structure.scaling import Units, nonzero, ranges
from tether.structure.start import Start

__all__ = ["curvature", "find_kinds", "refuse_pencil", "start_above_index_1"]

HIGHEST_INDEX = 3
ROOT_EPS = 2.0**-26
EPS = 2.0**-52
# Singular values of F_y' below this share of the largest are zero.
RANK = 1e-7
# Shifts to a general point, relative to the unknowns; the first that works is taken.
SHIFTS = (0.05, 0.005)
# Smallest value, in its unit, that tells the size of an unknown: a smaller one may stand for zero.
SMALLEST_TELLING = 1e-3
# Over a shift, the nonlinear part of an equation may be this share of its terms.
LARGEST_BEND = 0.3
MAX_DECADES = 40
# An equation holds if its value is below this many times the round-off of its terms.
ROUNDED = 8.0
# A hidden constraint is violated if its value is above this share of its terms.
VIOLATED = 1e-3


@dataclass(frozen=True, eq=False)
class _Linearised:
    """F, F_y, F_y' at a point and the null spaces of F_y'."""

    r: np.ndarray
    fy: np.ndarray
    fyp: np.ndarray
    unit: np.ndarray            # of the unknowns
    reached: np.ndarray         # combinations of equations that y' can change, rows
    left: np.ndarray            # U, columns
    right: np.ndarray           # N, columns

    @classmethod
    def at(cls, state: State, t: float, y: np.ndarray, yp: np.ndarray) -> _Linearised | None:
        r = residual_at(state, t, y, yp)
        if r is None:
            return None
        status, fy, fyp = probe.jacobian_at(state, t, y, yp, r)
        raise_user_error(state)
        if status != 0 or not (np.isfinite(fy).all() and np.isfinite(fyp).all()):
            return None
        # the ranks must not depend on the units of equations and unknowns
        unit = _units(state, t, y).y
        found = ranges(fyp, unit, RANK)
        return cls(r, fy, fyp, unit, found.reached.T, found.left, found.right)

    def slopes(self, value: np.ndarray) -> np.ndarray:
        """Least change of y' that changes the equations by `value`, as far as y' can."""
        return shortest(self.reached @ self.fyp, self.reached @ value, self.unit)

    def terms(self, y: np.ndarray, yp: np.ndarray) -> np.ndarray:
        """Absolute values of the equations' terms, added up."""
        return np.abs(self.fy) @ np.abs(y) + np.abs(self.fyp) @ np.abs(yp)


Settled = tuple[np.ndarray, np.ndarray, _Linearised, dict[int, float], Jump | None, bool]


def _units(state: State, t: float, y: np.ndarray) -> Units:
    return Units.of(state.rtols, state.atols, y, abs(state.t_end - t))


def find_kinds(state: State, t: float, y: np.ndarray, yp: np.ndarray) -> Pencil | None:
    """Local index and kinds at a general point near (t, y, y'); None where F is not finite.

    At the point itself entries may vanish that do not vanish later: a pendulum that starts
    level looks like a prescribed horizontal motion. The time is shifted too.
    """
    rng = np.random.default_rng(0)
    here = _Linearised.at(state, t, y, yp)
    if here is None:
        return None
    size = _sizes(state, t, y, yp, here)
    for shift in SHIFTS:
        moved = y + shift * size * rng.choice([-1.0, 1.0], len(y)) * rng.uniform(0.5, 1.0, len(y))
        later = t + state.direction * 10.0 * shift * time_scale(state, t)
        with np.errstate(all="ignore"):
            beside = _Linearised.at(state, later, moved, yp)
        if beside is not None:
            state.jacobian_exists = False          # it is that of another point
            return local_pencil(beside.fyp, beside.fy, scale=size)
    return local_pencil(here.fyp, here.fy, scale=size)


def _sizes(
    state: State, t: float, y: np.ndarray, yp: np.ndarray, here: _Linearised
) -> np.ndarray:
    """Sizes of the unknowns: those of their values.

    A small value does not tell the size of its unknown. Then the coefficients of the equations do,
    by the changes of this and of other unknowns that weigh the same. A size over which an equation
    is too nonlinear is made smaller.
    """
    units = _units(state, t, y)
    telling = np.abs(y) > SMALLEST_TELLING * units.y
    weight = units.y * natural_scales(here.fyp * units.y, here.fy * units.y).columns
    usual = np.median(np.abs(y[telling]) / weight[telling]) if telling.any() else 0.0
    size = np.where(telling, np.abs(y), usual * weight if usual else units.y)
    terms = here.terms(y, yp)
    felt = terms > 0.0
    for j in np.flatnonzero(~telling):
        moved = y.copy()
        for _ in range(MAX_DECADES):
            moved[j] = y[j] + SHIFTS[0] * size[j]
            with np.errstate(all="ignore"):
                r = residual_at(state, t, moved, yp)
            if r is not None:
                bend = np.abs(r - here.r - here.fy[:, j] * (moved[j] - y[j]))
                if np.all(bend[felt] <= LARGEST_BEND * terms[felt]):
                    break
            size[j] /= 10.0
    return np.maximum(size, np.abs(y))


def start_above_index_1(
    state: State, t: float, y: np.ndarray, yp: np.ndarray | None, trust_kinds: bool,
    keep: Keep | None = None,
) -> Start:
    """Make values consistent and complete y'; refuse what cannot be integrated as written.

    With `trust_kinds` the user has given the kinds of the unknowns, and the index is not checked;
    `keep` has unknowns that must not be moved.
    """
    given = np.zeros_like(y) if yp is None else yp
    if not trust_kinds and isinstance(state.matrix, Sparse):
        from tether.start.singular import singular_start  # late, to save time

        singular = singular_start(state, t, y, given)
        if singular is not None:
            return singular
    point = _Linearised.at(state, t, y, given)
    if point is None:
        large = residual_at(state, t, y, given) is not None and state.n > probe.MOST_FULL
        if large and isinstance(state.matrix, Sparse) and not trust_kinds:
            from tether.start.singular import start_of_high_index  # late, to save time

            return start_of_high_index(state, t, y, given)
        kind = Kind.TOO_MANY_UNKNOWNS if large else Kind.NOT_FINITE
        return Start(y, given, False, Reason(kind))
    before = largest(point.r)
    pencil = find_kinds(state, t, y, given)
    refusal = None if pencil is None or trust_kinds else refuse_pencil(pencil)
    if refusal is not None:
        assert pencil is not None
        status = Status.SINGULAR_SYSTEM if pencil.singular else Status.INDEX_TOO_HIGH
        return Start(
            y, given, False, refusal, residual=(before, before), pencil=pencil, status=status
        )
    holds = _negligible(state, point, y, given, point.r)
    moved: dict[int, float] = {}
    jump, lawful = None, True
    found, r = _complete(state, t, y, given, point)
    settled = _settle(state, t, y, found, point, pencil, keep)
    if settled is None:
        violated = None
        if not _negligible(state, point, y, found, r):
            violated = worst_equation(r, point.terms(y, found) + _allowed(state, point, found))
        else:
            violated = _hidden(state, t, y, found, point)
        if violated is not None:
            return Start(
                y, found, False, violated, residual=(before, largest(r)), pencil=pencil
            )
    else:
        jumped = settled[4] is not None
        if jumped and not trust_kinds and _has_other_index(state, t, settled, pencil):
            worst = worst_equation(point.r, point.terms(y, given) + _allowed(state, point, given))
            return Start(y, given, False, worst, residual=(before, before), pencil=pencil)
        y, found, point, moved, jump, lawful = settled
        r = point.r
    kind = Kind.CHANGED if moved else (
        Kind.AS_GIVEN if holds and yp is not None else Kind.FOUND_SLOPES_ONLY
    )
    done = Reason(kind, values=(len(moved),), index=None if pencil is None else pencil.index)
    ypp = None if pencil is None else _curvature(state, t, y, found, point, pencil.var_index)
    return Start(
        y, found, True, done, moved=moved, residual=(before, largest(r)), ypp=ypp, pencil=pencil,
        jump=jump, lawful=lawful,
    )


def _has_other_index(
    state: State, t: float, settled: Settled, pencil: Pencil | None
) -> bool:
    """Whether the index at the consistent values is another than at the given ones."""
    there = find_kinds(state, t, settled[0], settled[1])
    return pencil is not None and there is not None and there.index != pencil.index


def _settle(
    state: State, t: float, y: np.ndarray, yp: np.ndarray, point: _Linearised,
    pencil: Pencil | None, keep: Keep | None,
) -> Settled | None:
    """Move y onto the constraints, given and hidden; None if that fails.

    Returns y, y', the linearisation there, the changes of y that are not negligible, the jump by
    the law of the equations, and whether that law was followed where it had to be.
    """
    if pencil is None or pencil.index not in (2, 3):
        return None
    found = settle(state, t, y, yp, point.fy, point.fyp, pencil, keep)
    if found is None:
        return None
    if not np.array_equal(found.y, y):
        yp = found.yp
    there = _Linearised.at(state, t, found.y, yp)
    if there is None:
        return None
    slopes, r = _complete(state, t, found.y, yp, there)
    if not _negligible(state, there, found.y, slopes, r):
        return None
    moved = {int(j): float(found.y[j] - y[j]) for j in np.flatnonzero(found.moved)}
    return found.y, slopes, replace(there, r=r), moved, found.jump, found.lawful


def refuse_pencil(pencil: Pencil) -> Reason | None:
    """Say why a system cannot be integrated as written, or None if it can."""
    if pencil.singular:
        rows = tuple([Row(i) for i in pencil.dependent])
        return Reason(Kind.SINGULAR, rows, pencil.undetermined)
    assert pencil.index is not None
    if pencil.index > HIGHEST_INDEX or (pencil.index == HIGHEST_INDEX and not pencil.mechanical):
        return Reason(Kind.INDEX_TOO_HIGH, columns=pencil.prescribed, index=pencil.index)
    return None


def _complete(
    state: State, t: float, y: np.ndarray, yp: np.ndarray, point: _Linearised
) -> tuple[np.ndarray, np.ndarray]:
    """Change y' as little as possible so that the equations that contain it hold."""
    r = point.r
    for _ in range(10):
        if np.all(np.abs(r) <= ROUNDED * EPS * point.terms(y, yp)):
            break
        moved = yp - point.slopes(r)
        r_moved = residual_at(state, t, y, moved)
        if r_moved is None:
            break
        scale = nonzero(point.terms(y, moved) + _allowed(state, point, moved))
        ratio = largest(r_moved / scale) / (largest(r / scale) or 1.0)
        if ratio <= 1.0:
            yp, r = moved, r_moved
        if ratio > 0.5:
            break
    return yp, r


def _negligible(
    state: State, point: _Linearised, y: np.ndarray, yp: np.ndarray, r: np.ndarray
) -> bool:
    """Whether a residual is round-off, or no larger than changes of `_allowed` size make it."""
    allowed = np.maximum(_allowed(state, point, yp), ROUNDED * EPS * point.terms(y, yp))
    return bool(np.all(np.abs(r) <= allowed))


def _allowed(state: State, point: _Linearised, yp: np.ndarray) -> np.ndarray:
    """Bound the effect on F of changes of y within tolerance, and of y' far below its size."""
    beside = point.unit * largest(yp / point.unit)
    slopes = np.abs(point.fyp) @ (1e-6 * (np.abs(yp) + beside))
    return np.abs(point.fy) @ state.tolerances + slopes


def _hidden(
    state: State, t: float, y: np.ndarray, yp: np.ndarray, point: _Linearised
) -> Reason | None:
    """Check the derivative of the constraints, math (26); name an equation that does not hold."""
    if point.left.shape[1] == 0:
        return None
    rate = _rate(state, t, y, yp, point)
    if rate is None:
        return None
    f_t, along = rate
    constrained = point.left.T @ point.fy
    value = point.left.T @ (f_t + along)
    terms = np.abs(point.left.T) @ (np.abs(f_t) + np.abs(point.fy) @ np.abs(yp))
    slope = 1.0 / (state.weights * time_scale(state, t))      # one tolerance in the time scale
    size = nonzero(np.abs(constrained) @ point.unit)
    free = constrained @ point.right / size[:, None]
    open_part = free @ np.linalg.lstsq(free, value / size, rcond=RANK)[0]
    left_over = np.abs(value - size * open_part)
    allowed = VIOLATED * terms + np.abs(constrained) @ slope
    if np.all(left_over <= allowed):
        return None
    worst = int(np.argmax(left_over / nonzero(allowed)))
    equation = int(np.argmax(np.abs(point.left[:, worst]) * (np.abs(point.fy) @ point.unit)))
    return Reason(Kind.HIDDEN_VIOLATED, (Row(equation),), values=(float(left_over[worst]),))


def _rate(
    state: State, t: float, y: np.ndarray, yp: np.ndarray, point: _Linearised
) -> tuple[np.ndarray, np.ndarray] | None:
    """F_t, by a difference, and F_y y'."""
    r = residual_at(state, t, y, yp)
    if r is None:
        return None
    dt = ROOT_EPS * max(abs(t), time_scale(state, t)) * state.direction
    for step in (dt, -dt):                 # backwards if the function ends here
        beside = residual_at(state, t + step, y, yp)
        if beside is not None:
            return (beside - r) / step, point.fy @ yp
    return None


def curvature(state: State, t: float, y: np.ndarray, yp: np.ndarray) -> np.ndarray | None:
    """Find y'' of the ordinary unknowns at a consistent point; None if F is not finite."""
    point = _Linearised.at(state, t, y, yp)
    return None if point is None else _curvature(state, t, y, yp, point, state.kinds)


def _curvature(
    state: State,
    t: float,
    y: np.ndarray,
    yp: np.ndarray,
    point: _Linearised,
    kinds: np.ndarray,
) -> np.ndarray | None:
    """Least y'' with F_t + F_y y' + F_y' y'' = 0, of the ordinary unknowns."""
    rate = _rate(state, t, y, yp, point)
    if rate is None:
        return None
    ypp = -point.slopes(rate[0] + rate[1])
    ypp[kinds > 1] = 0.0
    return ypp
