"""Tracing is invisible: what solve_dae does by default is what it does with calls to the function.

Only speed, Jacobians and the last digits may differ. Every test here compares the two.
"""

import array
import collections
import contextvars
import ctypes
import functools
import inspect
import itertools
import math
import operator
import queue
import re
import sys
import threading
import types
import warnings
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar
from unittest import mock

import numpy as np
import pytest
from support.helpers import count_calls, decay

from tether import Bdf, Options, Problem, Status, gallery, solve_dae
from tether.plan.shelf import shelf


@pytest.fixture(autouse=True)
def nothing_is_known(monkeypatch):
    """No test finds what another has left in the cache."""
    shelf.empty()


def end(fun, trace, t_end=1.0, y0=(1.0,), **options):
    """Solution at the end of a run that must succeed."""
    sol = solve_dae(fun, (0, t_end), y0, trace=trace, **options)
    assert sol.success, sol.message
    return sol.y[:, -1]


def assert_alike(run, rtol=1e-4):
    """Assert that run(trace) gives the same solution with tracing and without."""
    called = run("never")
    try:
        traced = run("auto")
    except BaseException as error:     # pytest itself would stop at some of them
        raise AssertionError(f"only the traced run raises {error!r}") from error
    np.testing.assert_allclose(traced, called, rtol=rtol, atol=1e-6)


# --- the gallery --------------------------------------------------------------------------------

LOW_INDEX = [name for name in gallery.names() if gallery.get(name).index <= 1]
# Share of the steps that may differ, beside a few per run. Those of Andrews' mechanism follow the
# last digits: other roundings of the same equations make a quarter more or less at one tolerance.
MORE_STEPS = {"andrews-i1": 0.15}
# Digits at a loose tolerance: those of the transistor amplifier differ by more than one.
SCATTER = {"transamp": 1.0}


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
    assert abs(steps[1] - steps[0]) <= 5 * len(rtols) + MORE_STEPS.get(name, 0.03) * steps[0]
    assert sum(sol.nfev for sol in traced) < 1.02 * sum(sol.nfev for sol in called)


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
    where = f"test_tracing_by_default.py, line {line_of(untraceable, 'growth =')}:"
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


# --- what the function reads has changed --------------------------------------------------------

RATE = 1.0
TABLE = {"k": 1.0}
SETTINGS = types.ModuleType("settings")
SETTINGS.k = 1.0


def helper(x):
    return 1.0 * x


def faster_helper(x):
    return 3.0 * x


class Plain:
    k = 1.0


class WithClassAttribute:
    k = 1.0

    def rate(self):
        return self.k

    @property
    def speed(self):
        return 1.0


class ReadsTable:
    def __getitem__(self, key):
        return TABLE[key]


class SlotsOnly:
    __slots__ = ("k",)


class ListWithAttribute(list):
    pass


def by_closure():
    k = 1.0

    def change():
        nonlocal k
        k = 3.0

    return lambda t, y, yp: [yp[0] + k * y[0]], change


def by_global():
    def fun(t, y, yp):
        return [yp[0] + RATE * y[0]]

    return fun, lambda: globals().update(RATE=3.0)


def by_global_of_a_helper():
    def inner(x):
        return RATE * x

    return lambda t, y, yp: [yp[0] + inner(y[0])], lambda: globals().update(RATE=3.0)


def by_another_helper():
    return (lambda t, y, yp: [yp[0] + helper(y[0])],
            lambda: globals().update(helper=faster_helper))


def by_default():
    def fun(t, y, yp, k=1.0):
        return [yp[0] + k * y[0]]

    return fun, lambda: setattr(fun, "__defaults__", (3.0,))


def by_keyword_default():
    def fun(t, y, yp, *, k=1.0):
        return [yp[0] + k * y[0]]

    return fun, lambda: fun.__kwdefaults__.update(k=3.0)


def by_function_attribute():
    def fun(t, y, yp):
        return [yp[0] + fun.k * y[0]]

    fun.k = 1.0
    return fun, lambda: setattr(fun, "k", 3.0)


def by_code():
    def fun(t, y, yp):
        return [yp[0] + 1.0 * y[0]]

    def other(t, y, yp):
        return [yp[0] + 3.0 * y[0]]

    return fun, lambda: setattr(fun, "__code__", other.__code__)


def by_module():
    return lambda t, y, yp: [yp[0] + SETTINGS.k * y[0]], lambda: setattr(SETTINGS, "k", 3.0)


