"""Profile of a parameter: the best fits with the parameter held at other values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tether.base.optional import as_label, load_pyplot
from tether.fitting.search import Found, Search
from tether.fitting.spread import Spread

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Profile", "profile_of"]

# Relative accuracy of an end of an interval, in standard errors.
END_TOLERANCE = 1e-3
# Largest number of fits to find an end.
MAX_TRIALS = 20
# Steps outwards grow at most by the first factor. An interval is open if it has no end within the
# second number times the distance by standard errors or, for a logarithm, within the third.
MAX_GROWTH, MAX_DISTANCE, MAX_LOG_DISTANCE = 3.0, 30.0, np.log(1e6)
FITS_INSIDE = 3                                # number of fits between the best one and an end


@dataclass(frozen=True, eq=False)
class Profile:
    """The best fits with one parameter held at other values.

    Attributes
    ----------
    name : str
        The parameter.
    values, chi2 : ndarray
        Its values, in order, and the smallest sum of squares for each.
    p : ndarray, shape (values, parameters)
        All parameters of these fits.
    interval : tuple of float
        Values of the parameter outside of which the sum of squares is so large that they are
        excluded at the level asked for. An end is infinite if it is never so large, and the bound
        if that comes first.
    limit : float
        The sum of squares at the ends.
    level : float
        Probability of the interval.
    """

    name: str
    values: np.ndarray
    chi2: np.ndarray
    p: np.ndarray
    interval: tuple[float, float]
    limit: float
    level: float

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.name}: {low:.5g} to {high:.5g} at {100 * self.level:g} %"

    def plot(self, ax: Any = None) -> Figure:
        """Plot the sum of squares over the parameter; needs matplotlib."""
        pyplot = load_pyplot()
        if ax is None:
            _, ax = pyplot.subplots(figsize=(5.0, 3.5), layout="constrained")
        ax.plot(self.values, self.chi2, "o-", markersize=4)
        ax.axhline(self.limit, color="gray", linestyle="--", linewidth=1)
        ax.set(xlabel=as_label(self.name), ylabel="chi2")
        ax.grid(alpha=0.3)
        return ax.figure


def profile_of(search: Search, found: Found, spread: Spread, k: int, level: float) -> Profile:
    """Refit with parameter k fixed at other values until the sum of squares has risen enough."""
    far = spread.quantile(level)
    walk = _Walk(search, found, spread, k, far)
    ends = (walk.end(-1.0), walk.end(1.0))
    points = sorted(walk.points, key=lambda point: point[0])
    return Profile(
        search.sought.names[k], np.array([value for value, _, _ in points]),
        np.array([loss for _, loss, _ in points]), np.array([p for _, _, p in points]), ends,
        found.loss + far**2 * spread.variance, level,
    )


class _Walk:
    """Moves outwards from the best fit in x, which is the parameter or its logarithm."""

    def __init__(
        self, search: Search, found: Found, spread: Spread, k: int, far: float
    ) -> None:
        self.search, self.found, self.k, self.far = search, found, k, far
        self.variance = spread.variance
        self.free = np.arange(len(found.p)) != k
        self.points = [(float(found.p[k]), found.loss, found.p)]
        self.x = search.sought.x_of(found.p)[k]
        slopes = search.sought.slopes(found.p)
        error = np.sqrt(spread.covariance[k, k]) / slopes[k]
        unit = 1.0 if search.sought.log[k] else abs(self.x) or 1.0
        with np.errstate(invalid="ignore"):
            shares = spread.covariance[:, k] / spread.covariance[k, k] * slopes[k] / slopes
        self.follow = np.where(np.isfinite(shares), shares, 0.0)
        self.error = error if 0.0 < error < np.inf else 0.1 * unit
        self.farthest = MAX_DISTANCE * far * self.error
        if search.sought.log[k]:
            self.farthest = min(self.farthest, MAX_LOG_DISTANCE)

    def end(self, side: float) -> float:
        """Find the end of the interval on one side."""
        sought, k = self.search.sought, self.k
        low, high = sought.x_bounds()
        bound = (high[k] - self.x) if side > 0 else (self.x - low[k])
        most = min(bound, self.farthest)
        inner, outer = (0.0, 0.0), None        # distance, and standard errors by the rise there
        p, distance = self.found.p, min(self.far * self.error, most)
        for share in np.arange(1, FITS_INSIDE + 1) / (FITS_INSIDE + 1):
            errors, p = self._try(side * share * distance, p)
            if errors < self.far:
                inner = (share * distance, errors)
        for _ in range(MAX_TRIALS):
            errors, p = self._try(side * distance, p)
            if abs(errors / self.far - 1.0) < END_TOLERANCE:
                return self._value(side * distance)
            if errors > self.far:
                outer = (distance, errors)
            elif distance < most:
                inner = (distance, errors)
            else:
                return self._value(side * bound) if most == bound else self._open(side)
            distance = min(self._next(inner, outer), most)
        return self._value(side * inner[0])

    def _next(
        self, inner: tuple[float, float], outer: tuple[float, float] | None
    ) -> float:
        """Choose the next distance: standard errors are nearly linear in the distance."""
        (a, u) = inner
        if outer is None:
            ahead = a * self.far / u if u > 0.0 else np.inf
            return min(1.05 * ahead, MAX_GROWTH * a)
        b, v = outer
        if not np.isfinite(v):
            return 0.5 * (a + b)
        share = (self.far - u) / (v - u)
        return a + (b - a) * float(np.clip(share, 0.05, 0.95))

    def _value(self, change: float) -> float:
        x = self.search.sought.x_of(self.found.p)
        x[self.k] += change
        return float(self.search.sought.p_of(x)[self.k])

    def _open(self, side: float) -> float:
        if side < 0 and self.search.sought.log[self.k]:
            return 0.0
        return side * np.inf

    def _try(self, change: float, p: np.ndarray) -> tuple[float, np.ndarray]:
        """Refit at some distance; return the rise of the loss in standard errors, and the fit."""
        sought, k = self.search.sought, self.k
        x = sought.x_of(p)
        x += (self.x + change - x[k]) * self.follow            # move the others as expected
        start = np.clip(sought.p_of(x), sought.low, sought.high)
        start[k] = self._value(change)
        ended = self.search.run(start, self.free)
        if not np.isfinite(ended.loss):
            return np.inf, p
        self.points.append((float(ended.p[self.k]), ended.loss, ended.p))
        rise = max(ended.loss - self.found.loss, 0.0) / self.variance
        return float(np.sqrt(rise)), ended.p
