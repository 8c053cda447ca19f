"""What tracing understands stays traced, and what its key must contain is in it.

State itself is the matter of test_state.py.
"""

import abc
import collections
import contextlib
import copy
import dataclasses
import enum
import functools
import itertools
import linecache
import math
import operator
import threading
import types
import typing
import unittest
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import pytest
import scipy.constants
import scipy.special
from numpy.polynomial import Polynomial

from tether import analyze, solve_dae
from tether.trace import TraceFailure, cache_key, evaluate, trace
from tether.trace.code import facts_of

pytestmark = pytest.mark.usefixtures("nothing_is_known")


KNOWN = []


def known(fun):
    """Register a rate: a function of x that is traced."""
    KNOWN.append(fun)
    return fun


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


@functools.cache
def constants():
    return {"k": 2.0, "table": np.array([1.0, 2.0])}


def logged(function):
    @functools.wraps(function)
    def wrapper(*args, **options):
        return function(*args, **options)

    return wrapper


@logged
def decorated(x):
    return math.sin(x)


@np.errstate(all="ignore")
def quiet(x):
    return np.sqrt(x)


DERIVED, DIAMOND, LAZY, EXOTIC = Derived(0.3), Diamond(0.3), Lazy(), Exotic()
_ = LAZY.table
SHIFT, MODE, OPTION = Vector(1.0, 2.0), Mode.FAST, Option.A | Option.B
BY_MODE = {Mode.SLOW: 1.0, Mode.FAST: 2.0}
FROZEN, SLOTTED, CHILD = Frozen(), Slotted(2.0, [3.0]), Child()
TESTED, THREADED = Tested(), Threaded(2.0)
GETTER, DESCRIBED = Getter({"k": 2.0}), Described(-2.0)
CHAIN = collections.ChainMap({"a": 1.0}, {"b": 2.0})
COUNTER = collections.Counter("abca")
USER_DICT = collections.UserDict(k=2.0)
DEFAULTS = collections.defaultdict(float, {"k": 2.0})
POLYNOMIAL, POLY1D = Polynomial([1.0, 2.0, 3.0]), np.poly1d([1.0, 2.0])
MASS, RATES, COUNT, TRIPLE = Kilo(2.0), Rates([1.0, 2.0]), Count(3), Triple((1.0, 2.0, 3.0))
COUNT.unit = TRIPLE.unit = 2.0
OBJECTS = np.array([1.0, 2.0], dtype=object)
FORTRAN = np.asfortranarray(np.arange(6.0).reshape(2, 3))
KIND, LARGEST = float, max
GENERIC = Holder[float](2.0)
TABLE = Table({"k": 2.0})
SPACE = types.SimpleNamespace(k=2.0, inner=types.SimpleNamespace(table=[1.0, 2.0]))
FROZEN_SET = frozenset({1.0, 2.0})


@known
def class_constants(x):
    return Par.g * x + Par.table["k"][1]


@known
def inheritance_and_super(x):
    return DERIVED.rate(x) + Derived.of(0.5).rate(x) + Derived.square(x)


@known
def diamond(x):
    return DIAMOND.rate(x) + isinstance(DIAMOND, Right) + isinstance(DIAMOND, Derived)


@known
def own_operators(x):
    v = x * SHIFT + Vector(x, x * x)
    a, b = v
    return v @ SHIFT + a * b + (Vector(1.0, 0.0) == SHIFT)


@known
def enumerations(x):
    return x * MODE.rate + BY_MODE[MODE] + Mode["SLOW"].value + Mode(2).rate + len(Mode)


@known
def integer_enumerations(x):
    return x * Level.HIGH + [1.0, 2.0, 3.0][Level.LOW] + (Level.HIGH > Level.LOW)


@known
def flags(x):
    return x * (2.0 if Option.A in OPTION else 1.0) + (OPTION & Option.B is Option.B)


@known
def enumerations_with_attributes(x):
    return x * Planet.EARTH.gravity() + sum(p.mass for p in Planet)


@known
def matching(x):
    match MODE:
        case Mode.SLOW:
            rate = 1.0
        case Mode.FAST:
            rate = 2.0
    match FROZEN:
        case Frozen(k=k):
            rate = rate * k
    match [x, 1.0]:
        case [a, b]:
            return a * rate + b


@known
def data_classes(x):
    other = dataclasses.replace(FROZEN, k=x)
    return FROZEN.rate(x) + SLOTTED.rate(x) + CHILD.inner.rate(x) * CHILD.total + other.rate(2.0)


@known
def data_classes_made_inside(x):
    return Frozen(k=x).rate(x) + Slotted(x).rate(x) + Child().inner.k


@known
def named_tuples(x):
    return Point(x).norm() + Pair(x, 2.0).b + Point(x)._replace(y=x).y + Pair._make([x, 1.0]).a


@known
def attributes_by_hand(x):
    return GETTER.k * x + DESCRIBED.k + getattr(SPACE, "k") + hasattr(SPACE, "missing")  # noqa: B009


