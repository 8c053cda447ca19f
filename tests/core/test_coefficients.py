"""Orders 1 to 6 by step refinement, from exact history so that no start-up gets in the way."""

import math

import numpy as np
import pytest

from tether import Bdf, Options, Status

T0, T_END = 0.3, 2.3


def exact(t):
    x = np.sin(t) + 2.0
    return np.array([x, x * x, np.ones_like(x)])


def exact_slope(t):
    return np.array([np.cos(t), 2.0 * (np.sin(t) + 2.0) * np.cos(t), np.zeros_like(t)])


def residual(t, y, yp):
    """Nonlinear index 1: x' = w cos t with z and w from algebraic equations."""
    x, z, w = y
    forcing = (math.sin(t) + 2.0) ** 2
    return [yp[0] - math.cos(t) * w, z - x * x, w * x - x + 0.3 * (z - forcing)]


def integrate(k, steps, pattern, trace):
    """Errors of y at the end, and of y and y' between the steps, with forced step sizes."""
    h = (T_END - T0) / steps
    before = T0 - h * np.arange(k, 0, -1)
    bdf = Bdf(
        residual, T0, exact(T0), None,
        Options(rtol=1e-3, atol=1.0, first_step=h, max_step=h, max_order=k,
                newton_tolerance=1e-13, trace=trace),
        t_bound=T_END, history=(before, exact(before)),
    )
    bdf._integration.state.lowest_order = k     # errors so small tell nothing about orders
    between_y = between_yp = 0.0
    while bdf.status == Status.RUNNING:
        bdf._integration.state.h = h * pattern[bdf.stats.steps % len(pattern)]
        bdf.step()
        assert bdf.order == k
        middle = bdf.t - 0.4 * bdf.step_size
        y, yp = bdf.dense_output()(middle)
        between_y = max(between_y, np.abs(y - exact(middle)).max())
        between_yp = max(between_yp, np.abs(yp - exact_slope(middle)).max())
    assert bdf.status == Status.REACHED_END
    assert bdf.t == T_END
    return np.abs(bdf.y - exact(T_END)).max(), between_y, between_yp


@pytest.mark.parametrize("pattern", [(1.0,), (0.6, 1.0, 1.0), (0.8, 1.0)], ids=str)
@pytest.mark.parametrize("k", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("trace", ["never", "always"])
def test_order_of_the_formula(k, pattern, trace):
    coarse, fine = (np.array(integrate(k, steps, pattern, trace)) for steps in (40, 80))
    end, between_y, between_yp = np.log2(coarse / fine)
    assert end == pytest.approx(k, abs=0.3)
    assert between_y == pytest.approx(k, abs=0.25)
    assert between_yp == pytest.approx(k, abs=0.3)


def test_step_past_the_history_is_not_a_start_up():
    """With k earlier points the first step already has order k."""
    coarse, fine = (
        np.abs(one_step(3, h) - exact(T0 + h)).max() for h in (0.04, 0.02)
    )
    assert math.log2(coarse / fine) > 3.7


def one_step(k, h):
    before = T0 - h * np.arange(k, 0, -1)
    bdf = Bdf(
        residual, T0, exact(T0), None,
        Options(rtol=1e-3, atol=10.0, first_step=h, max_order=k, newton_tolerance=1e-13),
        t_bound=T0 + 10 * h, history=(before, exact(before)),
    )
    bdf.step()
    assert bdf.step_size == pytest.approx(h)
    return bdf.y
