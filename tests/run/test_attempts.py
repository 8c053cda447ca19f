"""The ring of the last attempts."""

import numpy as np
import pytest
from support.helpers import circle

from tether import Bdf, Status
from tether._core import codes
from tether.run.attempts import COLUMNS, read_steps


def test_the_ring_keeps_the_last_attempts():
    bdf = Bdf(circle, 0.0, [1.0, 0.0], t_bound=100.0)
    t, h, k = [], [], []
    while bdf.step() == Status.RUNNING:
        t.append(bdf.t)
        h.append(bdf.step_size)
        k.append(bdf.order)
    steps = read_steps(bdf._integration.state)
    assert len(steps) == codes.RING_ROWS
    assert len(COLUMNS) == codes.RING_COLUMNS
    assert bdf._integration.state.attempts == bdf.stats.steps + bdf.stats.error_test_failures + (
        bdf.stats.convergence_failures)
    accepted = steps[steps["outcome"] == codes.OK]
    np.testing.assert_array_equal(accepted["t"][:-1], t[-len(accepted) + 1:])
    np.testing.assert_array_equal(accepted["h"][:-1], h[-len(accepted) + 1:])
    np.testing.assert_array_equal(accepted["order"][:-1], k[-len(accepted) + 1:])
    assert np.all(accepted["error"] <= 1.0)
    assert np.all(np.diff(steps["iterations"]) >= 1)


@pytest.mark.parametrize("n", [3, 25])
def test_the_ring_keeps_slopes_and_condition(n):
    """The matrix is diagonal, 1 + c or 1000 + c, in the core's own factors or LAPACK's."""
    rates = np.where(np.arange(n) == 1, 1000.0, 1.0)
    bdf = Bdf(lambda t, y, yp: [yp[i] + rates[i] * y[i] for i in range(n)], 0.0, [1.0] * n,
              t_bound=1.0)
    while bdf.step() == Status.RUNNING:
        pass
    last = read_steps(bdf._integration.state)[-1]
    np.testing.assert_array_equal(last["slopes"], bdf.yp)
    c = bdf._integration.state.cj_factored
    assert last["condition"] == pytest.approx((1000.0 + c) / (1.0 + c), rel=1e-6)
    assert last["condition"] <= bdf.condition() * (1 + 1e-6)


def test_the_ring_names_the_component_that_fails():
    bdf = Bdf(
        lambda t, y, yp: [yp[0] + y[0], y[1] - (t > 0.5)], 0.0, [1.0, 0.0], t_bound=1.0,
        options={"trace": "never"},
    )
    while bdf.step() == Status.RUNNING:
        pass
    failed = read_steps(bdf._integration.state)
    failed = failed[failed["outcome"] == codes.ERROR_TEST]
    assert len(failed) > 3
    assert np.all(failed["component"] == 1)
