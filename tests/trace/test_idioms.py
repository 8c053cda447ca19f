"""Ways to write a residual: each is traced exactly or refused with its line, never wrong."""

import enum
import functools
import inspect
import math
import os
import random
import sys
import time
from collections import namedtuple
from dataclasses import dataclass
from math import exp, sin

import numpy as np
import pytest
import scipy.sparse
import scipy.special
from numpy import cos, zeros
from scipy.interpolate import CubicSpline, PPoly

from tether import Problem, analyze, solve_dae
from tether.problem.problem import prepared
from tether.trace import TraceFailure, evaluate, trace, verify

GRAVITY = 9.81
MATRIX = np.array([[2.0, -1.0, 0.0], [0.5, 3.0, 1.0], [0.0, 0.25, 1.5]])
SPARSE = scipy.sparse.csr_matrix(MATRIX)
TABLE = ([-1.0, 0.0, 0.4, 2.0], [0.3, 1.0, -0.5, 0.0])
SETTINGS = {"rate": 0.7, "rates": [1.0, 2.0, 3.0]}
Point = namedtuple("Point", "x y")
counter = 0
log = []
buffer = np.zeros(3)
generator = np.random.default_rng(1)
SPLINE = CubicSpline([0.0, 1.0, 2.0, 3.0], [0.0, 2.0, 1.0, 4.0])


# --- traced: every function has three unknowns, all near one half -------------------------------


def unpacking(t, y, yp):
    x, z, lam = y
    return [yp[0] - z, yp[1] + lam * x + GRAVITY, x * x + z * z - 1.21]


def zeros_then_fill(t, y, yp):
    out = np.zeros(3)
    out[0] = yp[0] + np.sin(y[1])
    out[1:] = yp[1:] - y[:2] * y[2]
    return out


def empty_like_then_fill(t, y, yp):
    out = np.empty_like(y)
    for i in range(3):
        out[i] = yp[i] * math.exp(-y[i])
    return out


def array_of_list(t, y, yp):
    return np.array([yp[0] + y[1], yp[1] * y[2], math.cos(t) - y[0]])


def matrix_product(t, y, yp):
    return MATRIX @ yp + MATRIX.T.dot(y) * np.sin(t)


def sparse_product(t, y, yp):
    return yp + SPARSE @ (y * y) + SPARSE.T.dot(y)


def ufuncs_on_arrays(t, y, yp):
    return yp + np.exp(-y) * np.tanh(y) + np.sqrt(y) / np.log1p(y) - np.arctan2(y, 1 + y**2)


def list_comprehension(t, y, yp):
    return [dy + sin(x) * exp(x) + cos(x) for x, dy in zip(y, yp, strict=True)]


def where(t, y, yp):
    return yp + np.where(y > 0.5, y**2, 0.25 * np.sqrt(y))


def where_with_t(t, y, yp):
    return [yp[0] - np.where(t < 0.5, y[1], 2.0), yp[1], y[2] - np.heaviside(y[0] - 0.5, 0.5)]


def plain_if(t, y, yp):
    flow = y[0] - y[1]
    if flow > 0:  # noqa: SIM108
        flow = math.sqrt(flow)
    else:
        flow = -math.sqrt(-flow)
    return [yp[0] + flow, yp[1] - flow, y[2] - flow]


def nested_if(t, y, yp):
    if y[0] > 0.5 and y[1] > 0.5:
        rate = y[0] * y[1]
    elif y[0] > 0.5 or not y[2] > 0.5:
        rate = y[0]
    else:
        rate = y[1] ** 3
    return [yp[0] + rate, yp[1], yp[2] - rate * (1.0 if 0.4 < y[0] < 0.6 else 2.0)]


def if_on_an_argument(t, y, yp, k):
    if k > 1:
        return [yp[0] + k * y[0], yp[1], yp[2]]
    return [yp[0] - k * y[0], yp[1] * k, yp[2]]


def builtin_min_max_abs_sum(t, y, yp):
    total = sum(y) + sum(v * v for v in yp)
    return [min(y[0], y[1]) + abs(yp[0]), max(y[0], 0.5, y[2]) + yp[1], total + yp[2]]


def maximum_minimum_clip(t, y, yp):
    return yp + np.maximum(y, 0.5) - np.minimum(y[::-1], 0.4) + np.clip(y, 0.45, 0.55)


def norm_and_dot(t, y, yp):
    r = np.linalg.norm(y)
    return yp + y / r**3 - np.dot(y, yp) * np.cross(y, yp)


