"""Tracing is invisible: what solve_dae does by default is what it does with calls to the function.

Only speed, Jacobians and the last digits may differ. Every test here compares the two.
"""

import ctypes
import inspect
import itertools
import math
import re
import threading
import types
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from support.helpers import count_calls, decay
from support.traced_runs import Halt, assert_alike, end

from tether import Bdf, Options, Problem, Status, gallery, solve_dae
from tether.plan.shelf import shelf

pytestmark = pytest.mark.usefixtures("nothing_is_known")


# --- the gallery --------------------------------------------------------------------------------

LOW_INDEX = [name for name in gallery.names("classic") if gallery.get(name).index <= 1]
# Share of the steps that may differ, beside a few per run: iterations of called functions end at
# other points, as their factors are newer. Those of Andrews' mechanism follow the last digits:
# other roundings of the same equations make a quarter more or less at one tolerance.
MORE_STEPS = {"andrews-i1": 0.15, "akzo": 0.1}
# Digits at a loose tolerance: those of the transistor amplifier differ by more than one. The
# stiffness of Prothero and Robinson's equation damps all errors to a thousandth of the tolerance.
# Called, the pendulum's scatter by 0.5 from one tolerance to the next, however often it factors.
# At the end of Robertson's problem digits scatter by one, and traced runs have 0.6 more.
SCATTER = {"transamp": 1.0, "prothero-robinson": 2.2, "pend-i1": 0.7, "robertson": 1.0}


@pytest.mark.parametrize("name", LOW_INDEX)
def test_gallery_problems_are_solved_alike(name):
    problem = gallery.get(name)

    def run(rtol, trace):
        return solve_dae(problem.fun, problem.t_span, problem.y0, problem.yp0, rtol=rtol,
                         atol=problem.atol(rtol), t_eval=[problem.t_span[1]], trace=trace)

    rtols = 10.0 ** -np.arange(4.0, 7.1)
    called = [run(rtol, "never") for rtol in rtols]
    calls, first = count_calls([problem.fun], lambda: run(rtols[0], "always"))
    assert calls <= 20 + first.stats.checks < first.nfev
    calls, others = count_calls([problem.fun], lambda: [run(rtol, "always") for rtol in rtols[1:]])
    assert calls == sum(sol.stats.checks for sol in others)
    traced = [first, *others]
    assert all(sol.success for sol in called + traced)
    for sol in called:
        assert sol.how.startswith("called")
    for sol in traced:
        assert sol.how.startswith("traced")
    digits = [np.mean([problem.digits(sol.y[:, -1]) for sol in run]) for run in (called, traced)]
    assert digits[1] == pytest.approx(digits[0], abs=SCATTER.get(name, 0.5))
    steps = [sum(sol.stats.steps for sol in run) for run in (called, traced)]
    assert abs(steps[1] - steps[0]) <= 5 * len(rtols) + MORE_STEPS.get(name, 0.07) * steps[0]
    beside = [sum(sol.nfev - sol.stats.iterations for sol in run) for run in (called, traced)]
    assert beside[1] <= beside[0]                      # nothing is differenced


def test_bdf_traces_too():
    problem = gallery.get("robertson")
    options = {"rtol": 1e-6, "atol": problem.atol(1e-6)}

    def run():
        bdf = Bdf(problem.fun, 0.0, problem.y0, problem.yp0, options, t_bound=problem.t_span[1])
        while bdf.step() == Status.RUNNING:
            pass
        return bdf

    calls, bdf = count_calls([problem.fun], run)
    assert calls <= 20 + bdf.stats.checks < bdf.stats.nfev
    assert problem.digits(bdf.y) > 5


# --- the option ---------------------------------------------------------------------------------


def untraceable(t, y, yp):
    growth = float(f"{t:.3f}")
    return [yp[0] + growth * y[0]]


def line_of(fun, text):
    """Number of the line of a function that contains a text."""
    lines, first = inspect.getsourcelines(fun)
    return first + next(i for i, line in enumerate(lines) if text in line)


