"""A trace that does not say what its function does is noticed, and the function is called."""

import logging
import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tether import Bdf, Cause, Problem, Status, gallery, solve_dae
from tether.plan import choose, constraints, functions, model
from tether.plan import shelf as shelves
from tether.plan.ledger import FIRST_RUNS, Ledger
from tether.plan.shelf import shelf
from tether.trace import trace
from tether.trace.verify import Pair


@pytest.fixture
def misread(monkeypatch):
    """Let the tracer see other functions than those that are called, and no change in them."""
    seen = {}
    real_trace, real_read = choose.trace, model.read_function

    def traced(fun, *args, **options):
        return real_trace(_read_as(fun, seen), *args, **options)

    def read(fun, n, args=(), *more):
        inner = _read_as(fun, seen)
        found = real_read(inner, n, args, *more)
        if inner is not fun:
            found.key = "misread", fun.__name__, found.key
        return found

    shelf.empty()
    for module in (choose, functions):
        monkeypatch.setattr(module, "trace", traced)
    for module in (constraints, functions, model, shelves):
        monkeypatch.setattr(module, "read_function", read)
    return seen


def _read_as(fun, seen):
    """The function that is traced in place of another, also inside what tether makes of it."""
    if fun in seen:
        return seen[fun]
    closure = getattr(fun, "__closure__", None)
    if fun.__module__ != "tether.plan.functions" or not closure:
        return fun
    cells = dict(zip(fun.__code__.co_freevars, (cell.cell_contents for cell in closure),
                     strict=True))
    if fun.__name__ == "together":
        inner = [seen.get(one, one) for one in cells["functions"]]
        size = cells["n_user"]
        return lambda t, y, yp, *args: [one(t, y[:size], yp[:size], *args) for one in inner]
    inner = seen.get(cells["fun"], cells["fun"])
    return lambda t, y, yp, *args: [inner(t, y, *args)]


def solve_both(fun, *args, **options):
    """A run with a trace that is wrong, and one of the function itself."""
    return solve_dae(fun, *args, **options), solve_dae(fun, *args, trace="never", **options)


def assert_noticed(sol, called, words):
    """The result is that of the function, and somebody has been told."""
    assert sol.success
    np.testing.assert_allclose(sol.y[:, -1], called.y[:, -1], rtol=1e-12, atol=1e-14)
    assert sol.stats.steps == called.stats.steps
    assert words in sol.warnings[-1]
    assert sol.diagnosis.cause == Cause.NONE


def assert_called_at_once(fun, *args, words, **options):
    """The next run calls the function, and says why."""
    again = solve_dae(fun, *args, **options)
    assert again.success
    assert again.how.startswith("called as it is: ")
    assert words in again.how
    assert again.stats.checks == 0
    assert again.warnings == ()


def falls(t, y, yp):
    speed = y[1]
    return [
        yp[0] - speed,
        yp[1] + 1.0 + (0.0 if y[0] > -1.0 else 5.0 * y[1]),
    ]


# --- where a trace may differ -------------------------------------------------------------------


def falls_misread(t, y, yp):
    return [yp[0] - y[1], yp[1] + 1.0 + (0.0 if y[0] > -1.0 else 4.0 * y[1])]


def late(t, y, yp):
    return [yp[0] + y[0] * (1.0 if t < 3.0 else 2.0)]


def late_misread(t, y, yp):
    return [yp[0] + y[0]]


def filled(t, y, yp, out):
    out[0] = yp[0] - y[1]
    out[1] = yp[1] + y[0] if y[0] > -0.6 else yp[1] + 2.0 * y[0]


def filled_misread(t, y, yp, out):
    out[0] = yp[0] - y[1]
    out[1] = yp[1] + y[0] if y[0] > -0.6 else yp[1] + 2.5 * y[0]


def with_argument(t, y, yp, rate):
    return [yp[0] + rate * y[0] + (0.0 if y[0] < 10.0 else 1.0)]


def with_argument_misread(t, y, yp, rate):
    return [yp[0] + rate * y[0] + (0.0 if y[0] < 10.0 else 2.0)]


def pendulum(t, y, yp):
    x, z, u, w, tension = y
    return [yp[0] - u, yp[1] - w, yp[2] + tension * x,
            yp[3] + tension * z + (9.81 if x > -0.7 else 5.0), x * x + z * z - 1.0]


def pendulum_misread(t, y, yp):
    x, z, u, w, tension = y
    return [yp[0] - u, yp[1] - w, yp[2] + tension * x, yp[3] + tension * z + 9.81,
            x * x + z * z - 1.0]


