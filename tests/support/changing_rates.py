"""Rates that depend on something that changes, wherever Python can keep it."""

import abc
import array
import collections
import enum
import functools
import itertools
import types
import typing
from dataclasses import dataclass

import numpy as np
import scipy.sparse
from numpy.polynomial import Polynomial
from scipy.interpolate import CubicSpline

KEYS = []


def key(make):
    """Register a maker of (rate, change): the rate is 1, and 3 after the change."""
    KEYS.append(make)
    return make


def attribute_of(base, *args):
    """Rate that is an attribute of an object of a class derived from another one."""
    def make():
        kind = type("Kind", (base,), {})
        thing = kind(*args)
        thing.k = 1.0
        return lambda: thing.k, lambda: setattr(thing, "k", 3.0)

    make.__name__ = f"attribute_of_{base.__name__}"
    KEYS.append(make)


def class_attribute_of(base, *args):
    """Rate that is an attribute of a class derived from another one."""
    def make():
        kind = type("Kind", (base,), {"k": 1.0})
        thing = kind(*args)
        return lambda: thing.k, lambda: setattr(kind, "k", 3.0)

    make.__name__ = f"class_attribute_of_{base.__name__}"
    KEYS.append(make)


for register in (attribute_of, class_attribute_of):
    for arguments in ((object,), (float, 2.0), (int, 2), (str, "a"), (bytes, b"a"), (complex, 1j),
                      (list, [1]), (dict, {1: 2}), (set, {1}), (frozenset, {1}), (tuple, (1, 2)),
                      (collections.OrderedDict,), (collections.defaultdict,), (collections.deque,),
                      (collections.Counter,), (collections.UserDict,), (collections.UserList,),
                      (types.SimpleNamespace,), (abc.ABC,), (Exception,), (np.ndarray, 3),
                      (np.float64, 2.0), (functools.partial, abs), (array.array, "d"),
                      (threading_local := __import__("threading").local,),
                      (itertools.count,), (property,), (types.ModuleType, "kind")):
        register(*arguments)


@key
def content_of_a_float():
    class Number(float):
        pass

    box = [Number(1.0)]
    return lambda: box[0] + 0.0, lambda: box.__setitem__(0, Number(3.0))


@key
def content_of_a_list():
    class Items(list):
        pass

    items = Items([1.0])
    return lambda: items[0], lambda: items.__setitem__(0, 3.0)


@key
def content_of_a_dictionary():
    class Items(dict):
        pass

    items = Items(k=1.0)
    return lambda: items["k"], lambda: items.update(k=3.0)


@key
def missing_item():
    class Items(dict):
        k = 1.0

        def __missing__(self, name):
            return Items.k

    items = Items()
    return lambda: items["a"], lambda: setattr(Items, "k", 3.0)


@key
def own_iteration():
    class Items(list):
        k = 1.0

        def __iter__(self):
            yield self.k

    items = Items()
    return lambda: sum(items), lambda: setattr(items, "k", 3.0)


@key
def order_of_a_dictionary():
    items = {"a": 1.0, "b": 3.0}
    return lambda: next(iter(items.values())), lambda: items.update(a=items.pop("a"))


@key
def default_factory():
    items = collections.defaultdict(lambda: 1.0)
    return lambda: items.default_factory(), lambda: setattr(items, "default_factory", lambda: 3.0)


@key
def length_of_a_deque():
    box = [collections.deque([1.0], 1)]
    return lambda: float(box[0].maxlen), lambda: box.__setitem__(0, collections.deque([1.0], 3))


@key
def base_class():
    class Base:
        k = 1.0

    class Derived(Base):
        pass

    thing = Derived()
    return lambda: thing.k, lambda: setattr(Base, "k", 3.0)


@key
def method_of_a_base_class():
    class Base:
        def rate(self):
            return 1.0

    class Derived(Base):
        def rate(self):
            return super().rate()

    thing = Derived()

    def change():
        Base.rate = lambda self: 3.0

    return lambda: thing.rate(), change


@key
def other_bases():
    class One:
        k = 1.0

    class Three:
        k = 3.0

    class Derived(One):
        pass

    thing = Derived()
    return lambda: thing.k, lambda: setattr(Derived, "__bases__", (Three,))


