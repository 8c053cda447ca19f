"""Random programs of statements on whole arrays: new names, views, and writes through them."""

import linecache

import numpy as np
import pytest

from tether._core.rows import Rows
from tether.trace.array_tracer import trace_arrays
from tether.trace.tracer import TraceFailure

N = 24
DRAW = np.random.default_rng(5)
NAMES = {
    "np": np, "N": N, "W": DRAW.uniform(0.5, 2.0, N), "B": DRAW.random(N) < 0.4,
    "M": DRAW.normal(size=(N, N)) * (DRAW.random((N, N)) < 0.2), "IDX": DRAW.integers(0, N, N),
    "M6": DRAW.normal(size=(6, 6)),
}  # fmt: skip
# `a` and `b` are names of arrays, `k` and `m` places in them
EXPRESSIONS = """
np.sin(a) | a*b | a + W*b | np.tanh(a - b) | a/(2.0 + np.cos(b)) | np.sqrt(1.0 + a*a)
np.abs(a)*b
np.where(a > b, a, 2.0*b) | np.maximum(a, 0.5*b) | np.clip(a, -0.4, 0.6) | np.exp(-a**2) | M@a
a@M | np.roll(a, k) | a[::-1]*b | a[IDX] | np.cumsum(a)*0.1 | np.gradient(a, 0.5)
np.where(B, a, b) | np.convolve(a, [0.2, 0.5, -0.3], 'same') | np.concatenate([a[k:], b[:k]])
np.append(np.diff(a), b[k]) | np.pad(a, 2, mode='wrap')[:N] | np.einsum('ij,j->i', M, a)
(a.reshape(4, 6)*b.reshape(6, 4).T).ravel() | (a.reshape(4, 6)@M6).ravel()
np.outer(a[:4], b[6:12]).ravel() | a*np.dot(W, b)/N | a + b.max()
(a.reshape(4, 6) - b.reshape(4, 6).mean(axis=1)[:, None]).ravel() | np.repeat(a[::2], 2)
np.stack([a[:12], b[12:]], axis=1).ravel() | np.swapaxes(a.reshape(2, 3, 4), 0, 2).ravel()
a.reshape(4, 6, order='F').ravel() | np.sign(a)*b | np.array([a[i]*b[-i] for i in range(N)])
"""
VIEWS = """
a[::-1] | a[...] | a.ravel() | a.flatten() | a.reshape(4, 6).T.ravel()
a.reshape(4, 6).T.T.reshape(-1) | np.asarray(a) | np.array(a) | np.ascontiguousarray(a)
a.astype(float)
a.astype(float, copy=False) | np.concatenate([a]) | np.split(a, 1)[0] | a[:, None][:, 0]
np.flip(a) | np.atleast_1d(a) | +a | a
"""
STATEMENTS = """
a[k:k+6] = b[m:m+6] | a[1:] += 0.3*a[:-1] | a[:-1] -= 0.2*a[1:] | a[::-1][:5] = b[:5] | a *= 0.5
a += b[::-1] | a[:] = a[::-1] | a[1:] = a[:-1] | a[B] = 2.0*b[B] | a[B] += 1.5 | a[IDX] = b
a[IDX] += b | np.add.at(a, IDX, b) | np.sin(b, out=a) | np.multiply(a[:-1], b[1:], out=a[1:])
a[[0, -1]] = 0.0 | q = a.reshape(4, 6); q[1:, :] += q[:-1, :]*0.5
q = a.reshape(4, 6).T; q[2] = b[:4] | q = a[::-2]; q -= b[:12]
q = a[3:]; q[1:] = q[:-1]; b[0] = q[4] | a, b = b, a
a[2:10], b[:8] = b[:8].copy(), a[2:10].copy() | a.reshape(4, 6)[:, [1, 1]] += b[:4, None]
for i in range(1, N): a[i] = 0.5*a[i-1] + b[i] | for p in a.reshape(4, 6): p *= 1.1 | a[...] = b
"""
KINDS = [
    [x.strip() for line in text.strip().splitlines() for x in line.split(" | ")]
    for text in (EXPRESSIONS, VIEWS, STATEMENTS)
]


def program(seed):
    """Write a function of some random statements."""
    draw = np.random.default_rng(seed)
    names, lines = ["a0", "a1"], ["a0 = y.copy()", "a1 = 0.5*yp + y"]

    def filled(text):
        chosen = {"a": draw.choice(names), "b": draw.choice(names),
                  "k": str(draw.integers(1, 17)), "m": str(draw.integers(1, 17))}  # fmt: skip
        tree = compile(text, "", "exec").co_names
        return replaced(text, {k: v for k, v in chosen.items() if k in tree})

    for _ in range(int(draw.integers(3, 10))):
        kind = int(draw.integers(3))
        text = filled(draw.choice(KINDS[kind]))
        if kind < 2:
            names.append(f"a{len(names)}")
            text = f"{names[-1]} = {text}"
        lines.append(text)
    lines.append("return " + " + 0.5*".join(draw.choice(names, 3)))
    return "def fun(t, y, yp):\n" + "".join(f"    {line}\n" for line in lines)


def replaced(text, names):
    """Put other names in the place of names of one letter."""
    found = ""
    for before, x, after in zip(" " + text, text, text[1:] + " ", strict=False):
        alone = not (before.isalnum() or before in "._'" or after.isalnum() or after == "_")
        found += names.get(x, x) if alone else x
    return found


def made(seed):
    source, name = program(seed), f"<program {seed}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    names = dict(NAMES)
    exec(compile(source, name, "exec"), names)
    return names["fun"], source


def compare(seed):
    """Trace a program and compare; False where it is refused."""
    fun, source = made(seed)
    draw = np.random.default_rng(seed + 10**6)
    try:
        table = trace_arrays(fun, N).table
    except TraceFailure:
        return False
    rows = Rows(table)
    fy, fyp = np.zeros((2, rows.reach))
    t, y, yp = draw.uniform(), *draw.uniform(-1.5, 1.5, (2, N))
    expected = fun(t, y, yp)
    size = 1.0 + np.abs(expected).max()
    np.testing.assert_allclose(rows.values(t, y, yp), expected, rtol=1e-10, atol=1e-11 * size,
                               err_msg=source)
    rows.entries_into(t, y, yp, fy, fyp)
    way, found, step = draw.normal(size=(2, N)), np.zeros(N), 1e-6
    for places, entries, along in ((table.fy, fy, way[0]), (table.fyp, fyp, way[1])):
        found += np.bincount(places[0], entries[: len(places[0])] * along[places[1]], N)
    rate = (fun(t, y + step * way[0], yp + step * way[1])
            - fun(t, y - step * way[0], yp - step * way[1])) / (2.0 * step)  # fmt: skip
    size += np.abs(rate).max()
    np.testing.assert_allclose(found, rate, rtol=1e-4, atol=1e-6 * size, err_msg=source)
    return True


@pytest.mark.parametrize("first", range(0, 300, 100))
def test_random_programs(first):
    assert sum(compare(seed) for seed in range(first, first + 100)) > 80
