"""Differences of many columns at once: the same matrices and runs from fewer residuals."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import LowLevelCallable

from tether import Problem, gallery, solve_dae
from tether._core import probe
from tether.gallery.compiled import compile_residual, find_compiler
from tether.plan.memory import new_state
from tether.plan.model import AsWritten
from tether.problem.options import Options


class System:
    """Equations M y' = A y + nonlinear terms of the same pattern, which may change."""

    def __init__(self, A, M, sizes=None):
        self.A, self.M = np.array(A, float), np.array(M, float)
        n = len(self.A)
        self.sizes = np.ones(n) if sizes is None else sizes
        self.calls = 0

    def __call__(self, t, y, yp):
        self.calls += 1
        return self.M @ (yp / self.sizes) - self.A @ np.sin(y / self.sizes)

    def jac(self, t, y, yp):
        return -self.A * np.cos(y / self.sizes) / self.sizes, self.M / self.sizes

    def state(self, y, yp):
        n = len(y)
        s = new_state(AsWritten(Problem(self), n), Options(atol=1e-9 * self.sizes))
        s.h, s.max_step, s.direction = 1e-3, math.inf, 1.0
        probe.move_to(s, 0.0, y, yp)
        return s

    def difference(self, s, y, yp, correcting=True):
        """Return F_y, F_y' and the calls they cost."""
        s.correcting = correcting
        self.calls = 0
        status, fy, fyp = probe.jacobian_at(s, 0.0, y, yp)
        s.correcting = False
        assert status == 0
        return fy, fyp, self.calls - 1

    def assert_right(self, found, y, yp):
        for ours, true in zip(found, self.jac(0.0, y, yp), strict=False):
            scale = np.abs(true * self.sizes).max()
            np.testing.assert_allclose(ours * self.sizes, true * self.sizes, atol=1e-5 * scale)


def band(n, width=1):
    rng = np.random.default_rng(n)
    distance = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    return np.where(distance <= width, rng.uniform(0.5, 2.0, (n, n)), 0.0)


def point(n, sizes=1.0, seed=1):
    rng = np.random.default_rng(seed)
    return sizes * rng.uniform(0.2, 1.2, n), sizes * rng.uniform(-1.0, 1.0, n)


def heat(m, **options):
    problem = gallery.heat1d(m)
    sol = solve_dae(problem.fun, problem.t_span, problem.y0, problem.yp0, rtol=1e-6,
                    atol=problem.atol(1e-6), **options)
    assert sol.success
    return problem, sol


# --- matrices -----------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([6, 15, 45, 70]), st.sampled_from([1, 2, 4]),
       st.sampled_from([0, 9]))
def test_random_patterns_and_units_give_the_exact_matrices(seed, n, entries, decades):
    rng = np.random.default_rng(seed)
    A, M = np.zeros((n, n)), np.zeros((n, n))
    for i in range(n):
        A[i, rng.choice(n, entries)] = rng.uniform(0.5, 2.0, entries) * rng.choice([-1, 1], entries)
        if rng.random() < 0.8:
            M[i, rng.choice(n, 2)] = rng.uniform(0.5, 2.0, 2)
    system = System(A, M, 10.0 ** rng.uniform(-decades, decades, n))
    y, yp = point(n, system.sizes, seed)
    s = system.state(y, yp)
    for correcting in (False, True, True):
        system.assert_right(system.difference(s, y, yp, correcting), y, yp)
        y, yp = point(n, system.sizes, seed + 1)


@pytest.mark.parametrize("n", [20, 100, 200])
def test_a_band_costs_a_few_residuals_and_foretells_one_more(n):
    system = System(band(n), np.eye(n))
    y, yp = point(n)
    s = system.state(y, yp)
    first = system.difference(s, y, yp)
    assert first[2] <= min(2 * n, 9 * math.sqrt(n))
    second = system.difference(s, *point(n, seed=2))
    assert second[2] == 3 + 1 + 1 + 1
    assert s.fyp_constant
    system.assert_right(second, *point(n, seed=2))
    assert system.difference(s, *point(n, seed=3))[2] == 3 + 1