@key
def other_class():
    class One:
        k = 1.0

    class Three:
        k = 3.0

    thing = One()
    return lambda: thing.k, lambda: setattr(thing, "__class__", Three)


@key
def shadowing_attribute():
    class Derived:
        k = 1.0

    thing = Derived()
    return lambda: thing.k, lambda: setattr(thing, "k", 3.0)


@key
def metaclass():
    class Meta(type):
        k = 1.0

    class Thing(metaclass=Meta):
        pass

    return lambda: Thing.k, lambda: setattr(Meta, "k", 3.0)


@key
def class_with_a_metaclass():
    class Meta(type):
        pass

    class Thing(metaclass=Meta):
        k = 1.0

    return lambda: Thing.k, lambda: setattr(Thing, "k", 3.0)


@key
def list_of_a_metaclass():
    class Meta(type):
        k: typing.ClassVar = [1.0]

    class Thing(metaclass=Meta):
        pass

    return lambda: Thing.k[0], lambda: Meta.k.__setitem__(0, 3.0)


@key
def enumeration_member():
    class Mode(enum.Enum):
        A = 1

    Mode.A.k = collections.deque([1.0])
    return lambda: Mode.A.k[0], lambda: Mode.A.k.__setitem__(0, 3.0)


@key
def enumeration_class():
    class Mode(enum.Enum):
        A = 1

    Mode.k = enum.nonmember(1.0) if hasattr(enum, "nonmember") else 1.0
    Mode.k = 1.0
    return lambda: Mode.k, lambda: setattr(Mode, "k", 3.0)


@key
def enumeration_method():
    class Mode(enum.Enum):
        A = 1

        def rate(self):
            return 1.0

    def change():
        Mode.rate = lambda self: 3.0

    return lambda: Mode.A.rate(), change


@key
def enumeration_value():
    class Mode(enum.Enum):
        A = (1.0,)

    return lambda: Mode.A.value[0], lambda: setattr(Mode.A, "_value_", (3.0,))


@key
def named_tuple():
    class Pair(typing.NamedTuple):
        a: float

        def rate(self):
            return Pair.k

    Pair.k = 1.0
    pair = Pair(2.0)
    return lambda: pair.rate(), lambda: setattr(Pair, "k", 3.0)


@key
def default_of_a_data_class():
    @dataclass
    class Par:
        k: float = 1.0

    def change():
        Par.__init__.__defaults__ = (3.0,)

    return lambda: Par().k, change


@key
def descriptor():
    class Value:
        k = 1.0

        def __get__(self, instance, owner):
            return self.k

    class Thing:
        value = Value()

    thing = Thing()
    return lambda: thing.value, lambda: setattr(vars(Thing)["value"], "k", 3.0)


@key
def property_of_a_property():
    class Thing:
        @property
        def k(self):
            return self.inner

        @property
        def inner(self):
            return 1.0

    thing = Thing()
    return lambda: thing.k, lambda: setattr(Thing, "inner", property(lambda self: 3.0))


@key
def class_method_of_a_class():
    class Thing:
        @classmethod
        def k(cls):
            return 1.0

    return lambda: Thing.k(), lambda: setattr(Thing, "k", classmethod(lambda cls: 3.0))


@key
def registered_class():
    class Base(abc.ABC):  # noqa: B024
        pass

    class Other:
        pass

    other = Other()
    return lambda: 3.0 if isinstance(other, Base) else 1.0, lambda: Base.register(Other)


@key
def class_registered_before():
    class Base(abc.ABC):  # noqa: B024
        pass

    class Other:
        pass

    Base.register(Other)
    box = [Other()]
    return lambda: 1.0 if isinstance(box[0], Base) else 3.0, lambda: box.__setitem__(0, 1.0)


@key
def question_under_another_name():
    class Par:
        pass

    ask = hasattr
    return lambda: 3.0 if ask(Par, "k") else 1.0, lambda: setattr(Par, "k", 2.0)


@key
def order_of_a_set():
    numbers = {8, 0}

    def change():
        numbers.clear()
        numbers.add(0)
        numbers.add(8)

    return lambda: 1.0 if next(iter(numbers)) == 8 else 3.0, change


