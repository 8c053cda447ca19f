"""A circuit with many conditions: the two-bit adding unit, called instead of traced."""

import numpy as np
import pytest
from support.adding_unit import END, OUTPUTS, RESULT, START, adder

from tether import analyze, solve_dae


def test_it_starts_at_rest_with_index_1():
    assert np.max(np.abs(adder(0.0, START, np.zeros(175)))) < 1e-6
    report = analyze(adder, 0.0, START)
    assert (report.index, report.dof) == (1, 162)


@pytest.mark.slow
def test_it_adds():
    """All sums of two numbers of two bits and a carry, one after the other."""
    sol = solve_dae(adder, (0, END), START, rtol=1e-4, atol=1e-4, trace="never", t_eval=[END])
    assert sol.success, sol.message
    assert np.allclose(sol.y[OUTPUTS, -1], RESULT, rtol=0, atol=1e-4)
