"""Places in the standard library and in SciPy where a function can keep state.

Each maker returns what switches something on, and what tells whether it is on.
"""

import copy
import dataclasses
import decimal
import fractions
import functools
import gc
import json
import logging
import operator
import queue
import random
import re
import string
import sys
import threading
import types
import typing
import warnings
from dataclasses import dataclass

import numpy as np
import scipy.sparse
from scipy.interpolate import CubicSpline

from support.places import Places

STATES = Places()
state = STATES.add


@state
def cached_object():
    @functools.cache
    def memory():
        return {"flag": False}

    def on():
        memory()["flag"] = True

    return on, lambda: memory()["flag"]


@state
def cached_array():
    @functools.lru_cache
    def memory(n):
        return np.zeros(n)

    def on():
        memory(3)[0] = 1.0

    return on, lambda: memory(3)[0] == 1.0


@state
def cached_instance():
    class Switch:
        flag = False

    @functools.cache
    def memory():
        return Switch()

    def on():
        memory().flag = True

    return on, lambda: memory().flag


@state
def cache_information():
    @functools.cache
    def memory(x):
        return x

    return lambda: memory(1), lambda: memory.cache_info().currsize > 0


@state
def cached_effect():
    log = []

    @functools.cache
    def memory(x):
        log.append(x)
        return x

    return lambda: memory(1), lambda: bool(log)


@state
def cached_method():
    class Switch:
        @functools.cache  # noqa: B019
        def memory(self):
            return []

    thing = Switch()
    return lambda: thing.memory().append(1), lambda: bool(thing.memory())


@state
def cached_property():
    class Switch:
        @functools.cached_property
        def flag(self):
            return True

    thing = Switch()

    def on():
        return thing.flag

    return on, lambda: "flag" in vars(thing)


@state
def single_dispatch():
    @functools.singledispatch
    def is_on(x):
        return False

    def on():
        is_on.register(int, lambda x: True)

    return on, lambda: is_on(1)


@state
def partial_keywords():
    is_on = functools.partial(lambda flag: flag, flag=False)

    def on():
        is_on.keywords["flag"] = True

    return on, lambda: is_on()


@state
def partial_attribute():
    is_on = functools.partial(lambda: 1)
    is_on.flag = False

    def on():
        is_on.flag = True

    return on, lambda: is_on.flag


@state
def partial_method():
    class Switch:
        flag = False

        def put(self, value):
            self.flag = value

        on = functools.partialmethod(put, True)

    thing = Switch()
    return lambda: thing.on(), lambda: thing.flag


@state
def attribute_getter():
    thing = types.SimpleNamespace(log=[])
    get = operator.attrgetter("log")
    return lambda: get(thing).append(1), lambda: bool(thing.log)


@state
def method_caller():
    log = []
    note = operator.methodcaller("append", 1)
    return lambda: note(log), lambda: bool(log)


@state
def bound_method():
    log = []
    note = log.append
    return lambda: note(1), lambda: bool(log)


@state
def bound_special_method():
    log = [0]
    note = log.__setitem__
    return lambda: note(0, 1), lambda: log[0] == 1


@state
def executed_text():
    space = {"flag": False}
    return lambda: exec("flag = True", space), lambda: space["flag"]


@state
def evaluated_text():
    log = []
    return lambda: eval("log.append(1)", {"log": log}), lambda: bool(log)


@state
def own_globals():
    space = {"flag": False}
    exec("def on():\n    global flag\n    flag = True\ndef is_on():\n    return flag", space)
    return space["on"], space["is_on"]


@state
def own_builtins():
    log = []
    space = {"__builtins__": {"len": lambda x: log.append(x)}}
    exec("def on():\n    len(1)", space)
    return space["on"], lambda: bool(log)


@state
def frame():
    flag = [False]

    def on():
        sys._getframe().f_back.f_globals["FLAG"] = True
        flag[0] = True

    return on, lambda: flag[0]


@state
def aliased_print():
    lines = []
    say = print

    class Out:
        def write(self, text):
            lines.append(text)

    out = Out()
    return lambda: say("x", file=out), lambda: bool(lines)


@state
def logged():
    logger = logging.getLogger("flag of a test")
    logger.propagate = False
    log = []

    class Keeps(logging.Handler):
        def emit(self, record):
            log.append(record)

    logger.handlers[:] = [Keeps()]
    return lambda: logger.warning("on"), lambda: bool(log)


