"""Random functions of whole arrays: values and derivatives along random directions."""

import numpy as np
import pytest

from tether._core.rows import Rows
from tether.trace.array_tracer import trace_arrays
from tether.trace.tracer import TraceFailure

N = 36
MATRIX = np.random.default_rng(7).normal(size=(N, N)) * (
    np.random.default_rng(8).random((N, N)) < 0.15
)
FACTORS = np.random.default_rng(9).uniform(0.5, 2.0, N)


def moves(draw):
    """Return a way to move the elements of an array about, as NumPy does it."""
    k = int(draw.integers(1, N))
    places = draw.permutation(N)
    several = draw.integers(0, N, N)
    mask = draw.random(N) < 0.3
    part = int(draw.integers(1, N - 1))

    def written(x):
        r = np.zeros(N)
        r[:part] = x[-part:]
        r[part:] += 2.0 * x[part:]
        r[mask] = x[mask] - 1.0
        return r

    def padded(x):
        u = np.pad(x.reshape(6, 6), 1, mode=["edge", "wrap", "reflect", "symmetric"][k % 4])
        return (u[2:, 1:-1] + u[1:-1, :-2] - u[1:-1, 1:-1]).reshape(-1)

    return [
        lambda x: np.roll(x, k), lambda x: x[places], lambda x: x[several], lambda x: x[::-1],
        lambda x: x.reshape(6, 6).T.ravel(), lambda x: np.concatenate([x[k:], x[:k]]),
        lambda x: np.where(mask, x, 0.5), lambda x: np.repeat(x[: N // 2], 2), written, padded,
        lambda x: np.tile(x[:6], 6), lambda x: np.stack([x[:18], x[18:]], axis=1).ravel(),
        lambda x: np.append(np.diff(x), x[k]), lambda x: np.gradient(x, 0.7),
        lambda x: np.flip(x.reshape(4, 9), 1).ravel(), lambda x: np.hstack([x[k:], np.ones(k)]),
        lambda x: np.broadcast_to(x[k], N), lambda x: np.outer(x[:6], x[6:12]).ravel(),
    ]  # fmt: skip


UNARY = [
    np.sin, np.cos, np.tanh, np.arctan, lambda x: np.exp(-x * x), lambda x: x**2, lambda x: -x,
    lambda x: np.sqrt(1.0 + x * x), lambda x: np.log1p(x * x), lambda x: 3.0 * x - FACTORS,
    lambda x: FACTORS / (2.0 + np.cos(x)), lambda x: x + x.sum() / N, lambda x: MATRIX @ x,
    lambda x: np.cumsum(x) / N, lambda x: x * np.dot(FACTORS, x) / N, lambda x: x - np.mean(x),
    lambda x: np.convolve(x, [0.25, 0.5, 0.25], "same"),
]  # fmt: skip
BINARY = [
    np.add, np.subtract, np.multiply, lambda x, y: x / (1.5 + np.sin(y)), np.hypot, np.arctan2,
    lambda x, y: np.where(FACTORS > 1.0, x, y), lambda x, y: x * y - y,
]  # fmt: skip


def random_function(seed):
    draw = np.random.default_rng(seed)
    plan = []
    for _ in range(int(draw.integers(4, 14))):
        kind = draw.integers(3)
        if kind == 0:
            options = moves(draw)
            plan.append((1, options[draw.integers(len(options))]))
        elif kind == 1:
            plan.append((1, UNARY[draw.integers(len(UNARY))]))
        else:
            plan.append((2, BINARY[draw.integers(len(BINARY))]))
    choices = draw.integers(0, 10**6, (len(plan), 2))

    def fun(t, y, yp):
        known = [y, yp, np.sin(t) * y, yp * 0.5 + t]
        for (operands, f), chosen in zip(plan, choices, strict=True):
            known.append(f(*(known[c % len(known)] for c in chosen[:operands])))
        return known[-1] + known[-2] * 0.5 + yp

    return fun


def compare(seed):
    """Trace a function and compare; False where it is refused."""
    fun, draw = random_function(seed), np.random.default_rng(seed + 10**6)
    try:
        table = trace_arrays(fun, N).table
    except TraceFailure as failure:
        reason = str(failure)
        if "depend on too many" not in reason and "shapes" not in reason:
            raise
        return False
    rows = Rows(table)
    fy, fyp = np.zeros(rows.reach), np.zeros(rows.reach)
    for _ in range(2):
        t, y, yp = draw.uniform(), draw.uniform(-1.5, 1.5, N), draw.normal(size=N)
        expected = fun(t, y, yp)
        size = 1.0 + np.abs(expected).max()
        np.testing.assert_allclose(rows.values(t, y, yp), expected, rtol=1e-11, atol=1e-11 * size)
        rows.entries_into(t, y, yp, fy, fyp)
        way, step = draw.normal(size=(2, N)), 1e-5
        rate = (
            fun(t, y + step * way[0], yp + step * way[1])
            - fun(t, y - step * way[0], yp - step * way[1])
        ) / (2 * step)
        found = np.zeros(N)
        for places, entries, along in ((table.fy, fy, way[0]), (table.fyp, fyp, way[1])):
            terms = entries[: len(places[0])] * along[places[1]]
            found += np.bincount(places[0], terms, N)
        size = 1.0 + np.abs(rate).max()
        np.testing.assert_allclose(found, rate, rtol=1e-5, atol=1e-6 * size)
    return True


@pytest.mark.parametrize("first", range(0, 240, 40))
def test_random_functions_of_arrays(first):
    traced = sum(compare(seed) for seed in range(first, first + 40))
    assert traced > 30
