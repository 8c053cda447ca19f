"""Differences: derivatives of functions that are called."""

import numpy as np
import pytest

from tether.sensitivity.differences import central, gradient_of, one_sided


@pytest.mark.parametrize("size", [1.0, 1e-9, 1e9])
def test_central(size):
    def fun(x):
        return np.array([np.sin(1 + x / size), (x / size) ** 2 + 3 * x / size])

    found = central(fun, size)
    assert np.allclose(size * found, [np.cos(1.0), 3.0], rtol=1e-9)


def test_functions_that_vary_fast():
    """The first guess of a step is too long for them."""
    assert abs(central(lambda x: np.sin(1000 * x), 1.0) - 1000) < 1e-3
    assert abs(central(lambda x: np.exp(300 * x), 1.0) - 300) < 1e-3


def test_kinks_and_jumps_are_refused():
    with pytest.raises(ValueError, match="kink or a jump"):
        central(lambda x: 1.0 if x > 0 else 0.0, 1.0)
    with pytest.raises(ValueError, match="kink or a jump"):
        central(lambda x: max(x - 2e-5, 0.0), 1.0)


def test_gradient_of():
    x = np.array([0.3, 2.0])
    found = gradient_of(lambda x: np.array([x[0] * x[1], x[1] ** 3]), x, np.abs(x))
    assert np.allclose(found, [[2.0, 0.3], [0.0, 12.0]], rtol=1e-9)
    assert gradient_of(lambda x: 1.0, np.zeros(0), np.zeros(0)).shape == (0,)


def test_one_side_of_a_jump():
    def fun(x):
        return np.array([np.exp(x), 2.0 * x]) + (5.0 if x > 0.0 else 0.0)

    assert np.allclose(one_sided(fun, 1.0, -1.0), [1.0, 2.0], rtol=1e-9)
    with pytest.raises(ValueError, match="kink or a jump"):
        one_sided(fun, 1.0, 1.0)
    assert np.allclose(one_sided(lambda x: fun(x + 1e-5), 1.0, 1.0), [1.0, 2.0], rtol=1e-4)