def by_module_and_getattr():
    return (lambda t, y, yp: [yp[0] + getattr(SETTINGS, "k") * y[0]],  # noqa: B009
            lambda: setattr(SETTINGS, "k", 3.0))


def by_module_and_attrgetter():
    ask = operator.attrgetter("k")

    def fun(t, y, yp):
        return [yp[0] + ask(SETTINGS) * y[0]]

    return fun, lambda: setattr(SETTINGS, "k", 3.0)


def by_module_passed_on():
    def read(module):
        return module.k

    return lambda t, y, yp: [yp[0] + read(SETTINGS) * y[0]], lambda: setattr(SETTINGS, "k", 3.0)


def by_module_imported_inside():
    sys.modules["settings_of_a_test"] = SETTINGS

    def fun(t, y, yp):
        import settings_of_a_test

        return [yp[0] + settings_of_a_test.k * y[0]]

    return fun, lambda: setattr(SETTINGS, "k", 3.0)


def by_name_imported_inside():
    sys.modules["settings_of_a_test"] = SETTINGS

    def fun(t, y, yp):
        from settings_of_a_test import k

        return [yp[0] + k * y[0]]

    return fun, lambda: setattr(SETTINGS, "k", 3.0)


def by_method():
    thing = WithClassAttribute()

    def change():
        WithClassAttribute.rate = lambda self: 3.0

    return lambda t, y, yp: [yp[0] + thing.rate() * y[0]], change


def by_method_and_getattr():
    thing = WithClassAttribute()
    name = "".join(["ra", "te"])

    def change():
        WithClassAttribute.rate = lambda self: 3.0

    return lambda t, y, yp: [yp[0] + getattr(thing, name)() * y[0]], change


def by_method_of_a_helper():
    thing = WithClassAttribute()

    def ask(anything):
        return anything.rate()

    def change():
        WithClassAttribute.rate = lambda self: 3.0

    return lambda t, y, yp: [yp[0] + ask(thing) * y[0]], change


def by_property():
    thing = WithClassAttribute()

    def change():
        WithClassAttribute.speed = property(lambda self: 3.0)

    return lambda t, y, yp: [yp[0] + thing.speed * y[0]], change


def by_dictionary():
    table = {"k": 1.0}
    return lambda t, y, yp: [yp[0] + table["k"] * y[0]], lambda: table.update(k=3.0)


def by_list():
    table = [1.0]
    return lambda t, y, yp: [yp[0] + table[0] * y[0]], lambda: table.__setitem__(0, 3.0)


def by_array():
    table = np.ones(1)
    return lambda t, y, yp: yp + table * y, lambda: table.fill(3.0)


def by_large_array():
    table = np.ones(10_000)
    return lambda t, y, yp: [yp[0] + table[-1] * y[0]], lambda: table[-1:].fill(3.0)


def by_array_in_an_object():
    thing = types.SimpleNamespace(parts=[{"k": np.ones(1)}])
    return (lambda t, y, yp: yp + thing.parts[0]["k"] * y,
            lambda: thing.parts[0]["k"].fill(3.0))


def by_instance():
    thing = Plain()
    thing.k = 1.0
    return lambda t, y, yp: [yp[0] + thing.k * y[0]], lambda: setattr(thing, "k", 3.0)


def by_class():
    return lambda t, y, yp: [yp[0] + Plain.k * y[0]], lambda: setattr(Plain, "k", 3.0)


def by_class_of_an_instance():
    thing = Plain()
    return lambda t, y, yp: [yp[0] + thing.k * y[0]], lambda: setattr(Plain, "k", 3.0)


def by_class_read_in_a_method():
    thing = WithClassAttribute()
    return (lambda t, y, yp: [yp[0] + thing.rate() * y[0]],
            lambda: setattr(WithClassAttribute, "k", 3.0))


def by_global_read_in_a_method():
    thing = ReadsTable()
    return lambda t, y, yp: [yp[0] + thing["k"] * y[0]], lambda: TABLE.update(k=3.0)


def by_slot():
    thing = SlotsOnly()
    thing.k = 1.0
    return lambda t, y, yp: [yp[0] + thing.k * y[0]], lambda: setattr(thing, "k", 3.0)


def by_attribute_of_a_list():
    thing = ListWithAttribute()
    thing.k = 1.0
    return lambda t, y, yp: [yp[0] + thing.k * y[0]], lambda: setattr(thing, "k", 3.0)


