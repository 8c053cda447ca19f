"""State in every place where Python can keep it: seen, or the function is called as it is.

Every case here switches something on at a branch that the start does not take. Called, the
function remembers; traced, it must not have been traced at all. And whatever tracing does, it
leaves all that the function can reach as it was.
"""

import abc
import array
import collections
import contextlib
import contextvars
import copy
import ctypes
import dataclasses
import decimal
import enum
import fractions
import functools
import gc
import itertools
import json
import logging
import math
import operator
import os
import queue
import random
import re
import string
import struct
import sys
import threading
import time
import types
import typing
import warnings
import weakref
from dataclasses import dataclass, field

import numpy as np
import pytest
from walker import Walk

from tether import model, solve_dae
from tether.trace import TraceFailure, evaluate, trace


@pytest.fixture(autouse=True)
def nothing_is_known(monkeypatch):
    """No test finds what another has left in the cache."""
    monkeypatch.setattr(model, "_shelf", model.Shelf())


STATES = []


def state(make):
    """Register a maker of (switch on, is it on) pairs."""
    STATES.append(make)
    return make


FLAG = False
NUMBERS = [0.0]


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
def class_attribute():
    class Switch:
        flag = False

    def on():
        Switch.flag = True

    return on, lambda: Switch.flag


@state
def new_class_attribute():
    class Switch:
        pass

    def on():
        Switch.flag = True

    return on, lambda: getattr(Switch, "flag", False)


@state
def deleted_class_attribute():
    class Base:
        flag = True

    class Switch(Base):
        flag = False

    def on():
        del Switch.flag

    return on, lambda: Switch.flag


@state
def base_class_attribute():
    class Base:
        flag = False

    class Switch(Base):
        pass

    thing = Switch()

    def on():
        Base.flag = True

    return on, lambda: thing.flag


@state
def list_in_a_base_class():
    class Base:
        log: typing.ClassVar = []

    class Switch(Base):
        pass

    return lambda: Switch.log.append(1), lambda: bool(Switch.log)


@state
def class_by_instance():
    class Switch:
        flag = False

    thing = Switch()

    def on():
        type(thing).flag = True

    return on, lambda: thing.flag


@state
def class_by_dunder_class():
    class Switch:
        flag = False

        def on(self):
            self.__class__.flag = True

    thing = Switch()
    return lambda: thing.on(), lambda: thing.flag


@state
def metaclass_attribute():
    class Meta(type):
        flag = False

    class Switch(metaclass=Meta):
        pass

    def on():
        Meta.flag = True

    return on, lambda: Switch.flag


@state
def attribute_of_a_class_with_metaclass():
    class Meta(type):
        pass

    class Switch(metaclass=Meta):
        flag = False

    def on():
        Switch.flag = True

    return on, lambda: Switch.flag


@state
def metaclass_property():
    class Meta(type):
        _flag = False

        @property
        def flag(cls):
            return Meta._flag

        @flag.setter
        def flag(cls, value):
            Meta._flag = value

    class Switch(metaclass=Meta):
        pass

    def on():
        Switch.flag = True

    return on, lambda: Switch.flag


@state
def class_method():
    class Switch:
        flag = False

        @classmethod
        def on(cls):
            cls.flag = True

    return Switch.on, lambda: Switch.flag


@state
def static_method():
    class Switch:
        flag = False

        @staticmethod
        def on():
            Switch.flag = True

    return Switch.on, lambda: Switch.flag


@state
def abstract_class():
    class Base(abc.ABC):
        flag = False

        @abc.abstractmethod
        def on(self): ...

    class Switch(Base):
        def on(self):
            Base.flag = True

    thing = Switch()
    return lambda: thing.on(), lambda: thing.flag


@state
def super_method():
    class Base:
        def on(self):
            self.flag = True

    class Switch(Base):
        flag = False

        def on(self):
            super().on()

    thing = Switch()
    return lambda: thing.on(), lambda: thing.flag


@state
def super_class_attribute():
    class Base:
        flag = False

        @classmethod
        def on(cls):
            Base.flag = True

    class Switch(Base):
        @classmethod
        def on(cls):
            super().on()

    return lambda: Switch.on(), lambda: Switch.flag


