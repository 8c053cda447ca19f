"""`np.gradient` of traced arrays."""

import numpy as np
import pytest

from tether import solve_dae
from tether.trace import evaluate, trace

X = np.array([0.0, 0.1, 0.25, 0.3, 0.5, 0.9])
EVEN = np.linspace(0.0, 1.0, 6)

WAYS = {
    "unit": lambda y: np.gradient(y),
    "spacing": lambda y: np.gradient(y, 0.1),
    "points": lambda y: np.gradient(y, X),
    "even points": lambda y: np.gradient(y, EVEN),
    "second order": lambda y: np.gradient(y, 0.1, edge_order=2),
    "second order, points": lambda y: np.gradient(y, X, edge_order=2),
    "twice": lambda y: np.gradient(np.gradient(y, 0.1), 0.1),
    "one axis": lambda y: np.gradient(y.reshape(2, 3), 0.2, axis=1).ravel(),
    "another axis": lambda y: np.gradient(y.reshape(2, 3), axis=-2).ravel(),
    "two axes": lambda y: sum(np.gradient(y.reshape(2, 3), 0.5, [0.0, 1.0, 3.0])).ravel(),
    "of squares": lambda y: np.gradient(y**2, X)[::-1],
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_values_are_those_of_numpy(way):
    def fun(t, y, yp):
        return yp + way(y)

    traced, rng = trace(fun, 6), np.random.default_rng(2)
    for _ in range(5):
        y, yp = rng.normal(size=(2, 6))
        found = evaluate(traced.reference, 0.0, y, yp)
        np.testing.assert_allclose(found, fun(0.0, y, yp), rtol=1e-12, atol=1e-12)


def test_a_diffusion_with_gradients_is_traced():
    x = np.linspace(0.0, 1.0, 21)

    def fun(t, y, yp):
        flux = np.gradient(y, x)
        flux[0] = flux[-1] = 0.0
        return yp - 0.1 * np.gradient(flux, x)

    found = solve_dae(fun, (0.0, 0.2), np.cos(np.pi * x))
    called = solve_dae(fun, (0.0, 0.2), np.cos(np.pi * x), trace="never")
    assert found.how.startswith("traced")
    np.testing.assert_allclose(found.y[:, -1], called.y[:, -1], atol=1e-3)


def test_wrong_arguments_are_those_of_numpy():
    def fun(t, y, yp):
        return yp + np.gradient(y, [1.0, 2.0])

    with pytest.raises(ValueError, match="distances"):
        solve_dae(fun, (0.0, 0.2), np.ones(6))
