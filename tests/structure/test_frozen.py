"""Conditions with an input that freezes them: equal to the function where it is zero."""

import numpy as np
import pytest

from tether.structure.frozen import freeze
from tether.trace import trace
from tether.trace.backend import prepare

FUNCTIONS = {
    "if": (lambda x: 2 * x if x > 0.3 else -x, (lambda x: -x, lambda x: 2 * x)),
    "other way": (lambda x: 2 * x if x <= 0.3 else -x, (lambda x: 2 * x, lambda x: -x)),
    "turned round": (lambda x: 2 * x if 0.3 < x else -x, (lambda x: -x, lambda x: 2 * x)),  # noqa: SIM300
    "where": (lambda x: np.where(x >= 0.3, 1.0, x), (lambda x: x, lambda x: 1.0)),
    "abs": (lambda x: abs(x - 0.3), (lambda x: 0.3 - x, lambda x: x - 0.3)),
    "sign": (lambda x: np.sign(x - 0.3), (lambda x: -1.0, lambda x: 1.0)),
    "min": (lambda x: min(x, 0.3), (lambda x: x, lambda x: 0.3)),
    "max": (lambda x: np.maximum(x, 0.3), (lambda x: 0.3, lambda x: x)),
    "not": (lambda x: 0.0 if not x > 0.3 else x, (lambda x: 0.0, lambda x: x)),
}


def frozen_values(fun, shift):
    found = freeze(trace(lambda t, y, yp: [yp[0] - fun(y[0])], 1))
    assert len(found.surfaces) == 1
    runner = prepare(found.traced.program()).new([shift])
    height = found.heights.new([0.0])
    points = [-2.0, 0.1, 0.3, 0.5, 4.0]
    values = [-float(runner.values(0.0, [x], [0.0])[0]) for x in points]
    return points, values, [float(height.values(0.0, [x], [0.0])[0]) for x in points]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_free_it_is_the_function(name):
    fun, _ = FUNCTIONS[name]
    points, values, _ = frozen_values(fun, 0.0)
    assert values == [float(fun(x)) for x in points]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_frozen_it_is_one_side(name):
    fun, (left, right) = FUNCTIONS[name]
    points, _, heights = frozen_values(fun, 0.0)
    upwards = heights[-1] > heights[0]
    found = freeze(trace(lambda t, y, yp: [yp[0] - fun(y[0])], 1))
    for side, side_fun in ((-1.0, left), (1.0, right)):
        shift = found.shifts(np.array([side if upwards else -side]))
        _, values, _ = frozen_values(fun, shift[0])
        assert values == pytest.approx([float(side_fun(x)) for x in points])


@pytest.mark.parametrize("fun", [
    lambda y: np.sqrt(max(y, 0.0)), lambda y: np.sqrt(y) if y > 0 else 0.0,
    lambda y: np.sign(y) * np.sqrt(abs(y)), lambda y: np.log(np.maximum(y, 1e-9)),
    lambda y: 1 / max(y, 0.1), lambda y: np.where(y > 0, y**0.3, 0.0),
])
def test_what_guards_a_domain_is_left_alone(fun):
    assert freeze(trace(lambda t, y, yp: [yp[0] - fun(y[0])], 1)) is None


def test_conditions_on_time_alone_are_not_frozen():
    assert freeze(trace(lambda t, y, yp: [yp[0] - (1.0 if t > 1 else y[0])], 1)) is None


def test_slopes_are_those_of_the_side():
    found = freeze(trace(lambda t, y, yp: [yp[0] + abs(y[0])], 1))
    slope = prepare(found.traced.program(found.traced.f_y.nodes))
    assert slope.new([0.0]).values(0.0, [2.0], [0.0])[0] == 1.0
    frozen = [slope.new([s]).values(0.0, [2.0], [0.0])[0] for s in (np.inf, -np.inf)]
    assert sorted(frozen) == [-1.0, 1.0]
