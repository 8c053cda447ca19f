"""Controllers that bring a position and its velocity to zero together, by ever faster switches."""

import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from tether import Bdf, Status, solve_dae

PULL, BRAKE = 3.0, 1.5


def twisting(push):
    """x'' = push - 3 sign(x) - 1.5 sign(x')."""
    def fun(t, y, yp):
        x, v = y
        return [yp[0] - v, yp[1] + PULL * np.sign(x) + BRAKE * np.sign(v) - push(t)]

    return fun


def parabolas(x, v, push, times):
    """Exact solution of twisting with a constant push, which is below the forces."""
    found, t = [], 0.0
    while len(found) < len(times):
        if abs(v) < 1e-11 and abs(x) < 1e-20:
            found += [(0.0, 0.0)] * (len(times) - len(found))
            break
        side = np.sign(x) if x else np.sign(v)
        way = np.sign(v) if v else -side
        a = push - PULL * side - BRAKE * way
        # v + a s = 0, or x + v s + a s^2 / 2 = 0, whichever comes first
        ends = [(-v / a, "v")] if a * v < 0 else []
        roots = np.roots([0.5 * a, v, x]) if x else [-2 * v / a]
        ends += [(s.real, "x") for s in np.asarray(roots, complex)
                 if abs(s.imag) < 1e-12 * abs(s) and s.real > 1e-14]
        step, what = min(ends)
        while len(found) < len(times) and times[len(found)] <= t + step:
            s = times[len(found)] - t
            found.append((x + v * s + 0.5 * a * s * s, v + a * s))
        x, v, t = x + v * step + 0.5 * a * step**2, v + a * step, t + step
        x, v = (0.0, v) if what == "x" else (x, 0.0)
    return np.array(found).T


@pytest.mark.parametrize("push", [0.0, 0.4, -1.2])
@pytest.mark.parametrize("tol", [1e-4, 1e-6, 1e-9])
def test_twisting(push, tol):
    times = np.linspace(0, 12, 49)
    sol = solve_dae(twisting(lambda t: push), (0, 12), [1, 0], rtol=tol, atol=tol, t_eval=times)
    assert sol.success, sol.message
    exact = parabolas(1.0, 0.0, push, times)
    arrived = np.flatnonzero(exact.any(axis=0))[-1]
    assert 3.0 < times[arrived] < 10.0
    np.testing.assert_allclose(sol.y, exact, rtol=0, atol=100 * tol)
    assert np.abs(sol.y[:, arrived + 2 :]).max() < 1e-12
    assert sol.stats.steps < 1000
    assert not sol.jumps


@pytest.mark.parametrize("tol", [1e-4, 1e-6, 1e-8])
def test_it_is_pushed_off_and_comes_back(tol):
    """From t = 8 to 9 a push of 5.5, one more than both forces: x = 1/2, v = 1 at its end."""
    def push(t):
        return 5.5 if 8.0 < t < 9.0 else 0.4

    times = np.linspace(0, 20, 81)
    sol = solve_dae(twisting(push), (0, 20), [1, 0], rtol=tol, atol=tol, t_eval=times)
    assert sol.success, sol.message
    since = np.maximum(times - 8.0, 0.0)
    exact = np.where(times < 8.0, parabolas(1.0, 0.0, 0.4, times), [0.5 * since**2, since])
    late = times > 9.0
    exact[:, late] = parabolas(0.5, 1.0, 0.4, times[late] - 9.0)
    np.testing.assert_allclose(sol.y, exact, rtol=0, atol=100 * tol)
    assert np.abs(sol.y[:, -1]).max() < 1e-12


@pytest.mark.parametrize("push", [3.5, 4.4, -4.0])
def test_both_forces_share_the_load(push):
    """A push between 3 and 4.5 needs both signs to hold the position."""
    sol = solve_dae(
        twisting(lambda t: push * np.sin(t)), (0, 10), [0, 0], rtol=1e-8, atol=1e-10
    )
    assert sol.success, sol.message
    assert np.abs(sol.y).max() < 1e-9
    assert sol.stats.steps < 400


