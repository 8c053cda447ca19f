"""Better guesses where Newton's method finds no consistent values of index 1 from those given.

Differential unknowns keep their values; the equations are solved for the algebraic ones and for y'.
Several methods are tried in turn, from near to far. First come damped steps from the guess; if the
function was traced, exponentials and functions with a limited domain are tamed in them
(`trace/tame.py`). Then a straight line is added to every exponential and slowly removed, like
conductances beside the junctions of a circuit. Last comes a homotopy

    F(u) = (1 - s) F(u_0),      s from 0 to 1,

followed round its turning points. The result is a guess, from which the search for consistent
values is repeated with the unchanged equations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from tether._core import probe
from tether._core.adapters import raise_user_error
from tether._core.plain import Plain
from tether._core.state import State
from tether.plan.model import Model
from tether.start.consistent import residual_at
from tether.structure.scaling import Units, balanced
from tether.trace import Program, emit, jacobian
from tether.trace.tame import tame

__all__ = ["better_guess", "with_same_signs"]

MAX_ITERATIONS = 200
MAX_WITH_SIGNS = 60
MAX_HALVINGS = 30
MAX_ARCS = 200
# A step below this, relative to the unknowns, ends an iteration.
CONVERGED = 1e-9
# A share of a step is taken if it makes the next one shorter by at least this times the share.
LEAST_DECREASE = 1e-2
# A derivative with a smaller share than this in all equations does not occur.
ABSENT = 1e-14
# Singular values of the matrix in natural units below this share of the largest are zero.
SINGULAR = 1e-12
# Halvings, towards zero, of a guess at which a function is not defined.
MAX_RETREATS = 40
# Equations this many times larger than at zero cannot be worked with.
HUGE = 1e9
# Shares of a guess at which the derivatives of the equations are examined.
SHARES = (1.0, 0.1, 1e-3, 0.0)
# In a step that keeps signs, unknowns keep at least this share of their distance from zero.
KEPT_DISTANCE = 0.1
# A search that keeps signs ends after too many steps in a row that were cut below this share.
HELD_BACK = 0.01
MOST_HELD_BACK = 20
# Limits of the arguments of exponentials, used in turn.
LIMITS = (40.0, 80.0, 160.0, 320.0, 700.0)
# Limits used before these if functions have limited domains, cut at the exponential of minus these.
NEARER_LIMITS = (1.0, 3.0, 8.0, 20.0)
# Limits, with logarithms of the slopes of the lines that are added to exponentials.
LINES = ((20.0, 20.0), (25.0, 17.0), (30.0, 14.0), (35.0, 11.0), (40.0, 8.0), (40.0, 4.0),
         (40.0, 0.0), (40.0, -5.0), (40.0, -10.0), (40.0, -20.0))
# Relative difference below which derivatives are the same.
SAME = 1e-6
# The search takes singular values of full matrices. So the number of unknowns is limited, and the
# number of matrices times the cube of their size, but a few matrices are always allowed.
MOST_UNKNOWNS, MOST_WORK, FEWEST_MATRICES = 1500, 4e9, 12
# Larger entries are refused: products and sums of them could overflow.
LARGEST_ENTRY = 1e150


def better_guess(
    model: Model, state: State, t: float, y: np.ndarray, yp: np.ndarray, units: Units
) -> np.ndarray | None:
    """Look for values at which a search for consistent ones is likely to succeed.

    Parameters
    ----------
    model, state : Model, State
        The equations and their memory.
    t, y, yp : float, ndarray, ndarray
        The point that was given.
    units : Units
        Units of the unknowns.

    Returns
    -------
    ndarray or None
        Values of y; differential unknowns are unchanged.
    """
    with np.errstate(all="ignore"):
        system = _System.of(model, state, t, y, yp, units)
        if system is None:
            return None
        for method in (
            _keeping_signs, _directly, _downhill, _with_lines, _from_zero, _by_homotopy
        ):
            found = method(system)
            if found is not None and system.holds(found):
                return system.point(found)[0]
    return None


def with_same_signs(
    model: Model, state: State, t: float, y: np.ndarray, found: np.ndarray, units: Units
) -> np.ndarray | None:
    """Look for other values where guessed unknowns have changed their signs.

    Nonlinear equations may have several solutions. Who has guessed a positive concentration does
    not mean the one with a negative concentration.

    Parameters
    ----------
    model, state, t, y, units
        As for `better_guess`.
    found : ndarray
        Consistent values.

    Returns
    -------
    ndarray or None
        Values with the signs of y; None if there are none, or if no sign was lost.
    """
    tolerance = state.rtols * np.abs(y) + state.atols
    lost = (y * found < 0.0) & (np.abs(found) > tolerance) & (np.abs(y) > tolerance)
    if not lost.any() or _is_linear(state, t, y, found):
        return None
    with np.errstate(all="ignore"):
        system = _System.of(model, state, t, y, np.zeros_like(y), units)
        if system is None or not system.algebraic[lost].all():
            return None
        for method in (_keeping_signs, _directly):
            u = method(system)
            if u is not None and np.all(u[lost] * y[lost] >= 0.0) and system.holds(u):
                return system.point(u)[0]
    return None


def _is_linear(state: State, t: float, y: np.ndarray, found: np.ndarray) -> bool:
    """Whether F_y is the same at two points."""
    matrices = _called_matrices(state, t)
    one, other = (matrices(point, np.zeros_like(y))[0] for point in (y, found))
    size = np.maximum(np.abs(one), np.abs(other))
    return bool(np.all(np.abs(one - other) <= SAME * size))


@dataclass(frozen=True, eq=False)
class _System:
    """Equations for algebraic unknowns and for y' of the differential ones, at one time.

    Attributes
    ----------
    values_at, matrices_at : callable
        F and its derivatives as functions of all of y and y', limits and lines.
    grows, ends : bool
        Whether there are exponentials, to which lines are added, and functions with limited
        domains.
    """

    y: np.ndarray
    yp: np.ndarray
    algebraic: np.ndarray
    scale: np.ndarray
    values_at: Callable[..., np.ndarray]
    matrices_at: Callable[..., tuple[np.ndarray, np.ndarray]]
    grows: bool
    ends: bool
    taken: list[int] = field(default_factory=lambda: [0])      # matrices so far

    @classmethod
    def of(
        cls, model: Model, state: State, t: float, y: np.ndarray, yp: np.ndarray, units: Units
    ) -> _System | None:
        """Use the expressions of a traced function, or else the function itself."""
        n = len(y)
        if n > MOST_UNKNOWNS:
            return None
        if model.plan is not None:
            values, matrices, grows, ends, algebraic = _traced(model, t, n)
        elif state.n == n:
            values, matrices = _called(state, t), _called_matrices(state, t)
            grows = ends = False
            near = _defined(values, y, yp)
            if near is None:
                return None
            algebraic = _never_differentiated(matrices, near, yp, units)
            y = np.where(algebraic, near, y)
        else:
            return None
        if not algebraic.any():
            return None
        scale = np.where(algebraic, units.y, units.y / units.t)
        return cls(y, yp, algebraic, scale, values, matrices, grows, ends)

    @property
    def limits(self) -> tuple[float, ...]:
        """Limits in the order in which they are used."""
        if self.ends:
            return NEARER_LIMITS + LIMITS
        return LIMITS if self.grows else LIMITS[-1:]

    @property
    def guess(self) -> np.ndarray:
        return np.where(self.algebraic, self.y, 0.0)

    def point(self, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return y and y'."""
        return np.where(self.algebraic, u, self.y), np.where(self.algebraic, 0.0, u)

    def values(self, u: np.ndarray, limit: float = np.inf, line: float = -np.inf) -> np.ndarray:
        return self.values_at(*self.point(u), limit, line)

    def matrix(self, u: np.ndarray, limit: float = np.inf, line: float = -np.inf) -> np.ndarray:
        """Return the derivatives; NaN once too many have been taken."""
        self.taken[0] += 1
        if self.taken[0] > max(FEWEST_MATRICES, MOST_WORK / len(u) ** 3):
            return np.full((len(u), len(u)), np.nan)
        fy, fyp = self.matrices_at(*self.point(u), limit, line)
        return np.where(self.algebraic, fy, fyp)

    def holds(self, u: np.ndarray) -> bool:
        """Whether the next step of Newton's method, with the functions as they are, is short."""
        r, J = self.values(u), self.matrix(u)
        if not (np.isfinite(r).all() and np.abs(J).max(initial=0.0) <= LARGEST_ENTRY):
            return False
        return self.size(_step(J, r), u) <= 1e-3

    def size(self, d: np.ndarray, u: np.ndarray) -> float:
        """Size of a step, relative to the unknowns."""
        return float(np.max(np.abs(d) / (self.scale + np.abs(u)), initial=0.0))


