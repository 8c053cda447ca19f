"""Dense output."""

import math

import numpy as np
import pytest
from support.helpers import circle, error_at_steps

from tether import Interpolant, solve_dae

# --- dense output ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def dense():
    return solve_dae(circle, (0, 10), [1.0, 0.0], rtol=1e-8, atol=1e-10, dense_output=True)


def test_dense_output_passes_through_the_steps(dense):
    y, yp = dense.sol(dense.t)
    np.testing.assert_allclose(y, dense.y, atol=1e-14)
    # y' of the polynomial and of the formula differ by their errors, most at order 1
    np.testing.assert_allclose(yp, dense.yp, atol=1e-4)
    np.testing.assert_allclose(yp[:, 50:], dense.yp[:, 50:], atol=1e-6)


def test_dense_output_is_continuous_at_the_steps(dense):
    inner = dense.t[1:-1]
    left, _ = dense.sol(inner)
    right, _ = dense.sol(np.nextafter(inner, np.inf))
    np.testing.assert_allclose(left, right, atol=1e-13)


def test_dense_output_is_as_accurate_as_the_steps(dense):
    times = np.linspace(0, 10, 1234)
    exact = np.array([np.cos(times), -np.sin(times)])
    y, yp = dense.sol(times)
    at_steps = error_at_steps(dense, lambda t: [np.cos(t), -np.sin(t)])
    assert np.max(np.abs(y - exact)) < 3 * at_steps < 1e-5
    assert np.max(np.abs(yp - [-np.sin(times), -np.cos(times)])) < 1e-4


def test_dense_output_shapes(dense):
    assert isinstance(dense.sol, Interpolant)
    assert (dense.sol.t_min, dense.sol.t_max) == (0.0, 10.0)
    for t in (3.0, 3, np.float64(3.0), np.array(3.0)):
        y, yp = dense.sol(t)
        assert y.shape == yp.shape == (2,)
    for times in ([1.0, 3.0, 2.0], np.array([1.0, 3.0, 2.0]), (1, 3, 2)):
        y, yp = dense.sol(times)
        assert y.shape == yp.shape == (2, 3)
        np.testing.assert_array_equal(y[:, 1], dense.sol(3.0)[0])
    assert dense.sol([])[0].shape == (2, 0)
    np.testing.assert_array_equal(dense(3.0), dense.sol(3.0))


@pytest.mark.parametrize("t", [-0.1, 10.1, [5.0, 11.0], math.nan, math.inf, [[1.0, 2.0]]])
def test_dense_output_out_of_range(dense, t):
    with pytest.raises(ValueError, match=r"\bt must"):
        dense.sol(t)


def test_no_dense_output_unless_asked_for(reference):
    assert reference.sol is None
    with pytest.raises(ValueError, match="dense_output=True"):
        reference(0.5)


# --- Bdf ---------------------------------------------------------------------------------------


def test_dense_output_at_many_times_in_any_order():
    """Many times over many steps are sorted into the steps once."""
    sol = solve_dae(lambda t, y, yp: [yp[0] + y[1], yp[1] - y[0]], (0, 300), [1.0, 0.0],
                    rtol=1e-8, atol=1e-8, dense_output=True)
    times = np.random.default_rng(0).uniform(0, 300, 30_000)
    y, yp = sol.sol(times)
    np.testing.assert_allclose(y, [np.cos(times), np.sin(times)], atol=1e-4)
    np.testing.assert_allclose(yp, [-np.sin(times), np.cos(times)], atol=1e-4)
    assert sol.sol([])[0].shape == (2, 0)