@pytest.mark.parametrize("n", [12, 60])
def test_a_dense_matrix_is_differenced_column_by_column(n):
    system = System(np.ones((n, n)), np.ones((n, n)) + np.eye(n))
    y, yp = point(n)
    s = system.state(y, yp)
    first = system.difference(s, y, yp)
    assert first[2] <= 2 * n + 2 * (math.sqrt(n) / 2 + 2)   # a row that is too full ends the search
    assert system.difference(s, y, yp)[2] == 2 * n
    system.assert_right(first, y, yp)


@pytest.mark.parametrize("n", [20, 100])
@pytest.mark.parametrize("change", [1.0, -0.01, 0.03])
@pytest.mark.parametrize("sizes", [1.0, 1e9, 1e-9])
def test_entries_that_appear_later_are_noticed(n, change, sizes):
    """Column 9 of the group of column 0 comes into the row of column 0, in other units."""
    scale = np.ones(n)
    scale[9] = sizes
    system = System(band(n), np.eye(n), scale)
    y, yp = point(n, scale)
    s = system.state(y, yp)
    for _ in range(3):
        system.difference(s, y, yp)
    system.A[0, 9] = change
    surprised = system.difference(s, y, yp)
    assert surprised[2] > 3 + 1
    system.assert_right(surprised, y, yp)
    assert surprised[0][0, 9] != 0.0
    system.A[0, 9] = 0.0                         # the pattern is that of both from now on
    assert system.difference(s, y, yp)[2] <= 6 + 1
    system.A[0, 9] = change
    again = system.difference(s, y, yp)
    assert again[2] <= 6 + 1
    system.assert_right(again, y, yp)


def test_slopes_that_appear_later_are_noticed():
    n = 60
    system = System(band(n), np.diag(np.arange(n) % 2))
    y, yp = point(n)
    s = system.state(y, yp)
    system.difference(s, y, yp)
    system.M[4, 10] = 1.0
    found = system.difference(s, y, yp)
    system.assert_right(found, y, yp)
    assert not s.fyp_constant


def test_surprises_cost_no_more_than_one_matrix():
    n = 100
    system = System(band(n), np.eye(n))
    y, yp = point(n)
    s = system.state(y, yp)
    rng = np.random.default_rng(5)
    s.fy_sparse = False                          # column by column, when it is not in groups
    calls = 0
    for _ in range(40):
        system.A = band(n)[rng.permutation(n)]
        found = system.difference(s, y, yp)
        system.assert_right(found, y, yp)
        calls += found[2]
    assert calls <= 40 * n + n + 2 * n + n


@pytest.mark.parametrize("n", [20, 80])
def test_a_group_that_leaves_the_domain_is_taken_apart(n):
    """Moved together with others, an unknown comes to where a residual is not defined."""
    limit = 1.0
    base = System(band(n), np.eye(n))

    def fun(t, y, yp):
        bad = np.count_nonzero(y > limit) > 1
        return np.full(n, np.nan) if bad else base(t, y, yp)

    y, yp = np.full(n, limit), np.full(n, 0.1)
    s = new_state(AsWritten(Problem(fun), n), Options())
    s.h, s.direction = 1e-3, 1.0
    for _ in range(3):
        probe.move_to(s, 0.0, y, yp)
        s.correcting = True
        status, fy, fyp = probe.jacobian_at(s, 0.0, y, yp)
        assert status == 0
        base.assert_right((fy, fyp), y, yp)


@pytest.mark.parametrize("n", [20, 80])
def test_slopes_at_rest_are_moved_until_they_show(n):
    """With y' = 0 increments of y' drown in the round-off of the other terms."""
    system = System(1e9 * band(n), np.diag(np.arange(n) % 2))
    y, yp = point(n)[0], np.zeros(n)
    s = system.state(y, yp)
    for _ in range(2):
        found = system.difference(s, y, yp)
        for ours, true in zip(found, system.jac(0.0, y, yp), strict=False):
            np.testing.assert_allclose(ours, true, atol=1e-4 * np.abs(true).max())


@pytest.mark.parametrize("n", [8, 30])
def test_slopes_that_occur_nowhere_are_moved_far_at_once(n):
    system = System(np.ones((n, n)) + np.eye(n), np.diag(np.arange(n) % 2))
    y, yp = point(n)
    assert system.difference(system.state(y, yp), y, yp)[2] == n + n + 3