@state
def super_of_two_arguments():
    class Base:
        log: typing.ClassVar = []

        def on(self):
            self.log.append(1)

    class Switch(Base):
        def on(self):
            super(Switch, self).on()  # noqa: UP008

    thing = Switch()
    return lambda: thing.on(), lambda: bool(Base.log)


@state
def subclass_hook():
    class Base:
        log: typing.ClassVar = []

        def __init_subclass__(cls):
            Base.log.append(1)

    def on():
        class New(Base):
            pass

    return on, lambda: bool(Base.log)


@state
def set_name():
    class Named:
        log: typing.ClassVar = []

        def __set_name__(self, owner, name):
            self.log.append(name)

    def on():
        class New:
            x = Named()

    return on, lambda: bool(Named.log)


@state
def instance_attribute():
    class Switch:
        def __init__(self):
            self.flag = False

    thing = Switch()

    def on():
        thing.flag = True

    return on, lambda: thing.flag


@state
def instance_dictionary():
    class Switch:
        pass

    thing = Switch()

    def on():
        thing.__dict__["flag"] = True

    return on, lambda: hasattr(thing, "flag")


@state
def by_setattr():
    thing = types.SimpleNamespace(flag=False)
    return lambda: setattr(thing, "flag", True), lambda: thing.flag


@state
def by_object_setattr():
    class Switch:
        flag = False

    thing = Switch()
    return lambda: object.__setattr__(thing, "flag", True), lambda: thing.flag


@state
def by_type_setattr():
    class Switch:
        flag = False

    return lambda: type.__setattr__(Switch, "flag", True), lambda: Switch.flag


@state
def by_delattr():
    class Switch:
        flag = True

    thing = Switch()
    thing.flag = False
    return lambda: delattr(thing, "flag"), lambda: thing.flag


@state
def slot():
    class Switch:
        __slots__ = ("flag",)

    thing = Switch()
    thing.flag = False

    def on():
        thing.flag = True

    return on, lambda: thing.flag


@state
def slot_of_a_base():
    class Base:
        __slots__ = ("flag",)

    class Switch(Base):
        __slots__ = ()

    thing = Switch()
    thing.flag = False

    def on():
        thing.flag = True

    return on, lambda: thing.flag


@state
def property_setter():
    class Switch:
        _flag = False

        @property
        def flag(self):
            return self._flag

        @flag.setter
        def flag(self, value):
            self._flag = value

    thing = Switch()

    def on():
        thing.flag = True

    return on, lambda: thing.flag


@state
def property_deleter():
    class Switch:
        _flag = False

        @property
        def flag(self):
            return self._flag

        @flag.deleter
        def flag(self):
            self._flag = True

    thing = Switch()

    def on():
        del thing.flag

    return on, lambda: thing.flag


@state
def property_that_counts():
    class Switch:
        calls = 0

        @property
        def on(self):
            self.calls += 1
            return True

    thing = Switch()

    def on():
        return thing.on

    return on, lambda: thing.calls > 0


@state
def descriptor():
    class Flag:
        value = False

        def __get__(self, instance, owner):
            return self.value

        def __set__(self, instance, value):
            self.value = value

    class Switch:
        flag = Flag()

    thing = Switch()

    def on():
        thing.flag = True

    return on, lambda: thing.flag


@state
def own_setattr():
    class Switch:
        log: typing.ClassVar = []

        def __setattr__(self, name, value):
            self.log.append(name)

    thing = Switch()

    def on():
        thing.flag = 1

    return on, lambda: bool(Switch.log)


@state
def own_getattr():
    class Switch:
        def __init__(self):
            self.asked = []

        def __getattr__(self, name):
            self.asked.append(name)
            return 0.0

    thing = Switch()
    return lambda: thing.anything, lambda: bool(thing.asked)


@state
def own_getattribute():
    class Switch:
        log: typing.ClassVar = []

        def __getattribute__(self, name):
            Switch.log.append(name)
            return 0.0

    thing = Switch()
    return lambda: thing.anything, lambda: bool(Switch.log)


