"""Dry friction written without `np.sign`: it sticks all the same."""

import math

import numpy as np
import pytest

from tether import solve_dae
from tether.structure.signs import with_signs
from tether.trace import trace

LAWS = {
    "sign": np.sign,
    "copysign": lambda v: math.copysign(1, v),
    "np.copysign": lambda v: np.copysign(1.0, v),
    "quotient": lambda v: v / abs(v),
    "np.abs": lambda v: -(-v / np.abs(v)),
    "other way round": lambda v: math.fabs(v) / v,
    "factor": lambda v: 0.3 * v / abs(v) / 0.3,
    "inside": lambda v: 2 * v / abs(2 * v),
    "root": lambda v: v / np.sqrt(v**2),
    "length": lambda v: v / np.hypot(v, 0),
    "other length": lambda v: v / math.hypot(0.0, v),
}


def swinging(t):
    """A mass of 1 on a spring of 1 with friction 0.3, from x = 1 at rest: two half swings."""
    if t < math.pi:
        return 0.3 + 0.7 * math.cos(t), -0.7 * math.sin(t)
    if t < 2 * math.pi:
        return -0.3 + 0.1 * math.cos(t), -0.1 * math.sin(t)
    return -0.2, 0.0


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("t0", [0.0, 0.5])          # at rest, where a quotient has no value, or not
def test_a_swing_comes_to_rest(name, t0):
    law = LAWS[name]
    sol = solve_dae(
        lambda t, y, yp: [yp[0] - y[1], yp[1] + y[0] + 0.3 * law(y[1])], (t0, 12.0), swinging(t0),
        rtol=1e-8, atol=1e-10,
    )
    assert sol.success, sol.message
    exact = np.array([swinging(t) for t in sol.t]).T
    assert np.abs(sol.y - exact).max() < 1e-7
    assert sol.nfev < 600                           # 300,000 where it is not seen to stick


def on_belt(t):
    """A block on a belt of speed 1, held by a spring of 1, friction 1/2; x = 1/2 when it slips."""
    if t < 0.5:
        return t, 1.0
    return 0.5 + math.sin(t - 0.5), math.cos(t - 0.5)


@pytest.mark.parametrize("name", LAWS)
def test_a_block_sticks_to_a_belt_and_slips(name):
    law = LAWS[name]
    sol = solve_dae(
        lambda t, y, yp: [yp[0] - y[1], yp[1] + y[0] - 0.5 * law(1 - y[1])], (0, 3.0), [0.0, 1.0],
        rtol=1e-8, atol=1e-10,
    )
    assert sol.success, sol.message
    exact = np.array([on_belt(t) for t in sol.t]).T
    assert np.abs(sol.y - exact).max() < 1e-7
    assert sol.nfev < 400


@pytest.mark.parametrize("fun", [
    lambda t, y, yp: [yp[0] + y[0] / (abs(y[0]) + 1)],
    lambda t, y, yp: [yp[0] + y[0] / np.sqrt(y[0] ** 2 + 1e-6)],
    lambda t, y, yp: [yp[0] + abs(y[0]) / (1 + y[0])],
    lambda t, y, yp: [yp[0] + np.heaviside(y[0], 0.5)],
    lambda t, y, yp: [yp[0] + t / abs(t)],
])
def test_other_quotients_and_choices_stay(fun):
    found = trace(fun, 1)
    assert with_signs(found) is found
