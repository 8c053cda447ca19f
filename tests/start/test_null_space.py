"""Directions of y' that the equations do not see."""

from tether import gallery, solve_dae


def test_blocks_in_units_of_their_own_are_not_mixed_in_full_matrices():
    problem = gallery.get("adding-unit")
    sol = solve_dae(
        problem.fun, (0, 1e-3), problem.y0, problem.yp0, rtol=1e-5, start="quiet",
        options={"linear_solver": "dense"},
    )
    assert sol.success
    assert sol.start.residual[1] < 1e-10