def linear_solve(t, y, yp):
    mass = np.array([[2 + y[0], y[1], 0.0], [y[1], 3.0, 1.0], [0.0, 1.0, 4 + y[2]]])
    return yp - np.linalg.solve(mass, -y) + np.linalg.inv(mass) @ y * np.linalg.det(mass)


def joined_parts(t, y, yp):
    parts = np.concatenate([yp[:1] + y[1], np.hstack([y[0] * y[2], 1.0 - y[1]])])
    return np.roll(np.stack([parts, 2 * parts])[1], 1) + np.diff(np.append(y, t))


def sums_and_products(t, y, yp):
    return yp + np.cumsum(y) + np.prod(y) + y.mean() + np.outer(y, yp).sum(axis=0) + y.max()


def einsum(t, y, yp):
    return np.einsum("ij,j,i->i", MATRIX, y, yp) - np.einsum("i,i", y, y)


def interp(t, y, yp):
    return [yp[0] + np.interp(y[0], *TABLE), yp[1] - np.interp(t, *TABLE), yp[2] + y[2]]


def reshape_and_broadcast(t, y, yp):
    table = y[:, None] - y[None, :] + np.eye(3)
    table.flat[::4] = 1.0
    return yp.reshape(3, 1).ravel() + (1.0 / (2.0 + table)).sum(1)


def mask_assignment(t, y, yp):
    rate = y * y
    rate[y > 0.5] = 0.25
    return yp + rate


def float_calls(t, y, yp):
    x = float(y[0])
    speed = np.float64(yp[0])
    return [speed + x, float(yp[1]) * x, np.asarray(y, dtype=float)[2] + y.astype(float)[1]]


def powers(t, y, yp):
    return [yp[0] ** 3 + y[0] ** -2, yp[1] + y[1] ** 0.5 + 2 ** y[0], yp[2] - y[2] ** y[1] ** 1.5]


