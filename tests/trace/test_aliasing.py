"""Arrays that share memory, or do not: what is written through one is seen in the other or not."""

import numpy as np
import pytest

from tether._core.rows import Rows
from tether.trace import trace
from tether.trace.array_tracer import trace_arrays
from tether.trace.backend import prepare
from tether.trace.tracer import TraceFailure

N = 24
Y, SLOPES = np.random.default_rng(1).uniform(0.1, 1.0, (2, N))
BEGINNINGS = [lambda y: y.copy(), lambda y: np.zeros(N), lambda y: 0.5 * y]
# from an array of one dimension, or from one that does not lie in memory row by row
CONVERSIONS = [
    np.array, np.asarray, np.asanyarray, np.ascontiguousarray, np.copy, np.ravel, np.atleast_1d,
    np.atleast_2d, np.squeeze, np.transpose, np.flipud, np.sin, np.abs, np.negative, np.zeros_like,
    lambda x: np.array(x, copy=False) if np.__version__ < "2" else np.array(x, copy=None),
    lambda x: np.array(x, copy=True), lambda x: np.array(x, order="C"),
    lambda x: np.array(x, order="F"), lambda x: np.asarray(x, order="C"),
    lambda x: np.asarray(x, order="F"), lambda x: np.asarray(x, float),
    lambda x: x.astype(float), lambda x: x.astype(float, copy=False), lambda x: x.copy(),
    lambda x: x.ravel(), lambda x: x.flatten(), lambda x: x.reshape(-1), lambda x: x[...],
    lambda x: x.conj(), lambda x: x.T, lambda x: x * 1.0, lambda x: 2.0 * x + x,
    lambda x: np.where(x > 0.5, x, 0.0), lambda x: np.maximum(x, 0.3),
    lambda x: np.cumsum(x, axis=0), lambda x: np.roll(x, 1, axis=0),
    lambda x: np.full_like(x, 0.5), lambda x: x[::-1],
    lambda x: np.cumsum(x, axis=-1), lambda x: np.zeros_like(x, shape=(4, 6)),
    lambda x: np.full_like(x, 0.5, shape=(4, 6)), lambda x: np.broadcast_to(x, (2, *x.shape))[1],
]  # fmt: skip
if np.__version__ >= "2":
    CONVERSIONS.append(lambda x: np.asarray(x, copy=True))
SHAPES = [
    lambda x: x, lambda x: x.reshape(4, 6), lambda x: x.reshape(4, 6).T,
    lambda x: x.reshape(4, 6)[::-1],
]  # fmt: skip


def write_source(x, made, y):
    x[2:5] = 3.0 * y[6:9]


def write_result(x, made, y):
    made[..., 1] = 2.0 * y[0]


def write_flat(x, made, y):
    flat = made.reshape(-1)
    flat[1:4] = y[5:8]


def write_in_order(x, made, y):
    flat = made.ravel(order="K")
    flat[:3] = y[2:5]


WAYS = [write_source, write_result, write_flat, write_in_order]


def function(begin, shape, convert, way):
    def fun(t, y, yp):
        x = begin(y)
        made = convert(shape(x))
        way(x, made, y)
        return yp + x + np.concatenate([made.reshape(-1), np.zeros(N)])[:N]

    return fun


def values_of(fun, whole):
    """Values by templates or by the machine; None where it is not traced."""
    try:
        if whole:
            return Rows(trace_arrays(fun, N).table).values(0.0, Y, SLOPES)
        return prepare(trace(fun, N).program()).new().values(0.0, Y, SLOPES)
    except TraceFailure:
        return None


@pytest.mark.parametrize("whole", [True, False])
def test_what_shares_memory_in_numpy_shares_it_in_a_trace(whole):
    traced = wrong = 0
    for convert in CONVERSIONS:
        for begin in BEGINNINGS:
            for shape in SHAPES:
                for way in WAYS:
                    fun = function(begin, shape, convert, way)
                    try:
                        expected = fun(0.0, Y.copy(), SLOPES.copy())
                    except ValueError:         # an array that may not be written to
                        continue
                    found = values_of(fun, whole)
                    traced += found is not None
                    if found is not None and not np.allclose(found, expected, rtol=1e-13):
                        wrong += 1
    assert wrong == 0
    assert traced > 1000