@state
def own_operator():
    class Switch:
        flag = False

        def __add__(self, other):
            self.flag = True
            return self

    thing = Switch()
    return lambda: thing + 1, lambda: thing.flag


@state
def own_call_and_item():
    class Switch:
        log: typing.ClassVar = []

        def __setitem__(self, key, value):
            self.log.append(key)

        def __getitem__(self, key):
            return bool(self.log)

    thing = Switch()

    def on():
        thing[0] = 1

    return on, lambda: thing[0]


@state
def changed_class():
    class Off:
        flag = False

    class On:
        flag = True

    thing = Off()

    def on():
        thing.__class__ = On

    return on, lambda: thing.flag


@state
def float_subclass():
    class Number(float):
        flag = False

    number = Number(1.0)

    def on():
        number.flag = True

    return on, lambda: number.flag


@state
def class_of_a_float_subclass():
    class Number(float):
        flag = False

    number = Number(1.0)

    def on():
        Number.flag = True

    return on, lambda: number.flag


@state
def int_subclass():
    class Number(int):
        pass

    number = Number(1)
    number.flag = False

    def on():
        number.flag = True

    return on, lambda: number.flag


@state
def string_subclass():
    class Text(str):
        flag = False

    text = Text("a")

    def on():
        text.flag = True

    return on, lambda: text.flag


@state
def list_subclass():
    class Items(list):
        flag = False

    items = Items()

    def on():
        items.flag = True

    return on, lambda: items.flag


@state
def content_of_a_list_subclass():
    class Items(list):
        pass

    items = Items()
    return lambda: items.append(1), lambda: bool(items)


@state
def dict_subclass():
    class Items(dict):
        flag = False

    items = Items()

    def on():
        items.flag = True

    return on, lambda: items.flag


@state
def missing_key():
    class Items(dict):
        def __missing__(self, key):
            self[key] = 1
            return 1

    items = Items()
    return lambda: items["a"], lambda: bool(items)


@state
def set_subclass():
    class Items(set):
        flag = False

    items = Items()

    def on():
        items.flag = True

    return on, lambda: items.flag


@state
def tuple_subclass():
    class Items(tuple):
        flag = False

    items = Items((1, 2))

    def on():
        items.flag = True

    return on, lambda: items.flag


@state
def array_subclass():
    class Items(np.ndarray):
        flag = False

    items = np.zeros(2).view(Items)

    def on():
        items.flag = True

    return on, lambda: items.flag


@state
def number_of_numpy_subclass():
    class Number(np.float64):
        flag = False

    number = Number(1.0)

    def on():
        number.flag = True

    return on, lambda: number.flag


@state
def named_tuple_class():
    Point = collections.namedtuple("Point", "x y")  # noqa: PYI024

    def on():
        Point.flag = True

    return on, lambda: hasattr(Point, "flag")


@state
def list_in_a_named_tuple():
    class Point(typing.NamedTuple):
        x: list

    point = Point([])
    return lambda: point.x.append(1), lambda: bool(point.x)


@state
def enum_member_attribute():
    class Mode(enum.Enum):
        A = 1
        B = 2

    Mode.A.flag = False

    def on():
        Mode.A.flag = True

    return on, lambda: Mode.A.flag


@state
def enum_value():
    class Mode(enum.Enum):
        A = []

    return lambda: Mode.A.value.append(1), lambda: bool(Mode.A.value)


@state
def enum_class():
    class Mode(enum.Enum):
        A = 1

    def on():
        Mode.flag = True

    return on, lambda: hasattr(Mode, "flag")


@state
def enum_method():
    class Mode(enum.Enum):
        A = 1

        def __init__(self, value):
            self.log = []

        def on(self):
            self.log.append(1)

    return lambda: Mode.A.on(), lambda: bool(Mode.A.log)


@state
def int_enum_attribute():
    class Mode(enum.IntEnum):
        A = 1

    Mode.A.flag = False

    def on():
        Mode.A.flag = True

    return on, lambda: Mode.A.flag


