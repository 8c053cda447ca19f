"""Expressions as text."""

import math

import numpy as np
import pytest

from tether import gallery
from tether.trace import evaluate, formula, total_derivative, trace


def test_formulas_are_readable():
    def fun(t, y, yp):
        x, z, u, lam = y
        return [
            yp[0] - (u - x) * 2 / z,
            x**2 + z**2 - 1.21,
            -(x + z) ** 3 * np.exp(-t / 2) + 1e-9,
            np.where(x > z, lam * (x - z), -lam) - x / (z * u) - (x - (z - u)),
        ]

    traced = trace(fun, 4)
    assert [formula(traced.graph, node, traced.names) for node in traced.outputs] == [
        "x' - 2*(u - x)/z",
        "x**2 + z**2 - 1.21",
        "1e-09 - (x + z)**3*exp(-t/2)",
        "(lam*(x - z) if z < x else -lam) - x/(z*u) - (x - (z - u))",
    ]
    (hidden,) = total_derivative(traced.graph, traced.outputs[1:2], 2)
    assert formula(traced.graph, hidden, traced.names) == "2*(x'**2 + x*x'') + 2*(z'**2 + z*z'')"


@pytest.mark.parametrize("name", ["caraxis-i1", "rotor", "akzo", "transamp"])
def test_formulas_mean_what_they_say(name):
    """Read the formula back as Python and compare with the program."""
    problem = gallery.get(name)
    traced = trace(problem.fun, problem.n)
    y, yp = problem.y0 + 0.3, problem.yp0 + 0.1
    names = [f"v{j}" for j in range(problem.n)]
    values = {n: float(x) for n, x in zip(names, y, strict=True)}
    values |= {n + "_1": float(x) for n, x in zip(names, yp, strict=True)}
    expected = evaluate(traced.program(), 0.3, y, yp)
    for node, number in zip(traced.outputs, expected, strict=True):
        text = formula(traced.graph, node, names, longest=10**6).replace("'", "_1")
        assert eval(text, vars(math) | values | {"t": 0.3}) == pytest.approx(number, rel=1e-12)