def by_partial():
    fun = functools.partial(lambda k, t, y, yp: [yp[0] + k[0] * y[0]], [1.0])
    return fun, lambda: fun.args[0].__setitem__(0, 3.0)


def by_bound_method_of_a_dictionary():
    table = {"k": 1.0}
    get = table.get
    return lambda t, y, yp: [yp[0] + get("k") * y[0]], lambda: table.update(k=3.0)


def by_bound_method_of_an_array():
    table = np.ones(1)
    item = table.item
    return lambda t, y, yp: [yp[0] + item() * y[0]], lambda: table.fill(3.0)


def by_view_of_a_dictionary():
    table = {"k": 1.0}
    view = table.values()
    return lambda t, y, yp: [yp[0] + max(view) * y[0]], lambda: table.update(k=3.0)


def by_mapping_proxy():
    table = {"k": 1.0}
    proxy = types.MappingProxyType(table)
    return lambda t, y, yp: [yp[0] + proxy["k"] * y[0]], lambda: table.update(k=3.0)


def by_memory_view():
    table = np.ones(1)
    view = memoryview(table)
    return lambda t, y, yp: [yp[0] + view[0] * y[0]], lambda: table.fill(3.0)


def by_ctypes():
    number = ctypes.c_double(1.0)
    return lambda t, y, yp: [yp[0] + number.value * y[0]], lambda: setattr(number, "value", 3.0)


def by_weak_reference():
    thing = Plain()
    reference = weakref.ref(thing)
    return (lambda t, y, yp: [yp[0] + reference().k * y[0]],
            lambda: setattr(thing, "k", 3.0))


def by_context_variable():
    variable = contextvars.ContextVar("k", default=1.0)
    return lambda t, y, yp: [yp[0] + variable.get() * y[0]], lambda: variable.set(3.0)


def by_default_dictionary():
    table = collections.defaultdict(lambda: 1.0)
    return lambda t, y, yp: [yp[0] + table["k"] * y[0]], lambda: table.update(k=3.0)


CHANGES = [
    by_closure, by_global, by_global_of_a_helper, by_another_helper, by_default,
    by_keyword_default, by_function_attribute, by_code, by_module, by_module_and_getattr,
    by_module_and_attrgetter, by_module_passed_on, by_module_imported_inside,
    by_name_imported_inside, by_method, by_method_and_getattr, by_method_of_a_helper, by_property,
    by_dictionary, by_list, by_array, by_large_array, by_array_in_an_object, by_instance, by_class,
    by_class_of_an_instance, by_class_read_in_a_method, by_global_read_in_a_method, by_slot,
    by_attribute_of_a_list, by_partial, by_bound_method_of_a_dictionary,
    by_bound_method_of_an_array, by_view_of_a_dictionary, by_mapping_proxy, by_memory_view,
    by_ctypes, by_weak_reference, by_context_variable, by_default_dictionary,
]


@pytest.fixture
def originals():
    """Put everything back that a change may reach."""
    saved = {name: globals()[name] for name in ("RATE", "helper")}
    rate, speed = WithClassAttribute.rate, WithClassAttribute.speed
    yield
    globals().update(saved)
    WithClassAttribute.rate, WithClassAttribute.speed = rate, speed
    sys.modules.pop("settings_of_a_test", None)
    TABLE["k"] = SETTINGS.k = Plain.k = WithClassAttribute.k = 1.0


@pytest.mark.parametrize("make", CHANGES, ids=lambda make: make.__name__.removeprefix("by_"))
def test_changes_between_runs_are_noticed(make, originals):
    fun, change = make()
    assert end(fun, "auto") == pytest.approx(math.exp(-1), rel=1e-4)
    change()
    assert end(fun, "never") == pytest.approx(math.exp(-3), rel=1e-4)
    assert end(fun, "auto") == pytest.approx(math.exp(-3), rel=1e-4)


# --- what the function reads changes during the run ---------------------------------------------


def switched_by(who, change):
    """Arguments of solve_dae that let an event or the callback change something at t = 1/2."""
    if who == "callback":
        def callback(t, y, yp):
            if t >= 0.5:
                change()

        return {"callback": callback, "t_eval": [1.0], "max_step": 1 / 256}

    def event(t, y, yp, *args):
        return t - 0.5

    def apply(t, y, yp, *args):
        change()
        return y

    event.apply = apply
    return {"events": event}


