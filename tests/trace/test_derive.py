"""Graphs, their derivatives and programs, and the gallery traced."""

import math
import types
from collections import deque

import mpmath
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from tether import gallery
from tether.trace import (
    Graph,
    NoProgram,
    TraceFailure,
    cache_key,
    directional,
    emit,
    evaluate,
    formula,
    jacobian,
    substitute,
    switching_function,
    total_derivative,
    trace,
    verify,
)
from tether.trace import opcodes as op
from tether.trace.operations import NAMES

STEP = 1e-30


@pytest.fixture
def g():
    return Graph()


def value(graph, node, t=0.7, y=(0.3, 0.6), yp=(1.1, -0.4)):
    return evaluate(emit(graph, [node], len(y)), t, y, yp)[0]


# --- simplification ---------------------------------------------------------------------------


def test_equal_expressions_are_one_node(g):
    x, y, t = g.y(0), g.y(1), g.time()
    assert g.add(x, g.mul(y, t)) == g.add(g.mul(t, y), x)
    assert g.sub(x, y) != g.sub(y, x)
    assert g.sub(y, x) == g.neg(g.sub(x, y))


def test_neutral_elements(g):
    x, zero, one = g.y(0), g.zero, g.one
    assert g.add(x, zero) == g.mul(one, x) == g.div(x, one) == g.powi(x, 1) == x
    assert g.neg(g.neg(x)) == g.sub(x, zero) == g.pow(x, one) == x
    assert g.mul(x, zero) == g.sub(x, x) == g.div(zero, x) == zero
    assert g.powi(x, 0) == one
    assert g.powi(x, 2) == g.pow(x, g.constant(2.0)) == g.mul(x, x)


def test_constants_are_folded_unless_the_result_is_not_finite(g):
    two, three = g.constant(2.0), g.constant(3.0)
    assert g.value(g.mul(g.add(two, three), two)) == 10.0
    assert g.value(g.unary(op.SIN, two)) == math.sin(2.0)
    assert not g.is_constant(g.div(two, g.zero))
    assert not g.is_constant(g.unary(op.LOG, g.constant(-1.0)))
    assert value(g, g.div(two, g.zero)) == math.inf


def test_signs_move_outside(g):
    x, y = g.y(0), g.y(1)
    assert g.mul(g.neg(x), g.neg(y)) == g.mul(x, y)
    assert g.add(g.neg(x), y) == g.sub(y, x)
    assert g.unary(op.SIN, g.neg(x)) == g.neg(g.unary(op.SIN, x))
    assert g.unary(op.COS, g.neg(x)) == g.unary(op.COS, x)
    assert g.powi(g.neg(x), 3) == g.neg(g.powi(x, 3))
    assert g.mul(g.constant(-2.0), x) == g.neg(g.mul(g.constant(2.0), x))


def test_zeros_of_both_signs_and_nan_stay_apart(g):
    assert g.constant(-0.0) != g.constant(0.0)
    assert g.constant(math.nan) == g.constant(math.nan)
    assert math.isnan(g.value(g.constant(math.nan)))


def test_select_on_known_and_negated_conditions(g):
    x, y = g.y(0), g.y(1)
    condition = g.binary(op.LT, x, y)
    assert g.select(g.one, x, y) == x
    assert g.select(condition, x, x) == x
    assert g.select(g.logical_not(condition), x, y) == g.select(condition, y, x)
    assert g.logical_and(condition, g.one) == g.logical_or(condition, condition) == condition


def test_supports_and_levels(g):
    x, t, p = g.y(0, 2), g.time(), g.arg(0)
    static, timed, full = g.mul(p, p), g.mul(p, t), g.mul(g.mul(p, t), x)
    assert [g.level[node] for node in (g.one, static, timed, full)] == [0, 1, 2, 3]
    assert g.supports([static, full, g.one]) == [{p}, {p, t, x}, set()]


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
        assert "more than 64 ways" in str(failure)  # noqa: PT017
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


# --- formulas ---------------------------------------------------------------------------------


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


# --- programs ---------------------------------------------------------------------------------


