"""Special functions against SciPy, with their derivatives."""

import math

import numpy as np
import pytest
from scipy import special

from tether import solve_dae
from tether.trace import TraceFailure, evaluate, formula, trace
from tether.trace.backend import prepare
from tether.trace.derive import jacobian

X = [0.05, 0.5, 1.0, 2.4, 3.8, 7.5, 19.0]
# function, first and second derivative
FUNCTIONS = {
    "erfc": (special.erfc, lambda x: -2 / math.sqrt(math.pi) * np.exp(-x * x),
             lambda x: 4 * x / math.sqrt(math.pi) * np.exp(-x * x)),
    "gamma": (special.gamma, lambda x: special.gamma(x) * special.psi(x),
              lambda x: special.gamma(x) * (special.psi(x) ** 2 + special.polygamma(1, x))),
    "gammaln": (special.gammaln, special.psi, lambda x: special.polygamma(1, x)),
    "digamma": (special.digamma, lambda x: special.polygamma(1, x),
                lambda x: special.polygamma(2, x)),
    "j0": (special.j0, lambda x: -special.j1(x), lambda x: special.jvp(0, x, 2)),
    "j1": (special.j1, lambda x: special.jvp(1, x), lambda x: special.jvp(1, x, 2)),
    "y0": (special.y0, lambda x: special.yvp(0, x), lambda x: special.yvp(0, x, 2)),
    "y1": (special.y1, lambda x: special.yvp(1, x), lambda x: special.yvp(1, x, 2)),
    "i0": (special.i0, lambda x: special.ivp(0, x), lambda x: special.ivp(0, x, 2)),
    "i1": (special.i1, lambda x: special.ivp(1, x), lambda x: special.ivp(1, x, 2)),
    "k0": (special.k0, lambda x: special.kvp(0, x), lambda x: special.kvp(0, x, 2)),
    "k1": (special.k1, lambda x: special.kvp(1, x), lambda x: special.kvp(1, x, 2)),
    "jv": (lambda x: special.jv(2, x), lambda x: special.jvp(2, x),
           lambda x: special.jvp(2, x, 2)),
    "jv, half": (lambda x: special.jv(1.5, x), lambda x: special.jvp(1.5, x),
                 lambda x: special.jvp(1.5, x, 2)),
    "yv": (lambda x: special.yv(3, x), lambda x: special.yvp(3, x),
           lambda x: special.yvp(3, x, 2)),
    "iv": (lambda x: special.iv(0.5, x), lambda x: special.ivp(0.5, x),
           lambda x: special.ivp(0.5, x, 2)),
    "kv": (lambda x: special.kv(2, x), lambda x: special.kvp(2, x),
           lambda x: special.kvp(2, x, 2)),
}


@pytest.mark.parametrize("functions", FUNCTIONS.values(), ids=FUNCTIONS)
def test_values_and_derivatives_are_those_of_scipy(functions):
    traced = trace(lambda t, y, yp: [functions[0](y[0])], 1)
    nodes = list(traced.outputs)
    for _ in range(2):
        nodes += jacobian(traced.graph, nodes[-1:], [traced.graph.y(0)]).nodes
    runner = prepare(traced.program(nodes)).new()
    for x in X:
        found = runner.values(0.0, [x], [0.0])
        expected = np.array([function(x) for function in functions])
        assert found[0] == expected[0]
        scale = np.abs(expected).max()
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-13 * scale)


def test_functions_of_the_library_of_python():
    traced = trace(
        lambda t, y, yp: [math.erfc(y[0]), math.gamma(y[0]), math.lgamma(y[0])], 1, size=3
    )
    for x in X:
        found = evaluate(traced.reference, 0.0, [x], [0.0])
        expected = [math.erfc(x), math.gamma(x), math.lgamma(x)]
        np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-15)


def test_arrays_and_constants():
    def fun(t, y, yp):
        return yp + special.jv([0, 1, 2], y) + special.gamma(4.0) - special.j0(np.zeros(3))

    traced = trace(fun, 3)
    y = np.array([0.3, 1.0, 4.0])
    found = evaluate(traced.reference, 0.0, y, np.ones(3))
    np.testing.assert_allclose(found, fun(0.0, y, np.ones(3)), rtol=1e-14)
    assert "jv(2, y[2])" in formula(traced.graph, traced.outputs[2], traced.names)


def test_orders_that_are_no_given_halves():
    for fun in (lambda t, y, yp: [special.jv(y[0], 2.0)], lambda t, y, yp: [special.jv(0.3, y[0])]):
        with pytest.raises(TraceFailure, match="order"):
            trace(fun, 1)


@pytest.mark.parametrize("backend", ["machine", "c"])
def test_a_run(backend):
    def bessel(t, y, yp):
        x, v = y
        return [yp[0] - v, x - special.j0(t)]               # index 2: v = -J1

    y0 = [special.j0(0.5), -special.j1(0.5)]
    found = solve_dae(bessel, (0.5, 8.0), y0, rtol=1e-8, atol=1e-10,
                      options={"backend": backend})
    assert found.success
    assert "index 2 reduced to 1" in found.how
    assert found.y[1, -1] == pytest.approx(-special.j1(8.0), abs=1e-8)


def test_a_run_with_a_jacobian():
    def fun(t, y, yp):
        return [yp[0] + special.gamma(1.0 + y[0]) - 1.0 + special.erfc(y[0]) * special.k0(1.0 + t)]

    ends = [solve_dae(fun, (0.0, 2.0), [0.7], rtol=1e-9, atol=1e-11, trace=mode)
            for mode in ("auto", "never")]
    assert ends[0].how.startswith("traced")
    assert ends[0].y[0, -1] == pytest.approx(ends[1].y[0, -1], rel=1e-6)
