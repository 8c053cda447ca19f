"""Functions that go on along their tangents."""

import numpy as np
import pytest

from tether.trace import Graph, emit, evaluate, jacobian
from tether.trace import opcodes as op
from tether.trace.tame import tame

LARGEST, SMALLEST = 2.0, 0.25


def of(code, x, slope=0.0):
    """Value and derivative of a tamed function."""
    g = Graph()
    inner = g.y(0)
    node = g.pow(inner, g.constant(1.5)) if code == op.POW else g.unary(code, inner)
    tamed, *_ = tame(g, [node], 0)
    rate = jacobian(g, tamed, [inner]).nodes
    program = emit(g, [*tamed, *rate], 1, 3)
    return evaluate(program, 0.0, [x], [0.0], [LARGEST, SMALLEST, slope])


@pytest.mark.parametrize(("code", "f", "low", "high"), [
    (op.EXP, np.exp, -50.0, LARGEST), (op.EXPM1, np.expm1, -50.0, LARGEST),
    (op.LOG, np.log, SMALLEST, 9.0), (op.SQRT, np.sqrt, SMALLEST, 9.0),
    (op.LOG1P, np.log1p, SMALLEST - 1.0, 9.0), (op.POW, lambda x: x**1.5, SMALLEST, 9.0),
])
def test_inside_it_is_the_function_and_outside_its_tangent(code, f, low, high):
    for x in np.linspace(low, high, 7)[1:-1]:
        assert of(code, x)[0] == pytest.approx(f(x), rel=1e-14)
    edge = high if code in (op.EXP, op.EXPM1) else low
    rate = (f(edge + 1e-6) - f(edge - 1e-6)) / 2e-6
    away = 1e4 if code in (op.EXP, op.EXPM1) else -1e4
    value, slope = of(code, edge + away)
    assert value == pytest.approx(f(edge) + rate * away, rel=1e-6)
    assert slope == pytest.approx(rate, rel=1e-6)


def test_a_line_beside_an_exponential():
    value, slope = of(op.EXP, -1e3, slope=0.5)
    assert (value, slope) == (pytest.approx(-500.0), pytest.approx(0.5))


def test_functions_within_functions():
    g = Graph()
    inner = g.unary(op.EXP, g.y(0))
    tamed, grows, ends = tame(g, [g.unary(op.LOG, g.unary(op.EXP, inner))], 0)
    assert grows
    assert ends
    value = evaluate(emit(g, tamed, 1, 3), 0.0, [50.0], [0.0], [LARGEST, SMALLEST, 0.0])[0]
    first = np.exp(2.0) * 49.0
    assert value == pytest.approx(np.log(np.exp(2.0) * (1.0 + first - 2.0)))


def test_nothing_to_tame():
    g = Graph()
    node = g.mul(g.y(0), g.y(0))
    assert tame(g, [node], 0) == ([node], False, False)