def _traced(
    model: Model, t: float, n: int
) -> tuple[Callable[..., np.ndarray], Callable[..., tuple], bool, bool, np.ndarray]:
    """Values and matrices of tamed expressions, and which derivatives do not occur."""
    assert model.plan is not None
    trace, args = model.plan.original, model.values
    graph, p = trace.graph, len(args)
    outputs, grows, ends = tame(graph, trace.outputs, p)
    inputs = [graph.y(j, k) for k in (0, 1) for j in range(n)]
    J = jacobian(graph, outputs, inputs)
    values_only, both = (
        emit(graph, nodes, n, p + 3, opaque=True) for nodes in (outputs, [*outputs, *J.nodes])
    )
    rows, columns = np.array(J.rows, int), np.array(J.cols, int)

    @lru_cache(maxsize=2 * len(LINES))
    def runner(program: Program, limit: float, line: float) -> Plain:
        near = min(limit, 709.0)
        far = near if line > -np.inf else max(near, LIMITS[0])
        return Plain(program, [*args, far, np.exp(-near), np.exp(line)])

    def values(
        y: np.ndarray, yp: np.ndarray, limit: float = np.inf, line: float = -np.inf
    ) -> np.ndarray:
        return runner(values_only, limit, line).values(t, y, yp)

    def matrices(
        y: np.ndarray, yp: np.ndarray, limit: float = np.inf, line: float = -np.inf
    ) -> tuple[np.ndarray, np.ndarray]:
        found = np.zeros((n, 2 * n))
        found[rows, columns] = runner(both, limit, line).values(t, y, yp)[n:]
        return found[:, :n], found[:, n:]

    algebraic = np.ones(n, bool)
    algebraic[columns[columns >= n] - n] = False
    return values, matrices, grows, ends, algebraic


