"""Random systems that switch with time and with their unknowns, and slide, against references.

The references (`fuzz_switches.exact`) come from another integrator, which is restarted at every
switch and holds the solution on a surface where both sides point at it.
"""

import warnings
from dataclasses import dataclass

import numpy as np

from fuzz_switches.exact import NoReference, references
from tether import solve_dae

SPAN = 4.0
TIMES = np.linspace(0.0, SPAN, 41)[1:]     # at which solutions are compared
TOLERANCE = 1e-7
SECONDS = 10.0
ALLOWED = 100.0                # tolerances

# u(s)
KINDS = {
    "sign": lambda s: np.sign(s),
    "if": lambda s: 1.0 if s > 0 else -0.4,
    "where": lambda s: np.where(s <= 0, 0.5, -1.0),
    "max": lambda s: np.maximum(s, 0.0),
    "clip": lambda s: np.clip(3 * s, -1, 1),
    "abs": lambda s: abs(s),
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

    def switched(self, y):
        n = len(self.force)
        return [
            KINDS[kind](sum(self.c[j, i] * y[i] for i in range(n)) - self.d[j])
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
        inner = self.switched(x)
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
    """How one went: "ok", "wrong", "failed" or "skipped", in words, and its largest error."""

    kind: str
    text: str = ""
    steps: int = 0
    error: float = 0.0


def run(seed, number):
    """Solve one system and compare it with its references, at many times and in tolerances."""
    case = make(seed, number)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sol = solve_dae(
            case.residual, (0.0, SPAN), case.y0(), rtol=TOLERANCE, atol=0.1 * TOLERANCE,
            dense_output=True, options={"max_seconds": SECONDS},
        )
    if not sol.success:
        return Found("failed", f"{case.kinds}: {sol.message}", sol.stats.steps)
    try:
        truths = references(case, TIMES)
    except NoReference as reason:
        return Found("skipped", str(reason), sol.stats.steps)
    error = min(_error(sol, case, truth) for truth in truths)
    if not error <= ALLOWED:
        text = f"{case.kinds}: off by {error:.3g} tolerances; {sol.how}"
        return Found("wrong", text, sol.stats.steps, error)
    return Found("ok", sol.how, sol.stats.steps, error)


def _error(sol, case, truth):
    found = sol(TIMES)[0][case.order[: truth.shape[1]]].T
    tolerance = TOLERANCE * (1.0 + np.abs(truth).max(axis=1))
    return float((np.abs(found - truth).max(axis=1) / tolerance).max())