@pytest.mark.parametrize("make", [by_closure, by_global, by_dictionary, by_array, by_instance,
                                  by_class, by_module], ids=lambda make: make.__name__)
@pytest.mark.parametrize("who", ["event", "callback"])
def test_changes_during_a_run_are_noticed(make, who, originals):
    fun, change = make()
    found = end(fun, "auto", **switched_by(who, change))
    assert found == pytest.approx(math.exp(-2), rel=1e-4 if who == "event" else 2e-2)


@pytest.mark.parametrize("kind", ["array", "list", "dict", "object"])
@pytest.mark.parametrize("who", ["event", "callback"])
@pytest.mark.parametrize("trace", ["never", "auto"])
def test_changes_of_arguments_during_a_run_are_noticed(who, kind, trace):
    """Whoever changes what was passed as args."""
    kinds = {"array": np.ones(1), "list": [1.0], "dict": {0: 1.0},
             "object": types.SimpleNamespace(k=1.0)}
    p = kinds[kind]

    def fun(t, y, yp, p):
        return [yp[0] + (p.k if kind == "object" else p[0]) * y[0]]

    def change():
        if kind == "object":
            p.k = 3.0
        else:
            p[0] = 3.0

    found = end(fun, trace, args=(p,), **switched_by(who, change))
    assert found == pytest.approx(math.exp(-2), rel=1e-4 if who == "event" else 2e-2)


@pytest.mark.parametrize("trace", ["never", "auto"])
def test_changes_between_the_steps_of_bdf_are_noticed(trace):
    table = {"k": 1.0}
    bdf = Bdf(lambda t, y, yp: [yp[0] + table["k"] * y[0]], 0.0, [1.0],
              options={"trace": trace, "max_step": 1 / 256}, t_bound=1.0)
    while bdf.step() == Status.RUNNING:
        if bdf.t >= 0.5:
            table["k"] = 3.0
    assert bdf.y[0] == pytest.approx(math.exp(-2), rel=2e-2)


@pytest.mark.parametrize("by_args", [False, True], ids=["closure", "args"])
@pytest.mark.parametrize("trace", ["never", "auto"])
def test_constraints_notice_changes_too(by_args, trace):
    """A circle whose radius is doubled on the way."""
    radius = np.ones(1)

    def double(t, y, yp, *args):
        radius[0] = 2.0
        return 2.0 * y

    def half(t, y, yp, *args):
        return t - 0.5

    half.apply = double
    if by_args:
        def circle(t, y, r):
            return y[0] ** 2 + y[1] ** 2 - r[0] ** 2
    else:
        def circle(t, y):
            return y[0] ** 2 + y[1] ** 2 - radius[0] ** 2

    found = end(lambda t, y, yp, *args: [yp[0] + y[1], yp[1] - y[0]], trace, y0=[1.0, 0.0],
                constraints=circle, events=half, args=(radius,) if by_args else ())
    np.testing.assert_allclose(found, [2 * math.cos(1), 2 * math.sin(1)], rtol=1e-4)


@pytest.mark.parametrize("trace", ["never", "auto"])
def test_hidden_constraints_notice_changes_too(trace):
    """The prescribed motion of an index-2 system becomes another one."""
    size = [1.0]

    def half(t, y, yp):
        return t - 0.5

    def double(t, y, yp):
        size[0] = 2.0
        return 2.0 * y

    half.apply = double
    found = end(lambda t, y, yp: [yp[0] + y[1], y[0] - size[0] * np.cos(t)], trace, y0=[1.0, 0.0],
                events=half)
    np.testing.assert_allclose(found, [2 * math.cos(1), 2 * math.sin(1)], rtol=1e-4)


@pytest.mark.parametrize("before", [1, 2])
@pytest.mark.parametrize("trace", ["never", "auto"])
def test_an_event_may_change_the_index(before, trace):
    """x' = -z with x = cos t prescribed, or with z = x."""
    index = [before]

    def half(t, y, yp):
        return t - 0.5

    def other(t, y, yp):
        index[0] = 3 - before
        return y if before == 2 else [np.cos(t), np.sin(t)]

    half.apply = other

    def fun(t, y, yp):
        return [yp[0] + y[1], y[0] - np.cos(t) if index[0] == 2 else y[1] - y[0]]

    y0 = [1.0, 0.0] if before == 2 else [1.0, 1.0]
    found = end(fun, trace, y0=y0, events=half)
    exact = [math.cos(0.5) * math.exp(-0.5)] * 2 if before == 2 else [math.cos(1), math.sin(1)]
    np.testing.assert_allclose(found, exact, rtol=1e-4)


