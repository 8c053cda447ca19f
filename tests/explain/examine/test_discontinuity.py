"""Jumps and kinks of functions are located."""

import numpy as np
import pytest

from tether.explain.examine.discontinuity import find_break


@pytest.mark.parametrize("place", [0.1, 1 / 3, 0.5, 0.987654321])
def test_jumps_and_kinks_are_located(place):
    size = np.array([1e-6])
    jump = find_break(lambda t: np.array([np.cos(t) + (t > place)]), 0.0, 1.0, size)
    assert jump.t == pytest.approx(place, abs=1e-12)
    assert jump.jump == pytest.approx(1.0)
    kink = find_break(lambda t: np.array([np.cos(t) + 3 * abs(t - place)]), 0.0, 1.0, size)
    assert kink.t == pytest.approx(place, abs=1e-6)
    assert kink.jump == 0.0


@pytest.mark.parametrize("fun", [
    np.sin, np.exp, lambda t: np.tanh(1e4 * (t - 0.5)), lambda t: 1e8 * np.sin(30 * t),
    lambda t: 0.0 * t, lambda t: 1 / (1.001 - t), lambda t: np.abs(t - 0.5) ** 3,
])
def test_smooth_functions_have_no_break(fun):
    assert find_break(lambda t: np.array([fun(t)]), 0.0, 1.0, np.array([1e-9])) is None