def _called(state: State, t: float) -> Callable[..., np.ndarray]:
    def values(y: np.ndarray, yp: np.ndarray, *_: float) -> np.ndarray:
        r = residual_at(state, t, y, yp)
        return np.full(len(y), np.nan) if r is None else r

    return values


def _called_matrices(state: State, t: float) -> Callable[..., tuple[np.ndarray, np.ndarray]]:
    def matrices(y: np.ndarray, yp: np.ndarray, *_: float) -> tuple[np.ndarray, np.ndarray]:
        if not state.fyp_known:                # beside huge terms it may look constant
            state.fyp_exists = state.fyp_constant = False
        status, fy, fyp = probe.jacobian_at(state, t, y, yp)
        state.jacobian_exists = False          # it is that of another point
        raise_user_error(state)
        return (fy, fyp) if status == 0 else (np.full_like(fy, np.nan), fyp)

    return matrices


def _defined(
    values: Callable[..., np.ndarray], y: np.ndarray, yp: np.ndarray
) -> np.ndarray | None:
    """Move towards zero until the function has values that can be worked with."""
    usual = np.abs(values(0.0 * y, yp)).max(initial=0.0)
    largest = min(LARGEST_ENTRY, HUGE * usual) if usual > 0.0 else LARGEST_ENTRY
    for halvings in range(MAX_RETREATS):
        nearer = y * 0.5**halvings
        if np.abs(values(nearer, yp)).max(initial=0.0) <= largest:
            return nearer
    return None