def test_instructions_stand_in_groups():
    def fun(t, y, yp, k):
        return [yp[0] + y[0] * math.exp(k) * math.sin(k * t), y[1] - k]

    traced = trace(fun, 2, (0.5,))
    program = traced.program()
    assert [NAMES[code] for code in program.op[: program.n_static]] == ["EXP"]
    timed = [NAMES[code] for code in program.op[program.n_static : program.n_time]]
    assert timed == ["MUL", "SIN"]
    assert program.size == 7
    assert (program.n, program.p, program.base) == (2, 1, program.n_const + 6)


def test_a_negation_costs_nothing_where_its_operand_can_take_it(g):
    x, y = g.y(0), g.y(1)
    outputs = [g.mul(g.constant(-2.0), x), g.neg(g.sub(x, y)), g.div(g.constant(-3.0), y)]
    program = emit(g, outputs, 2)
    assert sorted(NAMES[code] for code in program.op) == ["DIV", "MUL", "SUB"]
    np.testing.assert_array_equal(evaluate(program, 0, [2.0, 4.0], [0, 0]), [-4.0, 2.0, -0.75])


def test_outputs_may_be_inputs_and_constants(g):
    program = emit(g, [g.y(1, 1), g.constant(4.0), g.time(), g.arg(0)], 2, 1)
    assert program.size == 0
    values = evaluate(program, 0.5, [1.0, 2.0], [3.0, 4.0], [5.0])
    np.testing.assert_array_equal(values, [4.0, 4.0, 0.5, 5.0])


def test_many_points_at_once():
    problem = gallery.akzo()
    program = trace(problem.fun, problem.n).program()
    y = problem.y0[:, None] * [1.0, 1.1, 1.2]
    values = evaluate(program, np.zeros(3), y, y)
    for k in range(3):
        np.testing.assert_allclose(
            values[:, k], problem.fun(0.0, y[:, k], y[:, k]), rtol=1e-14, atol=1e-17
        )


def test_higher_derivatives_have_no_place_in_a_program(g):
    with pytest.raises(NoProgram, match="derivative 2 of unknown 0"):
        emit(g, [g.y(0, 2)], 1)
    assert evaluate(emit(g, substitute(g, [g.y(0, 2)], {g.y(0, 2): g.y(1)}), 2), 0, [1, 2], [3, 4])


# --- the gallery ------------------------------------------------------------------------------


def near_start(problem, seed):
    rng = np.random.default_rng(seed)
    y = problem.y0 + 0.1 * problem.atol_scale * rng.uniform(1, 2, problem.n)
    return 0.3, y, problem.yp0 + rng.uniform(-1, 1, problem.n)


def jacobians(traced, t, y, yp):
    parts = []
    for matrix in (traced.f_y, traced.f_yp):
        dense = np.zeros(matrix.shape)
        dense[matrix.rows, matrix.cols] = evaluate(traced.program(matrix.nodes), t, y, yp)
        parts.append(dense)
    return parts


@pytest.mark.parametrize("name", gallery.names())
def test_gallery_is_traced_and_verified(name):
    problem = gallery.get(name)
    traced = trace(problem.fun, problem.n)
    verify(traced, problem.fun, problem.t_span[0], problem.y0, problem.yp0)
    assert traced.notes == []


@pytest.mark.parametrize("name", gallery.names())
def test_gallery_jacobians_against_complex_steps(name):
    problem = gallery.get(name)
    traced = trace(problem.fun, problem.n)
    t, y, yp = near_start(problem, 5)
    steps = 1j * STEP * np.eye(problem.n)
    program = traced.program()
    points = y[:, None] + 0 * steps, yp[:, None] + 0 * steps
    expected = (
        evaluate(program, t, points[0] + steps, points[1]).imag / STEP,
        evaluate(program, t, points[0], points[1] + steps).imag / STEP,
    )
    for found, matrix in zip(jacobians(traced, t, y, yp), expected, strict=True):
        np.testing.assert_allclose(found, matrix, rtol=1e-13, atol=1e-13 * np.abs(matrix).max())


@pytest.mark.parametrize("name", [n for n in gallery.names() if gallery.get(n).jac])
def test_gallery_jacobians_against_those_written_by_hand(name):
    problem = gallery.get(name)
    point = near_start(problem, 6)
    found = jacobians(trace(problem.fun, problem.n), *point)
    for actual, known in zip(found, problem.jac(*point), strict=True):
        np.testing.assert_allclose(actual, known, rtol=1e-13, atol=1e-13 * np.abs(known).max())


