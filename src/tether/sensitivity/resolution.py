"""Resolution: whether the steps of a run are short enough for its tangents.

Steps are chosen for the solution. Where it is at rest they become long, whatever its tangents do: a
pendulum that hangs still does not show how fast it would swing. So in every step the tangents are
compared with what the steps before predict for them, math (39).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tether._core import point_shares
from tether.sensitivity.route import PAST, Path

__all__ = ["Resolution", "is_at_rest", "stands_still"]

# A step does not resolve a tangent if the prediction errs by more than this share of it ...
UNRESOLVED = 0.1
# ... and, once steps are limited for that reason, by more than this many rtol.
UNRESOLVED_IF_LIMITED = 1.0
# A tangent has died away if it is below this share of its largest value.
DIED_AWAY = 1e-3
# Share of the time that unresolved steps may take up, as where fast modes die away at first.
UNRESOLVED_TIME = 0.1
# Shorter steps aim at this share of the allowed error ...
TARGET_ERROR = 0.3
# ... but a step is not shortened to less than this share of itself when the run is repeated.
MIN_STEP_RATIO = 0.03
# Steps are not limited to less than this share of the time of the run.
MIN_STEP = 5e-5
# Where the error of a step is a smaller share of the tolerance, it is not what limited the step.
AT_REST = 1e-3
# Stands in for a unit of zero.
TINY = 1e-300
# Number of steps of a leg that are examined to find out whether its solution is at rest.
SAMPLES = 16


@dataclass(eq=False)
class Resolution:
    """How well the steps of a run resolve its tangents.

    Attributes
    ----------
    rtol, atol : ndarray, shape (n,)
        Tolerances of the user's unknowns.
    sizes : ndarray, shape (parameters,)
        Sizes of the parameters, by which absolute tolerances are divided.
    tested : bool
        Whether errors of tangents must stay within the tolerances.
    limited : bool
        Whether the steps were limited because of the tangents.
    worst : float
        The largest error of a step, in tolerances, if `tested`.
    """

    rtol: np.ndarray
    atol: np.ndarray
    sizes: np.ndarray
    tested: bool = False
    limited: bool = False
    worst: float = 0.0

    def __post_init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Prepare for another run."""
        self.worst, self._time = 0.0, 0.0
        self._coarse: list[np.ndarray] = []    # rows: lengths of unresolved steps, wanted lengths
        self._asked: list[np.ndarray] = []     # rows: beginnings of steps, their largest lengths
        self._largest = np.zeros((len(self.rtol), len(self.sizes)))

    def take(self, other: Resolution) -> None:
        """Take over what was found about the steps with other parameters."""
        self._time, self._coarse = other._time, other._coarse
        self.worst, self._asked = other.worst, other._asked

    @np.errstate(invalid="ignore", over="ignore")      # tangents may be infinite
    def look(
        self, path: Path, s: np.ndarray, changes: np.ndarray, first: int, last: int
    ) -> None:
        """Check some steps of a leg, by the tangents after them and the errors of prediction."""
        n = len(self.rtol)
        tested = np.arange(n)
        if path.linear.model.multipliers is not None:
            tested = np.flatnonzero(path.linear.model.multipliers[:n] == 0)
        times = path.t[PAST + first : PAST + last + 1]
        h, order = np.abs(np.diff(times)), path.order[first:last]
        values = np.abs(s[PAST:, tested])
        error = np.abs(changes[:, tested]) / (order + 1.0)[:, None, None]
        largest = np.maximum.accumulate(
            np.concatenate([self._largest[None, tested], values]), axis=0
        )[1:]
        self._largest[tested] = largest[-1]
        # a tangent by which a parameter changes y only within its tolerance is negligible
        y = np.abs(path.y[:, tested]).max(axis=0)
        floor = (self.rtol[tested] * y + self.atol[tested])[:, None] / self.sizes
        unit = np.maximum(np.maximum(largest, floor), TINY)
        size = np.maximum((values / unit).max(axis=1, initial=0.0), DIED_AWAY)
        ratio = ((error / unit).max(axis=1, initial=0.0) / size).max(axis=1, initial=0.0)
        smallest = float(self.rtol.min(initial=UNRESOLVED / UNRESOLVED_IF_LIMITED))
        allowed = UNRESOLVED_IF_LIMITED * smallest if self.limited else 1.0
        allowed = min(allowed, UNRESOLVED)
        coarse = ratio > allowed
        if self.tested:
            within = self.rtol[tested, None] * values + self.atol[tested, None] / self.sizes
            ratio = (error / np.maximum(within, TINY)).max(axis=(1, 2), initial=0.0)
            self.worst = max(self.worst, float(ratio.max(initial=0.0)))
            share = (TARGET_ERROR / np.maximum(ratio, TINY)) ** (1.0 / (order + 1.0))
            share = np.maximum(share, MIN_STEP_RATIO)
            longest = np.where(ratio > TARGET_ERROR, h * share, np.inf)
            self._asked.append(np.array([times[:-1], longest]))
            return
        self._time += float(h.sum())
        share = (TARGET_ERROR * allowed / np.maximum(ratio, TINY)) ** (1.0 / (order + 1.0))
        self._coarse.append(np.array([h[coarse], (h * share)[coarse]]))

    def ceilings(
        self, before: tuple[np.ndarray, np.ndarray] | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """How long steps may be, from which times on; `before` are the ceilings of this run."""
        t, h = np.concatenate(self._asked, axis=1)
        if before is not None:
            direction = 1.0 if t[-1] >= t[0] else -1.0
            rows = np.searchsorted(direction * before[0], direction * t, side="right") - 1
            h = np.minimum(h, np.where(rows >= 0, before[1][np.maximum(rows, 0)], np.inf))
        return np.ascontiguousarray(t), np.ascontiguousarray(h)

    @property
    def wanted_step(self) -> float | None:
        """How long steps may be at most; None if those taken are short enough.

        A small part of the time may pass in steps that are longer.
        """
        if not self._coarse:
            return None
        lengths, wanted = np.concatenate(self._coarse, axis=1)
        if lengths.sum() <= UNRESOLVED_TIME * self._time:
            return None
        order = np.argsort(wanted)
        passed = np.cumsum(lengths[order])
        chosen = wanted[order][np.searchsorted(passed, 0.5 * UNRESOLVED_TIME * self._time)]
        return max(float(chosen), MIN_STEP * self._time)


def is_at_rest(paths: Sequence[Path], rtol: np.ndarray, atol: np.ndarray) -> bool:
    """Whether the errors of the solution say little about how long steps may be.

    That is so where it hardly changes, or changes just as its polynomials do, for a good part of
    the time; otherwise its steps are short enough for the tangents, too.
    """
    resting, total = 0.0, 0.0
    for path in paths:
        time = abs(path.t[-1] - path.t[PAST])
        total += time
        if path.steps <= 2 * PAST:
            resting += time
            continue
        stride = max(1, (path.steps - PAST) // SAMPLES)
        resting += point_shares.quiet_time(
            path.t, path.y, path.order, path.predictor, rtol, atol, stride, AT_REST
        )
    return resting > UNRESOLVED_TIME * total


def stands_still(paths: Sequence[Path]) -> bool:
    """Whether no unknown changes at all for a good part of the time.

    No error shows then how long steps may be.
    """
    still, total = 0.0, 0.0
    for path in paths:
        h = np.abs(np.diff(path.t[PAST:]))
        still += float(h[np.all(path.y[1:] == path.y[:-1], axis=1)].sum())
        total += float(h.sum())
    return still > UNRESOLVED_TIME * total
