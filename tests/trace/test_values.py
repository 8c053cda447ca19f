"""What a traced function computes is what the function computes, for all numbers and types.

Every expression is traced and compared with the function at ordinary points, and at points with
zeros, ties, infinities and NaN. To be refused is right as well, except where it says otherwise.
"""

import builtins
import functools
import itertools
import math
import operator
import zlib

import numpy as np
import pytest
import scipy.special
from support.traced_values import outcome, shape_of

from tether.trace import evaluate, trace
from tether.trace.backend import prepare

GIVEN = np.array([1.5, -0.5, 2.0])
MATRIX = np.array([[2.0, -1.0, 0.5], [0.5, 3.0, 1.0], [0.25, 0.25, 1.5]])
NAMES = {
    "np": np, "math": math, "operator": operator, "itertools": itertools, "functools": functools,
    "scipy": scipy, "GIVEN": GIVEN, "MATRIX": MATRIX,
}


@np.vectorize
def first_gives_an_integer(u):
    return 0 if u < 0.5 else u


NAMES["first_gives_an_integer"] = first_gives_an_integer
NAMES["halves"] = np.vectorize(lambda u: 0.5 * u, otypes=[float])
NAMES["whole"] = np.vectorize(lambda u: 1.5 * u, otypes=[int])

# --- what is ordinary, and must be traced -------------------------------------------------------