def remainders(t, y, yp):
    return [yp[0] + (7 * y[0]) % 1.3, yp[1] - (5 * y[1]) // 2, yp[2] + math.fmod(-3 * y[2], 1.0)]


def special_functions(t, y, yp):
    return [yp[0] + math.erf(y[0]), yp[1] + scipy.special.expit(y[1]), yp[2] - math.hypot(*y)]


def make_nested(k):
    factors = [k, 2 * k, 3 * k]

    def rate(i, x):
        return factors[i] * math.sin(x) if i else np.sin(x)

    def residual(t, y, yp):
        return [yp[i] + rate(i, y[i]) for i in range(3)]

    return residual


@dataclass
class Model:
    k: float
    table: list

    def rate(self, x):
        return self.k * math.exp(-x) * self.table[1]

    def residual(self, t, y, yp):
        return [yp[i] + self.rate(y[i]) for i in range(3)]

    def __call__(self, t, y, yp):
        return np.array(self.residual(t, y, yp)) * self.k


def object_inside(t, y, yp):
    point = Point(y[0], y[1])
    model = Model(k=y[2], table=[0.0, 2.0])
    return [yp[0] + point.x, yp[1] + point.y, yp[2] - model.rate(point.x)]


def with_parameters(k, t, y, yp, *, shift=0.5):
    return [yp[i] + k * math.log(y[i] + shift) for i in range(3)]


def settings(t, y, yp):
    return [yp[i] + SETTINGS["rate"] * SETTINGS["rates"][i] * y[i] for i in range(3)]


def import_inside(t, y, yp):
    import numpy as xp

    return xp.zeros(3) + yp + xp.sin(y)


def in_place_operators(t, y, yp):
    out = np.ones(3)
    out *= y
    out += yp
    out[1] -= 3 * t
    out /= 1 + y**2
    return out


def fills_out(t, y, yp, out):
    out[:] = yp
    out[0] += y[1] * y[2]
    out[1:] -= np.sin(y[:2])


def array_arguments(t, y, yp, k, rates, options):
    return yp + k * rates * y + options["shift"] * np.ones(options["count"])


def helper_from_numpy(t, y, yp):
    out = zeros(3)
    out[:] = yp + cos(y)
    return out


def sorted_values(t, y, yp):
    low, middle, high = sorted(y)
    return [yp[0] + low, yp[1] + middle * 2, yp[2] + high * 3]


def quantifiers(t, y, yp):
    rate = 2.0 if all(v > 0.45 for v in y) else 3.0
    if np.any(y > 0.6):
        rate = rate * y[0]
    return yp + rate * y


def bounded_loop(t, y, yp):
    x = y[0]
    count = 0
    while x < 0.9 and count < 3:
        x = x + 0.2
        count += 1
    return [yp[0] + x, yp[1] - count, yp[2]]


def piecewise_and_select(t, y, yp):
    a = np.piecewise(y, [y < 0.5, y >= 0.5], [lambda v: v**2, lambda v: 1 - v])
    return yp + a + np.select([y < 0.4, y < 0.6], [y, 2 * y], 3 * y)


JITTED = []
try:
    import numba

    @numba.njit
    def jitted_rate(x):
        return math.sin(x) * x

    @numba.njit
    def jitted(t, y, yp):
        out = np.empty(3)
        for i in range(3):
            out[i] = yp[i] + jitted_rate(y[i])
        return out

    JITTED.append((jitted, ()))
except ImportError:
    pass


@np.vectorize
def vectorised_rate(x):
    return math.sin(x) if x > 0.5 else x


def numpy_vectorize(t, y, yp):
    return yp + vectorised_rate(y)


@functools.cache
def cached_matrix(size):
    return np.eye(size) * 2.0


def cached_helper(t, y, yp):
    return cached_matrix(3) @ y + yp


def decorated(function):
    @functools.wraps(function)
    def wrapper(*args):
        return [2 * x for x in function(*args)]

    return wrapper


TRACED = [
    (unpacking, ()),
    (zeros_then_fill, ()),
    (empty_like_then_fill, ()),
    (array_of_list, ()),
    (matrix_product, ()),
    (sparse_product, ()),
    (ufuncs_on_arrays, ()),
    (list_comprehension, ()),
    (where, ()),
    (where_with_t, ()),
    (plain_if, ()),
    (nested_if, ()),
    (if_on_an_argument, (0.5,)),
    (builtin_min_max_abs_sum, ()),
    (maximum_minimum_clip, ()),
    (norm_and_dot, ()),
    (linear_solve, ()),
    (joined_parts, ()),
    (sums_and_products, ()),
    (einsum, ()),
    (interp, ()),
    (reshape_and_broadcast, ()),
    (mask_assignment, ()),
    (float_calls, ()),
    (powers, ()),
    (remainders, ()),
    (special_functions, ()),
    (make_nested(0.3), ()),
    (Model(0.3, [1.0, 2.0]).residual, ()),
    (Model(0.3, [1.0, 2.0]), ()),
    (object_inside, ()),
    (functools.partial(with_parameters, 0.8), ()),
    (lambda t, y, yp: yp * np.sinh(y) + t, ()),
    (settings, ()),
    (import_inside, ()),
    (in_place_operators, ()),
    (fills_out, ()),
    (array_arguments, (0.3, np.array([1.0, 2.0, 3.0]), {"shift": 0.1, "count": 3})),
    (helper_from_numpy, ()),
    (sorted_values, ()),
    (quantifiers, ()),
    (bounded_loop, ()),
    (piecewise_and_select, ()),
    (numpy_vectorize, ()),
    (cached_helper, ()),
    (decorated(unpacking), ()),
    (Problem.mass_matrix(MATRIX, lambda t, y: -np.sin(y)).fun, ()),
    (Problem.mass_matrix(lambda t, y: MATRIX * y[0], lambda t, y: -y).fun, ()),
    *JITTED,
]


def name_of(value):
    return getattr(value, "__name__", type(value).__name__) if callable(value) else ""


def call(fun, fills, t, y, yp, args):
    if not fills:
        return np.array(fun(t, y, yp, *args), dtype=float)
    out = np.empty(len(y))
    fun(t, y, yp, out, *args)
    return out


def differences(f, x):
    """Fourth-order differences, column by column."""
    h = 1e-4
    columns = []
    for step in h * np.eye(len(x)):
        far, near = f(x + 2 * step) - f(x - 2 * step), f(x + step) - f(x - step)
        columns.append((8 * near - far) / (12 * h))
    return np.column_stack(columns)


def dense(matrix, values):
    result = np.zeros(matrix.shape)
    result[matrix.rows, matrix.cols] = values
    return result


def assert_agrees(traced, fun, args, fills, t, y, yp):
    """Compare values and both Jacobians at one point."""
    flat = traced.args.flatten(args)
    np.testing.assert_allclose(
        evaluate(traced.program(), t, y, yp, flat),
        call(fun, fills, t, y, yp, args),
        rtol=1e-13,
        atol=1e-13,
    )
    for matrix, reference in (
        (traced.f_y, differences(lambda x: call(fun, fills, t, x, yp, args), y)),
        (traced.f_yp, differences(lambda x: call(fun, fills, t, y, x, args), yp)),
    ):
        # a jump within the reach of the differences spoils them
        if np.abs(reference).max() < 1e3:
            values = evaluate(traced.program(matrix.nodes), t, y, yp, flat)
            np.testing.assert_allclose(dense(matrix, values), reference, rtol=2e-8, atol=2e-8)


@pytest.mark.parametrize(("fun", "args"), TRACED, ids=name_of)
def test_traced(fun, args):
    fills = fun is fills_out
    traced = trace(fun, 3, args, fills)
    rng = np.random.default_rng(3)
    for _ in range(12):
        point = rng.uniform(0, 1), rng.uniform(0.3, 0.9, 3), rng.uniform(0.2, 1, 3)
        assert_agrees(traced, fun, args, fills, *point)
    verify(traced, fun, *point, args, fills)


# --- refused, each with the line marked "here" --------------------------------------------------


def needs_int(t, y, yp):
    return [yp[0] + int(y[0]), yp[1], yp[2]]  # here


def index_by_value(t, y, yp):
    i = math.floor(y[0])
    return [yp[0] + [1.0, 2.0][i], yp[1], yp[2]]  # here


def float_array_from_outside(t, y, yp):
    buffer[0] = y[0]  # here
    return yp + buffer


def constant_to_array_from_outside(t, y, yp):
    buffer[0] = 1.0  # here
    return yp + y


def endless_loop(t, y, yp):
    x = y[0]
    while x > 0.001:  # here
        x = x / 2
    return [yp[0] + x, yp[1], yp[2]]


def as_integers(t, y, yp):
    return yp + y.astype(int)  # here


def picks_by_mask(t, y, yp):
    return [yp[0] + y[y > 0.5].sum(), yp[1], yp[2]]  # here


def unknown_function(t, y, yp):
    return yp + scipy.special.gamma(y)  # here


def unknown_math(t, y, yp):
    return [yp[0] + math.gamma(y[0]), yp[1], yp[2]]  # here


def raises_for_some(t, y, yp):
    if y[0] < 0:
        raise ValueError("negative concentration")  # here
    return [yp[0] + y[0], yp[1], yp[2]]


def reads_a_file(t, y, yp):
    with open(os.devnull) as file:  # here
        file.read()
    return yp + y


def draws_numbers(t, y, yp):
    return yp + y + random.random()  # here


def draws_with_numpy(t, y, yp):
    return yp + y * np.random.rand()  # here  # noqa: NPY002


def draws_with_generator(t, y, yp):
    return yp + y * generator.normal()  # here


def asks_the_clock(t, y, yp):
    return yp + y + time.time()  # here


def prints(t, y, yp):
    print(t)  # here
    return yp


def rounds(t, y, yp):
    return [round(y[0], 3) + yp[0], yp[1], yp[2]]  # here


def uses_fft(t, y, yp):
    return yp + np.fft.fft(y).real  # here


def formats(t, y, yp):
    label = f"{y[0]:.3f}"  # here
    return yp + len(label)


def dictionary_key(t, y, yp):
    return [{y[0]: 1.0}[y[0]], yp[1], yp[2]]  # here


def complex_number(t, y, yp):
    return [abs(complex(y[0], y[1])), yp[1], yp[2]]  # here


@functools.cache
def cached_by_value(x):
    return math.sin(x)


REFUSED = [
    (needs_int, "int"),
    (index_by_value, "integer"),
    (float_array_from_outside, "outside"),
    (constant_to_array_from_outside, "outside"),
    (endless_loop, "branches more than"),
    (as_integers, "int"),
    (picks_by_mask, "condition"),
    (unknown_function, "gamma"),
    (unknown_math, "math.gamma"),
    (raises_for_some, "negative concentration"),
    (reads_a_file, "opens a file"),
    (draws_numbers, "random"),
    (draws_with_numpy, "random"),
    (draws_with_generator, "Generator"),
    (asks_the_clock, "time"),
    (prints, "prints"),
    (rounds, "rounds a traced number"),
    (uses_fft, "fft"),
    (formats, "makes text of a traced number"),
    (dictionary_key, "unhashable"),
    (complex_number, "complex"),
]


@pytest.mark.parametrize(("fun", "words"), REFUSED, ids=name_of)
def test_refused_with_its_line(fun, words):
    before = buffer.copy(), generator.bit_generator.state, list(log), counter
    with pytest.raises(TraceFailure, match=words) as caught:
        trace(fun, 3)
    lines, first = inspect.getsourcelines(fun)
    (line,) = [first + i for i, text in enumerate(lines) if "# here" in text]
    assert caught.value.line == line
    assert f"line {line}: " in str(caught.value)
    assert caught.value.file == __file__
    np.testing.assert_array_equal(buffer, before[0])
    assert (generator.bit_generator.state, log, counter) == before[1:]


# --- refused as a whole -------------------------------------------------------------------------


def counts_calls(t, y, yp):
    global counter
    counter += 1
    return yp + y


def appends(t, y, yp):
    log.append(t)
    return yp + y


class Counting:
    def __init__(self):
        self.calls = 0

    def __call__(self, t, y, yp):
        self.calls += 1
        return yp + y


class Slotted:
    __slots__ = ("calls", "k")

    def __init__(self, k):
        self.calls, self.k = 0, k

    def rate(self, x):
        return self.k * math.sin(x)

    def residual(self, t, y, yp):
        return [yp[i] + self.rate(y[i]) for i in range(3)]

    def counting(self, t, y, yp):
        self.calls += 1
        return yp + y


class Mode(enum.Enum):
    SLOW = 1
    FAST = 2


MODE = Mode.FAST
SLOTTED = Slotted(2.0)
NESTED = {"log": [], "data": {"buffer": np.zeros(3)}}


def enumeration(t, y, yp):
    return yp + y if MODE is Mode.FAST else yp


def nested_log(t, y, yp):
    NESTED["log"].append(t)
    return yp


def nested_buffer(t, y, yp):
    NESTED["data"]["buffer"][:] = 1.0
    return yp


def class_attribute(t, y, yp):
    Slotted.total = 1
    return yp


def writes_to_y(t, y, yp):
    y[0] = 0.0
    return yp + y


def swallows(t, y, yp):
    try:
        k = int(y[0])
    except:  # noqa: E722
        k = 3
    return yp + k


def exits(t, y, yp):
    if y[0] > 2:
        raise SystemExit
    return yp


def newton(t, y, yp):
    x = y[0]
    while True:
        step = (x * x - y[1]) / (2 * x)
        x = x - step
        if abs(step) < 1e-12:
            return [yp[0] - x, yp[1], yp[2]]


def counting_closure():
    calls = 0

    def residual(t, y, yp):
        nonlocal calls
        calls += 1
        return yp + y

    return residual


def attribute_of_the_function(t, y, yp):
    attribute_of_the_function.calls += 1
    return yp + y


attribute_of_the_function.calls = 0


OFF, ON = 0.0, 1.0
heating = [ON]


def hysteresis(t, y, yp):
    """Writes on one branch what it writes back on another."""
    if y[0] > 21.0:
        heating[0] = OFF
    if y[0] < 19.0:
        heating[0] = ON
    return yp + y - heating[0]


def too_short(t, y, yp):
    return [yp[0], yp[1]]


def different_lengths(t, y, yp):
    return [yp[0], yp[1]] if y[0] > 0 else [yp[0], yp[1], yp[2]]


def forgets_one(t, y, yp, out):
    out[0] = yp[0]
    out[2] = yp[2]


def reads_out(t, y, yp, out):
    out += yp


def returns_a_number(t, y, yp):
    return y[0]


def returns_text(t, y, yp):
    return [yp[0], "a", yp[1]]


@pytest.mark.parametrize(
    ("fun", "words"),
    [
        (counts_calls, "global variable 'counter'"),
        (appends, "list from outside"),
        (Counting(), "attribute of a Counting"),
        (counting_closure(), "variable 'calls'"),
        (SLOTTED.counting, "attribute of a Slotted"),
        (nested_log, "list from outside"),
        (nested_buffer, "array from outside"),
        (class_attribute, "the class Slotted"),
        (writes_to_y, "writes to y"),
        (swallows, "swallows"),
        (exits, "SystemExit"),
        (newton, "more than 64 ways"),
        (attribute_of_the_function, "attribute of attribute_of_the_function"),
        (hysteresis, "list from outside"),
        (too_short, "2 values instead of 3"),
        (different_lengths, "2 values instead of 3"),
        (forgets_one, r"does not set equation 1, out\[1\]"),
        (reads_out, "before it is set"),
        (returns_a_number, "not a list or an array"),
        (returns_text, "equation 1 is a str"),
    ],
    ids=name_of,
)
def test_refused_without_effects(fun, words):
    with pytest.raises(TraceFailure, match=words):
        trace(fun, 3, fills=fun in (forgets_one, reads_out))
    assert (counter, log, attribute_of_the_function.calls) == (0, [], 0)
    assert (SLOTTED.calls, NESTED["log"], NESTED["data"]["buffer"].sum()) == (0, [], 0.0)
    assert not hasattr(Slotted, "total")
    assert heating == [ON]


def test_bad_objects_are_left_as_they_were():
    fun = Counting()
    with pytest.raises(TraceFailure):
        trace(fun, 3)
    assert fun.calls == 0


def test_argument_that_is_needed_as_a_number_is_taken_as_constant():
    def fun(t, y, yp, size):
        return yp[:3] + np.ones(int(size)) * y

    traced = trace(fun, 3, (3.0,))
    assert traced.args.size == 0
    assert "traced for these arguments only" in traced.notes[0]
    assert "needs a number" in traced.notes[0]


def test_what_has_a_derivative_only_python_can_call():
    """Breakpoints that descend: not one of the piecewise polynomials that a program may have."""
    from tether.trace import NoProgram

    spline = PPoly(SPLINE.c, SPLINE.x[::-1])

    def fun(t, y, yp):
        return [yp[0] - spline(t), yp[1] + spline(y[0]), yp[2] - spline.derivative()(y[1])]

    traced = trace(fun, 3)
    with pytest.raises(NoProgram, match="PPoly can only be called from Python"):
        traced.program()
    y, yp = np.array([0.3, 1.4, 2.0]), np.ones(3)
    values = evaluate(traced.program(opaque=True), 0.7, y, yp)
    np.testing.assert_allclose(values, fun(0.7, y, yp), rtol=1e-14)
    slopes = evaluate(traced.program(traced.f_y.nodes, opaque=True), 0.7, y, yp)
    np.testing.assert_allclose(slopes, [spline(0.3, 1), -spline(1.4, 2)], rtol=1e-14)
    verify(traced, fun, 0.7, y, yp)
    sol = solve_dae(fun, (0.0, 0.5), y)
    assert sol.success
    assert sol.how == "called as it is: PPoly can only be called from Python"
    assert "PPoly can only be called from Python" in analyze(fun, 0.0, y).how


@pytest.mark.parametrize("fun", [SLOTTED.residual, enumeration], ids=name_of)
def test_objects_keep_their_meaning(fun):
    y, yp = np.array([0.3, 0.4, 0.5]), np.ones(3)
    traced = trace(fun, 3)
    np.testing.assert_array_equal(evaluate(traced.program(), 0.0, y, yp), fun(0.0, y, yp))


def test_names_follow_the_unpacking():
    def by_index(t, y, yp):
        a, b = y[0], y[1]
        last = y[-1]
        return [a, b, last]

    def by_slice(t, u, up):
        first, second = u[:2]
        return [first, second, up[2]]

    assert trace(unpacking, 3).names == ["x", "z", "lam"]
    assert trace(by_index, 3).names == ["a", "b", "last"]
    assert trace(by_slice, 3).names == ["first", "second", "y[2]"]
    assert trace(zeros_then_fill, 3).names == ["y[0]", "y[1]", "y[2]"]


def test_semi_explicit_problem():
    problem = Problem.semi_explicit(
        lambda t, x, z: -z * np.sin(x), lambda t, x, z: [x[0] - z[0] - x[1]]
    )
    y, yp = np.array([0.4, 0.6, 0.7]), np.array([1.0, 2.0, 3.0])
    problem = prepared(problem, 0.0, y)
    traced = trace(problem.fun, 3, fills=True)
    out = np.empty(3)
    problem.fun(0.0, y, yp, out)
    np.testing.assert_array_equal(evaluate(traced.program(), 0.0, y, yp), out)


def test_modules_of_the_user_are_followed(tmp_path, monkeypatch):
    (tmp_path / "my_rates.py").write_text(
        "import math\nK = 2.0\ndef rate(x):\n    return K * math.sin(x)\n", encoding="utf-8"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import my_rates

    def fun(t, y, yp):
        return [yp[0] + my_rates.rate(y[0]) * my_rates.K]

    program = trace(fun, 1).program()
    assert evaluate(program, 0.0, [0.3], [1.0])[0] == 1 + 2 * math.sin(0.3) * 2
    sys.modules.pop("my_rates")