def test_sparsity_is_that_of_the_equations():
    traced = trace(gallery.heat1d(m=40).fun, 40)
    assert len(traced.f_y.nodes) == 2 + 3 * 38
    assert max(abs(i - j) for i, j in zip(traced.f_y.rows, traced.f_y.cols, strict=True)) == 1
    assert traced.program(traced.f_y.nodes + traced.f_yp.nodes).size == 0


# The size of a program is its speed.
@pytest.mark.parametrize(
    ("name", "residual", "both"),
    [("robertson", 13, 18), ("akzo", 40, 78), ("pend-i1", 17, 27), ("caraxis-i1", 87, 190)],
)
def test_programs_stay_small(name, residual, both):
    problem = gallery.get(name)
    traced = trace(problem.fun, problem.n)
    everything = traced.outputs + traced.f_y.nodes + traced.f_yp.nodes
    assert traced.program().size <= residual
    assert traced.program(everything).size <= both


def test_derivatives_by_time_and_arguments():
    def fun(t, y, yp, k, rates):
        return [yp[0] + k * math.sin(t) * y[0], yp[1] - rates[1] * y[1] * t**2]

    args = (2.0, np.array([3.0, 4.0]))
    traced = trace(fun, 2, args)
    flat = traced.args.flatten(args)
    point = 0.3, [0.5, 0.6], [1.0, 1.0], flat
    slopes = evaluate(traced.program(traced.f_t.nodes), *point)
    np.testing.assert_allclose(slopes, [2 * math.cos(0.3) * 0.5, -4 * 0.6 * 0.6], rtol=1e-14)
    assert (traced.f_args.rows, traced.f_args.cols) == ([0, 1], [0, 2])
    slopes = evaluate(traced.program(traced.f_args.nodes), *point)
    np.testing.assert_allclose(slopes, [math.sin(0.3) * 0.5, -0.6 * 0.09], rtol=1e-14)
    assert traced.args.names == ["args[0]", "args[1][0]", "args[1][1]"]


# --- verification -----------------------------------------------------------------------------


def verified(fun, other, n=2):
    """Check a function against the trace of another one."""
    verify(trace(fun, n), other, 0.1, np.full(n, 0.5), np.full(n, 0.25))


def test_verification_names_the_equation_that_differs():
    with pytest.raises(TraceFailure, match="equation 1 was traced to something else"):
        verified(
            lambda t, y, yp: [yp[0], y[1] ** 2], lambda t, y, yp: [yp[0], y[1] ** 2 * (1 + 1e-12)]
        )


def test_verification_allows_rounding_of_large_terms():
    verified(
        lambda t, y, yp: [yp[0], (1e8 + y[0]) - 1e8],
        lambda t, y, yp: [yp[0], (1e8 - 1e8) + y[0]],
    )
    verified(
        lambda t, y, yp: [np.sum(np.sin(y) * 1e5) - 1e5, yp[0]],
        lambda t, y, yp: [-1e5 + math.fsum(1e5 * math.sin(x) for x in y[::-1]), yp[0]],
    )


def test_verification_sees_a_branch_the_trace_does_not_have():
    with pytest.raises(TraceFailure, match="equation 0"):
        verified(lambda t, y, yp: list(yp), lambda t, y, yp: [yp[0] + (y[0] > 0.8), yp[1]])


def test_verification_sees_randomness_and_hidden_state():
    rng = np.random.default_rng(0)
    with pytest.raises(TraceFailure, match="when called again"):
        verified(lambda t, y, yp: list(yp), lambda t, y, yp: list(yp + rng.normal() * 1e-12))


def test_verification_leaves_out_points_where_the_function_raises():
    def fun(t, y, yp):
        return [yp[0] + math.sqrt(y[0]), yp[1] - math.log(y[1])]

    verified(fun, fun)
    with pytest.raises(TraceFailure, match="raises ValueError at the start"):
        verify(trace(fun, 2), fun, 0.0, [-1.0, 1.0], [0.0, 0.0])


def test_verification_refuses_wrong_shapes():
    with pytest.raises(TraceFailure, match=r"shape \(3,\)"):
        verified(lambda t, y, yp: list(yp), lambda t, y, yp: [*yp, 0.0])


# --- cache ------------------------------------------------------------------------------------

RATE = 2.0
TABLE = np.array([1.0, 2.0])


