"""Programs made of expressions."""

import math

import numpy as np
import pytest

from tether import gallery
from tether.trace import Graph, NoProgram, emit, evaluate, substitute, trace
from tether.trace.operations import NAMES


@pytest.fixture
def g():
    return Graph()


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
