"""A circuit of gates as one would write it, and the comparison of a trace with its function."""
# ruff: noqa: SIM108 (statements are what is tested)

import math

import numpy as np

from tether.trace import evaluate, trace

N = 12


def agrees(fun, n=N, points=80, seed=3, **options):
    """Trace a function and compare it with the function at random points."""
    traced = trace(fun, n, **options)
    rng = np.random.default_rng(seed)
    for _ in range(points):
        t, y, yp = rng.uniform(-2, 2), rng.uniform(-2, 2, n), rng.uniform(-2, 2, n)
        if options.get("fills"):
            expected = np.zeros(n)
            fun(t, y, yp, expected)
        else:
            expected = np.asarray(fun(t, y, yp), float)
        np.testing.assert_allclose(
            evaluate(traced.reference, t, y, yp), expected, rtol=1e-12, atol=1e-12
        )
    return traced


def channel(vds, vgs):
    """Return the current through a transistor that is on."""
    drive = vgs - 0.7
    if drive <= 0.0:
        return 0.0
    if drive <= vds:
        return 0.4 * drive**2 * (1.0 + 0.02 * vds)
    return 0.4 * vds * (2.0 * drive - vds) * (1.0 + 0.02 * vds)


def transistor(drain, gate, source):
    """Return the current through a transistor, whichever end is the drain."""
    if drain > source:
        return channel(drain - source, gate - source)
    elif drain == source:
        return 0.0
    else:
        return -channel(source - drain, gate - drain)


def capacity(v):
    """Return the capacity of a junction."""
    if v <= 0.0:
        return 0.1 / math.sqrt(1.0 - v / 0.87)
    return 0.1 * (1.0 + v / (2.0 * 0.87))


def pulse(t):
    """Return the voltage at the inputs."""
    phase = t % 20.0
    if phase < 5.0:
        return 0.0
    if phase < 10.0:
        return phase - 5.0
    if phase < 15.0:
        return 5.0
    return 20.0 - phase


def gates(count):
    """Make a chain of NAND gates with three unknowns each."""

    def residual(t, y, yp):
        result, left = [], pulse(t)
        for i in range(count):
            output, middle, current = y[3 * i : 3 * i + 3]
            upper = transistor(output, left, middle)
            lower = transistor(middle, pulse(t + 3.0), 0.0)
            result.append(capacity(output - 5.0) * yp[3 * i] - current + upper)
            result.append(capacity(middle) * yp[3 * i + 1] - upper + lower)
            result.append(current - (5.0 - output) / 2.0)
            left = output
        return result

    return residual


def independent(count):
    """Make a function with so many `if`s, each with an unknown of its own."""

    def residual(t, y, yp):
        result = []
        for i in range(count):
            if y[i] > 0.0:
                force = 2.0 * y[i]
            else:
                force = y[i] ** 3
            result.append(yp[i] + force)
        return result

    return residual
