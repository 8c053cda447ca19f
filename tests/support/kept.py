"""What is left of a run that failed."""

import numpy as np

from tether import Status


def assert_kept(sol, exact, tolerance):
    """Assert that a failed run returned its steps, and that they are right."""
    assert not sol.success
    assert sol.status.failed
    assert sol.message.startswith(sol.status.happened)
    assert sol.status == Status.INTERRUPTED or sol.diagnosis.summary in sol.message
    assert len(sol.t) > 5
    assert sol.stats.steps <= len(sol.t) <= sol.stats.steps + 1
    assert sol.y.shape == sol.yp.shape == (sol.y.shape[0], len(sol.t))
    assert np.all(np.isfinite(sol.y))
    assert np.all(np.diff(sol.t) > 0)
    np.testing.assert_allclose(sol.y, exact(sol.t), rtol=tolerance, atol=tolerance)