TRACED = """
x + z | x - z | x * z | x / z | x ** 2 | x ** 3 | x ** -1 | x % z | x // z | divmod(x, z)[0]
t + x | t * 2 | t / x | t // x | t % 0.7 | 7 // x | 2 % x | -x | +x | abs(x) | abs(t) | 2.0 ** x
(x > 2) + (z > 2) | (x > 0) * (z > 0) | (x > 0) * z | (t > 0) + (t > 1) | (t > 0) * 2
3 * (x > 0) | (t > 0) + (x > 0) | (x > 0) + 1 | 1.5 * (x > 0) | (x > 0) / 2 | (x > 0) & (z > 0)
(x > 0) | (z > 0) | (x > 0) ^ (t > 0) | ~(x > 0) | (t > 0) | (x > 0) == (z > 0)
sum([x > 0, z > 0, w > 0]) | sum(y > 0) | (y > 0).sum() | np.sum(y > 0) | (y > 0).mean()
(y > 0) + (yp > 0) | (y > 0) * (yp > 0) | (y > 0) * y | np.any(y > 0) | np.all(y > 0)
(y > 0).any() | (y > 0).all() | np.any(y[:1]) | np.all(y[:1]) | any(v > 0 for v in y)
all(v > 0 for v in y) | any([x]) | all([x]) | any([x, z]) | min(x, z) | max(x, z) | min(x, 0.5)
max(0.5, x) | min(0.5, x) | max(x, 0.5) | max(0, x) | min(x, 1) | min(y) | max(y)
min([x, t, 0.5]) | max(x, z, w) | min(x, z, key=abs) | max(y, key=lambda v: -v)
max(0.2, min(x, 0.7)) | sorted([x, z])[0] | x if x > z else z | x and z | x or z | (not x) * 1.0
0.0 < x < 1.0 | x in (0.5, 1.0) | x in y | 0.5 in y | (x == z) * 1.0 | (x != z) * 1.0
np.minimum(x, z) | np.maximum(x, z) | np.fmin(x, z) | np.fmax(x, z) | np.fmin(y, yp)
np.fmax(y, 0.5) | np.fmax(0.4, x) | np.clip(x, 0.2, 0.7) | np.clip(y, -1.0, 1.0)
np.clip(x, None, 0.7) | y.clip(0.0, 1.0) | np.clip(x, z, w) | np.clip(y, yp, 0.5)
np.maximum(y, yp) | y.min() | y.max() | np.max(y, initial=0.5) | np.heaviside(x, 0.5)
np.heaviside(y, 1.0) | np.sign(x) | np.sign(y) | np.copysign(x, z) | math.copysign(0.5, x)
np.hypot(x, z) | math.hypot(x, z) | math.hypot(x, z, w) | np.hypot(1e200 * x, 1e200)
math.hypot(1e200 * x, 1e200) | math.hypot(x) | math.dist([x, z], [w, t]) | np.arctan2(x, z)
math.atan2(x, z) | np.fmod(x, z) | math.fmod(x, 0.7) | np.floor(x) | math.floor(x)
math.ceil(x) + 0.5 | math.trunc(x) | np.trunc(x) | np.floor_divide(x, z) | np.remainder(y, yp)
np.sqrt(x) | math.sqrt(abs(x)) | np.log(x) | np.log1p(x) | np.exp(x) | np.expm1(x) | np.cbrt(x)
np.log2(abs(x)) | math.log10(abs(x)) | math.log(abs(x), 3) | np.exp2(x) | np.logaddexp(x, z)
np.sinc(x) | scipy.special.expit(x) | scipy.special.erf(x) | scipy.special.xlogy(x, abs(z))
math.erf(x) | np.isnan(x) * 1.0 | np.isfinite(y) * 1.0 | np.isinf(x) | math.isnan(x) * 1.0
math.isinf(t) | np.square(x) | np.reciprocal(x) | np.degrees(x) | math.radians(x) | math.pow(x, 3)
np.power(y, 2) | math.prod([x, z, 2]) | functools.reduce(operator.mul, [x, z, w])
operator.add(x, z) | np.where(x > 0, x, z) | np.where(y > 0, y, yp) | np.where(y > 0, 1, 0)
np.where(x > z, True, False) | np.where(y > 0, y > 1, yp > 1) * 1.0
np.select([y < 0, y < 1], [y, 2 * y], 3.0) | np.where(x, z, w)
np.piecewise(y, [y < 0, y >= 0], [lambda v: v ** 2, lambda v: 1 - v])
np.piecewise(y, [y < 0, y < 1], [-1.0, np.sin, 2.0]) | halves(y) | halves(x)
np.interp(x, [0.0, 1.0, 2.0], [1.0, 3.0, 2.0]) | np.interp(x, [0.0, 1.0, 2.0], [z, w, 2.0])
np.interp(y, [0.0, 1.0], [z, w], left=-1.0, right=t) | np.sum(y) | y.sum() | np.prod(y)
np.cumsum(y) | np.cumprod(y) | y.mean() | y.std() | y.var() | np.std(y, ddof=1)
np.var(M, axis=0) | np.mean(M, axis=1) | M.sum(axis=0) | M.sum(axis=1, keepdims=True) | np.diff(y)
np.trapezoid(y) | np.trapezoid(y, dx=0.5) | np.average(y, weights=[1, 2, 3]) | np.ptp(y)
np.dot(y, yp) | y @ yp | M @ y | MATRIX @ y | MATRIX.dot(y) | y.dot(MATRIX) | np.outer(y, yp)
np.cross(y, yp) | np.einsum("ij,j->i", MATRIX, y) | np.vdot(y, yp) | np.inner(y, yp)
np.tensordot(M, y, 1) | np.kron(y, yp) | np.linalg.norm(y) | np.linalg.norm(y, 1)
np.linalg.norm(y, np.inf) | np.linalg.norm(M, axis=0) | np.linalg.solve(MATRIX, y)
np.linalg.det(M) | np.polyval([1.0, 2.0, 3.0], x) | np.trace(M) | np.concatenate([y, yp])
np.stack([y, yp])[1] | np.hstack([x, z]) | np.append(y, t) | np.roll(y, 1) | np.array([x, 1, t])
np.array([x > 0, 2]) | np.array([x > 0, z > 0]) * 1.0 | np.zeros(3) + x | np.full(3, x)
np.ones_like(y) * t | np.zeros_like(y > 0) * 1.0 | y[::-1] | y[[0, 2]] | M[1] | M[:, 1] | M[1, 2]
M.T @ y | y.reshape(3, 1).ravel() | np.tile(y, 2) | np.repeat(y, 2) | np.flip(y) | np.triu(M)
np.diag(M) | np.diag(y) | list(y) | [v for v in y] | list(reversed(y))
[a + b for a, b in zip(y, yp)] | list(map(math.sin, y)) | [i * v for i, v in enumerate(y, 1)]
sum(filter(lambda v: v > 0, y)) + 0.5 | y.tolist() | sum(y, 1.0) | float(x) | np.float64(t)
float(y[0]) * 2 | y.astype(float) | np.asarray(y) | np.array(y) | y.copy() | y.item(1) | GIVEN * x
GIVEN[1] * x | x * GIVEN[1] | GIVEN @ y | y ** GIVEN | GIVEN > x | np.float64(2.0) * x
np.argmax(y) + 0.0 | int(np.argmin(y)) + x | y[np.argmax(yp)] | np.add.reduce(y)
np.multiply.outer(y, yp) | 1.0 if isinstance(x, float) else 2.0
1.0 if isinstance(x, np.floating) else 2.0 | 1.0 if type(x) is float else 2.0
1.0 if type(t) is float else 2.0 | 1.0 if type(x) is np.float64 else 2.0
1.0 if isinstance(t, np.float64) else 2.0 | 1.0 if y.dtype == float else 2.0
1.0 if x.dtype == np.float64 else 2.0 | 1.0 if (y > 0).dtype == bool else 2.0
1.0 if hasattr(x, "dtype") else 2.0 | 1.0 if hasattr(t, "dtype") else 2.0
1.0 if hasattr(x, "node") else 2.0 | 1.0 if isinstance(math.sin(x), np.floating) else 2.0
1.0 if isinstance(x > 0, bool) else 2.0 | 1.0 if isinstance(t > 0, bool) else 2.0
1.0 if isinstance(y, np.ndarray) else 2.0 | getattr(t, "dtype", 3.0)
1.0 if type(1.5) is float else 2.0 | 1.0 if issubclass(type(x), float) else 2.0
len(type(x).__name__) * 1.0 | 1.0 if isinstance(x, (int, float)) else 2.0
1.0 if isinstance(x, int | float) else 2.0 | x is None or z
"""

