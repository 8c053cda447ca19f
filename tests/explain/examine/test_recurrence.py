"""Jumps that come again, and the remedy that cures all of them."""

import re

import numpy as np
import pytest

from tether import Cause, solve_dae
from tether.explain.examine.recurrence import all_breaks, later_jumps


def follows(forcing):
    """Return a system whose algebraic unknown jumps with a forcing; it is called, not traced."""

    def fun(t, y, yp):
        return [yp[0] + y[1], y[0] - y[1] - forcing(t)]

    return fun


FORCINGS = {
    "square wave": (lambda t: float(t % 0.5 < 0.25), 3.0, "np.arange(0.25, 3.125, 0.25)"),
    "steps": (lambda t: np.floor(t / 0.1), 2.0, "np.arange(0.1, 2.05, 0.1)"),
    "thirds": (lambda t: float(int(3 * t)), 5.0, "np.arange(0.333"),
    "pulses": (lambda t: float(t % 1.0 < 0.3), 6.0,
               "np.concatenate([np.arange(0.3, 6.5, 1), np.arange(1, 6.5, 1)])"),
    "sine": (lambda t: np.sign(np.sin(t + 0.1)), 30.0, "np.arange(3.0415926535897"),
    "two": (lambda t: float(t > 1) + 2 * float(t > 2.5), 6.0, "[1, 2.5]"),
    "one": (lambda t: float(t > 0.37), 1.0, "[0.37]"),
    "slow": (lambda t: float(t % 2.0 < 0.05), 9.0, "np.concatenate("),
}


@pytest.mark.parametrize("name", FORCINGS)
def test_the_first_remedy_cures_all_of_them(name):
    forcing, end, words = FORCINGS[name]
    fun, y0 = follows(forcing), [1.0, 1.0 - forcing(0.0)]
    sol = solve_dae(fun, (0, end), y0, trace="never")
    assert not sol.success
    assert sol.diagnosis.cause == Cause.DISCONTINUITY
    remedy = sol.diagnosis.remedies[0]
    assert remedy.startswith(f"pass t_breaks={words}")
    breaks = eval(re.match(r"pass t_breaks=(.*) and all other times", remedy).group(1), {"np": np})
    cured = solve_dae(fun, (0, end), y0, trace="never", t_breaks=breaks)
    assert cured.success
    # y' = -y + f by parts, f held
    y, t = 1.0, 0.0
    for time in [*sorted(b for b in breaks if b < end), end]:
        held = forcing(0.5 * (t + time))
        y, t = held + (y - held) * np.exp(t - time), time
    assert cured.y[0, -1] == pytest.approx(y, abs=1e-4)


@pytest.mark.parametrize("fun", [
    lambda t: 5.0 * t, lambda t: np.sin(9 * t), lambda t: abs(np.sin(9 * t)), lambda t: None,
    lambda t: np.nan, lambda t: np.tanh(300 * (t - 5)),
])
def test_what_is_smooth_does_not_jump(fun):
    assert later_jumps(fun, 1.0, 1.0, 1.0, 9.0) == []


def test_jumps_backwards_in_time():
    found = later_jumps(lambda t: float(t % 2.0 < 1.0), 4.0, 1.0, 0.5, 0.5)
    assert found == pytest.approx([3.0, 2.0, 1.0])
    assert all_breaks(4.0, found, 0.5) == "np.arange(4, 0, -1)"


def test_irregular_jumps_are_listed():
    assert all_breaks(1.0, [2.0, 2.5, 7.0, 7.1, 7.3, 8.0], 9.0) == "[1, 2, 2.5, 7, 7.1, 7.3, 8]"
    assert all_breaks(1.0, [k**2 for k in range(2, 20)], 500.0).endswith("144, ...]")
