"""Mechanisms that pass through configurations where their constraints depend on each other."""

import math
import re

import numpy as np
import pytest
from support.events import crossing

from tether import solve_dae

G = 9.81


def four_bar(t, y, yp):
    """Parallelogram with point masses at its joints: folded flat twice in a turn."""
    x1, z1, x2, z2, u1, w1, u2, w2, a, b, c = y
    return [yp[0] - u1, yp[1] - w1, yp[2] - u2, yp[3] - w2,
            yp[4] + a * x1 - c * (x2 - x1), yp[5] + a * z1 - c * (z2 - z1),
            yp[6] + b * (x2 - 2.0) + c * (x2 - x1), yp[7] + b * z2 + c * (z2 - z1),
            x1**2 + z1**2 - 1.0, (x2 - 2.0) ** 2 + z2**2 - 1.0,
            (x2 - x1) ** 2 + (z2 - z1) ** 2 - 4.0]


def four_bar_at(angle):
    x, z = math.cos(angle), math.sin(angle)
    return [x, z, 2.0 + x, z, -z, x, -z, x, 0.0, 0.0, 0.0]


@pytest.mark.parametrize("rtol", [1e-4, 1e-6, 1e-8])
def test_a_mechanism_that_folds(rtol):
    """The rank of its constraints drops where it is flat; it passes, or says why it does not."""
    sol = solve_dae(four_bar, (0, 10), four_bar_at(1.0), rtol=rtol, atol=1e-3 * rtol,
                    max_steps=20_000)
    assert sol.success, sol.message
    np.testing.assert_allclose(sol.y[:2], [np.cos(1 + sol.t), np.sin(1 + sol.t)], atol=100 * rtol)


@pytest.mark.parametrize("rtol", [1e-6, 1e-8, 1e-9])
def test_a_new_begin_right_at_a_fold_is_named(rtol):
    """It is a lot to ask for: the run passes with a warning, or ends and says why."""
    sol = solve_dae(four_bar, (0, 4), four_bar_at(1.0), t_breaks=[math.pi - 1.0], rtol=rtol,
                    atol=1e-3 * rtol)
    np.testing.assert_allclose(sol.y[:2], [np.cos(1 + sol.t), np.sin(1 + sol.t)], atol=100 * rtol)
    said = sol.warnings if sol.success else [sol.message]
    words = ("only 5 of 6 constraints", "the constraints nearly depend on each other")
    assert any(word in text for text in said for word in words)
    assert sol.success or sol.t[-1] == pytest.approx(math.pi - 1.0, abs=1e-2)


def test_constraints_that_no_longer_repeat_each_other():
    """Twice the same circle, then a circle and a line: the pendulum is stopped."""
    def fun(t, y, yp):
        x, z, u, w, lam, mu = y
        twice = t < 1.0
        second = np.where(twice, x * x + z * z - 1.0, z + 0.8)
        by_x, by_z = np.where(twice, 2 * x, 0.0 * x), np.where(twice, 2 * z, 1.0 + 0.0 * z)
        return [yp[0] - u, yp[1] - w, yp[2] + 2 * lam * x + mu * by_x,
                yp[3] + 2 * lam * z + mu * by_z + G, x * x + z * z - 1.0, second]

    sol = solve_dae(fun, (0, 2), [0.6, -0.8, 0.0, 0.0, 0.0, 0.0])
    assert sol.success, sol.message
    late = sol.t > 1.0 + 1e-9
    assert late.any()
    np.testing.assert_allclose(np.abs(sol.y[0, late]), 0.6, atol=1e-9)
    np.testing.assert_allclose(sol.y[1, late], -0.8, atol=1e-9)
    assert sol.y[5, -1] == pytest.approx(-G)


@pytest.mark.parametrize("beside", [0.0, 1e-12, 1e-9, 1e-6, -1e-7])
@pytest.mark.parametrize("how", ["start", "break", "event"])
def test_a_mechanism_that_begins_anew_where_it_is_folded(how, beside):
    t_fold = math.pi - 1.0 + beside
    options = {}
    if how == "start":
        sol = solve_dae(four_bar, (t_fold, 4), four_bar_at(1.0 + t_fold), max_steps=20_000)
    elif how == "break":
        options["t_breaks"] = [t_fold]
    else:
        options["events"] = crossing(lambda t, y: t - t_fold, lambda t, y, yp: y)
    if how != "start":
        sol = solve_dae(four_bar, (0, 4), four_bar_at(1.0), max_steps=20_000, **options)
    if sol.success and not sol.warnings:
        np.testing.assert_allclose(sol.y[:2, -1], [math.cos(5), math.sin(5)], atol=1e-3)
    else:
        text = sol.message + " ".join(sol.warnings)
        assert re.search("depend|singular|rank", text), text
