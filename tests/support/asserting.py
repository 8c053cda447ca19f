"""Residuals with assertions: not in the tests themselves, where pytest writes them anew."""

import numpy as np

N = 6
MANY = 40


def text_in_a_condition(t, y, yp):
    """Compute with text."""
    assert f"{y[0]:.0f}" != "7", "seven"
    return [yp[0] + y[0]]


def holds(t, y, yp):
    """Assert what is always so."""
    assert np.isfinite(y).all(), f"not finite: {y}"
    assert y[0] > -0.1
    return [yp[0] + y[0]]


def ends(t, y, yp):
    """Assert what is so at the beginning."""
    assert y[0] > 0.5, f"too small: {y[0]}"
    return [yp[0] + y[0]]


def level(x):
    """Raise for low values, and turn where they become high."""
    if x < -3.0:
        raise ValueError(f"too low: {x}")
    return x if x > 0.2 else 0.5 * x


def many(t, y, yp):
    """Assert, print and branch for every unknown."""
    rows = []
    for i in range(MANY):
        assert y[i] > -5.0, i
        if y[i] > 0.9:
            print("high:", i, y[i])
        rows.append(yp[i] + level(y[i]))
    return rows


def nested(t, y, yp):
    """Raise on many paths."""
    rows = []
    for i in range(N):
        if y[i] > 0.5:
            if y[(i + 1) % N] < -1.0:
                raise ValueError
            rows.append(yp[i] + y[i])
        else:
            assert y[i] > -2.0
            rows.append(yp[i] - y[i])
    return rows
