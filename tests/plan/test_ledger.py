"""How often a plan is compared with its function: in the first runs, then within a budget."""

import numpy as np

from tether import solve_dae
from tether.plan.ledger import FIRST_RUNS, Ledger
from tether.plan.shelf import shelf
from tether.trace.verify import Pair


def oscillate(t, y, yp):
    return [yp[0] - y[1], yp[1] + y[0]]


def test_the_first_runs_are_compared_and_later_ones_within_the_budget(monkeypatch):
    shelf.empty()
    checks = [solve_dae(oscillate, (0, 1), [1.0, 0.0]).stats.checks for _ in range(FIRST_RUNS)]
    assert all(count >= 2 for count in checks)
    (plan,) = shelf._plans.values()
    plan.ledger.run_seconds, plan.ledger.compare_seconds = 0.0, 1e9
    assert solve_dae(oscillate, (0, 1), [1.0, 0.0]).stats.checks == 0
    plan.ledger.run_seconds = 1e15
    assert solve_dae(oscillate, (0, 1), [1.0, 0.0]).stats.checks >= 3      # start, one, the last


def test_many_branches_stay_within_the_budget(monkeypatch):
    shelf.empty()

    def cells(t, y, yp):
        wave = np.sin(7.0 * t)
        return yp + np.where(wave > 0.1 * np.arange(18) - 0.9, y, 0.5 * y)

    sol = solve_dae(cells, (0, 20), np.ones(18), rtol=1e-3)
    assert sol.success
    assert sol.warnings == ()
    (plan,) = shelf._plans.values()
    assert len(plan.ledger.branches) > 8
    plan.ledger.runs, plan.ledger.compare_seconds = FIRST_RUNS, 1e9
    plan.ledger.branches.clear()
    assert solve_dae(cells, (0, 20), np.ones(18), rtol=1e-3).stats.checks <= 16


def test_the_draws_fill_an_interval_evenly():
    ledger = Ledger()
    drawn = [ledger.draw(10) for _ in range(1000)]
    assert min(drawn) == 1
    assert max(drawn) == 10
    assert max(drawn.count(k) for k in range(1, 11)) < 130
    assert len({tuple(drawn[k : k + 3]) for k in range(0, 30, 3)}) > 5


def test_points_drawn_differ_from_run_to_run(monkeypatch):
    shelf.empty()
    points = []
    difference = Pair.difference

    def noted(self, t, y, yp):
        points.append(t)
        return difference(self, t, y, yp)

    monkeypatch.setattr(Pair, "difference", noted)
    for _ in range(FIRST_RUNS):
        solve_dae(oscillate, (0, 10), [1.0, 0.0])
    inner = [t for t in points if 0.0 < t < 10.0]
    assert len(inner) >= FIRST_RUNS
    assert len(set(inner)) > 0.7 * len(inner)
