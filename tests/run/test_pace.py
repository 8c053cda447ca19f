"""Runs that would never end."""

from functools import partial

import pytest
from support.broken_runs import dry_friction, relay_on_its_surface
from support.helpers import circle

from tether import Cause, Status, solve_dae


def test_creeping_ends_after_about_a_hundred_thousand_steps():
    sol = relay_on_its_surface()
    assert sol.status == Status.NO_PROGRESS
    assert 1e5 <= sol.stats.steps <= 1e6


@pytest.mark.parametrize("run", [relay_on_its_surface, dry_friction])
def test_creeping_is_noticed_at_loose_tolerances_too(run, monkeypatch):
    """The steps are longer, but 1e7 of them would be needed still."""
    monkeypatch.setitem(run.__globals__, "solve_dae", partial(solve_dae, rtol=1e-3, atol=1e-3))
    sol = run()
    assert sol.diagnosis.cause == Cause.CREEPING
    assert sol.stats.steps <= 1e6


@pytest.mark.parametrize("watcher", ["event", "callback"])
def test_creeping_is_noticed_though_somebody_might_stop_the_run(watcher):
    """An event that never comes, at an end that may be far away, is no way out."""
    def boils(t, y, yp):
        return y[0] - 100.0

    boils.terminal = True
    who = {"events": boils} if watcher == "event" else {"callback": lambda t, y, yp: False}
    sol = solve_dae(lambda t, y, yp: [yp[0] + 0.1 * (y[0] - 10.0) - (3.0 if y[0] < 20.0 else 0.0)],
                    (0, 1e9), [15.0], trace="never", **who)
    assert sol.diagnosis.cause == Cause.CREEPING
    assert sol.stats.steps <= 1e6


def test_a_far_end_is_no_reason_to_stop_before_a_terminal_event():
    def late(t, y, yp):
        return t - 2e5

    late.terminal = True
    sol = solve_dae(circle, (0, 1e15), [1.0, 0.0], events=late, max_order=1, max_step=1.0,
                    rtol=1e-2, atol=1e-2, t_eval=[0.0])
    assert sol.status == Status.EVENT
    assert sol.stats.steps >= 2e5


def test_limits_of_the_user_come_first():
    sol = solve_dae(lambda t, y, yp: [yp[0] + (1.0 if y[0] > 0 else -1.0)], (0, 10), [1.0],
                    max_steps=120_000, trace="never")
    assert sol.status == Status.MAX_STEPS
