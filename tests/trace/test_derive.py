"""Derivatives of expressions, against multiple precision and complex steps."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.programs import jacobians

from tether.trace import (
    Graph,
    TraceFailure,
    directional,
    emit,
    evaluate,
    formula,
    jacobian,
    substitute,
    switching_function,
    total_derivative,
    trace,
)
from tether.trace import opcodes as op
from tether.trace.operations import NAMES

STEP = 1e-30


@pytest.fixture
def g():
    return Graph()


def value(graph, node, t=0.7, y=(0.3, 0.6), yp=(1.1, -0.4)):
    return evaluate(emit(graph, [node], len(y)), t, y, yp)[0]


# --- derivatives of every operation -----------------------------------------------------------

UNARY = {
    op.SQRT: mpmath.sqrt,
    op.EXP: mpmath.exp,
    op.LOG: mpmath.log,
    op.SIN: mpmath.sin,
    op.COS: mpmath.cos,
    op.TAN: mpmath.tan,
    op.ASIN: mpmath.asin,
    op.ACOS: mpmath.acos,
    op.ATAN: mpmath.atan,
    op.SINH: mpmath.sinh,
    op.COSH: mpmath.cosh,
    op.TANH: mpmath.tanh,
    op.ASINH: mpmath.asinh,
    op.ATANH: mpmath.atanh,
    op.ABS: abs,
    op.SIGN: mpmath.sign,
    op.FLOOR: mpmath.floor,
    op.CEIL: mpmath.ceil,
    op.LOG1P: lambda x: mpmath.log(1 + x),
    op.EXPM1: mpmath.expm1,
    op.ERF: mpmath.erf,
}
BINARY = {
    op.POW: lambda x, y: x**y,
    op.ATAN2: mpmath.atan2,
    op.MIN: min,
    op.MAX: max,
    op.MOD: lambda x, y: x - y * mpmath.floor(x / y),
    op.DIV: lambda x, y: x / y,
    op.MUL: lambda x, y: x * y,
    op.SUB: lambda x, y: x - y,
}


@pytest.mark.parametrize("code", UNARY, ids=NAMES.get)
@pytest.mark.parametrize("x", [0.3, 0.85])
def test_unary_operations_against_multiple_precision(g, code, x):
    node = g.unary(code, g.y(0))
    assert value(g, node, y=[x], yp=[0.0]) == pytest.approx(float(UNARY[code](x)), rel=1e-14)
    slope = jacobian(g, [node], [g.y(0)]).nodes
    expected = float(mpmath.diff(UNARY[code], x))
    assert (value(g, slope[0], y=[x], yp=[0.0]) if slope else 0.0) == pytest.approx(
        expected, rel=1e-12
    )


def test_inverse_hyperbolic_cosine(g):
    node = g.unary(op.ACOSH, g.y(0))
    slope = jacobian(g, [node], [g.y(0)]).nodes[0]
    assert value(g, slope, y=[1.7], yp=[0.0]) == pytest.approx(1 / math.sqrt(1.7**2 - 1))


@pytest.mark.parametrize("code", BINARY, ids=NAMES.get)
def test_binary_operations_against_multiple_precision(g, code):
    methods = {op.POW: g.pow, op.DIV: g.div, op.MUL: g.mul, op.SUB: g.sub}
    make = methods.get(code, lambda a, b: g.binary(code, a, b))
    x, y = g.y(0), g.y(1)
    node = make(x, y)
    point = (1.3, 0.4)
    assert value(g, node, y=point) == pytest.approx(float(BINARY[code](*point)), rel=1e-14)
    slopes = jacobian(g, [node], [x, y])
    for order, j in (((1, 0), 0), ((0, 1), 1)):
        expected = float(mpmath.diff(BINARY[code], point, order))
        found = dict(zip(slopes.cols, slopes.nodes, strict=True))
        actual = value(g, found[j], y=point) if j in found else 0.0
        assert actual == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("k", [-5, -2, -1, 3, 4, 17])
def test_integer_powers(g, k):
    node = g.powi(g.y(0), k)
    slope = jacobian(g, [node], [g.y(0)]).nodes[0]
    for x in (-0.7, 1.3):
        assert value(g, node, y=[x], yp=[0]) == pytest.approx(x**k, rel=1e-14)
        assert value(g, slope, y=[x], yp=[0]) == pytest.approx(k * x ** (k - 1), rel=1e-14)


def test_branch_not_taken_does_not_spoil_the_derivative(g):
    x = g.y(0)
    node = g.select(g.binary(op.LT, g.zero, x), g.unary(op.SQRT, x), g.mul(x, x))
    (slope,) = jacobian(g, [node], [x]).nodes
    assert value(g, slope, y=[0.0], yp=[0.0]) == 0.0
    assert value(g, slope, y=[4.0], yp=[0.0]) == 0.25


def test_long_sums_have_cheap_jacobians(g):
    unknowns = [g.y(j) for j in range(2000)]
    total = g.zero
    for x in unknowns:
        total = g.add(total, g.mul(x, x))
    before = len(g)
    matrix = jacobian(g, [total], unknowns)
    assert matrix.cols == list(range(2000))
    assert len(g) - before < 2010


def test_deep_graphs_do_not_recurse(g):
    x = node = g.y(0)
    for _ in range(50_000):
        node = g.unary(op.SIN, g.add(node, x))
    (slope,) = jacobian(g, [node], [x]).nodes
    (rate,) = total_derivative(g, [node])
    assert emit(g, [node, slope], 1).size > 200_000
    assert len(g.cone([rate])) > 200_000
    assert len(formula(g, node, ["x"])) <= 500


def test_directional_derivative_is_the_jacobian_times_a_vector(g):
    x, y = g.y(0), g.y(1)
    outputs = [g.mul(x, g.unary(op.SIN, y)), g.div(x, y)]
    seeds = {x: g.constant(0.3), y: g.constant(-2.0)}
    matrix = jacobian(g, outputs, [x, y])
    dense = np.zeros((2, 2))
    dense[matrix.rows, matrix.cols] = evaluate(emit(g, matrix.nodes, 2), 0, [0.3, 0.6], [0, 0])
    along = directional(g, outputs, seeds)
    np.testing.assert_allclose(
        evaluate(emit(g, along, 2), 0, [0.3, 0.6], [0, 0]), dense @ [0.3, -2.0], rtol=1e-14
    )


def test_total_derivatives_against_exact_ones(g):
    """f = exp(y) sin(t) y' along y = log(1 + t): all derivatives from mpmath."""
    node = g.mul(g.mul(g.unary(op.EXP, g.y(0)), g.unary(op.SIN, g.time())), g.y(0, 1))

    def along(t):
        y = mpmath.log(1 + t)
        return mpmath.exp(y) * mpmath.sin(t) / (1 + t)

    t0 = mpmath.mpf("0.4")
    for times in range(5):
        (rate,) = total_derivative(g, [node], times)
        highest = times + 1
        jet = [float(mpmath.diff(lambda t: mpmath.log(1 + t), t0, k)) for k in range(highest + 1)]
        leaves = {g.y(0, k): g.constant(jet[k]) for k in range(highest + 1)}
        (number,) = substitute(g, [rate], leaves | {g.time(): g.constant(float(t0))})
        assert g.value(number) == pytest.approx(float(mpmath.diff(along, t0, times)), rel=1e-11)


