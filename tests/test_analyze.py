"""analyze finds before any step what a diagnosis says after a failure."""

import numpy as np
import pytest
from support.helpers import decay

from tether import Cause, Problem, analyze


@pytest.mark.parametrize(("fun", "y0", "cause"), [
    (lambda t, y, yp: [y[0] + y[1] - 2.0] * 2, [1.0, 1.0], Cause.SINGULAR),
    (lambda t, y, yp: [yp[0] + y[0], y[0] - 1.0], [1.0, 1.0], Cause.STRUCTURE),
    (lambda t, y, yp: [yp[0] + y[1], y[1] ** 2 + 1.0], [1.0, 1.0], Cause.START),
    (lambda t, y, yp: [yp[0] + y[0], y[1] - y[0]], [1.0, 1.0], Cause.NONE),
    (lambda t, y, yp: [y[0] - np.sin(t), yp[0] - y[1], yp[1] - y[2]], [0.0, 1.0, 0.0], Cause.NONE),
])
def test_analyze_gives_the_same_findings(fun, y0, cause):
    assert analyze(fun, 0.0, y0).diagnosis.cause == cause


def test_analyze_checks_a_jacobian():
    problem = Problem(decay, jac=(np.array([[5.0]]), np.array([[1.0]])))
    assert analyze(problem, 0.0, [1.0]).diagnosis.cause == Cause.JACOBIAN
