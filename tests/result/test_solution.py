"""What a run returns."""

import dataclasses
import pickle

import numpy as np
import pytest
from support.front_door import JACOBIAN, SPAN
from support.helpers import RELAX_START, circle, relax

from tether import DaeResult, Statistics, Status, solve_dae

# --- the result --------------------------------------------------------------------------------


def test_names_and_shapes_of_scipy(reference):
    sol = reference
    assert isinstance(sol, DaeResult)
    assert sol.t.shape == (len(sol.t),)
    assert sol.y.shape == sol.yp.shape == (2, len(sol.t))
    assert sol.t[0] == SPAN[0]
    assert sol.t[-1] == SPAN[1]
    assert sol.sol is sol.t_events is sol.y_events is sol.yp_events is None
    assert sol.status == 0
    assert sol.success is True
    assert sol.message == Status.REACHED_END.text
    assert isinstance(sol.stats, Statistics)
    assert (sol.nfev, sol.njev, sol.nlu) == (sol.stats.nfev, sol.stats.njev, sol.stats.nlu)
    for count in (sol.nfev, sol.njev, sol.nlu):
        assert isinstance(count, int)
        assert count > 0


def test_counters_count_the_calls():
    calls = {"fun": 0, "jac": 0}

    def fun(t, y, yp):
        calls["fun"] += 1
        return relax(t, y, yp)

    def jac(t, y, yp):
        calls["jac"] += 1
        return JACOBIAN

    sol = solve_dae(fun, SPAN, RELAX_START, trace="never")
    assert sol.nfev == calls["fun"]
    calls["fun"] = 0
    sol = solve_dae(fun, SPAN, RELAX_START, jac=jac, trace="never")
    assert (sol.nfev, sol.njev) == (calls["fun"], calls["jac"])
    calls["fun"] = calls["jac"] = 0
    sol = solve_dae(relax, SPAN, RELAX_START, jac=jac)
    assert sol.njev == calls["jac"]


def test_work_is_modest(reference):
    assert reference.stats.steps < 60
    assert reference.nfev < 3 * reference.stats.steps
    assert reference.njev <= 5
    assert reference.nlu < reference.stats.steps


def test_history_of_the_steps(reference):
    stats = reference.stats
    assert len(stats.t) == len(stats.h) == len(stats.order) == stats.steps
    np.testing.assert_array_equal(stats.t, reference.t[1:])
    np.testing.assert_array_equal(stats.h, np.diff(reference.t))
    assert stats.order[0] == 1
    assert np.all(np.abs(np.diff(stats.order)) <= 1)
    assert stats.seconds > 0


def test_no_step_is_kept_with_t_eval():
    sol = solve_dae(circle, (0, 1000), [1.0, 0.0], t_eval=[1000.0])
    assert sol.stats.steps > 5000
    assert sol.stats.t is sol.stats.h is sol.stats.order is None
    assert sol.t.shape == (1,)
    assert sol.y.base is None or sol.y.base.size <= 4


def test_many_steps_are_kept():
    """More than the record has room for at first."""
    sol = solve_dae(circle, (0, 500), [1.0, 0.0], dense_output=True)
    assert len(sol.t) == sol.stats.steps + 1 > 3000
    assert np.all(np.diff(sol.t) > 0)
    np.testing.assert_allclose(sol.sol(sol.t)[0], sol.y, atol=1e-12)


def test_results_compare_by_identity(reference):
    assert reference == reference
    assert reference != solve_dae(relax, SPAN, RELAX_START)
    assert len({reference, reference}) == 1


def test_results_can_be_pickled():
    sol = solve_dae(relax, SPAN, RELAX_START, dense_output=True, events=lambda t, y, yp: y[0] - 1)
    copy = pickle.loads(pickle.dumps(sol))
    assert copy.status is sol.status
    assert str(copy) == str(sol)
    np.testing.assert_array_equal(copy.sol(0.7), sol.sol(0.7))


# --- Bdf ---------------------------------------------------------------------------------------


def test_what_a_run_makes_has_all_of_its_fields_and_cannot_be_changed():
    sol = solve_dae(lambda t, y, yp: [yp[0] + y[0]], (0, 1), [1.0])
    for thing in (sol, sol.stats, sol.start):
        again = dataclasses.replace(thing)
        for field in dataclasses.fields(thing):
            assert getattr(again, field.name) is getattr(thing, field.name)
        with pytest.raises(dataclasses.FrozenInstanceError):
            thing.message = None


def test_the_history_of_steps_leaves_out_the_rows_of_restarts():
    kicks = []

    def kick(t, y, yp):
        return y[0] - 0.5

    def apply(t, y, yp):
        kicks.append(t)
        return [2.0]

    kick.apply, kick.direction = apply, -1
    fun = lambda t, y, yp: [yp[0] + y[0]]  # noqa: E731
    for options in ({}, {"events": kick}, {"t_breaks": [0.5]}):
        sol = solve_dae(fun, (0, 3), [1.0], **options)
        stats = sol.stats
        assert len(stats.t) == len(stats.h) == len(stats.order) == stats.steps
        assert stats.order.min() > 0
        assert stats.t[-1] == 3.0
        assert stats.h.sum() == pytest.approx(3.0, rel=1e-12)
        assert set(stats.t) <= set(sol.t)
        assert not np.shares_memory(stats.t, sol.t)
    assert kicks
