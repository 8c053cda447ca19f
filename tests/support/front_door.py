"""What the tests of every way into `solve_dae` have in common."""

import numpy as np
import pytest

SPAN = (0.0, 2.0)
called_or_traced = pytest.mark.parametrize("trace", ["never", "auto"])


def assert_same(sol, reference, tolerance=0.0):
    """Assert that two runs took the same steps to the same values."""
    assert sol.success
    assert len(sol.t) == len(reference.t)
    np.testing.assert_allclose(sol.t, reference.t, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(sol.y, reference.y, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(sol.yp, reference.yp, rtol=1e3 * tolerance, atol=1e3 * tolerance)


JACOBIAN = (np.array([[0.0, 1.0], [1.0, -1.0]]), np.array([[1.0, 0.0], [0.0, 0.0]]))


def van_der_pol(t, y, yp):
    return [yp[0] - y[1], yp[1] - 50.0 * (1.0 - y[0] ** 2) * y[1] + y[0]]
