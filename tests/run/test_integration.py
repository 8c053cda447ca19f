"""One run: its start, its status, restarts, limits, and what it does when it is asked."""

import math
import time

import numpy as np
import pytest
from support.helpers import circle, decay, relax, relax_exact

from tether import Problem, Status, gallery, solve_dae
from tether._core import codes
from tether.plan.model import AsWritten, ReducedModel, TracedModel
from tether.run.bdf import BDF
from tether.run.integration import Integration


def finish(run):
    while run.status == Status.RUNNING:
        run.advance(1000)
    return run


def test_it_begins_at_a_consistent_start():
    run = Integration(relax, 0.0, [1.5, 0.0], t_bound=2.0)
    assert run.status == Status.RUNNING
    assert run.start.success
    assert (run.t, run.n) == (0.0, 2)
    np.testing.assert_allclose(run.y, relax_exact(0.0), rtol=1e-12)
    np.testing.assert_allclose(run.yp[0], -1.5, rtol=1e-9)
    assert run.given[1].tolist() == [1.5, 0.0]


def test_steps_and_runs_are_the_same():
    runs = [Integration(relax, 0.0, relax_exact(0.0), t_bound=2.0) for _ in range(2)]
    finish(runs[0])
    while runs[1].step() == Status.RUNNING:
        pass
    for run in runs:
        assert run.status == Status.REACHED_END
        assert run.t == 2.0
        np.testing.assert_allclose(run.y, relax_exact(2.0), rtol=1e-4)
    np.testing.assert_array_equal(runs[0].y, runs[1].y)


def test_a_run_that_is_over_stays_where_it_is():
    run = finish(Integration(circle, 0.0, [1.0, 0.0], t_bound=1.0))
    before = run.t, run.y.tolist(), run.state.steps, run.state.nfev
    assert run.step() == Status.REACHED_END
    assert (run.t, run.y.tolist(), run.state.steps, run.state.nfev) == before


def test_values_are_copies():
    run = Integration(circle, 0.0, [1.0, 0.0], t_bound=1.0)
    run.y[:] = 7.0
    run.yp[:] = 7.0
    assert run.y.tolist() == [1.0, 0.0]
    assert finish(run).y == pytest.approx([math.cos(1), -math.sin(1)], rel=1e-4)


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [({}, ReducedModel, "index 3 reduced to 1"), ({"form": "given"}, TracedModel, "as written"),
     ({"trace": "never"}, AsWritten, "called as it is")],
)
def test_the_user_sees_the_unknowns_of_the_user(options, kind, words):
    given = gallery.get("pend-i3")
    run = Integration(given.fun, 0.0, given.y0, given.yp0, options, t_bound=0.1)
    assert type(run.model) is kind
    assert words in run.how
    finish(run)
    assert run.status == Status.REACHED_END
    assert len(run.y) == len(run.yp) == given.n
    assert run.polynomial()(run.t)[0][: given.n] == pytest.approx(run.y, rel=1e-12)


def test_a_start_that_is_not_found_is_a_status():
    run = Integration(lambda t, y, yp: [yp[0] + y[0], y[1] ** 2 + 1.0], 0.0, [1.0, 1.0],
                      t_bound=1.0)
    assert not run.start.success
    assert run.status == Status.NO_CONSISTENT_START
    assert run.step() == Status.NO_CONSISTENT_START
    assert run.state.steps == 0


def test_it_can_begin_anew_at_another_state():
    run = Integration(relax, 0.0, relax_exact(0.0), t_bound=2.0)
    while run.t < 1.0:
        run.step()
    t = run.t
    run.restart(t, np.array([3.0, 0.0]), None, 1e-3)
    assert (run.t, run.status) == (t, Status.RUNNING)
    assert run.y == pytest.approx([3.0, 3.0 + math.sin(t)], rel=1e-9)
    run.step()
    assert run.t == pytest.approx(t + 1e-3, rel=1e-12)
    finish(run)
    x = (3.0 - 0.5 * (math.cos(t) - math.sin(t))) * math.exp(t - 2.0)
    assert run.y[0] == pytest.approx(x + 0.5 * (math.cos(2.0) - math.sin(2.0)), rel=1e-4)