# --- what may be refused, but not be wrong ------------------------------------------------------

UNUSUAL = """
str(x) | repr(x) | f"{x}" | f"{x:.3f}" | "%s" % x | len(str(x)) | format(x, ".2e") | hash(x) % 7
id(x) % 7 | x.__class__.__name__ == "float64" | x.__class__ is float | x is x | y[0] is y[0]
(x > 0) is True | (t > 0) is True | (t > 0) is (x > 1) | min(x, z) is x | x.is_integer()
x.as_integer_ratio()[0] | round(x) | round(x, 2) | int(x) | np.round(x, 1) | np.rint(y)
np.nan_to_num(x) | np.nansum(y) | np.nanmax(y) | np.sort(y) | np.argsort(y) | np.median(y)
np.unique(y) | np.searchsorted(y, x) | np.searchsorted(GIVEN, x) | np.digitize(x, GIVEN)
np.choose(0, [x, z]) | np.choose(x > 0, [z, w]) | y[y > 0].sum() | np.nonzero(y)[0]
np.count_nonzero(y > 0) | np.flatnonzero(y > 0) | np.extract(y > 0, y) | np.argwhere(y > 0)
np.isclose(x, z) | np.allclose(y, yp) | np.array_equal(y, yp) | math.fsum([1e16, x, -1e16])
math.fsum(y) | math.fsum([x, z]) | first_gives_an_integer(y) | whole(y)
np.vectorize(lambda u: u + 1)(y) | np.vectorize(lambda u: u > 0)(y) | np.sum(y, dtype=int)
np.sum(y, dtype=np.float32) | np.add(x, 1, dtype=np.float32) | np.float32(0.1) * x
np.float32(0.1) * t | t * np.float32(0.1) | np.float32(x) | np.array(y, dtype=np.float32)
y.astype(int) | np.int64(x) | np.sum(y, where=np.array([True, False, True]))
np.max(y, where=y > 0, initial=0.0) | np.add(x, z, out=np.zeros(())) | np.exp(x > 0)
np.sin(y > 0) | -(x > 0) | (x > 0) - (z > 0) | (x > 0) ** 2 | (x > 0) // 2 | (x > 0) % 2
+(x > 0) | ~(t > 0) | (t > 0) - (t > 1) | (t > 0) ** 2 | (t > 0) << 1 | (x > 0) & 1 | (t > 0) & 1
np.negative(y > 0) | np.subtract(y > 0, yp > 0) | np.power(y > 0, 2) | np.abs(x > 0)
np.sign(y > 0) | np.sqrt(x > 0) | np.bitwise_and(x > 0, 1) | np.add(x > 0, t > 0)
np.dot(y > 0, yp > 0) | np.max(y > 0) + np.max(yp > 0) | max(y > 0) + max(yp > 0)
np.any([x]) + np.all([x]) | np.logical_and(x, z) + np.logical_or(x, z) | np.cumsum(y > 0)
np.prod(y > 0) | np.mean(y > 0) | np.array([x > 0, 2]).dtype == int
np.array([x > 0, z > 0]).dtype == bool | np.where(x > 0, 1, 2).dtype == int
isinstance(np.where(x > 0, x, z), np.ndarray) | isinstance(np.array(x), np.ndarray)
isinstance(max(0, x), int) | isinstance(min(x, 1.0), np.floating) | isinstance(math.floor(x), int)
isinstance(x + 1, np.floating) | isinstance(t + 1, np.floating) | isinstance(t * x, np.floating)
isinstance(np.sum(y), np.floating) | isinstance(y.mean(), float)
isinstance(float(x), np.floating) | math.floor(x) // 2 | math.floor(x) % 3 | math.floor(x) / 2
math.floor(x) ** 2 | (math.floor(x) > 0) + (t > 0)
np.piecewise(y, [y < 0, y >= 0], [lambda v: v - v.mean(), 0.0])
np.piecewise(y, [y < 0], [lambda v: v.sum()]) | np.piecewise(x, [x < 0, x >= 0], [-1.0, 1.0])
np.piecewise(np.array([1, 2]), [np.array([True, False])], [x, 0.0])
np.select([x < 0, x < 1], [x, 2 * x], 3.0) | np.select([y < 0], [1]) | np.where(y > 0, y, 0)
np.where(x > 0, 1, 2) | x ** 0.25 | x ** z | y ** yp | 0.0 ** x | 1.0 ** x | x ** 0 | x ** 0.0
(-8.0) ** x | x - x | 0 / x | np.log(x) * 0 | 0.0 * np.sqrt(x) | np.sqrt(x) - np.sqrt(x)
0 * (1 / x) | 0 * np.exp(1e3 * x) | np.linalg.inv(M + 9 * np.eye(3)) @ y
np.linalg.solve(M + 9 * np.eye(3), y) | np.linalg.matrix_power(M, 2) | np.linalg.eigvals(M)
np.linalg.norm(M) | np.linalg.norm(M, 2) | np.linalg.norm(M, "fro") | np.linalg.norm(y, 3)
np.linalg.norm(y, -np.inf) | np.linalg.norm(y, 0) | np.linalg.multi_dot([M, M, y])
np.linalg.cond(M) | np.linalg.lstsq(MATRIX, y)[0] | np.linalg.pinv(M) | np.convolve(y, yp)
np.correlate(y, yp) | np.gradient(y) | np.cov(y) | np.corrcoef(y, yp) | np.histogram(y)[0]
np.percentile(y, 50) | np.insert(y, 1, x) | np.delete(y, 1) | np.pad(y, 1) | np.resize(y, 5)
np.take(y, [0, 2]) | np.compress([1, 0, 1], y) | np.apply_along_axis(np.sum, 0, M) | np.vander(y)
np.fill_diagonal(M, x) or M | np.rot90(M) | np.tril(M) | np.unwrap(y) | np.real(x) | np.imag(x)
np.angle(x) | np.real_if_close(y) | np.iscomplex(y) | np.isreal(x) | np.isneginf(y)
np.isposinf(y) | np.signbit(x) | np.spacing(x) | np.nextafter(x, z) | np.frexp(x)[0]
np.ldexp(x, 2) | np.modf(x)[0] | np.divmod(x, z)[0] | np.gcd(2, 4) + x | math.modf(x)[0]
math.frexp(x)[0] | math.remainder(x, 0.7) | math.gamma(abs(x) + 1) | math.lgamma(x)
math.isclose(x, z) | math.ulp(x) | math.nextafter(x, z) | math.comb(5, 2) * x | math.ldexp(x, 2)
math.sin(y[:1]) | math.sqrt(y[:1] ** 2) | float(y[:1]) | np.sin([x, z]) | np.sin((x, t))
np.exp(GIVEN) * x | max([x, z], default=1.0) | max([], default=x) | list(itertools.accumulate(y))
list(itertools.chain(y, yp)) | [a * b for a, b in itertools.product(y, yp)]
list(itertools.takewhile(lambda v: v > 0, y)) or [1.0] | sorted(y, reverse=True)
sorted(y, key=abs) | sorted(y)[1] | len(set(y)) | {x: 1.0}[x] | dict(zip("abc", y))["b"]
[*y, *yp][4] | tuple(y)[1] | operator.is_(x, x) | operator.index(1) * x
operator.itemgetter(1)(y) | operator.attrgetter("dtype")(x) == float | operator.truediv(x, z)
(lambda *a: a[1])(*y) | next(iter(y)) | y.flat[1] | list(y.flat) | y[...] | y[None, :] | y[0, ...]
y[()] | M[0][1] | M[-1, -1] | x.real | x.imag | x.conjugate() | x.item() | x.shape == () | x.ndim
x.size | x.T | x.dtype.kind == "f" | x.sum() | x.mean() | x.max() | x.round(1) | y.shape[0] * x
y.size * x | y.nbytes * 1.0 | y.itemsize * 1.0 | y.strides[0] * 1.0 | y.flags.writeable
y.base is None | y.real | y.imag | y.T | y.conj() | y.sort() or y | y.argsort() | y.round(1)
y.searchsorted(0.5) | y.nonzero()[0] | y.view() | y.ravel() | y.flatten() | y.squeeze()
y[:1].squeeze() | y.tobytes()[0] | np.ndim(x) | np.shape(y)[0] | np.size(M) | np.isscalar(x)
np.isscalar(t) | np.isscalar(y) | np.result_type(x) == float | np.result_type(y, 1) == float
np.ndenumerate(y) and 1.0 | sum(v for _, v in np.ndenumerate(y)) | np.nditer(y) and 1.0
np.poly1d([1.0, 2.0])(x) | np.polynomial.Polynomial([1.0, 2.0])(x) | np.may_share_memory(y, yp)
np.array2string(y) == "" | np.copy(x) | np.copy(y) | np.atleast_1d(x) | np.atleast_2d(y)
np.squeeze(y[:1]) | np.expand_dims(y, 0)
"""

