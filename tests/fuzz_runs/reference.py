"""Reference solutions: piecewise with SciPy, or linear ones by the matrix exponential."""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from scipy.integrate import solve_ivp
from scipy.linalg import expm, orth


@dataclass
class Precision:
    """How exact all references are for as long as it is entered.

    With a `push` they are disturbed all the way, by that share of the state over the interval.
    """

    rtol: float
    push: float = 0.0
    signs: np.ndarray | None = None
    current = None

    def __enter__(self):
        self.before, Precision.current = Precision.current, self
        return self

    def __exit__(self, *_):
        Precision.current = self.before

    def disturbed(self, slope, z, span):
        """Add the push to a slope."""
        slope = np.asarray(slope, float)
        if not self.push:
            return slope
        size = np.abs(z) + 0.1 * np.abs(z).max()
        return slope + self.push / span * size * self.signs[: len(z)]


Precision.current = Precision(1e-11)


class Unusable(Exception):  # noqa: N818
    """The case is no test: it has no reference, or it is too sensitive to have one."""


@dataclass
class Guard:
    """A function of time and state that ends a mode where it passes zero in this direction."""

    value: Callable
    direction: int
    act: Callable  # (t, z, mode) -> (z, mode)


@dataclass
class Piece:
    low: float
    high: float
    values: Callable  # t -> all unknowns


@dataclass
class Trajectory:
    """All unknowns as functions of time, with the times where something switches."""

    pieces: list[Piece]
    sequence: list = field(default_factory=list)  # what happened, for comparing two runs

    @property
    def switches(self) -> list[float]:
        return [piece.high for piece in self.pieces[:-1]]

    @property
    def span(self) -> tuple[float, float]:
        return self.pieces[0].low, self.pieces[-1].high

    def __call__(self, t):
        sign = 1.0 if self.pieces[-1].high >= self.pieces[0].low else -1.0
        for piece in self.pieces:
            if sign * (t - piece.high) <= 0:
                return piece.values(t)
        return self.pieces[-1].values(t)

    def near(self, t, reach):
        """Values within `reach` of t on all pieces that come that near."""
        found = [self(t)]
        low, high = sorted(self.span)
        for s in self.switches:
            if abs(s - t) <= reach:
                for k, piece in enumerate(self.pieces):
                    if s in (piece.low, piece.high):
                        a, b = sorted((piece.low, piece.high))
                        for x in (t - reach, t, t + reach, s):
                            found.append(self.pieces[k].values(min(max(x, a), b)))
                for x in (t - reach, t + reach):
                    found.append(self(min(max(x, low), high)))
        found = np.array(found)
        return found.min(axis=0), found.max(axis=0)


