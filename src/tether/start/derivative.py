"""y' for a given y, index 0 and 1 (HK Appendix II).

y is kept. First Newton's method on F alone, which is enough for index 0. Where F_y' is singular
the rest of y' follows from the derivative of F with respect to time: 2N equations for y' and
y''. With A = F_y, B = F_y', v the part of F that no y' can remove (zero if y is consistent):

    [ B  0 ] [ dy' ]   [ -(F - v)                ]
    [ A  B ] [ dy" ] = [ -(F_t + A y' + B y'')   ]      HK eq. 21, in increments

HK solve for y'' itself; its increment has the same solution, and the second pass of the iteration
is then a step of iterative refinement. Three forms of the linear algebra:

dense
    Q B K = [R 0; 0 0] with orthogonal Q and K, HK eq. 22-23: y'' of minimum norm.
sparse
    0 in the first row replaced by eps I, HK eq. 24, and sparse LU.
banded
    The same, unknowns and equations interleaved, and band LU.

HK eq. 24 keeps y'' bounded only if no direction of the null space of B is orthogonal to the left
null space, which depends on the order in which the equations are written: y2' = f, y1 = g fails.
There eps I is replaced by eps A, which keeps y'' bounded whenever the index is 1 and costs one more
diagonal above. In both forms y'' solves its equations but is not of minimum norm.

Rows of F, A and B are divided by powers of two that bring the rows of B to size one (rows of A
where B has none): this changes no solution, but lets one tolerance decide all ranks.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from tether._core import probe
from tether._core.adapters import raise_user_error
from tether._core.state import State
from tether.base.checks import as_numbers
from tether.base.reason import Kind, Reason, Row
from tether.start.double_system import (
    Banded,
    Dense,
    Factors,
    Matrix,
    Pair,
    Sparse,
    entries,
    row_maxima,
)
from tether.structure.start import Start

__all__ = ["DerivativeStart", "StateSystem", "System", "find_derivative"]

EPS = float(np.finfo(float).eps)
MAX_ITERATIONS = 30
MAX_HALVINGS = 20
# A last increment below this, relative to y' or to y over the time scale, is taken undamped.
CONVERGED = 1e-10
# The same for an increment that no shorter step improves, as in the round-off of a hard problem.
STALLED = 1e-6
# Relative error of y in the equations that is allowed before y is called inconsistent.
UNCERTAIN = 1e-10
# A residual below this many times its round-off is zero.
ROUNDED = 10.0

Factory = Callable[[Matrix, Matrix, float], Factors]


class System(Protocol):
    """F(t, y, y') as `find_derivative` uses it; subclasses inherit the defaults.

    Attributes
    ----------
    rank_tolerance : float
        Relative size below which a pivot of F_y', rows scaled to one, is zero. Its inverse bounds
        the condition of the part that decides the index. 1e-10 suits exact Jacobians.
    time_scale : float
        Time over which the residual may change, with the sign of the direction of integration.
    """

    rank_tolerance: float = 1e-10
    time_scale: float = 1.0

    @abstractmethod
    def residual(self, t: float, y: np.ndarray, yp: np.ndarray) -> np.ndarray:
        """Return F; not finite where it is not defined."""

    @abstractmethod
    def jacobian(self, t: float, y: np.ndarray, yp: np.ndarray) -> tuple[Matrix, Matrix]:
        """Return F_y and F_y', dense or sparse."""

    def time_derivative(self, t: float, y: np.ndarray, yp: np.ndarray) -> np.ndarray:
        """Return F_t; here by differences of second order to one side.

        The side behind t is used only if F is not defined on the side ahead.
        """
        here = np.asarray(self.residual(t, y, yp), float)
        size = max(EPS ** (1 / 3) * abs(self.time_scale), EPS**0.5 * abs(t))
        for dt in (math.copysign(size, self.time_scale), -math.copysign(size, self.time_scale)):
            near, far = t + dt, t + 2 * dt
            a, b = near - t, far - t               # the steps after rounding
            ahead = np.asarray(self.residual(near, y, yp), float) - here
            beyond = np.asarray(self.residual(far, y, yp), float) - here
            slope = (ahead / a * b - beyond / b * a) / (b - a)
            if np.isfinite(slope).all():
                break
        return slope


class StateSystem(System):
    """The residual and the Jacobian of a core `State`.

    Parameters
    ----------
    state : State
        With its functions attached, `t_end` and `direction` set; its point and weights, by which
        differences choose their increments, are set here.
    t, y, yp :
        Where the search for y' begins.
    """

    DIFFERENCED = 1e-7                 # rank tolerance with differences, whose error is math (13)

    def __init__(self, state: State, t: float, y: np.ndarray, yp: np.ndarray) -> None:
        span = abs(state.t_end - t)
        self.time_scale = state.direction * (1e-3 * span if math.isfinite(span) else 1.0)
        if state.jacobian_adapter is None:
            self.rank_tolerance = self.DIFFERENCED
        self.state = state
        state.h = self.time_scale
        self.has_weights = probe.move_to(state, t, y, yp) == 0

    def residual(self, t: float, y: np.ndarray, yp: np.ndarray) -> np.ndarray:
        """Return F, or NaN where the core calls it not finite."""
        status, r = probe.residual_at(self.state, t, y, yp)
        raise_user_error(self.state)
        return r if status == 0 else np.full_like(y, np.nan)

    def jacobian(self, t: float, y: np.ndarray, yp: np.ndarray) -> tuple[Matrix, Matrix]:
        """Return the dense pair, or NaN where it cannot be computed."""
        undefined = np.full((len(y), len(y)), np.nan)
        if not self.has_weights:       # a tolerance of zero: no increments
            return undefined, undefined
        status, fy, fyp = probe.jacobian_at(self.state, t, y, yp)
        raise_user_error(self.state)
        return (fy, fyp) if status == 0 else (undefined, undefined)


@dataclass(frozen=True, eq=False)
class DerivativeStart(Start):
    """y' for a given y, and which equations y violates if there is none.

    Where y is inconsistent, y' is that of the problem shifted to pass through y. y'' is some
    solution of dF/dt = 0, for ``form="dense"`` that of minimum norm.

    Attributes
    ----------
    incompatibility : ndarray
        Part of F outside the range of F_y', which no y' removes: Q^T e of HK eq. 23.
    equations : dict
        Its entries that are more than round-off, by equation; first those that are largest
        in comparison with the terms of their equation.
    iterations : tuple of int
        Updates of y' by F alone and by the 2N equations.
    """

    incompatibility: np.ndarray = field(default_factory=lambda: np.zeros(0), repr=False)
    equations: dict[int, float] = field(default_factory=dict)
    iterations: tuple[int, int] = (0, 0)


def find_derivative(
    system: System,
    t: float,
    y: ArrayLike,
    yp: ArrayLike | None = None,
    *,
    form: str = "dense",
    band: tuple[int, int] | None = None,
    uncertainty: ArrayLike | None = None,
) -> DerivativeStart:
    """Find y' with F(t, y, y') = 0 and dF/dt = 0, keeping y.

    Parameters
    ----------
    system : System
        Residual, Jacobian and time derivative.
    t : float
        Time.
    y : array_like
        Values to keep.
    yp : array_like, optional
        Guess of y', zero if left out.
    form : {"dense", "sparse", "banded"}
        Linear algebra.
    band : pair of int, optional
        Numbers of sub- and super-diagonals of F_y and F_y', for ``form="banded"``.
    uncertainty : array_like, optional
        How far each y may be from consistent. The default, 1e-10 of its size, asks for
        round-off.

    Returns
    -------
    DerivativeStart
        It reports numerical trouble; only bad arguments, and the system itself, raise.

    Examples
    --------
    >>> import numpy as np
    >>> from tether.start.derivative import System, find_derivative
    >>> class Example(System):         # y1 + y1' + y2' = 0, y2 = sin t
    ...     def residual(self, t, y, yp):
    ...         return np.array([y[0] + yp[0] + yp[1], y[1] - np.sin(t)])
    ...     def jacobian(self, t, y, yp):
    ...         return np.eye(2), np.array([[1.0, 1.0], [0.0, 0.0]])
    >>> found = find_derivative(Example(), 0.0, [2.0, 0.0])
    >>> found.success, found.yp.round(9).tolist()
    (True, [-3.0, 1.0])
    >>> find_derivative(Example(), 0.0, [2.0, 0.5]).equations
    {1: 0.5}
    """
    t = float(_check_numbers("t", t, 0))
    y = _check_numbers("y", y, 1)
    yp = np.zeros_like(y) if yp is None else _check_numbers("yp", yp, 1)
    if len(yp) != len(y):
        raise ValueError(f"yp must have {len(y)} values like y, got {len(yp)}")
    if uncertainty is not None:
        uncertainty = _check_uncertainty(uncertainty, len(y))
    equations = _Equations(system, t, y, _choose_form(form, band, len(y)))
    return _Search(equations, uncertainty).run(yp)


def _check_numbers(name: str, value: Any, dimensions: int) -> np.ndarray:
    array = as_numbers(name, value)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} must be real, got {value!r}")
    if array.ndim != dimensions:
        kind = "a number" if dimensions == 0 else "one-dimensional"
        raise ValueError(f"{name} must be {kind}, got shape {array.shape}")
    if array.size == 0:
        raise ValueError(f"{name} is empty; at least one unknown is needed")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got {value!r}")
    return array.astype(float)