BLOCKS = [
    "r = y > 0.5\nr[0] = z > 0\nq = r * 1.0",
    "r = np.zeros(3)\nr[0] = t\nr[1] = x > 0\nr[2] = 1\nq = r + isinstance(r[0], np.floating)",
    "r = np.zeros(3, int)\nr[0] = x\nq = r",
    "r = np.zeros(3, bool)\nr[0] = x > 0\nq = r * 1.0",
    "r = y.copy()\nr[r > 0.5] = 0.25\nq = r",
    "r = y.copy()\nr[y] = 1.0\nq = r",
    "r = y.copy()\nr += 1\nr *= 2\nr -= yp\nr /= 3\nq = r",
    "r = y > 0\nr += 1\nq = r",
    "r = y.copy()\nr.fill(t)\nq = r",
    "r = y.copy()\nr.flat[1] = x > 0\nq = r",
    "r = np.array(x)\nq = r\nr += 1.0",
    "r = np.where(x > 0, x, z)\nq = r\nr *= 2.0",
    "r = x\nq = r\nr += 1.0",
    "a, *b = y\nq = a + b[-1]",
    "m = M.copy()\nm[0] = y\nm[:, 1] = t\nq = m",
    "q = 0.0\nfor i, v in enumerate(y):\n    q = q + (i + 1) * v if v > 0 else q - v",
    "q = 1.0\nfor v in sorted(y):\n    if v > q:\n        q = v",
    "match x > 0:\n    case True:\n        q = 1.0\n    case _:\n        q = 2.0",
    "match t > 0:\n    case True:\n        q = 1.0\n    case _:\n        q = 2.0",
    "match x:\n    case float():\n        q = 1.0\n    case _:\n        q = 2.0",
    "match t:\n    case int():\n        q = 1.0\n    case float():\n        q = 2.0",
    "class P(float):\n    def __mul__(self, o):\n        return 7.0\nq = P(x) * 2.0",
    "class S:\n    def __enter__(self):\n        return self\n"
    "    def __exit__(self, *e):\n        return True\nq = 9.0\nwith S():\n    q = math.log(x)",
    "with np.errstate(all='ignore'):\n    q = np.log(x)",
    "f = functools.singledispatch(lambda v: 1.0)\nf.register(float, lambda v: 2.0)\nq = f(x)",
    "m = max(x, z)\nq = 1.0 if m is x else 2.0",
    "k = lambda v, n=2: v ** n\nq = k(x) + k(z, n=3)",
]


