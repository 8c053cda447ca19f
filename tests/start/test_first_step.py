"""The size of the first step."""

import numpy as np
import pytest

from tether import Bdf, gallery, solve_dae

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


def heat(n, bump=0.0):
    """Heat on a line of n points from its slowest mode, or from one with a bump on it."""
    width = 1.0 / (n + 1)

    def equations(t, y, yp):
        u = np.concatenate([[0.0], y, [0.0]])
        return yp - (u[2:] - 2 * u[1:-1] + u[:-2]) / width**2

    y0 = np.sin(np.pi * width * np.arange(1, n + 1))
    y0[n // 2] += bump
    return equations, y0


@pytest.mark.parametrize("trace", ["auto", "never"])
def test_round_off_on_fine_grids_does_not_shorten_it(trace):
    steps = []
    for n in (500, 20_000):
        equations, y0 = heat(n)
        given = {} if trace == "auto" else {"lband": 1, "uband": 1}
        sol = solve_dae(equations, (0, 0.1), y0, rtol=1e-6, atol=1e-9, trace=trace, **given)
        exact = y0 * np.exp(-0.1 * (2 * (n + 1) * np.sin(np.pi / (n + 1) / 2)) ** 2)
        assert np.abs(sol.y[:, -1] - exact).max() < 2e-6
        steps.append((sol.t[1], sol.stats.steps))
    assert steps[1][0] == pytest.approx(steps[0][0], rel=0.2)
    assert steps[1][1] <= steps[0][1] + 2


def test_a_layer_at_the_start_is_not_stepped_over():
    """What vanishes within 1e-9 is followed if it is there, however stiff it is."""
    equations, y0 = heat(20_000, bump=1e-2)
    sol = solve_dae(equations, (0, 0.1), y0, rtol=1e-6, atol=1e-9, t_eval=[1e-9, 0.1])
    assert sol.success
    fine = solve_dae(equations, (0, 1e-9), y0, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(sol.y[:, 0], fine.y[:, -1], atol=1e-5)
    first = solve_dae(equations, (0, 0.1), y0, rtol=1e-6, atol=1e-9, max_steps=1, t_eval=None)
    assert first.t[1] < 1e-11


def test_without_an_end_it_is_chosen_by_the_curvature():
    equations, y0 = heat(20_000)
    run = Bdf(equations, 0.0, y0, options={"rtol": 1e-6, "atol": 1e-9})
    run.step()
    assert run.t == pytest.approx(4.6e-6, rel=0.9)
