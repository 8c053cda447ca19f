"""Rectifiers of ideal diodes with a capacitor and a load, and their exact voltages."""

from itertools import pairwise

import numpy as np
from scipy.optimize import brentq

OMEGA, PEAK, LOAD, C = 2 * np.pi * 50, 10.0, 1e3, 1e-4
TIMES = np.linspace(0.0, 0.045, 46)[1:]


def source(t, shift=0.0):
    return PEAK * np.sin(OMEGA * t - shift)


def phase(t, k, shift=0.0):
    return source(t, 2 * np.pi * k / 3 + shift)


def bridge_between(high, low, emf, y):
    """Equations of a bridge with the nodes of its source, the currents of diodes and source."""
    vp, vn, i1, i2, i3, i4, i = y
    return [i + i3 - i1, -i + i4 - i2, vp - vn - emf, min(i1, high - vp), min(i2, high - vn),
            min(i3, vp - low), min(i4, vn - low)]


def voltage(open_circuit, start):
    """The voltage of the load, which follows what the diodes can give, or falls."""
    def falls(t):                              # the current of the diodes when it follows
        return C * (open_circuit(t + 1e-8) - open_circuit(t - 1e-8)) / 2e-8 + open_circuit(t) / LOAD

    grid = np.linspace(0.0, TIMES[-1], 2001)
    t0, v0 = 0.0, max(start, open_circuit(0.0))
    conducts = open_circuit(0.0) >= v0 and falls(1e-7) > 0.0
    pieces = [(0.0, conducts, v0)]
    for a, b in pairwise(grid):
        if conducts and falls(b) < 0.0:
            t0 = brentq(falls, a, b, xtol=1e-15) if falls(a) > 0.0 else a
            v0, conducts = open_circuit(t0), False
            pieces.append((t0, conducts, v0))

        def beyond(t, t0=t0, v0=v0):
            return open_circuit(t) - v0 * np.exp(-(t - t0) / (LOAD * C))

        begins = max(a, t0 + 1e-9)
        if not conducts and b > begins and beyond(b) > 0.0:
            at = brentq(beyond, begins, b, xtol=1e-15) if beyond(begins) < 0.0 else begins
            conducts = True
            pieces.append((at, conducts, 0.0))
    found = []
    for t in TIMES:
        begin, on, v = [piece for piece in pieces if piece[0] <= t][-1]
        found.append(open_circuit(t) if on else v * np.exp(-(t - begin) / (LOAD * C)))
    return np.array(found)
