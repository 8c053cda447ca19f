"""UserFunction: derivatives of events and of what they make of the state, traced or called."""

import numpy as np
import pytest
from support.derivatives import decay

from tether import Problem
from tether.sensitivity.functions import UserFunction
from tether.sensitivity.parameters import find_parameters


def plain(x):
    """Return a number that a trace does not see through."""
    return float(np.float64(str(float(x))))


def height(t, y, yp, k, c):
    return y[0] ** 2 * k + np.sin(yp[1]) * c[1] - t**3


def called_height(t, y, yp, k, c):
    return plain(y[0]) ** 2 * k + np.sin(plain(yp[1])) * c[1] - plain(t) ** 3


ARGS = (0.7, np.array([5.0, 2.0]))
POINT = 0.3, np.array([1.2, -0.4]), np.array([0.1, 0.8])


def function(fun, size=1, wanted="all", args=ARGS):
    problem = Problem(lambda t, y, yp, k, c: [yp[0] + k * y[0], yp[1] + c[1]], args=args)
    return UserFunction(fun, 2, size, find_parameters(wanted, problem, 2))


@pytest.mark.parametrize("fun", [height, called_height])
def test_derivatives(fun):
    found = function(fun).at(*POINT)
    assert np.allclose(found.value, 1.44 * 0.7 + 2 * np.sin(0.8) - 0.027)
    assert np.allclose(found.by_values, [[2.4 * 0.7, 0.0]], rtol=1e-9)
    assert np.allclose(found.by_slopes, [[0.0, 2 * np.cos(0.8)]], rtol=1e-9)
    assert np.allclose(found.by_time, [-0.27], rtol=1e-9)
    # k, c[0], c[1], y0[0], y0[1]: a start value is no argument
    assert np.allclose(found.by_parameters, [[1.44, 0.0, np.sin(0.8), 0.0, 0.0]], rtol=1e-9)


@pytest.mark.parametrize("unit", [1.0, 1e-9, 1e9])
def test_called_functions_in_any_unit(unit):
    def fun(t, y, yp, k, c):
        return np.exp(plain(y[0]) / unit)

    found = function(fun).at(0.0, np.array([1.2, 0.0]) * unit, np.zeros(2))
    assert np.allclose(unit * found.by_values, [[np.exp(1.2), 0.0]], rtol=1e-6)


@pytest.mark.parametrize("shape", [
    lambda x: x, lambda x: [x], lambda x: (x,), lambda x: [[x]], lambda x: np.array([x]),
])
def test_one_value_in_any_shape(shape):
    found = function(lambda t, y, yp, k, c: shape(y[0] * y[1])).at(*POINT)
    assert np.allclose(found.by_values, [[-0.4, 1.2]])


def test_new_values():
    found = function(lambda t, y, yp, k, c: [y[0] * t, y[1] - k * yp[0]], size=2).at(*POINT)
    assert np.allclose(found.value, [0.36, -0.47])
    assert np.allclose(found.by_values, [[0.3, 0.0], [0.0, 1.0]])
    assert np.allclose(found.by_slopes, [[0.0, 0.0], [-0.7, 0.0]])
    assert np.allclose(found.by_time, [1.2, 0.0])
    assert np.allclose(found.by_parameters[:, 0], [0.0, -0.1])


def test_only_the_parameters_that_are_wanted():
    found = function(height, wanted=["c[1]"]).at(*POINT)
    assert np.allclose(found.by_parameters, [[np.sin(0.8)]])


def test_decay_is_a_function_like_others():
    """A residual may serve as an event."""
    problem = Problem(decay, args=(2.0,))
    found = UserFunction(decay, 1, 1, find_parameters("args", problem, 1)).at(
        0.0, np.array([3.0]), np.array([5.0])
    )
    assert np.allclose(found.value, 11.0)
    assert np.allclose(found.by_parameters, 3.0)
