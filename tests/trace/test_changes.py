"""What a function reads may change, between two runs and during one: the next call sees it."""

import collections
import contextvars
import ctypes
import functools
import math
import operator
import sys
import types
import weakref

import numpy as np
import pytest
from support.traced_runs import end

from tether import Bdf, Status

pytestmark = pytest.mark.usefixtures("nothing_is_known")

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
