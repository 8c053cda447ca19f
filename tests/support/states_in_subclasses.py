"""Places in what is derived from the types of Python and NumPy where a function can keep state.

Each maker returns what switches something on, and what tells whether it is on.
"""

import collections
import typing

import numpy as np

from support.places import Places

STATES = Places()
state = STATES.add


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
    Point = collections.namedtuple("Point", "x y")

    def on():
        Point.flag = True

    return on, lambda: hasattr(Point, "flag")


@state
def list_in_a_named_tuple():
    class Point(typing.NamedTuple):
        x: list

    point = Point([])
    return lambda: point.x.append(1), lambda: bool(point.x)
