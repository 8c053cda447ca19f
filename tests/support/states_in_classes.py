"""Places in classes, enumerations and data classes where a function can keep state.

Each maker returns what switches something on, and what tells whether it is on.
"""

import abc
import enum
import logging
import typing
import unittest
from dataclasses import dataclass, field

from support.places import Places

STATES = Places()
state = STATES.add


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
        A = []  # noqa: RUF012

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
def class_derived_from_the_library():
    class Switch(unittest.TestCase):
        flag = False

        def on(self):
            self.flag = True

    thing = Switch()
    return lambda: thing.on(), lambda: thing.flag


@state
def method_of_the_library():
    class Switch(logging.Handler):
        log: typing.ClassVar = []

        def emit(self, record):
            self.log.append(record)

    thing = Switch()
    return lambda: thing.handle(logging.makeLogRecord({})), lambda: bool(Switch.log)


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