def stop(t, y, yp):
    x, v, force = y
    return [yp[0] - v, yp[1] + 1.0 - force, force if t < 2.0 else x + 0.5 * (t - 2.0) - x_stop]


x_stop = -2.0


def stop_misread(t, y, yp):
    x, v, force = y
    return [yp[0] - v, yp[1] + 1.0 - force, force if t < 2.0 else x + 0.25 * (t - 2.0) - x_stop]


CASES = {
    "a branch met later": (falls, falls_misread, (0, 3), [1.0, 0.0], "equation 1"),
    "late times": (late, late_misread, (0, 5), [1.0], "equation 0"),
    "fills": (filled, filled_misread, (0, 4), [1.0, 0.0], "equation 1"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_difference_along_the_run_ends_the_trace(misread, caplog, name):
    fun, other, span, y0, words = CASES[name]
    misread[fun] = other
    with caplog.at_level(logging.WARNING, "tether"):
        sol, called = solve_both(fun, span, y0, rtol=1e-7)
    assert_noticed(sol, called, words)
    assert "test_trust.py, line" in sol.warnings[0]
    assert [record.getMessage() for record in caplog.records] == list(sol.warnings)
    assert sol.how.startswith("called as it is: ")
    assert_called_at_once(fun, span, y0, rtol=1e-7, words=words)


def test_a_difference_is_noticed_for_one_set_of_arguments(misread):
    misread[with_argument] = with_argument_misread
    fine = solve_dae(with_argument, (0, 1), [1.0], args=(-1.0,))
    assert fine.how.startswith("traced")
    assert fine.warnings == ()
    sol, called = solve_both(with_argument, (0, 1), [1.0], args=(-5.0,))
    assert_noticed(sol, called, "equation 0")
    assert_called_at_once(with_argument, (0, 1), [1.0], args=(-1.0,), words="equation 0")


def test_a_reduced_system_is_compared_with_the_function_itself(misread):
    misread[pendulum] = pendulum_misread
    y0 = [1.0, 0.0, 0.0, 0.0, 0.0]
    sol = solve_dae(pendulum, (0, 1.2), y0)
    assert "equation 3" in sol.warnings[-1]
    # what is called is integrated as written: other steps, the same solution
    called = solve_dae(pendulum, (0, 1.2), y0, trace="never")
    np.testing.assert_array_equal(sol.y, called.y)


def test_a_mode_is_compared_after_the_switch(misread):
    misread[stop] = stop_misread
    sol = solve_dae(stop, (0, 3), [0.0, 0.0, 0.0])
    assert len(sol.warnings) == 1
    assert "equation 2" in sol.warnings[0]
    assert "at t = 2" in sol.warnings[0]
    assert sol.how.startswith("called as it is: equation 2")


def test_a_difference_at_an_event_restart_is_noticed_before_more_is_done(misread):
    def ball(t, y, yp):
        return [yp[0] - y[1], yp[1] + 9.81 + (0.0 if y[1] < 2.0 else 0.1 * y[1])]

    misread[ball] = lambda t, y, yp: [yp[0] - y[1], yp[1] + 9.81]
    bounces = []

    def floor(t, y, yp):
        return y[0]

    def bounce(t, y, yp):
        bounces.append(t)
        return [0.0, -0.8 * y[1]]

    floor.direction, floor.apply = -1, bounce
    sol = solve_dae(ball, (0, 1.2), [1.0, -0.1], events=floor)
    assert sol.status == Status.TRACE_DIFFERS
    assert not sol.success
    assert sol.diagnosis.cause == Cause.TRACE
    assert "equation 1" in sol.message
    assert "trace='never'" in sol.message
    assert len(bounces) == 1                   # it was not repeated: `bounce` has done something
    assert 0.4 < sol.t[-1] < 0.6
    assert len(sol.t_events[0]) == 1
    del bounces[:]
    again = solve_dae(ball, (0, 1.2), [1.0, -0.1], events=floor)
    assert again.success
    assert again.how.startswith("called as it is: equation 1")
    called = solve_dae(ball, (0, 1.2), [1.0, -0.1], events=floor, trace="never")
    np.testing.assert_array_equal(again.y, called.y)


def test_an_event_is_compared(misread):
    def level(t, y, yp):
        return y[0] - (0.5 if t < 1.0 else 0.2)

    misread[level] = lambda t, y, yp: y[0] - 0.5
    sol = solve_dae(late_misread, (0, 2), [1.0], events=level)
    called = solve_dae(late_misread, (0, 2), [1.0], events=level, trace="never")
    assert len(sol.warnings) == 1
    assert sol.warnings[0].startswith("events[0] (test_trust.py, line")
    assert sol.how.startswith("traced")        # the residual is not to blame
    assert len(sol.t_events[0]) == len(called.t_events[0]) == 3
    np.testing.assert_allclose(sol.t_events[0], called.t_events[0], rtol=1e-5)
    again = solve_dae(late_misread, (0, 2), [1.0], events=level)
    assert again.warnings == ()
    assert len(again.t_events[0]) == 3


def test_an_invariant_is_compared(misread):
    def turn(t, y, yp):
        return [yp[0] + y[1], yp[1] - y[0]]

    def radius(t, y):
        return y[0] ** 2 + y[1] ** 2 + (0.0 if y[0] > -0.6 else 0.0 * y[1])

    misread[radius] = lambda t, y: y[0] ** 2 + y[1] ** 2 + (0.0 if y[0] > -0.6 else y[0] * y[1])
    sol = solve_dae(turn, (0, 7), [1.0, 0.1], invariants=radius)
    assert len(sol.warnings) == 1
    assert sol.warnings[0].startswith("invariants[0]")
    assert sol.how.startswith("traced")
    assert sol.stats.worst_drift < 1e-12
    np.testing.assert_allclose(np.hypot(*sol.y), math.hypot(1.0, 0.1), rtol=1e-12)
    again = solve_dae(turn, (0, 7), [1.0, 0.1], invariants=radius)
    assert again.success
    assert again.warnings == ()


def test_a_constraint_of_a_function_that_is_called_is_compared(misread):
    calls = []

    def turn(t, y, yp):
        calls.append(t)
        return [yp[0] + y[1], yp[1] - y[0]]

    def radius(t, y):
        return y[0] ** 2 + y[1] ** 2

    misread[radius] = lambda t, y: y[0] ** 2 + y[1] ** 2 + max(-0.6 - y[0], 0.0)
    sol = solve_dae(turn, (0, 7), [1.0, 0.1], invariants=radius)
    assert sol.how.startswith("called")
    assert len(sol.warnings) == 1
    assert sol.warnings[0].startswith("invariants[0]")
    np.testing.assert_allclose(np.hypot(*sol.y), math.hypot(1.0, 0.1), rtol=1e-12)


def test_an_event_that_differs_after_others_have_acted_ends_the_run(misread):
    def ball(t, y, yp):
        return [yp[0] - y[1], yp[1] + 9.81]

    def floor(t, y, yp):
        return y[0] - (0.0 if t < 2.0 else 0.1)

    floor.direction, floor.apply = -1, lambda t, y, yp: [y[0], -0.9 * y[1]]
    misread[floor] = lambda t, y, yp: y[0]
    sol = solve_dae(ball, (0, 4), [1.0, 0.0], events=floor)
    assert sol.status == Status.TRACE_DIFFERS
    assert "events[0]" in sol.message
    assert 1.4 < sol.t[-1] < 2.8               # before the next rebound
    again = solve_dae(ball, (0, 4), [1.0, 0.0], events=floor)
    called = solve_dae(ball, (0, 4), [1.0, 0.0], events=floor, trace="never")
    assert again.success
    *early, last = np.abs(again.t_events[0] - called.t_events[0])
    assert max(early) < 1e-5
    assert last < 1e-2             # the ball hardly reaches the floor any more


def test_a_mass_matrix_and_a_terminal_event_are_no_obstacle(misread):
    def force(t, y):
        return [y[1], -y[0] if y[0] > -0.6 else -3.0 * y[0]]

    def back(t, y, yp):
        return y[1]

    back.direction, back.terminal = 1, True
    problem = Problem.mass_matrix(np.eye(2), force)
    misread[problem.fun] = lambda t, y, yp: [yp[0] - y[1], yp[1] + y[0]]
    sol = solve_dae(problem, (0, 9), [1.0, 0.0], events=back)
    called = solve_dae(problem, (0, 9), [1.0, 0.0], events=back, trace="never")
    assert sol.status == called.status == Status.EVENT
    assert len(sol.warnings) == 1
    np.testing.assert_array_equal(sol.y, called.y)


def test_a_difference_before_the_first_callback_is_repeated(misread):
    seen = []
    rate = Hidden(1.0)

    def decay(t, y, yp):
        return [yp[0] + rate.value * y[0]]

    misread[decay] = late_misread
    solve_dae(decay, (0, 1), [1.0])
    rate.value = 2.0
    sol = solve_dae(decay, (0, 1), [1.0], callback=lambda t, y, yp: seen.append(t))
    assert sol.success
    assert len(sol.warnings) == 1
    assert len(seen) == sol.stats.steps


def test_threads_share_a_plan_that_proves_wrong(misread):
    misread[falls] = falls_misread
    called = solve_dae(falls, (0, 3), [1.0, 0.0], trace="never")
    with ThreadPoolExecutor(4) as pool:
        runs = list(pool.map(lambda _: solve_dae(falls, (0, 3), [1.0, 0.0]), range(8)))
    for sol in runs:
        assert sol.success
        np.testing.assert_array_equal(sol.y, called.y)


# --- what the key does not see ------------------------------------------------------------------


class Hidden:
    """A number that only a call finds."""

    def __init__(self, value):
        self.value = value


def test_a_change_between_two_runs_is_noticed_at_the_start(misread):
    rate = Hidden(1.0)

    def decay(t, y, yp):
        return [yp[0] + rate.value * y[0]]

    misread[decay] = late_misread
    first = solve_dae(decay, (0, 1), [1.0])
    assert first.how.startswith("traced")
    assert first.warnings == ()
    rate.value = 2.0
    sol, called = solve_both(decay, (0, 1), [1.0])
    assert_noticed(sol, called, "equation 0")
    assert "at t = 0 " in sol.warnings[0]
    assert sol.how.startswith("called as it is: equation 0")
    assert_called_at_once(decay, (0, 1), [1.0], words="equation 0")


def test_a_change_during_the_run_is_noticed(misread):
    rate = Hidden(1.0)

    def decay(t, y, yp):
        return [yp[0] + rate.value * y[0]]

    def meddle(t, y, yp):
        rate.value = 1.0 if t < 0.5 else 2.0

    misread[decay] = late_misread
    sol = solve_dae(decay, (0, 1), [1.0], callback=meddle)
    assert sol.status == Status.TRACE_DIFFERS  # at the last step, if not before
    assert sol.t[-1] > 0.5
    np.testing.assert_allclose(sol.y[0, :5], np.exp(-sol.t[:5]), rtol=1e-4)


def test_trace_always_ends_a_run_that_differs(misread):
    misread[falls] = falls_misread
    sol = solve_dae(falls, (0, 3), [1.0, 0.0], trace="always")
    assert sol.status == Status.TRACE_DIFFERS
    assert "equation 1" in sol.message
    assert "trace='auto'" in sol.message
    assert 0.0 < sol.t[-1] < 3.0
    with pytest.raises(ValueError, match="equation 1"):
        solve_dae(falls, (0, 3), [1.0, 0.0], trace="always")


def test_stepping_ends_where_the_trace_differs(misread):
    misread[falls] = falls_misread
    bdf = Bdf(falls, 0.0, [1.0, 0.0], t_bound=3.0)
    while bdf.step() == Status.RUNNING:
        pass
    assert bdf.status == Status.TRACE_DIFFERS
    assert bdf.y[0] < -1.0 < bdf.dense_output()(bdf.t_old)[0][0]      # at the first step beyond
    assert bdf.stats.checks > 0
    again = Bdf(falls, 0.0, [1.0, 0.0], t_bound=3.0)
    while again.step() == Status.RUNNING:
        pass
    assert again.status == Status.REACHED_END
    assert again.how.startswith("called")


def test_a_start_that_is_not_found_is_compared(misread):
    def fun(t, y, yp):
        return [yp[0] + y[1], y[1] ** 2 - (1.0 if y[0] < 3.0 else 4.0)]

    misread[fun] = lambda t, y, yp: [yp[0] + y[1], y[1] ** 2 - (1.0 if y[0] < 3.0 else -4.0)]
    assert solve_dae(fun, (0, 1), [0.0, 1.0]).how.startswith("traced")
    (plan,) = shelf._plans.values()
    plan.ledger.runs, plan.ledger.compare_seconds = FIRST_RUNS, 1e9      # none would be paid for
    sol, called = solve_both(fun, (0, 0.5), [5.0, 2.0])
    assert_noticed(sol, called, "equation 1")
    assert sol.y[0, -1] == pytest.approx(4.0)


# --- exceptions ---------------------------------------------------------------------------------


def outcome(fun, *args, **options):
    """Status and end of a run, or the exception that it raises."""
    try:
        sol = solve_dae(fun, *args, **options)
    except ValueError as error:
        return str(error)
    return sol.status, sol.t[-1], sol.y[:, -1].tolist()


def drains(t, y, yp, slope):
    root = math.sqrt(y[0])
    return [yp[0] + slope + (0.1 * root if y[0] > 0.0 else 0.0)]


def test_an_exception_that_the_trace_does_not_have_is_that_of_the_function():
    called = outcome(drains, (0, 2), [1.0], args=(1.0,), trace="never")
    assert outcome(drains, (0, 2), [1.0], args=(1.0,)) == called
    assert called[0] != Status.REACHED_END


def test_a_function_that_raises_for_some_values_is_still_traced_for_others():
    for _ in range(2):
        assert solve_dae(drains, (0, 2), [1.0], args=(-1.0,)).how.startswith("traced")
        outcome(drains, (0, 2), [1.0], args=(1.0,))


def test_an_exception_where_the_trace_gives_no_number_is_no_difference():
    def tank(t, y, yp):
        return [yp[0] + math.sqrt(y[0])]

    sol = solve_dae(tank, (0.0, 3.0), [1.0])
    assert sol.status == Status.NON_FINITE
    assert sol.warnings == ()
    pair = Pair(trace(tank, 1), None, tank)
    assert pair.difference(0.0, [-1.0], [0.0]) is None


def oscillate(t, y, yp):
    return [yp[0] - y[1], yp[1] + y[0]]


# --- how often ----------------------------------------------------------------------------------


def test_comparisons_change_nothing_in_a_result():
    y0 = [1.0, 0.0]
    runs = [solve_dae(oscillate, (0, 20), y0) for _ in range(8)]
    assert len({run.stats.checks for run in runs}) > 1
    for run in runs[1:]:
        np.testing.assert_array_equal(run.y, runs[0].y)
        assert run.nfev == runs[0].nfev


def test_a_new_branch_is_compared_though_the_budget_is_spent(misread):
    misread[with_argument] = with_argument_misread
    for _ in range(FIRST_RUNS + 1):
        solve_dae(with_argument, (0, 1), [1.0], args=(-1.0,))
    (plan,) = shelf._plans.values()
    plan.ledger.run_seconds, plan.ledger.compare_seconds = 0.0, 1e9
    assert solve_dae(with_argument, (0, 1), [1.0], args=(-1.0,)).stats.checks == 0
    sol, called = solve_both(with_argument, (0, 1), [1.0], args=(-5.0,))
    assert_noticed(sol, called, "equation 0")


# --- no false alarm -----------------------------------------------------------------------------


@pytest.fixture
def always(monkeypatch):
    """Compare at every opportunity."""
    monkeypatch.setattr(Ledger, "can_pay", True)
    shelf.empty()
    monkeypatch.setattr("tether.run.drive.FIRST_BATCH", 1)


@pytest.mark.parametrize("name", ["robertson", "akzo", "transamp", "pend-i3", "caraxis-i3",
                                  "rotor", "implicit-oscillator", "prothero-robinson", "vdpol"])
def test_healthy_problems_raise_no_alarm(always, name):
    problem = gallery.get(name)
    for rtol in (1e-3, 1e-9):
        sol = solve_dae(problem.fun, problem.t_span, problem.y0, problem.yp0, rtol=rtol,
                        atol=problem.atol(rtol), t_eval=[problem.t_span[1]])
        assert sol.success
        assert sol.warnings == ()
        assert sol.stats.checks > 5


@pytest.mark.parametrize(
    "seed", [*range(15), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(15, 200))]
)
def test_random_systems_with_branches_in_any_unit_raise_no_alarm(always, seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 5))
    unit = 10.0 ** rng.uniform(-12.0, 12.0, n)
    rows = 10.0 ** rng.uniform(-12.0, 12.0, n)
    matrix = -np.eye(n) + 0.4 * rng.standard_normal((n, n))
    level = 0.5 * rng.standard_normal(n)
    period = 10.0 ** rng.uniform(-6.0, 6.0)

    def fun(t, y, yp):
        x = [y[i] / unit[i] for i in range(n)]
        push = math.sin(3.0 * t / period)
        if t > 2.0 * period:
            push = push + 0.2 * np.tanh(x[0])
        found = []
        for i in range(n):
            slope = sum(matrix[i, j] * x[j] for j in range(n)) + push
            if x[i] > level[i]:
                slope = slope - 3.0 * (x[i] - level[i]) * math.exp(-x[i - 1] ** 2)
            found.append(rows[i] * (yp[i] * period / unit[i] - slope))
        return found

    y0 = unit * rng.standard_normal(n)
    sol = solve_dae(fun, (0, 5 * period), y0, rtol=10.0 ** -rng.uniform(3, 9), atol=1e-8 * unit)
    assert sol.how.startswith("traced")
    assert sol.success
    assert sol.warnings == ()
    assert sol.stats.checks > 5
