"""A circuit with many conditions, of which several change at one time: the two-bit adding unit."""

import numpy as np
import pytest
from support.adding_unit import END, OUTPUTS, RESULT, START, adder

from tether import analyze, gallery, solve_dae


def test_it_starts_at_rest_with_index_1():
    assert np.max(np.abs(adder(0.0, START, np.zeros(175)))) < 1e-6
    report = analyze(adder, 0.0, START)
    assert (report.index, report.dof) == (1, 162)


def test_nothing_is_held_where_transistors_switch_together():
    problem = gallery.adding_unit(t_end=10.0)
    sol = problem.solve(rtol=1e-4, atol=1e-4)
    assert sol.success, sol.message
    assert "structure" not in sol.how
    assert not sol.warnings
    assert np.allclose(sol.y[OUTPUTS, -1], [4.9999, 0.2282, 0.2040], atol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("trace", ["auto", "never"])
def test_it_adds(trace):
    """All sums of two numbers of two bits and a carry, one after the other, as printed."""
    sol = solve_dae(adder, (0, END), START, rtol=1e-4, atol=1e-4, trace=trace, t_eval=[END])
    assert sol.success, sol.message
    assert np.allclose(sol.y[OUTPUTS, -1], RESULT, rtol=0, atol=1e-4)


@pytest.mark.slow
def test_the_circuit_that_was_meant_adds_as_well():
    sol = gallery.adding_unit(t_end=END).solve(rtol=1e-5, atol=1e-5)
    assert sol.success, sol.message
    assert np.allclose(sol.y[OUTPUTS, -1], RESULT, rtol=0, atol=1e-3)