def expressions(text):
    """Split a table of expressions at bars that stand between spaces, outside brackets."""
    found = []
    for line in text.strip().splitlines():
        depth = start = 0
        for i, letter in enumerate(line):
            depth += (letter in "([{") - (letter in ")]}")
            if depth == 0 and line[i : i + 3] == " | ":
                found.append(line[start:i].strip())
                start = i + 3
        found.append(line[start:].strip())
    return found


@pytest.mark.parametrize("expression", expressions(TRACED))
def test_ordinary_expressions_are_traced_and_right(expression):
    assert outcome(expression, NAMES) == "traced"


@pytest.mark.parametrize("expression", expressions(UNUSUAL))
def test_unusual_expressions_are_right_or_refused(expression):
    assert outcome(expression, NAMES) in ("traced", "refused", "no residual")


@pytest.mark.parametrize("expression", expressions(TRACED) + expressions(UNUSUAL))
def test_types_are_right_or_refused(expression):
    if shape_of(expression, NAMES) is not None:
        assert outcome(expression, NAMES, "type") in ("traced", "refused", "no residual")


@pytest.mark.parametrize("block", BLOCKS)
def test_blocks_are_right_or_refused(block):
    assert outcome("q", NAMES, before=block) in ("traced", "refused", "no residual")


