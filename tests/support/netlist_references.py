"""End values of the gallery's netlists without tether, from equations written by hand."""

import math
from itertools import pairwise

import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import brentq


def _end(rate, t_span, y0, method, rtol, **options):
    run = solve_ivp(rate, t_span, y0, method, rtol=rtol, atol=0.01 * rtol, **options)
    assert run.success, run.message
    return run.y[:, -1]


def common_emitter():
    """Voltages of the three capacitors; the collector's by its own equation."""
    vt, saturation, w = 0.02585, 1e-15, 2 * math.pi * 1e3

    def voltages(t, y):
        across, e, coupling = y
        b = 0.02 * math.sin(w * t) - across

        def left(c):
            back = saturation * math.expm1((b - c) / vt)
            forward = saturation * math.expm1((b - e) / vt)
            return (9.0 - c) / 2200.0 - (forward - back) + back - (c - coupling) / 1e4

        return b, brentq(left, b - 0.9, 12.0, xtol=1e-15, rtol=1e-15), e

    def rate(t, y):
        b, c, e = voltages(t, y)
        forward, back = (saturation * math.expm1((b - x) / vt) for x in (e, c))
        into_base = forward / 150.0 + back - (9.0 - b) / 47e3 + b / 1e4
        into_emitter = forward - back + forward / 150.0
        return [into_base / 1e-6, (into_emitter - e / 470.0) / 1e-5, (c - y[2]) / 1e4 / 1e-6]

    y = _end(rate, (0, 0.025), np.zeros(3), "LSODA", 1e-12, max_step=2e-5)
    b, c, e = voltages(0.025, y)
    return [b, c, e, c - y[2]]


def clamped_line(sections=8):
    """Voltages of the capacitors and currents of the coils, between the edges of the pulse."""
    def pulse(t):
        rises, falls = (min(max(t / 1e-9 - edge, 0.0), 1.0) for edge in (1.0, 12.0))
        return 5.0 * (rises - falls)

    def rate(t, y):
        v, i = y[:sections], y[sections:]
        before = np.concatenate([[pulse(t) - 50.0 * i[0]], v[:-1]])
        after = np.append(i[1:], v[-1] / 500.0 + 1e-14 * np.expm1((v[-1] - 2.5) / 0.02585))
        return np.concatenate([(i - after) / 2e-12, (before - v) / 5e-9])

    y = np.zeros(2 * sections)
    for t0, t1 in pairwise([0.0, 1e-9, 2e-9, 12e-9, 13e-9, 14e-9]):
        y = _end(rate, (t0, t1), y, "Radau", 1e-9)
    return [y[sections // 2 - 1], y[sections - 1], y[sections], y[-1]]
