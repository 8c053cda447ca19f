"""What tracing understands stays traced, and what its key must contain is in it.

State itself is the matter of test_state.py.
"""

import collections
import contextlib
import copy
import dataclasses
import functools
import itertools
import math
import operator
import types
from fractions import Fraction

import numpy as np
import pytest
import scipy.constants
import scipy.special
from numpy.polynomial import Polynomial
from support.known_classes import (
    Child,
    Count,
    Derived,
    Described,
    Diamond,
    Exotic,
    Frozen,
    Getter,
    Holder,
    Kilo,
    Lazy,
    Level,
    Mode,
    Option,
    Ordered,
    Pair,
    Par,
    Planet,
    Plugin,
    Point,
    Rates,
    Right,
    Slotted,
    Table,
    Tested,
    Threaded,
    Triple,
    Vector,
)

from tether import solve_dae
from tether.trace import cache_key, evaluate, trace

KNOWN = []


def known(fun):
    """Register a rate: a function of x that is traced."""
    KNOWN.append(fun)
    return fun


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
