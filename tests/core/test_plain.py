"""Programs that are run instruction by instruction, without a schedule."""

import numpy as np
import pytest

from tether._core.plain import Plain
from tether.trace import evaluate, trace
from tether.trace import opcodes as op
from tether.trace.emit import emit
from tether.trace.graph import Graph
from tether.trace.operations import ARITY


def random_program(seed):
    """All operations, on operands of which some are special."""
    rng, graph = np.random.default_rng(seed), Graph()
    nodes = [graph.time(), *(graph.y(j, k) for j in range(3) for k in (0, 1)), graph.arg(0),
             *map(graph.constant, (0.0, 0.5, -2.0))]
    unary = [code for code, count in ARITY.items() if count == 1 and code >= 0
             and code not in (op.POWI, op.SPECIAL, op.TABLE, op.NEG, op.NOT)]
    binary = [code for code, count in ARITY.items() if count == 2 and code > op.DIV
              and code not in (op.AND, op.OR)]
    for _ in range(120):
        a, b, c = (int(x) for x in rng.choice(nodes, 3))
        nodes.append(rng.choice([
            graph.unary(int(rng.choice(unary)), a), graph.binary(int(rng.choice(binary)), a, b),
            graph.add(a, b), graph.minus(a, b), graph.times(a, b), graph.over(a, b), graph.neg(a),
            graph.powi(a, int(rng.integers(-4, 6))),
            graph.select(graph.binary(op.LT, a, b), b, c),
        ]))
    return emit(graph, [int(x) for x in nodes], 3, 1)


@pytest.mark.parametrize("seed", range(20))
def test_plain_runs_are_those_of_the_reference_interpreter(seed):
    program = random_program(seed)
    rng = np.random.default_rng(seed)
    y, yp, args = rng.uniform(-2, 2, (3, 5)), rng.uniform(-2, 2, (3, 5)), rng.uniform(1, 2, (1, 5))
    y[:, -1] = [np.nan, np.inf, -0.0]
    t = np.linspace(-1, 1, 5)
    expected = evaluate(program, t, y, yp, args)
    several = Plain(program, args, 5).values_at_points(t, y, yp)
    for k in range(5):
        one = Plain(program, args[:, k])
        found, errors = one.values_with_errors(t[k], y[:, k], yp[:, k])
        np.testing.assert_array_equal(found, several[:, k])
        with np.errstate(invalid="ignore"):
            near = np.abs(found - expected[:, k]) <= 4 * errors + 1e-300
        same = near | (found == expected[:, k]) | (np.isnan(found) & np.isnan(expected[:, k]))
        assert np.all(same | ~(errors < 1e-6 * np.abs(found)))


def test_plain_runs_call_what_only_python_can():
    class Cube:
        def __call__(self, x):
            return x**3

        def derivative(self):
            return lambda x: 3 * x**2

    graph = Graph()
    node = graph.add(graph.opaque(Cube(), graph.y(0)), graph.one)
    program = emit(graph, [node], 1, opaque=True)
    assert Plain(program).values(0.0, [2.0], [0.0]).tolist() == [9.0]
    _, errors = Plain(program).values_with_errors(0.0, [2.0], [0.0])
    assert 0.0 < errors[0] < 1e-13


def test_plain_runs_refuse_points_of_another_size():
    program = trace(lambda t, y, yp: [yp[0] + y[0]], 1).program()
    with pytest.raises(ValueError, match="has 1 unknowns"):
        Plain(program).values(0.0, [1.0, 2.0], [0.0])


def test_values_that_cannot_be_written_are_read():
    program = trace(lambda t, y, yp: [yp[0] + t * y[0]], 1).program()
    y = np.array([3.0])
    y.flags.writeable = False
    assert Plain(program).values(2.0, y, y).tolist() == [9.0]


@pytest.mark.parametrize("below", [False, True])
def test_a_comparison_with_an_infinite_input_is_certain(below):
    """So conditions are frozen; elsewhere a comparison of equals is as uncertain as it is."""
    graph = Graph()
    height, shift = graph.y(0, 0), graph.arg(0)
    place = graph.constant(0.3)
    moved = graph.add(place, shift) if below else graph.sub(place, shift)
    answer = graph.binary(op.LT, moved, height)
    program = emit(graph, [graph.select(answer, graph.constant(1.0), graph.constant(-0.4))], 1, 1)
    for size, largest in ((np.inf, 1e-15), (0.0, 2.0)):
        for side in (1.0, -1.0):
            plain = Plain(program, np.array([side * size]))
            errors = plain.values_with_errors(0.0, np.array([0.3]), np.zeros(1))[1]
            assert (errors[0] > 1.0) == (largest > 1.0)
            assert errors[0] <= largest
