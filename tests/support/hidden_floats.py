"""Places outside `args` from which a function may read a float, and how to write to them.

Every maker returns (fun, write): a residual of y' = -k y + c, and a function that sets k.
"""

import collections
import dataclasses
import functools
import sys
import types
from typing import NamedTuple

import numpy as np

RATE = 1.0


def closure():
    k = 1.0

    def fun(t, y, yp):
        return [yp[0] + k * y[0]]

    def write(value):
        nonlocal k
        k = value

    return fun, write


def shared_closure():
    k = 1.0

    def rate(y):
        return k * y

    def fun(t, y, yp):
        return [yp[0] + 0.5 * rate(y[0]) + 0.5 * k * y[0]]

    def write(value):
        nonlocal k
        k = value

    return fun, write


def global_variable():
    def fun(t, y, yp):
        return [yp[0] + RATE * y[0]]

    def write(value):
        global RATE
        RATE = value

    return fun, write


def member_of_a_module():
    module = types.ModuleType("settings_of_a_test")
    sys.modules[module.__name__] = module
    module.k = 1.0

    def fun(t, y, yp):
        return [yp[0] + module.k * y[0]]

    return fun, functools.partial(setattr, module, "k")


def element_of_a_list():
    k = [1.0]

    def fun(t, y, yp):
        return [yp[0] + k[0] * y[0]]

    return fun, functools.partial(k.__setitem__, 0)


def nested_list():
    k = [[0.0, 2.0], [3.0, 1.0]]
    other = k[1]                               # the same list, reached twice

    def fun(t, y, yp):
        return [yp[0] + (k[1][1] + other[1] + k[0][0]) / 2.0 * y[0]]

    return fun, functools.partial(other.__setitem__, 1)


def value_of_a_dictionary():
    k = {"one": 1.0, "k": 1.0}

    def fun(t, y, yp):
        return [yp[0] + k["one"] * k["k"] * y[0]]

    return fun, functools.partial(k.__setitem__, "k")


def default_dictionary():
    k = collections.defaultdict(float, {2.0: 1.0, "k": 1.0})

    def fun(t, y, yp):
        return [yp[0] + k["k"] * y[0]]

    return fun, functools.partial(k.__setitem__, "k")


def deque():
    k = collections.deque([5.0, 1.0], maxlen=2)

    def fun(t, y, yp):
        return [yp[0] + k[1] * y[0]]

    return fun, k.append


def attribute():
    class Model:
        def __init__(self):
            self.k = 1.0

        def fun(self, t, y, yp):
            return [yp[0] + self.k * y[0]]

    model = Model()
    return model.fun, functools.partial(setattr, model, "k")


def slot():
    class Model:
        __slots__ = ("k",)

        def fun(self, t, y, yp):
            return [yp[0] + self.k * y[0]]

    model = Model()
    model.k = 1.0
    return model.fun, functools.partial(setattr, model, "k")


def class_attribute():
    class Model:
        k = 1.0

        def fun(self, t, y, yp):
            return [yp[0] + self.k * y[0]]

    return Model().fun, functools.partial(setattr, Model, "k")


def attribute_behind_a_property():
    class Model:
        _k = 1.0

        @property
        def k(self):
            return 2.0 * self._k

        def fun(self, t, y, yp):
            return [yp[0] + self.k / 2.0 * y[0]]

    model = Model()
    return model.fun, functools.partial(setattr, model, "_k")


def namespace():
    k = types.SimpleNamespace(k=1.0)

    def fun(t, y, yp):
        return [yp[0] + k.k * y[0]]

    return fun, functools.partial(setattr, k, "k")


def attribute_of_a_function():
    def fun(t, y, yp):
        return [yp[0] + fun.k * y[0]]

    fun.k = 1.0
    return fun, functools.partial(setattr, fun, "k")


def default_of_a_function():
    def fun(t, y, yp, k=1.0, *, one=1.0):
        return [yp[0] + one * k * y[0]]

    def write(value):
        fun.__defaults__ = (value,)

    return fun, write


@dataclasses.dataclass
class Parameters:
    one: float = 1.0
    k: float = 1.0


class Record(NamedTuple):
    one: float
    k: float


def new_object():
    holder = [Parameters()]

    def fun(t, y, yp):
        return [yp[0] + holder[0].one * holder[0].k * y[0]]

    def write(value):
        holder[0] = Parameters(k=value)

    return fun, write


def new_record():
    holder = [Record(1.0, 1.0)]

    def fun(t, y, yp):
        one, k = holder[0]
        return [yp[0] + one * k * y[0]]

    def write(value):
        holder[0] = Record(1.0, value)

    return fun, write


def array():
    k = np.array([[2.0, 0.0], [1.0, 3.0]])

    def fun(t, y, yp):
        return [yp[0] + k[1, 0] * y[0] + k[0, 1]]

    return fun, functools.partial(k.__setitem__, (1, 0))


def array_as_a_whole():
    k = np.array([0.5, 0.0, 0.5])

    def fun(t, y, yp):
        return [yp[0] + np.sum(k) * y[0] + (k @ np.array([1.0, 2.0, -1.0]))]

    def write(value):
        k[::2] = 0.5 * value

    return fun, write


def array_by_columns():
    k = np.asfortranarray([[2.0, 0.0, 4.0], [1.0, 3.0, 5.0]])

    def fun(t, y, yp):
        return [yp[0] + k.ravel()[3] * y[0]]

    return fun, functools.partial(k.__setitem__, (1, 0))


def views_of_one_array():
    k = np.array([1.0, 7.0])
    half = k[:1]

    def fun(t, y, yp):
        return [yp[0] + (half[0] + k[0]) / 2.0 * y[0]]

    return fun, functools.partial(k.__setitem__, 0)


def number_of_numpy():
    holder = {"k": np.float64(1.0)}

    def fun(t, y, yp):
        return [yp[0] + holder["k"] * y[0]]

    def write(value):
        holder["k"] = np.float64(value)

    return fun, write


def partial_function():
    k = [1.0]

    def inner(k, t, y, yp, one):
        return [yp[0] + one * k[0] * y[0]]

    return functools.partial(inner, k, one=1.0), functools.partial(k.__setitem__, 0)


MAKERS = [
    closure, shared_closure, global_variable, member_of_a_module, element_of_a_list, nested_list,
    value_of_a_dictionary, default_dictionary, deque, attribute, slot, class_attribute,
    attribute_behind_a_property, namespace, attribute_of_a_function, default_of_a_function,
    new_object, new_record, array, array_as_a_whole, array_by_columns, views_of_one_array,
    number_of_numpy, partial_function,
]
