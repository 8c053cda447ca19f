"""Jumps of the equations that no step ends at: derivatives by their times are refused."""

from __future__ import annotations

import numpy as np
import pytest

from tether import solve_dae, vjp

FINE = {"rtol": 1e-8, "atol": 1e-11}
# What y' = -y + f(x) depends on, for x that grows from 0.1 at the rate a.
JUMPING = {
    "floor": lambda x, s: np.floor(x / s),
    "ceil": lambda x, s: np.ceil(x / s),
    "floor division": lambda x, s: x // s,
    "remainder": lambda x, s: x % s,
    "fine steps": lambda x, s: 1e-9 * np.floor(x / 1e-9) * s,
    "frozen size of a remainder": lambda x, s: abs((x % s) - 0.5 * s),
    "comparison in a root": lambda x, s: np.sqrt(np.where(x < s, 0.5, 1.5)),
    "comparison in a divisor": lambda x, s: 1.0 / np.where(x < s, 0.5, 1.5),
    "sign in a divisor": lambda x, s: 1.0 / (2.0 + np.sign(x - s)),
    "sign in a logarithm": lambda x, s: np.log(1.5 + np.sign(x - s)),
    "angle": lambda x, s: np.arctan2(np.sin(2.0 * x / s), np.cos(2.0 * x / s)),
    "angle of a tangent": lambda x, s: np.arctan(np.tan(2.0 * x / s)),
    "angle of a quotient": lambda x, s: np.arctan(0.3 / (x - s)),
}
CONTINUOUS = {
    "angle turned back": lambda x, s: np.sin(s * (x % (2.0 * np.pi / s))),
    "floor and remainder": lambda x, s: s * (x // s) + x % s,
    "kink in a root": lambda x, s: np.sqrt(np.where(x < s, 0.0, x - s) + 0.1),
    "power at a kink": lambda x, s: np.where(x < s, 0.0, x - s) ** 1.5,
    "zero divided by zero": lambda x, s: np.sin(x - s) / (x - s),
    "angle that does not turn over": lambda x, s: np.arctan2(x - s, 1.0),
}


def system(part):
    return lambda t, y, yp, a, s: [yp[0] - a, yp[1] + y[1] - part(y[0], s)]


def runs(part, **more):
    fun, t = system(part), [0.4, 1.3, 2.0]
    return lambda a, s, **own: solve_dae(
        fun, (0, 2), [0.1, 0.0], args=(a, s), t_eval=t, **FINE, **more, **own
    )


@pytest.mark.parametrize("name", JUMPING)
def test_jumps_that_are_not_located_are_refused(name):
    with pytest.raises(ValueError, match="sensitivity: the equations jump at t = "):
        runs(JUMPING[name])(1.3, 0.7, sensitivity="args")


def test_the_adjoint_refuses_them_too():
    with pytest.raises(ValueError, match=r"jump at t = 0\.4615"):
        vjp(system(JUMPING["floor"]), (0, 1), [0.1, 0.0], args=(1.3, 0.7), t_eval=[1.0], **FINE)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_what_is_continuous_is_not(name):
    run = runs(CONTINUOUS[name])
    found = run(1.3, 0.7, sensitivity="args").sens
    for k, change in enumerate(np.eye(2) * 1e-4):
        sides = [run(1.3 + way * change[0], 0.7 + way * change[1]).y for way in (1.0, -1.0)]
        expected = (sides[0] - sides[1]) / 2e-4
        assert np.allclose(found[k], expected, rtol=1e-3, atol=1e-3 * np.abs(expected).max())


def test_roundings_that_do_not_change_on_the_way():
    def fun(t, y, yp, a):
        return [yp[0] + a * y[0] * np.floor(3.0 + 0.5 * y[0])]

    found = solve_dae(fun, (0, 1), [1.0], args=(0.5,), sensitivity="args", t_eval=[1.0], **FINE)
    assert np.isclose(found.sens[0, 0, 0], -3.0 * np.exp(-1.5), rtol=1e-6)
