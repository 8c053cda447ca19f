"""Events that depend on time alone are looked up ahead."""

import numpy as np
import pytest

from tether import solve_dae


@pytest.mark.parametrize("span", [(0.0, 10.0), (10.0, 0.0)])
@pytest.mark.parametrize("apply", [None, lambda t, y: y])
def test_a_clock_ticks_however_long_the_steps_are(span, apply):
    """What depends on time alone is looked up ahead: a solution at rest takes few steps."""
    def tick(t, y):
        return np.sin(np.pi * t / 0.1)

    tick.apply = apply
    sol = solve_dae(lambda t, y, yp: [yp[0] + y[0]], span, [0.0], events=tick, trace="always")
    inside = sol.t_events[0][(sol.t_events[0] > 1e-9) & (sol.t_events[0] < 10 - 1e-9)]
    np.testing.assert_allclose(np.sort(inside), 0.1 * np.arange(1, 100), atol=1e-12)


@pytest.mark.parametrize("gap", [1e-3, 1e-6, 1e-9])
def test_two_times_next_to_each_other(gap):
    def both(t, y):
        return (t - 7.3) * (t - 7.3 - gap)

    sol = solve_dae(lambda t, y, yp: [yp[0] + y[0]], (0, 10), [1.0], events=both, trace="always")
    np.testing.assert_allclose(sol.t_events[0], [7.3, 7.3 + gap], atol=1e-14)
