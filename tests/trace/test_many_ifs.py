"""Scalar code with dozens of independent `if`s: conditions add up."""

import numpy as np
import pytest

from tether.trace import evaluate, trace


def pipes(n):
    """Pressures along pipes, each with a check valve and a largest flow."""
    def fun(t, y, yp):
        flows = []
        for i in range(n):
            drop = y[i] - y[i + 1]
            if drop > 0.0:  # noqa: SIM108 - as people write it
                flow = np.sqrt(drop + 1e-3) - np.sqrt(1e-3)
            else:
                flow = 0.0
            if flow > 2.0:
                flow = 2.0
            flows.append(flow)
        rows = [y[0] - 3.0 * np.cos(t)]
        for i in range(1, n):
            rows.append(yp[i] - flows[i - 1] + flows[i])
        return [*rows, yp[n] - flows[n - 1] + 0.1 * y[n]]

    return fun, n + 1


def current(gate, drain):
    if drain >= 0.0:
        drive = gate - 0.8
        if drive <= 0.0:
            return 0.0
        if drive <= drain:
            return -drive * drive
        return -drain * (2.0 * drive - drain)
    drive = gate - drain - 0.8
    if drive <= 0.0:
        return 0.0
    return drive * drive if drive <= -drain else -drain * (2.0 * drive + drain)


def gates(n):
    """A chain of NAND gates."""
    def fun(t, y, yp):
        rows = []
        for k in range(n):
            before = 2.5 + 2.5 * np.sin(t) if k == 0 else y[k - 1]
            total = current(before, y[k]) + current(5.0, y[k]) - current(5.0 - before, 5.0 - y[k])
            rows.append(0.1 * yp[k] - total + 0.01 * y[k])
        return rows

    return fun, n


@pytest.mark.parametrize("make", [pipes, gates], ids=lambda make: make.__name__)
def test_conditions_add_up(make):
    sizes = {}
    for n in (12, 48):
        fun, count = make(n)
        traced = trace(fun, count)
        sizes[n] = len(traced.graph.nodes)
    assert sizes[48] < 4.5 * sizes[12]
    rng = np.random.default_rng(5)
    for _ in range(20):
        y, yp = rng.uniform(-1.0, 6.0, (2, count))
        found = evaluate(traced.reference, 0.3, y, yp)
        np.testing.assert_allclose(found, fun(0.3, y, yp), rtol=1e-12, atol=1e-12)
