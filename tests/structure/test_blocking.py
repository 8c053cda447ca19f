"""Ideal diodes that leave something floating where all of them block."""

import numpy as np
import pytest

from tether.structure.blocking import find_floating, find_pairs, with_leaks_beside
from tether.trace import trace
from tether.trace.backend import prepare


def find(fun, y, t_end=1.0, leaks=()):
    n = len(y)
    found = trace(fun, n)
    tolerance = np.full(n, 1e-9)
    return found, find_floating(
        found, np.zeros(0), 0.0, np.array(y), t_end, np.ones(n), tolerance, leaks
    )


def between_two_diodes(t, y, yp):
    """A node between two diodes in series, driven by a current that is small or nothing."""
    v, i1, i2 = y
    return [i1 - i2, min(i1, v + 1.0), np.minimum(2.0 - v, i2)]


@pytest.mark.parametrize(("law", "expected"), [
    (lambda a, b: min(a, b), (1.0, 1.0)), (lambda a, b: np.minimum(b, a), (1.0, 1.0)),
    (lambda a, b: -max(a, b), (-1.0, -1.0)), (lambda a, b: 3 * np.maximum(a, b), (-1.0, 3.0)),
    (lambda a, b: a if a < b else b, (1.0, 1.0)), (lambda a, b: b if a < b else a, (-1.0, 1.0)),
])
def test_ways_to_write_a_pair(law, expected):
    found = find_pairs(trace(lambda t, y, yp: [yp[0] - y[1], law(y[0], y[1])], 2))
    assert [(pair.equation, pair.sign, pair.factor) for pair in found] == [(1, *expected)]


@pytest.mark.parametrize("law", [
    lambda a, b: max(a, 0.0), lambda a, b: a + min(a, b), lambda a, b: min(a, abs(b)),
    lambda a, b: a if a + b < 0 else b,
])
def test_what_is_no_pair(law):
    assert find_pairs(trace(lambda t, y, yp: [yp[0] - y[1], law(y[0], y[1])], 2)) == []


def test_a_node_between_two_diodes():
    found, floating = find(between_two_diodes, [0.0, 0.0, 0.0])
    assert [equation for equation, _, _ in floating.leaks] == [1, 2]
    whole = prepare(with_leaks_beside(found, floating.leaks).program()).new()
    sizes = np.array([size for _, _, size in floating.leaks])
    assert np.all((sizes > 0.0) & (sizes < 1e-10))
    np.testing.assert_allclose(whole.values(0.0, np.zeros(3), np.zeros(3)), [0, *sizes * (1, 2)])
    assert -1.0 < floating.y[0] < 2.0              # where both block


def test_nothing_floats():
    def grounded(t, y, yp):
        v, i1, i2 = y
        return [i1 - i2 + 1e-12 * v, min(i1, v + 1.0), np.minimum(2.0 - v, i2)]

    assert find(grounded, [0.0, 0.0, 0.0])[1].leaks == ()


def test_sides_are_those_that_hold():
    """A current through one diode or the other, from a wrong guess."""
    def fun(t, y, yp):
        v, i1, i2 = y
        return [i1 - i2 + 1.0 - 2.0 * t, min(i1, v), min(i2, -v)]

    for guess in ([5.0, -3.0, 2.0], [-4.0, 1.0, 1.0], [0.0, 0.0, 0.0]):
        floating = find(fun, guess)[1]
        assert floating is not None
        np.testing.assert_allclose(floating.y[2] - floating.y[1], 1.0, atol=1e-6)
        assert min(floating.y[1:]) > -1e-6