def test_always_refuses_and_names_the_line():
    where = f"{Path(__file__).name}, line {line_of(untraceable, 'growth =')}:"
    with pytest.raises(ValueError, match=re.escape(where)) as caught:
        solve_dae(untraceable, (0, 1), [1.0], trace="always")
    assert "trace='always'" in str(caught.value)
    with pytest.raises(ValueError, match=re.escape(where)):
        Bdf(untraceable, 0.0, [1.0], options={"trace": "always"}, t_bound=1.0)
    assert solve_dae(untraceable, (0, 1), [1.0]).success


def test_the_line_may_be_in_a_helper():
    def fun(t, y, yp):
        return untraceable(t, y, yp)

    where = f"line {line_of(untraceable, 'growth =')}:"
    with pytest.raises(ValueError, match=where):
        solve_dae(fun, (0, 1), [1.0], trace="always")


def test_always_refuses_c_functions():
    pointer = ctypes.POINTER(ctypes.c_double)

    @ctypes.CFUNCTYPE(None, ctypes.c_double, pointer, pointer, pointer)
    def fun(t, y, yp, out):
        out[0] = yp[0] + y[0]

    with pytest.raises(ValueError, match="C function"):
        solve_dae(fun, (0, 1), [1.0], trace="always")
    assert solve_dae(fun, (0, 1), [1.0]).success


@pytest.mark.parametrize("value", ["bad", "Auto", None, True, 1, ["auto"]])
def test_another_value_is_refused_by_name(value):
    with pytest.raises((ValueError, TypeError), match="trace must be one of"):
        solve_dae(decay, (0, 1), [1.0], trace=value)
    with pytest.raises((ValueError, TypeError), match="trace must be one of"):
        Bdf(decay, 0.0, [1.0], options={"trace": value}, t_bound=1.0)


def test_never_leaves_the_function_alone(traces):
    for options in ({"trace": "never"}, {"options": {"trace": "never"}},
                    {"options": Options(trace="never")}):
        sol = solve_dae(decay, (0, 1), [1.0], **options)
        assert sol.how.startswith("called")
    Bdf(decay, 0.0, [1.0], options={"trace": "never"}, t_bound=1.0)
    assert not traces
    solve_dae(decay, (0, 1), [1.0])
    assert traces


def test_the_result_says_what_was_done():
    assert solve_dae(decay, (0, 1), [1.0]).how.startswith("traced")
    assert "line" in solve_dae(untraceable, (0, 1), [1.0]).how


# --- the same function with other arguments -----------------------------------------------------


def spring(t, y, yp, mass, springs, options):
    """Mass between springs, with a friction that has two branches."""
    x, v = y
    friction = options["friction"] if v > 0.0 else 2.0 * options["friction"]
    return [yp[0] - v, mass * yp[1] + springs[0] * x + springs[1] * x**3 + friction * v]


def test_a_sweep_over_arguments_traces_once(traces):
    rng = np.random.default_rng(0)
    for _ in range(50):
        args = rng.uniform(0.5, 2.0), rng.uniform(0.5, 2.0, 2), {"friction": rng.uniform(0.0, 0.5)}
        assert_alike(lambda trace, args=args: end(spring, trace, 5.0, [1.0, 0.0], args=args))
    assert len(traces) == 1


def test_a_sweep_of_a_lambda_made_anew_traces_once(traces):
    def solve(k, trace):
        return end(lambda t, y, yp, k: [yp[0] + k * y[0]], trace, args=(k,))

    for k in np.linspace(0.5, 3.0, 10):
        assert solve(k, "auto") == pytest.approx(math.exp(-k), rel=1e-4)
    assert len(traces) == 1


def test_what_cannot_be_traced_is_tried_once(traces):
    for _ in range(5):
        solve_dae(untraceable, (0, 1), [1.0])
    assert len(traces) == 1


def test_other_starts_and_tolerances_trace_once(traces):
    for y0, t0, rtol in itertools.product((1.0, 2.0), (0.0, 1.0), (1e-4, 1e-6)):
        sol = solve_dae(decay, (t0, t0 + 1), [y0], rtol=rtol)
        assert sol.y[0, -1] == pytest.approx(y0 * math.exp(-1), rel=1e-3)
    assert len(traces) == 1