def integrate(
    rhs,
    out,
    span,
    z0,
    mode=0,
    guards=None,
    breaks=(),
    method="DOP853",
    atol=1e-13,
    limit=100,
    at_break=None,
):
    """Integrate z' = rhs(t, z, mode) from switching to switching.

    At a time in `breaks` the integration begins anew, in the mode `at_break(t, z, mode)`; within a
    piece, rhs and out are only asked at times inside of it.
    """
    t, t_end = span
    precision, length = Precision.current, abs(t_end - t)
    sign = 1.0 if t_end > t else -1.0
    inner = {b for b in breaks if sign * (b - t) > 0 and sign * (t_end - b) > 0}
    stops = [*sorted(inner, reverse=sign < 0), t_end]
    z, pieces, sequence = np.array(z0, float), [], []
    hair = 1e-12 * abs(t_end - t)
    for stop in stops:
        begin = t
        while sign * (stop - t) > hair:
            if len(pieces) > limit:
                raise Unusable("too many switchings")
            low, high = sorted((begin + sign * hair, stop - sign * hair))

            def inside(x, low=low, high=high):
                return min(max(x, low), high)

            watched = guards(mode) if guards else []
            functions = []
            for guard in watched:

                def function(x, z, guard=guard, inside=inside):
                    return guard.value(inside(x), z)

                function.terminal, function.direction = True, guard.direction
                functions.append(function)
            with np.errstate(all="ignore"):
                run = solve_ivp(
                    lambda x, z, m=mode, i=inside: precision.disturbed(rhs(i(x), z, m), z, length),
                    (t, stop),
                    z,
                    method=method,
                    rtol=precision.rtol,
                    atol=max(atol, 0.01 * precision.rtol) if atol > 1e-14 else atol,
                    dense_output=True,
                    events=functions or None,
                    max_step=abs(t_end - span[0]) / 100 if functions else np.inf,
                )
            if run.status < 0 or not np.isfinite(run.y).all():
                raise Unusable(f"no reference: {run.message}")
            if len(run.t) > 60000:
                raise Unusable("long reference")
            t_new = run.t[-1]
            pieces.append(
                Piece(
                    t,
                    t_new,
                    lambda x, s=run.sol, m=mode, i=inside: np.asarray(out(i(x), s(x), m), float),
                )
            )
            z, t = run.y[:, -1], t_new
            if run.status == 1:
                which = next(k for k, found in enumerate(run.t_events) if len(found))
                z, mode = watched[which].act(t, z.copy(), mode)
                sequence.append((which, mode))
        if at_break is not None and stop != t_end:
            mode = at_break(t, z, mode)
    return Trajectory(pieces, sequence)


def of_function(values, span, breaks=()):
    """A trajectory that is known as a formula."""
    t0, t1 = span
    inner = [b for b in breaks if min(t0, t1) < b < max(t0, t1)]
    knots = [t0, *sorted(inner, reverse=t1 < t0), t1]
    return Trajectory([Piece(a, b, values) for a, b in pairwise(knots)])


class LinearPencil:
    """Exact solution of E x' + A x = F w with w' = S w, for any index.

    In the range of the powers of (lambda E + A)^-1 E the equations are an ordinary system.
    """

    def __init__(self, e, a, f, s):
        n, m = len(e), len(s)
        whole = np.zeros((n + m, n + m))
        rest = np.zeros((n + m, n + m))
        whole[:n, :n], whole[n:, n:] = e, np.eye(m)
        rest[:n, :n], rest[:n, n:], rest[n:, n:] = a, -f, -s
        shift = 1.37
        both = shift * whole + rest
        if np.linalg.cond(both) > 1e8:
            raise Unusable("nearly singular pencil")
        hat = np.linalg.solve(both, whole)
        power, rank = np.eye(n + m), n + m
        for _ in range(n + m):
            power = power @ hat
            singular = np.linalg.svd(power, compute_uv=False)
            new = int(np.sum(singular > 1e-9 * singular[0]))
            if np.any((singular > 1e-12 * singular[0]) & (singular < 1e-6 * singular[0])):
                raise Unusable("unclear rank")
            if new == rank:
                break
            rank = new
        self.basis = orth(power, rcond=1e-9)
        if self.basis.shape[1] != rank:
            raise Unusable("unclear rank")
        inner = self.basis.T @ hat @ self.basis
        other = np.eye(rank) - shift * inner
        self.rate = -np.linalg.solve(inner, other)
        if np.abs(np.linalg.eigvals(self.rate)).max() > 500:
            raise Unusable("very fast")
        self.n, self.rank = n, rank

    def free(self, w0):
        """An affine family of consistent starts: offset and directions of x."""
        lower = self.basis[self.n :]
        offset = np.linalg.lstsq(lower, w0, rcond=None)[0]
        _, sv, vt = np.linalg.svd(lower)
        return offset, vt[int(np.sum(sv > 1e-10)) :].T

    def start(self, coordinates):
        return (self.basis @ coordinates)[: self.n]

    def solution(self, coordinates, t0):
        def values(t):
            return (self.basis @ (expm(self.rate * (t - t0)) @ coordinates))[: self.n]

        return values