@pytest.mark.parametrize("trace", ["never", "auto"])
@pytest.mark.parametrize(
    "second",
    [lambda t, y: y[0] - np.cos(t) if t < 0.5 else y[1] - np.sin(t),
     lambda t, y: np.where(t < 0.5, y[0] - np.cos(t), y[1] - np.sin(t)),
     lambda t, y: max(t - 0.5, 0.0) * (y[1] - np.sin(t)) + y[0] - np.cos(t)],
    ids=["if", "where", "coefficient"],
)
def test_time_may_change_the_index(second, trace):
    """Index 2 until t = 1/2, then 1."""
    found = end(lambda t, y, yp: [yp[0] + y[1], second(t, y)], trace, y0=[1.0, 0.0])
    np.testing.assert_allclose(found, [math.cos(1), math.sin(1)], rtol=1e-4)


# --- functions that are more than expressions ---------------------------------------------------


class Mishap(Exception):  # noqa: N818
    pass


class Halt(BaseException):
    pass


@pytest.mark.parametrize("error", [Mishap("mine"), SystemExit(3), Halt("mine"),
                                   KeyboardInterrupt()], ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("trace", ["never", "auto"])
def test_exceptions_for_some_y(error, trace):
    def fun(t, y, yp):
        if y[0] < 0.5:
            raise error
        return [yp[0] + y[0]]

    with pytest.raises(type(error)) as caught:
        solve_dae(fun, (0, 2), [1.0], trace=trace)
    assert caught.value is error
    if isinstance(error, KeyboardInterrupt):
        assert error.result.y[0, -1] == pytest.approx(0.5, abs=0.2)


@pytest.mark.parametrize("error", [Mishap, SystemExit, Halt, KeyboardInterrupt],
                         ids=lambda error: error.__name__)
@pytest.mark.parametrize("where", ["fun", "constraints"])
def test_exceptions_that_the_run_never_meets(error, where):
    """No branch is to be followed that the run does not take."""
    def guard(t):
        if t > 100.0:
            raise error

    def fun(t, y, yp):
        if where == "fun":
            guard(t)
        return [yp[0] + y[1], yp[1] - y[0]]

    def circle(t, y):
        guard(t)
        return y[0] ** 2 + y[1] ** 2 - 1.0

    more = {"constraints": circle} if where == "constraints" else {}
    assert_alike(lambda trace: end(fun, trace, y0=[1.0, 0.0], **more))


def test_exceptions_beside_the_solution_are_not_met_either():
    """Nobody looks at values that the run does not have, and complains."""
    def fun(t, y, yp):
        if not 0.2 < y[0] < 1.01:
            raise Halt
        return [yp[0] + y[0]]

    assert_alike(lambda trace: end(fun, trace))


@pytest.mark.parametrize(
    ("attempt", "error"),
    [(lambda x: math.sqrt(x), ValueError), (lambda x: math.log(x), ValueError),
     (lambda x: math.acos(1.0 - x), ValueError), (lambda x: math.exp(-1e4 * x), OverflowError)],
    ids=["sqrt", "log", "acos", "exp"],
)
def test_exceptions_that_the_function_handles(attempt, error):
    def fun(t, y, yp):
        try:
            value = attempt(0.5 - t)
        except error:
            value = 0.5
        return [yp[0] + min(value, 1.0)]

    assert_alike(lambda trace: end(fun, trace, max_step=1e-3), rtol=1e-3)


def test_division_by_zero_that_the_function_handles():
    def fun(t, y, yp):
        try:
            value = 1.0 / max(0.5 - t, 0.0)
        except ZeroDivisionError:
            value = 2.0
        return [yp[0] + min(value, 2.0)]

    assert_alike(lambda trace: end(fun, trace, max_step=1e-3), rtol=1e-3)


@pytest.mark.parametrize(
    "late",
    [[], [0.0, 0.0], None, 0.0, ["a"], [None], [1j], [[0.0]], {0: 0.0}],
    ids=repr,
)
@pytest.mark.parametrize("trace", ["never", "auto"])
def test_results_that_change_their_kind(late, trace):
    def fun(t, y, yp):
        return [yp[0] + y[0]] if t < 0.5 else late

    try:
        sol = solve_dae(fun, (0, 1), [1.0], trace=trace)
    except (TypeError, ValueError) as error:
        assert re.search(r"\bfun\b", str(error))    # noqa: PT017
    else:
        assert late == [[0.0]]
        assert sol.success


def test_errors_have_the_same_words():
    def wrong_length(t, y, yp):
        return [yp[0] + y[0]] if t < 0.5 else []

    def not_a_name(t, y, yp):
        return [yp[0] + no_such_name]  # noqa: F821

    def too_few(t, y, yp):
        return [yp[0] + y[3]]

    def endless(t, y, yp):
        return endless(t, y, yp)

    for fun in (wrong_length, not_a_name, too_few, endless):
        words = []
        for trace in ("never", "auto"):
            with pytest.raises(Exception) as caught:  # noqa: PT011
                solve_dae(fun, (0, 1), [1.0], trace=trace)
            words.append((caught.type, str(caught.value)))
        assert words[0] == words[1]


CALLS = 0


def counting(t, y, yp):
    global CALLS
    CALLS += 1
    return [yp[0] + y[0] + 1e-12 * (CALLS % 2)]


def test_a_global_counter_counts():
    global CALLS
    counts = []
    for trace in ("never", "auto"):
        CALLS = 0
        sol = solve_dae(counting, (0, 1), [1.0], trace=trace)
        assert sol.nfev == CALLS
        counts.append(CALLS)
    assert counts[0] == counts[1] > 20


def read_by_open(path):
    with open(path) as file:
        return float(file.read())


@pytest.mark.parametrize(
    "read",
    [read_by_open, lambda path: float(path.read_text()), lambda path: np.loadtxt(path),
     lambda path: np.genfromtxt(path), lambda path: np.fromfile(path, sep=" ")[0]],
    ids=["open", "pathlib", "loadtxt", "genfromtxt", "fromfile"],
)
def test_a_file_is_read_again(read, tmp_path):
    path = tmp_path / "rate"

    def fun(t, y, yp):
        return [yp[0] + read(path) * y[0]]

    for rate in (1.0, 3.0):
        path.write_text(str(rate))
        for trace in ("never", "auto"):
            assert end(fun, trace) == pytest.approx(math.exp(-rate), rel=1e-4)


def loop_on_t(t, y, yp):
    count = 0
    while count < 4 * t:
        count += 1
    return [yp[0] - count]


def loop_on_y(t, y, yp):
    """Newton's iteration for the root of 2 + y."""
    root = 1.0
    while abs(root * root - 2.0 - y[0]) > 1e-12:
        root = 0.5 * (root + (2.0 + y[0]) / root)
    return [yp[0] - root]


def loop_of_so_many(t, y, yp):
    return [yp[0] - sum(1 for _ in range(int(4 * t)))]


def table_by_time(t, y, yp):
    return [yp[0] - (1.0, 3.0, -1.0, 2.0, 0.0)[int(4 * t)]]


def asks_for_the_type(t, y, yp):
    return [yp[0] + (1.0 if isinstance(t, float) and type(y) is np.ndarray else 3.0) * y[0]]


def asks_for_the_dtype(t, y, yp):
    return [yp[0] + (1.0 if y.dtype == float and y.flags.c_contiguous else 3.0) * y[0]]


def rounds(t, y, yp):
    return [yp[0] + round(4 * t) + round(float(t), 1)]


def looks_up(t, y, yp):
    return [yp[0] + (t in (0.0, 0.5)) + (t in {1.0}) + y[0]]


def window(t, y, yp):
    """Zero at the start and around it."""
    return [yp[0] - (30.0 if 0.70 < t < 0.72 else 0.0)]


@pytest.mark.parametrize(
    "fun",
    [loop_on_t, loop_on_y, loop_of_so_many, table_by_time, asks_for_the_type, asks_for_the_dtype,
     rounds, looks_up, window],
    ids=lambda fun: fun.__name__,
)
def test_functions_that_depend_on_values(fun):
    assert_alike(lambda trace: end(fun, trace, max_step=1 / 512), rtol=1e-3)


# --- effects ------------------------------------------------------------------------------------


def into_list():
    log = []
    return lambda: log.append(1), lambda: len(log)


def into_list_by_bound_method():
    log = []
    append = log.append
    return lambda: append(1), lambda: len(log)


def into_deque():
    log = collections.deque()
    return lambda: log.append(1), lambda: len(log)


def into_dictionary():
    count = collections.Counter()
    return lambda: count.update("a"), lambda: count["a"]


def into_set():
    log = set()
    return lambda: log.add(len(log)), lambda: len(log)


def into_array():
    count = np.zeros(1)
    return lambda: count.__iadd__(1), lambda: count[0]


def into_array_by_ufunc():
    count = np.zeros(1)
    return lambda: np.add.at(count, 0, 1), lambda: count[0]


def into_memory_view():
    count = np.zeros(1)
    view = memoryview(count)
    return lambda: view.__setitem__(0, view[0] + 1), lambda: count[0]


def into_bytearray():
    log = bytearray()
    return lambda: log.append(1), lambda: len(log)


def into_array_of_the_standard_library():
    log = array.array("d")
    return lambda: log.append(1), lambda: len(log)


def into_ctypes():
    count = ctypes.c_long(0)
    return lambda: setattr(count, "value", count.value + 1), lambda: count.value


def into_ctypes_by_statement():
    count = ctypes.c_long(0)

    def effect():
        count.value += 1

    return effect, lambda: count.value


def into_attribute():
    thing = types.SimpleNamespace(count=0)

    def effect():
        thing.count += 1

    return effect, lambda: thing.count


def into_class():
    class Thing:
        count = 0

    def effect():
        Thing.count += 1

    return effect, lambda: Thing.count


def into_list_of_a_class():
    class Thing:
        log: ClassVar[list] = []

        def note(self):
            self.log.append(1)

    thing = Thing()
    return lambda: thing.note(), lambda: len(Thing.log)


def into_referent():
    thing = Plain()
    thing.count = 0
    reference = weakref.ref(thing)

    def effect():
        reference().count += 1

    return effect, lambda: thing.count


def into_closure():
    count = 0

    def effect():
        nonlocal count
        count += 1

    return effect, lambda: count


def into_queue():
    log = queue.SimpleQueue()
    return lambda: log.put(1), log.qsize


def into_context():
    count = contextvars.ContextVar("count", default=0)
    return lambda: count.set(count.get() + 1), count.get


def into_iterator():
    numbers = itertools.count()
    return lambda: next(numbers), lambda: next(numbers)


def into_generator():
    numbers = (i for i in range(10**6))
    return lambda: next(numbers), lambda: next(numbers)


def into_mock():
    log = mock.Mock()
    return lambda: log(), lambda: log.call_count


EFFECTS = [
    into_list, into_list_by_bound_method, into_deque, into_dictionary, into_set, into_array,
    into_array_by_ufunc, into_memory_view, into_bytearray, into_array_of_the_standard_library,
    into_ctypes, into_ctypes_by_statement, into_attribute, into_class, into_list_of_a_class,
    into_referent, into_closure, into_queue, into_context, into_iterator, into_generator, into_mock,
]


@pytest.mark.parametrize("make", EFFECTS, ids=lambda make: make.__name__)
def test_effects_happen_at_every_call(make):
    counts = []
    for trace in ("never", "auto"):
        effect, count = make()

        def fun(t, y, yp, effect=effect):
            effect()
            return [yp[0] + y[0]]

        sol = solve_dae(fun, (0, 1), [1.0], trace=trace)
        assert count() == sol.nfev
        counts.append(sol.nfev)
    assert counts[0] == counts[1]


def test_what_is_printed_is_printed(capsys):
    def fun(t, y, yp):
        print(t)
        return [yp[0] + y[0]]

    for trace in ("never", "auto"):
        sol = solve_dae(fun, (0, 1), [1.0], trace=trace)
        assert len(capsys.readouterr().out.splitlines()) == sol.nfev


def test_what_is_warned_of_is_warned_of():
    def fun(t, y, yp):
        warnings.warn("mine", stacklevel=1)
        return [yp[0] + y[0]]

    for trace in ("never", "auto"):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            sol = solve_dae(fun, (0, 1), [1.0], trace=trace)
        assert len(caught) == sol.nfev


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
    much = [[float(i)] for i in range(20_000)]

    def semi_explicit(rate):
        problem = Problem.semi_explicit(lambda t, x, z: -rate[0][0] * z, lambda t, x, z: x - z)
        return solve_dae(problem, (0, 1), [1.0, 1.0]).how

    assert semi_explicit(much).startswith("called")
    assert semi_explicit([[1.0]]).startswith("traced")
