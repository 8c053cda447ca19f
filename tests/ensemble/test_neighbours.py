"""Where the start of a member is not found, that of a neighbour is a guess."""

import numpy as np
import pytest
from support.ensembles import decay

from tether import Status, solve_dae, solve_ensemble
from tether.ensemble.members import read_members
from tether.ensemble.task import read_task
from tether.ensemble.worker import Worker


def plateau(t, y, yp, a):
    """Far from its solution the second equation is flat: nothing says where to go."""
    return [yp[0] + y[1], np.tanh(5.0 * (y[1] - a))]


PLACES = np.array([0.0, 3.0, 6.0, 8.0])


def test_starts_are_followed_from_a_neighbour():
    assert not solve_dae(plateau, (0.0, 1.0), [1.0, 0.0], args=(8.0,), start="quiet").success
    result = solve_ensemble(plateau, (0.0, 1.0), [1.0, 0.0], args=(PLACES,), start="quiet",
                            engine="processes")
    assert result.success.all()
    np.testing.assert_allclose(result.y[:, 1, 0], PLACES, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(result.y[:, 0, 0], 1.0 - PLACES, rtol=1e-6, atol=1e-6)
    assert result.message(1) == Status.REACHED_END.text
    assert result.message(3).endswith("The start was found from that of member 1.")
    again = result.member(3)
    assert again.message == result.message(3)
    np.testing.assert_array_equal(again.y[:, -1], result.y[3, :, 0])
    assert again.start.moved == {1: pytest.approx(8.0)}


def test_chunks_make_no_difference():
    members = read_members(plateau, (PLACES,), [1.0, 0.0], None)
    task = read_task(plateau, (0.0, 1.0), None, "final", members, {"start": "quiet"})
    whole = Worker(task, members).solve(members)
    for i in (3, 2):
        part = members.part(i, i + 1)
        alone = Worker(task, part).solve(part, i)
        np.testing.assert_array_equal(alone.y[0], whole.y[i])
        assert alone.notes[0].message == whole.notes[i].message


def test_where_there_is_no_start():
    """No neighbour helps where there is nothing to be found; and NaN is left alone."""
    def impossible(t, y, yp, a):
        return [yp[0] + y[1], y[1] ** 2 + a]

    a = np.array([-1.0, 4.0, np.nan])
    result = solve_ensemble(impossible, (0.0, 1.0), [1.0, 1.0], args=(a,), start="quiet")
    assert result.success.tolist() == [True, False, False]
    assert result.status[1] == Status.NO_CONSISTENT_START
    assert "member" not in result.message(1)


def test_members_that_may_help_are_spread_over_the_ensemble():
    rates = np.linspace(0.0, 1.0, 1000)
    rates[:10] = np.nan
    members = read_members(decay, (rates,), [1.0], None)
    numbers = members.spread(8)
    assert len(numbers) == 8
    assert numbers[0] == 10
    assert numbers[-1] == 999
    assert np.ptp(np.diff(numbers)) <= 1
    assert read_members(decay, (np.full(3, np.nan),), [1.0], None).spread(8) == ()


def test_integers_are_not_walked():
    def steps(t, y, yp, a, k):
        return [yp[0] + y[1] ** k, np.tanh(5.0 * (y[1] - a))]

    places, powers = np.array([3.0, 6.0, 6.0]), np.array([1, 1, 2])
    result = solve_ensemble(steps, (0.0, 0.1), [1.0, 0.0], args=(places, powers), start="quiet")
    assert result.success.tolist() == [True, True, False]
