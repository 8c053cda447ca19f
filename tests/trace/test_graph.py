"""Expressions: equal ones are one node, simplified as they are made."""

import math

import pytest

from tether.trace import Graph, emit, evaluate
from tether.trace import opcodes as op


@pytest.fixture
def g():
    return Graph()


def value(graph, node, t=0.7, y=(0.3, 0.6), yp=(1.1, -0.4)):
    return evaluate(emit(graph, [node], len(y)), t, y, yp)[0]


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
