"""Places in contexts, iterators, decorators and special methods where a function can keep state.

Each maker returns what switches something on, and what tells whether it is on.
"""

import abc
import collections
import contextlib
import functools
import inspect
import itertools
import typing
import weakref
from dataclasses import dataclass

import numpy as np

from support.places import Places

STATES = Places()
state = STATES.add


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
def registered_class():
    class Base(abc.ABC):  # noqa: B024
        pass

    class Other:
        pass

    return lambda: Base.register(Other), lambda: issubclass(Other, Base)


@state
def bases_of_a_class():
    class Off:
        flag = False

    class On:
        flag = True

    class Switch(Off):
        pass

    def on():
        Switch.__bases__ = (On,)

    return on, lambda: Switch.flag


@state
def generator_behind_a_weak_reference():
    def numbers():
        yield from range(10)

    each = numbers()
    reference = weakref.ref(each)
    return lambda: next(reference()), lambda: inspect.getgeneratorstate(each) != "GEN_CREATED"


@state
def factory_that_counts():
    count = itertools.count()
    table = collections.defaultdict(lambda: next(count))
    return lambda: table["a"], lambda: bool(table)
