"""Starting values of reduced systems."""

import numpy as np
import pytest
from support.reduced import G, analysis_of, pendulum

from tether import gallery
from tether.explain.start_words import start_words
from tether.gallery import raw_mechanisms as raw
from tether.trace import evaluate


def test_a_consistent_start_is_kept():
    problem = gallery.get("andrews-i3")
    found = analysis_of(problem.fun, problem.y0)
    assert found.start.success
    assert start_words(found.start.reason) == "consistent as given"
    assert found.start.y == pytest.approx(problem.y0, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    "problem",
    [raw.double_pendulum(), raw.slider_crank(), raw.closed_chain(5), raw.closed_chain(10),
     raw.fekete_index_3(), raw.prescribed(3), raw.prescribed(4), raw.prescribed(5)],
    ids=lambda problem: problem.name,
)
def test_rough_starts_are_made_consistent(problem):
    found = analysis_of(problem.fun, problem.rough)
    assert (found.index, found.dof) == (problem.index, problem.dof)
    assert len(found.reduced.constraints) == problem.constraints
    start = found.start
    assert start.success, start_words(start.reason)
    assert start.residual[1] < 1e-12 * max(1.0, start.residual[0])
    assert np.abs(evaluate(found.reduced.programs.constraints, 0.0, start.y, start.y)).max() < 1e-13
    largest = max(1.0, np.abs(start.yp).max())
    assert np.abs(problem.fun(0.0, start.y, start.yp)).max() < 1e-12 * largest


@pytest.mark.parametrize(
    "problem",
    [raw.double_pendulum(), raw.slider_crank(), raw.closed_chain(5), raw.closed_chain(10),
     raw.fekete_index_3(), raw.duplicated_pendulum(), raw.parallel_cranks(), raw.prescribed(5)],
    ids=lambda problem: problem.name,
)
def test_consistent_starts_are_kept_apart_from_multipliers(problem):
    found = analysis_of(problem.fun, problem.y0)
    states = np.array(found.reduced.full.stages)[: problem.n] < 0
    assert found.start.y[: problem.n][states] == pytest.approx(problem.y0[states], abs=1e-13)


def test_slopes_of_multipliers_are_found():
    problem = gallery.get("pend-i3")
    y = problem.exact(0.4)
    start = analysis_of(problem.fun, y).start
    assert start.y == pytest.approx(y, abs=1e-12)
    assert start.yp[4] == pytest.approx(-3 * 9.8 * y[3], abs=1e-9)  # lam = -3 g z


def test_the_start_moves_as_little_as_possible():
    found = analysis_of(pendulum, [0.66, -0.88, 1.0, 0.0, 0.0])
    x, z, u, w, lam = found.start.y
    assert (x, z) == pytest.approx((0.6, -0.8), abs=1e-14)
    # the velocity loses its part along the rod
    assert (u, w) == pytest.approx((0.64, 0.48), abs=1e-14)
    assert lam == pytest.approx(u * u + w * w - G * z, abs=1e-13)
    assert set(found.start.moved) == {0, 1, 2, 3, 4}


def test_velocities_do_not_move_positions():
    start = analysis_of(pendulum, [0.6, -0.8, 5.0, -3.0, 0.0]).start
    assert start.y[:2].tolist() == [0.6, -0.8]


def test_an_impossible_start_is_named():
    def fun(t, y, yp):
        x, v, f = y
        return [yp[0] - v, yp[1] - f, x * x + 1.0]

    start = analysis_of(fun, [1.0, 0.0, 0.0]).start
    assert not start.success
    assert "equation 2 cannot be satisfied" in start_words(start.reason)
