"""Random functions full of branches, joined block by block, give what they give when called."""

import linecache
import random

import numpy as np
import pytest

import tether.trace.tracer as tracer
from tether.trace import TraceFailure, evaluate, trace

N = 4
HEAD = """
import numpy as np

class Box:
    def __init__(self):
        self.v = 0.5

def early(u, w):
    if u > 1.0:
        return u - w
    if w < 0.0:
        u = w
    else:
        w = 2 * u
    return u + w

def pair(u, w):
    if u > w:
        return w, u
    return (u, 0) if u > 0 else (1, w)

def fill(X, v):
    if v > 0.3:
        X[0] = v
    else:
        X[1] += v

def residual(t, y, yp):
    a, b, c = 0.0, y[0], 1
    L, M, A, B = [0.0, y[1]], [1.0, 2.0], np.array([y[0], 1.0]), np.zeros(2)
    D, O = {'k': 0.25}, Box()

    def inner(v):
        return v * a if v > 0 else b

    def bump(v):
        nonlocal b
        if v > 0.2:
            b = b + v

"""
TAIL = "    return [a + A[0], b + M[1] + B[1], c + L[1], L[0] + O.v + D['k']]\n"
LEAVES = ["y[0]", "y[1]", "y[2]", "yp[3]", "t", "a", "b", "c", "a", "b", "c", "L[0]", "M[1]",
          "A[0]", "B[1]", "0.5", "-1", "2", "0", "-0.25"]  # fmt: skip
STATEMENTS = [
    "a = {}", "b = {}", "c = {}", "a += {}", "b -= {}", "c *= {}", "L[0] = {}", "M[1] = {}",
    "A[0] = {}", "B[1] = {}", "a, b = b, a", "a, b = pair(a, {})", "fill(L, {})", "bump({})",
    "A += {}", "z = {}", "D['k'] = {}", "c = D['k'] + {}", "O.v = {}", "a = O.v * {}",
    "L.append({})", "b = L[-1] + len(L)", "L = M", "M = [c, {}]", "L = list(M)", "B = A",
    "A = np.array([a, 1.0 * y[0]])", "B = A[::-1]", "A = A + B",
]  # fmt: skip


class Program:
    """Text of a random function."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        lines = [line for _ in range(self.random.randint(3, 8)) for line in self.statement(1)]
        self.text = HEAD + "".join(lines) + TAIL

    def number(self, depth=0):
        """Return an expression."""
        kind = self.random.random()
        if depth > 1 or kind < 0.7:
            return self.random.choice(LEAVES)
        one, other = self.number(depth + 1), self.number(depth + 1)
        if kind < 0.82:
            return f"({one} {self.random.choice('+-*')} {other})"
        if kind < 0.9:
            return f"({one} if {self.condition()} else {other})"
        return f"early({one}, {other})" if kind < 0.96 else f"inner({one})"

    def condition(self):
        """Return a condition."""
        kind, (a, b, c) = self.random.random(), (self.number(1) for _ in range(3))
        if kind < 0.7:
            return f"{a} {self.random.choice(['<', '>', '<=', '>='])} {b}"
        if kind < 0.8:
            return f"{a} < {b} < {c}"
        return f"{a} > {b} or {c} < 0.2" if kind < 0.9 else f"{a} > 0.1 and not {b} > {c}"

    def statement(self, depth):
        """Return lines."""
        kind, indent = self.random.random(), "    " * depth
        if depth > 3 or kind < 0.55:
            text = self.random.choice(STATEMENTS).format(self.number())
            return [f"{indent}{text}\n"]
        if kind < 0.65 and depth < 3:
            lines = [f"{indent}for i in range(3):\n", *self.statement(depth + 1)]
            if self.random.random() < 0.4:
                way = self.random.choice(["break", "continue"])
                lines.append(f"{indent}    if {self.condition()}: {way}\n")
            return [*lines, f"{indent}    a = a + 0.1 * i\n"]
        if kind < 0.67 and depth > 1:
            return [f"{indent}return [a, b, c, L[0]]\n"]
        return self.branches(depth, indent)

    def branches(self, depth, indent):
        """Return an `if` with some of its branches."""
        heads = [f"if {self.condition()}"]
        heads += [f"elif {self.condition()}"] * (self.random.random() < 0.3)
        heads += ["else"] * (self.random.random() < 0.6)
        lines = []
        for head in heads:
            lines.append(f"{indent}{head}:\n")
            for _ in range(self.random.randint(1, 2)):
                lines += self.statement(depth + 1)
        return lines


def compare(seed):
    """Compare a function with its trace; tell whether blocks of it were joined."""
    text, file, space = Program(seed).text, f"<random branches {seed}>", {}
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    exec(compile(text, file, "exec"), space)
    fun = space["residual"]
    attempts = len(ATTEMPTS)
    try:
        traced = trace(fun, N)
    except TraceFailure:
        return False
    finally:
        del linecache.cache[file]
    rng = np.random.default_rng(seed)
    for _ in range(25):
        t, (y, yp) = rng.uniform(-1.5, 1.5), rng.uniform(-1.5, 1.5, (2, N))
        try:
            expected = np.array(fun(t, y.copy(), yp.copy()), float)
        except NameError:              # of a variable that only some branches set
            continue
        found = evaluate(traced.reference, t, y, yp)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9, err_msg=text)
    return len(ATTEMPTS) > attempts and ATTEMPTS[-1]


ATTEMPTS = []                          # whether they were to join blocks


@pytest.fixture(autouse=True)
def joined_at_once(monkeypatch):
    """Let no function be followed from its beginning to its end that has a branch."""
    follow = tracer._follow

    def noted(*args, **more):
        ATTEMPTS.append(len(args) > 7)
        return follow(*args, **more)

    monkeypatch.setattr(tracer, "FEW_PATHS", 1)
    monkeypatch.setattr(tracer, "_follow", noted)


def test_random_branches():
    assert sum(compare(seed) for seed in range(40)) > 20


@pytest.mark.slow
@pytest.mark.parametrize("first", range(100, 1100, 100))
def test_many_random_branches(first):
    assert sum(compare(seed) for seed in range(first, first + 100)) > 50
