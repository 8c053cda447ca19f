"""Random systems that switch with time and with their unknowns, and slide, against a reference.

The reference is SciPy's Radau on equations in which every jump is a steep tangent: where a solution
slides it does so in a layer of that width. It knows nothing of surfaces.
"""

import warnings
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.integrate import solve_ivp

from tether import solve_dae

WIDTH = 1e-7                   # of the layer
SPAN = 4.0
TOLERANCE = 1e-7
SECONDS = 10.0
ALLOWED = 1e-4                 # of the largest value: the layer and the reference cost digits too

# u(s) as the function has it, and as the reference has it.
KINDS = {
    "sign": (lambda s: np.sign(s), lambda s: np.tanh(s / WIDTH)),
    "if": (lambda s: 1.0 if s > 0 else -0.4, lambda s: 0.3 + 0.7 * np.tanh(s / WIDTH)),
    "where": (lambda s: np.where(s <= 0, 0.5, -1.0), lambda s: -0.25 - 0.75 * np.tanh(s / WIDTH)),
    "max": (lambda s: np.maximum(s, 0.0), lambda s: max(s, 0.0)),
    "clip": (lambda s: np.clip(3 * s, -1, 1), lambda s: float(np.clip(3 * s, -1, 1))),
    "abs": (lambda s: abs(s), abs),
}


@dataclass
class Case:
    """One system: y' = A y - B u(C y - d, t) + F sin(w t) + pulses, with u written out or not."""

    a: np.ndarray
    b: np.ndarray
    c: np.ndarray
    d: np.ndarray
    kinds: list[str]
    force: np.ndarray
    rate: float
    pulse: tuple[float, float]
    order: list[int]
    algebraic: bool
    start: np.ndarray

    def switched(self, t, y, which):
        n = len(self.force)
        return [
            KINDS[kind][which](sum(self.c[j, i] * y[i] for i in range(n)) - self.d[j])
            for j, kind in enumerate(self.kinds)
        ]

    def slopes(self, t, y, u):
        n, period, duty = len(self.force), *self.pulse
        on = 1.0 if t % period < duty * period else 0.0
        return [
            self.force[i] * np.sin(self.rate * t) + 0.5 * on
            + sum(self.a[i, k] * y[k] for k in range(n))
            - sum(self.b[i, j] * u[j] for j in range(len(u)))
            for i in range(n)
        ]

    def residual(self, t, y, yp):
        """Equations as a user writes them, in some order of the unknowns."""
        n, m = len(self.force), len(self.kinds)
        x = [y[k] for k in self.order[:n]]
        slopes = [yp[k] for k in self.order[:n]]
        inner = self.switched(t, x, 0)
        if not self.algebraic:
            return [p - f for p, f in zip(slopes, self.slopes(t, x, inner), strict=True)]
        u = [y[k] for k in self.order[n : n + m]]
        return [p - f for p, f in zip(slopes, self.slopes(t, x, u), strict=True)] + [
            u[j] - inner[j] for j in range(m)
        ]

    def y0(self):
        values = np.zeros(len(self.order))
        values[self.order[: len(self.start)]] = self.start
        return values

    def reference(self):
        """Integrate from edge to edge of the pulses."""
        period, duty = self.pulse
        edges = np.concatenate([np.arange(0.0, SPAN, period), np.arange(0.0, SPAN, period)
                                + duty * period, [0.0, SPAN]])
        edges = np.unique(edges[edges <= SPAN])
        y = self.start
        for a, b in pairwise(edges):
            middle = 0.5 * (a + b)
            on = 1.0 if middle % period < duty * period else 0.0

            def smooth(t, y, on=on):
                u = self.switched(t, y, 1)
                slopes = self.force * np.sin(self.rate * t) + 0.5 * on
                return slopes + self.a @ y - self.b @ u

            found = solve_ivp(smooth, (a, b), y, method="Radau", rtol=1e-8, atol=1e-10)
            if not found.success:
                return None
            y = found.y[:, -1]
        return y


def make(seed, number):
    """Make one system."""
    rng = np.random.default_rng((seed, number))
    n, m = int(rng.integers(1, 5)), int(rng.integers(1, 4))
    algebraic = bool(rng.integers(0, 2))
    size = n + m if algebraic else n
    return Case(
        a=rng.normal(size=(n, n)) - rng.uniform(1.0, 2.5) * np.eye(n),
        b=rng.normal(size=(n, m)) * rng.choice([0.3, 1.0, 2.0]),
        c=rng.normal(size=(m, n)), d=0.5 * rng.normal(size=m),
        kinds=rng.choice(list(KINDS), size=m, p=[0.3, 0.2, 0.2, 0.1, 0.1, 0.1]).tolist(),
        force=rng.normal(size=n), rate=float(rng.uniform(0.5, 3.0)),
        pulse=(float(rng.uniform(0.3, 6.0)), float(rng.uniform(0.02, 0.9))),
        order=rng.permutation(size).tolist(), algebraic=algebraic, start=1.5 * rng.normal(size=n),
    )


@dataclass
class Found:
    """How one went: "ok", "wrong", "failed" or "skipped", and in words."""

    kind: str
    text: str = ""
    steps: int = 0


def run(seed, number):
    """Solve one system and compare it with its reference."""
    case = make(seed, number)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sol = solve_dae(
            case.residual, (0.0, SPAN), case.y0(), rtol=TOLERANCE, atol=0.1 * TOLERANCE,
            options={"max_seconds": SECONDS},
        )
        truth = case.reference()
    if truth is None or not np.all(np.isfinite(truth)):
        return Found("skipped")
    if not sol.success:
        return Found("failed", f"{case.kinds}: {sol.message}", sol.stats.steps)
    off = np.abs(sol.y[case.order[: len(truth)], -1] - truth).max()
    if off > ALLOWED * (1.0 + np.abs(truth).max()):
        return Found("wrong", f"{case.kinds}: off by {off:.3g}; {sol.how}", sol.stats.steps)
    return Found("ok", sol.how, sol.stats.steps)
