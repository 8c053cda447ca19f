"""The size of the first step."""

import numpy as np
import pytest

from tether import gallery, solve_dae

LOW_INDEX = [
    name
    for name in gallery.names("classic")
    if gallery.get(name).index <= 1 and name != "heat1d"
]


@pytest.mark.parametrize("name", LOW_INDEX)
def test_first_step_suits_the_gallery(name):
    """Neither so long that the error test fails often, nor so short that steps are wasted."""
    problem = gallery.get(name)
    sol = solve_dae(problem.fun, problem.t_span, problem.y0, problem.yp0, rtol=1e-6,
                    atol=problem.atol(1e-6), max_steps=25)
    assert sol.stats.error_test_failures <= 6
    assert sol.stats.convergence_failures == 0
    ordinary = np.median(np.abs(sol.stats.h[-5:]))
    assert np.abs(sol.stats.h[0]) > 1e-9 * ordinary