def _check_uncertainty(value: ArrayLike, n: int) -> np.ndarray:
    array = as_numbers("uncertainty", value)
    if array.dtype.kind not in "fiu" or array.shape not in ((), (n,)) or not np.all(array >= 0):
        raise ValueError(
            f"uncertainty must be one number or {n}, none of them negative, got {value!r}"
        )
    return np.broadcast_to(array.astype(float), n)


def _choose_form(form: str, band: Any, n: int) -> Factory:
    if form not in ("dense", "sparse", "banded"):
        raise ValueError(f"form must be 'dense', 'sparse' or 'banded', got {form!r}")
    if form != "banded":
        if band is not None:
            raise ValueError(f"band belongs to form='banded', but form is {form!r}")
        return Dense if form == "dense" else Sparse
    try:
        ml, mu = band
    except (TypeError, ValueError):
        raise ValueError(f"band must be a pair (ml, mu) for form='banded', got {band!r}") from None
    for width in (ml, mu):
        if isinstance(width, bool) or not isinstance(width, (int, np.integer)) or width < 0:
            raise ValueError(f"band must be two integers that are not negative, got {band!r}")
    # A matrix has no more diagonals than this.
    ml, mu = min(int(ml), n - 1), min(int(mu), n - 1)
    return lambda A, B, tolerance: Banded(A, B, tolerance, ml, mu)


