"""Resolution: whether the steps of a run are short enough for its tangents.

Steps are chosen for the solution. Where that is at rest they become long, whatever its tangents do:
a pendulum that hangs still says nothing about how fast it would swing. So the tangents of every
run are compared with what the steps before predict for them, math (39).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tether._core import replay
from tether.sensitivity.route import PAST, Path

__all__ = ["Resolution", "is_at_rest"]

# Of the size of a tangent: a step that makes more of it than was predicted has not resolved it ...
UNRESOLVED = 0.1
# ... and once steps are limited for that, so much is allowed, times rtol.
FINE = 1.0
# Of its largest value: a tangent below this has died away.
DIED_AWAY = 1e-3
# Of a run: so much of its time may pass in such steps, as where fast modes die away at first.
MAY_PASS = 0.1
# Of the error: what shorter steps aim at.
AIM = 0.3
# ... but a step becomes this share of itself at least, when the run is repeated.
LEAST_SHARE = 0.03
# Of the time of a run: steps are not limited to less.
SHORTEST = 5e-5
# Of the tolerance: where a step errs by less, something else than the error has made it so long.
AT_REST = 1e-3
# So many steps of a leg are looked at to tell whether its solution is at rest.
LOOKS = 16


@dataclass(eq=False)
class Resolution:
    """What the steps of a run make of its tangents.

    Attributes
    ----------
    rtol, atol : ndarray, shape (n,)
        Tolerances of the user's unknowns.
    sizes : ndarray, shape (parameters,)
        Sizes of the parameters: absolute tolerances are divided by them.
    tested : bool
        Whether the errors are to stay within the tolerances.
    limited : bool
        Whether the steps were limited for the sake of tangents.
    worst : float
        The largest error of a step, in tolerances, if that is asked for.
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
        """Look at another run."""
        self.worst, self._time = 0.0, 0.0
        self._coarse: list[np.ndarray] = []    # rows: lengths of steps, and what they should be
        self._asked: list[np.ndarray] = []     # rows: where steps begin, and how long they may be
        self._largest = np.zeros((len(self.rtol), len(self.sizes)))

    def take(self, other: Resolution) -> None:
        """Take over what another one has found about steps, by other parameters."""
        self._time, self._coarse = other._time, other._coarse
        self.worst, self._asked = other.worst, other._asked

    def look(
        self, path: Path, s: np.ndarray, changes: np.ndarray, first: int, last: int
    ) -> None:
        """Look at some steps of a leg: the tangents behind them and what was not predicted."""
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
        # what a tolerance of y would be changed by is nothing
        y = np.abs(path.y[:, tested]).max(axis=0)
        floor = (self.rtol[tested] * y + self.atol[tested])[:, None] / self.sizes
        unit = np.maximum(largest, floor)
        size = np.maximum((values / unit).max(axis=1, initial=0.0), DIED_AWAY)
        ratio = ((error / unit).max(axis=1, initial=0.0) / size).max(axis=1, initial=0.0)
        allowed = FINE * float(self.rtol.min(initial=UNRESOLVED / FINE)) if self.limited else 1.0
        allowed = min(allowed, UNRESOLVED)
        coarse = ratio > allowed
        if self.tested:
            within = self.rtol[tested, None] * values + self.atol[tested, None] / self.sizes
            ratio = (error / within).max(axis=(1, 2), initial=0.0)
            self.worst = max(self.worst, float(ratio.max(initial=0.0)))
            share = (AIM / np.maximum(ratio, 1e-300)) ** (1.0 / (order + 1.0))
            share = np.maximum(share, LEAST_SHARE)
            self._asked.append(np.array([times[:-1], np.where(ratio > AIM, h * share, np.inf)]))
            return
        self._time += float(h.sum())
        share = (AIM * allowed / np.maximum(ratio, 1e-300)) ** (1.0 / (order + 1.0))
        self._coarse.append(np.array([h[coarse], (h * share)[coarse]]))

    def ceilings(
        self, before: tuple[np.ndarray, np.ndarray] | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """How long steps may be, and from which times on; `before` is what was so in this run."""
        t, h = np.concatenate(self._asked, axis=1)
        if before is not None:
            direction = 1.0 if t[-1] >= t[0] else -1.0
            rows = np.searchsorted(direction * before[0], direction * t, side="right") - 1
            h = np.minimum(h, np.where(rows >= 0, before[1][np.maximum(rows, 0)], np.inf))
        return np.ascontiguousarray(t), np.ascontiguousarray(h)

    @property
    def wanted_step(self) -> float | None:
        """How long steps may be at most; None if those at hand do.

        A small part of the time may pass in steps that are too long all the same.
        """
        if not self._coarse:
            return None
        lengths, wanted = np.concatenate(self._coarse, axis=1)
        if lengths.sum() <= MAY_PASS * self._time:
            return None
        order = np.argsort(wanted)
        passed = np.cumsum(lengths[order])
        chosen = wanted[order][np.searchsorted(passed, 0.5 * MAY_PASS * self._time)]
        return max(float(chosen), SHORTEST * self._time)


def is_at_rest(paths: Sequence[Path], rtol: np.ndarray, atol: np.ndarray) -> bool:
    """Whether the errors of the solution say little about how long steps may be.

    That is so where it hardly changes, or changes as its polynomials do, for a good part of the
    time; otherwise its steps do for the tangents, too.
    """
    resting, total = 0.0, 0.0
    for path in paths:
        time = abs(path.t[-1] - path.t[PAST])
        total += time
        if path.steps <= 2 * PAST:
            resting += time
            continue
        stride = max(1, (path.steps - PAST) // LOOKS)
        resting += replay.quiet_time(
            path.t, path.y, path.order, path.predictor, rtol, atol, stride, AT_REST
        )
    return resting > MAY_PASS * total