@state
def flag_attribute():
    class Mode(enum.Flag):
        A = 1
        B = 2

    Mode.A.on = False

    def on():
        Mode.A.on = True

    return on, lambda: Mode.A.on


@state
def data_class():
    @dataclass
    class Switch:
        flag: bool = False

    thing = Switch()

    def on():
        thing.flag = True

    return on, lambda: thing.flag


@state
def default_of_a_data_class():
    @dataclass
    class Switch:
        flag: bool = False

    def on():
        Switch.flag = True

    thing = Switch()
    del thing.flag
    return on, lambda: thing.flag


@state
def frozen_data_class():
    @dataclass(frozen=True)
    class Switch:
        log: list = field(default_factory=list)

    thing = Switch()
    return lambda: thing.log.append(1), lambda: bool(thing.log)


@state
def frozen_data_class_forced():
    @dataclass(frozen=True)
    class Switch:
        flag: bool = False

    thing = Switch()
    return lambda: object.__setattr__(thing, "flag", True), lambda: thing.flag


@state
def data_class_with_slots():
    @dataclass(slots=True)
    class Switch:
        flag: bool = False

    thing = Switch()

    def on():
        thing.flag = True

    return on, lambda: thing.flag


@state
def data_class_factory():
    made = []

    @dataclass
    class Switch:
        x: list = field(default_factory=lambda: made.append(1) or [])

    return lambda: Switch(), lambda: bool(made)


@state
def post_init():
    @dataclass
    class Switch:
        x: float = 1.0
        count: typing.ClassVar = []

        def __post_init__(self):
            self.count.append(1)

    return lambda: Switch(), lambda: bool(Switch.count)


@state
def instance_counter():
    class Switch:
        made = 0

        def __init__(self):
            Switch.made += 1

    return lambda: Switch(), lambda: Switch.made > 0


@state
def new_that_remembers():
    class Single:
        one = None

        def __new__(cls):
            if cls.one is None:
                cls.one = super().__new__(cls)
            return cls.one

    return lambda: Single(), lambda: Single.one is not None


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
    return lambda: next(numbers), lambda: numbers.gi_frame.f_locals["i"] if False else (
        numbers.gi_frame is None or numbers.gi_frame.f_lasti > 2 and "i" in numbers.gi_frame.f_locals)


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
def context_manager():
    class Switch:
        flag = False

        def __enter__(self):
            Switch.flag = True

        def __exit__(self, *problem):
            return False

    def on():
        with Switch():
            pass

    return on, lambda: Switch.flag


@state
def generator_as_context():
    log = []

    @contextlib.contextmanager
    def switch():
        log.append(1)
        yield

    def on():
        with switch():
            pass

    return on, lambda: bool(log)


@state
def exit_stack():
    log = []

    def on():
        with contextlib.ExitStack() as stack:
            stack.callback(log.append, 1)

    return on, lambda: bool(log)


@state
def user_iterator():
    class Numbers:
        given = 0

        def __iter__(self):
            return self

        def __next__(self):
            self.given += 1
            return self.given

    numbers = Numbers()
    return lambda: next(numbers), lambda: numbers.given > 0


@state
def decorated_counter():
    def counted(function):
        @functools.wraps(function)
        def wrapper(*args):
            wrapper.calls += 1
            return function(*args)

        wrapper.calls = 0
        return wrapper

    @counted
    def on():
        return 1

    return on, lambda: on.calls > 0


@state
def class_decorator():
    class Counted:
        def __init__(self, function):
            functools.update_wrapper(self, function)
            self.calls = 0

        def __call__(self, *args):
            self.calls += 1
            return self.__wrapped__(*args)

    @Counted
    def on():
        return 1

    return on, lambda: on.calls > 0


@state
def walrus_and_comprehension():
    log = []
    return lambda: [log.append(x) for i in range(2) if (x := i)], lambda: bool(log)


@state
def match_statement():
    @dataclass
    class Point:
        x: float

    log = []
    point = Point(1.0)

    def on():
        match point:
            case Point(x=1.0):
                log.append(1)

    return on, lambda: bool(log)


