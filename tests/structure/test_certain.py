"""Unknowns that are certain stand in an expression whatever the conditions answer."""

from itertools import product

import numpy as np
import pytest

from tether.structure.certain import certain_unknowns
from tether.structure.modes import _relevant
from tether.trace import opcodes as op
from tether.trace.graph import Graph
from tether.trace.rewrite import decided

OPERATIONS = [
    lambda g, x, y, c: g.add(x, y),
    lambda g, x, y, c: g.sub(x, y),
    lambda g, x, y, c: g.mul(x, y),
    lambda g, x, y, c: g.div(x, y) if y != g.zero else x,
    lambda g, x, y, c: g.select(c, x, y),
    lambda g, x, y, c: g.select(c, x, g.zero),
    lambda g, x, y, c: g.mul(c, x),
    lambda g, x, y, c: g.binary(op.MIN, x, y),
    lambda g, x, y, c: g.unary(op.SIN, x),
    lambda g, x, y, c: g.add(x, g.neg(y)),
    lambda g, x, y, c: g.pow(x, y),
]


def random_expressions(rng, graph):
    """Make expressions of few leaves, so that terms often cancel and factors often vanish."""
    nodes = [graph.y(0), graph.y(1), graph.y(0, 1), graph.zero, graph.one, graph.time()]
    conditions = [
        graph.binary(op.LT, graph.y(j), graph.constant(float(j + k)))
        for j in range(2) for k in range(2)
    ]
    for _ in range(14):
        a, b = rng.choice(len(nodes), 2)
        condition = conditions[rng.integers(len(conditions))]
        make = OPERATIONS[rng.integers(len(OPERATIONS))]
        nodes.append(make(graph, nodes[a], nodes[b], condition))
    return nodes[-4:]


@pytest.mark.parametrize("seed", range(60))
def test_certain_unknowns_are_left_on_all_sides(seed):
    rng, graph = np.random.default_rng(seed), Graph()
    outputs = random_expressions(rng, graph)
    certain = certain_unknowns(graph, outputs)
    comparisons = [x for x in graph.cone(outputs) if graph.nodes[x][0] in op.COMPARISONS]
    comparisons = sorted({*comparisons, *_relevant(graph, outputs)})[:7]
    for answers in product((True, False), repeat=len(comparisons)):
        ways = decided(graph, outputs, dict(zip(comparisons, answers, strict=True)))
        for leaves, left in zip(certain, graph.supports(ways), strict=True):
            assert leaves <= left
