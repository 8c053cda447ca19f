"""The solution at times that somebody asks for."""

import math

import numpy as np
import pytest

from tether import solve_dae


def decay(t, y, yp):
    return [yp[0] + y[0]]


def test_between_the_steps():
    sol = solve_dae(decay, (0, 2), [1.0], dense_output=True)
    assert sol.y_at(0.3).shape == (1,)
    assert sol.y_at(0.3)[0] == pytest.approx(math.exp(-0.3), abs=1e-5)
    times = np.linspace(0, 2, 7)
    np.testing.assert_array_equal(sol.y_at(times), sol.sol(times)[0])
    assert sol.y_at([]).shape == (1, 0)
    with pytest.raises(ValueError, match="must lie within"):
        sol.y_at(2.5)


@pytest.mark.parametrize("span", [(0, 2), (2, 0)])
def test_at_times_that_were_kept(span):
    wanted = sorted([0.0, 0.3, 1.1, 2.0], reverse=span[0] > 0)
    sol = solve_dae(decay, span, [1.0], t_eval=wanted)
    np.testing.assert_array_equal(sol.y_at(wanted), sol.y)
    np.testing.assert_array_equal(sol.y_at([1.1, 0.3]), sol.y_at([0.3, 1.1])[:, ::-1])
    np.testing.assert_array_equal(sol.y_at(0.1 + 0.2), sol.y_at(0.3))
    assert sol.y_at([]).shape == (1, 0)
    with pytest.raises(ValueError, match="dense_output=True"):
        sol.y_at(0.5)
    with pytest.raises(ValueError, match="dense_output=True"):
        sol.y_at([0.3, 0.5])
    for outside in (-1.0, 3.0, math.nan):
        with pytest.raises(ValueError, match="must lie within"):
            sol.y_at(outside)
    with pytest.raises(ValueError, match="number or a vector"):
        sol.y_at([[0.3]])
    with pytest.raises(TypeError, match="real number"):
        sol.y_at("0.3")


@pytest.mark.parametrize("dense", [False, True])
def test_before_a_jump(dense):
    def kick(t, y, yp):
        return t - 1.0

    kick.apply = lambda t, y, yp: [5.0]
    sol = solve_dae(lambda t, y, yp: [yp[0]], (0, 2), [1.0], events=kick, dense_output=dense)
    at = sol.t_events[0][0]
    assert np.count_nonzero(sol.t == at) == 2
    assert sol.y_at(at)[0] == pytest.approx(1.0)
    assert sol.y_at(2.0)[0] == pytest.approx(5.0)


def test_of_a_run_that_did_not_begin():
    sol = solve_dae(lambda t, y, yp: [math.nan], (0, 1), [1.0], dense_output=True)
    assert not sol.success
    if len(sol.t):
        np.testing.assert_array_equal(sol.y_at(0.0), sol.y[:, 0])
        with pytest.raises(ValueError, match="t must lie within"):
            sol.y_at(0.5)