def loops(t, y, yp, p):
    """An argument that is needed as a number: traced for these arguments only."""
    rate = 0.0
    for _ in range(int(p["n"] if isinstance(p, dict) else p[0])):
        rate += p["k"] if isinstance(p, dict) else p[1]
    return [yp[0] + rate * y[0]]


@pytest.mark.parametrize(
    "pack",
    [lambda n, k: [n, k], lambda n, k: (n, k), lambda n, k: {"n": n, "k": k},
     lambda n, k: np.array([n, k]), lambda n, k: [np.float32(n), np.float32(k)],
     lambda n, k: [np.array(n), k]],
    ids=["list", "tuple", "dict", "array", "float32", "0-d array"],
)
def test_arguments_that_are_needed_as_numbers(pack):
    for n, k in ((2.0, 0.5), (2.0, 1.5), (3.0, 0.5)):
        for trace in ("never", "auto"):
            found = end(loops, trace, args=(pack(n, k),))
            assert found == pytest.approx(math.exp(-n * k), rel=1e-4)


def test_floats_that_are_needed_as_numbers():
    def fun(t, y, yp, n, k):
        return [yp[0] + sum(k for _ in range(int(n))) * y[0]]

    for n, k in ((2.0, 0.5), (2.0, 1.5), (3.0, 0.5)):
        for kind in (float, np.float64, np.float32):
            found = end(fun, "auto", args=(kind(n), kind(k)))
            assert found == pytest.approx(math.exp(-n * k), rel=1e-4)


@pytest.mark.parametrize(("first", "second"), [(0.0, 1.0), (1.0, 0.0)])
def test_an_argument_that_decides_about_the_index(first, second):
    """x' = -z, k z = 1 - x has index 2 for k = 0: x = 1, z = 0, and x = 1 - exp(t/k)/2 else."""
    def fun(t, y, yp, k):
        return [yp[0] + y[1], k * y[1] + y[0] - 1.0]

    for k in (first, second, first):
        y0 = [1.0, 0.0] if k == 0.0 else [0.5, 0.5]
        assert_alike(lambda trace, k=k, y0=y0: end(fun, trace, y0=y0, args=(k,)))


@pytest.mark.parametrize(("first", "second"), [(-1.0, 1.0), (1.0, -1.0)])
@pytest.mark.parametrize("where", ["args", "y0"])
def test_a_branch_that_decides_about_the_index(where, first, second):
    """x' = -z with x = cos t prescribed (index 2), or with z = x (index 1)."""
    def by_args(t, y, yp, mode):
        return [yp[0] + y[1], y[1] - y[0] if mode > 0 else y[0] - np.cos(t), yp[2]]

    def by_y0(t, y, yp):
        return by_args(t, y, yp, y[2])

    for mode in (first, second, first):
        y0 = [1.0, 1.0, 1.0] if mode > 0 else [1.0, 0.0, -1.0]
        for trace in ("never", "auto"):
            if where == "args":
                found = end(by_args, trace, y0=y0, args=(mode,))
            else:
                found = end(by_y0, trace, y0=y0)
            exact = [math.exp(-1)] * 2 if mode > 0 else [math.cos(1), math.sin(1)]
            np.testing.assert_allclose(found[:2], exact, rtol=1e-4)


# --- what is looked at, and how long it takes ---------------------------------------------------


class Touchy:
    """Answers no questions, as lazy proxies and pytest.mark do."""

    def __getattr__(self, name):
        raise Halt(name)


class Curious:
    """Notes every question that somebody asks."""

    def __init__(self):
        self.__dict__["asked"] = []

    def __getattr__(self, name):
        self.asked.append(name)
        raise AttributeError(name)


@pytest.mark.parametrize("thing", [Touchy(), Curious(), mock.Mock()],
                         ids=lambda thing: type(thing).__name__)
def test_objects_that_are_only_passed_by(thing):
    def fun(t, y, yp):
        return [yp[0] + (y[0] if thing is not None else 0.0)]

    assert_alike(lambda trace: end(fun, trace))
    if isinstance(thing, Curious):
        assert [name for name in thing.asked if not name.startswith("__")] == []