@state
def recursion():
    log = []

    def deep(n):
        if n:
            deep(n - 1)
        else:
            log.append(1)

    return lambda: deep(3), lambda: bool(log)


@state
def coroutine():
    log = []

    async def note():
        log.append(1)

    def on():
        with contextlib.suppress(StopIteration):
            note().send(None)

    return on, lambda: bool(log)


@state
def exception_object():
    error = ValueError("x")
    error.flag = False

    def on():
        error.flag = True

    return on, lambda: error.flag


@state
def fraction_attribute():
    class Number(fractions.Fraction):
        flag = False

    number = Number(1, 2)

    def on():
        Number.flag = True

    return on, lambda: number.flag


@state
def generic_class():
    kind = typing.TypeVar("kind")

    class Switch(typing.Generic[kind]):
        flag = False

    thing = Switch()

    def on():
        thing.flag = True

    return on, lambda: thing.flag


@state
def mapping_of_the_user():
    class Table(collections.abc.MutableMapping):
        def __init__(self):
            self.data = {}

        def __getitem__(self, key):
            return self.data[key]

        def __setitem__(self, key, value):
            self.data[key] = value

        def __delitem__(self, key):
            del self.data[key]

        def __iter__(self):
            return iter(self.data)

        def __len__(self):
            return len(self.data)

    table = Table()
    return lambda: table.setdefault("a", 1), lambda: "a" in table.data


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
def sort_key():
    log = []
    return lambda: sorted([1, 2], key=lambda x: log.append(1) or x), lambda: bool(log)


@state
def reduced():
    log = []
    return lambda: functools.reduce(lambda a, b: log.append(1), [1, 2]), lambda: bool(log)


@state
def own_hash():
    class Key:
        log: typing.ClassVar = []

        def __hash__(self):
            self.log.append(1)
            return 1

    key = Key()
    return lambda: {key: 1}, lambda: bool(Key.log)


@state
def own_repr():
    class Thing:
        log: typing.ClassVar = []

        def __repr__(self):
            self.log.append(1)
            return "x"

    thing = Thing()
    return lambda: f"{thing!r}", lambda: bool(Thing.log)


@state
def own_length_and_truth():
    class Thing:
        log: typing.ClassVar = []

        def __bool__(self):
            self.log.append(1)
            return True

    thing = Thing()
    return lambda: 1 if thing else 2, lambda: bool(Thing.log)


@state
def own_array():
    class Thing:
        log: typing.ClassVar = []

        def __array__(self, dtype=None, copy=None):
            self.log.append(1)
            return np.zeros(2)

    thing = Thing()
    return lambda: np.asarray(thing), lambda: bool(Thing.log)


@state
def own_float():
    class Thing:
        log: typing.ClassVar = []

        def __float__(self):
            self.log.append(1)
            return 1.0

    thing = Thing()
    return lambda: float(thing), lambda: bool(Thing.log)


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


def residual_with(on, is_on):
    """Decay until y is one half; then, once something is switched on, growth."""
    def fun(t, y, yp):
        if y[0] < 0.5:
            on()
        return [yp[0] + (y[0] if not is_on() else -1.0)]

    return fun


def name_of(make):
    return make.__name__


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("make", STATES, ids=name_of)
def test_tracing_changes_nothing(make):
    on, is_on = make()
    blind = [] if make is cache_information else [residual_with(on, lambda: False)]
    for fun in (*blind, residual_with(on, is_on)):
        before = Walk(fun)
        with pytest.raises(TraceFailure):
            trace(fun, 1)
        after = Walk(fun)
        assert not before.difference(after)
        assert not after.traced()
    assert not is_on()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("make", STATES, ids=name_of)
def test_state_is_kept_from_call_to_call(make):
    ends = []
    for how in ("never", "auto"):
        fun = residual_with(*make())
        sol = solve_dae(fun, (0, 2), [1.0], trace=how)
        assert sol.how.startswith("called")
        ends.append((sol.y[0, -1], sol.nfev))
    assert ends[0] == ends[1]
    assert ends[0][0] > 1.0