def test_switches(g):
    def fun(t, y, yp):
        return [yp[0] + abs(y[0]), yp[1] - (y[0] if y[1] > t else max(y[0], 2.0))]

    traced = trace(fun, 2)
    graph = traced.graph
    codes = {graph.nodes[node][0] for node in traced.switches}
    assert codes == {op.ABS, op.LT, op.MAX}
    zeros = {formula(graph, switching_function(graph, s), ["x", "z"]) for s in traced.switches}
    assert zeros == {"x", "t - z", "x - 2"}


@pytest.mark.parametrize("fun", [
    lambda t, y, yp: [yp[0] + np.sqrt(max(y[0], 0.0))],
    lambda t, y, yp: [yp[0] - 0.3 * np.maximum(2.0 * y[0], 0.0) ** 0.7],
    lambda t, y, yp: [yp[0] + np.sqrt(np.sqrt(np.clip(y[0], 0.0, None)))],
    lambda t, y, yp: [yp[0] - np.sqrt(0.25 * (y[0] if y[0] > 0 else 0.0)) * (1.0 + yp[0])],
])
def test_slopes_are_zero_where_a_root_is_kept_at_zero(fun):
    """There the root is infinitely steep, and what is inside it does not change."""
    traced = trace(fun, 1)
    for y in (-1.0, -1e-300):
        fy, fyp = jacobians(traced, 0.0, np.array([y]), np.array([0.0]))
        assert fy[0, 0] == 0.0
        assert fyp[0, 0] == 1.0


# --- random expressions ----------------------------------------------------------------------

LEAVES = ["t", "y[0]", "y[1]", "yp[0]", "yp[1]", "0.5", "2", "-1.25"]
SMOOTH = ["math.sin({})", "np.tanh({})", "np.exp(-abs({}))", "({})**2", "-({})", "({})**3"]
PAIRS = ["({}) + ({})", "({}) - ({})", "({}) * ({})", "({}) / (2.0 + ({})**2)"]
ROUGH = ["max({}, {})", "(({0}) if ({0}) > ({1}) else ({1})**2)", "np.where({0} < {1}, {1}, 3.0)"]
EXPRESSIONS = st.recursive(
    st.sampled_from(LEAVES),
    lambda inner: st.one_of(
        st.builds(str.format, st.sampled_from(SMOOTH), inner),
        st.builds(str.format, st.sampled_from(PAIRS + ROUGH), inner, inner),
    ),
    max_leaves=12,
)


@settings(max_examples=200, deadline=None)
@given(st.tuples(EXPRESSIONS, EXPRESSIONS), st.integers(0, 2**32 - 1))
def test_random_expressions(texts, seed):
    source = f"def fun(t, y, yp):\n    return [{texts[0]}, {texts[1]}]\n"
    space = {"math": math, "np": np}
    exec(source, space)
    fun = space["fun"]
    try:
        traced = trace(fun, 2)
    except TraceFailure as failure:
        assert "more than 64 paths" in str(failure)  # noqa: PT017
        return
    rng = np.random.default_rng(seed)
    t, y, yp = rng.uniform(-2, 2), rng.uniform(-2, 2, 2), rng.uniform(-2, 2, 2)
    program = traced.program()
    expected = np.array(fun(t, y, yp), dtype=float)
    np.testing.assert_allclose(evaluate(program, t, y, yp), expected, rtol=1e-11, atol=1e-11)
    steps = 1j * STEP * np.eye(2)
    slopes = evaluate(program, t, y[:, None] + steps, yp[:, None] + 0 * steps).imag / STEP
    np.testing.assert_allclose(
        jacobians(traced, t, y, yp)[0], slopes, rtol=1e-9, atol=1e-9 * (1 + np.abs(slopes).max())
    )
