"""Places in functions, modules, containers and arrays where a function can keep state.

Each maker returns what switches something on, and what tells whether it is on.
"""

import array
import collections
import contextvars
import ctypes
import inspect
import itertools
import math
import operator
import os
import struct
import sys
import threading
import time
import types
import weakref

import numpy as np

STATES = []


def state(make):
    """Register a maker."""
    STATES.append(make)
    return make


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


@state
def list_append():
    log = []
    return lambda: log.append(1), lambda: bool(log)


@state
def list_slice():
    log = [0]

    def on():
        log[:] = [1]

    return on, lambda: log[0] == 1


@state
def list_in_place():
    log = [0, 1]
    return lambda: log.reverse(), lambda: log[0] == 1


@state
def list_by_operator():
    log = [0]
    return lambda: operator.setitem(log, 0, 1), lambda: log[0] == 1


@state
def list_by_unbound_method():
    log = []
    return lambda: list.append(log, 1), lambda: bool(log)


@state
def list_in_a_tuple():
    pair = ([], 1)
    return lambda: pair[0].append(1), lambda: bool(pair[0])


@state
def key_of_a_dictionary():
    class Key:
        flag = False

    table = {Key(): 1.0}

    def on():
        for key in table:
            key.flag = True

    return on, lambda: next(iter(table)).flag


@state
def element_of_a_set():
    class Key:
        flag = False

    table = {Key()}

    def on():
        for key in table:
            key.flag = True

    return on, lambda: next(iter(table)).flag


@state
def element_of_a_frozen_set():
    class Key:
        flag = False

    table = frozenset({Key()})

    def on():
        for key in table:
            key.flag = True

    return on, lambda: next(iter(table)).flag


@state
def order_of_a_dictionary():
    table = collections.OrderedDict(a=1, b=2)
    return lambda: table.move_to_end("a"), lambda: next(iter(table)) == "b"


@state
def order_by_reinsertion():
    table = {"a": 1, "b": 2}

    def on():
        table["a"] = table.pop("a")

    return on, lambda: next(iter(table)) == "b"


@state
def dictionary_by_setdefault():
    table = {}
    return lambda: table.setdefault("a", 1), lambda: bool(table)


@state
def default_dictionary():
    table = collections.defaultdict(list)
    return lambda: table["a"], lambda: bool(table)


@state
def default_factory():
    table = collections.defaultdict(float)

    def on():
        table.default_factory = None

    return on, lambda: table.default_factory is None


@state
def counter():
    table = collections.Counter()
    return lambda: table.update("a"), lambda: bool(table)


@state
def chain_map():
    table = collections.ChainMap({}, {})

    def on():
        table["a"] = 1

    return on, lambda: bool(table)


@state
def user_dictionary():
    table = collections.UserDict()

    def on():
        table["a"] = 1

    return on, lambda: bool(table)


@state
def user_list():
    table = collections.UserList()
    return lambda: table.append(1), lambda: bool(table)


@state
def attribute_of_a_library_class():
    def on():
        collections.UserDict.flag_of_a_test = True

    if hasattr(collections.UserDict, "flag_of_a_test"):
        del collections.UserDict.flag_of_a_test
    return on, lambda: hasattr(collections.UserDict, "flag_of_a_test")


@state
def deque_rotation():
    items = collections.deque([0, 1])
    return lambda: items.rotate(), lambda: items[0] == 1


@state
def set_add():
    items = set()
    return lambda: items.add(1), lambda: bool(items)


@state
def whole_array():
    items = np.zeros(2)

    def on():
        items[:] = 1.0

    return on, lambda: items[0] == 1.0


@state
def array_fill():
    items = np.zeros(2)
    return lambda: items.fill(1.0), lambda: items[0] == 1.0


@state
def array_view():
    items = np.zeros(2)
    view = items[1:]

    def on():
        view[0] = 1.0

    return on, lambda: items[1] == 1.0


@state
def array_flat():
    items = np.zeros(2)

    def on():
        items.flat[0] = 1.0

    return on, lambda: items[0] == 1.0


@state
def flat_iterator():
    items = np.zeros(2)
    flat = items.flat

    def on():
        flat[0] = 1.0

    return on, lambda: items[0] == 1.0


@state
def array_of_integers():
    items = np.zeros(2, dtype=int)

    def on():
        items[0] += 1

    return on, lambda: items[0] == 1


@state
def array_of_booleans():
    items = np.zeros(2, dtype=bool)

    def on():
        items[0] = True

    return on, lambda: bool(items[0])


@state
def array_of_objects():
    items = np.array([[], None], dtype=object)
    return lambda: items[0].append(1), lambda: bool(items[0])


@state
def array_of_objects_itself():
    items = np.array([0, None], dtype=object)

    def on():
        items[0] = 1

    return on, lambda: bool(items[0])


@state
def structured_array():
    items = np.zeros(2, dtype=[("a", float)])

    def on():
        items["a"] = 1.0

    return on, lambda: items["a"][0] == 1.0


@state
def array_made_writeable():
    items = np.zeros(2)

    def on():
        items.setflags(write=True)
        items[0] = 1.0

    return on, lambda: items[0] == 1.0


