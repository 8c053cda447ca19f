"""A program is compared with its function."""
import math

import numpy as np
import pytest

from tether.trace import TraceFailure, trace, verify
from tether.trace.backend import prepare
from tether.trace.verify import Pair


def verified(fun, other, n=2):
    """Check a function against the trace of another one."""
    verify(trace(fun, n), other, 0.1, np.full(n, 0.5), np.full(n, 0.25))


def test_verification_names_the_equation_that_differs():
    with pytest.raises(TraceFailure, match="equation 1 was traced to something else"):
        verified(
            lambda t, y, yp: [yp[0], y[1] ** 2], lambda t, y, yp: [yp[0], y[1] ** 2 * (1 + 1e-12)]
        )


def test_verification_allows_rounding_of_large_terms():
    verified(
        lambda t, y, yp: [yp[0], (1e8 + y[0]) - 1e8],
        lambda t, y, yp: [yp[0], (1e8 - 1e8) + y[0]],
    )
    verified(
        lambda t, y, yp: [np.sum(np.sin(y) * 1e5) - 1e5, yp[0]],
        lambda t, y, yp: [-1e5 + math.fsum(1e5 * math.sin(x) for x in y[::-1]), yp[0]],
    )


def test_verification_sees_a_branch_the_trace_does_not_have():
    with pytest.raises(TraceFailure, match="equation 0"):
        verified(lambda t, y, yp: list(yp), lambda t, y, yp: [yp[0] + (y[0] > 0.8), yp[1]])


def test_verification_sees_randomness_and_hidden_state():
    rng = np.random.default_rng(0)
    with pytest.raises(TraceFailure, match="when called again"):
        verified(lambda t, y, yp: list(yp), lambda t, y, yp: list(yp + rng.normal() * 1e-12))


def test_verification_leaves_out_points_where_the_function_raises():
    def fun(t, y, yp):
        return [yp[0] + math.sqrt(y[0]), yp[1] - math.log(y[1])]

    verified(fun, fun)
    with pytest.raises(TraceFailure, match="raises ValueError at the start"):
        verify(trace(fun, 2), fun, 0.0, [-1.0, 1.0], [0.0, 0.0])


def test_verification_refuses_wrong_shapes():
    with pytest.raises(TraceFailure, match=r"shape \(3,\)"):
        verified(lambda t, y, yp: list(yp), lambda t, y, yp: [*yp, 0.0])


def late(t, y, yp):
    return [yp[0] + y[0] * (1.0 if t < 3.0 else 2.0)]


def late_misread(t, y, yp):
    return [yp[0] + y[0]]


def test_a_pair_may_have_more_unknowns_than_its_function():
    traced = trace(late, 1)
    pair = Pair(traced, prepare(traced.program()).new(), late)
    assert pair.difference(0.0, np.ones(3), np.zeros(3)) is None
    other = Pair(traced, None, late_misread)
    assert other.difference(1.0, np.ones(1), np.zeros(1)) is None
    found = other.difference(4.0, np.ones(1), np.zeros(1))
    assert (found.row, found.value, found.expected) == (0, 2.0, 1.0)
