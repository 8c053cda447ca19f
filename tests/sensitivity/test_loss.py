"""Losses: derivatives of a number by the values of a solution."""

from types import SimpleNamespace

import numpy as np
import pytest

from tether import solve_dae
from tether.sensitivity.loss import slopes_of_loss


def crossing(t, y, yp):
    return y[0] - 0.6


@pytest.fixture(scope="module")
def sol():
    return solve_dae(
        lambda t, y, yp: [yp[0] + y[0], y[1] - y[0] ** 2], (0, 1), [1.0, 1.0], events=[crossing],
        t_eval=[0.0, 0.5, 1.0], names=["level", "flow"],
    )


def test_values(sol):
    found = slopes_of_loss(lambda sol: sol.y[0, 1] ** 2 + 3.0 * sol["flow"][2], sol)
    assert found.value == sol.y[0, 1] ** 2 + 3.0 * sol.y[1, 2]
    assert np.allclose(found.by_y, [[0.0, 2 * sol.y[0, 1], 0.0], [0.0, 0.0, 3.0]])
    assert [part.tolist() for part in found.by_t_events] == [[0.0]]
    assert np.allclose(found.by_y_events[0], 0.0)


def test_events(sol):
    found = slopes_of_loss(lambda sol: sol.t_events[0][0] * sol.y_events[0][0, 1] ** 2, sol)
    t, y = sol.t_events[0][0], sol.y_events[0][0, 1]
    assert np.allclose(found.by_t_events[0], [y**2])
    assert np.allclose(found.by_y_events[0], [[0.0, 2 * t * y]])
    assert np.allclose(found.by_y, 0.0)


def test_losses_that_cannot_be_traced(sol):
    """By differences."""
    def loss(sol):
        return float(str(float(sol.y[0, 1]))) ** 3

    found = slopes_of_loss(loss, sol)
    assert np.allclose(found.by_y[0, 1], 3 * sol.y[0, 1] ** 2, rtol=1e-8)
    assert np.count_nonzero(np.abs(found.by_y) > 1e-8) == 1


def test_the_solution_is_not_changed_by_a_loss(sol):
    before = sol.y.copy()

    def loss(sol):
        y = sol.y.copy()
        y[0] *= 2.0
        return y[0, -1]

    found = slopes_of_loss(loss, sol)
    assert np.array_equal(sol.y, before)
    assert np.allclose(found.by_y[0, -1], 2.0)


def test_times_are_numbers(sol):
    found = slopes_of_loss(lambda sol: np.sum(sol.t * sol.y[0]), sol)
    assert np.allclose(found.by_y[0], sol.t)


def test_other_things_of_a_solution_are_refused(sol):
    for loss in (lambda sol: sol.yp[0, 0], lambda sol: sol.sol(0.3)[0], lambda sol: sol["zz"][0]):
        with pytest.raises((AttributeError, ValueError, KeyError, TypeError)):
            slopes_of_loss(loss, sol)


def test_a_pair_is_taken_at_its_word(sol):
    weights = np.arange(6.0).reshape(2, 3)
    found = slopes_of_loss(lambda sol: (7.0, weights), sol)
    assert found.value == 7.0
    assert np.array_equal(found.by_y, weights)


def test_no_events():
    found = slopes_of_loss(
        lambda sol: sol.y[0, 0] * 2.0,
        SimpleNamespace(
            t=np.zeros(1), y=np.ones((1, 1)), t_events=None, y_events=None, names=("y",), q=None,
            quadratures=None,
        ),
    )
    assert found.by_y == [[2.0]]
    assert found.by_t_events == []