@known
def mappings(x):
    total = CHAIN["a"] + CHAIN["b"] + COUNTER["a"] + USER_DICT["k"] + DEFAULTS["k"]
    return total * x + TABLE.get("k") + TABLE.get("missing", 1.0) + sum(TABLE.values())


@known
def numbers_with_attributes(x):
    total = COUNT * COUNT.unit + TRIPLE.total() * TRIPLE.unit + TRIPLE[1]
    return MASS * x + (MASS.unit == "kg") + sum(RATES) + (RATES.name == "rates") + total


@known
def namespaces(x):
    return SPACE.k * x + SPACE.inner.table[1]


@known
def caches(x):
    return LAZY.table[1] * x + LAZY.scale(2) + constants()["k"] * constants()["table"][1]


@known
def comparisons(x):
    return x * (Ordered(1.0) <= Ordered(2.0)) + (Ordered(3.0) > Ordered(2.0))


@known
def members_nobody_uses(x):
    return EXOTIC.rate(x)


@known
def subclass_that_was_announced(x):
    return Plugin().rate(x)


@known
def classes_derived_from_the_library(x):
    return TESTED.rate(x) + THREADED.rate(x)


@known
def generic_classes(x):
    return GENERIC.value * x


@known
def decorators(x):
    return decorated(x) + quiet(x)


@known
def error_state(x):
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.sqrt(x) / x


@known
def null_context(x):
    with contextlib.nullcontext():
        return 2.0 * x


@known
def polynomials(x):
    return POLYNOMIAL(x) + POLY1D(x)


@known
def library_functions(x):
    total = functools.reduce(operator.add, [x, 2.0, 3.0])
    pairs = list(itertools.chain([x], itertools.repeat(1.0, 2)))
    return total + sum(pairs) + scipy.constants.g + scipy.special.gamma(3.0)


@known
def copies(x):
    table = copy.deepcopy(SPACE)
    table.k = x
    other = copy.copy(RATES)
    other.append(x)
    return table.k + sum(other) + copy.deepcopy([x, [x]])[1][0]


@known
def local_state(x):
    class Local:
        total = 0.0

        def add(self, value):
            self.total = self.total + value

    local, log, count = Local(), [], itertools.count(1)
    local.add(x)
    log.append(local.total * next(count))
    Local.scale = 2.0
    return log[0] * local.scale


@known
def generators(x):
    def numbers():
        yield x
        got = yield 2.0
        yield got

    each = numbers()
    return next(each) * next(each) + each.send(3.0)


@known
def arrays(x):
    return OBJECTS[1] * x + FORTRAN.sum() + FORTRAN[1, 2] + sum(FROZEN_SET)


@known
def types_by_name(x):
    return KIND(x) * LARGEST(x, 0.5)


@known
def partial_functions(x):
    return functools.partial(math.pow, x)(2.0) + functools.partial(pow, exp=2)(x)


@known
def fractions(x):
    return x * float(Fraction(1, 3))


@known
def star_arguments(x):
    def total(first, *rest, scale=1.0, **more):
        return (first + sum(rest)) * scale + sum(more.values())

    return total(x, *[1.0, 2.0], scale=2.0, **{"a": x})


@known
def closures_that_share(x):
    count = 0.0

    def add(value):
        nonlocal count
        count = count + value

    add(x)
    add(2.0)
    return count


@known
def recursion(x):
    def power(n):
        return 1.0 if n == 0 else x * power(n - 1)

    return power(3)


@known
def deleted_names(x):
    values = [x, 2.0]
    del values[0]
    y = x
    del x
    return y + values[0]


@pytest.mark.parametrize("rate", KNOWN, ids=lambda rate: rate.__name__)
def test_what_is_known_is_traced(rate):
    def fun(t, y, yp):
        return [yp[0] + rate(y[0]), yp[1] - y[1] * rate(y[1] + 0.5)]

    program = trace(fun, 2).program()
    for y in np.random.default_rng(1).uniform(0.3, 1.0, (5, 2)):
        np.testing.assert_allclose(
            evaluate(program, 0.0, y, [1.0, 2.0]), fun(0.0, y, [1.0, 2.0]), rtol=1e-13
        )
    assert cache_key(fun, 2) == cache_key(fun, 2)
    assert hash(cache_key(fun, 2)) == hash(cache_key(fun, 2))
    assert solve_dae(fun, (0.0, 1e-3), [0.5, 0.6], trace="always").success


# --- wrappers ---------------------------------------------------------------------------------


class Limiter:
    """A wrapper that says so, and does more than what it wraps."""

    def __init__(self, function):
        functools.update_wrapper(self, function)
        self.function = function

    def __call__(self, *args):
        (value,) = self.function(*args)
        return [value + 2.0]


def plain(t, y, yp):
    return [yp[0] - y[0]]


def limited(function):
    @functools.wraps(function)
    def wrapper(t, y, yp):
        return [function(t, y, yp)[0] + 2.0]

    return wrapper


class Named:
    py_func = staticmethod(plain)
    __wrapped__ = staticmethod(plain)

    def __call__(self, t, y, yp):
        return [yp[0] - y[0] + 2.0]