@state
def warned():
    log = []

    def on():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warnings.warn("on", stacklevel=1)
        log.extend(caught)

    return on, lambda: bool(log)


@state
def random_numbers():
    random.seed(1)
    before = random.getstate()
    return lambda: random.random(), lambda: random.getstate() != before


@state
def own_random():
    numbers = random.Random(1)
    before = numbers.getstate()
    return lambda: numbers.random(), lambda: numbers.getstate() != before


@state
def queued():
    items = queue.Queue()
    return lambda: items.put(1), lambda: not items.empty()


@state
def lock():
    guard = threading.Lock()
    return lambda: guard.acquire(blocking=False), lambda: guard.locked()


@state
def decimal_context():
    def on():
        decimal.getcontext().prec = 5

    decimal.getcontext().prec = 28
    return on, lambda: decimal.getcontext().prec == 5


@state
def recursion_limit():
    before = sys.getrecursionlimit()

    def on():
        sys.setrecursionlimit(before + 1)

    sys.setrecursionlimit(before)
    return on, lambda: sys.getrecursionlimit() > before


@state
def garbage_collector():
    gc.enable()
    return gc.disable, lambda: not gc.isenabled()


@state
def fraction_attribute():
    class Number(fractions.Fraction):
        flag = False

    number = Number(1, 2)

    def on():
        Number.flag = True

    return on, lambda: number.flag


@state
def copied_shallowly():
    thing = types.SimpleNamespace(log=[])
    return lambda: copy.copy(thing).log.append(1), lambda: bool(thing.log)


@state
def regular_expression():
    log = []
    return lambda: re.sub("a", lambda found: log.append(1) or "b", "a"), lambda: bool(log)


@state
def template():
    class Values(dict):
        log: typing.ClassVar = []

        def __missing__(self, key):
            self.log.append(key)
            return ""

    values = Values()
    text = string.Template("$a")
    return lambda: text.substitute(values), lambda: bool(Values.log)


@state
def json_hook():
    log = []
    return (lambda: json.loads("{}", object_hook=lambda x: log.append(1)), lambda: bool(log))


@state
def dataclasses_replace():
    @dataclass
    class Thing:
        x: float = 1.0
        log: typing.ClassVar = []

        def __post_init__(self):
            self.log.append(1)

    thing = Thing()
    Thing.log.clear()
    return lambda: dataclasses.replace(thing, x=2.0), lambda: bool(Thing.log)


@state
def coefficients_of_a_spline():
    spline = CubicSpline([0.0, 1.0, 2.0], [0.0, 1.0, 0.0])
    before = spline.c[0, 0]

    def on():
        spline.c[0, 0] = 7.0

    return on, lambda: spline.c[0, 0] != before


@state
def attribute_of_a_spline():
    spline = CubicSpline([0.0, 1.0, 2.0], [0.0, 1.0, 0.0])
    spline.flag = False

    def on():
        spline.flag = True

    return on, lambda: spline.flag


@state
def entries_of_a_sparse_matrix():
    matrix = scipy.sparse.csr_matrix([[1.0, 0.0], [0.0, 2.0]])

    def on():
        matrix.data[0] = 7.0

    return on, lambda: matrix[0, 0] == 7.0


@state
def item_of_a_sparse_matrix():
    matrix = scipy.sparse.lil_matrix([[1.0, 0.0], [0.0, 2.0]])

    def on():
        matrix[0, 0] = 7.0

    return on, lambda: matrix[0, 0] == 7.0


@state
def diagonal_of_a_sparse_matrix():
    matrix = scipy.sparse.csr_matrix([[1.0, 0.0], [0.0, 2.0]])
    return lambda: matrix.setdiag([7.0, 7.0]), lambda: matrix[0, 0] == 7.0


@state
def partial_state():
    is_on = functools.partial(lambda flag: flag, False)

    def on():
        is_on.__setstate__((is_on.func, (True,), {}, None))

    return on, lambda: is_on()


@state
def bound_generator_of_numbers():
    draw = np.random.default_rng(1).random
    before = repr(draw.__self__.bit_generator.state)
    return lambda: draw(), lambda: repr(draw.__self__.bit_generator.state) != before
