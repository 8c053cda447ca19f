"""Redundant constraints."""

import numpy as np
import pytest
from support.reduced import analysis_of, pendulum, problem_of, solve

from tether import solve_dae
from tether.gallery import raw_mechanisms as raw


@pytest.mark.parametrize(
    "problem", [raw.duplicated_pendulum(), raw.parallel_cranks()], ids=lambda problem: problem.name
)
def test_redundant_constraints_leave_the_motion_determined(problem):
    found = analysis_of(problem.fun, problem.rough)
    assert found.redundant
    assert (found.index, found.dof) == (problem.index, problem.dof)
    sol = solve_dae(problem_of(found.reduced), (0.0, 1.0), found.start.y, found.start.yp,
                    rtol=1e-8, atol=1e-10)
    assert sol.success
    assert np.abs(sol.drift).max() < 1e-12


def test_the_duplicated_pendulum_moves_as_the_single_one():
    problem = raw.duplicated_pendulum()
    twice, _ = solve(problem.fun, problem.y0, 1.0, rtol=1e-9, atol=1e-11)
    once, _ = solve(pendulum, problem.y0[:5], 1.0, rtol=1e-9, atol=1e-11)
    assert twice.y[:4, -1] == pytest.approx(once.y[:4, -1], abs=1e-6)
    lam, mu = twice.y[4:, -1]
    assert lam + 2 * mu == pytest.approx(once.y[4, -1], abs=1e-5)
    assert mu == pytest.approx(2 * lam, rel=1e-9)  # the shortest of all