def _never_differentiated(
    matrices: Callable[..., tuple[np.ndarray, np.ndarray]], y: np.ndarray, yp: np.ndarray,
    units: Units,
) -> np.ndarray:
    """Mark unknowns whose derivatives occur nowhere; they are hard to see beside huge terms."""
    size = np.zeros((len(y), len(y)))
    for share in SHARES:
        found = np.abs(matrices(share * y, yp)[1]) * units.y
        size = np.maximum(size, np.where(np.isfinite(found), found, 0.0))
    return np.asarray(np.all(size <= ABSENT * size.max(axis=1, initial=0.0)[:, None], axis=0))


Measure = Callable[[_System, np.ndarray, np.ndarray], Callable[[np.ndarray], float]]

# --- methods ----------------------------------------------------------------------------------


def _directly(system: _System) -> np.ndarray | None:
    """Take damped steps from the guess, with limits that are raised in turn."""
    return _limited(system, system.guess)


def _keeping_signs(system: _System) -> np.ndarray | None:
    """Do the same without changing any sign, as for concentrations, fractions and pressures."""
    return _limited(system, system.guess, keep_signs=True)


def _downhill(system: _System) -> np.ndarray | None:
    """Take steps that make the equations smaller: each divides an exponential by e."""
    u = system.guess
    for limit in system.limits:
        found = _newton(system, u, limit, -np.inf, measure=_left_over)
        if found is None:
            return None
        u = found
    return u


def _limited(
    system: _System, u: np.ndarray | None, keep_signs: bool = False
) -> np.ndarray | None:
    for limit in system.limits:
        if u is None:
            return None
        u = _newton(system, u, limit, -np.inf, keep_signs)
    return u


def _with_lines(system: _System) -> np.ndarray | None:
    """Begin with lines that are far larger than the exponentials to which they are added."""
    return _removing_lines(system, system.guess)


def _from_zero(system: _System) -> np.ndarray | None:
    """Do the same from zero, whatever the guess."""
    return _removing_lines(system, np.zeros_like(system.guess))


def _removing_lines(system: _System, u: np.ndarray) -> np.ndarray | None:
    if not system.grows:
        return None
    for limit, line in LINES:
        found = _newton(system, u, limit, line)
        if found is None:
            return None
        u = found
    return _limited(system, u)


def _newton(
    system: _System, u: np.ndarray, limit: float, line: float, keep_signs: bool = False,
    measure: Measure | None = None,
) -> np.ndarray | None:
    """Take damped Newton steps that reduce a measure: by default, the length of the next step."""
    measure = measure or _next_step
    held_back = 0
    r, length = system.values(u, limit, line), 1.0
    for _ in range(MAX_WITH_SIGNS if keep_signs else MAX_ITERATIONS):
        J = system.matrix(u, limit, line)
        if not (np.isfinite(r).all() and np.abs(J).max(initial=0.0) <= LARGEST_ENTRY):
            return None
        size_of = measure(system, J, u)
        d, size = _step(J, r), size_of(r)
        if not np.isfinite(d).all():
            return None
        if system.size(d, u) <= CONVERGED:
            return u
        length = min(1.0, 4.0 * length)
        if keep_signs:
            length = min(length, _to_zero(system, u, d))
            held_back = held_back + 1 if length < HELD_BACK else 0
            if held_back > MOST_HELD_BACK:
                return None                    # the solution is on the other side of zero
        for _ in range(MAX_HALVINGS):
            tried = u + length * d
            left = system.values(tried, limit, line)
            if np.isfinite(left).all() and size_of(left) <= (1.0 - LEAST_DECREASE * length) * size:
                break
            length /= 2.0
        else:
            return None
        u, r = tried, left
    return None


def _to_zero(system: _System, u: np.ndarray, d: np.ndarray) -> float:
    """Share of a step that leaves all unknowns on their side of zero."""
    towards = system.algebraic & (u * d < 0.0)
    return float(np.min((1.0 - KEPT_DISTANCE) * np.abs(u[towards] / d[towards]), initial=1.0))


def _next_step(system: _System, J: np.ndarray, u: np.ndarray) -> Callable[[np.ndarray], float]:
    """Measure equations by the next Newton step, which does not depend on their units."""
    solve, size = _solver(J), system.scale + np.abs(u)
    return lambda r: float(np.linalg.norm(solve(r) / size))


