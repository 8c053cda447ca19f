"""Errors that no shorter step makes less, and unknowns that pass zero, do not shrink the step.

The step is kept where the error is some tenths of the tolerance, what equations without slopes
determine has round-off of its own, and tolerances are taken from two points.
"""

import numpy as np
import pytest
from support.derivatives import bridge

from tether import gallery, solve_dae


@pytest.mark.parametrize("supply", [2.99, 3.0, 3.01, 3.02, 5.0])
def test_round_off_of_a_few_tenths_of_the_tolerance(supply):
    """Behind one of its switches such a rectifier took 21 million steps."""
    sol = solve_dae(
        bridge, (0, 3), [0.1, 0, 0], args=(5.0, 0.3, supply, 4.0), start="quiet", rtol=1e-11,
        atol=1e-13, options={"max_steps": 10_000},
    )
    assert sol.success, sol.message


@pytest.mark.parametrize("rtol", [10**-3.5, 10**-4.5, 10**-5.875])
def test_accelerations_that_pass_zero_have_a_tolerance(rtol):
    problem = gallery.get("andrews-i1")
    sol = problem.solve(rtol=rtol, t_eval=np.linspace(*problem.t_span, 200))
    assert sol.success, sol.message
    assert problem.digits(sol.y[:, -1]) > -np.log10(rtol) - 2.5


def test_multipliers_between_the_steps_take_steps_in_proportion_to_the_tolerance():
    """Asked for at many times, they once had several times the steps at some tolerances."""
    problem = gallery.get("clamped-line")
    times = np.linspace(*problem.t_span, 200)
    tolerances = 10.0 ** -np.arange(3.5, 8.6, 0.5)
    runs = [problem.solve(rtol=rtol, t_eval=times) for rtol in tolerances]
    assert all(sol.success for sol in runs)
    steps = np.array([sol.stats.steps for sol in runs])
    assert steps[0] < 1000
    ratio = steps[1:] / steps[:-1]
    assert ratio.min() > 1.0
    assert ratio.max() < 1.3
