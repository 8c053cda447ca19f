"""Random systems with breaks, kinks, switches and events, in any units and any order."""

from dataclasses import dataclass

import numpy as np
import pytest
from support.derivatives import differences

from tether import solve_dae, vjp

WANTED = ["args", "y0[{}]"]


@dataclass
class Case:
    """A system of n unknowns and perhaps a multiplier, in units `unit`, in the order `order`."""

    seed: int

    def __post_init__(self):
        rng = np.random.default_rng(self.seed)
        self.n, self.m = int(rng.integers(2, 5)), int(rng.integers(0, 2))
        size = self.n + self.m
        self.index = 1 + int(rng.integers(0, 2))
        self.a = rng.standard_normal((self.n, self.n)) - 1.5 * np.eye(self.n)
        self.b, self.c, self.force = rng.standard_normal((3, self.n))
        self.args = tuple(rng.uniform([0.5, 0.2, 0.4, -0.3], [1.5, 0.9, 1.6, 0.3]).tolist())
        self.kinds = rng.permutation(["break", "kink", "switch", "event", "look"])[:2].tolist()
        self.unit = 10.0 ** rng.integers(-4, 5, size)
        self.order, self.rows = rng.permutation(size), rng.permutation(size)
        self.place = np.argsort(self.order)
        self.y0 = (rng.standard_normal(size) * self.unit)[self.order]
        self.t_eval = np.sort(rng.uniform(0.1, 1.5, 4))

    def plain(self, y):
        """Return the unknowns in plain units and order."""
        return [y[self.place[j]] / self.unit[j] for j in range(self.n + self.m)]

    def residual(self, t, y, yp, a, c, ts, q):
        n, x, xp = self.n, self.plain(y), self.plain(yp)
        found = []
        for i in range(n):
            right = a * sum(self.a[i, j] * x[j] for j in range(n)) + self.b[i] * np.sin(3 * t)
            if self.m:
                right = right + self.force[i] * x[n]
            if i == 0 and "break" in self.kinds:
                right = right + (c if t < ts else -0.5 * a) * x[1]
            if i == 1 and "kink" in self.kinds:
                right = right + c * np.abs(x[0] - q)
            if i == 0 and "switch" in self.kinds:
                right = right + (a if x[1] - 0.3 * x[0] > q else -c)
            found.append(xp[i] - right)
        if self.m:
            held = sum(self.c[j] * x[j] for j in range(n)) - c * np.cos(t * a)
            found.append(held + (x[n] if self.index == 1 else 0.0))
        return [found[i] for i in self.rows]

    def events(self):
        found = []
        if "event" in self.kinds:
            def hit(t, y, yp, a, c, ts, q):
                x = self.plain(y)
                return x[0] + 0.5 * x[1] * a - q - 0.4 * np.sin(2 * t)

            def change(t, y, yp, a, c, ts, q):
                x = self.plain(y)
                x[0], x[1] = x[0] + 0.6 * c, x[1] * (1 - c) + 0.2 * a
                return [x[j] * self.unit[j] for j in self.order]

            hit.apply, hit.direction = change, -1
            found.append(hit)
        if "look" in self.kinds:
            found.append(lambda t, y, yp, a, c, ts, q: self.plain(yp)[0] + 0.5 * q * a)
        return found or None

    def run(self, args, y0, tolerance, **more):
        return solve_dae(
            self.residual, (0, 1.5), y0, args=tuple(args), t_eval=self.t_eval, start="quiet",
            events=self.events(), rtol=tolerance, atol=0.01 * tolerance * self.unit[self.order],
            **more,
        )


@pytest.mark.parametrize("seed", range(12))
def test_random_systems(seed):
    case = Case(seed)
    j = int(case.place[0])
    names = [*(name.format(j) for name in WANTED)]
    sol = case.run(case.args, case.y0, 1e-8, sensitivity=names)
    assert sol.success

    def values(x):
        y0 = case.y0.copy()
        y0[j] = case.y0[j] * x[4]
        return case.run(x[:4], y0, 1e-11).y / case.unit[case.order][:, None]

    x = [*case.args, 1.0]
    right, again = (differences(values, x, step) for step in (1e-5, 3e-5))
    found = sol.sens / case.unit[case.order][:, None]
    found[4] *= case.y0[j]
    size = np.abs(right).max(axis=(1, 2), keepdims=True) + 1e-2
    doubt = np.abs(right - again) / size       # of the differences themselves
    error = np.abs(found - right) / size
    assert np.all(error < 2e-5 + 20 * doubt)
    assert np.median(doubt) < 1e-4

    _, pullback = vjp(
        case.residual, (0, 1.5), case.y0, args=case.args, t_eval=case.t_eval, start="quiet",
        events=case.events(), rtol=1e-8, atol=1e-10 * case.unit[case.order], wrt=names,
    )
    weights = np.random.default_rng(seed).standard_normal(sol.y.shape)
    weights /= case.unit[case.order][:, None]
    terms = np.einsum("nt,pnt->p", np.abs(weights), np.abs(sol.sens))
    back = np.abs(pullback(weights) - np.einsum("nt,pnt->p", weights, sol.sens))
    assert np.all(back < 1e-10 * terms + 1e-16 * terms.max())


@pytest.mark.parametrize("seed", [52, 115, 116])
def test_shorter_steps_through_kinks(seed):
    """Where a kink is nothing for a short step of the solution, it is one for its derivatives."""
    case = Case(seed)
    names = [*(name.format(int(case.place[0])) for name in WANTED)]
    unit = case.unit[case.order][:, None]

    def sens(tolerance, **options):
        sol = case.run(case.args, case.y0, tolerance, sensitivity=names, options=options)
        assert sol.success
        return sol.sens / unit

    right = sens(1e-11)
    size = np.abs(right).max(axis=(1, 2), keepdims=True) + 1e-3
    for tested in (False, True):
        assert np.max(np.abs(sens(1e-6, sensitivity_test=tested) - right) / size) < 3e-6