# --- the equations at a point -------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Point:
    """F, F_t, A = F_y and B = F_y' at one y', rows scaled."""

    yp: np.ndarray
    F: np.ndarray
    Ft: np.ndarray
    A: Matrix
    B: Matrix

    def right_hand_side(self, ypp: np.ndarray, removed: np.ndarray) -> Pair:
        """Return b1 and b2 of HK eq. 21 for the increments."""
        return removed - self.F, -(self.Ft + self.A @ self.yp + self.B @ ypp)

    def round_off(self, y: np.ndarray) -> np.ndarray:
        """Error of F from the sizes of the terms that A and B show in it."""
        terms = abs(self.A) @ np.abs(y) + abs(self.B) @ np.abs(self.yp)
        return EPS * (terms + np.abs(self.F))


class _Equations:
    """The system at fixed t and y, with rows scaled from the first point on."""

    def __init__(
        self, system: System, t: float, y: np.ndarray, factor: Factory
    ) -> None:
        self.system, self.t, self.y, self._factor = system, t, y, factor
        self.rows = np.ones_like(y)

    def residual(self, yp: np.ndarray) -> np.ndarray:
        """Return F, scaled."""
        return self._vector("residual", self.system.residual, yp)

    def begin(self, yp: np.ndarray, F: np.ndarray) -> _Point | None:
        """Return the first point and scale the rows by it."""
        point = self.at(yp, F)
        if point is None:
            return None
        self.rows = _row_sizes(point.A, point.B)
        A, B = (_divide_rows(matrix, self.rows) for matrix in (point.A, point.B))
        return _Point(yp, point.F / self.rows, point.Ft / self.rows, A, B)

    def at(self, yp: np.ndarray, F: np.ndarray) -> _Point | None:
        """Return the linearisation at y', whose residual is F, or None where it is not finite."""
        if not np.isfinite(F).all():
            return None
        A, B = (_divide_rows(matrix, self.rows) for matrix in self._matrices(yp))
        Ft = self._vector("time_derivative", self.system.time_derivative, yp)
        finite = all(np.isfinite(entries(part)).all() for part in (Ft, A, B))
        return _Point(yp, F, Ft, A, B) if finite else None

    def factor(self, point: _Point) -> Factors:
        return self._factor(point.A, point.B, self.system.rank_tolerance)

    def _vector(self, name: str, function: Callable, yp: np.ndarray) -> np.ndarray:
        # Functions get copies: they may overwrite what they are given.
        values = np.asarray(function(self.t, self.y.copy(), yp.copy()), float)
        if values.shape != self.y.shape:
            raise ValueError(
                f"{name} must return {len(self.y)} values, got an object of shape {values.shape}"
            )
        return values / self.rows

    def _matrices(self, yp: np.ndarray) -> list[Matrix]:
        pair = self.system.jacobian(self.t, self.y.copy(), yp.copy())
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise TypeError("jacobian must return the pair (F_y, F_yp)")
        matrices = [part if hasattr(part, "tocsr") else np.asarray(part, float) for part in pair]
        square = (len(self.y), len(self.y))
        for matrix in matrices:
            if matrix.shape != square:
                raise ValueError(
                    f"jacobian must return two matrices of shape {square}, "
                    f"got one of shape {matrix.shape}"
                )
        return matrices