def _left_over(system: _System, J: np.ndarray, u: np.ndarray) -> Callable[[np.ndarray], float]:
    """Measure equations by their values, relative to the effect of changes of the unknowns."""
    size = np.maximum(np.abs(J) @ system.scale, 1e-300)
    return lambda r: float(np.linalg.norm(r / size))


def _solver(J: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function that solves with a matrix; what the matrix does not determine is zero."""
    row, column = balanced(J)
    u, s, vt = np.linalg.svd(row[:, None] * J * column)
    rank = int(np.sum(s > SINGULAR * s[0])) if len(s) and s[0] > 0.0 else 0
    left, right = u[:, :rank].T * row, column[:, None] * vt[:rank].T / s[:rank]

    def solve(b: np.ndarray) -> np.ndarray:
        return right @ (left @ b)

    return solve


def _step(J: np.ndarray, r: np.ndarray) -> np.ndarray:
    return _solver(J)(-r)


# --- homotopy ---------------------------------------------------------------------------------


def _by_homotopy(system: _System) -> np.ndarray | None:
    """Follow the solutions of F(u) = (1 - s) F(u_0) from s = 0 to 1 by their arc length."""
    for u in (system.guess, np.zeros_like(system.guess)):
        found = _follow(system, u, system.limits[0])
        if found is not None:
            found = _limited(system, found)
        if found is not None:
            return found
    return None


def _follow(system: _System, u: np.ndarray, limit: float) -> np.ndarray | None:
    first = system.values(u, limit)
    if not np.isfinite(first).all():
        return None
    # unknowns relative to their sizes, equations so that the first step has length one
    size = system.scale + np.abs(u)
    x, length, direction = np.append(u / size, 0.0), 0.1, None
    for _ in range(MAX_ARCS):
        J = _extended(system, x, size, first, limit)
        if J is None:
            return None
        tangent = _null_vector(J)
        if direction is None:
            tangent = tangent if tangent[-1] > 0.0 else -tangent
        elif tangent @ direction < 0.0:
            tangent = -tangent
        direction = tangent
        while length > 1e-10:
            new = _onto_curve(system, x + length * tangent, size, first, limit, tangent)
            if new is not None:
                break
            length /= 4.0
        else:
            return None
        if new[-1] >= 1.0:
            share = (1.0 - x[-1]) / (new[-1] - x[-1])
            return _newton(system, size * (x + share * (new - x))[:-1], limit, -np.inf)
        x, length = new, min(2.0 * length, 10.0)
    return None


def _extended(
    system: _System, x: np.ndarray, size: np.ndarray, first: np.ndarray, limit: float
) -> np.ndarray | None:
    J = system.matrix(size * x[:-1], limit)
    if not np.abs(J).max(initial=0.0) <= LARGEST_ENTRY:
        return None
    extended = np.column_stack([J * size, first])
    return extended / np.abs(extended).max(axis=1, keepdims=True).clip(1e-300)


def _null_vector(J: np.ndarray) -> np.ndarray:
    return np.linalg.svd(J)[2][-1]


def _onto_curve(
    system: _System, x: np.ndarray, size: np.ndarray, first: np.ndarray, limit: float,
    tangent: np.ndarray,
) -> np.ndarray | None:
    """Return to the curve by Newton's method, at right angles to the tangent."""
    before = np.inf
    for _ in range(8):
        r = system.values(size * x[:-1], limit) - (1.0 - x[-1]) * first
        J = system.matrix(size * x[:-1], limit)
        if not (np.isfinite(r).all() and np.abs(J).max(initial=0.0) <= LARGEST_ENTRY):
            return None
        A = np.vstack([np.column_stack([J * size, first]), tangent])
        d = _step(A, np.append(r, 0.0))
        change = float(np.linalg.norm(d))
        if not change <= before:
            return None
        x, before = x + d, 0.5 * change
        if change <= 1e-8 * (1.0 + np.linalg.norm(x)):
            return x
    return None


