"""Elements of whole arrays that stay on their surfaces, compared with small runs of their own."""

import numpy as np
import pytest

from tether import solve_dae

RUN = {"rtol": 1e-6, "atol": 1e-6}


def blocks(n):
    """Independent blocks on springs with dry friction, each pulled by its own force."""
    r = np.random.default_rng(1)
    k, mu, w, a = (r.uniform(*some, n) for some in ((0.5, 2), (0.2, 0.5), (0.8, 1.2), (0.3, 1)))

    def fun(t, y, yp):
        x, v = y[:n], y[n:]
        return np.concatenate([yp[:n] - v, yp[n:] + k * x + mu * np.sign(v) - a * np.sin(w * t)])

    def one(i):
        return lambda t, y, yp: [
            yp[0] - y[1], yp[1] + k[i] * y[0] + mu[i] * np.sign(y[1]) - a[i] * np.sin(w[i] * t)
        ]

    return fun, np.append(r.uniform(-2, 2, n), np.zeros(n)), one, lambda i: [i, n + i]


def relays(n):
    """Relays that follow a wave, and lose it where it is too fast."""
    r = np.random.default_rng(2)
    phase, a = r.uniform(0, 6, n), r.uniform(0.5, 2, n)

    def fun(t, y, yp):
        return yp + np.sign(y - a * np.sin(t + phase))

    def one(i):
        return lambda t, y, yp: [yp[0] + np.sign(y[0] - a[i] * np.sin(t + phase[i]))]

    return fun, r.uniform(-1, 1, n), one, lambda i: [i]


def by_where(n):
    """Sides that are not symmetric, begun on the surface or not."""
    r = np.random.default_rng(3)
    level, down = r.uniform(0.1, 1, n), r.uniform(0.2, 3, n)

    def fun(t, y, yp):
        return yp + np.where(y > level * np.cos(t), down, -1.0) + 0.3 * y

    def one(i):
        return lambda t, y, yp: [
            yp[0] + np.where(y[0] > level[i] * np.cos(t), down[i], -1.0) + 0.3 * y[0]
        ]

    start = r.uniform(-1, 1, n)
    start[: n // 2] = level[: n // 2]
    return fun, start, one, lambda i: [i]


@pytest.mark.parametrize("make", [blocks, relays, by_where])
@pytest.mark.parametrize("n", [100, 400])
def test_elements_as_if_they_were_alone(make, n):
    fun, start, one, places = make(n)
    times = np.linspace(0, 6, 25)
    sol = solve_dae(fun, (0, 6), start, t_eval=times, **RUN)
    assert sol.success, sol.message
    assert "arrays" in sol.how
    assert sol.stats.steps < 40 * n
    for i in range(0, n, n // 12):
        alone = solve_dae(one(i), (0, 6), start[places(i)], t_eval=times, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(sol.y[places(i)], alone.y, rtol=0, atol=2e-5)


@pytest.mark.parametrize("tol", [1e-3, 1e-4, 1e-8])
def test_other_tolerances(tol):
    n = 100
    fun, start, one, places = blocks(n)
    sol = solve_dae(fun, (0, 12), start, rtol=tol, atol=tol)
    assert sol.success, sol.message
    for i in range(0, n, 9):
        alone = solve_dae(one(i), (0, 12), start[places(i)], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(sol.y[places(i), -1], alone.y[:, -1], rtol=0, atol=50 * tol)


def test_a_chain_on_a_belt(monkeypatch):
    """Springs between neighbours: as arrays and number by number."""
    n = 40
    r = np.random.default_rng(4)
    mu, start = r.uniform(0.2, 0.5, n), np.append(0.5 * r.standard_normal(n), np.zeros(n))

    def chain(t, y, yp):
        x, v = y[:n], y[n:]
        left, right = np.append(0.0, x[:-1]), np.append(x[1:], 0.0)
        return np.concatenate([
            yp[:n] - v, yp[n:] - left + 2.5 * x - right + mu * np.sign(v - 0.3)
        ])

    ends = []
    for jumps, words in ((30, "as arrays"), (100, "reduced")):
        monkeypatch.setattr("tether.plan.choose.MANY_JUMPS", jumps)
        sol = solve_dae(
            lambda t, y, yp, jumps: chain(t, y, yp), (0, 3), start, args=(jumps,),
            rtol=1e-7, atol=1e-7,
        )
        assert sol.success, sol.message
        assert words in sol.how or "structure changed" in sol.how
        ends.append(sol.y[:, -1])
    np.testing.assert_allclose(*ends, rtol=0, atol=1e-5)


def test_more_unknowns_than_are_traced_one_by_one(monkeypatch):
    monkeypatch.setattr("tether.plan.choose.NUMPY_FASTER_FROM", 500)
    fun, start, one, places = relays(600)
    sol = solve_dae(fun, (0, 2), start, **RUN)
    assert sol.success, sol.message
    alone = solve_dae(one(7), (0, 2), start[places(7)], rtol=1e-9, atol=1e-9)
    assert sol.y[7, -1] == pytest.approx(alone.y[0, -1], abs=1e-5)


def test_what_two_equations_decide_is_traced_one_by_one():
    """Friction between neighbours acts on both of them."""
    n = 40

    def fun(t, y, yp):
        between = 0.2 * np.sign(np.diff(y))
        return yp - np.append(between, 0.0) + np.append(0.0, between) - 0.02 * np.arange(n)

    sol = solve_dae(lambda t, y, yp: fun(t, y, yp), (0, 0.5), np.zeros(n), **RUN)
    assert sol.success, sol.message
    assert "arrays" not in sol.how


def test_derivatives():
    n = 80
    r = np.random.default_rng(5)
    phase, start = r.uniform(0, 6, n), r.uniform(-1, 1, n)

    def fun(t, y, yp, a):
        return yp + np.sign(y - a * np.sin(t + phase))

    run = {"rtol": 1e-9, "atol": 1e-9}
    sol = solve_dae(fun, (0, 0.3), start, args=(1.3,), sensitivity=["a"], **run)
    high, low = (
        solve_dae(fun, (0, 0.3), start, args=(a,), **run).y[:, -1] for a in (1.3001, 1.2999)
    )
    np.testing.assert_allclose(sol.sens[0, :, -1], (high - low) / 2e-4, atol=1e-3)
