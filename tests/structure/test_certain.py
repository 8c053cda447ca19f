"""Unknowns that are certain stand in an expression whatever the conditions answer."""

from itertools import product

import numpy as np
import pytest

from tether.structure.certain import certain_unknowns
from tether.structure.modes import _relevant, _Structure, _surfaces, find_modes
from tether.trace import opcodes as op
from tether.trace import trace
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


def network(count, switched):
    """Make cells, each with a diode; of some the equation changes its kind."""

    def residual(t, y, yp):
        result = []
        for i in range(count):
            current = y[i] ** 2 if y[i] > 0.0 else 0.0
            if i in switched:
                result.append(yp[i] + current if y[i - 1] > 0.5 else y[i] - current)
            else:
                result.append(yp[i] + current - y[i - 1])
        return result

    return residual


@pytest.mark.parametrize("switched", [(), (3,), (2, 9)])
def test_the_short_way_finds_the_surfaces_that_matter(switched):
    traced = trace(network(12, switched), 12)
    surfaces = _surfaces(traced.graph, traced.outputs)
    assert len(surfaces) >= 12
    for form in (0, 1):
        short, long = (_Structure(traced, surfaces, form) for _ in range(2))
        long._match, long._certain = None, set()
        sides = [{k: side} for k in range(len(surfaces)) for side in (True, False)]
        assert [short.of(side) for side in sides] == [long.of(side) for side in sides]


def test_surfaces_are_looked_at_only_where_an_equation_may_lose_its_variable(monkeypatch):
    import tether.structure.modes as modes

    looked = []
    monkeypatch.setattr(
        modes, "decided", lambda graph, outputs, held: looked.append(1) or decided(
            graph, outputs, held)
    )
    assert find_modes(trace(network(40, ()), 40), 1) is None
    assert not looked
