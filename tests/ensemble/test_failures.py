"""Members that fail leave the others alone."""

import os
import signal
import threading
import time
import warnings

import numpy as np
import pytest
from support.ensembles import alone, assert_same, ball, decay, ground, pendulum, robertson

from tether import ConsistencyWarning, Status, solve_ensemble

K = np.array([1.0, 2.0, 3.0, 4.0])
ENGINES = ["threads", "processes"]


def blow_up(t, y, yp, k):
    return [yp[0] - k * y[0] ** 2]


def picky(t, y, yp, k):
    if k == 3.0:
        raise LookupError(f"no value for {k}")
    return [yp[0] + k * y[0]]


@pytest.mark.parametrize("engine", ENGINES)
def test_failing_among_good_ones(engine):
    k = np.array([0.1, 5.0, 0.2, np.nan, np.inf, 0.3])
    result = solve_ensemble(blow_up, (0.0, 1.0), [1.0], args=(k,), engine=engine)
    assert result.success.tolist() == [True, False, True, False, False, True]
    assert result.failed().tolist() == [1, 3, 4]
    np.testing.assert_allclose(result.y[[0, 2, 5], 0, 0], 1 / (1 - k[[0, 2, 5]]), rtol=1e-4)
    one = alone(blow_up, (0.0, 1.0), [1.0], (5.0,))
    assert result.status[1] == one.status
    assert result.message(1) == one.message
    assert result.t_final[1] == one.t[-1]
    assert 0.19 < result.t_final[1] <= 0.2
    full = result.member(1)
    assert not full.success
    assert full.diagnosis.cause == one.diagnosis.cause
    assert "blows up" in full.message
    assert result[1].diagnosis.cause == one.diagnosis.cause


def test_values_up_to_where_a_member_fails():
    times = np.linspace(0.0, 1.0, 11)
    result = solve_ensemble(blow_up, (0.0, 1.0), [1.0], args=(np.array([0.5, 2.0]),), t_eval=times)
    assert result.success.tolist() == [True, False]
    assert np.isfinite(result.y[1, 0, :5]).all()
    assert np.isnan(result.y[1, 0, 6:]).all()
    assert 0.49 < result.t_final[1] <= 0.5 + 1e-6
    assert len(result[1].t) == len(result[1].y[0]) < 11
    assert np.isfinite(result.quantiles([0.5])).all()      # of those that succeeded


@pytest.mark.parametrize("engine", ENGINES)
def test_exceptions_are_of_one_member(engine):
    result = solve_ensemble(picky, (0.0, 1.0), [1.0], args=(K,), engine=engine, trace="never")
    assert result.failed().tolist() == [2]
    assert result.status[2] == -100
    assert isinstance(result.errors[2], LookupError)
    assert result.message(2) == "LookupError: no value for 3.0"
    with pytest.raises(LookupError, match=r"no value for 3\.0"):
        result[2]
    with pytest.raises(LookupError, match=r"no value for 3\.0"):
        result.member(2)
    np.testing.assert_allclose(result.y[[0, 1, 3], 0, 0], np.exp(-K[[0, 1, 3]]), rtol=1e-4)
    assert "EXCEPTION: 1" in str(result)


def test_exceptions_of_traced_functions():
    result = solve_ensemble(picky, (0.0, 1.0), [1.0], args=(K,))
    assert result.failed().tolist() == [2]
    assert isinstance(result.errors[2], LookupError)


def test_an_exception_of_all_members_is_raised():
    def wrong(t, y, yp, k):
        raise LookupError("never")

    with pytest.raises(LookupError, match="never"):
        solve_ensemble(wrong, (0.0, 1.0), [1.0], args=(K,))


def test_starting_values_that_are_not_finite():
    starts = np.array([[1.0], [np.nan], [np.inf], [2.0]])
    result = solve_ensemble(decay, (0.0, 1.0), starts, args=(1.0,))
    assert result.failed().tolist() == [1, 2]
    np.testing.assert_allclose(result.y[[0, 3], 0, 0], [np.exp(-1), 2 * np.exp(-1)], rtol=1e-5)