@key
def member_of_numpy():
    np.k_of_a_test = 1.0
    return lambda: np.k_of_a_test, lambda: setattr(np, "k_of_a_test", 3.0)


@key
def matched_by_pattern():
    @dataclass
    class Point:
        x: float
        k: typing.ClassVar = 1.0

    point = Point(0.0)

    def rate():
        match point:
            case Point(k=found):
                return found

    return rate, lambda: setattr(Point, "k", 3.0)


@key
def positions_of_a_pattern():
    class Point:
        __match_args__ = ("x",)
        x, y = 1.0, 3.0

    point = Point()

    def rate():
        match point:
            case Point(found):
                return found

    return rate, lambda: setattr(Point, "__match_args__", ("y",))


@key
def by_format():
    class Par:
        k = 1.0

    par = Par()
    return lambda: float("{.k}".format(par)), lambda: setattr(Par, "k", 3.0)  # noqa: UP032


@key
def partial_attribute():
    call = functools.partial(abs)
    call.k = 1.0
    return lambda: call.k, lambda: setattr(call, "k", 3.0)


@key
def cached_closure():
    table = [1.0]

    @functools.cache
    def rate(x):
        return table[0]

    def change():
        table[0] = 3.0
        rate.cache_clear()

    return lambda: rate(1), change


@key
def errstate_decorator():
    table = [1.0]

    @np.errstate(all="ignore")
    def rate():
        return table[0]

    return rate, lambda: table.__setitem__(0, 3.0)


@key
def vectorised():
    table = [1.0]
    rate = np.vectorize(lambda x: table[0] * x)
    return lambda: rate(1.0) * 1.0, lambda: table.__setitem__(0, 3.0)


@key
def universal_function():
    table = [1.0]
    rate = np.frompyfunc(lambda x: table[0] * x, 1, 1)
    return lambda: rate(1.0), lambda: table.__setitem__(0, 3.0)


@key
def polynomial():
    line = Polynomial([1.0, 0.0])
    return lambda: line(0.0), lambda: line.coef.__setitem__(0, 3.0)


@key
def spline():
    curve = CubicSpline([0.0, 1.0, 2.0], [1.0, 1.0, 1.0])
    return lambda: curve(0.5), lambda: curve.c.__setitem__((-1, 0), 3.0)


@key
def sparse_matrix():
    matrix = scipy.sparse.csr_array([[1.0]])
    return lambda: (matrix @ np.ones(1))[0], lambda: matrix.data.fill(3.0)


@key
def array_of_objects():
    table = np.array([[1.0], None], dtype=object)
    return lambda: table[0][0], lambda: table[0].__setitem__(0, 3.0)


@key
def key_of_a_dictionary():
    class Par:
        k = 1.0

    table = {Par(): 2.0}
    return lambda: next(iter(table)).k, lambda: setattr(next(iter(table)), "k", 3.0)


@key
def package(name="package_of_a_key_test"):
    import sys

    outer, inner = types.ModuleType(name), types.ModuleType(f"{name}.inner")
    outer.k, outer.inner = 1.0, inner
    sys.modules |= {name: outer, f"{name}.inner": inner}

    def rate():
        import package_of_a_key_test.inner

        return package_of_a_key_test.k

    return rate, lambda: setattr(outer, "k", 3.0)


@key
def library_constant():
    import scipy.constants

    scipy.constants.k_of_a_test = 1.0
    return (lambda: scipy.constants.k_of_a_test,
            lambda: setattr(scipy.constants, "k_of_a_test", 3.0))


@key
def global_of_a_method_of_a_base():
    space = {"k": 1.0}
    exec("class Base:\n    def rate(self):\n        return k\n", space)
    thing = type("Derived", (space["Base"],), {})()
    return lambda: thing.rate(), lambda: space.update(k=3.0)


@key
def attribute_of_a_function_in_a_class():
    class Thing:
        def rate(self):
            return Thing.rate.k

    Thing.rate.k = 1.0
    thing = Thing()
    return lambda: thing.rate(), lambda: setattr(Thing.rate, "k", 3.0)
