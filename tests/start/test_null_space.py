"""Directions of y' that the equations do not see."""

import numpy as np
import pytest

from tether import gallery, solve_dae


def test_blocks_in_units_of_their_own_are_not_mixed_in_full_matrices():
    problem = gallery.get("adding-unit")
    sol = solve_dae(
        problem.fun, (0, 1e-3), problem.y0, problem.yp0, rtol=1e-5, start="quiet",
        options={"linear_solver": "dense"},
    )
    assert sol.success
    assert sol.start.residual[1] < 1e-10


@pytest.mark.parametrize("n", [20, 60])
def test_a_null_vector_that_falls_below_round_off_is_no_obstacle(n):
    """Capacitors along a line on a source: beyond 30 of them nothing is left of the jump."""
    def ladder(t, y, yp):
        charge = [1.5 * yp[k] - 0.5 * (yp[k - 1] if k else 0.0) for k in range(n)]
        nodes = [charge[k] + y[k] - y[n + k] for k in range(n)]
        means = [y[n + k] - 0.5 * (y[k] + (y[k - 1] if k else 0.0)) for k in range(n)]
        return [y[0] - 1.0, *nodes[1:], *means]

    sol = solve_dae(ladder, (0, 0.1), np.zeros(2 * n), start="quiet")
    assert sol.success
    np.testing.assert_allclose(sol.y[:n, 0], 3.0 ** -np.arange(n), atol=1e-9)