def test_limits_of_steps():
    result = solve_ensemble(decay, (0.0, 1.0), [1.0], args=(np.array([1e-9, 5.0]),), max_steps=15)
    assert result.status.tolist() == [Status.REACHED_END, Status.MAX_STEPS]
    assert result.stats["steps"][1] == 15


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("times", [None, np.linspace(0.0, 2.0, 9)], ids=["final", "t_eval"])
def test_events_of_each_member(engine, times):
    g = np.array([1.0, 1.5, 9.81, 4.0])
    result = solve_ensemble(ball, (0.0, 2.0), [4.0, 0.0], args=(g,), events=ground, t_eval=times,
                            engine=engine)
    hits = np.sqrt(8.0 / g)
    ended = hits < 2.0
    assert result.status.tolist() == [
        Status.EVENT if end else Status.REACHED_END for end in ended
    ]
    np.testing.assert_allclose(result.t_final, np.minimum(hits, 2.0), rtol=1e-6)
    assert [len(found[0]) for found in result.t_events] == ended.astype(int).tolist()
    np.testing.assert_allclose(result.t_events[2][0], hits[2], rtol=1e-6)
    assert result[2].t_events[0][0] == result.t_final[2]
    assert result[0].event_names == ("ground",)
    for i in range(4):
        assert_same(result, i, alone(ball, (0.0, 2.0), [4.0, 0.0], (float(g[i]),), events=ground,
                                     t_eval=times))
    if times is None:
        assert abs(result.y[2, 0, 0]) < 1e-6


def test_one_warning_about_guesses():
    with pytest.warns(ConsistencyWarning, match="y0 of 2 members") as caught:
        solve_ensemble(robertson, (0.0, 1.0), [[1.0, 0.0, 0.0], [0.5, 0.0, 0.2], [0.5, 0.0, 0.3]],
                       args=(0.04, 1e4, 3e7))
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solve_ensemble(robertson, (0.0, 1.0), [[0.5, 0.0, 0.2]], args=(0.04, 1e4, 3e7),
                       start="quiet")
        # multipliers are always guesses
        solve_ensemble(pendulum, (0.0, 1.0), [1.0, 0.0, 0.0, 1.0, 7.0], args=(K + 5.0, 1.0))


def test_asking_for_members_that_are_none():
    result = solve_ensemble(decay, (0.0, 1.0), [1.0], args=(K,))
    assert result[-1].y[0, 0] == result.y[3, 0, 0]
    for wrong in (4, -5):
        with pytest.raises(IndexError, match="there are 4 members"):
            result[wrong]
    for wrong in (1.0, "a", True):
        with pytest.raises(TypeError, match="must be an integer"):
            result[wrong]


class Interrupter:
    """Presses Ctrl-C when half of the members are done."""

    def __init__(self):
        self.calls = []

    def __call__(self, done, total, seconds_left):
        self.calls.append((done, total, seconds_left))
        if 2 * done >= total:
            signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("engine", ENGINES)
def test_ctrl_c_returns_what_is_finished(engine):
    k = np.linspace(1.0, 2.0, 400)
    press = Interrupter()
    with pytest.warns(RuntimeWarning, match="were not solved: it was interrupted"):
        result = solve_ensemble(decay, (0.0, 10.0), [1.0], args=(k,), engine=engine, workers=2,
                                progress=press, trace="never")
    done = result.success
    assert 0.5 <= done.mean() < 1.0
    np.testing.assert_allclose(result.y[done, 0, 0], np.exp(-10 * k[done]), atol=1e-6)
    assert np.isnan(result.y[~done]).all()
    assert result.interrupted
    assert "not solved" in repr(result)
    assert result.message(int(result.failed()[0])).startswith("It was not solved")
    with pytest.raises(ValueError, match="was not solved"):
        result[int(result.failed()[0])]
    total = {call[1] for call in press.calls}
    assert total == {400}


def test_ctrl_c_stops_long_members():
    """A member in the core looks up every thousand steps."""
    def turn(t, y, yp, k):
        return [yp[0] - k * y[1], yp[1] + k * y[0]]

    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    began = time.perf_counter()
    with pytest.warns(RuntimeWarning, match="interrupted"):
        result = solve_ensemble(turn, (0.0, 1e3), [1.0, 0.0], args=(np.full(2000, 10.0),))
    timer.join()
    assert time.perf_counter() - began < 30.0
    assert not result.success.all()


def deadly(t, y, yp, k):
    if k == 3.0:
        os._exit(1)
    return [yp[0] + k * y[0]]


def test_a_member_that_takes_its_process_down():
    result = solve_ensemble(deadly, (0.0, 1.0), [1.0], args=(K,), engine="processes", workers=2,
                            trace="never")
    assert result.failed().tolist() == [2]
    assert "killed" in result.message(2)
    np.testing.assert_allclose(result.y[[0, 1, 3], 0, 0], np.exp(-K[[0, 1, 3]]), rtol=1e-4)