# --- everything that NumPy, math and Python have ------------------------------------------------

# They print, read or write files, change settings, or give what was in memory before.
LEFT_OUT_TEXT = """
    save savez savez_compressed savetxt load loadtxt genfromtxt fromfile seterr seterrcall
    set_printoptions memmap test show_config info show_runtime get_include DataSource fromregex
    setbufsize printoptions get_printoptions tofile dump dumps setflags empty empty_like random
    None True False Ellipsis NotImplemented exit quit input open breakpoint print help exec eval
    compile copyright credits license resize
"""
LEFT_OUT = frozenset(LEFT_OUT_TEXT.split())
CALLS = [
    "{f}(x)", "{f}(t)", "{f}(y)", "{f}(x, z)", "{f}(t, x)", "{f}(y, yp)", "{f}(y, 0.5)",
    "{f}(0.5, y)", "{f}(M)", "{f}(M, axis=0)", "{f}(M, 1)", "{f}(y, 2)", "{f}(y > 0.5)",
    "{f}(x > 0.5)", "{f}(x > 0.5, z > 0.5)", "{f}(t > 0.5, t > 1)", "{f}(M > 0.5, axis=0)",
    "{f}(y > 0.5, yp > 0.5)", "{f}([x, t, 1.0])", "{f}((y, yp))", "{f}(y[:1])", "{f}(y, y, yp)",
    "{f}(y > 0.5, y, yp)", "{f}(x > 0.5, 1, 2)", "{f}(x, 0.25, 1.0)", "{f}(y, dtype=np.float32)",
    "{f}(y, dtype=int)", "{f}(y, initial=1.5)", "{f}(y, where=np.array([True, False, True]))",
    "{f}(y, ddof=1)", "{f}(y, out=np.zeros(3))", "{f}(M, axis=1, keepdims=True)",
    "{f}(GIVEN, y)", "{f}(y, np.array([1, 1, 2]))", "{f}(t, np.array([1.0, 2.1], np.float32))",
]
MEMBERS = [
    "{f}", "{f}()", "{f}(0)", "{f}(axis=0)", "{f}(x)", "{f}(y)", "{f}(dtype=int)",
    "{f}(dtype=np.float32)", "{f}(-1, 1)", "{f}([0, 2])", "{f}(initial=0.5)", "{f}(float)",
    "{f}(where=np.array([True, False, True]))", "{f}(int)", "{f}(bool)", "{f}(ddof=1)", "{f}[0]",
]
# Of infinite numbers BLAS makes other things than a sum; and the root of -inf is.
OF_INFINITE_NUMBERS = ("np.dot(M", "np.matmul(M", "np.polyval(", "np.float_power(y, 0.5)", "y.dot(",
                       "M.dot(", "y[:1].dot(", "np.linalg.", "np.vecdot", "np.cross")  # fmt: skip


