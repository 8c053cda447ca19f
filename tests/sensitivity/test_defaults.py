"""Parameters that a function has a value for: defaults, keywords, partial calls; by name."""

from functools import partial

import numpy as np
import pytest
from support.derivatives import FINE

from tether import solve_dae

LEVELS = np.array([1.0, 3.0])


def relaxing(t, y, yp, rate=2.0, levels=LEVELS, *, gain=0.5):
    """y' = gain levels[1] - rate y."""
    return [yp[0] + rate * y[0] - gain * levels[1]]


def by_hand(rate=2.0, level=3.0, gain=0.5):
    """Derivatives of y(1) by rate, levels[1] and gain, from y(0) = 1."""
    left = np.exp(-rate)
    risen = (1 - left) / rate
    by_rate = -left + gain * level * (left - risen) / rate
    return by_rate, gain * risen, level * risen


def end(fun, names, **options):
    sol = solve_dae(fun, (0, 1), [1.0], sensitivity=names, **options, **FINE)
    assert sol.sensitivities.names == tuple(names)
    return sol.sens[:, 0, -1]


def test_defaults_by_name():
    assert np.allclose(end(relaxing, ["rate", "levels[1]", "gain"]), by_hand(), rtol=1e-6)


def test_partial_calls_by_the_names_of_what_they_give():
    fun = partial(relaxing, rate=1.2, gain=0.7)
    found = end(fun, ["rate", "levels[1]", "gain"])
    assert np.allclose(found, by_hand(rate=1.2, gain=0.7), rtol=1e-6)
    fun = partial(lambda rate, level, t, y, yp: [yp[0] + rate * y[0] - 0.5 * level], 2.0, 3.0)
    assert np.allclose(end(fun, ["rate", "level"]), by_hand()[:2], rtol=1e-6)


def test_methods_with_defaults():
    class Plant:
        rate = 2.0

        def residual(self, t, y, yp, gain=0.5):
            return [yp[0] + self.rate * y[0] - gain * 3.0]

    assert np.allclose(end(Plant().residual, ["gain"]), by_hand()[2], rtol=1e-6)


def test_names_that_stand_for_several_floats():
    def scaled(x, k=3.0):
        return k * x

    def fun(t, y, yp, k=2.0):
        return [yp[0] + scaled(k * y[0])]

    with pytest.raises(ValueError, match="several floats that are called 'k'"):
        end(fun, ["k"])


def test_arguments_that_are_one_object():
    shared = np.array([1.0, 2.0])

    def fun(t, y, yp, p, q):
        return [yp[0] + p[0] * y[0] + q[1]]

    with pytest.raises(ValueError, match="p and q are the same object"):
        end(fun, ["p"], args=(shared, shared))
    found = end(fun, ["p[0]", "p[1]", "q[0]", "q[1]"], args=(shared, shared.copy()))
    assert found[0] != 0.0
    assert found[1] == found[2] == 0.0
    assert np.isclose(found[3], np.exp(-1.0) - 1.0, rtol=1e-6)


def test_arrays_of_other_floats():
    def fun(t, y, yp, p):
        return [yp[0] + p[0] * y[0]]

    for wanted in ("args", ["p"]):
        with pytest.raises(ValueError, match="p is an array of float32"):
            solve_dae(fun, (0, 1), [1.0], args=(np.ones(1, np.float32),), sensitivity=wanted)