@pytest.mark.parametrize("make", [Limiter, limited, lambda fun: Named(),
                                  lambda fun: functools.partial(limited(fun))],
                         ids=["object", "function", "names", "partial"])
def test_a_wrapper_is_what_runs(make):
    fun = make(plain)
    sol = solve_dae(fun, (0, 1), [1.0])
    assert sol.how.startswith("traced")
    assert sol.y[0, -1] == pytest.approx(2.0 - math.e, rel=1e-3)


# --- context managers -------------------------------------------------------------------------


class Swallows:
    def __enter__(self):
        return self

    def __exit__(self, kind, value, where):
        return True


@contextlib.contextmanager
def swallowing():
    with contextlib.suppress(ValueError):
        yield


@contextlib.contextmanager
def passing():
    yield


SUPPRESS = contextlib.suppress(ValueError)


def by_suppress(x):
    with contextlib.suppress(ValueError):
        return math.sqrt(x)
    return 0.0


def by_suppress_from_outside(x):
    with SUPPRESS:
        return math.sqrt(x)
    return 0.0


def by_class(x):
    with Swallows():
        return math.sqrt(x)
    return 0.0


def by_generator(x):
    with swallowing():
        return math.sqrt(x)
    return 0.0


def by_stack(x):
    with contextlib.ExitStack() as stack:
        stack.enter_context(SUPPRESS)
        return math.sqrt(x)
    return 0.0


def by_exception_group(x):
    value = 0.0
    try:
        value = math.sqrt(x)
    except* ValueError:
        value = 0.0
    return value


def by_bare_except_inside_with(x):
    with np.errstate(all="ignore"):
        try:
            return math.sqrt(x)
        except:  # noqa: E722
            return 0.0


@pytest.mark.parametrize(
    "root",
    [by_suppress, by_suppress_from_outside, by_class, by_generator, by_stack, by_exception_group,
     by_bare_except_inside_with],
    ids=lambda root: root.__name__,
)
def test_contexts_that_swallow_exceptions_are_not_traced(root):
    def fun(t, y, yp):
        return [yp[0] + 1.0 + root(0.5 - t)]

    with pytest.raises(TraceFailure) as caught:
        trace(fun, 1)
    assert caught.value.line is not None
    ends = [solve_dae(fun, (0, 1), [1.0], trace=how, max_step=0.01).y[0, -1]
            for how in ("never", "auto")]
    assert ends[0] == ends[1] == pytest.approx(-(0.5**1.5) * 2 / 3, abs=1e-3)


# --- source that does not match ----------------------------------------------------------------

SOURCES = {
    "empty": "",
    "unclosed": "def fun(t, y, yp):\n    return [yp[0] + (y[0]\n",
    "dedent": "  def fun(t, y, yp):\n      x = y[0]\n    return [yp[0] + x]\n",
    "quotes": 'def fun(t, y, yp):\n    x = """\n    return [yp[0] + y[0]]\n',
    "another": "class Other:\n    pass\n",
    "short": "x = 1\n",
    "text": "\x00\x01 not Python at all ((( \\\n",
    "lambda": "fun = (lambda t, y, yp: [yp[0] +\n   y[0]],\n",
    "tabs": "if 1:\n\tdef fun(t, y, yp):\n        x = y[0]\n\treturn [x]\n",
    "surrogate": "def fun(t, y, yp):\n    x = '\udc80'; return [yp[0] + y[0]]\n",
}


@pytest.mark.parametrize("text", SOURCES.values(), ids=SOURCES)
@pytest.mark.parametrize("refused", [False, True], ids=["traced", "refused"])
def test_any_source_may_stand_in_the_file(text, refused):
    """As after edits of a file or a notebook, and for text that was executed."""
    name = f"/nowhere/{abs(hash(text))}.py"
    body = "    return [yp[0] + float(str(y[0]))]" if refused else "    return [yp[0] + y[0]]"
    space = {}
    exec(compile(f"\n\ndef fun(t, y, yp):\n    x = 1\n{body}", name, "exec"), space)
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    try:
        found = analyze(space["fun"], 0.0, [1.0])
        assert str(found)
        sol = solve_dae(space["fun"], (0, 1), [1.0], trace="auto")
        assert sol.success
        assert sol.how.startswith("called" if refused else "traced")
        with contextlib.suppress(TraceFailure):
            assert len(trace(space["fun"], 1).names) == 1
    finally:
        del linecache.cache[name]


# --- caches by code ---------------------------------------------------------------------------


def test_what_is_known_of_code_is_forgotten_with_it():
    from tether.trace import cache, code

    def sizes():
        return len(code._facts), len(code._living), len(cache._hopeless)

    much = [[float(i)] for i in range(20_000)]
    before = sizes()
    for i in range(50):
        space = {"much": much if i % 2 else 1.0}
        exec(f"def fun(t, y, yp):\n    return [yp[0] + y[0] * {i} + (much is None)]", space)
        assert (cache_key(space["fun"], 1) is None) == bool(i % 2)
        assert "much" in facts_of(space["fun"].__code__).names
        space.clear()
    assert all(now <= then for now, then in zip(sizes(), before, strict=True))
