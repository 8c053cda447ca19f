"""A failure that tracing might have avoided says so first."""

import numpy as np
import pytest

from tether import Cause, solve_dae


def high_index(t, y, yp):
    int(y[0])  # here
    return [y[0] - np.sin(t), yp[0] - y[1], yp[1] - y[2], yp[2] - y[3]]


def jump(t, y, yp):
    int(y[0])
    x, v, force = y
    return [yp[0] - v, yp[1] + 1 - force, force if t < 2 else x]


def relay(t, y, yp):
    int(y[0])
    return [yp[0] + (1.0 if y[0] > 0.0 else -1.0)]


@pytest.mark.parametrize(
    ("fun", "y0", "cause"),
    [(high_index, [0, 1, 0, -1], Cause.INDEX), (jump, [1, 0, 0], Cause.DISCONTINUITY),
     (relay, [1.0], Cause.CREEPING)],
    ids=["index", "discontinuity", "creeping"],
)
@pytest.mark.filterwarnings("ignore")
def test_a_function_in_the_way_is_named_first(fun, y0, cause):
    found = solve_dae(fun, (0.0, 4.0), y0)
    assert not found.success
    assert found.diagnosis.cause == cause
    assert found.diagnosis.summary.startswith("The function was called, since it cannot be traced")
    assert "test_untraced.py, line " in found.diagnosis.summary
    assert "int(y[0])" in found.diagnosis.summary
    assert found.message.startswith(found.diagnosis.untraced)
    assert found.message.count("The function was called") == 1
    assert "traced" in found.diagnosis.remedies[0]
    asked = solve_dae(fun, (0.0, 4.0), y0, trace="never").diagnosis
    if cause != Cause.CREEPING:        # when a run is seen to creep depends on its pace
        assert asked.summary in found.diagnosis.summary
    assert not asked.summary.startswith("The function was called")
    assert not asked.untraced