def test_deep_data():
    chain = None
    for _ in range(10_000):
        chain = [chain]

    def fun(t, y, yp):
        return [yp[0] + (y[0] if chain is not None else 0.0)]

    assert_alike(lambda trace: end(fun, trace))


MEASURED = [{"t": float(i), "y": [0.0]} for i in range(20_000)]


class WithMuchBehindIt:
    """One method is the residual, another reaches much else, as one that plots would."""

    def __init__(self):
        self.k = 1.0

    def fun(self, t, y, yp):
        return [yp[0] + self.k * y[0]]

    def report(self):
        return len(MEASURED)


def test_unrelated_methods_do_not_matter(traces):
    """Nothing is traced again, in the next run or after every step because of a callback."""
    thing = WithMuchBehindIt()
    for _ in range(2):
        sol = solve_dae(thing.fun, (0, 1), [1.0], callback=lambda t, y, yp: None, max_steps=3)
        assert sol.how.startswith("traced")
    assert len(traces) == 1


def test_attributes_are_no_global_variables(traces):
    """An attribute may be named as a global variable that changes."""
    thing = types.SimpleNamespace(RATE=1.0)

    def fun(t, y, yp):
        return [yp[0] + thing.RATE * y[0]]

    try:
        for value in (1.0, 2.0, 3.0):
            globals()["RATE"] = value
            assert end(fun, "auto") == pytest.approx(math.exp(-1), rel=1e-4)
    finally:
        globals()["RATE"] = 1.0
    assert len(traces) == 1


# --- threads ------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["machine", "auto"])
def test_two_threads_with_one_function(backend):
    """At the same time, tracing included, with arguments of their own."""
    def run(k):
        springs = np.array([1.0, k])
        return solve_dae(spring, (0, 20), [1.0, 0.0], args=(1.0, springs, {"friction": 0.1}),
                         options={"backend": backend}, rtol=1e-7)

    values = [0.0, 0.5] * 8
    alone = {k: run(k) for k in set(values)}
    for _ in range(3):
        shelf.empty()
        with ThreadPoolExecutor(2) as pool:
            together = list(pool.map(run, values))
        for k, sol in zip(values, together, strict=True):
            assert sol.how.startswith("traced")
            assert sol.nfev == alone[k].nfev
            np.testing.assert_array_equal(sol.t, alone[k].t)
            np.testing.assert_array_equal(sol.y, alone[k].y)


def test_threads_start_together():
    """Many threads meet a function that nobody has traced yet."""
    def fun(t, y, yp):
        return [yp[0] - y[1], yp[1] + np.sin(y[0]) + 0.1 * y[1] * abs(y[1])]

    expected = solve_dae(fun, (0, 10), [1.0, 0.0])
    shelf.empty()
    barrier, found = threading.Barrier(8), []

    def run():
        barrier.wait()
        found.append(solve_dae(fun, (0, 10), [1.0, 0.0]))

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    for sol in found:
        np.testing.assert_array_equal(sol.y, expected.y)


def test_one_problem_in_two_threads_with_events_and_constraints():
    def event(t, y, yp):
        return y[0]

    problem = Problem(lambda t, y, yp: [yp[0] + y[1], yp[1] - y[0]],
                      constraints=lambda t, y: y[0] ** 2 + y[1] ** 2 - 1.0)

    def run(_):
        return solve_dae(problem, (0, 30), [1.0, 0.0], events=event)

    alone = run(0)
    with ThreadPoolExecutor(2) as pool:
        together = list(pool.map(run, range(6)))
    for sol in together:
        np.testing.assert_array_equal(sol.y, alone.y)
        np.testing.assert_array_equal(sol.t_events[0], alone.t_events[0])


def test_one_that_cannot_be_compared_does_not_spoil_others(traces):
    """Problems of one kind share a wrapper."""
    much = [[float(i)] for i in range(300_000)]

    def semi_explicit(rate):
        problem = Problem.semi_explicit(lambda t, x, z: -rate[0][0] * z, lambda t, x, z: x - z)
        return solve_dae(problem, (0, 1), [1.0, 1.0]).how

    assert semi_explicit(much).startswith("called")
    assert semi_explicit([[1.0]]).startswith("traced")
