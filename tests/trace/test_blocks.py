"""Blocks of a function are followed where they have branches, and only there."""

import numpy as np
import pytest
from support.adder import adder
from support.joined import agrees, gates

from tether.trace import trace
from tether.trace.joins import _State

# --- only where there is a branch ----------------------------------------------------------------


def work(monkeypatch, fun, n):
    """Count the states that tracing keeps for joins, and the values it looks at for them."""
    states, looks = [], []
    with monkeypatch.context() as patch:
        register, make = _State._register, _State.__init__
        patch.setattr(_State, "_register", lambda self, x: looks.append(1) or register(self, x))
        patch.setattr(_State, "__init__", lambda self, x: states.append(1) or make(self, x))
        traced = trace(fun, n)
    return np.array([len(states), len(looks), len(traced.graph.nodes)])


def test_tracing_is_linear_in_the_number_of_gates(monkeypatch):
    few, many, most = (work(monkeypatch, gates(count), 3 * count) for count in (10, 20, 40))
    assert np.all(most - many <= 2.1 * (many - few))


def test_only_blocks_with_branches_are_followed(monkeypatch):
    states, looks, nodes = work(monkeypatch, adder, 350)
    transistors = 39
    assert states < 15 * transistors           # a channel, its two directions, and the junctions
    assert looks < 10 * states
    assert nodes < 200 * transistors


# --- branches that show up late -----------------------------------------------------------------


class Counter:
    """Something that is written to."""

    def __init__(self):
        self.count = 0


def late(t, y, yp):
    """Branch in a helper and a loop that have run before without a branch."""

    def limited(x, bound):
        if x > bound:
            return bound
        return x

    result = [limited(float(i), 3.0) for i in range(4)]
    for i in range(len(y)):
        if i < 2 or y[i] > 0.2 * i:
            result.append(yp[i] + limited(y[i], 1.0))
        else:
            result.append(yp[i] - y[i] * limited(y[i], -1.0))
    return result[4:]


def with_an_object(t, y, yp):
    """Write to an object between branches."""
    counter, result = Counter(), []
    for i in range(len(y)):
        counter.count += 1
        force = y[i]
        if i > 3 and y[i] > 0.5:
            force = y[i] ** 2 + counter.count
        result.append(yp[i] + force)
    return result


def with_an_object_in_the_branch(t, y, yp):
    """Write to an object in a block that has branches further in."""
    result = []
    for i in range(len(y)):
        counter = Counter()
        if i % 2 == 0:
            counter.count += i
            force = y[i] + counter.count if y[i] > 0.0 else y[i] ** 2
            counter.count += 1
        else:
            force = counter.count - (y[i] if y[i] < 0.3 else 0.3)
        result.append(yp[i] + force * counter.count)
    return result


def with_a_list(t, y, yp):
    """Write to a list that is there before."""
    result = [0.0] * len(y)
    for i in range(len(y)):
        result[i] = result[i] + yp[i]
        if y[i] > 0.1:
            result[i] = result[i] + 2.0 * y[i]
            if y[i] > 0.7:
                result[i - 1] = result[i - 1] + y[i]
    return result


@pytest.mark.parametrize(
    "fun", [late, with_an_object, with_an_object_in_the_branch, with_a_list]
)
def test_branches_that_show_up_late(fun):
    agrees(fun)
