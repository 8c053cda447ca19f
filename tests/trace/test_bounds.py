"""Bounds over intervals hold for all values in them, and become narrow with them."""

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

from tether.trace import trace
from tether.trace.bounds import bounds_over

SPLINE = CubicSpline([-4.0, -1.0, 0.5, 2.0, 5.0], [1.0, -2.0, 0.0, 3.0, -1.0])

FUNCTIONS = {
    "sum": lambda t: 3 * t - 2 + t / 4 - (-t),
    "product": lambda t: (t - 1) * (t + 2) * (0.5 - t),
    "quotient": lambda t: (t + 1) / (t * t + 0.1),
    "pole": lambda t: 1 / (t - 1.3),
    "powers": lambda t: (t - 1) ** 2 + t**3 - (t * t + 1) ** -1 + (t * t + 1) ** 0.3,
    "negative power": lambda t: (t + 0.05) ** -2,
    "power of": lambda t: 1.5**t + (2 + np.sin(t)) ** t,
    "waves": lambda t: np.sin(3 * t) + np.cos(t * t),
    "tangent": lambda t: np.tan(t),
    "arcs": lambda t: np.arctan(t) + np.arcsin(t / 9) - np.arccos(t / 9) + np.arctan2(t, 1 + t * t),
    "round": lambda t: np.arctan2(t, t - 1),
    "growth": lambda t: np.exp(t) + np.sinh(t) * np.tanh(t) - np.cosh(t) + np.expm1(-t),
    "logarithms": lambda t: np.log(t * t + 1) + np.log1p(t * t) + np.sqrt(t * t + 2),
    "areas": lambda t: np.arcsinh(t) + np.arccosh(t * t + 2) + np.arctanh(t / 9),
    "length": lambda t: np.hypot(t, t - 2),
    "steps": lambda t: np.floor(2 * t) + np.ceil(t) * np.sign(t - 0.3),
    "extremes": lambda t: np.minimum(t, 1 - t) + np.maximum(0.2, t) + abs(t - 0.7),
    "remainders": lambda t: t % 0.7 + (2 * t) % -1.1,
    "choice": lambda t: np.where((t > 0) & (t < 1) | (t < -3), t, np.where(t == 5, 3.0, -t)),
    "not": lambda t: np.where(np.logical_not(t <= 0.5), 1.0, t) + np.where(t != 2.0, 0.5, 0.0),
    "spline": lambda t: SPLINE(t),
    "points": lambda t: np.interp(t, [-2, 0, 1, 1.5, 4], [0, 1, -1, 5, 2]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_lie_within(name):
    fun = FUNCTIONS[name]
    traced = trace(lambda t, y, yp: [fun(t)], 1)
    node = traced.outputs[0]
    rng = np.random.default_rng(3)
    middle = rng.uniform(-4.5, 4.5, 300)
    width = 10.0 ** rng.uniform(-6, 1, 300)
    low, high = middle - width / 2, middle + width / 2
    low, high = np.maximum(low, -5.0), np.minimum(high, 5.0)
    cone = traced.graph.cone([node])
    bounds = bounds_over(traced.graph, cone, np.zeros(0), low, high)[node]
    with np.errstate(all="ignore"):
        for a, b, least, most in zip(low, high, *bounds, strict=True):
            values = np.array([float(fun(t)) for t in np.linspace(a, b, 30).tolist()])
            tiny = 1e-12 * (1 + np.max(np.abs(values)))
            assert least - tiny <= np.min(values)
            assert np.max(values) <= most + tiny


def test_they_become_narrow():
    traced = trace(lambda t, y, yp: [np.sin(t) * np.exp(-t) / (2 + t)], 1)
    node = traced.outputs[0]
    low = np.linspace(0.0, 5.0, 50)
    cone = traced.graph.cone([node])
    bounds = bounds_over(traced.graph, cone, np.zeros(0), low, low + 1e-7)[node]
    assert np.all(bounds[1] - bounds[0] < 1e-6)