def test_it_leaves_where_the_push_exceeds_both_forces():
    """With a push of 1.5 t it leaves at t = 3: then v' = 1.5 (t - 3)."""
    sol = solve_dae(twisting(lambda t: 1.5 * t), (0, 4), [0, 0], rtol=1e-8, atol=1e-10)
    assert sol.success, sol.message
    assert sol.y[:, -1] == pytest.approx([1.5 / 6, 1.5 / 2], abs=1e-6)


def test_two_that_disturb_each_other():
    """Both end at zero, and neither the other controller nor a block with friction notices."""
    def fun(t, y, yp):
        x1, v1, x2, v2, z, w = y
        first = PULL * np.sign(x1) + BRAKE * np.sign(v1)
        second = 4.0 * np.sign(x2) + 2.0 * np.sign(v2)
        return [yp[0] - v1, yp[1] + first + 0.2 * second - 0.5 * np.sin(t),
                yp[2] - v2, yp[3] + second + 0.2 * first - 0.5 * np.cos(t),
                yp[4] - w, yp[5] + z + 0.3 * np.sign(w)]

    sol = solve_dae(fun, (0, 14), [1.0, 0.0, -0.5, 0.3, 2.0, 0.0], rtol=1e-6, atol=1e-8)
    assert sol.success, sol.message
    assert sol.y[:, -1] == pytest.approx([0, 0, 0, 0, -0.2, 0], abs=1e-5)
    assert np.abs(sol.y[:4, -1]).max() < 1e-12
    assert sol.stats.steps < 6000          # 700 to 4,200 between rtol = 1e-4 and 1e-8


def test_super_twisting():
    """The root near zero is steep: x within the tolerance leaves v the root of it."""
    def fun(t, y, yp):
        x, v = y
        root = 1.5 * np.sqrt(abs(x)) * np.sign(x)
        return [yp[0] - v + root, yp[1] + 1.1 * np.sign(x) - 0.5 * np.cos(t)]

    times = np.linspace(0, 10, 101)
    exact, t, y = np.zeros((2, 101)), 0.0, np.array([1.0, 0.0])
    while t < 10.0 and (t == 0.0 or abs(y[1]) > 1e-8):
        side = 1.0 if t == 0.0 else np.sign(y[1])

        def slope(s, z, side=side):
            return [z[1] - 1.5 * math.sqrt(abs(z[0])) * side, 0.5 * math.cos(s) - 1.1 * side]

        def zero(s, z):
            return z[0]

        zero.terminal, zero.direction = True, -side
        leg = solve_ivp(slope, (t, 10), y, "DOP853", rtol=1e-11, atol=1e-15, events=zero,
                        dense_output=True, first_step=1e-11, max_step=0.05)
        now = (times >= t) & (times <= leg.t[-1])
        if now.any():
            exact[:, now] = leg.sol(times[now])
        t, y = leg.t[-1], np.array([0.0, leg.y[1, -1]])
    for tol in (1e-4, 1e-6, 1e-8):
        sol = solve_dae(fun, (0, 10), [1, 0], rtol=tol, atol=tol, t_eval=times)
        assert sol.success, sol.message
        near = np.abs(times - t) < 0.1
        error = np.abs(sol.y - exact).max(axis=0)
        assert error[~near].max() < 100 * tol
        assert error[near].max() < 2 * math.sqrt(tol)
        assert np.abs(sol.y[:, -1]).max() < 1e-12
        assert sol.stats.steps < 2000


def test_an_unstable_spiral_is_not_held():
    """The same surfaces are passed ever more slowly on the way out of a corner."""
    def fun(t, y, yp):
        x, v = y
        return [yp[0] - v, yp[1] + PULL * np.sign(x) - BRAKE * np.sign(v)]

    sol = solve_dae(fun, (0, 3), [1e-7, 0.0], rtol=1e-8, atol=1e-10)
    assert sol.success, sol.message
    assert np.abs(sol.y[:, -1]).max() > 1e-3


def test_step_by_step():
    bdf = Bdf(twisting(lambda t: 0.4), 0.0, [1.0, 0.0], t_bound=12.0)
    while bdf.status == Status.RUNNING:
        before = bdf.t
        bdf.step()
        assert bdf.t > before
    assert bdf.status == Status.REACHED_END
    assert np.abs(bdf.y).max() < 1e-9
