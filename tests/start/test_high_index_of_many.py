"""Large systems of high index that are called: the index is told, and nothing full is made."""

import numpy as np
import pytest

from tether import Cause, Status, solve_dae
from tether._core.probe import MOST_FULL

N = 400


def rods(t, y, yp):
    x, z, u, w, pull = (y[k * N : (k + 1) * N] for k in range(5))
    dx, dz = (np.concatenate([v[:1], v[1:] - v[:-1]]) for v in (x, z))
    above = pull * dx, pull * dz
    below = [np.concatenate([force[1:], [0.0]]) for force in above]
    return np.concatenate([
        yp[:N] - u, yp[N : 2 * N] - w, yp[2 * N : 3 * N] + above[0] - below[0],
        yp[3 * N : 4 * N] + above[1] - below[1] + 9.81, dx**2 + dz**2 - 1.0 / N**2,
    ])


def velocities(t, y, yp):
    """The same with the constraint on the velocities, of index 2."""
    x, z, u, w = (y[k * N : (k + 1) * N] for k in range(4))
    dx, dz, du, dw = (np.concatenate([v[:1], v[1:] - v[:-1]]) for v in (x, z, u, w))
    return np.concatenate([rods(t, y, yp)[: 4 * N], dx * du + dz * dw])


@pytest.mark.parametrize(("equations", "index"), [(rods, 3), (velocities, 2)])
def test_the_index_is_told(equations, index):
    assert 5 * N > MOST_FULL
    along = np.arange(1, N + 1) / N
    y0 = np.concatenate([along * np.cos(0.7), -along * np.sin(0.7), np.zeros(3 * N)])
    sol = solve_dae(equations, (0, 1e-3), y0, trace="never", start="quiet")
    assert sol.status == Status.INDEX_TOO_HIGH
    assert sol.diagnosis.cause == Cause.INDEX
    assert f"it is {index}" in sol.message
    assert "trace='auto'" in sol.message
    assert sol.diagnosis.where.rows[0] >= 4 * N            # a rod
    assert sol.diagnosis.where.columns[0] >= 4 * N         # a pull
    assert f"the index is {index}, judging by where derivatives occur" in sol.start.message
