"""Places in functions, modules, references and iterators where a function can keep state.

Each maker returns what switches something on, and what tells whether it is on.
"""

import contextvars
import inspect
import itertools
import math
import operator
import os
import sys
import threading
import time
import types
import weakref

import numpy as np

from support.places import Places

STATES = Places()
state = STATES.add


FLAG = False


@state
def global_variable():
    def on():
        global FLAG
        FLAG = True

    globals()["FLAG"] = False
    return on, lambda: FLAG


@state
def global_by_globals():
    def on():
        globals()["FLAG"] = True

    globals()["FLAG"] = False
    return on, lambda: FLAG


@state
def nonlocal_variable():
    flag = False

    def on():
        nonlocal flag
        flag = True

    return on, lambda: flag


@state
def unassigned_nonlocal():
    def on():
        nonlocal flag
        flag = 1

    def is_on():
        return "flag" in [name for name, cell in zip(is_on.__code__.co_freevars, is_on.__closure__,
                                                    strict=True) if cell != types.CellType()]

    if time.time() < 0:
        flag = 0
    return on, lambda: flag_of(on)


def flag_of(on):
    (cell,) = on.__closure__
    return cell != types.CellType()


@state
def default_list():
    def on(log=[]):  # noqa: B006
        log.append(1)

    return on, lambda: bool(on.__defaults__[0])


@state
def default_list_of_one():
    def memory(value=None, log=[]):  # noqa: B006
        if value is not None:
            log.append(value)
        return bool(log)

    memory.__defaults__[1].clear()
    return lambda: memory(1), lambda: memory()


@state
def keyword_default():
    def memory(value=None, *, log={}):  # noqa: B006
        if value is not None:
            log[1] = value
        return bool(log)

    return lambda: memory(1), lambda: memory()


@state
def default_replaced():
    def is_on(flag=False):
        return flag

    def on():
        is_on.__defaults__ = (True,)

    return on, lambda: is_on()


@state
def keyword_default_replaced():
    def is_on(*, flag=False):
        return flag

    def on():
        is_on.__kwdefaults__ = {"flag": True}

    return on, lambda: is_on()


@state
def code_replaced():
    def is_on():
        return False

    def other():
        return True

    def on():
        is_on.__code__ = other.__code__

    return on, lambda: is_on()


@state
def function_attribute():
    def on():
        on.flag = True

    on.flag = False
    return on, lambda: on.flag


@state
def new_function_attribute():
    def on():
        on.flag = True

    return on, lambda: hasattr(on, "flag")


@state
def function_dictionary():
    def on():
        on.__dict__["flag"] = True

    return on, lambda: "flag" in on.__dict__


@state
def simple_namespace():
    thing = types.SimpleNamespace(flag=False)

    def on():
        thing.flag = True

    return on, lambda: thing.flag


@state
def module_attribute():
    module = types.ModuleType("settings_of_state")
    module.flag = False

    def on():
        module.flag = True

    return on, lambda: module.flag


@state
def module_dictionary():
    module = types.ModuleType("settings_of_state")
    module.flag = False

    def on():
        module.__dict__["flag"] = True

    return on, lambda: module.flag


@state
def module_deleted():
    module = types.ModuleType("settings_of_state")
    module.flag = False

    def on():
        del module.flag

    return on, lambda: not hasattr(module, "flag")


@state
def attribute_of_numpy():
    def on():
        np.flag_of_a_test = True

    if hasattr(np, "flag_of_a_test"):
        del np.flag_of_a_test
    return on, lambda: hasattr(np, "flag_of_a_test")


@state
def attribute_of_math():
    def on():
        math.flag_of_a_test = True

    if hasattr(math, "flag_of_a_test"):
        del math.flag_of_a_test
    return on, lambda: hasattr(math, "flag_of_a_test")


@state
def system_modules():
    sys.modules.pop("flag_of_a_test", None)

    def on():
        sys.modules["flag_of_a_test"] = math

    return on, lambda: "flag_of_a_test" in sys.modules


@state
def environment():
    os.environ.pop("FLAG_OF_A_TEST", None)

    def on():
        os.environ["FLAG_OF_A_TEST"] = "1"

    return on, lambda: "FLAG_OF_A_TEST" in os.environ


@state
def thread_local():
    local = threading.local()
    local.flag = False

    def on():
        local.flag = True

    return on, lambda: local.flag


@state
def own_thread_local():
    class Local(threading.local):
        flag = False

    local = Local()

    def on():
        local.flag = True

    return on, lambda: local.flag


@state
def context_variable():
    variable = contextvars.ContextVar("flag", default=False)
    return lambda: variable.set(True), lambda: variable.get()


class Referent:
    flag = False


@state
def weak_reference():
    thing = Referent()
    reference = weakref.ref(thing)

    def on():
        reference().flag = True

    return on, lambda: thing.flag


@state
def weak_proxy():
    thing = Referent()
    proxy = weakref.proxy(thing)

    def on():
        proxy.flag = True

    return on, lambda: thing.flag


@state
def weak_key_dictionary():
    thing = Referent()
    table = weakref.WeakKeyDictionary()

    def on():
        table[thing] = True

    return on, lambda: thing in table


@state
def weak_value_dictionary():
    thing = Referent()
    table = weakref.WeakValueDictionary()

    def on():
        table[1] = thing

    return on, lambda: 1 in table


@state
def finalizer():
    log = []

    class Short:
        def __del__(self):
            log.append(1)

    return lambda: Short(), lambda: bool(log)


@state
def iterator():
    numbers = iter([False, True])

    def on():
        next(numbers, None)

    return on, lambda: operator.length_hint(numbers) < 2


@state
def generator():
    numbers = (i for i in range(10))
    return lambda: next(numbers), lambda: "i" in inspect.getgeneratorlocals(numbers)


@state
def generator_sent():
    def memory():
        flag = False
        while True:
            got = yield flag
            flag = flag or bool(got)

    remembers = memory()
    next(remembers)
    return lambda: remembers.send(True), lambda: remembers.send(None)


@state
def itertools_count():
    count = itertools.count()
    return lambda: next(count), lambda: repr(count) != "count(0)"


@state
def itertools_cycle():
    cycle = itertools.cycle([1, 2])
    log = []
    return lambda: log.append(next(cycle)), lambda: bool(log)
