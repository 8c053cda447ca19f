"""Functions that are more than expressions: exceptions, kinds of results, effects."""

import array
import collections
import contextvars
import ctypes
import itertools
import math
import queue
import re
import types
import warnings
import weakref
from typing import ClassVar
from unittest import mock

import numpy as np
import pytest
from support.traced_runs import Halt, assert_alike, end

from tether import solve_dae

pytestmark = pytest.mark.usefixtures("nothing_is_known")


class Plain:
    k = 1.0


# --- functions that are more than expressions ---------------------------------------------------


class Mishap(Exception):  # noqa: N818
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
    else:                                      # one number is enough, and may determine nothing
        assert late == 0.0
        assert sol.success or "determines nothing" in sol.message


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


def test_what_is_warned_of_is_warned_of():
    def fun(t, y, yp):
        warnings.warn("mine", stacklevel=1)
        return [yp[0] + y[0]]

    for trace in ("never", "auto"):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            sol = solve_dae(fun, (0, 1), [1.0], trace=trace)
        assert len(caught) == sol.nfev
