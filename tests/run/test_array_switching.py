"""Runs of whole arrays over surfaces where conditions on their elements change."""

import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from tether import Bdf, Status, solve_dae
from tether.plan.shelf import shelf

AS_ARRAYS = "traced as arrays"
N = 600
HALF = N // 2
RATES = np.resize(np.linspace(0.8, 1.3, 10), HALF)


@pytest.fixture
def many(monkeypatch):
    """Treat arrays of some hundred unknowns as those of more than twenty thousand."""
    monkeypatch.setattr("tether.plan.choose.NUMPY_FASTER_FROM", 500)
    shelf.empty()
    yield
    shelf.empty()


def springs(t, y, yp):
    """Springs that are four times as stiff on one side: half periods of pi and pi / 2."""
    x, v = y[:HALF], y[HALF:]
    force = x + 3.0 * np.minimum(x, 0.0)
    return np.concatenate([yp[:HALF] - RATES * v, yp[HALF:] + RATES * force])


def bang_bang(t, y, yp):
    """x'' = -sign(x): parabolas, with the period 4 sqrt(2) from x = 1 at rest."""
    x, v = y[:HALF], y[HALF:]
    return np.concatenate([yp[:HALF] - RATES * v, yp[HALF:] + RATES * np.sign(x)])


def at_rest():
    return np.concatenate([np.ones(HALF), np.zeros(HALF)])


def exact_springs(time):
    """x and v after a time in units of the rate."""
    time = np.mod(time, 1.5 * math.pi)
    soft = np.stack([np.cos(time), -np.sin(time)])
    later = time - 0.5 * math.pi
    hard = np.stack([-0.5 * np.sin(2.0 * later), -np.cos(2.0 * later)])
    last = time - math.pi
    back = np.stack([np.sin(last), np.cos(last)])
    return np.where(time < 0.5 * math.pi, soft, np.where(time < math.pi, hard, back))


def exact_bang_bang(time):
    quarter = math.sqrt(2.0)
    time = np.mod(time, 4.0 * quarter)
    late = time > 2.0 * quarter
    from_turn = np.where(late, time - 4.0 * quarter, time)     # where it is at rest: 1, or -1
    falls = np.abs(from_turn) < quarter
    top = np.stack([1.0 - 0.5 * from_turn**2, -from_turn])
    since = np.mod(time, 4.0 * quarter) - 2.0 * quarter
    bottom = np.stack([-1.0 + 0.5 * since**2, since])
    return np.where(falls, top, bottom)


@pytest.mark.parametrize("tol", [1e-4, 1e-6, 1e-8])
def test_kinks_are_located_without_single_numbers(tol):
    sol = solve_dae(springs, (0, 4.0), at_rest(), rtol=tol, atol=tol)
    assert sol.success, sol.message
    assert sol.how.startswith(AS_ARRAYS)
    expected = exact_springs(4.0 * RATES).ravel()
    np.testing.assert_allclose(sol.y[:, -1], expected, atol=20 * tol)


def test_what_is_located_costs_fewer_steps_and_digits(many, monkeypatch):
    def run(fun, exact, end):
        sol = solve_dae(fun, (0, end), at_rest(), rtol=1e-6, atol=1e-6)
        assert sol.how.startswith(AS_ARRAYS)
        return sol.stats.steps, np.max(np.abs(sol.y[:, -1] - exact(end * RATES).ravel()))

    cases = ((springs, exact_springs, 4.0), (bang_bang, exact_bang_bang, 6.0))
    located = [run(*case) for case in cases]
    monkeypatch.setattr("tether.structure.frozen_rows.freeze_rows", lambda *_: None)
    shelf.empty()
    free = [run(*case) for case in cases]
    for (steps, error), (steps_free, error_free) in zip(located, free, strict=True):
        assert steps < 0.9 * steps_free
        assert error < 0.6 * error_free


@pytest.mark.parametrize("tol", [1e-4, 1e-6, 1e-8])
def test_jumps_are_located(many, tol):
    sol = solve_dae(bang_bang, (0, 6.0), at_rest(), rtol=tol, atol=tol)
    assert sol.success, sol.message
    assert sol.how.startswith(AS_ARRAYS)
    np.testing.assert_allclose(
        sol.y[:, -1], exact_bang_bang(6.0 * RATES).ravel(), atol=100 * tol
    )
    assert sol.stats.steps < 900


def test_runs_are_those_of_single_numbers(monkeypatch):
    shelf.empty()
    by_numbers = solve_dae(bang_bang, (0, 6.0), at_rest(), rtol=1e-6, atol=1e-6)
    monkeypatch.setattr("tether.plan.choose.NUMPY_FASTER_FROM", 500)
    shelf.empty()
    as_arrays = solve_dae(bang_bang, (0, 6.0), at_rest(), rtol=1e-6, atol=1e-6)
    shelf.empty()
    assert by_numbers.how.startswith("traced, as written")
    assert as_arrays.how.startswith(AS_ARRAYS)
    np.testing.assert_allclose(as_arrays.y[:, -1], by_numbers.y[:, -1], atol=1e-6)
    assert as_arrays.stats.steps == pytest.approx(by_numbers.stats.steps, rel=0.1)