def test_limits_end_a_run_that_is_running():
    run = Integration(decay, 0.0, [1.0], options={"max_steps": 3, "max_seconds": 5.0}, t_bound=9.0)
    run.advance(2)
    run.check_limits(1.0)
    assert run.status == Status.RUNNING
    run.check_limits(6.0)
    assert run.status == Status.MAX_SECONDS
    run.check_limits(0.0)
    assert run.status == Status.MAX_SECONDS
    run = Integration(decay, 0.0, [1.0], options={"max_steps": 3, "max_seconds": 5.0}, t_bound=9.0)
    while run.state.steps < 3:
        run.advance(1)
    run.check_limits(6.0)
    assert run.status == Status.MAX_STEPS


def test_changes_of_what_the_function_reads_are_noticed():
    table = {"k": 1.0}
    run = Integration(lambda t, y, yp: [yp[0] + table["k"] * y[0]], 0.0, [1.0], t_bound=1.0)
    reading = run.model.reading
    assert run.is_current
    run.refresh()
    assert run.model.reading == reading
    assert not run.changed
    table["k"] = 3.0
    assert not run.is_current
    run.refresh()
    assert run.is_current
    assert run.changed
    assert run.model.reading != reading
    assert finish(run).y[0] == pytest.approx(math.exp(-3.0), rel=1e-4)


def test_points_are_projected_onto_the_constraints():
    free = Integration(circle, 0.0, [1.0, 0.0], t_bound=1.0)
    assert free.project(0.0, np.array([2.0, 0.0])).tolist() == [2.0, 0.0]
    held = Integration(Problem(circle, constraints=lambda t, y: y[0] ** 2 + y[1] ** 2 - 1.0), 0.0,
                       [1.0, 0.0], t_bound=1.0)
    found = held.project(0.0, np.array([0.6001, 0.8001]))
    assert found == pytest.approx([0.6, 0.8], abs=1e-3)        # next to it in the weighted norm
    assert np.hypot(*found) == pytest.approx(1.0, abs=1e-9)
    assert held.y.tolist() == [1.0, 0.0]


def test_it_knows_its_method_by_the_contract_alone():
    """A method that counts and passes everything on gives the same run."""
    calls = []

    class Counted:
        def __getattr__(self, name):
            calls.append(name)
            return getattr(BDF, name)

    class ByAnother(Integration):
        method = Counted()

    found = finish(ByAnother(relax, 0.0, relax_exact(0.0), t_bound=2.0))
    expected = finish(Integration(relax, 0.0, relax_exact(0.0), t_bound=2.0))
    np.testing.assert_array_equal(found.y, expected.y)
    assert set(calls) == {"begin", "advance"}
    found.polynomial()
    assert calls[-1] == "polynomial"


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="t_bound must differ from t0"):
        Integration(decay, 1.0, [1.0], t_bound=1.0)
    with pytest.raises(ValueError, match="first_step must not be longer"):
        Integration(decay, 0.0, [1.0], options={"first_step": 2.0}, t_bound=1.0)
    with pytest.raises(ValueError, match="history must"):
        Integration(decay, 0.0, [1.0], t_bound=1.0, history=([0.5], [[1.0]]))


def test_the_code_of_the_core_comes_back():
    run = Integration(decay, 0.0, [1.0], t_bound=1.0)
    assert run.advance(1) in (codes.PAUSED, codes.COMPARISON_DUE)
    code = codes.PAUSED
    while run.status == Status.RUNNING:
        code = run.advance(1000)
    assert code == codes.REACHED_END


def test_the_limit_of_seconds_counts_the_start():
    def slow(t, y, yp):
        time.sleep(2e-3)
        return yp + y

    sol = solve_dae(slow, (0, 10), np.ones(3), trace="never", max_seconds=1e-3)
    assert sol.status == Status.MAX_SECONDS
    assert sol.stats.steps <= 1
    assert sol.stats.seconds >= 1e-3
