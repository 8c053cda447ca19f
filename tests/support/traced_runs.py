"""Runs with tracing and without: they must be alike."""

import numpy as np

from tether import solve_dae


def end(fun, trace, t_end=1.0, y0=(1.0,), **options):
    """Solution at the end of a run that must succeed."""
    sol = solve_dae(fun, (0, t_end), y0, trace=trace, **options)
    assert sol.success, sol.message
    return sol.y[:, -1]


def assert_alike(run, rtol=1e-4):
    """Assert that run(trace) gives the same solution with tracing and without."""
    called = run("never")
    try:
        traced = run("auto")
    except BaseException as error:     # pytest itself would stop at some of them
        raise AssertionError(f"only the traced run raises {error!r}") from error
    np.testing.assert_allclose(traced, called, rtol=rtol, atol=1e-6)


class Halt(BaseException):
    pass
