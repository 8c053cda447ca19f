"""The surfaces on which the structure depends."""

import pytest

from tether.structure.modes import _Structure, _surfaces, find_modes
from tether.trace import trace
from tether.trace.rewrite import decided


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
