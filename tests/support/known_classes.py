"""Classes of every kind, for functions that are traced."""

import abc
import collections
import enum
import functools
import itertools
import math
import threading
import typing
import unittest
from dataclasses import dataclass, field


class Par:
    g = 9.81
    table: typing.ClassVar = {"k": [1.0, 2.0]}


class Base(abc.ABC):
    scale = 2.0

    def __init__(self, k):
        self.k = k

    @abc.abstractmethod
    def rate(self, x): ...

    @property
    def twice(self):
        return 2 * self.k

    def common(self, x):
        return self.scale * math.sin(x)


class Derived(Base):
    def __init__(self, k):
        super().__init__(k)
        self.extra = [0.5]

    def rate(self, x):
        return self.k * math.exp(-x) + super().common(x) + self.twice + self.extra[0]

    @classmethod
    def of(cls, k):
        return cls(k)

    @staticmethod
    def square(x):
        return x * x


class Left(Base):
    def rate(self, x):
        return 1.0 + super().common(x)


class Right(Base):
    def common(self, x):
        return 3.0 * super().common(x)

    def rate(self, x):
        return 0.0


class Diamond(Left, Right):
    def rate(self, x):
        return 2.0 * super().rate(x)


class Vector:
    __slots__ = ("x", "y")

    def __init__(self, x, y):
        self.x, self.y = x, y

    def __add__(self, other):
        return Vector(self.x + other.x, self.y + other.y)

    def __rmul__(self, factor):
        return Vector(factor * self.x, factor * self.y)

    def __matmul__(self, other):
        return self.x * other.x + self.y * other.y

    def __iter__(self):
        yield self.x
        yield self.y

    def __eq__(self, other):
        return type(self) is type(other) and self.x == other.x

    __hash__ = None


class Mode(enum.Enum):
    SLOW = 1
    FAST = 2

    @property
    def rate(self):
        return 3.0 if self is Mode.FAST else 1.0


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Option(enum.Flag):
    A = enum.auto()
    B = enum.auto()


class Planet(enum.Enum):
    EARTH = (5.97, 6.37)
    MARS = (0.64, 3.39)

    def __init__(self, mass, radius):
        self.mass, self.radius = mass, radius

    def gravity(self):
        return self.mass / self.radius**2


@dataclass(frozen=True)
class Frozen:
    k: float = 2.0
    table: tuple = (1.0, 2.0)

    def rate(self, x):
        return self.k * x + self.table[1]


@dataclass(slots=True)
class Slotted:
    k: float
    rates: list = field(default_factory=lambda: [1.0])

    def rate(self, x):
        return self.k * x * self.rates[0]


@dataclass
class Child(Frozen.__base__):
    inner: Slotted = field(default_factory=lambda: Slotted(2.0))
    total: typing.ClassVar = 1.5


class Point(typing.NamedTuple):
    x: float
    y: float = 2.0

    def norm(self):
        return math.hypot(self.x, self.y)


Pair = collections.namedtuple("Pair", "a b")


class Tested(unittest.TestCase):
    k = 2.0

    def rate(self, x):
        return self.k * x


class Threaded(threading.Thread):
    def __init__(self, k):
        super().__init__()
        self.k = k

    def rate(self, x):
        return self.k * math.sin(x)


class Getter:
    def __init__(self, values):
        self.__dict__["_values"] = values

    def __getattr__(self, name):
        try_values = object.__getattribute__(self, "_values")
        if name in try_values:
            return try_values[name]
        raise AttributeError(name)


class Positive:
    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, instance, owner):
        return getattr(instance, self.name)

    def __set__(self, instance, value):
        setattr(instance, self.name, abs(value))


class Described:
    k = Positive()

    def __init__(self, k):
        self.k = k


class Table(collections.abc.Mapping):
    def __init__(self, data):
        self.data = data

    def __getitem__(self, key):
        return self.data[key]

    def __iter__(self):
        return iter(self.data)

    def __len__(self):
        return len(self.data)


T = typing.TypeVar("T")


class Holder(typing.Generic[T]):
    def __init__(self, value):
        self.value = value


class Hooked:
    registry: typing.ClassVar = []

    def __init_subclass__(cls, **options):
        cls.registry.append(cls)


class Plugin(Hooked):
    k = 2.0

    def rate(self, x):
        return self.k * x


class Kilo(float):
    """A number with a unit that nobody calculates with."""

    unit = "kg"


class Rates(list):
    name = "rates"


class Count(int):
    pass


class Triple(tuple):
    def total(self):
        return sum(self)


class Lazy:
    def __init__(self):
        self.k = 2.0

    @functools.cached_property
    def table(self):
        return [self.k, 3.0]

    @functools.lru_cache  # noqa: B019
    def scale(self, n):
        return n * self.k


@functools.total_ordering
class Ordered:
    def __init__(self, k):
        self.k = k

    def __eq__(self, other):
        return self.k == other.k

    def __lt__(self, other):
        return self.k < other.k


class Exotic:
    """Has members that tracing does not know, and one that it does."""

    stream = open
    lock = __import__("threading").Lock()
    numbers = itertools.count()

    def rate(self, x):
        return 2.0 * x

    def report(self):
        print(next(self.numbers), self.lock)
