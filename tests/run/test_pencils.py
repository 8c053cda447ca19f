"""Random linear systems with constant coefficients, of index 0 to 3, against exact solutions.

They come from their canonical forms, equations and unknowns mixed at random: a run is right, or it
says what it cannot do.
"""

import numpy as np
import pytest
from support.pencils import well_conditioned

from tether import solve_dae
from tether.explain.causes import Cause


class Mixed:
    """x' + diag(a) x = f and N z' + z = f, f = sines, as E y' + A y = P f(t)."""

    def __init__(self, seed, index):
        rng = np.random.default_rng([seed, index])
        self.states = int(rng.integers(1, 4))
        self.blocks = [index, *rng.integers(1, index + 1, rng.integers(0, 2))] if index else []
        n = self.n = self.states + sum(self.blocks)
        self.decay = rng.uniform(0.2, 3.0, self.states)
        self.size, self.speed, self.phase = rng.uniform([[0.3], [0.5], [0]], [[1.5], [4], [6]],
                                                        (3, n))
        self.x0 = rng.standard_normal(self.states)
        E, A = np.eye(n), np.eye(n)
        A[: self.states, : self.states] = np.diag(self.decay)
        first = self.states
        for k in self.blocks:
            E[first : first + k, first : first + k] = np.eye(k, k=1)
            first += k
        self.P, Q = well_conditioned(rng, n, 30.0), well_conditioned(rng, n, 30.0)
        self.condition, self.back = np.linalg.cond(Q), np.linalg.inv(Q)
        self.E, self.A = self.P @ E @ Q, self.P @ A @ Q

    def force(self, t, order=0):
        turned = self.speed * t + self.phase + order * np.pi / 2
        return self.size * self.speed**order * np.sin(turned)

    def residual(self, t, y, yp):
        return self.E @ yp + self.A @ y - self.P @ self.force(t)

    def forced(self, t):
        a, w = self.decay, self.speed[: self.states]
        waves = a * self.force(t)[: self.states] - self.force(t, 1)[: self.states]
        return waves / (a**2 + w**2)

    def values(self, t, order=0):
        """The solution, or its first derivative."""
        z = np.zeros(self.n)
        x = self.forced(t) + (self.x0 - self.forced(0.0)) * np.exp(-self.decay * t)
        z[: self.states] = x if order == 0 else self.force(t)[: self.states] - self.decay * x
        first = self.states
        for k in self.blocks:
            for i in range(k):
                z[first + i] = sum(
                    (-1) ** m * self.force(t, m + order)[first + i + m] for m in range(k - i)
                )
            first += k
        return self.back @ z

    def error(self, sol, rtol):
        """Largest error in tolerances."""
        exact = np.array([self.values(t) for t in sol.t]).T
        return np.max(np.abs(sol.y - exact) / (rtol * (1 + np.abs(exact).max(axis=0))))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("index", [0, 1, 2, 3])
@pytest.mark.parametrize("rtol", [1e-4, 1e-6])
@pytest.mark.parametrize("trace", ["auto", "never"])
def test_mixed_systems_are_right_or_refused(seed, index, rtol, trace):
    case = Mixed(seed, index)
    sol = solve_dae(
        case.residual, (0, 3.0), case.values(0.0), case.values(0.0, 1), rtol=rtol, atol=rtol,
        trace=trace, max_steps=5000,
    )
    if trace == "never" and index > 1 and not sol.success:
        assert sol.diagnosis.cause in (Cause.INDEX, Cause.LIMIT)
        return
    assert sol.success, sol.message
    assert case.error(sol, rtol) < 10 * case.condition


def test_a_mixture_that_is_called_is_told_apart_from_a_solution_that_ends():
    case = Mixed(0, 2)
    sol = solve_dae(
        case.residual, (0, 3.0), case.values(0.0), case.values(0.0, 1), rtol=1e-7, atol=1e-7,
        trace="never",
    )
    assert not sol.success
    assert sol.diagnosis.cause is Cause.INDEX
    assert "trace='auto'" in sol.diagnosis.remedies[0]