def calls():
    """Calls of every public name, with operands that it may not even take."""
    def public(owner, prefix, patterns):
        for name in dir(owner):
            if not name.startswith("_") and name not in LEFT_OUT:
                for pattern in patterns:
                    yield pattern.format(f=prefix + name)

    yield from public(np, "np.", CALLS)
    yield from public(math, "math.", CALLS[:25])
    yield from public(builtins, "", CALLS[:25])
    yield from public(operator, "operator.", CALLS[:25])
    for array in ("y.", "(y > 0.5).", "M.", "y[:1]."):
        yield from public(np.ndarray, array, MEMBERS)
    for number in ("x.", "t.", "(x > 0.5).", "(t > 0.5)."):
        yield from public(np.float64, number, MEMBERS[:5])


def wrong_calls(part, parts):
    found = []
    for call in calls():
        if zlib.crc32(call.encode()) % parts != part or call.startswith(OF_INFINITE_NUMBERS):
            continue
        for shape in (None, "type"):
            if shape and shape_of(call, NAMES) is None:
                continue
            answer = outcome(call, NAMES, shape)
            if answer not in ("traced", "refused", "no residual"):
                found.append(answer)
    return found


def test_some_calls_of_everything_are_right_or_refused():
    assert wrong_calls(0, 40) == []


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_calls_of_everything_are_right_or_refused(part):
    assert wrong_calls(part, 8) == []


# --- the same in the machine --------------------------------------------------------------------


def test_the_machine_computes_the_same():
    def fun(t, y, yp):
        x, z, w = y
        return [
            np.hypot(x, z) + max(0.5, x) + np.fmax(x, z) + np.copysign(w, x) + np.heaviside(z, 0.5),
            min(x, z, w) + x // z + np.clip(x, -1.0, w) + ((x > 0) + (z > 0)) + np.fmin(w, 0.3),
            x - x + math.fmod(x, 0.7) + np.logaddexp(x, z) + np.maximum(x, w),
        ]

    traced = trace(fun, 3)
    program = traced.program()
    machine = prepare(program).new([])
    rng = np.random.default_rng(5)
    special = [0.0, -0.0, np.nan, np.inf, -np.inf, 1e300, 1e-300, 1.0]
    for _ in range(100):
        y = rng.normal(0.0, 2.0, 3)
        y[rng.integers(0, 3)] = rng.choice(special)
        expected = evaluate(program, 0.0, y, np.zeros(3))
        np.testing.assert_allclose(machine.values(0.0, y, np.zeros(3)), expected, rtol=1e-13)