@state
def array_made_writeable_by_flags():
    items = np.zeros(2)

    def on():
        items.flags.writeable = True
        items[0] = 1.0

    return on, lambda: items[0] == 1.0


@state
def base_of_an_array():
    items = np.zeros((2, 1)).T

    def on():
        items.base[0] = 1.0

    return on, lambda: items[0, 0] == 1.0


@state
def numpy_copyto():
    items = np.zeros(2)
    return lambda: np.copyto(items, 1.0), lambda: items[0] == 1.0


@state
def numpy_put():
    items = np.zeros(2)
    return lambda: np.put(items, 0, 1.0), lambda: items[0] == 1.0


@state
def numpy_at():
    items = np.zeros(2)
    return lambda: np.add.at(items, 0, 1.0), lambda: items[0] == 1.0


@state
def numpy_out():
    items = np.zeros(2)
    return lambda: np.add(items, 1.0, out=items), lambda: items[0] == 1.0


@state
def numpy_out_by_place():
    items = np.zeros(2)
    return lambda: np.add(items, 1.0, items), lambda: items[0] == 1.0


@state
def numpy_fill_diagonal():
    items = np.zeros((2, 2))
    return lambda: np.fill_diagonal(items, 1.0), lambda: items[0, 0] == 1.0


@state
def numpy_place():
    items = np.zeros(2)
    return lambda: np.place(items, [True, False], [1.0]), lambda: items[0] == 1.0


@state
def numpy_sort():
    items = np.array([1.0, 0.0])
    return lambda: items.sort(), lambda: items[0] == 0.0


@state
def numpy_shape():
    items = np.zeros((2, 1))

    def on():
        items.shape = (1, 2)

    return on, lambda: items.shape == (1, 2)


@state
def numpy_resize():
    items = np.zeros(2)
    return lambda: items.resize(3, refcheck=False), lambda: items.size == 3


@state
def numpy_matrix():
    items = np.matrix([[0.0]])

    def on():
        items[0, 0] = 1.0

    return on, lambda: items[0, 0] == 1.0


@state
def masked_array():
    items = np.ma.zeros(2)

    def on():
        items[0] = 1.0

    return on, lambda: items[0] == 1.0


@state
def numpy_nditer():
    items = np.zeros(2)

    def on():
        with np.nditer(items, op_flags=["readwrite"]) as view:
            for x in view:
                x[...] = 1.0

    return on, lambda: items[0] == 1.0


@state
def numpy_polynomial():
    line = np.poly1d([2.0, 1.0])

    def on():
        line.coef[0] = 1.0

    return on, lambda: line.coef[0] == 1.0


@state
def numpy_random():
    generator = np.random.default_rng(1)
    before = repr(generator.bit_generator.state)
    return lambda: generator.normal(), lambda: repr(generator.bit_generator.state) != before


@state
def numpy_frompyfunc():
    log = []
    note = np.frompyfunc(lambda x: log.append(1), 1, 1)
    return lambda: note(1.0), lambda: bool(log)


@state
def numpy_vectorize():
    log = []
    note = np.vectorize(lambda x: log.append(1) or 0.0)
    return lambda: note(1.0), lambda: bool(log)


@state
def numpy_error_state():
    def on():
        np.seterr(divide="raise")

    np.seterr(divide="warn")
    return on, lambda: np.geterr()["divide"] == "raise"


@state
def print_options():
    def on():
        np.set_printoptions(precision=3)

    np.set_printoptions(precision=8)
    return on, lambda: np.get_printoptions()["precision"] == 3


@state
def memory_view():
    items = np.zeros(1)
    view = memoryview(items)

    def on():
        view[0] = 1.0

    return on, lambda: items[0] == 1.0


@state
def memory_view_inside():
    items = np.zeros(1)

    def on():
        memoryview(items)[0] = 1.0

    return on, lambda: items[0] == 1.0


@state
def array_of_the_library():
    items = array.array("d", [0.0])

    def on():
        items[0] = 1.0

    return on, lambda: items[0] == 1.0


@state
def byte_array():
    items = bytearray(1)

    def on():
        items[0] = 1

    return on, lambda: items[0] == 1


@state
def c_number():
    number = ctypes.c_double(0.0)

    def on():
        number.value = 1.0

    return on, lambda: number.value == 1.0


@state
def c_array():
    numbers = (ctypes.c_double * 2)()

    def on():
        numbers[0] = 1.0

    return on, lambda: numbers[0] == 1.0


@state
def c_pointer_to_an_array():
    items = np.zeros(1)

    def on():
        items.ctypes.data_as(ctypes.POINTER(ctypes.c_double))[0] = 1.0

    return on, lambda: items[0] == 1.0


@state
def c_structure():
    class Pair(ctypes.Structure):
        _fields_ = (("x", ctypes.c_double),)

    pair = Pair()

    def on():
        pair.x = 1.0

    return on, lambda: pair.x == 1.0


@state
def packed():
    items = bytearray(8)
    return lambda: struct.pack_into("d", items, 0, 1.0), lambda: any(items)