def test_equal_increments_do_not_cancel():
    """Only differences of unknowns occur, and all unknowns are equal."""
    n = 60
    links = np.eye(n) - np.roll(np.eye(n), 1, axis=1)
    y, yp = np.ones(n), np.zeros(n)

    def fun(t, y, yp):
        return yp - (y - np.roll(y, -1))

    s = new_state(AsWritten(Problem(fun), n), Options())
    s.h, s.direction = 1e-3, 1.0
    probe.move_to(s, 0.0, y, yp)
    _, fy, fyp = probe.jacobian_at(s, 0.0, y, yp)
    np.testing.assert_allclose(fy, -links, atol=1e-6)
    np.testing.assert_allclose(fyp, np.eye(n), atol=1e-6)
    assert s.nfev < n + 20


# --- runs ---------------------------------------------------------------------------


def test_calls_of_a_chain_hardly_grow_with_its_length():
    """All but the first Jacobian cost the same for any number of unknowns."""
    for m in (50, 100, 200):
        problem, called = heat(m, trace="never")
        _, exact = heat(m, jac=problem.jac, trace="never")
        assert called.stats.steps == exact.stats.steps
        np.testing.assert_allclose(called.y[:, -1], exact.y[:, -1], rtol=1e-6, atol=1e-12)
        first = 9 * math.sqrt(m)
        assert called.nfev <= exact.nfev + first + 5 * called.njev + 2


@pytest.mark.skipif(find_compiler() is None, reason="no C compiler")
def test_c_functions_are_differenced_in_groups_like_python_ones(tmp_path):
    problem, called = heat(60, trace="never")
    fun = LowLevelCallable(compile_residual(problem, tmp_path))
    sol = solve_dae(fun, problem.t_span, problem.y0, problem.yp0, rtol=1e-6,
                    atol=problem.atol(1e-6))
    for run in (sol, called):
        assert run.nfev <= run.stats.iterations + 9 * math.sqrt(60) + 5 * run.njev
    np.testing.assert_allclose(sol.y[:, -1], called.y[:, -1], rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("n", [16, 64])
@pytest.mark.parametrize("breaks", [None, [0.5]])
def test_a_coupling_that_is_switched_on_is_followed(n, breaks):
    rates = 1.0 + np.arange(n) % 5

    def fun(t, y, yp):
        far = np.roll(y, 7) if t > 0.5 else 0.0
        return yp + 50.0 * rates * y - np.roll(y, 1) ** 2 - 20.0 * far

    def jac(t, y, yp):
        fy = np.diag(50.0 * rates) - 2.0 * np.diag(np.roll(y, 1)) @ np.roll(np.eye(n), 1, axis=0)
        return fy - (20.0 if t > 0.5 else 0.0) * np.roll(np.eye(n), 7, axis=0), np.eye(n)

    y0 = np.linspace(1.0, 2.0, n)
    runs = [solve_dae(fun, (0, 1), y0, trace="never", rtol=1e-6, atol=1e-9, t_breaks=breaks, jac=j)
            for j in (None, jac)]
    assert all(run.success for run in runs)
    np.testing.assert_allclose(runs[0].y[:, -1], runs[1].y[:, -1], rtol=1e-3, atol=1e-8)
    assert runs[0].stats.steps <= 1.1 * runs[1].stats.steps


@pytest.mark.parametrize("sizes", [1e-9, 1e9])
def test_an_unknown_that_grows_out_of_zero_couples_others(sizes):
    """At the start the product hides that its factors matter, in any units."""
    n = 48
    scale = np.ones(n)
    scale[::3] = sizes

    def fun(t, y, yp):
        x, xp = y / scale, yp / scale
        out = xp + 100.0 * (x - np.cos(t))
        out[1:] += 80.0 * x[:-1] * np.roll(x, 5)[1:] * math.tanh(4 * t)
        return out

    atol = 1e-9 * scale
    called = solve_dae(fun, (0, 1), np.zeros(n), trace="never", rtol=1e-7, atol=atol)
    fine = solve_dae(fun, (0, 1), np.zeros(n), trace="never", rtol=1e-9, atol=1e-2 * atol)
    assert called.success
    assert fine.success
    np.testing.assert_allclose(called.y[:, -1] / scale, fine.y[:, -1] / scale, atol=1e-5)