def helper(x):
    return RATE * x + TABLE[0]


def uses_helper(t, y, yp):
    return [yp[0] + helper(y[0])]


def test_key_notices_what_the_function_depends_on(monkeypatch):
    keys = [cache_key(uses_helper, 1)]
    monkeypatch.setitem(globals(), "RATE", 3.0)
    keys.append(cache_key(uses_helper, 1))
    monkeypatch.setitem(globals(), "TABLE", np.array([5.0, 2.0]))
    keys.append(cache_key(uses_helper, 1))
    TABLE[0] = 6.0
    keys.append(cache_key(uses_helper, 1))
    monkeypatch.setitem(globals(), "helper", lambda x: x)
    keys.append(cache_key(uses_helper, 1))
    keys.append(cache_key(uses_helper, 2))
    assert len(set(keys)) == len(keys)
    assert cache_key(uses_helper, 2) == keys[-1]


def test_key_notices_closures_defaults_attributes_and_classes():
    class Model:
        factor = 1.0

        def __init__(self, k):
            self.k = k

        def residual(self, t, y, yp):
            return [yp[0] + self.factor * self.k * y[0]]

    def make(k, settings):
        return lambda t, y, yp, shift=k: [yp[0] + settings["k"] * y[0] + shift]

    settings = {"k": 1.0}
    keys = [cache_key(make(k, settings), 1) for k in (1.0, 2.0, 0.0, -0.0)]
    settings["k"] = 2.0
    keys.append(cache_key(make(1.0, settings), 1))
    model = Model(2.0)
    keys.append(cache_key(model.residual, 1))
    model.k = 3.0
    keys.append(cache_key(model.residual, 1))
    Model.factor = 5.0
    keys.append(cache_key(model.residual, 1))
    assert len(set(keys)) == len(keys)
    assert cache_key(Model(3.0).residual, 1) == keys[-1]


class Slotted:
    __slots__ = ("k",)

    def __init__(self, k):
        self.k = k

    def __call__(self, t, y, yp):
        return [yp[0] + self.k * y[0]]


@pytest.mark.parametrize(
    ("make", "change"),
    [
        (lambda: [1.0], lambda x: x.append(2.0)),
        (lambda: {1.0}, lambda x: x.add(2.0)),
        (lambda: deque([1.0]), lambda x: x.append(2.0)),
        (lambda: {"a": [1.0]}, lambda x: x["a"].append(2.0)),
        (lambda: types.SimpleNamespace(k=1.0), lambda x: setattr(x, "k", 2.0)),
        (lambda: Slotted(1.0), lambda x: setattr(x, "k", 2.0)),
        (lambda: np.zeros(2000), lambda x: x.__setitem__(1999, 1.0)),
        (lambda: scipy.sparse.eye_array(3).tocsr(), lambda x: x.data.__setitem__(1, 1.5)),
        (lambda: np.float64(2.0), None),
    ],
)
def test_key_notices_changes_inside_captured_objects(make, change):
    def capture(thing):
        return lambda t, y, yp: [yp[0] + y[0], thing]

    thing = make()
    before = cache_key(capture(thing), 1)
    assert cache_key(capture(make()), 1) == before
    if change is not None:
        change(thing)
        assert cache_key(capture(thing), 1) != before


def test_key_takes_floats_by_shape_and_the_rest_by_value():
    def fun(t, y, yp, *args):
        return yp

    assert cache_key(fun, 1, (2.0, np.ones(3))) == cache_key(fun, 1, (5.0, np.zeros(3)))
    assert cache_key(fun, 1, (2.0,)) != cache_key(fun, 1, (2,))
    assert cache_key(fun, 1, (2,)) != cache_key(fun, 1, (3,))
    assert cache_key(fun, 1, (np.ones(3),)) != cache_key(fun, 1, (np.ones(4),))
    assert cache_key(fun, 1, ("a",)) != cache_key(fun, 1, ("b",))


def test_key_of_recursive_functions():
    def power(x, k):
        return x if k == 1 else x * power(x, k - 1)

    def fun(t, y, yp):
        return [yp[0] + power(y[0], 3)]

    assert cache_key(fun, 1) == cache_key(fun, 1)
    assert value(trace(fun, 1).graph, trace(fun, 1).outputs[0], y=[2.0], yp=[1.0]) == 9.0