def _row_sizes(A: Matrix, B: Matrix) -> np.ndarray:
    """Powers of two nearest to the sizes of the rows of B; of A where B has only round-off."""
    sizes = row_maxima(B)
    sizes = np.where(sizes > EPS * sizes.max(), sizes, row_maxima(A))
    sizes[sizes == 0.0] = 1.0
    return np.exp2(np.round(np.log2(sizes)))


def _divide_rows(matrix: Matrix, rows: np.ndarray) -> Matrix:
    if hasattr(matrix, "tocsr"):
        return matrix.multiply(1.0 / rows[:, None]).tocsr()
    return matrix / rows[:, None]


# --- Newton -------------------------------------------------------------------------------


class _Search:
    """The iteration from the guess to y', and its results so far."""

    def __init__(self, equations: _Equations, uncertainty: np.ndarray | None) -> None:
        self.equations = equations
        self.uncertainty = uncertainty
        self.before = self.after = math.nan
        self.updates = [0, 0]
        self.incompatibility = np.zeros_like(equations.y)
        self.violated: dict[int, float] = {}

    def run(self, yp: np.ndarray) -> DerivativeStart:
        """Newton on F alone, the check of y, Newton on the 2N equations."""
        F = self.equations.residual(yp)
        self.before = self.after = _largest(F)
        if not np.isfinite(F).all():
            rows = tuple([Row(i) for i in np.flatnonzero(~np.isfinite(F)).tolist()])
            return self._failed(yp, Reason(Kind.GUESS_NOT_FINITE, rows))
        point = self.equations.begin(yp, F)
        if point is None:
            return self._failed(yp, Reason(Kind.DERIVATIVES_NOT_FINITE))
        point, factors, reduced = self._remove_residual(point)
        self._record(point)
        if not factors.regular:
            return self._failed(point.yp, Reason(Kind.DERIVATIVE_OPEN))
        if not reduced:
            return self._failed(point.yp, self._worst(Kind.DERIVATIVE_NOT_FOUND, point.F))
        removed = self._check_compatibility(point, factors)
        return self._finish(point, factors, removed)

    def _remove_residual(self, point: _Point) -> tuple[_Point, Factors, bool]:
        """Newton on F alone; what remains of F is outside the range of B.

        Each update must reduce the part of F that it is to remove: |F| itself for index 0 (HK).
        """
        while True:
            factors = self.equations.factor(point)
            if not factors.regular:
                return point, factors, False
            dyp = factors.reduce(-point.F)
            change = point.B @ dyp
            if np.all(np.abs(change) <= ROUNDED * point.round_off(self.equations.y)):
                return point, factors, True
            trial = self._shorten_residual(point, dyp, change)
            if trial is None or self.updates[0] == MAX_ITERATIONS:
                return point, factors, self._is_small(dyp, point.yp, STALLED)
            point = trial
            self.updates[0] += 1

    def _shorten_residual(
        self, point: _Point, dyp: np.ndarray, change: np.ndarray
    ) -> _Point | None:
        """Take the longest of the steps 1, 1/2, 1/4, ... that gets closer to F + B dy'."""
        target = point.F + change
        distance = np.linalg.norm(change)
        length = 1.0
        for _ in range(MAX_HALVINGS):
            yp = point.yp + length * dyp
            F = self.equations.residual(yp)
            closer = np.linalg.norm(F - target) <= (1.0 - 1e-4 * length) * distance
            if closer and (trial := self.equations.at(yp, F)) is not None:
                return trial
            length /= 2                # also where F is not finite: the comparison was False
        return None

    def _check_compatibility(self, point: _Point, factors: Factors) -> np.ndarray:
        """Record the part of F outside the range of B; return it if y is inconsistent, else zero.

        This is Q^T e of HK eq. 23. It is kept out of the further iteration, because HK eq. 24
        would spread it over y'.
        """
        outside = point.F + point.B @ factors.reduce(-point.F)
        y, rows = self.equations.y, self.equations.rows
        uncertain = UNCERTAIN * np.abs(y) if self.uncertainty is None else self.uncertainty
        allowed = abs(point.A) @ uncertain + 100 * point.round_off(y) + 100 * EPS
        found = np.flatnonzero(np.abs(outside) > allowed)
        self.incompatibility = outside * rows
        worst_first = found[np.argsort(-np.abs(outside[found]), kind="stable")]
        self.violated = {int(i): float(self.incompatibility[i]) for i in worst_first}
        return outside if self.violated else np.zeros_like(outside)

    def _finish(self, point: _Point, factors: Factors, removed: np.ndarray) -> DerivativeStart:
        ypp = np.zeros_like(point.yp)
        converged = factors.decides
        while not converged and self.updates[1] < MAX_ITERATIONS:
            dyp, dypp = factors.solve(*point.right_hand_side(ypp, removed))
            if self._is_small(dyp, point.yp, CONVERGED):
                return self._accept(point, factors, removed, point.yp + dyp)
            stepped = self._shorten_increment(point, factors, removed, dyp, ypp, dypp)
            if stepped is None:
                converged = self._is_small(dyp, point.yp, STALLED)
                break
            point, ypp = stepped
            self.updates[1] += 1
            factors = self.equations.factor(point)
            if not factors.regular:
                break
        if converged:
            return self._accept(point, factors, removed, point.yp)
        self._record(point)
        return self._failed(point.yp, self._worst(Kind.STALLED, point.F))

    def _shorten_increment(
        self,
        point: _Point,
        factors: Factors,
        removed: np.ndarray,
        dyp: np.ndarray,
        ypp: np.ndarray,
        dypp: np.ndarray,
    ) -> tuple[_Point, np.ndarray] | None:
        """Take the longest of the steps 1, 1/2, 1/4, ... after which the next is shorter.

        The next increment is measured with the same factors. The residual of the 2N equations
        would be no measure: y'' takes up any part of it in the range of B.
        """
        size = np.linalg.norm(dyp)
        length = 1.0
        for _ in range(MAX_HALVINGS):
            yp = point.yp + length * dyp
            trial = self.equations.at(yp, self.equations.residual(yp))
            if trial is not None:
                moved = ypp + length * dypp
                following = factors.solve(*trial.right_hand_side(moved, removed))[0]
                if np.linalg.norm(following) <= (1.0 - 0.25 * length) * size:
                    return trial, moved
            length /= 2
        return None

    def _is_small(self, dyp: np.ndarray, yp: np.ndarray, tolerance: float) -> bool:
        slope = _largest(self.equations.y) / abs(self.equations.system.time_scale)
        return _largest(dyp) <= tolerance * max(_largest(yp + dyp), slope)

    def _accept(
        self, point: _Point, factors: Factors, removed: np.ndarray, yp: np.ndarray
    ) -> DerivativeStart:
        """Finish with y', and with y'' from the last factors."""
        self._record(point)
        if yp is not point.yp:
            F = self.equations.residual(yp)
            if np.isfinite(F).all():
                self.after = _largest(F * self.equations.rows)
            else:
                yp = point.yp
        nothing = np.zeros_like(yp)
        ypp = factors.solve(nothing, -(point.Ft + point.A @ yp))[1]
        return self._answer(yp, ypp, not self.violated, self._verdict())

    def _verdict(self) -> Reason:
        if not self.violated:
            return Reason(Kind.FOUND_SLOPES)
        rows = tuple([Row(i) for i in self.violated])
        return Reason(Kind.NO_DERIVATIVE, rows, values=tuple(self.violated.values()))

    def _worst(self, kind: Kind, F: np.ndarray) -> Reason:
        F = F * self.equations.rows
        worst = int(np.argmax(np.abs(F)))
        return Reason(kind, (Row(worst),), values=(float(F[worst]),))

    def _record(self, point: _Point) -> None:
        self.after = _largest(point.F * self.equations.rows)

    def _failed(self, yp: np.ndarray, reason: Reason) -> DerivativeStart:
        return self._answer(yp, None, False, reason)

    def _answer(
        self, yp: np.ndarray, ypp: np.ndarray | None, success: bool, reason: Reason
    ) -> DerivativeStart:
        return DerivativeStart(
            self.equations.y, yp, success, reason, residual=(self.before, self.after), ypp=ypp,
            fixed=tuple(range(len(yp))), incompatibility=self.incompatibility,
            equations=self.violated, iterations=(self.updates[0], self.updates[1]),
        )


def _largest(v: np.ndarray) -> float:
    return float(np.abs(v).max())
