"""What must not matter: the order of unknowns and equations, units, and the zero of the clock."""

import warnings
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tether import ConsistencyWarning, solve_dae

RTOL, ATOL = 1e-6, 1e-8
T_END = 3.0
TIMES = np.linspace(0.0, T_END, 13)
# Of the tolerance: how far two runs of the same problem may lie apart. Their errors are
# global ones, a few dozen local errors each.
APART = 20.0

few_examples = settings(
    max_examples=25, deadline=None, derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)


@dataclass(frozen=True)
class RandomDae:
    """A random DAE of index 1 with y = (x, z), damped so that errors do not grow.

    x' = A x + B z + q x |x| + cos(w t),  0 = C x + D z + q x_0^2 + sin(w t).
    """

    A: np.ndarray
    B: np.ndarray
    C: np.ndarray
    D: np.ndarray
    q: float
    w: float
    x0: np.ndarray

    @property
    def n(self):
        return len(self.A) + len(self.D)

    def fun(self, t, y, yp):
        m = len(self.A)
        x, z = y[:m], y[m:]
        f = self.A @ x + self.B @ z - self.q * x * np.abs(x) + np.cos(self.w * t)
        g = self.C @ x + self.D @ z + self.q * x[0] ** 2 + np.sin(self.w * t)
        return np.concatenate([yp[:m] - f, g])

    @property
    def y0(self):
        rest = self.C @ self.x0 + self.q * self.x0[0] ** 2
        return np.concatenate([self.x0, -np.linalg.solve(self.D, rest)])


@st.composite
def daes(draw):
    """Draw a `RandomDae` of up to five unknowns, linear or mildly nonlinear."""
    m, k = draw(st.integers(1, 3)), draw(st.integers(1, 2))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    stiffness = draw(st.sampled_from([1.0, 10.0, 300.0]))
    damping = np.diag(stiffness ** random.uniform(0, 1, m))
    return RandomDae(
        A=0.3 * random.standard_normal((m, m)) - damping,
        B=0.3 * random.standard_normal((m, k)),
        C=0.3 * random.standard_normal((k, m)),
        D=np.eye(k) + 0.2 * random.uniform(-1, 1, (k, k)),
        q=draw(st.sampled_from([0.0, 0.2])),
        w=draw(st.floats(0.0, 3.0)),
        x0=random.uniform(-2, 2, m),
    )


def solve(fun, y0, t0=0.0, atol=ATOL, yp0=None):
    """Solve over the standard interval that begins at `t0`."""
    sol = solve_dae(fun, (t0, t0 + T_END), y0, yp0, rtol=RTOL, atol=atol,
                    t_eval=np.minimum(t0 + TIMES, t0 + T_END))
    assert sol.success
    return sol


def assert_same_solution(sol, base, y=None):
    """Assert that two solutions agree within the tolerance and took similar work."""
    y = sol.y if y is None else y
    allowed = APART * (RTOL * np.abs(base.y).max(axis=1, keepdims=True) + ATOL)
    assert np.all(np.abs(y - base.y) <= allowed)
    assert abs(sol.stats.steps - base.stats.steps) <= 10 + 0.3 * base.stats.steps


@few_examples
@given(daes(), st.randoms(use_true_random=False))
def test_order_of_unknowns_and_equations(dae, random):
    unknowns, equations = (random.sample(range(dae.n), dae.n) for _ in range(2))
    base = solve(dae.fun, dae.y0)

    def permuted(t, u, up):
        y, yp = np.empty((2, dae.n))
        y[unknowns], yp[unknowns] = u, up
        return dae.fun(t, y, yp)[equations]

    sol = solve(permuted, dae.y0[unknowns])
    y = np.empty_like(sol.y)
    y[unknowns] = sol.y
    assert_same_solution(sol, base, y)


@few_examples
@given(daes(), st.lists(st.floats(-6, 6), min_size=5, max_size=5), st.booleans())
def test_scale_of_the_equations(dae, exponents, negative):
    scale = 10.0 ** np.array(exponents[: dae.n]) * (-1 if negative else 1)
    base = solve(dae.fun, dae.y0)
    assert_same_solution(solve(lambda t, y, yp: scale * dae.fun(t, y, yp), dae.y0), base)


@few_examples
@given(daes(), st.floats(-1000, 1000))
def test_zero_of_the_clock(dae, shift):
    base = solve(dae.fun, dae.y0)
    sol = solve(lambda t, y, yp: dae.fun(t - shift, y, yp), dae.y0, t0=shift)
    assert_same_solution(sol, base)


@few_examples
@given(daes(), st.lists(st.floats(-6, 6), min_size=5, max_size=5))
def test_units_of_the_unknowns(dae, exponents):
    unit = 10.0 ** np.array(exponents[: dae.n])
    base = solve(dae.fun, dae.y0)
    sol = solve(lambda t, u, up: dae.fun(t, u * unit, up * unit), dae.y0 / unit, atol=ATOL / unit)
    assert_same_solution(sol, base, sol.y * unit[:, None])


@few_examples
@given(daes(), st.floats(-4, 4))
def test_unit_of_time(dae, exponent):
    second = 10.0**exponent
    base = solve(dae.fun, dae.y0)
    sol = solve_dae(lambda s, y, ys: dae.fun(s * second, y, ys / second),
                    (0.0, T_END / second), dae.y0, rtol=RTOL, atol=ATOL,
                    t_eval=np.minimum(TIMES / second, T_END / second))
    assert sol.success
    assert_same_solution(sol, base)


@few_examples
@given(daes())
def test_direction_of_time(dae):
    base = solve(dae.fun, dae.y0)
    sol = solve_dae(lambda s, y, ys: dae.fun(-s, y, -ys), (0.0, -T_END), dae.y0, rtol=RTOL,
                    atol=ATOL, t_eval=-TIMES)
    assert sol.success
    assert_same_solution(sol, base)


@few_examples
@given(daes(), st.lists(st.floats(-10, 10), min_size=10, max_size=10))
def test_guesses_of_what_the_equations_determine(dae, guesses):
    """The algebraic part of y0 and all of yp0 are found from the differential part of y0."""
    base = solve(dae.fun, dae.y0)
    guessed = dae.y0.copy()
    guessed[len(dae.A):] = guesses[: len(dae.D)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConsistencyWarning)
        sol = solve(dae.fun, guessed, yp0=guesses[5 : 5 + dae.n])
    assert_same_solution(sol, base)
    assert sol.y[:, 0] == pytest.approx(dae.y0, rel=1e-6, abs=1e-7)
