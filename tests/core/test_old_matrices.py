"""Matrices that are out of date for some unknown alone: junctions that turn off."""

import numpy as np
import pytest

from tether import solve_dae

VT, IS, PEAK, R, C, RS = 0.02585, 1e-14, 12.0, 1e3, 1e-5, 1.0


def junction(v):
    return IS * (np.exp(v / VT) - 1)


def bridge(t, y, yp, leak):
    va, vb, i, vc = y
    i1, i2, i3, i4 = junction(va - vc), junction(vb - vc), junction(-va), junction(-vb)
    source = PEAK * np.sin(2 * np.pi * 50 * t)
    return [i + i3 - i1 - leak * va, -i + i4 - i2 - leak * vb, va - vb - source + RS * i,
            C * yp[3] - (i1 + i2 - vc / R)]


def nodes(t, y, leak):
    """Voltages and current that belong to the voltage of the load, by Newton's method."""
    x, vc = y[:3].copy(), y[3]
    for _ in range(100):
        va, vb = x[0], x[1]
        slopes = [(np.exp((a - vc) / VT) + np.exp(-a / VT)) * IS / VT + leak for a in (va, vb)]
        matrix = np.array([[-slopes[0], 0, 1], [0, -slopes[1], -1], [1, -1, RS]])
        step = np.linalg.solve(matrix, bridge(t, [*x, vc], np.zeros(4), leak)[:3])
        x -= step
        if np.abs(step[:2]).max() < 1e-12:
            break
    return x


@pytest.mark.parametrize("leak", [1e-9, 1e-12])
@pytest.mark.parametrize("rtol", [1e-4, 1e-6])
@pytest.mark.parametrize("dense", [False, True])
def test_nodes_of_a_rectifier_are_right_at_all_steps(leak, rtol, dense):
    sol = solve_dae(
        bridge, (0, 0.02), np.zeros(4), args=(leak,), rtol=rtol, atol=1e-9, dense_output=dense
    )
    assert sol.success, sol.message
    error = np.array([nodes(t, y, leak) - y[:3] for t, y in zip(sol.t, sol.y.T, strict=True)])
    allowed = rtol * np.abs(sol.y[:2].T) + 1e-9
    assert np.max(np.abs(error[:, :2]) / allowed) < 10.0
