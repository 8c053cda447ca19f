"""Places in instances, their slots, properties and operators where a function can keep state.

Each maker returns what switches something on, and what tells whether it is on.
"""

import types
import typing

from support.places import Places

STATES = Places()
state = STATES.add


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