def test_backwards_and_step_by_step(many):
    there = solve_dae(bang_bang, (0, 5.0), at_rest(), rtol=1e-8, atol=1e-8)
    back = solve_dae(bang_bang, (5.0, 0), there.y[:, -1], rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(back.y[:, -1], at_rest(), atol=1e-5)
    bdf = Bdf(bang_bang, 0.0, at_rest(), t_bound=5.0, options={"rtol": 1e-8, "atol": 1e-8})
    while bdf.status == Status.RUNNING:
        before = bdf.t
        bdf.step()
        assert bdf.t > before
    np.testing.assert_allclose(bdf.y, there.y[:, -1], atol=1e-6)


def test_algebraic_elements_jump(many):
    """Forces switch on one after the other, where positions pass their places."""
    places = np.linspace(0.05, 1.9, HALF)

    def fun(t, y, yp):
        position, force = y[:HALF], y[HALF:]
        return np.concatenate([yp[:HALF] - 2.0, force - np.where(position > places, 5.0, 0.0)])

    sol = solve_dae(fun, (0, 1), np.zeros(N))
    assert sol.success, sol.message
    assert sol.how.startswith(AS_ARRAYS)
    late = np.searchsorted(sol.t, 0.5 * places[7] + 1e-6)
    assert np.all(sol.y[HALF + 7, :late - 1] == 0.0)
    np.testing.assert_allclose(sol.y[HALF + 7, late:], 5.0)
    np.testing.assert_allclose(sol.y[HALF:, -1], 5.0)


def test_what_both_sides_hold_is_not_carried_away(many):
    """y' = -sign(y - s(t)): it is held on the moving surface."""
    def relay(t, y, yp):
        return yp + np.sign(y - 0.2 * np.sin(t))

    start = np.resize(np.linspace(0.1, 0.5, 5), N)
    sol = solve_dae(relay, (0, 1.5), start, rtol=1e-3, atol=1e-3)
    assert sol.success, sol.message
    assert sol.stats.steps < 200
    expected = np.maximum(start - sol.t[-1], 0.2 * np.sin(sol.t[-1]))
    np.testing.assert_allclose(sol.y[:, -1], expected, atol=5e-3)


def test_a_front_is_not_stopped_at_every_element(many):
    """Upwind differences: conditions turn all the time, and are left to the error test."""
    dx = 1.0 / N
    x = dx * np.arange(N)

    def upwind(t, u, up):
        left, right = np.roll(u, 1), np.roll(u, -1)
        slope = np.where(u > 0.0, u - left, right - u)
        return up + u * slope / dx - 0.002 * (left - 2.0 * u + right) / dx**2

    u0 = np.sin(2 * np.pi * x) + 0.3
    sol = solve_dae(upwind, (0, 0.3), u0, rtol=1e-6, atol=1e-6)
    assert sol.success, sol.message
    assert sol.how.startswith(AS_ARRAYS)
    assert sol.stats.steps < 850               # 684 with all conditions free
    zeros = np.zeros(N)
    other = solve_ivp(lambda t, u: -upwind(t, u, zeros), (0, 0.3), u0, method="Radau",
                      rtol=1e-8, atol=1e-9, jac_sparsity=neighbours(N))
    np.testing.assert_allclose(sol.y[:, -1], other.y[:, -1], atol=2e-5)


def neighbours(n):
    pattern = np.eye(n, dtype=int)
    return pattern + np.roll(pattern, 1, axis=0) + np.roll(pattern, -1, axis=0)


def test_zeros_do_not_flicker(many):
    """Most elements are zero but for round-off, which is on no side of anything."""
    def porous(t, u, up):
        p = np.pad(np.maximum(u, 0.0) ** 2, 1)
        return up - (p[2:] - 2.0 * p[1:-1] + p[:-2]) * 100.0 - 0.0 * np.where(u > 0, 1.0, 2.0)

    x = np.linspace(-1.0, 1.0, N)
    u0 = np.maximum(0.0, 1.0 - 25.0 * x**2)
    sol = solve_dae(porous, (0, 1), u0, rtol=1e-5, atol=1e-7)
    assert sol.success, sol.message
    assert sol.stats.steps < 400
    assert np.sum(sol.y[:, -1]) == pytest.approx(np.sum(u0), rel=1e-5)


def test_an_event_that_changes_the_state_between_kinks():
    def kicked(t, y, yp):
        return y[0] + 0.3
    kicked.direction = -1

    def apply(t, y, yp):
        y[HALF] = 0.0                          # x = -0.3 at rest
        return y
    kicked.apply = apply

    sol = solve_dae(springs, (0, 4.0), at_rest(), rtol=1e-8, atol=1e-8, events=kicked)
    assert sol.success, sol.message
    time = sol.t_events[0][0]
    other = solve_ivp(
        lambda t, y: RATES[0] * np.array([y[1], -y[0] - 3.0 * min(y[0], 0.0)]), (time, 4.0),
        [-0.3, 0.0], rtol=1e-11, atol=1e-12, max_step=1e-3,
    )
    expected = exact_springs(4.0 * RATES)
    np.testing.assert_allclose(sol.y[[0, HALF], -1], other.y[:, -1], atol=2e-6)
    np.testing.assert_allclose(sol.y[1:HALF, -1], expected[0, 1:], atol=1e-6)
