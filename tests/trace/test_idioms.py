"""Ways to write a residual that are traced exactly."""

import functools
import math
from collections import namedtuple
from dataclasses import dataclass
from math import exp, sin

import numpy as np
import pytest
import scipy.sparse
import scipy.special
from numpy import cos, zeros

from tether import Problem
from tether.trace import evaluate, trace, verify

GRAVITY = 9.81
MATRIX = np.array([[2.0, -1.0, 0.0], [0.5, 3.0, 1.0], [0.0, 0.25, 1.5]])
SPARSE = scipy.sparse.csr_matrix(MATRIX)
TABLE = ([-1.0, 0.0, 0.4, 2.0], [0.3, 1.0, -0.5, 0.0])
SETTINGS = {"rate": 0.7, "rates": [1.0, 2.0, 3.0]}
Point = namedtuple("Point", "x y")


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


# --- refused as a whole -------------------------------------------------------------------------


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
