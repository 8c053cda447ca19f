"""Unknowns that equations determine only by terms far below the tolerances."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

from tether import solve_dae
from tether.structure.leaks import find_leaks
from tether.trace import trace

VT, IS = 0.02585, 1e-14
R, C, RS = 1e3, 1e-5, 1.0


def junction(v):
    return IS * (np.exp(v / VT) - 1)


def source(t, peak):
    return peak * np.sin(2 * np.pi * 50 * t)


def bridge(t, y, yp, peak):
    """A rectifier of four diodes, without a conductance beside any of them."""
    va, vb, i, vc = y
    i1, i2, i3, i4 = junction(va - vc), junction(vb - vc), junction(-va), junction(-vb)
    return [i + i3 - i1, -i + i4 - i2, va - vb - source(t, peak) + RS * i,
            C * yp[3] - (i1 + i2 - vc / R)]


def voltage(times, peak):
    """Of the load: va + vb = vc by symmetry, which leaves one equation for va - vb."""
    def currents(v, vc):
        return junction((v - vc) / 2), junction((-v - vc) / 2)

    def rate(t, y):
        vc = y[0]

        def left(v):
            forwards, backwards = currents(v, vc)
            return v - source(t, peak) + RS * (forwards - backwards)

        limit = abs(vc) + 2.0
        v = brentq(left, -limit, limit, xtol=1e-14)
        return [(sum(currents(v, vc)) - vc / R) / C]

    found = solve_ivp(
        rate, (0, times[-1]), [0.0], "LSODA", t_eval=times, rtol=1e-8, atol=1e-10, max_step=1e-4
    )
    return found.y[0]


@pytest.mark.parametrize("peak", [5.0, 12.0, 24.0])
@pytest.mark.parametrize("order", [(0, 1, 2, 3), (2, 3, 1, 0)])
def test_a_rectifier_bridge(peak, order):
    times = np.linspace(0, 0.05, 11)[1:]
    order = list(order)
    back = np.argsort(order)

    def equations(t, y, yp):
        return np.array(bridge(t, y[back], yp[back], peak))[order]

    sol = solve_dae(equations, (0, 0.05), np.zeros(4), t_eval=times)
    assert sol.success, sol.message
    np.testing.assert_allclose(sol.y[back][3], voltage(times, peak), rtol=2e-5)
    for text in sol.warnings:                  # it may do without
        assert "below the tolerances" in text


def test_what_is_determined_gets_no_leak():
    """However small the numbers in an equation are."""
    found = trace(lambda t, y, yp: [yp[0] + y[0], 1e-30 * (y[1] - y[0])], 2)
    fy, fyp = np.array([[1.0, 0.0], [-1e-30, 1e-30]]), np.diag([1.0, 0.0])
    assert find_leaks(found, fy, fyp, 1e-3, np.ones(2), np.full(2, 1e-6), lambda y: fy @ y) == ()


def test_what_is_left_open_gets_one():
    found = trace(lambda t, y, yp: [yp[0] + y[0], 1e-30 * y[1] + y[0] - y[2], y[2] - y[0]], 3)
    fy = np.array([[1.0, 0, 0], [1, 1e-30, -1], [-1, 0, 1]])
    fyp = np.diag([1.0, 0.0, 0.0])
    leaks = find_leaks(found, fy, fyp, 1e-3, np.ones(3), np.full(3, 1e-6), lambda y: fy @ y)
    assert [leak[:2] for leak in leaks] == [(1, 1)]
    assert leaks[0][2] == pytest.approx(1e-9)
